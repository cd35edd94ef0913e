/* What a committable says is what was put in, whatever is done to its bytes is seen, and nothing of
 * it that doesn't belong to the table gets through. */
#include "commit/bed.h"
#include "given.h"
#include "upload/committable.h"

enum { TEXT_SIZE = 64 * 1024, CASES = 300 };

struct maker {
    struct bed bed;
    struct tn_meta_plan plan;
    struct tn_committable_table table;
    struct tn_entry entries[16];
    struct tn_committable committable;
    uint64_t random;
    unsigned char memory[TEXT_SIZE];
    struct tn_buf text;
    struct tn_err err;
};

static struct maker m;

static void set_up(uint64_t seed)
{
    bed_init(&m.bed, seed, true);
    m.random = seed;
    tn_rc rc = tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), &m.bed.own, &m.plan, &m.err);
    CHECK_OK(rc, m.err);
    m.bed.options.changelog_producer = TN_CHANGELOG_INPUT;
    m.table = (struct tn_committable_table){"db.t", ROOT, &m.bed.schema, &m.bed.options};
}

static void make(uint32_t added, uint32_t changelog)
{
    int64_t rows = 0;
    CHECK(added + changelog <= COUNT(m.entries));
    for (uint32_t i = 0; i < added + changelog; i++) {
        char name[64];
        int64_t first = random_below(&m.random, 1000);
        (void)snprintf(name, sizeof name, "%s-%08x-%u.avro", i < added ? "data" : "changelog",
                       random_below(&m.random, UINT32_MAX), (unsigned)i);
        struct bed_file file = {.dt = random_below(&m.random, 2) ? "2024-01-01" : NULL,
                                .bucket = (int32_t)random_below(&m.random, 2),
                                .first = first,
                                .last = first + random_below(&m.random, 9),
                                .rows = 1 + random_below(&m.random, 1000)};
        m.entries[i] = bed_entry(&m.bed, name, file);
        rows += i < added ? file.rows : 0;
    }
    m.committable = (struct tn_committable){.table = "db.t",
                                            .user = "tarn-\"one\"",
                                            .identifier = INT64_MAX,
                                            .first_id = 5,
                                            .last_id = 7,
                                            .row_count = rows,
                                            .watermark = {-3, random_below(&m.random, 2) == 0},
                                            .added = m.entries,
                                            .added_count = added,
                                            .changelog = m.entries + added,
                                            .changelog_count = changelog};
    tn_buf_init(&m.text, m.memory, sizeof m.memory);
    tn_committable_encode(&m.committable, &m.text);
    CHECK(!m.text.overflow);
}

static tn_rc read_back(struct tn_bytes bytes, struct tn_committable *read)
{
    return tn_committable_decode(bytes, &m.plan, &m.bed.own, read, &m.err);
}

static void what_is_read_is_what_was_written(void)
{
    uint64_t first_seed = given_number("SEED", 1);
    for (uint64_t seed = first_seed; seed < first_seed + 20; seed++) {
        struct tn_committable read;
        set_up(seed);
        make(1 + random_below(&m.random, 8), random_below(&m.random, 8));
        tn_rc rc = read_back(tn_buf_bytes(&m.text), &read);
        CHECK_OK(rc, m.err);
        CHECK(strcmp(read.user, m.committable.user) == 0 && read.identifier == INT64_MAX);
        CHECK(read.first_id == 5 && read.last_id == 7 && read.row_count == m.committable.row_count);
        CHECK(read.watermark.present == m.committable.watermark.present);
        CHECK(!read.watermark.present || read.watermark.value == -3);
        CHECK(read.added_count == m.committable.added_count);
        CHECK(read.changelog_count == m.committable.changelog_count);
        static unsigned char memory[TEXT_SIZE];
        struct tn_buf again;
        tn_buf_init(&again, memory, sizeof memory);
        tn_committable_encode(&read, &again);
        CHECK(tn_bytes_equal(tn_buf_bytes(&again), tn_buf_bytes(&m.text)));
        rc = tn_committable_check(&read, &m.table, &m.bed.worker.arena, &m.err);
        CHECK_OK(rc, m.err);
        bed_deinit(&m.bed);
    }
}

/* Each byte changed, and each prefix. */
static void a_damaged_one_is_seen(void)
{
    set_up(given_number("SEED", 1));
    make(2, 1);
    struct tn_committable read;
    for (size_t at = 0; at < m.text.size; at++) {
        size_t mark = tn_arena_mark(&m.bed.own);
        unsigned char was = m.memory[at];
        m.memory[at] ^= (unsigned char)(1 + random_below(&m.random, 255));
        tn_rc rc = read_back(tn_buf_bytes(&m.text), &read);
        CHECK(rc == TN_CORRUPT || rc == TN_UNSUPPORTED);
        m.memory[at] = was;
        rc = read_back((struct tn_bytes){m.memory, at}, &read);
        CHECK(rc == TN_CORRUPT || rc == TN_UNSUPPORTED);
        tn_arena_reset(&m.bed.own, mark);
    }
    bed_deinit(&m.bed);
}

/* ---- what is refused ---- */

static void other_table(void)
{
    m.committable.table = "db.u";
}
static void later_schema(void)
{
    m.committable.schema_id = 1;
}
static void later_file_schema(void)
{
    m.entries[1].file.schema_id = 1;
}
static void higher_level(void)
{
    m.entries[1].file.level = 1;
}
static void taken_away(void)
{
    m.entries[1].kind = TN_ENTRY_DELETE;
}
static void other_folder(void)
{
    m.entries[1].file.file_name = "../bucket-0/data-a.avro";
}
static void hidden(void)
{
    m.entries[1].file.file_name = ".data-a.avro";
}
static void other_format(void)
{
    m.entries[1].file.file_name = "data-a.orc";
}
static void outside(void)
{
    m.entries[1].file.external_path = "s3://elsewhere/data-a.avro";
}
static void other_bucket(void)
{
    m.entries[1].bucket = 2;
}
static void negative_bucket(void)
{
    m.entries[1].bucket = -1;
}
static void other_bucket_count(void)
{
    m.entries[1].total_buckets = 3;
}
static void no_partition(void)
{
    m.entries[1].partition = tn_binrow_empty;
}
static void other_key(void)
{
    m.entries[1].file.max_key = bed_partition(&m.bed, "x");
    m.entries[1].file.max_key.size -= 8;
}
static void turned_keys(void)
{
    m.entries[1].file.min_key = bed_key(&m.bed, 9);
    m.entries[1].file.max_key = bed_key(&m.bed, 8);
}
static void no_rows(void)
{
    m.entries[1].file.row_count = 0;
}
static void no_bytes(void)
{
    m.entries[1].file.file_size = 0;
}
static void turned_numbers(void)
{
    m.entries[1].file.min_sequence = 2;
}
static void no_files(void)
{
    m.committable.added_count = 0;
    m.committable.changelog_count = 0;
}
static void other_rows(void)
{
    m.committable.row_count++;
}
static void rows_that_overflow(void)
{
    m.entries[0].file.row_count = INT64_MAX;
    m.entries[1].file.row_count = INT64_MAX;
    m.committable.row_count = -2;
}
static void more_deletes_than_rows(void)
{
    m.entries[1].file.delete_row_count.value = m.entries[1].file.row_count + 1;
}
static void more_nulls_than_rows(void)
{
    static int64_t nulls = 1 << 20;
    m.entries[1].file.key_stats.null_counts = &nulls;
}
static void turned_key_statistics(void)
{
    m.entries[1].file.key_stats.min = bed_key(&m.bed, 5000);
}
static void statistics_of_no_column(void)
{
    static const char *const names[] = {"nowhere"};
    m.entries[1].file.value_stats_cols.items = names;
    m.entries[1].file.value_stats_cols.count = 1;
}
static void statistics_of_too_few(void)
{
    m.entries[1].file.value_stats_cols.present = false;
}
static void torn_statistics(void)
{
    m.entries[1].file.value_stats.max = bed_key(&m.bed, 1);
}
/* The key's column is in the values, too. */
static void turned_statistics(void)
{
    static const char *names[1];
    static const int64_t nulls = 0;
    names[0] = m.bed.fields[1].name;
    m.entries[1].file.value_stats_cols.items = names;
    m.entries[1].file.value_stats_cols.count = 1;
    m.entries[1].file.value_stats =
        (struct tn_stats){bed_key(&m.bed, 2), bed_key(&m.bed, 1), &nulls, 1};
}
static const char *long_text(size_t size)
{
    char text[TN_COMMITTABLE_FOLDER_MAX + 1];
    memset(text, 'd', sizeof text);
    text[size] = 0;
    return tn_arena_text(&m.bed.own, tn_bytes_of(text));
}
static void long_folder(void)
{
    m.table.root = long_text(TN_COMMITTABLE_FOLDER_MAX);
}
static void long_path(void)
{
    m.table.root = long_text(TN_COMMITTABLE_FOLDER_MAX - 100);
    m.entries[1].file.file_name = tn_arena_format(&m.bed.own, "data-%s.avro", long_text(230));
}
static void no_producer(void)
{
    m.bed.options.changelog_producer = TN_CHANGELOG_LOOKUP;
}

static void what_is_no_file_of_the_table_is_refused(void)
{
    static void (*const wrongs[])(void) = {other_table,
                                           later_schema,
                                           later_file_schema,
                                           higher_level,
                                           taken_away,
                                           other_folder,
                                           hidden,
                                           other_format,
                                           outside,
                                           other_bucket,
                                           no_partition,
                                           other_key,
                                           turned_keys,
                                           negative_bucket,
                                           other_bucket_count,
                                           no_rows,
                                           no_bytes,
                                           turned_numbers,
                                           no_files,
                                           no_producer,
                                           long_folder,
                                           long_path,
                                           other_rows,
                                           rows_that_overflow,
                                           more_deletes_than_rows,
                                           more_nulls_than_rows,
                                           turned_key_statistics,
                                           statistics_of_no_column,
                                           statistics_of_too_few,
                                           torn_statistics,
                                           turned_statistics};
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        set_up(3);
        make(2, 1);
        tn_rc rc = tn_committable_check(&m.committable, &m.table, &m.bed.worker.arena, &m.err);
        CHECK_OK(rc, m.err);
        wrongs[i]();
        rc = tn_committable_check(&m.committable, &m.table, &m.bed.worker.arena, &m.err);
        if (rc != TN_INVALID || strlen(m.err.text) < 10) {
            FAIL("case %zu: %s", i, tn_rc_text(rc));
        }
        bed_deinit(&m.bed);
    }
}

static const struct test tests[] = {
    TEST(what_is_read_is_what_was_written),
    TEST(a_damaged_one_is_seen),
    TEST(what_is_no_file_of_the_table_is_refused),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
