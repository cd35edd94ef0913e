#include "app/strangers.h"

#include <stdlib.h>
#include <string.h>

#include "app/keeper.h"
#include "file/names.h"

/* Where the properties of a snapshot say that it is in this journal. */
static uint64_t place_in(const struct tn_json_map *properties, const char *identity)
{
    size_t size = strlen(identity);
    uint64_t place = 0;
    for (uint32_t i = 0; i < properties->count; i++) {
        const struct tn_json_pair *pair = &properties->pairs[i];
        if (strcmp(pair->key, TN_POSITION_PROPERTY TN_KEEPER_SOURCE) == 0 &&
            strncmp(pair->value, identity, size) == 0 && pair->value[size] == ':') {
            place = strtoull(pair->value + size + 1, NULL, 10);
        }
    }
    return place;
}

static tn_rc ask(struct tn_env *env, const char *identity, struct tn_bytes name, uint64_t *place,
                 struct tn_err *err)
{
    struct tn_recovered found;
    const char *root;
    size_t mark = tn_arena_mark(env->arena);
    const char *table = tn_arena_text(env->arena, name);
    tn_rc rc = table ? tn_name_table_root(env->arena, table, &root, err)
                     : tn_err_set(err, TN_AGAIN, 0, "no memory for a table's name");
    if (rc == TN_OK) {
        rc = tn_table_recover(env->io, env->clock, table, root, env->arena, &found, err);
    }
    if (rc == TN_OK) {
        *place = place_in(&found.properties, identity);
    }
    tn_arena_reset(env->arena, mark);
    return rc;
}

static tn_rc find(struct tn_strangers *s, struct tn_env *env, const char *identity,
                  struct tn_bytes name, uint64_t *place, struct tn_err *err)
{
    struct tn_hash_128 hash = tn_hash_128(name);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->list[i].name.high == hash.high && s->list[i].name.low == hash.low) {
            *place = s->list[i].place;
            return TN_OK;
        }
    }
    tn_rc rc = ask(env, identity, name, place, err);
    if (rc == TN_OK) {
        s->list[s->count % TN_STRANGERS_MAX] = (struct tn_stranger){hash, *place};
        s->count += s->count < TN_STRANGERS_MAX;
    }
    return rc;
}

tn_rc tn_strangers_see(struct tn_strangers *strangers, struct tn_env *env, const char *identity,
                       struct tn_bytes name, uint64_t place, struct tn_err *err)
{
    uint64_t committed = 0;
    if (place < strangers->known) {
        return TN_OK;
    }
    tn_rc rc = find(strangers, env, identity, name, &committed, err);
    if (rc == TN_ABSENT) {
        rc = tn_err_set(err, TN_INVALID, 0,
                        "the journal has rows of %.*s, whose folder is gone, and it is not "
                        "configured any more: put the folder back, or give them up with --drop",
                        (int)name.size, (const char *)name.data);
    }
    if (rc == TN_OK && place >= committed) {
        rc = tn_err_set(err, TN_INVALID, 0,
                        "the journal has rows of %.*s that are not committed, and it is not "
                        "configured any more: configure it once again, or give them up with "
                        "--drop",
                        (int)name.size, (const char *)name.data);
    }
    strangers->known = rc == TN_OK ? place + 1 : strangers->known;
    return rc == TN_AGAIN ? TN_FULL : rc; /* memory that isn't there doesn't come with time */
}
