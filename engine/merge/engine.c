#include "merge/engine.h"

struct maker {
    const struct tn_options *options;
    const struct tn_row_layout *layout;
    const uint32_t *fields_of;
    struct tn_arena *arena;
    struct tn_err *err;
};

/* The layout's column of a field, or -1. */
static int32_t column_of(const struct maker *m, uint32_t field)
{
    for (uint32_t i = 0; i < m->layout->column_count; i++) {
        if (m->fields_of[i] == field) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void make_column(const struct maker *m, uint32_t column, struct tn_engine *engine)
{
    const struct tn_merge_field *field = &m->options->merge_fields[m->fields_of[column]];
    const struct tn_aggregate_function *function = &tn_aggregate_functions[field->aggregate];
    engine->columns[column] = (struct tn_engine_column){
        .function = function->add ? function : NULL,
        .function_name = tn_aggregate_name(field->aggregate),
        .delimiter = tn_bytes_of(field->delimiter),
        .group = field->group,
        .orders = field->orders,
        .key = field->aggregate == TN_AGGREGATE_KEY,
        .ignore_retract = field->ignore_retract,
    };
    engine->groups_shown = engine->groups_shown || field->group >= 0;
}

/* Whoever shows a column that a group protects must show what orders it. */
static tn_rc check_shown(const struct maker *m, const struct tn_engine *engine, uint32_t group)
{
    for (uint32_t i = 0; i < m->layout->column_count; i++) {
        if (engine->columns[i].group == (int32_t)group) {
            return tn_err_set(m->err, TN_INVALID, 0,
                              "column '%s' is read without the columns that order it",
                              m->layout->columns[i].name);
        }
    }
    return TN_OK;
}

static tn_rc make_group(const struct maker *m, uint32_t group, struct tn_engine *engine)
{
    const struct tn_sequence_group *from = &m->options->sequence_groups[group];
    struct tn_engine_group *to = &engine->groups[group];
    void *order = NULL;
    tn_rc rc = tn_arena_need(m->arena, from->order.count * sizeof(uint32_t), "a sequence group",
                             &order, m->err);
    uint32_t *columns = order;
    for (uint32_t i = 0; i < from->order.count && rc == TN_OK; i++) {
        int32_t column = column_of(m, from->order.index[i]);
        if (column < 0) {
            to->order = (struct tn_columns){columns, 0};
            return check_shown(m, engine, group);
        }
        columns[i] = (uint32_t)column;
    }
    *to = (struct tn_engine_group){{columns, from->order.count}, from->removes};
    return rc;
}

static tn_rc make_columns(const struct maker *m, struct tn_engine *engine)
{
    void *columns = NULL;
    void *groups = NULL;
    tn_rc rc =
        tn_arena_need(m->arena, (m->layout->column_count + 1) * sizeof(struct tn_engine_column),
                      "a merge engine", &columns, m->err);
    rc = rc != TN_OK
             ? rc
             : tn_arena_need(m->arena, (engine->group_count + 1) * sizeof(struct tn_engine_group),
                             "sequence groups", &groups, m->err);
    engine->columns = columns;
    engine->groups = groups;
    for (uint32_t i = 0; i < m->layout->column_count && rc == TN_OK; i++) {
        make_column(m, i, engine);
    }
    for (uint32_t i = 0; i < engine->group_count && rc == TN_OK; i++) {
        rc = make_group(m, i, engine);
    }
    return rc;
}

tn_rc tn_engine_make(const struct tn_options *options, const struct tn_order *order,
                     const uint32_t *fields_of, struct tn_arena *arena,
                     const struct tn_engine **engine, struct tn_err *err)
{
    struct maker m = {options, order->layout, fields_of, arena, err};
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, sizeof(struct tn_engine), "a merge engine", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_engine *made = memory;
    *made = (struct tn_engine){.kind = options->merge_engine,
                               .layout = order->layout,
                               .group_count = options->sequence_group_count,
                               .ignore_delete = options->ignore_delete,
                               .removes = options->merge_engine == TN_MERGE_AGGREGATION
                                              ? options->aggregation_removes
                                              : options->partial_update_removes};
    rc = options->merge_fields ? make_columns(&m, made) : TN_OK;
    if (rc == TN_OK) {
        *engine = made;
    }
    return rc;
}

bool tn_engine_keeps_newest(const struct tn_engine *engine)
{
    return engine->kind == TN_MERGE_DEDUPLICATE;
}
