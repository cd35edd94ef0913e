/* Whole tables against what Paimon 1.3.1 made of the same commits (tests/golden/merge): on the
 * simulated disk each case is created, written in its compaction's timing, and read: rows, what a
 * follower gets of each snapshot, kinds of snapshots, files. Cases that tarn refuses are named
 * below, each with its reason; every other one must agree. */
#include "changelog/tail.h"
#include "ingest/decode.h"
#include "merge/golden.h"
#include "table/bed.h"
#include "table/census.h"
#include "table/make.h"

enum { KEPT_SIZE = 4 << 20, LIST_MAX = 2000, COLUMNS_MAX = 16, PACKED_MAX = 4096 };

static const char nested[] = "ARRAY and MAP columns are not merged";
static const char deletion_vectors[] = "deletion vectors are not written";

static const struct left_out {
    const char *name;
    const char *reason;
} left_out[] = {
    {"agg_collect", nested},
    {"agg_collect_distinct", nested},
    {"agg_collect_single_row_not_distinct", nested},
    {"agg_collect_retract", nested},
    {"agg_collect_null_accumulate", nested},
    {"agg_collect_retract_more_than_present", nested},
    {"agg_merge_map", nested},
    {"agg_merge_map_retract", nested},
    {"agg_nested_update_append", nested},
    {"agg_nested_update_key", nested},
    {"agg_nested_update_key_retract", nested},
    {"agg_nested_update_retract_nokey", nested},
    {"agg_nested_update_count_limit", nested},
    {"agg_nested_update_key_null_merge", nested},
    {"agg_nested_update_count_limit_with_key_131", nested},
    {"agg_max_array_rejected", nested},
    {"dv_dedup_none_auto", deletion_vectors},
    {"dv_dedup_uncompacted_reads_nothing", deletion_vectors},
    {"dv_dedup_lookup_auto", deletion_vectors},
    {"dv_input_auto", deletion_vectors},
    {"dv_seq_field_late", deletion_vectors},
    {"dv_agg_sum", deletion_vectors},
    {"dv_partial_update_lookup", deletion_vectors},
    {"dv_full_compact_after", deletion_vectors},
    {"dv_big_base_then_updates", deletion_vectors},
    {"dv_lookup_big_base_then_updates", deletion_vectors},
    {"dv_agg_big_base_lookup", deletion_vectors},
    {"dv_agg_levels_above_zero", deletion_vectors},
    {"dv_full_compaction_producer", deletion_vectors},
    {"dv_first_row_rejected", deletion_vectors},
    {"pu_delete_lone_key_is_silently_kept",
     "Paimon lets a -D in that no merge of this table takes, and the next row of its key makes the "
     "table unreadable: tarn refuses it where it comes in (tests/merge), so no file has one"},
};

static struct bed_engine engine;
static struct sim_disk disk;
static struct tn_err err;
static struct tn_arena kept; /* what is read in one case */
static struct tn_env env;    /* the engine's, with the table that is written */

/* ---- lists of lines, which are compared ---- */

struct list {
    const char *lines[LIST_MAX];
    uint32_t count;
};

static struct list found;
static struct list wanted;

static void add_line(struct list *list, const char *line)
{
    CHECK(line != NULL && list->count < LIST_MAX);
    list->lines[list->count++] = line;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_lines(struct list *list)
{
    qsort(list->lines, list->count, sizeof list->lines[0], compare_lines);
}

static void show(const char *what, const struct list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        (void)fprintf(stderr, "  %s %.300s\n", what, list->lines[i]);
    }
}

static bool same_lists(const char *what)
{
    bool same = found.count == wanted.count;
    for (uint32_t i = 0; same && i < found.count; i++) {
        same = strcmp(found.lines[i], wanted.lines[i]) == 0;
    }
    if (!same) {
        (void)fprintf(stderr, " %s\n", what);
        show("wanted", &wanted);
        show("found ", &found);
    }
    return same;
}

static void begin_lists(void)
{
    found.count = 0;
    wanted.count = 0;
}

/* ---- rows ---- */

static const struct tn_row_layout *layout; /* of all columns */

static const char *line_of(struct tn_row row, const char *kind)
{
    static unsigned char memory[2 * PACKED_MAX];
    struct tn_buf text;
    tn_buf_init(&text, memory, sizeof memory);
    tn_row_format_json(layout, NULL, row, &text);
    CHECK(!text.overflow);
    return tn_arena_format(&kept, "%s%.*s", kind, (int)text.size, (const char *)text.data);
}

static struct tn_row pack(const struct cJSON *row)
{
    static unsigned char packed[PACKED_MAX];
    struct tn_value values[COLUMNS_MAX];
    CHECK(layout->column_count <= COLUMNS_MAX);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct tn_column *c = &layout->columns[i];
        values[i] = golden_value(tn_json_member(row, c->name), &c->type, &kept);
    }
    CHECK(tn_row_packed_size(layout, values) <= sizeof packed);
    return (struct tn_row){packed, tn_row_pack(layout, values, packed)};
}

/* ---- writing ---- */

static int64_t accepted[64]; /* rows of each commit that a writer let through */
static int64_t commit_count;

static bool timing_is(const struct cJSON *item, const char *timing)
{
    return strcmp(golden_text(item, "compact"), timing) == 0;
}

/* tarn makes no table with DOUBLE keys; it works on one that is there. */
static tn_rc make_as_others(const struct tn_schema *schema)
{
    static char room[8192];
    struct tn_buf text;
    tn_buf_init(&text, room, sizeof room);
    tn_schema_encode(schema, &text);
    CHECK(!text.overflow);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, BED_ROOT "/schema/", &err);
    return rc == TN_OK
               ? tn_io_write_new(&disk.io, BED_ROOT "/schema/schema-0", tn_buf_bytes(&text), &err)
               : rc;
}

static tn_rc create(const struct cJSON *item)
{
    static const char *const timings[][3] = {
        {"none", "write-only", "true"},
        {"full", "write-only", "true"},
        {"per-commit", "full-compaction.delta-commits", "1"},
        /* Paimon's writers make no full compaction of their own accord, Flink's sink does. */
        {"auto", "full-compaction.delta-commits", "1000000"}};
    const char *more[] = {"file.format", "avro", NULL, NULL, NULL};
    for (size_t i = 0; i < COUNT(timings); i++) {
        if (timing_is(item, timings[i][0])) {
            more[2] = timings[i][1];
            more[3] = timings[i][2];
        }
    }
    const char *producer = golden_option(item, "changelog-producer");
    if (timing_is(item, "auto") && (!producer || strcmp(producer, "full-compaction") != 0)) {
        more[2] = NULL;
    }
    char *json = golden_schema(item, more);
    struct tn_schema schema;
    struct tn_options options;
    size_t mark = tn_arena_mark(env.arena);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(json), env.arena, &schema, &err);
    rc = rc != TN_OK ? rc : tn_make_table(&env, BED_TABLE, &schema, &options, &err);
    if (rc == TN_UNSUPPORTED && strstr(err.text, "have no sure place")) {
        rc = make_as_others(&schema);
    }
    cJSON_free(json);
    tn_arena_reset(env.arena, mark);
    if (rc == TN_OK) {
        rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    }
    return rc;
}

static struct tn_err compaction_err; /* of the first that failed */
static tn_rc compaction_rc;

static void note_failure(void *user, const struct tn_compaction_failed *failed)
{
    (void)user;
    if (compaction_rc == TN_OK) {
        compaction_rc = tn_err_set(&compaction_err, failed->rc, 0, "%s", failed->text);
    }
}

static tn_rc open_table(bool full, struct tn_table **table)
{
    struct tn_table_spec spec = {.name = BED_TABLE,
                                 .user = full ? "another" : NULL,
                                 .identifier = -1,
                                 .compact = true,
                                 .full = full,
                                 .dedicated = full,
                                 .compaction_failed = note_failure};
    tn_rc rc = tn_table_open(&env, &spec, table, &err);
    if (rc == TN_OK) {
        layout = tn_table_layout(*table);
    }
    return rc;
}

static bool lacks_a_value(const struct cJSON *change)
{
    bool lacks = false;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct tn_column *c = &layout->columns[i];
        const struct cJSON *value = tn_json_member(tn_json_member(change, "row"), c->name);
        lacks = lacks || (!c->type.nullable && cJSON_IsNull(value));
    }
    return lacks;
}

/* NOT NULL is checked where text becomes a row; what comes behind takes it for granted. INVALID, or
 * a row came of it. */
static tn_rc decode(const struct cJSON *change)
{
    struct tn_field fields[COLUMNS_MAX];
    for (uint32_t i = 0; i < layout->column_count; i++) {
        fields[i] =
            (struct tn_field){.name = layout->columns[i].name, .type = layout->columns[i].type};
    }
    struct tn_schema schema = {.fields = fields, .field_count = layout->column_count};
    struct tn_decode_spec spec = {.input = TN_INPUT_CHANGES,
                                  .schema = &schema,
                                  .layout = layout,
                                  .record_size_max = PACKED_MAX};
    struct tn_decoder *decoder;
    struct tn_decoded decoded;
    size_t eaten;
    tn_rc rc = tn_decoder_open(&decoder, &spec, &kept, &err);
    CHECK_OK(rc, err);
    char *text = cJSON_PrintUnformatted(change);
    rc = tn_decoder_next(decoder, tn_bytes_of(text), true, &decoded, &eaten, &err);
    cJSON_free(text);
    CHECK_OK(rc, err);
    return decoded.dead ? tn_err_set(&err, TN_INVALID, 0, "%s", decoded.reason) : TN_OK;
}

static tn_rc put(struct tn_table *table, const struct cJSON *change)
{
    if (lacks_a_value(change)) {
        return decode(change);
    }
    enum tn_row_kind kind;
    CHECK(tn_row_kind_parse(tn_bytes_of(golden_text(change, "kind")), &kind));
    struct tn_row row = pack(tn_json_member(change, "row"));
    return bed_put_row(table, row, kind, &err);
}

static tn_rc commit(struct tn_table *table, const struct cJSON *changes)
{
    const struct cJSON *change;
    uint64_t before = tn_table_counts(table)->rows;
    cJSON_ArrayForEach(change, changes)
    {
        tn_rc rc = put(table, change);
        if (rc != TN_OK) {
            return rc;
        }
    }
    CHECK(commit_count < (int64_t)COUNT(accepted));
    accepted[commit_count++] = (int64_t)(tn_table_counts(table)->rows - before);
    tn_rc rc = tn_table_finish(table, (uint64_t)commit_count, &err);
    if (rc == TN_OK && compaction_rc != TN_OK) {
        err = compaction_err;
        rc = compaction_rc;
    }
    return rc;
}

static tn_rc write_commits(const struct cJSON *item)
{
    bool fresh = cJSON_IsTrue(tn_json_member(item, "fresh_writer"));
    struct tn_table *table;
    tn_rc rc = open_table(false, &table);
    if (rc != TN_OK) {
        return rc;
    }
    const struct cJSON *changes;
    cJSON_ArrayForEach(changes, tn_json_member(item, "commits"))
    {
        if (fresh && commit_count > 0) {
            tn_table_close(table);
            rc = open_table(false, &table);
            CHECK_OK(rc, err);
        }
        rc = rc != TN_OK ? rc : commit(table, changes);
    }
    struct tn_err first = err;
    tn_table_close(table);
    err = first;
    return rc;
}

/* ---- reading ---- */

static struct bed_reader reader;
static struct tn_snapshot snapshot;
static struct tn_scan_spec scan_spec;

static void read_snapshot(int64_t id)
{
    tn_rc rc = tn_snapshot_read(&disk.io, BED_ROOT, id, &engine.own, &snapshot, &err);
    CHECK_OK(rc, err);
}

/* False without a snapshot. */
static bool open_reader(int64_t *latest)
{
    static struct tn_projection all;
    tn_arena_reset(&engine.own, 0);
    const char *problem = bed_read_open(&engine, &reader);
    CHECK(!problem);
    tn_rc rc = tn_snapshot_latest(&disk.io, BED_ROOT, &engine.own, latest, &err);
    if (rc == TN_ABSENT) {
        return false;
    }
    CHECK_OK(rc, err);
    read_snapshot(*latest);
    scan_spec = (struct tn_scan_spec){.root = BED_ROOT,
                                      .snapshot = &snapshot,
                                      .schema = reader.schema,
                                      .options = &reader.options,
                                      .schemas = &reader.schemas};
    rc = tn_projection_init(&all, &scan_spec, &engine.own, &err);
    CHECK_OK(rc, err);
    layout = &all.layout;
    return true;
}

/* The last commit of a write-only table's dedicated job: everything goes to the last level. */
static tn_rc compact_fully(void)
{
    struct tn_census census;
    struct tn_table *table;
    int64_t latest;
    tn_rc rc = open_table(true, &table);
    if (rc != TN_OK) {
        return rc;
    }
    CHECK(open_reader(&latest));
    tn_census_open(&census, BED_ROOT, &snapshot, reader.schema, engine.window, BED_WINDOW_SIZE,
                   &engine.workers[TN_LANE_SHORT]);
    const struct tn_census_bucket *bucket;
    while ((rc = tn_census_next(&census, &bucket, &err)) == TN_OK) {
        while ((rc = tn_table_touch(table, bucket->partition, bucket->number, &err)) == TN_AGAIN) {
            rc = tn_table_turn(table, true, &err);
            CHECK_OK(rc, err);
        }
        CHECK_OK(rc, err);
    }
    CHECK(rc == TN_ABSENT);
    rc = tn_table_finish(table, 0, &err);
    if (rc == TN_OK && compaction_rc != TN_OK) {
        err = compaction_err;
        rc = compaction_rc;
    }
    struct tn_err first = err;
    tn_table_close(table);
    err = first;
    return rc;
}

/* What a scan finds, with the filter that it has. */
static void find_rows(void)
{
    static struct tn_scan scan;
    struct tn_kv kv;
    tn_rc rc = tn_scan_open(&scan, &scan_spec, engine.window, BED_WINDOW_SIZE, &engine.own,
                            &engine.workers[TN_LANE_LONG], &err);
    CHECK_OK(rc, err);
    while ((rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        CHECK(scan.projection.columns.count == layout->column_count);
        add_line(&found, line_of(kv.row, ""));
    }
    CHECK(rc == TN_ABSENT);
    tn_scan_close(&scan);
}

static bool same_rows(const struct cJSON *item, bool any)
{
    begin_lists();
    if (any) {
        find_rows();
    }
    const struct cJSON *row;
    cJSON_ArrayForEach(row, tn_json_member(item, "expect_rows"))
    {
        add_line(&wanted, line_of(pack(row), ""));
    }
    sort_lines(&found);
    sort_lines(&wanted);
    return same_lists("rows");
}

/* An APPEND of nothing, which Paimon makes when it is asked to and tarn doesn't. */
static bool is_empty_append(const char *kind, int64_t *commits)
{
    if (strcmp(kind, "APPEND") != 0) {
        return false;
    }
    int64_t commit_index = (*commits)++;
    return commit_index >= commit_count || accepted[commit_index] == 0;
}

static bool same_kinds(const struct cJSON *item, int64_t latest)
{
    begin_lists();
    int64_t commits = 0;
    const struct cJSON *kind;
    cJSON_ArrayForEach(kind, tn_json_member(item, "snapshot_kinds"))
    {
        if (!is_empty_append(kind->valuestring, &commits)) {
            add_line(&wanted, kind->valuestring);
        }
    }
    for (int64_t id = 1; id <= latest; id++) {
        read_snapshot(id);
        add_line(&found, tn_arena_format(&kept, "%s", snapshot.commit_kind));
    }
    return same_lists("kinds of snapshots");
}

/* Of several buckets in any order. */
static bool same_changes(const struct cJSON *item, const struct cJSON *changes, int64_t id,
                         struct tn_tail *tail)
{
    struct tn_kv kv;
    begin_lists();
    tn_rc rc = tn_tail_begin(tail, id, &err);
    while (rc == TN_OK && (rc = tn_tail_next(tail, &kv, &err)) == TN_OK) {
        add_line(&found, line_of(kv.row, tn_row_kind_text(kv.kind)));
    }
    CHECK(rc == TN_ABSENT);
    tn_tail_end(tail);
    const struct cJSON *change;
    cJSON_ArrayForEach(change, changes)
    {
        add_line(&wanted,
                 line_of(pack(tn_json_member(change, "row")), golden_text(change, "kind")));
    }
    if (tn_json_member(item, "partition_keys")) {
        sort_lines(&found);
        sort_lines(&wanted);
    }
    char what[40];
    (void)snprintf(what, sizeof what, "changes of snapshot %" PRId64, id);
    return same_lists(what);
}

static bool same_changelog(const struct cJSON *item, int64_t latest)
{
    static struct tn_tail tail;
    struct tn_tail_spec spec = {.scan = &scan_spec, .source = tn_tail_source_of(&reader.options)};
    tn_rc rc = tn_tail_open(&tail, &spec, &engine.own, &engine.workers[TN_LANE_LONG], &err);
    CHECK_OK(rc, err);
    const struct cJSON *kinds = tn_json_member(item, "snapshot_kinds");
    const struct cJSON *changelog = tn_json_member(item, "expect_changelog");
    CHECK(cJSON_GetArraySize(kinds) == cJSON_GetArraySize(changelog));
    int64_t id = 0;
    int64_t commits = 0;
    bool same = true;
    for (int i = 0; same && i < cJSON_GetArraySize(kinds); i++) {
        if (is_empty_append(cJSON_GetArrayItem(kinds, i)->valuestring, &commits)) {
            continue;
        }
        same = ++id <= latest && same_changes(item, cJSON_GetArrayItem(changelog, i), id, &tail);
    }
    return same && id == latest;
}

static tn_rc add_file(void *user, const struct tn_entry *entry, struct tn_err *e)
{
    const struct tn_file_meta *m = &entry->file;
    (void)user;
    (void)e;
    add_line(&found, tn_arena_format(&kept,
                                     "level %d rows %" PRId64 " deletes %" PRId64
                                     " sequence %" PRId64 "-%" PRId64,
                                     m->level, m->row_count, m->delete_row_count.value,
                                     m->min_sequence, m->max_sequence));
    return TN_OK;
}

static int64_t number_of(const struct cJSON *file, const char *name)
{
    int64_t number;
    CHECK(tn_json_i64(tn_json_member(file, name), &number));
    return number;
}

static bool same_files(const struct cJSON *item, int64_t latest)
{
    begin_lists();
    if (latest > 0) {
        read_snapshot(latest);
        tn_rc rc = tn_live_each(BED_ROOT, &snapshot, reader.schema, NULL,
                                &engine.workers[TN_LANE_LONG], add_file, NULL, &err);
        CHECK_OK(rc, err);
    }
    const struct cJSON *file;
    const char *files =
        tn_json_member(item, "expect_files_avro") ? "expect_files_avro" : "expect_files";
    cJSON_ArrayForEach(file, tn_json_member(item, files))
    {
        add_line(&wanted, tn_arena_format(&kept,
                                          "level %" PRId64 " rows %" PRId64 " deletes %" PRId64
                                          " sequence %" PRId64 "-%" PRId64,
                                          number_of(file, "level"), number_of(file, "rows"),
                                          number_of(file, "delete_rows"),
                                          number_of(file, "min_seq"), number_of(file, "max_seq")));
    }
    sort_lines(&found);
    sort_lines(&wanted);
    return same_lists("files");
}

static bool reads_as_expected(const struct cJSON *item)
{
    int64_t latest = 0;
    bool any = open_reader(&latest);
    return same_kinds(item, latest) && same_changelog(item, latest) && same_files(item, latest) &&
           same_rows(item, any);
}

/* ---- cases ---- */

static int ran;
static int wrong;
static int told;    /* with a changelog producer */
static int refused; /* as Paimon does */
static int passed_over;

static tn_rc write_case(const struct cJSON *item)
{
    tn_rc rc = create(item);
    if (rc == TN_OK) {
        rc = write_commits(item);
    }
    return rc == TN_OK && timing_is(item, "full") ? compact_fully() : rc;
}

/* What is not refused when it is written fails when it is read. */
static tn_rc read_all(void)
{
    static struct tn_scan scan;
    int64_t latest;
    if (!open_reader(&latest)) {
        return TN_OK;
    }
    tn_rc rc = tn_scan_open(&scan, &scan_spec, engine.window, BED_WINDOW_SIZE, &engine.own,
                            &engine.workers[TN_LANE_LONG], &err);
    CHECK_OK(rc, err);
    struct tn_kv kv;
    while ((rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
    }
    tn_scan_close(&scan);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static bool run_case(const struct cJSON *item)
{
    bool fails = tn_json_member(item, "expect_error") != NULL;
    commit_count = 0;
    compaction_rc = TN_OK;
    tn_rc rc = write_case(item);
    if (fails) {
        rc = rc == TN_OK ? read_all() : rc;
        refused++;
        return rc == TN_INVALID;
    }
    return rc == TN_OK && reads_as_expected(item);
}

static void begin_case(void)
{
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_engine_start(&engine, &disk.io, 1);
    env = engine.env;
    tn_arena_reset(&kept, 0);
    err.text[0] = 0;
}

static void end_case(void)
{
    bed_engine_stop(&engine);
    sim_disk_deinit(&disk);
}

static void check_case(const struct cJSON *item)
{
    const char *name = golden_text(item, "name");
    const char *only = getenv("CASE");
    for (size_t i = 0; i < COUNT(left_out); i++) {
        if (strcmp(left_out[i].name, name) == 0) {
            passed_over++;
            return;
        }
    }
    if (only && strcmp(only, name) != 0) {
        return;
    }
    begin_case();
    bool good = run_case(item);
    if (!good) {
        (void)fprintf(stderr, "%s: %s\n", name, err.text);
    }
    wrong += !good;
    ran++;
    told += golden_option(item, "changelog-producer") != NULL;
    end_case();
}

static void tables_are_those_of_paimon_1_3(void)
{
    int count = golden_each("tests/golden/merge/cases.jsonl", check_case);
    (void)printf("%d cases: %d ran, of them %d with a changelog producer and %d that are refused; "
                 "%d left out\n",
                 count, ran, told, refused, passed_over);
    CHECK(wrong == 0);
    CHECK(passed_over == (int)COUNT(left_out)); /* no name is there for nothing */
    CHECK(getenv("CASE") || ran + passed_over == count);
}

/* A batch read sees nothing of level 0, whose rows no changelog will tell. */
static void check_start(const struct cJSON *item)
{
    if (strcmp(golden_text(item, "name"), "first_row_uncompacted_reads_nothing") != 0) {
        return;
    }
    begin_case();
    commit_count = 0;
    compaction_rc = TN_OK;
    tn_rc rc = write_case(item);
    CHECK_OK(rc, err);
    int64_t latest;
    CHECK(open_reader(&latest));
    struct tn_plan_filter filter = {tn_tail_in_state, &reader.options, true};
    scan_spec.filter = &filter;
    begin_lists();
    find_rows();
    CHECK(found.count == 1 && strstr(found.lines[0], "\"v\":10,"));
    ran++;
    end_case();
}

static void a_follower_of_first_rows_begins_with_level_0(void)
{
    ran = 0;
    (void)golden_each("tests/golden/merge/cases.jsonl", check_start);
    CHECK(ran == 1);
}

static const struct test tests[] = {
    TEST(tables_are_those_of_paimon_1_3),
    TEST(a_follower_of_first_rows_begins_with_level_0),
};

int main(int argc, char **argv)
{
    void *memory = malloc(KEPT_SIZE);
    CHECK(memory != NULL);
    tn_arena_init(&kept, memory, KEPT_SIZE);
    int code = bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
    free(memory);
    return code;
}
