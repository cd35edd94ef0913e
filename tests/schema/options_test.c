#include "schema/options.h"

#include <stdint.h>

#include "schema/json_heap.h"

enum { HEAP_SIZE = 1 << 20, ARENA_SIZE = 1 << 20 };

static unsigned char arena_memory[ARENA_SIZE];
static struct tn_arena arena;
static struct tn_err err;

/* Columns k INT, v STRING, p DATE, n ARRAY and the options in JSON. */
static struct tn_schema schema_of(const char *primary, const char *partition, const char *options)
{
    char json[1000];
    struct tn_schema schema;
    tn_arena_init(&arena, arena_memory, sizeof(arena_memory));
    memset(&err, 0, sizeof(err));
    (void)snprintf(json, sizeof(json),
                   "{\"fields\":[{\"name\":\"k\",\"type\":\"INT\"},{\"name\":\"v\",\"type\":"
                   "\"STRING\"},{\"name\":\"p\",\"type\":\"DATE\"},{\"name\":\"n\",\"type\":"
                   "\"ARRAY<INT>\"}],\"primaryKeys\":[%s],\"partitionKeys\":[%s],\"options\":{%s}}",
                   primary, partition, options);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(json), &arena, &schema, &err);
    CHECK_OK(rc, err);
    return schema;
}

static struct tn_options read_options(const struct tn_schema *schema, enum tn_options_use use)
{
    struct tn_options options;
    tn_rc rc = tn_options_read(schema, use, &arena, &options, &err);
    CHECK_OK(rc, err);
    return options;
}

/* Printed by Paimon 1.3.1 from CoreOptions. */
static void defaults_are_paimons(void)
{
    struct tn_schema schema = schema_of("\"k\"", "", "\"bucket\":2,\"file.format\":\"avro\"");
    struct tn_options o = read_options(&schema, TN_OPTIONS_WRITE);
    CHECK(o.bucket == 2 && o.bucket_function == TN_BUCKET_HASH);
    CHECK(o.bucket_key.count == 1 && o.bucket_key.index[0] == 0);
    CHECK(o.sequence_fields.count == 0 && !o.sequence_descending && o.rowkind_field == -1);
    CHECK(!o.ignore_delete && !o.ignore_update_before && !o.write_only && !o.thin_mode);
    CHECK_TEXT(o.data_file_prefix, "data-");
    CHECK_TEXT(o.path_directory, "");
    CHECK_TEXT(o.partition_default_name, "__DEFAULT_PARTITION__");
    CHECK(o.partition_legacy_name && !o.suffix_compression);
    CHECK(o.codec == TN_CODEC_ID_ZSTANDARD && o.zstd_level == 1);
    CHECK(o.manifest_codec == TN_CODEC_ID_ZSTANDARD);
    CHECK(o.target_file_size == 128 << 20 && o.write_buffer_size == 256 << 20);
    for (int i = 0; i < 4; i++) {
        CHECK(o.stats_modes[i] == TN_STATS_TRUNCATE && o.stats_lengths[i] == 16);
    }
    CHECK(o.stats_dense && o.manifest_target_size == 8 << 20 && o.manifest_merge_min == 30);
    CHECK(o.manifest_full_threshold == 16 << 20);
    CHECK(o.compaction_trigger == 5 && o.stop_trigger == 8 && o.num_levels == 6);
    CHECK(o.max_size_amplification == 200 && o.size_ratio == 1);
    CHECK(o.optimization_interval_ms == -1 && o.total_size_threshold == -1);
    CHECK(o.incremental_size_threshold == -1 && o.min_file_num == 5 && o.unit_size_max == 0);
    CHECK(o.off_peak_start == -1 && o.off_peak_end == -1 && o.off_peak_ratio == 0);
    CHECK(!o.force_compact && !o.force_up_level0 && !o.force_rewrite);
    CHECK(o.snapshot_retained_min == 10 && o.snapshot_retained_max == INT32_MAX);
    CHECK(o.snapshot_time_retained_ms == 3600000 && o.snapshot_expire_limit == 50);
    CHECK(!o.clean_empty_directories && o.commit_max_retries == 10);
}

static void options_of_append_tables(void)
{
    struct tn_schema schema = schema_of("", "", "\"file.format\":\"avro\"");
    struct tn_options o = read_options(&schema, TN_OPTIONS_WRITE);
    CHECK(o.bucket == -1 && o.bucket_key.count == 0 && o.target_file_size == 256 << 20);
    schema = schema_of("", "", "\"bucket\":3,\"bucket-key\":\"v,k\"");
    o = read_options(&schema, TN_OPTIONS_CREATE);
    CHECK(o.bucket == 3 && o.bucket_key.count == 2);
    CHECK(o.bucket_key.index[0] == 1 && o.bucket_key.index[1] == 0);
}

static void values_are_obeyed(void)
{
    struct tn_schema schema = schema_of(
        "\"p\",\"k\"", "\"p\"",
        "\"bucket\":1,\"bucket-function.type\":\"MOD\",\"sequence.field\":\"v,p\","
        "\"sequence.field.sort-order\":\"DESCENDING\",\"rowkind.field\":\"v\","
        "\"write.compaction-skip\":\"TRUE\",\"data-file.path-directory\":\"a/b\","
        "\"file.compression\":\"null\",\"metadata.stats-mode\":\"counts\","
        "\"metadata.stats-keep-first-n-columns\":2,\"fields.p.stats-mode\":\"truncate(5)\","
        "\"num-sorted-run.compaction-trigger\":9,\"num-sorted-run.stop-trigger\":2,"
        "\"partial-update.ignore-delete\":true,\"snapshot.time-retained\":\"2 d\"");
    struct tn_options o = read_options(&schema, TN_OPTIONS_CREATE);
    CHECK(o.bucket_function == TN_BUCKET_MOD && o.bucket_key.count == 1);
    CHECK(o.sequence_fields.count == 2 && o.sequence_fields.index[0] == 1);
    CHECK(o.sequence_fields.index[1] == 2 && o.sequence_descending && o.rowkind_field == 1);
    CHECK(o.write_only && o.ignore_delete && o.codec == TN_CODEC_ID_NULL);
    CHECK_TEXT(o.path_directory, "a/b/");
    CHECK(o.stats_modes[0] == TN_STATS_COUNTS && o.stats_modes[1] == TN_STATS_COUNTS);
    CHECK(o.stats_modes[2] == TN_STATS_TRUNCATE && o.stats_lengths[2] == 5);
    CHECK(o.stats_modes[3] == TN_STATS_NONE);
    CHECK(o.compaction_trigger == 9 && o.stop_trigger == 9 && o.num_levels == 10);
    CHECK(o.snapshot_time_retained_ms == 172800000);
}

/* As Paimon's OffPeakHours has them. */
static void off_peak_hours_are_from_one_to_before_the_other(void)
{
    static const struct {
        int start;
        int end;
        const char *hours; /* of a day, from 0 on */
    } cases[] = {
        {-1, -1, "........................"}, {3, -1, "........................"},
        {-1, 3, "........................"},  {4, 4, "........................"},
        {2, 5, "..xxx..................."},   {22, 3, "xxx...................xx"},
        {0, 24, "xxxxxxxxxxxxxxxxxxxxxxxx"},  {23, 0, ".......................x"},
        {24, 1, "x......................."},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char options[128];
        (void)snprintf(options, sizeof options,
                       "\"bucket\":1,\"compaction.offpeak.start.hour\":%d,"
                       "\"compaction.offpeak.end.hour\":%d",
                       cases[i].start, cases[i].end);
        struct tn_schema schema = schema_of("\"k\"", "", options);
        struct tn_options o = read_options(&schema, TN_OPTIONS_CREATE);
        for (int64_t hour = -48; hour < 48; hour++) { /* before 1970, too */
            bool off_peak = cases[i].hours[(hour + 48) % 24] == 'x';
            CHECK(tn_options_off_peak(&o, hour * 3600000) == off_peak);
            CHECK(tn_options_off_peak(&o, hour * 3600000 + 3599999) == off_peak);
        }
    }
}

struct refusal {
    const char *options;
    tn_rc rc;
    const char *text; /* how it begins */
};

static void expect_refusal(const struct tn_schema *schema, enum tn_options_use use,
                           const struct refusal *refusal)
{
    struct tn_options options = {.bucket = -77};
    tn_rc rc = tn_options_read(schema, use, &arena, &options, &err);
    if (rc != refusal->rc || strncmp(err.text, refusal->text, strlen(refusal->text)) != 0) {
        FAIL("%s\nfound:  %s\nwanted: %s", refusal->options, err.text, refusal->text);
    }
    CHECK(rc == TN_OK || options.bucket == -77);
}

static void what_cannot_be_obeyed_is_refused_by_name(void)
{
    static const struct refusal cases[] = {
        {"\"bucket\":-1", TN_UNSUPPORTED, "option 'bucket': '-1' means buckets that grow"},
        {"", TN_UNSUPPORTED, "option 'bucket': '-1' means buckets that grow"},
        {"\"bucket\":-2", TN_UNSUPPORTED, "option 'bucket': '-2' postpones"},
        {"\"bucket\":0", TN_INVALID, "option 'bucket': '0' is neither a number"},
        {"\"bucket\":\"2.0\"", TN_INVALID, "option 'bucket': '2.0' is neither a number"},
        {"\"bucket\":99999999999999999999", TN_INVALID, "option 'bucket': '99999999999999999999'"},
        {"\"bucket\":1,\"bucket-key\":\"v\"", TN_INVALID, "option 'bucket-key': 'v' is not part"},
        {"\"bucket\":1,\"bucket-key\":\" k\"", TN_INVALID, "option 'bucket-key': no column ' k'"},
        {"\"bucket\":1,\"bucket-key\":\"\"", TN_INVALID, "option 'bucket-key': no column ''"},
        {"\"bucket\":1,\"sequence.field\":\"v,v\"", TN_INVALID,
         "option 'sequence.field': 'v,v' names a column twice"},
        {"\"bucket\":1,\"sequence.field\":\"n\"", TN_INVALID,
         "option 'sequence.field': column 'n' is of type ARRAY"},
        {"\"bucket\":1,\"sequence.field.sort-order\":\"up\"", TN_INVALID,
         "option 'sequence.field.sort-order': 'up' is neither"},
        {"\"bucket\":1,\"rowkind.field\":\"k\"", TN_INVALID, "option 'rowkind.field': 'k' is no"},
        {"\"bucket\":1,\"write-only\":\"yes\"", TN_INVALID,
         "option 'write-only': 'yes' is neither true nor false"},
        {"\"bucket\":1,\"num-levels\":1", TN_INVALID,
         "option 'num-levels': '1' is not an integer of 2..2147483647"},
        {"\"bucket\":1,\"target-file-size\":\"1.5 mb\"", TN_INVALID,
         "option 'target-file-size': '1.5 mb' is no size"},
        {"\"bucket\":1,\"target-file-size\":\"0\"", TN_INVALID, "option 'target-file-size': '0'"},
        {"\"bucket\":1,\"snapshot.time-retained\":\"1 week\"", TN_INVALID,
         "option 'snapshot.time-retained': '1 week' is no duration"},
        {"\"bucket\":1,\"snapshot.num-retained.min\":5,\"snapshot.num-retained.max\":3", TN_INVALID,
         "option 'snapshot.num-retained.min': 5 is more than snapshot.num-retained.max, 3"},
        {"\"bucket\":1,\"changelog.num-retained.max\":9", TN_INVALID,
         "option 'changelog.num-retained.min': 10 is more than changelog.num-retained.max, 9"},
        {"\"bucket\":1,\"changelog.num-retained.min\":0", TN_INVALID,
         "option 'changelog.num-retained.min': '0' is not an integer"},
        {"\"bucket\":1,\"data-file.path-directory\":\"../x\"", TN_INVALID,
         "option 'data-file.path-directory': '../x' is no folder"},
        {"\"bucket\":1,\"data-file.path-directory\":\"/x\"", TN_INVALID,
         "option 'data-file.path-directory': '/x' is no folder"},
        {"\"bucket\":1,\"data-file.prefix\":\"a/b\"", TN_INVALID, "option 'data-file.prefix'"},
        {"\"bucket\":1,\"partition.default-name\":\"..\"", TN_INVALID,
         "option 'partition.default-name'"},
        {"\"bucket\":1,\"file.compression\":\"snappy\"", TN_UNSUPPORTED,
         "option 'file.compression': 'snappy' is not written"},
        {"\"bucket\":1,\"tarn.script\":\"\"", TN_INVALID, "option 'tarn.script': '' names no file"},
        {"\"bucket\":1,\"tarn.sequence.field\":\"v\"", TN_INVALID,
         "option 'tarn.sequence.field': 'v' is for a table with 'tarn.script'"},
        {"\"bucket\":1,\"tarn.compaction.unit-size-max\":0", TN_INVALID,
         "option 'tarn.compaction.unit-size-max': '0'"},
        {"\"bucket\":1,\"compaction.offpeak.start.hour\":25", TN_INVALID,
         "option 'compaction.offpeak.start.hour': '25' is not an integer of -1..24"},
        {"\"bucket\":1,\"tarn.new\":1", TN_UNSUPPORTED, "option 'tarn.new': '1' asks for what"},
        {"\"bucket\":1,\"manifest.compression\":\"lz4\"", TN_UNSUPPORTED,
         "option 'manifest.compression': 'lz4' is not written"},
        {"\"bucket\":1,\"file.format\":\"parquet\"", TN_UNSUPPORTED,
         "option 'file.format': 'parquet' is not written by this build; avro is"},
        {"\"bucket\":1,\"metadata.stats-mode\":\"trunc\"", TN_INVALID,
         "option 'metadata.stats-mode': 'trunc' is none of"},
        {"\"bucket\":1,\"fields.v.stats-mode\":\"truncate(0)\"", TN_INVALID,
         "option 'fields.v.stats-mode': 'truncate(0)' is none of"},
        {"\"bucket\":1,\"fields.zz.stats-mode\":\"full\"", TN_INVALID,
         "option 'fields.zz.stats-mode': 'full' is for a column"},
        {"\"bucket\":1,\"fields.v.default-value\":\"x\"", TN_UNSUPPORTED,
         "option 'fields.v.default-value': 'x' was a default"},
        {"\"bucket\":1,\"deletion-vectors.enabled\":true", TN_UNSUPPORTED,
         "option 'deletion-vectors.enabled': 'true' is not supported"},
        {"\"bucket\":1,\"file.format.per.level\":\"0:avro\"", TN_UNSUPPORTED,
         "option 'file.format.per.level'"},
        {"\"bucket\":1,\"data-file.external-paths\":\"s3://x\"", TN_UNSUPPORTED,
         "option 'data-file.external-paths'"},
        {"\"bucket\":1,\"row-tracking.enabled\":true", TN_UNSUPPORTED,
         "option 'row-tracking.enabled'"},
        {"\"bucket\":1,\"file-index.bloom-filter.columns\":\"v\"", TN_UNSUPPORTED,
         "option 'file-index.bloom-filter.columns'"},
        {"\"bucket\":1,\"record-level.expire-time\":\"1 d\"", TN_UNSUPPORTED,
         "option 'record-level.expire-time'"},
        {"\"bucket\":1,\"tag.automatic-creation\":\"batch\"", TN_UNSUPPORTED,
         "option 'tag.automatic-creation'"},
        {"\"bucket\":1,\"manifest.format\":\"parquet\"", TN_UNSUPPORTED,
         "option 'manifest.format'"},
        {"\"bucket\":1,\"branch\":\"b\"", TN_UNSUPPORTED, "option 'branch': 'b'"},
        {"\"bucket\":1,\"type\":\"format-table\"", TN_UNSUPPORTED, "option 'type'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_schema schema = schema_of("\"k\"", "", cases[i].options);
        expect_refusal(&schema, TN_OPTIONS_CREATE, &cases[i]);
    }
}

/* What is written must be right for readers elsewhere, who know no script. */
static void a_script_goes_with_plain_tables(void)
{
    static const struct refusal cases[] = {
        {"", TN_OK, ""},
        {",\"tarn.sequence.field\":\"v\",\"changelog-producer\":\"input\"", TN_OK, ""},
        {",\"tarn.sequence.field\":\"zz\"", TN_INVALID,
         "option 'tarn.sequence.field': no column 'zz'"},
        {",\"merge-engine\":\"aggregation\"", TN_INVALID,
         "option 'merge-engine': 'aggregation' does not go with 'tarn.script'"},
        {",\"changelog-producer\":\"lookup\"", TN_INVALID,
         "option 'changelog-producer': 'lookup' does not go with 'tarn.script'"},
        {",\"changelog-producer\":\"full-compaction\"", TN_INVALID,
         "option 'changelog-producer': 'full-compaction' does not go with 'tarn.script'"},
        {",\"sequence.field\":\"v\"", TN_INVALID,
         "option 'sequence.field': 'v' does not go with 'tarn.script'"},
        {",\"ignore-delete\":true", TN_INVALID,
         "option 'ignore-delete': 'true' does not go with 'tarn.script'"},
        {",\"local-merge-buffer-size\":\"1 mb\"", TN_INVALID,
         "option 'local-merge-buffer-size': '1 mb' does not go with 'tarn.script'"},
        {",\"force-lookup\":true", TN_INVALID,
         "option 'force-lookup': 'true' does not go with 'tarn.script'"},
        {",\"deletion-vectors.enabled\":true", TN_UNSUPPORTED,
         "option 'deletion-vectors.enabled': 'true' is not supported"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "\"bucket\":1,\"file.format\":\"avro\",\"tarn.script\":\"fold.lua\"%s",
                       cases[i].options);
        struct tn_schema schema = schema_of("\"k\"", "", text);
        expect_refusal(&schema, TN_OPTIONS_CREATE, &cases[i]);
        expect_refusal(&schema, TN_OPTIONS_WRITE, &cases[i]);
    }
    static const struct refusal keyless = {"\"file.format\":\"avro\",\"tarn.script\":\"fold.lua\"",
                                           TN_INVALID,
                                           "option 'tarn.script': 'fold.lua' needs a primary key"};
    struct tn_schema schema = schema_of("", "", keyless.options);
    expect_refusal(&schema, TN_OPTIONS_CREATE, &keyless);
}

static void append_tables_need_a_bucket_key_for_buckets(void)
{
    static const struct refusal cases[] = {
        {"\"bucket\":2", TN_INVALID, "option 'bucket-key' is missing"},
        {"\"bucket-key\":\"k\"", TN_INVALID, "option 'bucket-key': 'k' needs a number of buckets"},
        {"\"bucket\":2,\"bucket-key\":\"p\"", TN_INVALID,
         "option 'bucket-key': 'p' names a partition key"},
        {"\"bucket\":2,\"bucket-key\":\"v\",\"bucket-function.type\":\"mod\"", TN_INVALID,
         "option 'bucket-function.type': 'mod' needs a bucket key of one INT or BIGINT"},
        {"\"merge-engine\":\"aggregation\"", TN_OK, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_schema schema = schema_of("", "\"p\"", cases[i].options);
        expect_refusal(&schema, TN_OPTIONS_CREATE, &cases[i]);
    }
}

/* Each of the three for itself. Source: CoreOptions.changelogLifecycleDecoupled. */
static void changelogs_outlive_snapshots_when_one_option_says_so(void)
{
    static const struct {
        const char *options;
        bool outlive;
        struct tn_retention kept;
    } cases[] = {
        {"", false, {10, INT32_MAX, 3600000}},
        {",\"changelog.num-retained.min\":10", false, {10, INT32_MAX, 3600000}},
        {",\"changelog.num-retained.min\":11", true, {11, INT32_MAX, 3600000}},
        {",\"changelog.num-retained.max\":20", false, {10, 20, 3600000}},
        {",\"changelog.num-retained.max\":20,\"snapshot.num-retained.max\":12",
         true,
         {10, 20, 3600000}},
        {",\"changelog.time-retained\":\"2 h\"", true, {10, INT32_MAX, 7200000}},
        {",\"changelog.time-retained\":\"0 s\"", false, {10, INT32_MAX, 0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "\"bucket\":1%s", cases[i].options);
        struct tn_schema schema = schema_of("\"k\"", "", text);
        struct tn_options o = read_options(&schema, TN_OPTIONS_CREATE);
        struct tn_retention kept = tn_options_changelog_retention(&o);
        CHECK(tn_options_changelogs_outlive(&o) == cases[i].outlive);
        CHECK(kept.count_min == cases[i].kept.count_min);
        CHECK(kept.count_max == cases[i].kept.count_max && kept.time_ms == cases[i].kept.time_ms);
    }
}

/* Words that change nothing, and options of engines. */
static void harmless_values_pass(void)
{
    struct tn_schema schema = schema_of(
        "\"k\"", "",
        "\"bucket\":1,\"merge-engine\":\"DEDUPLICATE\",\"changelog-producer\":\"none\","
        "\"deletion-vectors.enabled\":false,\"file.format.per.level\":\"\",\"branch\":\"main\","
        "\"manifest.format\":\"avro\",\"tag.automatic-creation\":\"none\",\"scan.mode\":\"latest\","
        "\"sink.parallelism\":4,\"read.batch-size\":7,\"consumer.expiration-time\":\"1 d\","
        "\"lookup.cache-max-disk-size\":\"1 gb\",\"changelog.num-retained.min\":10,"
        "\"fields.v.aggregate-function\":\"sum\",\"my.own\":\"x\"");
    (void)read_options(&schema, TN_OPTIONS_CREATE);
}

static void a_missing_format_is_parquet_for_who_writes(void)
{
    struct tn_schema schema = schema_of("\"k\"", "", "\"bucket\":1");
    (void)read_options(&schema, TN_OPTIONS_CREATE);
    (void)read_options(&schema, TN_OPTIONS_READ);
    struct refusal refusal = {"", TN_UNSUPPORTED,
                              "option 'file.format': 'parquet' (the default) is not written"};
    expect_refusal(&schema, TN_OPTIONS_WRITE, &refusal);
}

static void readers_refuse_only_what_changes_rows(void)
{
    struct tn_schema schema = schema_of(
        "\"k\"", "",
        "\"bucket\":1,\"changelog-producer\":\"lookup\",\"file.compression\":\"snappy\","
        "\"row-tracking.enabled\":true,\"num-sorted-run.stop-trigger\":\"x\",\"metadata.stats-"
        "mode\":\"y\","
        "\"file-index.bloom-filter.columns\":\"v\",\"fields.v.stats-mode\":\"z\","
        "\"sequence.field\":\"v\",\"snapshot.num-retained.max\":1,\"manifest.format\":\"parquet\"");
    struct tn_options o = read_options(&schema, TN_OPTIONS_READ);
    CHECK(o.sequence_fields.count == 1 && o.bucket == 1 && o.snapshot_retained_max == INT32_MAX);
    static const struct refusal cases[] = {
        {"\"bucket\":1,\"merge-engine\":\"aggregation\",\"fields.v.aggregate-function\":\"rbm64\"",
         TN_UNSUPPORTED, "option 'fields.v.aggregate-function': 'rbm64' is not computed"},
        {"\"bucket\":1,\"deletion-vectors.enabled\":true", TN_UNSUPPORTED,
         "option 'deletion-vectors.enabled'"},
        {"\"bucket\":-1", TN_UNSUPPORTED, "option 'bucket'"},
        {"\"bucket\":-2", TN_UNSUPPORTED, "option 'bucket'"},
        {"\"bucket\":1,\"data-evolution.enabled\":true", TN_UNSUPPORTED,
         "option 'data-evolution.enabled'"},
        {"\"bucket\":1,\"sequence.field\":\"zz\"", TN_INVALID, "option 'sequence.field'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        schema = schema_of("\"k\"", "", cases[i].options);
        expect_refusal(&schema, TN_OPTIONS_READ, &cases[i]);
    }
}

static void old_append_tables_with_buckets_are_read(void)
{
    struct tn_schema schema = schema_of("", "", "\"bucket\":2");
    struct tn_options o = read_options(&schema, TN_OPTIONS_READ);
    CHECK(o.bucket == -1 && o.bucket_key.count == 0);
}

static const char *hazards_of(const struct tn_schema *schema)
{
    static unsigned char memory[4000];
    struct tn_buf lines;
    struct tn_options options = read_options(schema, TN_OPTIONS_CREATE);
    tn_buf_init(&lines, memory, sizeof(memory));
    tn_options_hazards(schema, &options, &lines);
    tn_buf_byte(&lines, 0);
    CHECK(!lines.overflow);
    return (const char *)memory;
}

static void a_plain_table_has_no_hazards(void)
{
    struct tn_schema schema = schema_of("\"k\"", "",
                                        "\"bucket\":1,\"tag.num-retained-max\":3,"
                                        "\"fields.v.stats-mode\":\"full\"");
    CHECK_TEXT(hazards_of(&schema), "");
}

static void hazards_are_one_line_each(void)
{
    struct tn_schema schema =
        schema_of("\"p\",\"k\"", "\"p\"",
                  "\"bucket\":1,\"write-only\":true,\"sequence.field\":\"v\","
                  "\"sequence.field.sort-order\":\"descending\","
                  "\"snapshot.time-retaind\":\"1 h\",\"my.own.thing\":1,"
                  "\"fields.v.foo\":1,\"compaction.total-size-threshold\":\"1 mb\"");
    const char *lines = hazards_of(&schema);
    static const char *const wanted[] = {
        "'write-only': nothing is compacted",
        "'sequence.field.sort-order' = 'descending': ",
        "'sequence.field': a delete whose sequence is NULL or older",
        "'compaction.total-size-threshold': every commit",
        "folders of the partition key 'p' are day numbers",
        "option 'snapshot.time-retaind' is unknown and has no effect; did you mean "
        "'snapshot.time-retained'?\n",
        "option 'my.own.thing' is unknown and has no effect\n",
        "option 'fields.v.foo' is unknown and has no effect\n",
    };
    for (size_t i = 0; i < COUNT(wanted); i++) {
        if (strncmp(lines, wanted[i], strlen(wanted[i])) != 0) {
            FAIL("found:  %s\nwanted: %s", lines, wanted[i]);
        }
        lines = strchr(lines, '\n') + 1;
    }
    CHECK(*lines == 0);
}

/* ---- merge engines ---- */

/* Columns k INT, a INT, b STRING, c BOOLEAN, g INT, h INT, p DATE; the key is k, or p and k. */
static struct tn_schema merge_schema(bool keyed, bool partitioned, const char *options)
{
    char json[1000];
    struct tn_schema schema;
    tn_arena_init(&arena, arena_memory, sizeof(arena_memory));
    memset(&err, 0, sizeof(err));
    (void)snprintf(
        json, sizeof(json),
        "{\"fields\":[{\"name\":\"k\",\"type\":\"INT\"},{\"name\":\"a\",\"type\":\"INT\"},"
        "{\"name\":\"b\",\"type\":\"STRING\"},{\"name\":\"c\",\"type\":\"BOOLEAN\"},"
        "{\"name\":\"g\",\"type\":\"INT\"},{\"name\":\"h\",\"type\":\"INT\"},"
        "{\"name\":\"p\",\"type\":\"DATE\"}],\"primaryKeys\":[%s],"
        "\"partitionKeys\":[%s],\"options\":{%s}}",
        keyed ? "\"k\"" : "", partitioned ? "\"p\"" : "", options);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(json), &arena, &schema, &err);
    CHECK_OK(rc, err);
    return schema;
}

#define PLAIN       "\"bucket\":1,"
#define PARTIAL     "\"bucket\":1,\"merge-engine\":\"partial-update\","
#define AGGREGATION "\"bucket\":1,\"merge-engine\":\"aggregation\","

static void columns_have_functions_and_groups(void)
{
    struct tn_schema schema = merge_schema(
        true, false,
        PARTIAL "\"fields.g,h.sequence-group\":\"a,b\",\"fields.a.aggregate-function\":\"sum\","
                "\"fields.b.aggregate-function\":\"listagg\",\"fields.b.list-agg-delimiter\":\";\","
                "\"fields.b.ignore-retract\":\"true\","
                "\"partial-update.remove-record-on-sequence-group\":\"h\"");
    struct tn_options o = read_options(&schema, TN_OPTIONS_CREATE);
    CHECK(o.merge_engine == TN_MERGE_PARTIAL_UPDATE && o.sequence_group_count == 1);
    CHECK(o.sequence_groups[0].order.count == 2 && o.sequence_groups[0].removes);
    CHECK(o.sequence_groups[0].order.index[0] == 4 && o.sequence_groups[0].order.index[1] == 5);
    CHECK(o.merge_fields[0].aggregate == TN_AGGREGATE_KEY && o.merge_fields[0].group == -1);
    CHECK(o.merge_fields[1].aggregate == TN_AGGREGATE_SUM && o.merge_fields[1].group == 0);
    CHECK(!o.merge_fields[1].orders && !o.merge_fields[1].ignore_retract);
    CHECK(o.merge_fields[2].aggregate == TN_AGGREGATE_LISTAGG && o.merge_fields[2].ignore_retract);
    CHECK_TEXT(o.merge_fields[2].delimiter, ";");
    CHECK(o.merge_fields[3].aggregate == TN_AGGREGATE_NONE && o.merge_fields[3].group == -1);
    CHECK(o.merge_fields[4].orders && o.merge_fields[5].orders && o.merge_fields[5].group == 0);

    schema = merge_schema(true, false,
                          AGGREGATION "\"sequence.field\":\"g\","
                                      "\"fields.default-aggregate-function\":\"last_value\","
                                      "\"fields.c.aggregate-function\":\"first_not_null_value\"");
    o = read_options(&schema, TN_OPTIONS_CREATE);
    CHECK(o.merge_engine == TN_MERGE_AGGREGATION && o.sequence_group_count == 0);
    CHECK(o.merge_fields[0].aggregate == TN_AGGREGATE_KEY);
    CHECK(o.merge_fields[1].aggregate == TN_AGGREGATE_LAST_VALUE);
    CHECK(o.merge_fields[3].aggregate == TN_AGGREGATE_FIRST_NON_NULL_VALUE);
    CHECK(o.merge_fields[4].aggregate == TN_AGGREGATE_LAST_VALUE);
    schema = merge_schema(true, false, AGGREGATION "\"file.format\":\"avro\"");
    o = read_options(&schema, TN_OPTIONS_WRITE);
    CHECK(o.merge_fields[1].aggregate == TN_AGGREGATE_LAST_NON_NULL_VALUE);
    CHECK(!tn_options_need_lookup(&o));
}

static void changelog_options_are_read_and_not_written(void)
{
    struct tn_schema schema = merge_schema(true, false, "\"bucket\":1,\"file.format\":\"avro\"");
    struct tn_options o = read_options(&schema, TN_OPTIONS_WRITE);
    CHECK(o.changelog_producer == TN_CHANGELOG_NONE && !o.changelog_deduplicate);
    CHECK_TEXT(o.changelog_file_prefix, "changelog-");
    CHECK(o.changelog_codec == TN_CODEC_ID_ZSTANDARD && o.full_compaction_delta == 0);
    CHECK(o.lookup_wait && !o.force_lookup && !o.lookup_gentle && o.lookup_interval_max == 10);

    schema = merge_schema(true, false,
                          "\"bucket\":1,\"changelog-producer.row-deduplicate\":\"true\","
                          "\"changelog-producer.row-deduplicate-ignore-fields\":\"b,c\","
                          "\"changelog-file.prefix\":\"log-\",\"changelog-file.format\":\"orc\","
                          "\"changelog-producer.lookup-wait\":\"false\",\"lookup-compact\":"
                          "\"GENTLE\",\"lookup-compact.max-interval\":3,"
                          "\"full-compaction.delta-commits\":2,\"file.compression\":\"null\"");
    o = read_options(&schema, TN_OPTIONS_CREATE);
    CHECK(o.changelog_deduplicate && o.changelog_ignored.count == 2 && !o.lookup_wait);
    CHECK_TEXT(o.changelog_file_prefix, "log-");
    CHECK(o.lookup_gentle && o.lookup_interval_max == 5 && o.full_compaction_delta == 2);
    CHECK(o.changelog_codec == TN_CODEC_ID_NULL);

    schema = merge_schema(true, false, "\"bucket\":1,\"changelog-producer\":\"lookup\"");
    o = read_options(&schema, TN_OPTIONS_READ);
    CHECK(o.changelog_producer == TN_CHANGELOG_LOOKUP && tn_options_need_lookup(&o));
    schema = merge_schema(true, false, "\"bucket\":1,\"merge-engine\":\"first-row\"");
    o = read_options(&schema, TN_OPTIONS_READ);
    CHECK(o.merge_engine == TN_MERGE_FIRST_ROW && tn_options_need_lookup(&o));
}

/* What Paimon refuses when a table is made or first merged, and what this build doesn't do. */
static void merge_options_that_contradict_are_refused(void)
{
    static const struct refusal cases[] = {
        {"\"bucket\":1,\"merge-engine\":\"agregation\"", TN_INVALID,
         "option 'merge-engine': 'agregation' is none of"},
        {AGGREGATION "\"fields.a.aggregate-function\":\"summ\"", TN_INVALID,
         "option 'fields.a.aggregate-function': 'summ' is no function; did you mean 'sum'?"},
        {AGGREGATION "\"fields.a.aggregate-function\":\"count\"", TN_INVALID,
         "option 'fields.a.aggregate-function': 'count' is no function"},
        {AGGREGATION "\"fields.b.aggregate-function\":\"sum\"", TN_INVALID,
         "option 'fields.b.aggregate-function': 'sum' is for numbers, and column 'b' is VARCHAR"},
        {AGGREGATION "\"fields.c.aggregate-function\":\"max\"", TN_INVALID,
         "option 'fields.c.aggregate-function': 'max' is for columns that have an order"},
        {AGGREGATION "\"fields.default-aggregate-function\":\"bool_or\"", TN_INVALID,
         "option 'fields.default-aggregate-function': 'bool_or' is for BOOLEAN, and column 'a'"},
        {AGGREGATION "\"fields.b.aggregate-function\":\"collect\"", TN_UNSUPPORTED,
         "option 'fields.b.aggregate-function': 'collect' is not computed by this build"},
        {AGGREGATION "\"fields.b.aggregate-function\":\"hll_sketch\"", TN_UNSUPPORTED,
         "option 'fields.b.aggregate-function': 'hll_sketch' is not computed by this build"},
        {AGGREGATION "\"fields.a.ignore-retract\":\"true\","
                     "\"aggregation.remove-record-on-delete\":\"true\"",
         TN_INVALID, "option 'fields.a.ignore-retract': 'true' contradicts"},
        {AGGREGATION "\"fields.a.ignore-retract\":\"yes\"", TN_INVALID,
         "option 'fields.a.ignore-retract': 'yes' is neither true nor false"},
        {AGGREGATION "\"sequence.field\":\"g\",\"fields.g.aggregate-function\":\"max\"", TN_INVALID,
         "option 'sequence.field': 'g' has a function of its own"},
        {PARTIAL "\"fields.a.aggregate-function\":\"sum\"", TN_INVALID,
         "option 'fields.a.aggregate-function': 'sum' needs a sequence group"},
        {PARTIAL "\"fields.g.sequence-group\":\"a,zz\"", TN_INVALID,
         "option 'fields.g.sequence-group': no column 'zz'"},
        {PARTIAL "\"fields.zz.sequence-group\":\"a\"", TN_INVALID,
         "option 'fields.zz.sequence-group': no column 'zz'"},
        {PARTIAL "\"fields.g.sequence-group\":\"k\"", TN_INVALID,
         "option 'fields.g.sequence-group': column 'k' is of the primary key"},
        {PARTIAL "\"fields.g.sequence-group\":\"a\",\"fields.h.sequence-group\":\"b,a\"",
         TN_INVALID,
         "option 'fields.h.sequence-group': column 'a' is named twice, or in another group"},
        {PARTIAL "\"fields.g.sequence-group\":\"a\",\"fields.g.aggregate-function\":\"max\"",
         TN_INVALID, "option 'fields.g.sequence-group': column 'g' orders, and has a function"},
        {PARTIAL "\"fields.g.sequence-group\":\"a\","
                 "\"partial-update.remove-record-on-delete\":\"true\"",
         TN_INVALID, "option 'partial-update.remove-record-on-delete': 'true' does not go with"},
        {PARTIAL "\"ignore-delete\":\"true\",\"partial-update.remove-record-on-delete\":\"true\"",
         TN_INVALID, "option 'partial-update.remove-record-on-delete': 'true' contradicts"},
        {PARTIAL "\"fields.g.sequence-group\":\"a\","
                 "\"partial-update.remove-record-on-sequence-group\":\"a\"",
         TN_INVALID, "option 'partial-update.remove-record-on-sequence-group': 'a' names a column"},
        {"\"bucket\":1,\"merge-engine\":\"first-row\",\"sequence.field\":\"g\"", TN_INVALID,
         "option 'sequence.field': 'g' does not go with first-row"},
        {"\"bucket\":1,\"merge-engine\":\"first-row\",\"changelog-producer\":\"input\"", TN_INVALID,
         "option 'changelog-producer': 'input' does not go with first-row"},
        {"\"bucket\":1,\"changelog-producer\":\"lookups\"", TN_INVALID,
         "option 'changelog-producer': 'lookups' is none of"},
        {"\"bucket\":1,\"changelog-producer\":\"lookup\",\"streaming-read-overwrite\":\"true\"",
         TN_INVALID, "option 'changelog-producer': 'lookup' contradicts"},
        {"\"bucket\":1,\"changelog-producer\":\"input\",\"changelog-file.format\":\"orc\"",
         TN_UNSUPPORTED, "option 'changelog-file.format': 'orc' is not written"},
        {AGGREGATION "\"force-lookup\":\"true\",\"changelog-producer\":\"full-compaction\"",
         TN_INVALID, "option 'force-lookup': 'true' does not go with 'changelog-producer'"},
        {PLAIN "\"force-lookup\":\"true\",\"changelog-producer\":\"full-compaction\","
               "\"sequence.field\":\"g\"",
         TN_INVALID, "option 'force-lookup': 'true' does not go with 'changelog-producer'"},
        {"\"bucket\":1,\"full-compaction.delta-commits\":0", TN_INVALID,
         "option 'full-compaction.delta-commits': '0' is not an integer"},
        {"\"bucket\":1,\"fields.zz.aggregate-function\":\"sum\"", TN_INVALID,
         "option 'fields.zz.aggregate-function': 'sum' is for a column that isn't there"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_schema schema = merge_schema(true, false, cases[i].options);
        expect_refusal(&schema, TN_OPTIONS_CREATE, &cases[i]);
    }
    static const struct refusal unkeyed[] = {
        {"\"changelog-producer\":\"input\"", TN_INVALID,
         "option 'changelog-producer': 'input' needs a primary key"},
        {"\"full-compaction.delta-commits\":2", TN_INVALID,
         "option 'full-compaction.delta-commits': '2' needs buckets"},
    };
    for (size_t i = 0; i < COUNT(unkeyed); i++) {
        struct tn_schema schema = merge_schema(false, false, unkeyed[i].options);
        expect_refusal(&schema, TN_OPTIONS_CREATE, &unkeyed[i]);
    }
    static const struct refusal crossing = {"\"bucket\":1,\"sequence.field\":\"g\"", TN_INVALID,
                                            "option 'sequence.field': 'g' needs a primary key"};
    struct tn_schema schema = merge_schema(true, true, crossing.options);
    expect_refusal(&schema, TN_OPTIONS_CREATE, &crossing);
}

/* Each trap is said in one line where a table can fall into it, and not where it can't. */
static void merge_engines_have_hazards(void)
{
    static const struct {
        const char *line;
        const char *here;
        const char *elsewhere;
    } cases[] = {
        {"'partial-update': a -U or -D is refused", PARTIAL "\"write-only\":\"false\"",
         PARTIAL "\"ignore-delete\":\"true\""},
        {"'partial-update': a NULL clears no column", PARTIAL "\"write-only\":\"false\"",
         AGGREGATION "\"write-only\":\"false\""},
        {"sequence groups: a row whose group is NULL", PARTIAL "\"fields.g.sequence-group\":\"a\"",
         PARTIAL "\"write-only\":\"false\""},
        {"sequence groups: a row that deletes took", PARTIAL "\"fields.g.sequence-group\":\"a\"",
         PARTIAL "\"fields.g.sequence-group\":\"a\",\"ignore-delete\":\"true\""},
        {"'partial-update.remove-record-on-sequence-group': nothing remembers",
         PARTIAL "\"fields.g.sequence-group\":\"a\","
                 "\"partial-update.remove-record-on-sequence-group\":\"g\"",
         PARTIAL "\"fields.g.sequence-group\":\"a\""},
        {"'remove-record-on-delete': readers of Paimon 1.4",
         PARTIAL "\"partial-update.remove-record-on-delete\":\"true\"",
         PARTIAL "\"write-only\":\"false\""},
        {"sum, product: a delete that comes", AGGREGATION "\"fields.a.aggregate-function\":\"sum\"",
         AGGREGATION "\"write-only\":\"false\""},
        {"sum, product: integers that", AGGREGATION "\"fields.a.aggregate-function\":\"sum\"",
         AGGREGATION "\"fields.a.aggregate-function\":\"min\""},
        {"column 'a': min can't take back a -U or -D: it is refused",
         AGGREGATION "\"fields.a.aggregate-function\":\"min\"",
         AGGREGATION "\"ignore-delete\":\"true\",\"fields.a.aggregate-function\":\"min\""},
        {"listagg: Paimon 1.4 and later leave blank",
         AGGREGATION "\"fields.b.aggregate-function\":\"listagg\"",
         AGGREGATION "\"write-only\":\"false\""},
        {"'distinct' of listagg has no effect",
         AGGREGATION "\"fields.b.aggregate-function\":\"listagg\",\"fields.b.distinct\":\"true\"",
         AGGREGATION "\"fields.b.aggregate-function\":\"listagg\""},
        {"'first-row': reads show no row before", PLAIN "\"merge-engine\":\"first-row\"",
         PARTIAL "\"write-only\":\"false\""},
        {"'first-row' with 'changelog-producer' = 'none'", PLAIN "\"merge-engine\":\"first-row\"",
         PLAIN "\"merge-engine\":\"first-row\",\"changelog-producer\":\"lookup\""},
        {"'changelog-producer' = 'none': who reads", AGGREGATION "\"write-only\":\"false\"",
         AGGREGATION "\"changelog-producer\":\"lookup\""},
        {"'changelog-producer' = 'input': rows that come", PLAIN "\"changelog-producer\":\"input\"",
         PLAIN "\"changelog-producer\":\"lookup\""},
        {"a row that did not change gives -U and +U", PLAIN "\"changelog-producer\":\"lookup\"",
         PLAIN "\"changelog-producer\":\"lookup\",\"changelog-producer.row-deduplicate\":\"true\""},
        {"'full-compaction': each commit compacts all",
         PLAIN "\"changelog-producer\":\"full-compaction\"",
         PLAIN "\"changelog-producer\":\"full-compaction\",\"full-compaction.delta-commits\":5"},
        {"'changelog-producer' with 'write-only': changes are told by",
         PLAIN "\"changelog-producer\":\"lookup\",\"write-only\":\"true\"",
         PLAIN "\"changelog-producer\":\"lookup\""},
        {"'full-compaction.delta-commits' with 'changelog-producer' = 'lookup'",
         PLAIN "\"changelog-producer\":\"lookup\",\"full-compaction.delta-commits\":5",
         PLAIN "\"changelog-producer\":\"lookup\""},
        {"'commit.force-compact': a commit waits", PLAIN "\"commit.force-compact\":\"true\"",
         PLAIN "\"write-only\":\"false\""},
        {"'compaction.optimization-interval': a writer",
         PLAIN "\"compaction.optimization-interval\":\"1 h\"", PLAIN "\"write-only\":\"false\""},
        {"'rowkind.field': a -U without its +U", PLAIN "\"rowkind.field\":\"b\"",
         PLAIN "\"rowkind.field\":\"b\",\"ignore-update-before\":\"true\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_schema schema = merge_schema(true, false, cases[i].here);
        const char *found = strstr(hazards_of(&schema), cases[i].line);
        if (!found) {
            (void)fprintf(stderr, "%s: %s\n", cases[i].line, hazards_of(&schema));
        }
        CHECK(found);
        schema = merge_schema(true, false, cases[i].elsewhere);
        CHECK(!strstr(hazards_of(&schema), cases[i].line));
    }
}

static void a_key_without_its_partition_is_a_hazard(void)
{
    struct tn_schema schema = schema_of("\"k\"", "\"p\"", "\"bucket\":1");
    CHECK(strstr(hazards_of(&schema), "the primary key lacks the partition key 'p'"));
}

/* As Paimon 1.3.1 parses them; -1: it doesn't. */
static void sizes_are_parsed_as_paimon_does(void)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {{"1", 1},
                 {"1b", 1},
                 {"500 bytes", 500},
                 {"1 k", 1024},
                 {"1 kb", 1024},
                 {"1kibibytes", 1024},
                 {"2 M", 2097152},
                 {"3gb", 3221225472},
                 {"1 TB", 1099511627776},
                 {" 7 mb ", 7340032},
                 {"9223372036854775807", INT64_MAX},
                 {"9223372036854775808", -1},
                 {"8388608 t", -1},
                 {"1.5 mb", -1},
                 {"-1", -1},
                 {"", -1},
                 {"mb", -1},
                 {"1 xb", -1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t bytes = -1;
        bool good = tn_parse_size(tn_bytes_of(cases[i].text), &bytes);
        CHECK(good == (cases[i].bytes >= 0) && bytes == cases[i].bytes);
    }
}

static void durations_are_parsed_as_paimon_does(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {{"1", 1},         {"1d", 86400000}, {"2 days", 172800000}, {"1 H", 3600000},
                 {"3min", 180000}, {"3 m", 180000},  {"1minute", 60000},    {"4sec", 4000},
                 {"5 milli", 5},   {"7 ns", 0},      {"2500 micros", 2},    {" 2 h ", 7200000},
                 {"6 us", -1},     {"1.5 h", -1},    {"PT1H", -1},          {"-1", -1},
                 {"", -1},         {"1 week", -1},   {"106751991168 d", -1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -1;
        bool good = tn_parse_duration(tn_bytes_of(cases[i].text), &ms);
        CHECK(good == (cases[i].ms >= 0) && ms == cases[i].ms);
    }
}

static void help_lists_every_option_once(void)
{
    static unsigned char memory[1 << 16];
    struct tn_buf lines;
    tn_buf_init(&lines, memory, sizeof(memory));
    tn_options_help(&lines);
    tn_buf_byte(&lines, 0);
    CHECK(!lines.overflow);
    int count = 0;
    for (char *line = (char *)memory; *line; line = strchr(line, '\n') + 1, count++) {
        char name[100] = "\n";
        memcpy(name + 1, line, strcspn(line, "\t") + 1);
        CHECK(strstr(line, name) == NULL);
    }
    CHECK(count > 140);
}

static void a_small_arena_is_again(void)
{
    struct tn_schema schema =
        schema_of("\"k\"", "",
                  "\"bucket\":1,\"sequence.field\":\"v\",\"bucket-key\":\"k\","
                  "\"data-file.path-directory\":\"d\"");
    tn_rc rc = TN_AGAIN;
    for (size_t size = 0; rc == TN_AGAIN; size += 8) {
        unsigned char *memory = malloc(size + 1);
        struct tn_arena small;
        struct tn_options options;
        tn_arena_init(&small, memory, size);
        rc = tn_options_read(&schema, TN_OPTIONS_CREATE, &small, &options, &err);
        CHECK(rc == TN_AGAIN || rc == TN_OK);
        free(memory);
    }
}

static const struct test tests[] = {
    TEST(defaults_are_paimons),
    TEST(options_of_append_tables),
    TEST(values_are_obeyed),
    TEST(off_peak_hours_are_from_one_to_before_the_other),
    TEST(what_cannot_be_obeyed_is_refused_by_name),
    TEST(a_script_goes_with_plain_tables),
    TEST(append_tables_need_a_bucket_key_for_buckets),
    TEST(changelogs_outlive_snapshots_when_one_option_says_so),
    TEST(harmless_values_pass),
    TEST(a_missing_format_is_parquet_for_who_writes),
    TEST(readers_refuse_only_what_changes_rows),
    TEST(old_append_tables_with_buckets_are_read),
    TEST(a_plain_table_has_no_hazards),
    TEST(columns_have_functions_and_groups),
    TEST(changelog_options_are_read_and_not_written),
    TEST(merge_options_that_contradict_are_refused),
    TEST(merge_engines_have_hazards),
    TEST(hazards_are_one_line_each),
    TEST(a_key_without_its_partition_is_a_hazard),
    TEST(sizes_are_parsed_as_paimon_does),
    TEST(durations_are_parsed_as_paimon_does),
    TEST(help_lists_every_option_once),
    TEST(a_small_arena_is_again),
};

int main(int argc, char **argv)
{
    return run_tests_on_heap(argc, argv, tests, COUNT(tests), HEAP_SIZE);
}
