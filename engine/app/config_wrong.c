/* How mistakes are told: each with its place, as one would write it in Lua. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "app/config_private.h"
#include "schema/value.h"

enum { WRONG_SIZE = 1024, WANT_SIZE = 512, SHOWN_MAX = 60 };

/* One line, and nothing that a terminal obeys. */
static void make_plain(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            *text = '?';
        }
    }
}

void tn_config_show_text(const char *text, struct tn_buf *buf)
{
    size_t size = strlen(text);
    size_t shown = tn_utf8_span(
        (struct tn_bytes){(const unsigned char *)text, size < SHOWN_MAX ? size : SHOWN_MAX});
    tn_buf_append(buf, text, shown);
    tn_buf_text(buf, shown == size ? "" : "...");
}

static void show_number(const struct tn_config_node *node, struct tn_buf *buf)
{
    if (node->secret) {
        tn_buf_text(buf, "a number");
    } else if (node->kind == TN_CONFIG_INTEGER) {
        tn_buf_format(buf, "%" PRId64, node->integer);
    } else {
        tn_double_format(buf, node->number);
    }
}

void tn_config_show(const struct tn_config_node *node, struct tn_buf *buf)
{
    switch (node->kind) {
    case TN_CONFIG_TABLE:
        tn_buf_text(buf, "a table");
        break;
    case TN_CONFIG_TEXT:
        if (node->origin) {
            tn_buf_format(buf, "the text of %s", node->origin);
        } else if (node->secret) {
            tn_buf_text(buf, "a text");
        } else {
            tn_buf_byte(buf, '\'');
            tn_config_show_text(node->text, buf);
            tn_buf_byte(buf, '\'');
        }
        break;
    case TN_CONFIG_INTEGER:
    case TN_CONFIG_NUMBER:
        show_number(node, buf);
        break;
    case TN_CONFIG_BOOLEAN:
        tn_buf_text(buf, node->integer ? "true" : "false");
        break;
    case TN_CONFIG_OTHER:
        tn_buf_format(buf, "a %s", node->text);
        break;
    }
}

static bool is_word(const char *key)
{
    bool word = isalpha((unsigned char)key[0]) || key[0] == '_';
    for (const char *at = key; *at && word; at++) {
        word = isalnum((unsigned char)*at) || *at == '_';
    }
    return word;
}

static void put_step(const struct tn_config_node *node, struct tn_buf *buf)
{
    if (!node->key) {
        tn_buf_format(buf, "[%" PRId64 "]", node->index);
    } else if (is_word(node->key) && strlen(node->key) < SHOWN_MAX) {
        tn_buf_format(buf, "%s%s", buf->size > 0 ? "." : "", node->key);
    } else {
        tn_buf_text(buf, "['");
        tn_config_show_text(node->key, buf);
        tn_buf_text(buf, "']");
    }
}

static void put_place(const struct tn_config_node *node, struct tn_buf *buf)
{
    const struct tn_config_node *steps[TN_CONFIG_DEPTH_MAX + 1];
    int count = 0;
    for (; node && node->parent; node = node->parent) { /* the root has no name */
        steps[count++] = node;
    }
    while (count > 0) {
        put_step(steps[--count], buf);
    }
}

void tn_config_wrong(struct tn_config_reader *r, const struct tn_config_node *node,
                     const char *format, ...)
{
    char text[WRONG_SIZE];
    struct tn_buf buf;
    va_list arguments;
    tn_buf_init(&buf, text, sizeof text);
    put_place(node, &buf);
    tn_buf_text(&buf, buf.size > 0 ? ": " : "");
    size_t place = buf.overflow ? 0 : buf.size;
    va_start(arguments, format);
    (void)vsnprintf(text + place, sizeof text - place, format, arguments);
    va_end(arguments);
    if (++r->wrong_count <= TN_CONFIG_WRONG_MAX) {
        make_plain(text);
        r->wrong(r->user, text);
    }
}

void tn_config_wrong_value(struct tn_config_reader *r, struct tn_config_node *node,
                           const char *want, ...)
{
    char got[4 * SHOWN_MAX];
    char wanted[WANT_SIZE];
    struct tn_buf buf;
    va_list arguments;
    if (node->told) {
        return;
    }
    node->told = true;
    tn_buf_init(&buf, got, sizeof got);
    tn_config_show(node, &buf);
    va_start(arguments, want);
    (void)vsnprintf(wanted, sizeof wanted, want, arguments);
    va_end(arguments);
    tn_config_wrong(r, node, "got %.*s, want %s", (int)buf.size, got, wanted);
}
