/* args: the command line of one verb, by a table of its options.
 *
 *     static struct { const char *tag; bool full; } o;
 *     static const struct tn_flag flags[] = {
 *         {"tag", 0, TN_FLAG_TEXT, &o.tag, "NAME", "the rows of a tag"}, ...
 *
 * Options may stand anywhere, as `--name value`, `--name=value` or `-n value`; `--` ends them. An
 * unknown one is INVALID with the nearest name. The same table prints the verb's help.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct tn_text_list {
    const char **items;
    uint32_t capacity;
    uint32_t count;
};

/* An empty list of at most `n` texts, for what is static at file scope. */
#define TN_TEXT_LIST(n)                                 \
    {                                                   \
        .items = (const char *[n]){NULL}, .capacity = n \
    }

enum { TN_LIST_MAX = 128 }; /* of most lists: more is a mistake */

enum tn_flag_kind {
    TN_FLAG_SET,  /* bool */
    TN_FLAG_TEXT, /* const char * */
    TN_FLAG_I64,  /* int64_t */
    TN_FLAG_SIZE, /* uint64_t, "16M" */
    TN_FLAG_LIST, /* struct tn_text_list, may repeat */
};

struct tn_flag {
    const char *name;
    char letter; /* or 0 */
    enum tn_flag_kind kind;
    void *target;
    const char *value; /* what its value is called in help, or NULL */
    const char *help;
};

/* Reads `argv[0..argc)`; what is no option goes to `rest`. */
TN_MUST_USE tn_rc tn_args_parse(int argc, char *const *argv, const struct tn_flag *const *tables,
                                const uint32_t *counts, uint32_t table_count,
                                struct tn_text_list *rest, struct tn_err *err);

/* Appends the options, two columns. */
void tn_args_help(const struct tn_flag *flags, uint32_t count, struct tn_buf *buf);
