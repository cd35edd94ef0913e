#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "read/predicate_private.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,   /* `quoted` ones are never keywords */
    TOKEN_STRING, /* text without the outer quotes, doubled ones still doubled */
    TOKEN_NUMBER,
    TOKEN_COMPARE,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_COMMA,
    TOKEN_BAD,
};

struct token {
    enum token_kind kind;
    bool quoted;
    char quote;
    struct tn_bytes text;
    size_t at; /* byte of the whole text */
};

/* What waits for its right operand, from the outside in. */
enum pending { PENDING_OPEN, PENDING_OR, PENDING_AND, PENDING_NOT };

struct parser {
    struct tn_bytes text;
    size_t at;
    struct token token; /* the next one */
    struct tn_predicate *predicate;
    const char **names; /* of the schema's fields */
    struct tn_arena *arena;
    struct tn_err *err;
    enum pending pending[TN_PREDICATE_STACK_MAX];
    uint32_t pending_count;
    uint32_t depth;    /* parentheses and nots among them */
    uint32_t operands; /* how many a walk holds at this node */
};

/* ---- tokens ---- */

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_part(unsigned char c)
{
    return is_letter(c) || is_digit(c) || c == '.' || c == '$';
}

/* From `at` on, how many bytes are of a kind. */
static size_t span(struct tn_bytes text, size_t at, bool (*of_kind)(unsigned char))
{
    size_t end = at;
    while (end < text.size && of_kind(text.data[end])) {
        end++;
    }
    return end - at;
}

/* '...', "..." and `...`; the quote itself stands there doubled. Returns the size with both quotes,
 * or 0. */
static size_t quoted_size(struct tn_bytes text, size_t at)
{
    unsigned char quote = text.data[at];
    for (size_t i = at + 1; i < text.size; i++) {
        if (text.data[i] != quote) {
            continue;
        }
        if (i + 1 < text.size && text.data[i + 1] == quote) {
            i++;
            continue;
        }
        return i + 1 - at;
    }
    return 0;
}

static size_t number_size(struct tn_bytes text, size_t at)
{
    size_t end = at;
    end += text.data[end] == '-' || text.data[end] == '+';
    end += span(text, end, is_digit);
    if (end < text.size && text.data[end] == '.') {
        end++;
        end += span(text, end, is_digit);
    }
    if (end < text.size && (text.data[end] | 0x20) == 'e') {
        end++;
        end += end < text.size && (text.data[end] == '-' || text.data[end] == '+');
        end += span(text, end, is_digit);
    }
    return end - at;
}

static size_t compare_size(struct tn_bytes text, size_t at)
{
    static const char *const two[] = {"==", "!=", "<>", "<=", ">="};
    for (size_t i = 0; at + 1 < text.size && i < sizeof two / sizeof two[0]; i++) {
        if (memcmp(text.data + at, two[i], 2) == 0) {
            return 2;
        }
    }
    unsigned char c = text.data[at];
    return c == '=' || c == '<' || c == '>';
}

static struct token scan(const struct parser *p, size_t at)
{
    struct tn_bytes text = p->text;
    struct token token = {.kind = TOKEN_END, .at = at};
    if (at == text.size) {
        return token;
    }
    unsigned char c = text.data[at];
    size_t size = 1;
    token.kind = TOKEN_BAD;
    if (c == '(' || c == ')' || c == ',') {
        token.kind = c == '(' ? TOKEN_OPEN : c == ')' ? TOKEN_CLOSE : TOKEN_COMMA;
    } else if (is_letter(c)) {
        token.kind = TOKEN_NAME;
        size = span(text, at, is_name_part);
    } else if (is_digit(c) || c == '-' || c == '+') {
        token.kind = TOKEN_NUMBER;
        size = number_size(text, at);
    } else if (c == '\'' || c == '"' || c == '`') {
        size = quoted_size(text, at);
        token.kind = size == 0 ? TOKEN_BAD : c == '`' ? TOKEN_NAME : TOKEN_STRING;
        token.quoted = size > 0;
        token.quote = (char)c;
    } else if (compare_size(text, at) > 0) {
        token.kind = TOKEN_COMPARE;
        size = compare_size(text, at);
    }
    size = size > 0 ? size : text.size - at;
    token.text = (struct tn_bytes){text.data + at + token.quoted, size - (token.quoted ? 2 : 0)};
    return token;
}

static void advance(struct parser *p)
{
    p->at = p->token.at + p->token.text.size + (p->token.quoted ? 2 : 0);
    while (p->at < p->text.size && strchr(" \t\r\n", p->text.data[p->at])) {
        p->at++;
    }
    p->token = scan(p, p->at);
}

static bool is_keyword(const struct parser *p, const char *word)
{
    struct tn_bytes text = p->token.text;
    if (p->token.kind != TOKEN_NAME || p->token.quoted || text.size != strlen(word)) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if ((text.data[i] | 0x20) != word[i]) {
            return false;
        }
    }
    return true;
}

static bool take_keyword(struct parser *p, const char *word)
{
    bool taken = is_keyword(p, word);
    if (taken) {
        advance(p);
    }
    return taken;
}

/* "at byte 7: WHAT belongs here, not 'xyz'". */
static tn_rc expected(struct parser *p, const char *what)
{
    struct tn_bytes text = p->token.text;
    int shown = (int)(text.size < 40 ? text.size : 40);
    if (p->token.kind == TOKEN_END) {
        return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: %s belongs at the end", p->token.at,
                          what);
    }
    if (p->token.kind == TOKEN_BAD && strchr("'\"`", text.data[0])) {
        return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: the %c is never closed", p->token.at,
                          text.data[0]);
    }
    return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: %s belongs here, not '%.*s'",
                      p->token.at, what, shown, (const char *)text.data);
}

/* ---- nodes ---- */

static tn_rc too_large(struct parser *p)
{
    return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: more than %d conditions and values",
                      p->token.at, TN_PREDICATE_NODES_MAX);
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
    struct tn_bytes text = p->token.text;
    void *memory;
    tn_rc rc = tn_arena_need(p->arena, text.size + 1, "a literal", &memory, p->err);
    if (rc) {
        return rc;
    }
    unsigned char *out = memory;
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        out[size++] = text.data[i];
        i += p->token.quoted && text.data[i] == (unsigned char)p->token.quote;
    }
    *copy = (struct tn_bytes){out, size};
    return TN_OK;
}

static tn_rc parse_literal(struct parser *p, uint32_t field)
{
    const struct tn_field *column = &p->predicate->schema->fields[field];
    bool word = is_keyword(p, "true") || is_keyword(p, "false");
    bool number = p->token.kind == TOKEN_NUMBER;
    if (is_keyword(p, "null")) {
        return tn_err_set(
            p->err, TN_INVALID, 0,
            "at byte %zu: no comparison with NULL is ever true; write '%.60s is null'", p->token.at,
            column->name);
    }
    if (word && column->type.kind != TN_TYPE_BOOLEAN) {
        return expected(p, "a value in quotes");
    }
    if (!word && !number && p->token.kind != TOKEN_STRING) {
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
        return tn_err_in(p->err, "at byte %zu: column '%.60s'", p->token.at, column->name);
    }
    p->predicate->literal_count++;
    advance(p);
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
    if (!rc && !take_keyword(p, "and")) {
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
    if (p->token.kind != TOKEN_OPEN) {
        return expected(p, "'('");
    }
    do {
        advance(p);
        tn_rc rc = parse_literal(p, field);
        if (rc) {
            return rc;
        }
    } while (p->token.kind == TOKEN_COMMA);
    if (p->token.kind != TOKEN_CLOSE) {
        return expected(p, "',' or ')'");
    }
    advance(p);
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
    return p->token.kind == TOKEN_END || p->token.kind == TOKEN_CLOSE || is_keyword(p, "and") ||
           is_keyword(p, "or");
}

/* Whatever follows a column's name. */
static tn_rc parse_test(struct parser *p, uint32_t field)
{
    if (p->predicate->schema->fields[field].type.kind == TN_TYPE_BOOLEAN && ends_operand(p)) {
        return add_flag(p, field);
    }
    if (p->token.kind == TOKEN_COMPARE) {
        unsigned order = order_of(p->token.text);
        advance(p);
        return parse_compare(p, field, order);
    }
    if (take_keyword(p, "is")) {
        bool negated = take_keyword(p, "not");
        if (!take_keyword(p, "null")) {
            return expected(p, "'null'");
        }
        tn_rc rc = add_leaf(p, (struct tn_node){.kind = TN_NODE_IS_NULL, .field = field});
        return not_if(p, rc, negated);
    }
    bool negated = take_keyword(p, "not");
    if (take_keyword(p, "in")) {
        return not_if(p, parse_in(p, field), negated);
    }
    if (take_keyword(p, "between")) {
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
                          p->token.at, shown, (const char *)name.data,
                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (tn_type_nested(schema->fields[found].type.kind)) {
        return tn_err_set(p->err, TN_INVALID, 0,
                          "at byte %zu: column '%.*s' is %s, which has no order", p->token.at,
                          shown, (const char *)name.data,
                          tn_type_name(schema->fields[found].type.kind));
    }
    *field = (uint32_t)found;
    return TN_OK;
}

static tn_rc parse_condition(struct parser *p)
{
    uint32_t field = 0;
    if (p->token.kind != TOKEN_NAME) {
        return expected(p, "a column's name");
    }
    tn_rc rc = find_field(p, &field);
    if (rc) {
        return rc;
    }
    advance(p);
    return parse_test(p, field);
}

/* ---- and, or, not, parentheses: precedence climbing with the waiting operators in an array ----
 */

static tn_rc push(struct parser *p, enum pending pending)
{
    bool deeper = pending == PENDING_OPEN || pending == PENDING_NOT;
    if (p->depth + deeper > TN_PREDICATE_DEPTH_MAX || p->pending_count == TN_PREDICATE_STACK_MAX) {
        return tn_err_set(p->err, TN_INVALID, 0, "at byte %zu: nested more than %d deep",
                          p->token.at, TN_PREDICATE_DEPTH_MAX);
    }
    p->depth += deeper;
    p->pending[p->pending_count++] = pending;
    advance(p);
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
    if (p->token.kind == TOKEN_OPEN) {
        return push(p, PENDING_OPEN);
    }
    if (is_keyword(p, "not")) {
        return push(p, PENDING_NOT);
    }
    *more = false;
    return parse_condition(p);
}

/* Behind an operand. *more: an operand follows. */
static tn_rc parse_operator(struct parser *p, bool *more)
{
    bool is_or = is_keyword(p, "or");
    *more = is_or || is_keyword(p, "and");
    if (*more) {
        enum pending pending = is_or ? PENDING_OR : PENDING_AND;
        tn_rc rc = reduce(p, pending);
        return rc ? rc : push(p, pending);
    }
    tn_rc rc = reduce(p, PENDING_OR);
    if (rc || (p->token.kind == TOKEN_END && p->pending_count == 0)) {
        return rc;
    }
    if (p->token.kind != TOKEN_CLOSE || p->pending_count == 0) {
        return expected(p, p->pending_count > 0 ? "'and', 'or' or ')'" : "'and' or 'or'");
    }
    p->pending_count--;
    p->depth--;
    advance(p);
    return TN_OK;
}

static tn_rc parse_all(struct parser *p)
{
    bool operand = true; /* one belongs here */
    while (operand || p->token.kind != TOKEN_END || p->pending_count > 0) {
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
    p->token = (struct token){0};
    advance(p);
    while (p->token.kind != TOKEN_END && count < TN_PREDICATE_NODES_MAX) {
        count++;
        advance(p);
    }
    p->token = (struct token){0};
    advance(p);
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
        .text = tn_bytes_of(text), .predicate = made, .arena = arena, .err = err};
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
