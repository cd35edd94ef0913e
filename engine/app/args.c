#include "app/args.h"

#include <errno.h>
#include <stdlib.h>

#include "schema/options.h"
#include "schema/types.h"

enum { NAMES_MAX = 128 }; /* flags that are looked at for the one that was meant */

struct parse {
    const struct tn_flag *const *tables;
    const uint32_t *counts;
    uint32_t table_count;
    int argc;
    char *const *argv;
    int at;
};

static const struct tn_flag *find(const struct parse *p, struct tn_bytes name, char letter)
{
    for (uint32_t t = 0; t < p->table_count; t++) {
        for (uint32_t i = 0; i < p->counts[t]; i++) {
            const struct tn_flag *flag = &p->tables[t][i];
            if (letter ? flag->letter == letter : tn_bytes_equal(tn_bytes_of(flag->name), name)) {
                return flag;
            }
        }
    }
    return NULL;
}

static tn_rc unknown(const struct parse *p, const char *word, struct tn_err *err)
{
    const char *names[NAMES_MAX];
    uint32_t count = 0;
    for (uint32_t t = 0; t < p->table_count; t++) {
        for (uint32_t i = 0; i < p->counts[t] && count < NAMES_MAX; i++) {
            names[count++] = p->tables[t][i].name;
        }
    }
    const char *near = word[1] == '-' ? tn_nearest_name(tn_bytes_of(word + 2), names, count) : NULL;
    return near ? tn_err_set(err, TN_INVALID, 0, "%s is unknown; did you mean --%s?", word, near)
                : tn_err_set(err, TN_INVALID, 0, "%s is unknown; --help lists what there is", word);
}

static tn_rc store_number(const struct tn_flag *flag, const char *text, struct tn_err *err)
{
    int64_t value;
    if (flag->kind == TN_FLAG_SIZE) {
        if (!tn_parse_size(tn_bytes_of(text), &value) || value <= 0) {
            return tn_err_set(err, TN_INVALID, 0, "--%s: '%s' is no size (like 16M)", flag->name,
                              text);
        }
        *(uint64_t *)flag->target = (uint64_t)value;
        return TN_OK;
    }
    char *end;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != 0) {
        return tn_err_set(err, TN_INVALID, 0, "--%s: '%s' is no whole number", flag->name, text);
    }
    *(int64_t *)flag->target = value;
    return TN_OK;
}

static tn_rc store(const struct tn_flag *flag, const char *text, struct tn_err *err)
{
    switch (flag->kind) {
    case TN_FLAG_TEXT:
        *(const char **)flag->target = text;
        return TN_OK;
    case TN_FLAG_LIST: {
        struct tn_text_list *list = flag->target;
        if (list->count == list->capacity) {
            return tn_err_set(err, TN_INVALID, 0, "--%s: more than %u", flag->name, list->capacity);
        }
        list->items[list->count++] = text;
        return TN_OK;
    }
    case TN_FLAG_I64:
    case TN_FLAG_SIZE:
        return store_number(flag, text, err);
    case TN_FLAG_SET:
        break;
    }
    *(bool *)flag->target = true;
    return TN_OK;
}

/* "-5" is a number: a key, not an option. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != 0 && !(word[1] >= '0' && word[1] <= '9');
}

static tn_rc parse_option(struct parse *p, struct tn_err *err)
{
    const char *word = p->argv[p->at];
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    size_t size = is_long ? (equals ? (size_t)(equals - word) : strlen(word)) - 2 : 0;
    struct tn_bytes name = {(const unsigned char *)word + 2, size};
    const struct tn_flag *flag = is_long        ? find(p, name, 0)
                                 : word[2] == 0 ? find(p, name, word[1])
                                                : NULL;
    if (!flag) {
        return unknown(p, word, err);
    }
    if (flag->kind == TN_FLAG_SET) {
        return equals ? tn_err_set(err, TN_INVALID, 0, "--%s takes no value", flag->name)
                      : store(flag, NULL, err);
    }
    if (!equals && p->at + 1 == p->argc) {
        return tn_err_set(err, TN_INVALID, 0, "--%s needs a value", flag->name);
    }
    return store(flag, equals ? equals + 1 : p->argv[++p->at], err);
}

tn_rc tn_args_parse(int argc, char *const *argv, const struct tn_flag *const *tables,
                    const uint32_t *counts, uint32_t table_count, struct tn_text_list *rest,
                    struct tn_err *err)
{
    struct parse p = {tables, counts, table_count, argc, argv, 0};
    bool options = true;
    for (; p.at < argc; p.at++) {
        const char *word = argv[p.at];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && is_option(word)) {
            tn_rc rc = parse_option(&p, err);
            if (rc != TN_OK) {
                return rc;
            }
        } else if (rest->count == rest->capacity) {
            return tn_err_set(err, TN_INVALID, 0, "more than %u arguments", rest->capacity);
        } else {
            rest->items[rest->count++] = word;
        }
    }
    return TN_OK;
}

void tn_args_help(const struct tn_flag *flags, uint32_t count, struct tn_buf *buf)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct tn_flag *flag = &flags[i];
        size_t start = buf->size;
        tn_buf_format(buf, "  --%s%s%s", flag->name, flag->value ? " " : "",
                      flag->value ? flag->value : "");
        if (flag->letter) {
            tn_buf_format(buf, ", -%c", flag->letter);
        }
        while (buf->size < start + 30 && !buf->overflow) {
            tn_buf_byte(buf, ' ');
        }
        tn_buf_format(buf, " %s\n", flag->help);
    }
}
