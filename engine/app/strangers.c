#include "app/strangers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/keeper.h"
#include "file/names.h"

/* Where its newest snapshot says that it is in this journal. */
static tn_rc ask(struct tn_stranger *stranger, struct tn_env *env, const char *identity,
                 struct tn_err *err)
{
    struct tn_recovered found;
    const char *root;
    size_t mark = tn_arena_mark(env->arena);
    tn_rc rc = tn_name_table_root(env->arena, stranger->name, &root, err);
    if (rc == TN_OK) {
        rc = tn_table_recover(env->io, env->clock, stranger->name, root, env->arena, &found, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < found.properties.count; i++) {
        const struct tn_json_pair *pair = &found.properties.pairs[i];
        if (strcmp(pair->key, TN_POSITION_PROPERTY TN_KEEPER_SOURCE) == 0 &&
            strncmp(pair->value, identity, strlen(identity)) == 0 &&
            pair->value[strlen(identity)] == ':') {
            stranger->place = strtoull(pair->value + strlen(identity) + 1, NULL, 10);
        }
    }
    tn_arena_reset(env->arena, mark);
    return rc;
}

static tn_rc find(struct tn_strangers *s, struct tn_env *env, const char *identity,
                  struct tn_bytes name, const struct tn_stranger **found, struct tn_err *err)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (tn_bytes_equal(tn_bytes_of(s->list[i].name), name)) {
            *found = &s->list[i];
            return TN_OK;
        }
    }
    struct tn_stranger *stranger = &s->list[s->count % TN_STRANGERS_MAX];
    (void)snprintf(stranger->name, sizeof stranger->name, "%.*s", (int)name.size,
                   (const char *)name.data);
    stranger->place = 0;
    s->count += s->count < TN_STRANGERS_MAX;
    *found = stranger;
    return ask(stranger, env, identity, err);
}

tn_rc tn_strangers_see(struct tn_strangers *strangers, struct tn_env *env, const char *identity,
                       struct tn_bytes name, uint64_t place, struct tn_err *err)
{
    const struct tn_stranger *stranger = NULL;
    if (place < strangers->known) {
        return TN_OK;
    }
    tn_rc rc = find(strangers, env, identity, name, &stranger, err);
    strangers->known = place + 1;
    return rc != TN_OK || place < stranger->place
               ? rc
               : tn_err_set(err, TN_INVALID, 0,
                            "the journal has rows of %s that are not committed, and it is not "
                            "configured any more: configure it once again, or give them up with "
                            "--drop",
                            stranger->name);
}
