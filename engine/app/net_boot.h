/* net_boot: the doors to the network, in parts of the block that are carved out of the memtable's
 * part; who doesn't open them keeps that memory.
 *
 *     memtable: rows ... | lua_map | lua_merge | tls | net: libuv's heap, the door, buffers |
 *
 * After tn_boot, and before a table is opened or a script is loaded: those use what is left.
 */
#pragma once

#include "app/boot.h"
#include "io/net.h"

/* What of the part "net" so many streams need at the least. */
size_t tn_net_boot_size(uint32_t streams_max);

/* Opens the system's network for at most `streams_max` streams, both ways together; what of the
 * part "net" is left is its buffers. Once a process. The door is the app's memory: close it
 * (tn_net_close) before tn_shut. AGAIN: the part is too small for so many streams; nothing was
 * opened. */
TN_MUST_USE tn_rc tn_net_boot(struct tn_app *app, uint32_t streams_max, struct tn_net **net,
                              struct tn_err *err);

/* Gives TLS the part "tls", before anything of tls.h: TN_TLS_STREAM_SIZE bytes a stream, and twice
 * the size of each CA file. Once a process. */
void tn_net_boot_tls(struct tn_app *app);
