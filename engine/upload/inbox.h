/* inbox: where gateways put what they want committed, beside the table in the lake:
 *
 *     .tarn/<db>.<table>/inbox/<gateway>/<id>       committables; ids of a gateway grow
 *     .tarn/<db>.<table>/refused/<gateway>/<id>     what could not be taken, and <id>.reason
 *
 * Putting an entry is a gateway's whole commit. It is made under a name that was not there, after
 * its files, and the next one only when it is known to be there: so whoever sees an entry sees all
 * earlier ones of that gateway, or they were taken.
 */
#pragma once

#include "io/io.h"

enum {
    TN_INBOX_GATEWAY_SIZE = 64, /* bytes of a gateway's name, with its zero */
    TN_INBOX_ITEMS_MAX = 512,   /* entries that are looked at in one pass, */
    TN_INBOX_SHARE_MAX = 32,    /* and of one gateway */
    TN_INBOX_REASON_SIZE = 512,
};

/* Letters, digits, '.', '_' and '-', not '.' first. */
bool tn_inbox_gateway_valid(const char *gateway);

/* ".tarn/db.t/inbox/<gateway>/<id>"; NULL when the arena is full. */
const char *tn_inbox_path(struct tn_arena *arena, const char *table, const char *gateway,
                          int64_t id);

struct tn_inbox_item {
    char gateway[TN_INBOX_GATEWAY_SIZE];
    int64_t id;
};

struct tn_inbox {
    struct tn_inbox_item *items; /* gateway by gateway; of each the smallest ids, in order */
    uint32_t count;
    bool more; /* there are entries that did not fit, or may be */
};

struct tn_inbox_spec {
    const char *table; /* "db.t" */
    const char *after; /* a gateway, behind which it begins; "": at the first */
    bool (*passed)(void *user, const struct tn_inbox_item *item); /* over; NULL: none is */
    void *user;
};

/* Into the arena, from the first gateway again behind the last. Names that are no gateway's or no
 * entry's are passed over, too. AGAIN: the arena is too small.
 *
 * costs  a store that sorts its names: a LIST a thousand names that are looked at, and it looks at
 *        no more than it needs; another one is looked through once or twice */
TN_MUST_USE tn_rc tn_inbox_list(struct tn_io *io, const struct tn_inbox_spec *spec,
                                struct tn_arena *arena, struct tn_inbox *inbox, struct tn_err *err);

/* Removes entries, many at once; that one isn't there is no error. */
TN_MUST_USE tn_rc tn_inbox_remove(struct tn_io *io, const char *table,
                                  const struct tn_inbox_item *const *items, uint32_t count,
                                  struct tn_arena *scratch, struct tn_err *err);

/* Puts an entry aside with the reason: copied, whatever its size, durable, and then removed. */
TN_MUST_USE tn_rc tn_inbox_refuse(struct tn_io *io, const char *table,
                                  const struct tn_inbox_item *item, const char *reason,
                                  struct tn_arena *scratch, struct tn_err *err);
