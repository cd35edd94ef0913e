/* The schema versions of a table: read once, the newest found, and what is no such version refused.
 */
#include "file/schemas.h"

#include "file/setup.h"

#define ROOT "db.db/t"

static struct setup s;

static void put_schema(int64_t number, int64_t says)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, ROOT "/schema/schema-%" PRId64, number);
    (void)snprintf(text, sizeof text,
                   "{\"version\":3,\"id\":%" PRId64 ",\"fields\":[{\"id\":0,\"name\":\"k\","
                   "\"type\":\"INT NOT NULL\"}],\"highestFieldId\":0,\"partitionKeys\":[],"
                   "\"primaryKeys\":[\"k\"],\"options\":{},\"timeMillis\":1}",
                   says);
    tn_rc rc = tn_io_write_new(s.worker.io, path, tn_bytes_of(text), &s.err);
    CHECK_OK(rc, s.err);
}

static void begin(struct tn_schemas *schemas)
{
    setup_begin(&s);
    tn_rc rc = s.worker.io->vtable->make_dir(s.worker.io, ROOT "/schema", &s.err);
    CHECK_OK(rc, s.err);
    tn_schemas_init(schemas, s.worker.io, ROOT, &s.arena);
}

static void a_version_is_read_once(void)
{
    static struct tn_schemas schemas;
    begin(&schemas);
    put_schema(0, 0);
    put_schema(9, 9);
    put_schema(10, 10);
    const struct tn_schema *newest;
    tn_rc rc = tn_schemas_newest(&schemas, &newest, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(newest->id == 10);
    uint64_t calls = s.disk.calls;
    const struct tn_schema *again;
    rc = tn_schemas_load(&schemas, 10, &again, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(again == newest && s.disk.calls == calls);
    CHECK(tn_schemas_find(&schemas, 10) == newest && !tn_schemas_find(&schemas, 9));
    setup_end(&s);
}

static void a_version_that_is_missing_is_absent(void)
{
    static struct tn_schemas schemas;
    begin(&schemas);
    const struct tn_schema *schema = NULL;
    CHECK(tn_schemas_newest(&schemas, &schema, &s.err) == TN_ABSENT);
    put_schema(1, 1);
    CHECK(tn_schemas_load(&schemas, 2, &schema, &s.err) == TN_ABSENT);
    CHECK(schema == NULL);
    setup_end(&s);
}

/* Else files would be read in columns that are not theirs. */
static void a_version_that_says_it_is_another_is_corrupt(void)
{
    static struct tn_schemas schemas;
    begin(&schemas);
    put_schema(1, 2);
    const struct tn_schema *schema = NULL;
    CHECK(tn_schemas_load(&schemas, 1, &schema, &s.err) == TN_CORRUPT);
    CHECK(strstr(s.err.text, "schema-1") != NULL);
    CHECK(schema == NULL && schemas.count == 0);
    setup_end(&s);
}

static void more_versions_than_are_kept_are_unsupported(void)
{
    static struct tn_schemas schemas;
    begin(&schemas);
    const struct tn_schema *schema;
    for (int64_t id = 0; id < TN_SCHEMAS_MAX; id++) {
        put_schema(id, id);
        tn_rc rc = tn_schemas_load(&schemas, id, &schema, &s.err);
        CHECK_OK(rc, s.err);
    }
    put_schema(TN_SCHEMAS_MAX, TN_SCHEMAS_MAX);
    CHECK(tn_schemas_load(&schemas, TN_SCHEMAS_MAX, &schema, &s.err) == TN_UNSUPPORTED);
    setup_end(&s);
}

static const struct test tests[] = {
    TEST(a_version_is_read_once),
    TEST(a_version_that_is_missing_is_absent),
    TEST(a_version_that_says_it_is_another_is_corrupt),
    TEST(more_versions_than_are_kept_are_unsupported),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
