/* rivals: of a snapshot that is gone, and of which a manifest is left, it is told bucket by bucket
 * whether what it did may have changed rows; a manifest may say anything. */
#include "commit/bed.h"
#include "commit/manifest.h"
#include "table/bucket.h"
#include "table/rivals.h"

enum { FILES_MAX = 4, MANY = 1500 };

struct file {
    char kind; /* '+', '-', or 0: no more */
    char name;
    bool made; /* by a compaction */
    int64_t rows;
    int64_t sequence;
};

static struct bed bed;
static struct tn_manifest_writer writer;
static struct tn_manifest_meta meta;
static uint64_t names[TN_RIVALS_MAX];

static void begin(void)
{
    struct tn_err err;
    bed_init(&bed, 1, false);
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ROOT "/manifest", &err);
    CHECK_OK(rc, err);
    rc = tn_manifest_begin(&writer, ROOT "/manifest/manifest-1", false, &bed.schema,
                           TN_CODEC_ID_NULL, &bed.worker, &err);
    CHECK_OK(rc, err);
}

static void add(int32_t bucket, const char *name, const struct file *file)
{
    struct tn_err err;
    struct tn_entry entry =
        bed_entry(&bed, name, (struct bed_file){.bucket = bucket, .rows = 1, .last = 1});
    entry.kind = file->kind == '+' ? TN_ENTRY_ADD : TN_ENTRY_DELETE;
    entry.file.row_count = file->rows;
    entry.file.max_sequence = file->sequence;
    entry.file.file_source.value = file->made;
    tn_rc rc = tn_manifest_add_entry(&writer, &entry, &err);
    CHECK_OK(rc, err);
}

static struct tn_rivals look(void)
{
    struct tn_err err;
    struct tn_rivals rivals = {.root = ROOT, .names = names, .most = TN_RIVALS_MAX};
    struct tn_foreign foreign = {.id = 7, .manifest = &meta};
    tn_rc rc = tn_manifest_finish(&writer, &bed.own, &meta, NULL, &err);
    CHECK_OK(rc, err);
    rc = tn_rivals_see(&rivals, &foreign, &bed.worker, &err);
    CHECK_OK(rc, err);
    return rivals;
}

static bool changed(const struct tn_rivals *rivals, int32_t bucket)
{
    return tn_rivals_have_one(rivals, tn_bucket_name(bed_partition(&bed, NULL), bucket));
}

static const struct {
    struct file files[FILES_MAX];
    bool changed;
} cases[] = {
    /* what compactions do: many become one, of as many rows or fewer; one is moved */
    {{{'-', 'a', false, 10, 5}, {'-', 'b', false, 20, 7}, {'+', 'c', true, 30, 7}}, false},
    {{{'-', 'a', false, 10, 5}, {'-', 'b', false, 20, 7}, {'+', 'c', true, 12, 6}}, false},
    {{{'-', 'a', false, 10, 5}, {'+', 'a', false, 10, 5}}, false},
    {{{'-', 'a', false, 10, 5}, {'+', 'b', true, 4, 5}, {'+', 'c', true, 6, 5}}, false},
    /* what only others do */
    {{{'+', 'a', false, 10, 5}}, true},
    {{{'+', 'a', true, 10, 5}}, true},
    {{{'-', 'a', false, 10, 5}}, true},
    {{{'-', 'a', false, 10, 5}, {'+', 'b', false, 10, 5}}, true},
    {{{'-', 'a', false, 10, 5}, {'+', 'b', true, 11, 5}}, true},
    {{{'-', 'a', false, 10, 5}, {'+', 'b', true, 10, 6}}, true},
    {{{'-', 'a', false, 10, 5}, {'+', 'b', true, 6, 5}, {'+', 'c', true, 5, 5}}, true},
    /* more rows than can be counted */
    {{{'-', 'a', false, INT64_MAX, 5}, {'+', 'b', true, INT64_MAX, 5}}, false},
    {{{'-', 'a', false, INT64_MAX, 5}, {'-', 'b', false, 1, 5}, {'+', 'c', true, 1, 5}}, true},
    {{{'-', 'a', false, INT64_MAX, 5},
      {'-', 'b', false, INT64_MAX, 5},
      {'-', 'c', false, 12, 5},
      {'+', 'd', true, 10, 5}},
     true},
};

static void a_manifest_tells_whether_rows_changed(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const struct file other = {'+', 'x', false, 1, 1};
        begin();
        for (int f = 0; f < FILES_MAX && cases[i].files[f].kind; f++) {
            const char name[] = {cases[i].files[f].name, 0};
            add(0, name, &cases[i].files[f]);
        }
        add(1, "x", &other);
        struct tn_rivals rivals = look();
        if (changed(&rivals, 0) != cases[i].changed) {
            (void)fprintf(stderr, "case %zu\n", i);
        }
        CHECK(changed(&rivals, 0) == cases[i].changed);
        CHECK(changed(&rivals, 1));
        CHECK(!rivals.all && rivals.id == 7);
        bed_deinit(&bed);
    }
}

/* More files, or buckets, than are told apart: then they may be anybody's. */
static void what_is_too_much_to_tell_is_all(void)
{
    static const struct file taken = {'-', 0, false, 1, 1};
    for (int buckets = 0; buckets < 2; buckets++) {
        begin();
        for (int32_t i = 0; i < MANY; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "f%d", i);
            add(buckets ? i : 0, name, &taken);
        }
        struct tn_rivals rivals = look();
        CHECK(rivals.all && changed(&rivals, MANY));
        bed_deinit(&bed);
    }
}

static const struct test tests[] = {
    TEST(a_manifest_tells_whether_rows_changed),
    TEST(what_is_too_much_to_tell_is_all),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
