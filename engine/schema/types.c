#include "schema/types.h"

#include <inttypes.h>
#include <stdio.h>

enum parameters {
    NO_PARAMETER,
    LENGTH,    /* (n) */
    PRECISION, /* (p), p = 0..9 */
    DECIMALS,  /* (p) or (p, s) */
    ANGLES,    /* <...>: nested types */
};

struct keyword {
    const char *name;
    enum tn_type_kind kind;
    enum parameters parameters;
    int32_t fallback; /* the parameter that is meant where the text has none */
};

/* A kind's first entry is the name that is written. Source: Paimon, DataTypeJsonParser. */
static const struct keyword keywords[] = {
    {"BOOLEAN", TN_TYPE_BOOLEAN, NO_PARAMETER, 0},
    {"TINYINT", TN_TYPE_TINYINT, NO_PARAMETER, 0},
    {"SMALLINT", TN_TYPE_SMALLINT, NO_PARAMETER, 0},
    {"INT", TN_TYPE_INT, NO_PARAMETER, 0},
    {"INTEGER", TN_TYPE_INT, NO_PARAMETER, 0},
    {"BIGINT", TN_TYPE_BIGINT, NO_PARAMETER, 0},
    {"FLOAT", TN_TYPE_FLOAT, NO_PARAMETER, 0},
    {"DOUBLE", TN_TYPE_DOUBLE, NO_PARAMETER, 0},
    {"DECIMAL", TN_TYPE_DECIMAL, DECIMALS, 10},
    {"DEC", TN_TYPE_DECIMAL, DECIMALS, 10},
    {"NUMERIC", TN_TYPE_DECIMAL, DECIMALS, 10},
    {"CHAR", TN_TYPE_CHAR, LENGTH, 1},
    {"VARCHAR", TN_TYPE_VARCHAR, LENGTH, 1},
    {"STRING", TN_TYPE_VARCHAR, NO_PARAMETER, TN_LENGTH_MAX},
    {"BINARY", TN_TYPE_BINARY, LENGTH, 1},
    {"VARBINARY", TN_TYPE_VARBINARY, LENGTH, 1},
    {"BYTES", TN_TYPE_VARBINARY, NO_PARAMETER, TN_LENGTH_MAX},
    {"DATE", TN_TYPE_DATE, NO_PARAMETER, 0},
    {"TIME", TN_TYPE_TIME, PRECISION, 0},
    {"TIMESTAMP", TN_TYPE_TIMESTAMP, PRECISION, 6},
    {"TIMESTAMP_LTZ", TN_TYPE_TIMESTAMP_LTZ, PRECISION, 6},
    {"ARRAY", TN_TYPE_ARRAY, ANGLES, 0},
    {"MAP", TN_TYPE_MAP, ANGLES, 0},
    {"MULTISET", TN_TYPE_MULTISET, ANGLES, 0},
    {"ROW", TN_TYPE_ROW, ANGLES, 0},
    {"VARIANT", TN_TYPE_VARIANT, NO_PARAMETER, 0},
    {"BLOB", TN_TYPE_BLOB, NO_PARAMETER, 0},
};

enum { KEYWORD_COUNT = sizeof(keywords) / sizeof(keywords[0]) };

/* What other systems call them: no edit distance leads from TEXT to STRING. */
static const char *const foreign_names[][2] = {
    {"BOOL", "BOOLEAN"},
    {"TEXT", "STRING"},
    {"STR", "STRING"},
    {"LONG", "BIGINT"},
    {"SHORT", "SMALLINT"},
    {"BYTE", "TINYINT"},
    {"INT8", "TINYINT"},
    {"INT16", "SMALLINT"},
    {"INT32", "INT"},
    {"INT64", "BIGINT"},
    {"FLOAT32", "FLOAT"},
    {"FLOAT64", "DOUBLE"},
    {"REAL", "FLOAT"},
    {"DATETIME", "TIMESTAMP"},
    {"TIMESTAMPTZ", "TIMESTAMP_LTZ"},
    {"TIMESTAMP_NTZ", "TIMESTAMP"},
    {"STRUCT", "ROW"},
    {"LIST", "ARRAY"},
};

enum { FOREIGN_COUNT = sizeof(foreign_names) / sizeof(foreign_names[0]) };

/* ---- nearest name ---- */

enum { NAME_SIZE_MAX = 64 }; /* a longer word is not a misspelt name of ours */

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Edits between two words, a swap of neighbours being one (optimal string alignment). */
static uint32_t edit_distance(struct tn_bytes a, struct tn_bytes b)
{
    uint8_t rows[3][NAME_SIZE_MAX + 1] = {{0}}; /* rows i - 2, i - 1 and i, in turn */
    for (size_t j = 0; j <= b.size; j++) {
        rows[0][j] = (uint8_t)j;
    }
    for (size_t i = 1; i <= a.size; i++) {
        const uint8_t *before = rows[(i + 1) % 3];
        const uint8_t *above = rows[(i + 2) % 3];
        uint8_t *row = rows[i % 3];
        row[0] = (uint8_t)i;
        for (size_t j = 1; j <= b.size; j++) {
            unsigned char x = lower(a.data[i - 1]);
            unsigned char y = lower(b.data[j - 1]);
            uint32_t edits =
                least(least(above[j] + 1U, row[j - 1] + 1U), above[j - 1] + (x != y ? 1U : 0U));
            if (i > 1 && j > 1 && x == lower(b.data[j - 2]) && lower(a.data[i - 2]) == y) {
                edits = least(edits, before[j - 2] + 1U);
            }
            row[j] = (uint8_t)edits;
        }
    }
    return rows[a.size % 3][b.size];
}

const char *tn_nearest_name(struct tn_bytes word, const char *const *names, uint32_t count)
{
    const char *nearest = NULL;
    uint32_t fewest = UINT32_MAX;
    if (word.size > NAME_SIZE_MAX) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct tn_bytes name = tn_bytes_of(names[i]);
        if (name.size > NAME_SIZE_MAX) {
            continue;
        }
        /* A third of the word may be wrong: what is meant by more is a guess. */
        uint32_t edits = edit_distance(word, name);
        if (edits < fewest && edits * 3 <= least((uint32_t)word.size, (uint32_t)name.size)) {
            nearest = names[i];
            fewest = edits;
        }
    }
    return nearest;
}

/* ---- tokens ---- */

struct scanner {
    struct tn_bytes text;
    size_t at;
};

static bool blank(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_blanks(struct scanner *s)
{
    while (s->at < s->text.size && blank(s->text.data[s->at])) {
        s->at++;
    }
}

static bool word_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next word, empty where there is none. */
static struct tn_bytes peek_word(struct scanner *s)
{
    skip_blanks(s);
    size_t end = s->at;
    while (end < s->text.size && word_byte(s->text.data[end])) {
        end++;
    }
    return (struct tn_bytes){s->text.data + s->at, end - s->at};
}

static bool same_word(struct tn_bytes word, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < word.size && i < size; i++) {
        if (lower(word.data[i]) != lower((unsigned char)name[i])) {
            return false;
        }
    }
    return word.size == size;
}

static bool take_word(struct scanner *s, const char *name)
{
    struct tn_bytes word = peek_word(s);
    if (!same_word(word, name)) {
        return false;
    }
    s->at += word.size;
    return true;
}

static bool take_byte(struct scanner *s, unsigned char byte)
{
    skip_blanks(s);
    if (s->at == s->text.size || s->text.data[s->at] != byte) {
        return false;
    }
    s->at++;
    return true;
}

static bool take_number(struct scanner *s, int32_t *number)
{
    struct tn_bytes word = peek_word(s);
    int64_t value = 0;
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] < '0' || word.data[i] > '9') {
            return false;
        }
        value = value * 10 + (word.data[i] - '0');
        if (value > TN_LENGTH_MAX) {
            return false;
        }
    }
    s->at += word.size;
    *number = (int32_t)value;
    return word.size > 0;
}

/* ---- parse ---- */

/* How much of a hostile text an error repeats. */
static int shown(struct tn_bytes text)
{
    return text.size > 48 ? 48 : (int)text.size;
}

static tn_rc bad_type(const struct scanner *s, const char *why, struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0, "type '%.*s' %s", shown(s->text),
                      (const char *)s->text.data, why);
}

static const char *meant_by(struct tn_bytes word)
{
    const char *names[KEYWORD_COUNT];
    for (size_t i = 0; i < FOREIGN_COUNT; i++) {
        if (same_word(word, foreign_names[i][0])) {
            return foreign_names[i][1];
        }
    }
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        names[i] = keywords[i].name;
    }
    return tn_nearest_name(word, names, KEYWORD_COUNT);
}

static tn_rc unknown_type(const struct scanner *s, struct tn_bytes word, struct tn_err *err)
{
    const char *meant = meant_by(word);
    struct tn_bytes named = word.size > 0 ? word : s->text;
    if (meant == NULL) {
        return tn_err_set(err, TN_INVALID, 0, "type '%.*s' is unknown", shown(named),
                          (const char *)named.data);
    }
    return tn_err_set(err, TN_INVALID, 0, "type '%.*s' is unknown; did you mean '%s'?",
                      shown(named), (const char *)named.data, meant);
}

static const struct keyword *find_keyword(struct tn_bytes word)
{
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        if (same_word(word, keywords[i].name)) {
            return &keywords[i];
        }
    }
    return NULL;
}

static tn_rc parse_length(struct scanner *s, struct tn_type *type, struct tn_err *err)
{
    if (!take_byte(s, '(')) {
        return TN_OK;
    }
    if (!take_number(s, &type->length) || type->length < 1 || !take_byte(s, ')')) {
        return bad_type(s, "needs a length from 1 to 2147483647, like (20)", err);
    }
    return TN_OK;
}

static tn_rc parse_precision(struct scanner *s, struct tn_type *type, struct tn_err *err)
{
    int32_t precision = 0;
    if (!take_byte(s, '(')) {
        return TN_OK;
    }
    if (!take_number(s, &precision) || precision > 9 || !take_byte(s, ')')) {
        return bad_type(s, "needs a precision from 0 to 9, like (3)", err);
    }
    type->precision = (uint8_t)precision;
    return TN_OK;
}

static tn_rc parse_decimals(struct scanner *s, struct tn_type *type, struct tn_err *err)
{
    int32_t precision = 0;
    int32_t scale = 0;
    if (!take_byte(s, '(')) {
        return TN_OK;
    }
    bool good = take_number(s, &precision) && (!take_byte(s, ',') || take_number(s, &scale)) &&
                take_byte(s, ')');
    if (!good || precision < 1 || precision > TN_DECIMAL_PRECISION_MAX || scale > precision) {
        return bad_type(s, "needs a precision from 1 to 38 and a scale up to it, like (9, 2)", err);
    }
    type->precision = (uint8_t)precision;
    type->scale = (uint8_t)scale;
    return TN_OK;
}

/* Nested types are known by kind: what stands between the angles is only counted. */
static tn_rc skip_angles(struct scanner *s, struct tn_err *err)
{
    size_t depth = 0;
    if (!take_byte(s, '<')) {
        return TN_OK;
    }
    for (depth = 1; depth > 0 && s->at < s->text.size; s->at++) {
        depth += s->text.data[s->at] == '<';
        depth -= s->text.data[s->at] == '>';
    }
    return depth == 0 ? TN_OK : bad_type(s, "lacks a '>'", err);
}

static tn_rc parse_parameters(struct scanner *s, const struct keyword *keyword,
                              struct tn_type *type, struct tn_err *err)
{
    switch (keyword->parameters) {
    case LENGTH:
        return parse_length(s, type, err);
    case PRECISION:
        return parse_precision(s, type, err);
    case DECIMALS:
        return parse_decimals(s, type, err);
    case ANGLES:
        return skip_angles(s, err);
    case NO_PARAMETER:
        break;
    }
    return TN_OK;
}

static struct tn_type type_of(const struct keyword *keyword)
{
    struct tn_type type = {.kind = keyword->kind, .nullable = true};
    if (tn_type_textual(type.kind) || tn_type_binary(type.kind)) {
        type.length = keyword->fallback;
    } else {
        type.precision = (uint8_t)keyword->fallback;
    }
    return type;
}

/* The words behind a type's parameters: PRECISION, WITH LOCAL TIME ZONE, WITHOUT TIME ZONE. */
static tn_rc parse_suffix(struct scanner *s, struct tn_type *type, struct tn_err *err)
{
    if (type->kind == TN_TYPE_DOUBLE) {
        (void)take_word(s, "PRECISION");
        return TN_OK;
    }
    if (type->kind != TN_TYPE_TIMESTAMP && type->kind != TN_TYPE_TIME) {
        return TN_OK;
    }
    if (take_word(s, "WITHOUT")) {
        return take_word(s, "TIME") && take_word(s, "ZONE") ? TN_OK
                                                            : bad_type(s, "lacks TIME ZONE", err);
    }
    if (type->kind == TN_TYPE_TIMESTAMP && take_word(s, "WITH")) {
        type->kind = TN_TYPE_TIMESTAMP_LTZ;
        return take_word(s, "LOCAL") && take_word(s, "TIME") && take_word(s, "ZONE")
                   ? TN_OK
                   : bad_type(s, "is none: a zone is WITH LOCAL TIME ZONE", err);
    }
    return TN_OK;
}

static tn_rc parse_null(struct scanner *s, struct tn_type *type, struct tn_err *err)
{
    if (take_word(s, "NOT")) {
        type->nullable = false;
        if (!take_word(s, "NULL")) {
            return bad_type(s, "lacks NULL behind NOT", err);
        }
    } else {
        (void)take_word(s, "NULL");
    }
    skip_blanks(s);
    if (s->at < s->text.size) {
        struct tn_bytes rest = {s->text.data + s->at, s->text.size - s->at};
        return tn_err_set(err, TN_INVALID, 0, "type '%.*s': '%.*s' is not understood",
                          shown(s->text), (const char *)s->text.data, shown(rest),
                          (const char *)rest.data);
    }
    return TN_OK;
}

tn_rc tn_type_parse(struct tn_bytes text, struct tn_type *type, struct tn_err *err)
{
    struct scanner s = {text, 0};
    struct tn_bytes word = peek_word(&s);
    const struct keyword *keyword = find_keyword(word);
    if (keyword == NULL) {
        return unknown_type(&s, word, err);
    }
    s.at += word.size;
    struct tn_type parsed = type_of(keyword);
    tn_rc rc = parse_parameters(&s, keyword, &parsed, err);
    rc = rc != TN_OK ? rc : parse_suffix(&s, &parsed, err);
    rc = rc != TN_OK ? rc : parse_null(&s, &parsed, err);
    if (rc == TN_OK) {
        *type = parsed;
    }
    return rc;
}

/* ---- format ---- */

const char *tn_type_name(enum tn_type_kind kind)
{
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        if (keywords[i].kind == kind) {
            return keywords[i].name;
        }
    }
    return "?";
}

static enum parameters parameters_of(enum tn_type_kind kind)
{
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        if (keywords[i].kind == kind) {
            return keywords[i].parameters;
        }
    }
    return NO_PARAMETER;
}

static void append_type(struct tn_buf *buf, const struct tn_type *type)
{
    const char *name = tn_type_name(type->kind);
    enum parameters parameters = parameters_of(type->kind);
    if (type->kind == TN_TYPE_VARCHAR && type->length == TN_LENGTH_MAX) {
        tn_buf_text(buf, "STRING");
    } else if (type->kind == TN_TYPE_VARBINARY && type->length == TN_LENGTH_MAX) {
        tn_buf_text(buf, "BYTES");
    } else if (type->kind == TN_TYPE_TIMESTAMP_LTZ) {
        tn_buf_format(buf, "TIMESTAMP(%u) WITH LOCAL TIME ZONE", type->precision);
    } else if (parameters == LENGTH) {
        tn_buf_format(buf, "%s(%" PRId32 ")", name, type->length);
    } else if (parameters == PRECISION) {
        tn_buf_format(buf, "%s(%u)", name, type->precision);
    } else if (parameters == DECIMALS) {
        tn_buf_format(buf, "%s(%u, %u)", name, type->precision, type->scale);
    } else {
        tn_buf_text(buf, name);
    }
}

const char *tn_type_format(const struct tn_type *type, char text[TN_TYPE_TEXT_SIZE])
{
    struct tn_buf buf;
    tn_buf_init(&buf, text, TN_TYPE_TEXT_SIZE);
    append_type(&buf, type);
    tn_buf_text(&buf, type->nullable ? "" : " NOT NULL");
    tn_buf_byte(&buf, 0);
    return text;
}
