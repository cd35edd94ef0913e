/* options, from inside: the rules of the list, and what reads their values.
 *
 * options_list.c    the list, in data: a rule an option
 * options_values.c  one function for each kind of value that a rule can name
 * options_text.c    words, numbers, sizes and durations as Paimon reads them
 * options_merge.c   merge engines and changelogs: columns' functions, sequence groups
 * options_hazards.c what is allowed and still worth a warning; the help
 * options.c         walks the list, and checks what holds between options
 */
#pragma once

#include "schema/options.h"

#define TN_ENTRIES(array) (sizeof(array) / sizeof((array)[0]))

struct tn_option_reader {
    const struct tn_schema *schema;
    enum tn_options_use use;
    struct tn_arena *arena;
    struct tn_options *options; /* what the values go to */
    struct tn_err *err;
};

enum tn_option_when {
    TN_OPTION_WRITING,       /* a reader needs it not */
    TN_OPTION_READING,       /* and writing */
    TN_OPTION_KEYED_READING, /* the same, and tables without a primary key take no notice */
};

struct tn_option_rule;
typedef tn_rc tn_option_read_fn(struct tn_option_reader *r, const struct tn_option_rule *rule,
                                const char *value);

struct tn_option_rule {
    const char *name; /* `lookup.*`: all that begin so */
    const char *type;
    const char *fallback;
    enum tn_option_when when;
    tn_option_read_fn *read; /* the table's value, or the default; NULL: harmless */
    uint32_t offset;         /* of the member of tn_options */
    int64_t low;             /* of numbers, sizes in bytes */
    int64_t high;
    const char *fine; /* refused options: the values that are not, "none|" with the empty one */
    const char *help;
};

/* ---- the list ---- */

extern const struct tn_option_rule tn_option_rules[];
extern const size_t tn_option_rule_count;

/* A table's value, also under a name of before; or NULL. */
const char *tn_option_value(const struct tn_schema *schema, const char *name);
/* Stands in the list, by its name, a name of before, or a star. */
bool tn_option_listed(const char *key);
/* The name in the list that `key` was meant to be, or NULL. */
const char *tn_option_nearest(const char *key);

/* ---- values ---- */

tn_option_read_fn tn_option_read_switch, tn_option_read_integer, tn_option_read_size,
    tn_option_read_duration, tn_option_read_name, tn_option_read_directory, tn_option_read_column,
    tn_option_read_columns, tn_option_read_order, tn_option_read_function, tn_option_read_codec,
    tn_option_read_format, tn_option_read_stats, tn_option_read_stats_columns,
    tn_option_read_bucket, tn_option_read_engine, tn_option_read_producer,
    tn_option_read_lookup_compact, tn_option_read_later, tn_option_read_script;
tn_option_read_fn tn_option_refuse;

/* The statistics of one column: none, counts, full, truncate(16). */
TN_MUST_USE tn_rc tn_option_read_field_stats(struct tn_option_reader *r, uint32_t field,
                                             const struct tn_option *option);

/* "option 'NAME': 'VALUE' WHY" */
tn_rc tn_option_invalid(const struct tn_option_reader *r, const char *name, const char *value,
                        const char *why);
tn_rc tn_option_unsupported(const struct tn_option_reader *r, const char *name, const char *value,
                            const char *why);

/* ---- merging ---- */

/* Behind the list: what columns' options and sequence groups say, and whether all that goes
 * together. */
TN_MUST_USE tn_rc tn_option_finish_merge(struct tn_option_reader *r);

/* ---- texts ---- */

/* Paimon compares words of options in any case. */
bool tn_option_same_word(struct tn_bytes a, const char *b);
bool tn_option_is(const char *value, const char *word);
/* True when `value` is one of the words between bars. */
bool tn_option_one_of(const char *value, const char *words);
/* Takes the digits in front of `text`; false when there are none or too many. */
bool tn_option_digits(struct tn_bytes *text, int64_t *number);
bool tn_option_integer(const char *value, int64_t *number);

/* ---- options of columns: fields.COLUMN.WORD ---- */

/* The column and the word of `fields.a.b.stats-mode`: a column's name may hold points. */
bool tn_option_split(const char *key, struct tn_bytes *column, const char **word);
