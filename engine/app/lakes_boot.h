/* lakes_boot: the memory of uploads, and the door to their targets, for who has lakes. */
#pragma once

#include "app/boot.h"
#include "app/lake.h"
#include "app/lakes.h"
#include "app/side_folder.h"

struct tn_lakes_boot {
    struct tn_app *app;
    struct tn_worker worker; /* of the lane UPLOAD */
    struct tn_pool buffers;  /* of the network's door */
    struct tn_lake_doors doors;
    uint32_t links;                 /* that there is memory for; */
    uint32_t tls_links;             /* of those that speak TLS, beside one of a source */
    struct tn_lake_options options; /* of the lake that is open, and it */
    struct tn_lake *lake;
    struct tn_side_folder side; /* of a shared table that is sent */
    bool has_side;
    atomic_bool *stop;
    uint32_t ways;    /* in which tables are shared */
    const char *kind; /* of what kept it from being opened; NULL: of no kind */
};

/* Carves the part "upload" out of the memtable's, before anybody uses that; with a shared table it
 * is as large as that wants. INVALID: it is too small. */
TN_MUST_USE tn_rc tn_lakes_boot(struct tn_lakes_boot *boot, struct tn_app *app,
                                const struct tn_config *config, struct tn_err *err);
/* For stores, once the daemon's own network is there: a door to it for the lane's thread alone. */
TN_MUST_USE tn_rc tn_lakes_boot_stores(struct tn_lakes_boot *boot, const struct tn_config *config,
                                       struct tn_err *err);
/* In which ways tables of lakes are shared, by bits of enum tn_share_way; what can't be read is
 * none. */
uint32_t tn_lakes_boot_ways(const struct tn_config *config, struct tn_io *io,
                            struct tn_arena *scratch);
/* Bytes of the part that an upload needs at the least. */
size_t tn_lakes_boot_needs(const struct tn_config *config, uint32_t ways);
/* The part becomes as large as shared tables want it. */
void tn_lakes_boot_grow(struct tn_budget *budget, const struct tn_config *config, uint32_t ways);
/* Bytes that the part of policies needs. */
size_t tn_lakes_boot_policies(const struct tn_config *config);
/* A store's options, as configured and from the environment; their texts are the configuration's.
 */
TN_MUST_USE tn_rc tn_lakes_boot_options(const struct tn_config_lake *config,
                                        struct tn_lake_options *options, struct tn_err *err);
/* Whether a lake is the place of a shared table. */
bool tn_lakes_boot_is_there(const struct tn_config_lake *lake, const char *where);
/* Whether one of them speaks TLS, whose memory is the process's. */
bool tn_lakes_boot_tls(const struct tn_config *config);
/* No upload is under way. A lookup that doesn't end is left behind after `wait_ms`. */
void tn_lakes_boot_close(struct tn_lakes_boot *boot, struct tn_exec *exec, uint32_t wait_ms);
struct tn_lakes_door tn_lakes_door(struct tn_lakes_boot *boot);
