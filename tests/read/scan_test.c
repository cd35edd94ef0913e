/* Scans of random tables of several levels against the newest version of each key: any columns, in
 * any order, with and without deletes and predicates; and what a scan says when files are missing.
 */
#include "read/scan.h"

#include "commit/manifest.h"
#include "file/names.h"
#include "format/binrow.h"
#include "levels/bed.h"
#include "sim/medium.h"

enum { WINDOW_SIZE = 256 << 10, SCAN_ARENA_SIZE = 256 << 10 };

#define ROOT "db.db/t"

static struct bed bed;
static struct tn_snapshot snapshot;
static struct tn_schemas schemas;
static struct tn_scan scan;
static unsigned char *window;
static struct tn_arena scan_arena;

/* ---- a snapshot of the bed's files ---- */

static void write_schema(void)
{
    struct setup *s = &bed.s;
    static unsigned char text[64 << 10];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text);
    tn_schema_encode(&bed.t.schema, &buf);
    CHECK(!buf.overflow);
    struct tn_io *io = s->worker.io;
    tn_rc rc = io->vtable->make_dir(io, ROOT "/schema", &s->err);
    CHECK_OK(rc, s->err);
    rc = tn_io_write_new(io, ROOT "/schema/schema-4", tn_buf_bytes(&buf), &s->err);
    CHECK_OK(rc, s->err);
}

static void write_manifests(void)
{
    struct setup *s = &bed.s;
    struct tn_manifest_writer writer;
    struct tn_manifest_meta meta;
    int64_t size;
    tn_rc rc = s->worker.io->vtable->make_dir(s->worker.io, ROOT "/manifest", &s->err);
    CHECK_OK(rc, s->err);
    rc = tn_manifest_begin(&writer, ROOT "/manifest/manifest-0", false, &bed.t.schema,
                           TN_CODEC_ID_ZSTANDARD, &s->worker, &s->err);
    CHECK_OK(rc, s->err);
    for (uint32_t i = 0; i < bed.file_count; i++) {
        struct tn_entry entry = {.kind = TN_ENTRY_ADD,
                                 .partition = tn_binrow_empty,
                                 .total_buckets = 1,
                                 .file = bed.metas[i]};
        rc = tn_manifest_add_entry(&writer, &entry, &s->err);
        CHECK_OK(rc, s->err);
    }
    rc = tn_manifest_finish(&writer, &s->arena, &meta, &size, &s->err);
    CHECK_OK(rc, s->err);
    for (int list = 0; list < 2; list++) { /* all in the base list, the delta list is empty */
        rc = tn_manifest_begin(&writer, list == 0 ? ROOT "/manifest/base" : ROOT "/manifest/delta",
                               true, &bed.t.schema, TN_CODEC_ID_ZSTANDARD, &s->worker, &s->err);
        CHECK_OK(rc, s->err);
        if (list == 0) {
            rc = tn_manifest_add_meta(&writer, &meta, &s->err);
            CHECK_OK(rc, s->err);
        }
        rc = tn_manifest_finish(&writer, &s->arena, NULL, &size, &s->err);
        CHECK_OK(rc, s->err);
    }
    snapshot = (struct tn_snapshot){.base_manifest_list = "base", .delta_manifest_list = "delta"};
}

static void table_make(uint64_t *seed)
{
    bed_make(&bed, 1, seed);
    bed.t.options.bucket = 1;
    bed.t.options.ignore_delete = random_below(seed, 4) == 0;
    bed.t.options.sequence_fields = bed.order.sequence_fields;
    bed.t.options.sequence_descending = bed.order.sequence_descending;
    bed.t.options.bucket_key = bed.t.read.keys;
    write_schema();
    write_manifests();
}

/* ---- scans ---- */

static struct tn_scan_spec spec_of(void)
{
    return (struct tn_scan_spec){.root = ROOT,
                                 .snapshot = &snapshot,
                                 .schema = &bed.t.schema,
                                 .options = &bed.t.options,
                                 .schemas = &schemas};
}

static tn_rc open_scan(const struct tn_scan_spec *spec)
{
    struct setup *s = &bed.s;
    tn_arena_reset(&scan_arena, 0);
    tn_schemas_init(&schemas, s->worker.io, ROOT, &scan_arena);
    return tn_scan_open(&scan, spec, window, WINDOW_SIZE, &scan_arena, &s->worker, &s->err);
}

static uint32_t open_files(void)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < bed.s.disk.handle_count; i++) {
        open += bed.s.disk.handles[i].open;
    }
    return open;
}

/* The shown columns of a row that came are those of the model's. */
static void check_row(const struct tn_kv *kv, const struct tn_kv *want,
                      const struct tn_scan_spec *spec)
{
    const struct tn_projection *p = &scan.projection;
    CHECK(kv->sequence == want->sequence && kv->kind == want->kind);
    CHECK(kv->prefix == want->prefix);
    CHECK(p->columns.count == (spec->fields ? spec->field_count : bed.t.schema.field_count));
    for (uint32_t i = 0; i < p->columns.count; i++) {
        uint32_t field = spec->fields ? spec->fields[i] : i;
        struct tn_value a;
        struct tn_value b;
        tn_row_get(&p->layout, kv->row, p->columns.index[i], &a);
        tn_row_get(&bed.t.layout, want->row, field, &b);
        CHECK(tn_value_compare(&bed.t.types[field], &a, &b) == 0);
    }
}

static bool wanted(const struct tn_kv *kv, const struct tn_scan_spec *spec)
{
    static int32_t column_of[TABLE_COLUMNS_MAX];
    for (uint32_t i = 0; i < TABLE_COLUMNS_MAX; i++) {
        column_of[i] = (int32_t)i;
    }
    return kv && (spec->keep_deletes || !tn_row_kind_retracts(kv->kind)) &&
           (!spec->predicate ||
            tn_predicate_match(spec->predicate, &bed.t.layout, column_of, kv->row));
}

static uint32_t check_scan(const struct tn_scan_spec *spec)
{
    struct setup *s = &bed.s;
    size_t mark = tn_arena_mark(&s->worker.arena);
    tn_rc rc = open_scan(spec);
    CHECK_OK(rc, s->err);
    uint32_t rows = 0;
    struct tn_kv kv;
    for (uint32_t key = 0; key < bed.t.row_count; key++) {
        const struct tn_kv *want = bed_newest(&bed, key, spec->options->ignore_delete);
        if (!wanted(want, spec)) {
            continue;
        }
        rc = tn_scan_next(&scan, &kv, &s->err);
        CHECK_OK(rc, s->err);
        check_row(&kv, want, spec);
        rows++;
    }
    for (int i = 0; i < 3; i++) { /* the end stays the end */
        rc = tn_scan_next(&scan, &kv, &s->err);
        CHECK(rc == TN_ABSENT);
    }
    tn_scan_close(&scan);
    CHECK(tn_arena_mark(&s->worker.arena) == mark);
    CHECK(open_files() == 0);
    return rows;
}

static void draw_fields(struct tn_scan_spec *spec, uint32_t *fields, uint64_t *seed)
{
    spec->field_count = 1 + random_below(seed, 6);
    for (uint32_t i = 0; i < spec->field_count; i++) {
        fields[i] = random_below(seed, bed.t.schema.field_count);
    }
    spec->fields = fields;
}

/* Some column equals what it has in one of the newest versions: rows that are shadowed and have it,
 * too, must not come. */
static void draw_predicate(struct tn_scan_spec *spec, uint64_t *seed)
{
    struct setup *s = &bed.s;
    uint32_t *field = tn_arena_take(&s->arena, sizeof *field);
    *field = random_below(seed, bed.t.schema.field_count);
    for (uint32_t tries = 0; tries < 50 && !spec->predicate; tries++) {
        const struct tn_kv *kv =
            bed_newest(&bed, random_below(seed, bed.t.row_count), spec->options->ignore_delete);
        if (!kv || tn_row_null(kv->row, *field)) {
            continue;
        }
        struct tn_value value;
        struct tn_predicate *predicate;
        tn_row_get(&bed.t.layout, kv->row, *field, &value);
        tn_rc rc = tn_predicate_equals(&bed.t.schema, (struct tn_columns){field, 1}, &value,
                                       &s->arena, &predicate, &s->err);
        CHECK_OK(rc, s->err);
        spec->predicate = predicate;
    }
}

static void a_scan_yields_the_newest_rows_that_match(void)
{
    uint32_t rows = 0;
    uint32_t found = 0;
    for (uint64_t round = 0; round < 15; round++) {
        uint64_t seed = round;
        table_make(&seed);
        struct tn_scan_spec spec = spec_of();
        rows += check_scan(&spec);
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t fields[6];
            spec = spec_of();
            spec.keep_deletes = random_below(&seed, 2) == 1;
            if (random_below(&seed, 2) == 1) {
                draw_fields(&spec, fields, &seed);
            }
            if (random_below(&seed, 2) == 1) {
                draw_predicate(&spec, &seed);
            }
            uint32_t count = check_scan(&spec);
            found += spec.predicate && count > 0;
        }
        bed_end(&bed);
    }
    CHECK(rows > 300);
    CHECK(found > 10);
}

/* A scan that is closed anywhere leaves nothing open, and the arena as it was. */
static void a_scan_may_be_closed_at_any_row(void)
{
    uint64_t seed = 31;
    table_make(&seed);
    struct setup *s = &bed.s;
    struct tn_scan_spec spec = spec_of();
    spec.keep_deletes = true;
    for (uint32_t rows = 0; rows < 20; rows++) {
        size_t mark = tn_arena_mark(&s->worker.arena);
        tn_rc rc = open_scan(&spec);
        CHECK_OK(rc, s->err);
        struct tn_kv kv;
        for (uint32_t i = 0; i < rows && rc == TN_OK; i++) {
            rc = tn_scan_next(&scan, &kv, &s->err);
        }
        tn_scan_close(&scan);
        CHECK(tn_arena_mark(&s->worker.arena) == mark);
        CHECK(open_files() == 0);
    }
    bed_end(&bed);
}

/* A scan opens and comes to what is damaged, and names it. */
static void ends_corrupt(const char *name)
{
    struct tn_err *err = &bed.s.err;
    struct tn_scan_spec spec = spec_of();
    tn_rc rc = open_scan(&spec);
    CHECK_OK(rc, *err);
    struct tn_kv kv;
    while (rc == TN_OK) {
        rc = tn_scan_next(&scan, &kv, err);
    }
    CHECK(rc == TN_CORRUPT);
    CHECK(strstr(err->text, name) != NULL);
    tn_scan_close(&scan);
    CHECK(open_files() == 0);
}

/* A file that is missing is never taken for the end of the rows. */
static void a_missing_file_is_corrupt(void)
{
    static const char *const paths[] = {ROOT "/manifest/base", ROOT "/manifest/delta",
                                        ROOT "/manifest/manifest-0", NULL};
    for (size_t i = 0; i < COUNT(paths); i++) {
        uint64_t seed = 40 + i;
        table_make(&seed);
        struct setup *s = &bed.s;
        const char *path = paths[i] ? paths[i]
                                    : tn_arena_format(&s->arena, "%s%s", BED_DIR,
                                                      bed.files[bed.file_count - 1]->name);
        tn_rc rc = s->worker.io->vtable->unlink(s->worker.io, path, &s->err);
        CHECK_OK(rc, s->err);
        ends_corrupt(path);
        bed_end(&bed);
    }
}

/* Nor is a schema that a file names. */
static void a_missing_schema_is_corrupt(void)
{
    uint64_t seed = 50;
    table_make(&seed);
    struct setup *s = &bed.s;
    bed.metas[0].schema_id = 3;
    tn_rc rc = s->worker.io->vtable->unlink(s->worker.io, ROOT "/manifest/manifest-0", &s->err);
    CHECK_OK(rc, s->err);
    rc = s->worker.io->vtable->unlink(s->worker.io, ROOT "/manifest/base", &s->err);
    CHECK_OK(rc, s->err);
    rc = s->worker.io->vtable->unlink(s->worker.io, ROOT "/manifest/delta", &s->err);
    CHECK_OK(rc, s->err);
    write_manifests();
    ends_corrupt("schema-3");
    bed_end(&bed);
}

static const struct test tests[] = {
    TEST(a_scan_yields_the_newest_rows_that_match),
    TEST(a_scan_may_be_closed_at_any_row),
    TEST(a_missing_file_is_corrupt),
    TEST(a_missing_schema_is_corrupt),
};

int main(int argc, char **argv)
{
    window = malloc(WINDOW_SIZE);
    tn_arena_init(&scan_arena, malloc(SCAN_ARENA_SIZE), SCAN_ARENA_SIZE);
    return run_tests(argc, argv, tests, COUNT(tests));
}
