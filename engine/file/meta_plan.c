#include "file/meta_private.h"

#include <string.h>

#include "base/check.h"

static bool array_of(const struct tn_avro_type *type, enum tn_avro_kind item)
{
    return type->kind == TN_AVRO_ARRAY && type->children[0].kind == item;
}

static bool integer(const struct tn_avro_type *type)
{
    return type->kind == TN_AVRO_INT || type->kind == TN_AVRO_LONG;
}

static bool byte_like(const struct tn_avro_type *type)
{
    return type->kind == TN_AVRO_BYTES || type->kind == TN_AVRO_STRING;
}

static int32_t find_name(const struct tn_avro_type *record, const char *name)
{
    for (uint32_t i = 0; i < record->child_count; i++) {
        if (strcmp(record->names[i], name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool stats_fit(const struct tn_avro_type *type)
{
    if (type->kind != TN_AVRO_RECORD) {
        return false;
    }
    int32_t min = find_name(type, TN_STATS_MIN_NAME);
    int32_t max = find_name(type, TN_STATS_MAX_NAME);
    int32_t counts = find_name(type, TN_STATS_NULLS_NAME);
    return min >= 0 && max >= 0 && counts >= 0 && type->children[min].kind == TN_AVRO_BYTES &&
           type->children[max].kind == TN_AVRO_BYTES &&
           (array_of(&type->children[counts], TN_AVRO_LONG) ||
            array_of(&type->children[counts], TN_AVRO_INT));
}

static bool member_fits(const struct tn_member *m, const struct tn_avro_type *type)
{
    switch (m->kind) {
    case TN_MEMBER_VERSION:
    case TN_MEMBER_I32:
    case TN_MEMBER_I64:
    case TN_MEMBER_COUNT:
    case TN_MEMBER_OPT_I64:
    case TN_MEMBER_OPT_I32:
        return integer(type);
    case TN_MEMBER_NAME:
    case TN_MEMBER_TEXT:
    case TN_MEMBER_BYTES:
    case TN_MEMBER_OPT_BYTES:
    case TN_MEMBER_OPT_TEXT:
        return byte_like(type);
    case TN_MEMBER_FILES:
    case TN_MEMBER_OPT_TEXTS:
        return array_of(type, TN_AVRO_STRING) && !type->children[0].nullable;
    case TN_MEMBER_STATS:
        return stats_fit(type);
    case TN_MEMBER_FILE:
        return type->kind == TN_AVRO_RECORD && !type->nullable;
    }
    return false;
}

/* Which member each field of a file's record is, -1 for those to skip. Nullable members may lack.
 */
static tn_rc map_members(const struct tn_avro_type *record, struct tn_members members,
                         struct tn_arena *arena, int32_t **map, struct tn_err *err)
{
    void *made = NULL;
    tn_rc rc = tn_arena_need(arena, record->child_count * sizeof(int32_t) + 1, "manifest plan",
                             &made, err);
    if (rc) {
        return rc;
    }
    int32_t *out = made;
    for (uint32_t i = 0; i < record->child_count; i++) {
        out[i] = -1;
    }
    for (uint32_t m = 0; m < members.count; m++) {
        const struct tn_member *member = &members.items[m];
        int32_t at = find_name(record, member->name);
        if (at < 0 && member->kind < TN_MEMBER_OPT_I64) {
            return tn_err_set(err, TN_CORRUPT, 0, "field %s is missing", member->name);
        }
        if (at >= 0 && !member_fits(member, &record->children[at])) {
            return tn_err_set(err, TN_CORRUPT, 0, "field %s has an unexpected type", member->name);
        }
        if (at >= 0) {
            out[at] = (int32_t)m;
        }
    }
    *map = out;
    return TN_OK;
}

static tn_rc plan_record(struct tn_bytes schema, struct tn_members members, struct tn_arena *arena,
                         struct tn_meta_plan *plan, struct tn_err *err)
{
    *plan = (struct tn_meta_plan){.top = NULL};
    tn_rc rc = tn_avro_schema_parse(schema, arena, &plan->type, err);
    if (rc) {
        return rc;
    }
    if (plan->type.kind != TN_AVRO_RECORD || plan->type.nullable) {
        return tn_err_set(err, TN_CORRUPT, 0, "the schema is no record");
    }
    return map_members(&plan->type, members, arena, &plan->top, err);
}

tn_rc tn_entry_plan(struct tn_bytes schema, struct tn_arena *arena, struct tn_meta_plan *plan,
                    struct tn_err *err)
{
    tn_rc rc = plan_record(schema, tn_entry_members, arena, plan, err);
    if (rc) {
        return rc;
    }
    int32_t file = find_name(&plan->type, "_FILE");
    TN_CHECK(file >= 0);
    rc = map_members(&plan->type.children[file], tn_file_members, arena, &plan->file, err);
    return rc ? tn_err_in(err, "_FILE") : TN_OK;
}

tn_rc tn_manifest_list_plan(struct tn_bytes schema, struct tn_arena *arena,
                            struct tn_meta_plan *plan, struct tn_err *err)
{
    return plan_record(schema, tn_list_members, arena, plan, err);
}

tn_rc tn_index_plan(struct tn_bytes schema, struct tn_arena *arena, struct tn_meta_plan *plan,
                    struct tn_err *err)
{
    return plan_record(schema, tn_index_members, arena, plan, err);
}
