#include "script/json.h"

#include <ctype.h>
#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "schema/decimal.h"
#include "script/decimal.h"
#include "script/vm.h"

enum { BYTES_AN_INSTRUCTION = 4 };

struct reader {
    lua_State *L;
    const unsigned char *begin;
    const unsigned char *at;
    const unsigned char *end;
    uint32_t depth;
    char kinds[TN_SCRIPT_JSON_DEPTH_MAX]; /* '{' or '[' */
    lua_Integer counts[TN_SCRIPT_JSON_DEPTH_MAX];
};

static int wrong(struct reader *r, const char *what)
{
    return luaL_error(r->L, "JSON, byte %I: %s", (lua_Integer)(r->at - r->begin), what);
}

static int peek(struct reader *r)
{
    while (r->at < r->end && memchr(" \t\r\n", *r->at, 4)) {
        r->at++;
    }
    return r->at < r->end ? *r->at : 0;
}

static void expect(struct reader *r, char c)
{
    if (peek(r) != c) {
        char what[] = "'?' is missing";
        what[1] = c;
        (void)wrong(r, what);
    }
    r->at++;
}

/* ---- texts ---- */

static uint32_t read_hex(struct reader *r)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at >= r->end || !isxdigit(*r->at)) {
            (void)wrong(r, "\\u without four hex digits");
        }
        int c = tolower(*r->at);
        code = code << 4 | (uint32_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return code;
}

/* `at` is behind the "\u". */
static size_t read_code(struct reader *r, unsigned char *out)
{
    uint32_t code = read_hex(r);
    if (code >= 0xD800 && code <= 0xDFFF) {
        bool pair = code < 0xDC00 && r->end - r->at > 2 && r->at[0] == '\\' && r->at[1] == 'u';
        r->at += pair ? 2 : 0;
        uint32_t low = pair ? read_hex(r) : 0;
        if (low < 0xDC00 || low > 0xDFFF) {
            (void)wrong(r, "half a surrogate pair");
        }
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    static const struct {
        uint32_t below;
        unsigned char first;
    } forms[] = {{0x80, 0}, {0x800, 0xC0}, {0x10000, 0xE0}, {0x110000, 0xF0}};
    size_t more = 0;
    while (code >= forms[more].below) {
        more++;
    }
    for (size_t i = more; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (unsigned char)(forms[more].first | code);
    return more + 1;
}

static size_t read_escape(struct reader *r, unsigned char *out)
{
    static const char names[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    int c = r->at < r->end ? *r->at : 0;
    const char *name = c ? memchr(names, c, sizeof names - 1) : NULL;
    if (c != 'u' && !name) {
        (void)wrong(r, "there is no such escape");
    }
    r->at++;
    if (c == 'u') {
        return read_code(r, out);
    }
    out[0] = (unsigned char)bytes[name - names];
    return 1;
}

/* A text with escapes, from its beginning; what it stands for is never longer. */
static void push_escaped(struct reader *r, const unsigned char *from, size_t size)
{
    unsigned char *text = lua_newuserdatauv(r->L, size, 0);
    size_t used = 0;
    r->at = from;
    while (*r->at != '"') {
        if (*r->at == '\\') {
            r->at++;
            used += read_escape(r, text + used);
        } else {
            text[used++] = *r->at++;
        }
        if (r->at >= r->end) {
            (void)wrong(r, "the text has no end");
        }
    }
    (void)lua_pushlstring(r->L, (const char *)text, used);
    lua_remove(r->L, -2);
}

static void push_text(struct reader *r)
{
    expect(r, '"');
    const unsigned char *from = r->at;
    bool escaped = false;
    for (; r->at < r->end && *r->at != '"'; r->at++) {
        if (*r->at < 0x20) {
            (void)wrong(r, "a control character in a text");
        }
        bool escape = *r->at == '\\';
        r->at += escape;
        escaped = escaped || escape;
    }
    if (r->at >= r->end) {
        (void)wrong(r, "the text has no end");
    }
    if (escaped) {
        push_escaped(r, from, (size_t)(r->at - from));
    } else {
        (void)lua_pushlstring(r->L, (const char *)from, (size_t)(r->at - from));
    }
    r->at++;
}

/* ---- numbers and words ---- */

static void push_integer(struct reader *r, struct tn_bytes text)
{
    int64_t value = 0;
    struct tn_script_decimal decimal;
    enum tn_integer_parsed parsed = tn_integer_parse(text, &value);
    if (parsed == TN_INTEGER_OK) {
        lua_pushinteger(r->L, value);
    } else if (parsed == TN_INTEGER_TOO_LARGE && tn_script_decimal_parse(text, &decimal)) {
        tn_script_decimal_push(r->L, decimal);
    } else {
        (void)wrong(r, "a number of too many digits");
    }
}

static bool skip_digits(struct reader *r)
{
    const unsigned char *from = r->at;
    while (r->at < r->end && isdigit(*r->at)) {
        r->at++;
    }
    return r->at > from;
}

static void push_number(struct reader *r)
{
    const unsigned char *from = r->at;
    bool whole = true;
    r->at += *r->at == '-';
    bool leading_zero = r->at + 1 < r->end && r->at[0] == '0' && isdigit(r->at[1]);
    bool fine = skip_digits(r) && !leading_zero;
    if (fine && r->at < r->end && *r->at == '.') {
        r->at++;
        whole = false;
        fine = skip_digits(r);
    }
    if (fine && r->at < r->end && (*r->at | 0x20) == 'e') {
        r->at++;
        whole = false;
        r->at += r->at < r->end && (*r->at == '+' || *r->at == '-');
        fine = skip_digits(r);
    }
    struct tn_bytes text = {from, (size_t)(r->at - from)};
    double value = 0;
    if (!fine || (!whole && !tn_double_parse(text, &value))) {
        (void)wrong(r, "no value");
    }
    if (whole) {
        push_integer(r, text);
    } else {
        lua_pushnumber(r->L, value);
    }
}

static void push_word(struct reader *r)
{
    static const char *const words[] = {"null", "false", "true"};
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(r->end - r->at) >= size && memcmp(r->at, words[i], size) == 0) {
            r->at += size;
            if (i == 0) {
                lua_pushnil(r->L);
            } else {
                lua_pushboolean(r->L, i == 2);
            }
            return;
        }
    }
    (void)wrong(r, "no value");
}

/* ---- objects and lists: their tables lie on Lua's stack, an object's key above it ---- */

static void push_key(struct reader *r)
{
    push_text(r);
    lua_pushvalue(r->L, -1);
    if (lua_rawget(r->L, -3) != LUA_TNIL) {
        (void)wrong(r, "a key twice");
    }
    lua_pop(r->L, 1);
    expect(r, ':');
}

/* False when it is empty, and so complete. */
static bool begin(struct reader *r, int c)
{
    r->at++;
    lua_newtable(r->L);
    if (peek(r) == (c == '{' ? '}' : ']')) {
        r->at++;
        return false;
    }
    if (r->depth == TN_SCRIPT_JSON_DEPTH_MAX) {
        (void)wrong(r, "nested too deep");
    }
    r->kinds[r->depth] = (char)c;
    r->counts[r->depth++] = 0;
    if (c == '{') {
        push_key(r);
    }
    return true;
}

/* True when the value is complete, and on the stack. */
static bool push_value(struct reader *r)
{
    int c = peek(r);
    if (c == '{' || c == '[') {
        return !begin(r, c);
    }
    if (c == '"') {
        push_text(r);
    } else if (c == '-' || isdigit(c)) {
        push_number(r);
    } else {
        push_word(r);
    }
    return true;
}

/* Puts the complete value where it belongs; true when another one follows beside it. */
static bool attach(struct reader *r)
{
    uint32_t top = r->depth - 1;
    bool object = r->kinds[top] == '{';
    if (object) {
        lua_rawset(r->L, -3);
    } else {
        lua_rawseti(r->L, -2, ++r->counts[top]);
    }
    if (peek(r) == ',') {
        r->at++;
        if (object) {
            push_key(r);
        }
        return true;
    }
    expect(r, object ? '}' : ']');
    r->depth--;
    return false;
}

void tn_script_json_push(lua_State *L, struct tn_bytes text)
{
    struct reader r = {.L = L, .begin = text.data, .at = text.data, .end = text.data + text.size};
    tn_vm_charge(L, text.size / BYTES_AN_INSTRUCTION);
    luaL_checkstack(L, 3 * TN_SCRIPT_JSON_DEPTH_MAX, "JSON");
    bool more = true;
    while (more) {
        while (!push_value(&r)) {
        }
        more = false;
        while (r.depth > 0 && !more) {
            more = attach(&r);
        }
    }
    if (peek(&r) != 0 || r.at < r.end) {
        (void)wrong(&r, "something behind the value");
    }
}
