#include "schema/options_private.h"

#include "schema/decoder.h"

/* ---- hazards ---- */

/* Words of merge engines that are refused as a whole. */
static const char engine_words[] = "aggregate-function|ignore-retract|nested-key|count-limit|"
                                   "distinct|list-agg-delimiter|sequence-group";

static bool known(const char *key)
{
    struct tn_bytes column = {0};
    const char *word = NULL;
    if (tn_option_listed(key)) {
        return true;
    }
    return tn_option_split(key, &column, &word) &&
           (strcmp(word, "stats-mode") == 0 || tn_option_one_of(word, engine_words));
}

static void unknown_options(const struct tn_schema *schema, struct tn_buf *lines)
{
    for (uint32_t i = 0; i < schema->option_count; i++) {
        const char *key = schema->options[i].key;
        if (known(key)) {
            continue;
        }
        const char *meant = tn_option_nearest(key);
        tn_buf_format(lines, "option '%s' is unknown and has no effect", key);
        if (meant) {
            tn_buf_format(lines, "; did you mean '%s'?", meant);
        }
        tn_buf_byte(lines, '\n');
    }
}

/* One row of a key in each partition. Source: Paimon, TableSchema.crossPartitionUpdate. */
static void key_without_partition(const struct tn_schema *schema, struct tn_buf *lines)
{
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        uint32_t field = schema->partition_keys.index[i];
        if (schema->primary_keys.count > 0 && !tn_columns_have(schema->primary_keys, field)) {
            tn_buf_format(
                lines,
                "the primary key lacks the partition key '%s': the same key lives once in "
                "every partition\n",
                schema->fields[field].name);
        }
    }
}

static void day_numbers(const struct tn_schema *schema, struct tn_buf *lines)
{
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        const struct tn_field *field = &schema->fields[schema->partition_keys.index[i]];
        if (field->type.kind == TN_TYPE_DATE) {
            tn_buf_format(lines,
                          "folders of the partition key '%s' are day numbers, like %s=20000; "
                          "'partition.legacy-name' = 'false' makes them dates\n",
                          field->name, field->name);
        }
    }
}

/* What the options alone tell. */
static void option_hazards(const struct tn_schema *schema, const struct tn_options *options,
                           struct tn_buf *lines)
{
    bool keyed = schema->primary_keys.count > 0;
    bool sequence = keyed && options->sequence_fields.count > 0;
    const struct {
        bool here;
        const char *line;
    } hazards[] = {
        {options->write_only, "'write-only': nothing is compacted and no snapshot expires here; "
                              "another job must do both"},
        {sequence && options->sequence_descending, "'sequence.field.sort-order' = 'descending': "
                                                   "Paimon before 2.0 takes no notice of it among "
                                                   "the rows of one flush"},
        {sequence && !options->ignore_delete,
         "'sequence.field': a delete whose sequence is NULL or older has no effect, and after a "
         "compaction an older row that comes late brings a deleted key back"},
        {keyed && !options->ignore_update_before && options->rowkind_field >= 0,
         "'rowkind.field': a -U without its +U deletes the row; 'ignore-update-before' prevents "
         "it"},
        {options->total_size_threshold >= 0, "'compaction.total-size-threshold': every commit "
                                             "compacts all of a bucket that is smaller"},
        {options->optimization_interval_ms >= 0, "'compaction.optimization-interval': a writer "
                                                 "that starts compacts all of each bucket that "
                                                 "it writes"},
    };
    for (size_t i = 0; i < TN_ENTRIES(hazards); i++) {
        if (hazards[i].here) {
            tn_buf_text(lines, hazards[i].line);
            tn_buf_byte(lines, '\n');
        }
    }
}

void tn_options_hazards(const struct tn_schema *schema, const struct tn_options *options,
                        struct tn_buf *lines)
{
    option_hazards(schema, options, lines);
    key_without_partition(schema, lines);
    if (options->partition_legacy_name) {
        day_numbers(schema, lines);
    }
    unknown_options(schema, lines);
}

/* ---- help ---- */

static const char *duty_of(const struct tn_option_rule *option)
{
    return option->read == NULL               ? "harmless"
           : option->read == tn_option_refuse ? "refused"
                                              : "obeyed";
}

void tn_options_help(struct tn_buf *lines)
{
    for (size_t i = 0; i < tn_option_rule_count; i++) {
        const struct tn_option_rule *o = &tn_option_rules[i];
        tn_buf_format(lines, "%s\t%s\t%s\t%s\t%s\n", o->name, o->type,
                      o->fallback ? o->fallback : "", duty_of(o), o->help);
    }
}
