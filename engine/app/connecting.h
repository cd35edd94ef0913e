/* connecting: `check --connect`: whether what a configuration names can be reached as it says.
 *
 *     lake, a folder   it is there, and may be written to
 *     lake, a bucket   a GET of a small name: address, certificate, key, clock, bucket
 *     broker           its name and password let us in, under a client id of its own
 *     notify           likewise; of a POST: that somebody is there, and TLS
 *
 * Nothing is written anywhere, and no message is sent: whether a key may write only a sync shows. A
 * daemon that runs isn't disturbed.
 */
#pragma once

#include "app/boot.h"
#include "app/cells.h"
#include "app/config.h"

/* A row each: what, its name, where, whether it works, the kind of trouble, and why or what to do.
 * IO: not all of them work. Once a process, after the configuration was read: it takes the parts
 * "net" and "tls", and the arena "long". */
TN_MUST_USE tn_rc tn_connect_all(struct tn_app *app, const struct tn_config *config,
                                 struct tn_cells *cells, struct tn_err *err);
