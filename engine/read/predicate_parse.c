#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "read/predicate_private.h"
#include "read/predicate_tokens.h"

/* What waits for its right operand, from the outside in. */
enum pending { PENDING_OPEN, PENDING_OR, PENDING_AND, PENDING_NOT };

struct parser {
    struct tn_lexer lexer;
    struct tn_predicate *predicate;
    const char **names; /* of the schema's fields */
    struct tn_arena *arena;
    struct tn_err *err;
    enum pending pending[TN_PREDICATE_STACK_MAX];
    uint32_t pending_count;
    uint32_t depth;    /* parentheses and nots among them */
    uint32_t operands; /* how many a walk holds at this node */
};

static tn_rc expected(struct parser *p, const char *what)
{
    return tn_lexer_expected(&p->lexer, what, p->err);
}

/* ---- nodes ---- */

static tn_rc too_large(struct parser *p)
{
    return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: more than %d conditions and values",
                      p->lexer.token.at, TN_PREDICATE_NODES_MAX);
}

static struct tn_node *add_node(struct parser *p, struct tn_node node)
{
    struct tn_predicate *predicate = p->predicate;
    if (predicate->node_count == TN_PREDICATE_NODES_MAX) {
        return NULL;
    }
    predicate->nodes[predicate->node_count] = node;
    return &predicate->nodes[predicate->node_count++];
}

static tn_rc add_leaf(struct parser *p, struct tn_node node)
{
    node.size = 1;
    if (p->operands == TN_PREDICATE_STACK_MAX || !add_node(p, node)) {
        return too_large(p);
    }
    p->operands++;
    return TN_OK;
}

/* A node over the last tree, or over the last two. */
static tn_rc add_over(struct parser *p, enum tn_node_kind kind)
{
    struct tn_predicate *predicate = p->predicate;
    uint32_t size = predicate->nodes[predicate->node_count - 1].size;
    if (kind != TN_NODE_NOT) {
        size += predicate->nodes[predicate->node_count - 1 - size].size;
        p->operands--;
    }
    return add_node(p, (struct tn_node){.kind = kind, .size = size + 1}) ? TN_OK : too_large(p);
}

static tn_rc not_if(struct parser *p, tn_rc rc, bool negated)
{
    return rc == TN_OK && negated ? add_over(p, TN_NODE_NOT) : rc;
}

/* ---- conditions ---- */

/* A copy without doubled quotes, so that nothing points into the text that was parsed. */
static tn_rc copy_text(struct parser *p, struct tn_bytes *copy)
{
    struct tn_bytes text = p->lexer.token.text;
    void *memory;
    tn_rc rc = tn_arena_need(p->arena, text.size + 1, "a literal", &memory, p->err);
    if (rc) {
        return rc;
    }
    unsigned char *out = memory;
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        out[size++] = text.data[i];
        i += p->lexer.token.quoted && text.data[i] == (unsigned char)p->lexer.token.quote;
    }
    *copy = (struct tn_bytes){out, size};
    return TN_OK;
}

static tn_rc parse_literal(struct parser *p, uint32_t field)
{
    const struct tn_field *column = &p->predicate->schema->fields[field];
    bool word = tn_lexer_at_keyword(&p->lexer, "true") || tn_lexer_at_keyword(&p->lexer, "false");
    bool number = p->lexer.token.kind == TN_TOKEN_NUMBER;
    if (tn_lexer_at_keyword(&p->lexer, "null")) {
        return tn_err_set(
            p->err, TN_INVALID, 0,
            "at byte %zu: no comparison with NULL is ever true; write '%.60s is null'",
            p->lexer.token.at, column->name);
    }
    if (word && column->type.kind != TN_TYPE_BOOLEAN) {
        return expected(p, "a value in quotes");
    }
    if (!word && !number && p->lexer.token.kind != TN_TOKEN_STRING) {
        return expected(p, "a number or a value in quotes");
    }
    if (p->predicate->literal_count == TN_PREDICATE_NODES_MAX) {
        return too_large(p);
    }
    struct tn_bytes text;
    tn_rc rc = copy_text(p, &text);
    if (rc) {
        return rc;
    }
    struct tn_literal *literal = &p->predicate->literals[p->predicate->literal_count];
    rc = tn_literal_read(&column->type, text, number, p->arena, literal, p->err);
    if (rc) {
        return tn_err_in(p->err, "at byte %zu: column '%.60s'", p->lexer.token.at, column->name);
    }
    p->predicate->literal_count++;
    tn_lexer_advance(&p->lexer);
    return TN_OK;
}

static unsigned order_of(struct tn_bytes text)
{
    unsigned order = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = text.data[i];
        order |= c == '<'   ? TN_ORDER_BELOW
                 : c == '>' ? TN_ORDER_ABOVE
                 : c == '=' ? TN_ORDER_SAME
                            : 0U;
    }
    bool not_equal = text.data[0] == '!';
    return not_equal ? TN_ORDER_BELOW | TN_ORDER_ABOVE : order;
}

/* `<` and its kin; the value is next. */
static tn_rc parse_compare(struct parser *p, uint32_t field, unsigned order)
{
    uint32_t literal = p->predicate->literal_count;
    tn_rc rc = parse_literal(p, field);
    if (rc) {
        return rc;
    }
    return add_leaf(p, (struct tn_node){.kind = TN_NODE_COMPARE,
                                        .field = field,
                                        .order = order,
                                        .literal = literal,
                                        .literal_count = 1});
}

static tn_rc parse_between(struct parser *p, uint32_t field)
{
    tn_rc rc = parse_compare(p, field, TN_ORDER_SAME | TN_ORDER_ABOVE);
    if (!rc && !tn_lexer_take_keyword(&p->lexer, "and")) {
        rc = expected(p, "'and' (of between)");
    }
    if (!rc) {
        rc = parse_compare(p, field, TN_ORDER_SAME | TN_ORDER_BELOW);
    }
    return rc ? rc : add_over(p, TN_NODE_AND);
}

static tn_rc parse_in(struct parser *p, uint32_t field)
{
    uint32_t literal = p->predicate->literal_count;
    if (p->lexer.token.kind != TN_TOKEN_OPEN) {
        return expected(p, "'('");
    }
    do {
        tn_lexer_advance(&p->lexer);
        tn_rc rc = parse_literal(p, field);
        if (rc) {
            return rc;
        }
    } while (p->lexer.token.kind == TN_TOKEN_COMMA);
    if (p->lexer.token.kind != TN_TOKEN_CLOSE) {
        return expected(p, "',' or ')'");
    }
    tn_lexer_advance(&p->lexer);
    uint32_t count = p->predicate->literal_count - literal;
    return add_leaf(
        p, (struct tn_node){
               .kind = TN_NODE_IN, .field = field, .literal = literal, .literal_count = count});
}

/* A BOOLEAN column that stands alone means that it is true. */
static tn_rc add_flag(struct parser *p, uint32_t field)
{
    struct tn_predicate *predicate = p->predicate;
    if (predicate->literal_count == TN_PREDICATE_NODES_MAX) {
        return too_large(p);
    }
    predicate->literals[predicate->literal_count] = (struct tn_literal){.value.as.i64 = 1};
    return add_leaf(p, (struct tn_node){.kind = TN_NODE_COMPARE,
                                        .field = field,
                                        .order = TN_ORDER_SAME,
                                        .literal = predicate->literal_count++,
                                        .literal_count = 1});
}

static bool ends_operand(const struct parser *p)
{
    return p->lexer.token.kind == TN_TOKEN_END || p->lexer.token.kind == TN_TOKEN_CLOSE ||
           tn_lexer_at_keyword(&p->lexer, "and") || tn_lexer_at_keyword(&p->lexer, "or");
}

/* Whatever follows a column's name. */
static tn_rc parse_test(struct parser *p, uint32_t field)
{
    if (p->predicate->schema->fields[field].type.kind == TN_TYPE_BOOLEAN && ends_operand(p)) {
        return add_flag(p, field);
    }
    if (p->lexer.token.kind == TN_TOKEN_COMPARE) {
        unsigned order = order_of(p->lexer.token.text);
        tn_lexer_advance(&p->lexer);
        return parse_compare(p, field, order);
    }
    if (tn_lexer_take_keyword(&p->lexer, "is")) {
        bool negated = tn_lexer_take_keyword(&p->lexer, "not");
        if (!tn_lexer_take_keyword(&p->lexer, "null")) {
            return expected(p, "'null'");
        }
        tn_rc rc = add_leaf(p, (struct tn_node){.kind = TN_NODE_IS_NULL, .field = field});
        return not_if(p, rc, negated);
    }
    bool negated = tn_lexer_take_keyword(&p->lexer, "not");
    if (tn_lexer_take_keyword(&p->lexer, "in")) {
        return not_if(p, parse_in(p, field), negated);
    }
    if (tn_lexer_take_keyword(&p->lexer, "between")) {
        return not_if(p, parse_between(p, field), negated);
    }
    return expected(p, negated ? "'in' or 'between'" : "an operator like = or 'is null'");
}

static tn_rc find_field(struct parser *p, uint32_t *field)
{
    const struct tn_schema *schema = p->predicate->schema;
    struct tn_bytes name;
    tn_rc rc = copy_text(p, &name);
    if (rc) {
        return rc;
    }
    int32_t found = tn_schema_find(schema, name);
    int shown = (int)(name.size < 60 ? name.size : 60);
    if (found < 0) {
        const char *near = tn_nearest_name(name, p->names, schema->field_count);
        return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: '%.*s' is no column%s%s%s",
                          p->lexer.token.at, shown, (const char *)name.data,
                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (tn_type_nested(schema->fields[found].type.kind)) {
        return tn_err_set(p->err, TN_INVALID, 0,
                          "at byte %zu: column '%.*s' is %s, which has no order", p->lexer.token.at,
                          shown, (const char *)name.data,
                          tn_type_name(schema->fields[found].type.kind));
    }
    *field = (uint32_t)found;
    return TN_OK;
}

static tn_rc parse_condition(struct parser *p)
{
    uint32_t field = 0;
    if (p->lexer.token.kind != TN_TOKEN_NAME) {
        return expected(p, "a column's name");
    }
    tn_rc rc = find_field(p, &field);
    if (rc) {
        return rc;
    }
    tn_lexer_advance(&p->lexer);
    return parse_test(p, field);
}

/* ---- and, or, not, parentheses: precedence climbing with the waiting operators in an array ----
 */

static tn_rc push(struct parser *p, enum pending pending)
{
    bool deeper = pending == PENDING_OPEN || pending == PENDING_NOT;
    if (p->depth + deeper > TN_PREDICATE_DEPTH_MAX || p->pending_count == TN_PREDICATE_STACK_MAX) {
        return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: nested more than %d deep",
                          p->lexer.token.at, TN_PREDICATE_DEPTH_MAX);
    }
    p->depth += deeper;
    p->pending[p->pending_count++] = pending;
    tn_lexer_advance(&p->lexer);
    return TN_OK;
}

/* Makes nodes of all that wait and bind at least as tightly. */
static tn_rc reduce(struct parser *p, enum pending least)
{
    static const enum tn_node_kind kinds[] = {
        [PENDING_OPEN] = TN_NODE_OR, /* never made */
        [PENDING_OR] = TN_NODE_OR,
        [PENDING_AND] = TN_NODE_AND,
        [PENDING_NOT] = TN_NODE_NOT,
    };
    while (p->pending_count > 0 && p->pending[p->pending_count - 1] >= least) {
        enum pending pending = p->pending[--p->pending_count];
        p->depth -= pending == PENDING_NOT;
        tn_rc rc = add_over(p, kinds[pending]);
        if (rc) {
            return rc;
        }
    }
    return TN_OK;
}

/* *more: only what stands before an operand was there. */
static tn_rc parse_operand(struct parser *p, bool *more)
{
    *more = true;
    if (p->lexer.token.kind == TN_TOKEN_OPEN) {
        return push(p, PENDING_OPEN);
    }
    if (tn_lexer_at_keyword(&p->lexer, "not")) {
        return push(p, PENDING_NOT);
    }
    *more = false;
    return parse_condition(p);
}

/* Behind an operand. *more: an operand follows. */
static tn_rc parse_operator(struct parser *p, bool *more)
{
    bool is_or = tn_lexer_at_keyword(&p->lexer, "or");
    *more = is_or || tn_lexer_at_keyword(&p->lexer, "and");
    if (*more) {
        enum pending pending = is_or ? PENDING_OR : PENDING_AND;
        tn_rc rc = reduce(p, pending);
        return rc ? rc : push(p, pending);
    }
    tn_rc rc = reduce(p, PENDING_OR);
    if (rc || (p->lexer.token.kind == TN_TOKEN_END && p->pending_count == 0)) {
        return rc;
    }
    if (p->lexer.token.kind != TN_TOKEN_CLOSE || p->pending_count == 0) {
        return expected(p, p->pending_count > 0 ? "'and', 'or' or ')'" : "'and' or 'or'");
    }
    p->pending_count--;
    p->depth--;
    tn_lexer_advance(&p->lexer);
    return TN_OK;
}

static tn_rc parse_all(struct parser *p)
{
    bool operand = true; /* one belongs here */
    while (operand || p->lexer.token.kind != TN_TOKEN_END || p->pending_count > 0) {
        tn_rc rc = operand ? parse_operand(p, &operand) : parse_operator(p, &operand);
        if (rc) {
            return rc;
        }
    }
    return TN_OK;
}

/* A node and a literal for each token is more than are needed. */
static uint32_t count_tokens(struct parser *p)
{
    uint32_t count = 0;
    p->lexer.token = (struct tn_token){0};
    tn_lexer_advance(&p->lexer);
    while (p->lexer.token.kind != TN_TOKEN_END && count < TN_PREDICATE_NODES_MAX) {
        count++;
        tn_lexer_advance(&p->lexer);
    }
    p->lexer.token = (struct tn_token){0};
    tn_lexer_advance(&p->lexer);
    return count;
}

static tn_rc take_memory(struct parser *p, uint32_t count)
{
    const struct tn_schema *schema = p->predicate->schema;
    void *memory = NULL;
    tn_rc rc =
        tn_arena_need(p->arena, count * sizeof(struct tn_node), "a predicate", &memory, p->err);
    if (rc) {
        return rc;
    }
    p->predicate->nodes = memory;
    rc = tn_arena_need(p->arena, count * sizeof(struct tn_literal), "a predicate", &memory, p->err);
    if (rc) {
        return rc;
    }
    p->predicate->literals = memory;
    rc = tn_arena_need(p->arena, schema->field_count * sizeof p->names[0], "a predicate", &memory,
                       p->err);
    if (rc) {
        return rc;
    }
    p->names = memory;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        p->names[i] = schema->fields[i].name;
    }
    return TN_OK;
}

tn_rc tn_predicate_parse(const char *text, const struct tn_schema *schema, struct tn_arena *arena,
                         struct tn_predicate **predicate, struct tn_err *err)
{
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, sizeof **predicate, "a predicate", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_predicate *made = memory;
    *made = (struct tn_predicate){.schema = schema};
    struct parser parser = {
        .lexer.text = tn_bytes_of(text), .predicate = made, .arena = arena, .err = err};
    rc = take_memory(&parser, count_tokens(&parser) + 1);
    if (!rc) {
        rc = parse_all(&parser);
    }
    if (rc) {
        return rc == TN_INVALID ? tn_err_in(err, "where") : rc;
    }
    TN_CHECK(parser.operands == 1 && made->nodes[made->node_count - 1].size == made->node_count);
    *predicate = made;
    return TN_OK;
}
