#include "read/predicate.h"

#include "base/check.h"
#include "read/predicate_private.h"

void tn_predicate_fields(const struct tn_predicate *predicate, bool *used)
{
    for (uint32_t i = 0; i < predicate->node_count; i++) {
        if (tn_node_is_leaf(&predicate->nodes[i])) {
            used[predicate->nodes[i].field] = true;
        }
    }
}

/* ---- does a row match ---- */

/* So ordered, `and` is the lesser, `or` the greater, and `not` the mirror. */
enum truth { TRUTH_FALSE, TRUTH_UNKNOWN, TRUTH_TRUE };

static enum truth test_row(const struct tn_predicate *predicate, const struct tn_node *node,
                           const struct tn_value *value)
{
    const struct tn_type *type = &predicate->schema->fields[node->field].type;
    const struct tn_literal *literals = predicate->literals + node->literal;
    if (node->kind == TN_NODE_IS_NULL) {
        return value->null ? TRUTH_TRUE : TRUTH_FALSE;
    }
    if (value->null) {
        return TRUTH_UNKNOWN;
    }
    unsigned wanted = node->kind == TN_NODE_IN ? TN_ORDER_SAME : node->order;
    for (uint32_t i = 0; i < node->literal_count; i++) {
        if (tn_literal_order(type, value, &literals[i]) & wanted) {
            return TRUTH_TRUE;
        }
    }
    return TRUTH_FALSE;
}

/* The last one or two truths become one. Returns how many there are then. */
static uint32_t combine(enum tn_node_kind kind, unsigned char *truths, uint32_t count)
{
    unsigned char *last = &truths[count - 1];
    if (kind == TN_NODE_NOT) {
        *last = (unsigned char)(TRUTH_TRUE - *last);
        return count;
    }
    TN_CHECK(count >= 2);
    bool left_counts = kind == TN_NODE_AND ? last[-1] < last[0] : last[-1] > last[0];
    last[-1] = left_counts ? last[-1] : last[0];
    return count - 1;
}

bool tn_predicate_match(const struct tn_predicate *predicate, const struct tn_row_layout *layout,
                        const int32_t *column_of, struct tn_row row)
{
    unsigned char truths[TN_PREDICATE_STACK_MAX] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < predicate->node_count; i++) {
        const struct tn_node *node = &predicate->nodes[i];
        if (!tn_node_is_leaf(node)) {
            count = combine(node->kind, truths, count);
            continue;
        }
        struct tn_value value = {0};
        TN_DCHECK(column_of[node->field] >= 0);
        tn_row_get(layout, row, (uint32_t)column_of[node->field], &value);
        truths[count++] = (unsigned char)test_row(predicate, node, &value);
    }
    return truths[0] == TRUTH_TRUE;
}

/* ---- can a row within bounds match: the same over sets of truths ----
 *
 * Unknown is not kept in the sets: no `and`, `or` or `not` makes true or false of it. */

enum { MAYBE_FALSE = 1, MAYBE_TRUE = 2 };

/* Which orders values between min and max can have to a literal. */
static unsigned orders_within(const struct tn_type *type, const struct tn_bounds *bounds,
                              const struct tn_literal *literal)
{
    unsigned low = tn_literal_order(type, &bounds->min, literal);
    unsigned high = tn_literal_order(type, &bounds->max, literal);
    bool around = low == TN_ORDER_BELOW && high == TN_ORDER_ABOVE;
    return low | high | (around && literal->place == TN_PLACE_AT ? TN_ORDER_SAME : 0U);
}

/* Bounds that contradict themselves are no bounds. */
static bool has_range(const struct tn_type *type, const struct tn_bounds *bounds)
{
    return bounds->known && bounds->has_range && !bounds->min.null && !bounds->max.null &&
           tn_value_compare(type, &bounds->min, &bounds->max) <= 0;
}

/* What a comparison or `in` can say of the values that are not NULL. */
static unsigned truths_of_values(const struct tn_predicate *predicate, const struct tn_node *node,
                                 const struct tn_bounds *bounds)
{
    const struct tn_type *type = &predicate->schema->fields[node->field].type;
    const struct tn_literal *literals = predicate->literals + node->literal;
    if (!has_range(type, bounds)) {
        return MAYBE_TRUE | MAYBE_FALSE;
    }
    unsigned wanted = node->kind == TN_NODE_IN ? TN_ORDER_SAME : node->order;
    unsigned truths = MAYBE_FALSE;
    for (uint32_t i = 0; i < node->literal_count; i++) {
        unsigned orders = orders_within(type, bounds, &literals[i]);
        if (!(orders & ~wanted)) {
            return MAYBE_TRUE; /* always true, whatever the other literals say */
        }
        truths |= orders & wanted ? MAYBE_TRUE : 0U;
    }
    return truths;
}

static unsigned test_bounds(const struct tn_predicate *predicate, const struct tn_node *node,
                            const struct tn_bounds *bounds, int64_t row_count)
{
    bool no_null = bounds->known && bounds->null_count == 0;
    bool all_null = bounds->known && row_count > 0 && bounds->null_count == row_count;
    if (node->kind == TN_NODE_IS_NULL) {
        return (no_null ? 0U : MAYBE_TRUE) | (all_null ? 0U : MAYBE_FALSE);
    }
    return all_null ? 0U : truths_of_values(predicate, node, bounds);
}

static unsigned mirror(unsigned truths)
{
    return (truths & MAYBE_TRUE ? MAYBE_FALSE : 0U) | (truths & MAYBE_FALSE ? MAYBE_TRUE : 0U);
}

/* True needs both, false needs one. */
static unsigned both(unsigned a, unsigned b)
{
    return (a & b & MAYBE_TRUE) | ((a | b) & MAYBE_FALSE);
}

static uint32_t combine_sets(enum tn_node_kind kind, unsigned *sets, uint32_t count)
{
    unsigned *last = &sets[count - 1];
    if (kind == TN_NODE_NOT) {
        *last = mirror(*last);
        return count;
    }
    last[-1] = kind == TN_NODE_AND ? both(last[-1], last[0])
                                   : mirror(both(mirror(last[-1]), mirror(last[0])));
    return count - 1;
}

bool tn_predicate_may_match(const struct tn_predicate *predicate, const struct tn_bounds *bounds,
                            int64_t row_count)
{
    unsigned sets[TN_PREDICATE_STACK_MAX] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < predicate->node_count; i++) {
        const struct tn_node *node = &predicate->nodes[i];
        if (tn_node_is_leaf(node)) {
            sets[count++] = test_bounds(predicate, node, &bounds[node->field], row_count);
        } else {
            count = combine_sets(node->kind, sets, count);
        }
    }
    return sets[0] & MAYBE_TRUE;
}

/* ---- the members of the outermost conjunction ---- */

struct members {
    const struct tn_node *nodes;
    uint32_t roots[TN_PREDICATE_STACK_MAX]; /* still to be looked at */
    uint32_t count;
};

static struct members members_of(const struct tn_predicate *predicate)
{
    return (struct members){
        .nodes = predicate->nodes, .roots = {predicate->node_count - 1}, .count = 1};
}

/* The root of the next member, or false. */
static bool next_member(struct members *members, uint32_t *root)
{
    while (members->count > 0) {
        uint32_t at = members->roots[--members->count];
        if (members->nodes[at].kind != TN_NODE_AND) {
            *root = at;
            return true;
        }
        TN_CHECK(members->count + 2 <= TN_PREDICATE_STACK_MAX);
        members->roots[members->count++] = at - 1 - members->nodes[at - 1].size;
        members->roots[members->count++] = at - 1;
    }
    return false;
}

static bool names_only(const struct tn_node *nodes, uint32_t root, const bool *fields)
{
    for (uint32_t i = root + 1 - nodes[root].size; i <= root; i++) {
        if (tn_node_is_leaf(&nodes[i]) && !fields[nodes[i].field]) {
            return false;
        }
    }
    return true;
}

/* `and`s one more member to what is there. */
static void add_member(struct tn_predicate *part, const struct tn_node *nodes, uint32_t root)
{
    uint32_t size = nodes[root].size;
    bool first = part->node_count == 0;
    memcpy(part->nodes + part->node_count, nodes + root + 1 - size, size * sizeof nodes[0]);
    part->node_count += size;
    if (!first) {
        part->nodes[part->node_count] =
            (struct tn_node){.kind = TN_NODE_AND, .size = part->node_count + 1};
        part->node_count++;
    }
}

const struct tn_predicate *tn_predicate_only(const struct tn_predicate *predicate,
                                             const bool *fields, struct tn_arena *arena)
{
    struct tn_predicate *part = tn_arena_take(arena, sizeof *part);
    if (!part) {
        return NULL;
    }
    *part = *predicate;
    part->node_count = 0;
    part->nodes = tn_arena_take(arena, predicate->node_count * sizeof part->nodes[0]);
    if (!part->nodes) {
        return NULL;
    }
    struct members members = members_of(predicate);
    uint32_t root;
    while (next_member(&members, &root)) {
        if (names_only(predicate->nodes, root, fields)) {
            add_member(part, predicate->nodes, root);
        }
    }
    return part->node_count > 0 ? part : NULL;
}

/* One value, with one binary form: two zeros are equal and hash apart, and so do NaNs. */
static bool is_one_value(const struct tn_type *type, const struct tn_literal *literal)
{
    bool floating = type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE;
    double f64 = literal->value.as.f64;
    bool fits =
        type->kind != TN_TYPE_DECIMAL || tn_i128_fits(literal->value.as.i128, type->precision);
    return literal->place == TN_PLACE_AT && fits && !(floating && !(f64 < 0 || f64 > 0));
}

static bool fixes(const struct tn_predicate *predicate, uint32_t field, struct tn_value *value)
{
    struct members members = members_of(predicate);
    uint32_t root;
    while (next_member(&members, &root)) {
        const struct tn_node *node = &predicate->nodes[root];
        bool equal = (node->kind == TN_NODE_COMPARE && node->order == TN_ORDER_SAME) ||
                     (node->kind == TN_NODE_IN && node->literal_count == 1);
        if (!equal || node->field != field) {
            continue;
        }
        const struct tn_literal *literal = &predicate->literals[node->literal];
        if (is_one_value(&predicate->schema->fields[field].type, literal)) {
            *value = literal->value;
            return true;
        }
    }
    return false;
}

bool tn_predicate_point(const struct tn_predicate *predicate, struct tn_columns columns,
                        struct tn_value *values)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        if (!fixes(predicate, columns.index[i], &values[i])) {
            return false;
        }
    }
    return true;
}

/* ---- made of values ---- */

tn_rc tn_predicate_equals(const struct tn_schema *schema, struct tn_columns columns,
                          const struct tn_value *values, struct tn_arena *arena,
                          struct tn_predicate **predicate, struct tn_err *err)
{
    if (columns.count == 0 || columns.count > TN_PREDICATE_NODES_MAX / 2) {
        return tn_err_set(err, TN_INVALID, 0, "a condition on %u columns", columns.count);
    }
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena,
                             sizeof **predicate + columns.count * (2 * sizeof(struct tn_node) +
                                                                   sizeof(struct tn_literal)),
                             "a predicate", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_literal *literals = memory; /* first: they have the largest alignment */
    struct tn_predicate *made = (struct tn_predicate *)(void *)(literals + columns.count);
    *made = (struct tn_predicate){
        .schema = schema, .literals = literals, .nodes = (struct tn_node *)(void *)(made + 1)};
    for (uint32_t i = 0; i < columns.count; i++) {
        struct tn_node leaf = {.kind = TN_NODE_COMPARE,
                               .size = 1,
                               .field = columns.index[i],
                               .order = TN_ORDER_SAME,
                               .literal = i,
                               .literal_count = 1};
        made->literals[made->literal_count++] = (struct tn_literal){values[i], TN_PLACE_AT};
        add_member(made, &leaf, 0);
    }
    *predicate = made;
    return TN_OK;
}
