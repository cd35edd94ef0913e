/* lakes_boot: the memory of uploads, and the door to their targets, for who has lakes. */
#pragma once

#include "app/boot.h"
#include "app/lake.h"
#include "app/lakes.h"

struct tn_lakes_boot {
    struct tn_app *app;
    struct tn_worker worker; /* of the lane UPLOAD */
    struct tn_lake *lake;    /* that is open */
};

/* Carves the part "upload" out of the memtable's, before anybody uses that. INVALID: it is too
 * small. */
TN_MUST_USE tn_rc tn_lakes_boot(struct tn_lakes_boot *boot, struct tn_app *app, struct tn_err *err);
struct tn_lakes_door tn_lakes_door(struct tn_lakes_boot *boot);
