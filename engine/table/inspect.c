#include "table/inspect_private.h"

static const struct tn_view *const views[] = {
    &tn_view_schema,    &tn_view_options,  &tn_view_snapshots,  &tn_view_schemas,
    &tn_view_manifests, &tn_view_files,    &tn_view_partitions, &tn_view_buckets,
    &tn_view_tags,      &tn_view_branches, &tn_view_consumers,
};
const char *const tn_view_names[] = {"schema",    "options",  "snapshots",  "schemas",
                                     "manifests", "files",    "partitions", "buckets",
                                     "tags",      "branches", "consumers"};
enum { VIEW_COUNT = sizeof views / sizeof views[0] };
const uint32_t tn_view_count = VIEW_COUNT;
_Static_assert(sizeof tn_view_names / sizeof tn_view_names[0] == VIEW_COUNT, "a name a view");

const struct tn_view *tn_view_find(const char *name)
{
    for (uint32_t i = 0; i < VIEW_COUNT; i++) {
        if (strcmp(tn_view_names[i], name) == 0) {
            return views[i];
        }
    }
    return NULL;
}

const char *const *tn_view_columns(const struct tn_view *view, uint32_t *count)
{
    *count = view->column_count;
    return view->columns;
}

tn_rc tn_view_each(const struct tn_view *view, const struct tn_inspect *inspect, tn_view_fn *each,
                   void *user, struct tn_err *err)
{
    if (view->needs_snapshot && !inspect->snapshot) {
        return TN_OK;
    }
    struct tn_line line = {.in = inspect, .view = view, .each = each, .user = user};
    size_t mark = tn_arena_mark(inspect->arena);
    void *memory;
    tn_rc rc = tn_arena_need(inspect->arena, TN_LINE_SIZE, "a row", &memory, err);
    if (rc == TN_OK) {
        tn_buf_init(&line.text, memory, TN_LINE_SIZE);
        rc = view->run(&line, err);
    }
    if (!inspect->schemas || inspect->schemas->arena != inspect->arena) {
        tn_arena_reset(inspect->arena, mark); /* else schemas that were loaded stay in it */
    }
    return rc;
}
