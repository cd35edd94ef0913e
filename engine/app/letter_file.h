/* letter_file: dead letters as lines of JSON in a file, or as messages for people.
 *
 *     {"line":7,"reason":"...","record":"...","source":"...","position":123,"part":0,"table":"db.t",
 *      "input":"csv","header":"a,b"}
 *
 * A record that is no UTF-8 is `bytes`, in hex, instead. Lines are appended, and synced before the
 * rows of the same cut are committed. A record that comes again after a crash has its letter again.
 */
#pragma once

#include <stdio.h>

#include "table/letters.h"

struct tn_letter_file {
    struct tn_letter_box box; /* first */
    const char *path;         /* NULL: messages on stderr */
    FILE *file;
};

TN_MUST_USE tn_rc tn_letter_file_open(struct tn_letter_file *letters, const char *path,
                                      struct tn_err *err);
TN_MUST_USE tn_rc tn_letter_file_close(struct tn_letter_file *letters, struct tn_err *err);
