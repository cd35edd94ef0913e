#include "format/json_private.h"

#include <cjson/cJSON.h>

#include "base/check.h"

enum { DEPTH_MAX = 64 }; /* of nesting; one bit each below. cJSON recurses, its own bound is 1000 */

static const double exact_max = 999999999999999.0; /* TN_JSON_DIGITS_EXACT nines */

/* ---- cJSON's memory ---- */

static struct tn_heap *json_heap; /* set once, before any thread */
static _Thread_local bool heap_was_full;

static void *hook_take(size_t size)
{
    void *block = tn_heap_take(json_heap, size);
    heap_was_full |= !block;
    return block;
}

static void hook_give(void *block)
{
    tn_heap_give(json_heap, block);
}

void tn_json_use_heap(struct tn_heap *heap)
{
    cJSON_Hooks hooks = {.malloc_fn = hook_take, .free_fn = hook_give};
    json_heap = heap;
    cJSON_InitHooks(&hooks);
}

/* ---- the pass before parsing: quotes long integers, refuses what cJSON would misread ---- */

struct pass {
    struct tn_bytes in;
    size_t at;
    struct tn_buf *out;
    uint64_t objects; /* bit n: the container at depth n is an object */
    uint32_t depth;
    bool value_next; /* a value may stand here, not a key */
};

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_number_byte(unsigned char byte)
{
    return is_digit(byte) || byte == '-' || byte == '+' || byte == '.' || byte == 'e' ||
           byte == 'E';
}

static tn_rc refuse(const struct pass *pass, const char *why, struct tn_err *err)
{
    return tn_err_set(err, TN_CORRUPT, 0, "JSON: %s at byte %zu", why, pass->at);
}

/* \u0000 would end cJSON's string early, and two different keys could become one. */
static bool is_escaped_zero(const struct pass *pass)
{
    return pass->in.size - pass->at >= 6 && memcmp(pass->in.data + pass->at, "\\u0000", 6) == 0;
}

static tn_rc pass_string(struct pass *pass, struct tn_err *err)
{
    tn_buf_byte(pass->out, '"');
    for (pass->at++; pass->at < pass->in.size; pass->at++) {
        unsigned char byte = pass->in.data[pass->at];
        if (byte < ' ' || is_escaped_zero(pass)) {
            return refuse(pass, "control character", err);
        }
        tn_buf_byte(pass->out, byte);
        if (byte == '"') {
            pass->at++;
            return TN_OK;
        }
        if (byte == '\\' && pass->at + 1 < pass->in.size && pass->in.data[pass->at + 1] >= ' ') {
            tn_buf_byte(pass->out, pass->in.data[++pass->at]);
        }
    }
    return refuse(pass, "string without end", err);
}

static size_t count_digits(struct tn_bytes text, size_t at)
{
    size_t count = 0;
    while (at + count < text.size && is_digit(text.data[at + count])) {
        count++;
    }
    return count;
}

/* JSON's numbers; strtod, which cJSON asks, takes more. *integer_digits is 0 when it's no integer.
 */
static bool is_number(struct tn_bytes text, size_t *integer_digits)
{
    size_t at = text.data[0] == '-' ? 1 : 0;
    size_t whole = count_digits(text, at);
    if (whole == 0 || (whole > 1 && text.data[at] == '0')) {
        return false;
    }
    at += whole;
    *integer_digits = at == text.size ? whole : 0;
    if (at < text.size && text.data[at] == '.') {
        size_t fraction = count_digits(text, at + 1);
        if (fraction == 0) {
            return false;
        }
        at += 1 + fraction;
    }
    if (at < text.size && (text.data[at] == 'e' || text.data[at] == 'E')) {
        at++;
        at += at < text.size && (text.data[at] == '+' || text.data[at] == '-');
        size_t exponent = count_digits(text, at);
        return exponent > 0 && at + exponent == text.size;
    }
    return at == text.size;
}

static tn_rc pass_number(struct pass *pass, struct tn_err *err)
{
    struct tn_bytes number = {pass->in.data + pass->at, 0};
    size_t integer_digits = 0;
    while (pass->at + number.size < pass->in.size && is_number_byte(number.data[number.size])) {
        number.size++;
    }
    if (!is_number(number, &integer_digits)) {
        return refuse(pass, "bad number", err);
    }
    bool quote = pass->value_next && integer_digits > TN_JSON_DIGITS_EXACT;
    if (quote) {
        tn_buf_byte(pass->out, '"');
    }
    tn_buf_append(pass->out, number.data, number.size);
    if (quote) {
        tn_buf_byte(pass->out, '"');
    }
    pass->at += number.size;
    return TN_OK;
}

static bool in_object(const struct pass *pass)
{
    return pass->depth > 0 && (pass->objects >> (pass->depth - 1) & 1) != 0;
}

/* One byte outside strings and numbers. What is out of order here, cJSON finds. */
static tn_rc pass_mark(struct pass *pass, unsigned char byte, struct tn_err *err)
{
    if (byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r') {
        return refuse(pass, "control character", err);
    }
    if (byte == '{' || byte == '[') {
        if (pass->depth == DEPTH_MAX) {
            return refuse(pass, "more than 64 levels", err);
        }
        uint64_t bit = 1ull << pass->depth++;
        pass->objects = byte == '{' ? pass->objects | bit : pass->objects & ~bit;
    } else if ((byte == '}' || byte == ']') && pass->depth > 0) {
        pass->depth--;
    }
    if (byte > ' ') {
        pass->value_next = byte == ':' || !in_object(pass);
    }
    tn_buf_byte(pass->out, byte);
    pass->at++;
    return TN_OK;
}

/* Runs until `out_max` bytes are written or the text is through. */
static tn_rc run_pass(struct pass *pass, size_t out_max, struct tn_err *err)
{
    while (pass->at < pass->in.size && pass->out->size < out_max) {
        unsigned char byte = pass->in.data[pass->at];
        tn_rc rc = TN_OK;
        if (byte == '"') {
            rc = pass_string(pass, err);
        } else if (is_digit(byte) || byte == '-') {
            rc = pass_number(pass, err);
        } else {
            rc = pass_mark(pass, byte, err);
        }
        if (rc) {
            return rc;
        }
    }
    return TN_OK;
}

/* The byte of the text that byte `offset` of the quoted copy came from. The copy is written again,
 * over itself. */
static size_t origin_of(struct tn_bytes text, struct tn_buf *copy, size_t offset)
{
    struct tn_err ignored;
    struct pass pass = {.in = text, .out = copy, .value_next = true};
    size_t start = 0;
    size_t written = 0;
    copy->size = 0;
    while (pass.at < text.size && copy->size <= offset) {
        start = pass.at;
        written = copy->size;
        if (run_pass(&pass, copy->size + 1, &ignored)) {
            break;
        }
    }
    size_t size = pass.at - start;
    return start + (offset - written < size ? offset - written : size);
}

/* cJSON wants a zero at the end of the copy; it stands where the text's size says. */
static tn_rc parse_copy(struct tn_bytes text, struct tn_buf *copy, struct cJSON **root,
                        struct tn_err *err)
{
    const char *end = NULL;
    tn_buf_byte(copy, 0);
    TN_CHECK(!copy->overflow);
    heap_was_full = false;
    struct cJSON *found = cJSON_ParseWithLengthOpts((const char *)copy->data, copy->size, &end, 1);
    if (found) {
        *root = found;
        return TN_OK;
    }
    if (heap_was_full) {
        return tn_err_set(err, TN_AGAIN, 0,
                          "JSON of %zu bytes needs more than the %zu KB that are for it; what "
                          "helps is more memory (--memory)",
                          text.size, json_heap->size / 1024);
    }
    size_t offset = end ? (size_t)(end - (const char *)copy->data) : 0;
    return tn_err_set(err, TN_CORRUPT, 0, "JSON: not as expected at byte %zu",
                      origin_of(text, copy, offset));
}

tn_rc tn_json_open(struct tn_bytes text, struct tn_arena *scratch, struct cJSON **root,
                   struct tn_err *err)
{
    TN_CHECK(json_heap);
    /* Two quotes for 16 digits and what parts them: an eighth, less a little. */
    size_t capacity = text.size + text.size / 8 + 16;
    size_t mark = tn_arena_mark(scratch);
    void *memory = NULL;
    tn_rc rc = tn_arena_need(scratch, capacity, "JSON", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_buf copy;
    tn_buf_init(&copy, memory, capacity);
    struct pass pass = {.in = text, .out = &copy, .value_next = true};
    rc = run_pass(&pass, SIZE_MAX, err);
    if (rc == TN_OK) {
        rc = parse_copy(text, &copy, root, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

void tn_json_close(struct cJSON *root)
{
    cJSON_Delete(root);
}

/* ---- reading ---- */

const struct cJSON *tn_json_member(const struct cJSON *object, const char *key)
{
    const struct cJSON *found = NULL;
    if (!cJSON_IsObject(object)) {
        return NULL;
    }
    for (const struct cJSON *child = object->child; child; child = child->next) {
        if (strcmp(child->string, key) == 0) {
            found = child;
        }
    }
    return cJSON_IsNull(found) ? NULL : found;
}

static bool text_i64(const char *text, int64_t *value)
{
    bool negative = text[0] == '-';
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t sum = 0;
    const char *at = text + (negative ? 1 : 0);
    if (*at == 0) {
        return false;
    }
    for (; *at; at++) {
        uint64_t digit = (uint64_t)(unsigned char)*at - '0';
        if (digit > 9 || sum > (limit - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

bool tn_json_i64(const struct cJSON *node, int64_t *value)
{
    if (cJSON_IsString(node)) {
        return text_i64(node->valuestring, value);
    }
    if (!cJSON_IsNumber(node) || !(node->valuedouble >= -exact_max) ||
        !(node->valuedouble <= exact_max)) {
        return false;
    }
    int64_t whole = (int64_t)node->valuedouble;
    if ((double)whole < node->valuedouble || (double)whole > node->valuedouble) {
        return false;
    }
    *value = whole;
    return true;
}

uint32_t tn_json_line_of(struct tn_bytes text, size_t offset)
{
    uint32_t line = 1;
    for (size_t i = 0; i < offset && i < text.size; i++) {
        line += text.data[i] == '\n';
    }
    return line;
}
