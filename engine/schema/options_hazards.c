#include "schema/options_private.h"

#include "schema/decoder.h"

/* ---- hazards ---- */

/* Words of columns' options that merge engines take. */
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
        {options->write_only && options->script,
         "'write-only' with 'tarn.script': each flush looks its keys up in all runs, and only "
         "another job makes them fewer"},
        {sequence && options->sequence_descending,
         "'sequence.field.sort-order' = 'descending': what counts depends on where flushes fall: "
         "among the rows of one flush the larger value counts, as up to Paimon 1.4; from 2.0 on "
         "the smaller one"},
        {sequence && !options->ignore_delete,
         "'sequence.field': a delete whose sequence is NULL or older has no effect, and after a "
         "compaction an older row that comes late brings a deleted key back"},
        {keyed && !options->ignore_update_before && options->rowkind_field >= 0,
         "'rowkind.field': a -U without its +U deletes the row; 'ignore-update-before' prevents "
         "it"},
        {options->force_compact && !options->write_only,
         "'commit.force-compact': a commit waits for the compactions that are due, but makes none "
         "due"},
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

/* ---- merge engines: what depends on when compaction runs, or on who reads ---- */

static bool has_function(const struct tn_schema *schema, const struct tn_options *options,
                         enum tn_aggregate function)
{
    bool found = false;
    for (uint32_t i = 0; i < schema->field_count && options->merge_fields; i++) {
        found = found || options->merge_fields[i].aggregate == function;
    }
    return found;
}

static bool has_option(const struct tn_schema *schema, const char *word)
{
    bool found = false;
    for (uint32_t i = 0; i < schema->option_count; i++) {
        struct tn_bytes column;
        const char *end = NULL;
        found = found ||
                (tn_option_split(schema->options[i].key, &column, &end) && strcmp(end, word) == 0);
    }
    return found;
}

static bool group_removes(const struct tn_options *options)
{
    bool found = false;
    for (uint32_t g = 0; g < options->sequence_group_count; g++) {
        found = found || options->sequence_groups[g].removes;
    }
    return found;
}

/* A list of VARCHAR(n) columns alone: STRING has no end. */
static bool lists_in_varchar(const struct tn_schema *schema, const struct tn_options *options)
{
    bool found = false;
    for (uint32_t i = 0; i < schema->field_count && options->merge_fields; i++) {
        found = found || (options->merge_fields[i].aggregate == TN_AGGREGATE_LISTAGG &&
                          schema->fields[i].type.length < TN_LENGTH_MAX);
    }
    return found;
}

/* Sums or products of integers, or of decimals. */
static bool adds_up(const struct tn_schema *schema, const struct tn_options *options, bool decimal)
{
    bool found = false;
    for (uint32_t i = 0; i < schema->field_count && options->merge_fields; i++) {
        enum tn_aggregate function = options->merge_fields[i].aggregate;
        found = found || ((function == TN_AGGREGATE_SUM || function == TN_AGGREGATE_PRODUCT) &&
                          (decimal ? schema->fields[i].type.kind == TN_TYPE_DECIMAL
                                   : tn_type_integer(schema->fields[i].type.kind)));
    }
    return found;
}

/* Columns whose function knows no retract. */
static void functions_without_retract(const struct tn_schema *schema,
                                      const struct tn_options *options, struct tn_buf *lines)
{
    for (uint32_t i = 0; i < schema->field_count && options->merge_fields; i++) {
        const struct tn_merge_field *f = &options->merge_fields[i];
        if (!f->ignore_retract && !options->ignore_delete && !options->aggregation_removes &&
            tn_aggregate_knows_no_retract(f->aggregate)) {
            tn_buf_format(lines,
                          "column '%s': %s can't take back a -U or -D: it is refused, and where "
                          "another writer lets one in, reads and compactions of its key fail; "
                          "'fields.%s.ignore-retract' passes it over\n",
                          schema->fields[i].name, tn_aggregate_name(f->aggregate),
                          schema->fields[i].name);
        }
    }
}

static void merge_hazards(const struct tn_schema *schema, const struct tn_options *options,
                          struct tn_buf *lines)
{
    bool partial = options->merge_engine == TN_MERGE_PARTIAL_UPDATE;
    bool aggregation = options->merge_engine == TN_MERGE_AGGREGATION;
    bool groups = options->sequence_group_count > 0;
    bool removes = (partial && options->partial_update_removes) ||
                   (aggregation && options->aggregation_removes);
    bool adds = has_function(schema, options, TN_AGGREGATE_SUM) ||
                has_function(schema, options, TN_AGGREGATE_PRODUCT);
    bool derived = options->changelog_producer >= TN_CHANGELOG_FULL_COMPACTION;
    const struct {
        bool here;
        const char *line;
    } hazards[] = {
        {partial && !groups && !removes && !options->ignore_delete,
         "'merge-engine' = 'partial-update': a -U or -D is refused, and where another writer lets "
         "one in, reads and compactions of its key fail; 'ignore-delete', "
         "'partial-update.remove-record-on-delete' or a sequence group says what becomes of it"},
        {partial, "'merge-engine' = 'partial-update': a NULL clears no column, but in a sequence "
                  "group"},
        {partial && groups, "sequence groups: a row whose group is NULL shows its columns while it "
                            "is alone, and loses them when another row of its key comes"},
        {partial && groups && !options->ignore_delete,
         "sequence groups: a row that deletes took all columns of stays, with NULLs, unless "
         "'partial-update.remove-record-on-sequence-group' removes it"},
        {partial && group_removes(options),
         "'partial-update.remove-record-on-sequence-group': nothing remembers the order of a row "
         "that was removed, so an older row that comes late brings it back"},
        {removes, "'remove-record-on-delete': readers of Paimon 1.4 and later show values of a "
                  "deleted row in a partial row that comes after it, until a compaction"},
        {adds && !removes && !options->ignore_delete,
         "sum, product: a delete that comes before the first insert counts only until a "
         "compaction drops it"},
        {adds_up(schema, options, true),
         "sum, product: a DECIMAL that grows past its digits becomes NULL"},
        {adds_up(schema, options, false),
         "sum, product: integers that grow too large wrap, as up to Paimon 1.4; later versions "
         "fail"},
        {lists_in_varchar(schema, options),
         "listagg: lists in a VARCHAR(n) grow past n, and Paimon 1.4 and later refuse them; use "
         "STRING"},
        {has_function(schema, options, TN_AGGREGATE_LISTAGG),
         "listagg: a list that outgrows what the memory holds of a row can't be merged or read any "
         "more, until --memory is larger"},
        {has_function(schema, options, TN_AGGREGATE_LISTAGG),
         "listagg: Paimon 1.4 and later leave blank texts out"},
        {has_function(schema, options, TN_AGGREGATE_LISTAGG) && has_option(schema, "distinct"),
         "'distinct' of listagg has no effect, as up to Paimon 1.3; later versions obey it"},
        {options->merge_engine == TN_MERGE_FIRST_ROW,
         "'merge-engine' = 'first-row': reads show no row before it is compacted"},
        {options->merge_engine == TN_MERGE_FIRST_ROW &&
             options->changelog_producer == TN_CHANGELOG_NONE,
         "'merge-engine' = 'first-row' with 'changelog-producer' = 'none': who reads the table as "
         "a stream gets later rows of a key, too"},
        {aggregation || partial ? options->changelog_producer == TN_CHANGELOG_NONE : false,
         "'changelog-producer' = 'none': who reads the table as a stream gets the rows as "
         "written, not as merged"},
        {options->changelog_producer == TN_CHANGELOG_INPUT && !options->script,
         "'changelog-producer' = 'input': rows that come without a -U give none"},
        {derived && !options->changelog_deduplicate,
         "'changelog-producer': a row that did not change gives -U and +U all the same; "
         "'changelog-producer.row-deduplicate' leaves them out"},
        {options->changelog_producer == TN_CHANGELOG_FULL_COMPACTION &&
             options->full_compaction_delta == 0,
         "'changelog-producer' = 'full-compaction': each commit compacts all of every bucket that "
         "it wrote to; 'full-compaction.delta-commits' makes that rarer"},
        {derived && options->write_only, "'changelog-producer' with 'write-only': changes are told "
                                         "by the job that compacts, as one "
                                         "difference a round; without one there are none"},
        {options->changelog_producer == TN_CHANGELOG_LOOKUP && options->full_compaction_delta > 0,
         "'full-compaction.delta-commits' with 'changelog-producer' = 'lookup': Paimon 2.0 and "
         "later refuse the table"},
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
    merge_hazards(schema, options, lines);
    key_without_partition(schema, lines);
    if (options->partition_legacy_name) {
        day_numbers(schema, lines);
    }
    unknown_options(schema, lines);
    functions_without_retract(schema, options, lines);
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
