/* A shared table's first steps: what is kept of it beside the table, how it is made from the
 * lake's, how both are kept one, and what of its history travels. */
#include <stddef.h>

#include "commit/consumer.h"
#include "given.h"
#include "upload/share_pick.h"
#include "upload/share_schema.h"
#include "upload/world.h"

#define TABLE "db.t"

/* The world's target is the lake's table, its source the gateway. */
struct shared {
    struct world w;
    struct tn_directory directory;
    struct counting counting;
    struct tn_share_place place;
    struct tn_sent sent;
    const struct tn_schema *newest;
};

static const struct tn_share some_share = {.where = "s3://bucket/prefix",
                                           .gateway = "11111111-2222-4333-8444-555555555555",
                                           .since_ms = 5};

static void put(struct tn_io *io, int64_t id, struct tn_schema schema)
{
    static unsigned char text[4096];
    struct tn_buf buf;
    char path[64];
    schema.id = id;
    tn_buf_init(&buf, text, sizeof text);
    tn_schema_encode(&schema, &buf);
    CHECK(!buf.overflow);
    (void)snprintf(path, sizeof path, ROOT "/schema/schema-%d", (int)id);
    world_write(io, path, tn_buf_bytes(&buf));
}

static struct tn_option good_options[] = {{"bucket", "2"}, {"file.format", "avro"}};

static struct tn_schema good_schema(struct shared *s)
{
    struct tn_schema schema = s->w.source.schema;
    schema.options = good_options;
    schema.option_count = COUNT(good_options);
    return schema;
}

/* A lake with one schema, and a gateway without a table. */
static void open_empty(struct shared *s)
{
    struct tn_err err;
    world_init(&s->w, given_number("SEED", 1));
    tn_rc rc =
        s->w.source.disk.io.vtable->unlink(&s->w.source.disk.io, ROOT "/schema/schema-0", &err);
    CHECK_OK(rc, err);
    put(&s->w.target.io, 0, good_schema(s));
    rc = tn_directory_init(&s->directory, &s->w.target.io, "lake", &s->w.source.own, &err);
    CHECK_OK(rc, err);
    s->counting = (struct counting){.target = {.vtable = &counting_vtable, .name = "lake"},
                                    .inner = &s->directory.target};
    s->place = (struct tn_share_place){TABLE, ROOT, &s->counting.target, &s->w.source.worker};
}

static tn_rc adopt(struct shared *s)
{
    return tn_share_adopt(&s->place, &some_share, &s->newest, &s->w.err);
}

static void open_adopted(struct shared *s)
{
    open_empty(s);
    tn_rc rc = adopt(s);
    CHECK_OK(rc, s->w.err);
    rc = tn_sent_read(&s->w.source.disk.io, TABLE, &s->w.source.own, &s->sent, &s->w.err);
    CHECK_OK(rc, s->w.err);
}

static bool says(const struct shared *s, const char *part)
{
    return strstr(s->w.err.text, part) != NULL;
}

static bool same_here(struct shared *s, int64_t id)
{
    struct tn_bytes here;
    struct tn_bytes there;
    struct tn_err err;
    char path[64];
    (void)snprintf(path, sizeof path, ROOT "/schema/schema-%d", (int)id);
    struct tn_arena *arena = &s->w.source.own;
    return tn_io_read_all(&s->w.source.disk.io, path, 4096, arena, &here, &err) == TN_OK &&
           tn_io_read_all(&s->w.target.io, path, 4096, arena, &there, &err) == TN_OK &&
           tn_bytes_equal(here, there);
}

/* ---- what is kept ---- */

static void what_is_kept_reads_back_and_damage_is_no_beginning(void)
{
    static struct bed bed;
    bed_init(&bed, 1, false);
    struct tn_io *io = &bed.disk.io;
    struct tn_err err;
    struct tn_share share;
    struct tn_sent sent;
    struct tn_sent some = {17, 12, 20, 20, 900, 899, 5, 3, 8, 7, "tarn-lake-7", "uuid"};
    CHECK(tn_share_read(io, TABLE, &bed.own, &share, &err) == TN_ABSENT);
    CHECK(tn_sent_read(io, TABLE, &bed.own, &sent, &err) == TN_ABSENT);
    tn_rc rc = tn_share_write(io, TABLE, &some_share, &bed.own, &err);
    CHECK_OK(rc, err);
    rc = tn_sent_write(io, TABLE, &some, &bed.own, &err);
    CHECK_OK(rc, err);
    rc = tn_share_read(io, TABLE, &bed.own, &share, &err);
    CHECK_OK(rc, err);
    CHECK(strcmp(share.where, some_share.where) == 0 && share.way == TN_SHARE_DIRECT &&
          strcmp(share.gateway, some_share.gateway) == 0 && share.since_ms == 5);
    rc = tn_sent_read(io, TABLE, &bed.own, &sent, &err);
    CHECK_OK(rc, err);
    CHECK(memcmp(&sent, &some, offsetof(struct tn_sent, manifest)) == 0);
    CHECK_TEXT(sent.manifest, some.manifest);
    static const char *const damage[] = {"", "{}", "{\"version\": 1, \"done\": 3}", "\0\0\0\0"};
    for (size_t i = 0; i < COUNT(damage); i++) {
        rc = io->vtable->unlink(io, ".tarn/db.t.sent", &err);
        CHECK_OK(rc, err);
        world_write(io, ".tarn/db.t.sent", tn_bytes_of(damage[i]));
        CHECK(tn_sent_read(io, TABLE, &bed.own, &sent, &err) == TN_CORRUPT);
    }
    CHECK(tn_share_same_place("s3://b/p/", "s3://b/p") &&
          !tn_share_same_place("s3://b/p", "s3://b"));
    bed_deinit(&bed);
}

/* ---- adoption ---- */

static void adopted_table_has_the_schemas_of_the_lake(void)
{
    static struct shared s;
    open_empty(&s);
    struct tn_schema second = good_schema(&s);
    second.comment = "altered";
    put(&s.w.target.io, 1, second);
    tn_rc rc = adopt(&s);
    CHECK_OK(rc, s.w.err);
    CHECK(same_here(&s, 0) && same_here(&s, 1) && s.newest->id == 1);
    int64_t next;
    rc = tn_consumer_read(&s.w.source.disk.io, ROOT, TN_SHARE_CONSUMER, &s.w.source.own, &next,
                          &s.w.err);
    CHECK_OK(rc, s.w.err);
    CHECK(next == 1);
    struct tn_share share;
    rc = tn_share_read(&s.w.source.disk.io, TABLE, &s.w.source.own, &share, &s.w.err);
    CHECK_OK(rc, s.w.err);
    CHECK(adopt(&s) == TN_EXISTS);
    world_deinit(&s.w);
}

static void adoption_refuses_what_it_cant_keep(void)
{
    static struct tn_option parquet[] = {{"bucket", "2"}, {"file.format", "parquet"}};
    static struct tn_option dynamic[] = {{"bucket", "-1"}, {"file.format", "avro"}};
    static struct tn_option vectors[] = {
        {"bucket", "2"}, {"file.format", "avro"}, {"deletion-vectors.enabled", "true"}};
    static const struct {
        struct tn_option *options;
        uint32_t count;
        const char *text;
    } cases[] = {{parquet, 2, "parquet"}, {dynamic, 2, "bucket"}, {vectors, 3, "deletion-vectors"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct shared s;
        open_empty(&s);
        struct tn_schema newer = good_schema(&s);
        newer.options = cases[i].options;
        newer.option_count = cases[i].count;
        put(&s.w.target.io, 1, newer);
        tn_rc rc = adopt(&s);
        CHECK(rc == TN_UNSUPPORTED || rc == TN_INVALID);
        CHECK(says(&s, cases[i].text) && says(&s, "schema-1"));
        CHECK(!same_here(&s, 0)); /* nothing was made */
        world_deinit(&s.w);
    }
    static struct shared s;
    open_empty(&s);
    world_write(&s.w.target.io, WORLD_OWNER, tn_bytes_of("{}"));
    CHECK(adopt(&s) == TN_INVALID && says(&s, "mirror"));
    world_deinit(&s.w);
}

/* Cut at every call: then there is a table that can be made again, or one that a look completes. */
static void cut_adoption_leaves_no_half_table(void)
{
    bool ended = false;
    for (uint64_t call = 1; !ended; call++) {
        static struct shared s;
        open_empty(&s);
        struct tn_schema second = good_schema(&s);
        second.comment = "altered";
        put(&s.w.target.io, 1, second);
        sim_disk_reboot(&s.w.source.disk, SIM_SEED_ALL);
        sim_disk_cut_at(&s.w.source.disk, call);
        ended = adopt(&s) == TN_OK;
        sim_disk_reboot(&s.w.source.disk, call);
        tn_rc rc = adopt(&s);
        if (rc == TN_EXISTS) {
            rc = tn_sent_read(&s.w.source.disk.io, TABLE, &s.w.source.own, &s.sent, &s.w.err);
            CHECK_OK(rc, s.w.err);
            rc = tn_share_look_at_schemas(&s.place, &s.sent, &s.w.err);
        }
        CHECK_OK(rc, s.w.err);
        CHECK(same_here(&s, 0) && same_here(&s, 1));
        world_deinit(&s.w);
    }
}

/* ---- both are one ---- */

static void look_costs_one_request_and_adopts_what_is_new(void)
{
    static struct shared s;
    open_adopted(&s);
    s.counting.target.counts = (struct tn_target_counts){0};
    tn_rc rc = tn_share_look_at_schemas(&s.place, &s.sent, &s.w.err);
    CHECK_OK(rc, s.w.err);
    CHECK(s.sent.schema == 0 && s.counting.target.counts.requests[TN_TARGET_GET] == 2);
    rc = tn_share_look_at_schemas(&s.place, &s.sent, &s.w.err);
    CHECK_OK(rc, s.w.err);
    CHECK(s.counting.target.counts.requests[TN_TARGET_GET] == 3);
    struct tn_schema second = good_schema(&s);
    second.comment = "altered";
    put(&s.w.target.io, 1, second);
    put(&s.w.target.io, 2, good_schema(&s));
    rc = tn_share_look_at_schemas(&s.place, &s.sent, &s.w.err);
    CHECK_OK(rc, s.w.err);
    CHECK(s.sent.schema == 2 && same_here(&s, 1) && same_here(&s, 2));
    world_deinit(&s.w);
}

static struct tn_field more_fields[4];

/* Of a schema-1 on each side the first difference is said. */
static void gateway_altered_in_another_order_is_refused(void)
{
    enum { COLUMN, TYPE, OPTION, ONLY_HERE, SAME, CASES };
    static const char *const text[CASES] = {
        [COLUMN] =
            "column 4 is 'a' BIGINT NOT NULL (id 3) here and 'b' BIGINT NOT NULL (id 3) there",
        [TYPE] = "column 3 is 'v' BIGINT NOT NULL (id 2) here and 'v' STRING (id 2) there",
        [OPTION] = "option bucket is '4' here and '2' there",
        [ONLY_HERE] = "there is none of this number there",
    };
    for (int i = 0; i < CASES; i++) {
        static struct shared s;
        open_adopted(&s);
        tn_rc rc = tn_share_look_at_schemas(&s.place, &s.sent, &s.w.err);
        CHECK_OK(rc, s.w.err);
        struct tn_schema here = good_schema(&s);
        struct tn_schema there = good_schema(&s);
        static struct tn_option four[] = {{"bucket", "4"}, {"file.format", "avro"}};
        memcpy(more_fields, here.fields, 3 * sizeof *more_fields);
        more_fields[3] = (struct tn_field){.id = 3, .name = "a", .type = here.fields[1].type};
        static struct tn_field others[4];
        memcpy(others, more_fields, sizeof others);
        here.time_ms = 7;
        if (i == COLUMN) {
            others[3].name = "b";
            here.fields = more_fields;
            there.fields = others;
            here.field_count = there.field_count = 4;
            here.highest_field_id = there.highest_field_id = 3;
        } else if (i == TYPE) {
            more_fields[2].type = here.fields[1].type;
            here.fields = more_fields;
        } else if (i == OPTION) {
            here.options = four;
        }
        put(&s.w.source.disk.io, 1, here);
        if (i != ONLY_HERE) {
            put(&s.w.target.io, 1, there);
        }
        rc = tn_share_look_at_schemas(&s.place, &s.sent, &s.w.err);
        CHECK(i == SAME ? rc == TN_OK && s.sent.schema == 1 : rc == TN_INVALID);
        CHECK(i == SAME || (says(&s, text[i]) && says(&s, "schema-1") && s.sent.schema == 0));
        world_deinit(&s.w);
    }
}

static void newer_schema_that_cant_be_written_is_refused(void)
{
    static struct tn_option parquet[] = {{"bucket", "2"}, {"file.format", "parquet"}};
    static struct shared s;
    open_adopted(&s);
    struct tn_schema newer = good_schema(&s);
    newer.options = parquet;
    put(&s.w.target.io, 1, newer);
    tn_rc rc = tn_share_look_at_schemas(&s.place, &s.sent, &s.w.err);
    CHECK(rc == TN_UNSUPPORTED && says(&s, "parquet") && says(&s, "schema-1"));
    CHECK(!same_here(&s, 1) && same_here(&s, 0));
    world_deinit(&s.w);
}

/* ---- what travels ---- */

struct seen {
    struct world *w;
    uint32_t next; /* of the world's files */
    int64_t count;
    int64_t rows;
};

/* Each new file of level 0 once, as it was, in the order in which it was added. */
static tn_rc see(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct seen *seen = user;
    (void)err;
    while (seen->next < seen->w->file_count &&
           strcmp(seen->w->files[seen->next].entry.file.file_name, entry->file.file_name) != 0) {
        CHECK(seen->w->files[seen->next].entry.file.level != 0);
        seen->next++;
    }
    CHECK(seen->next < seen->w->file_count && entry->file.level == 0);
    CHECK(entry->file.file_size == seen->w->files[seen->next].entry.file.file_size);
    CHECK(entry->file.schema_id == 0 && entry->kind == TN_ENTRY_ADD);
    seen->next++;
    seen->count++;
    seen->rows += entry->file.row_count;
    return TN_OK;
}

static void change(struct world *w)
{
    switch (random_below(&w->random, 5)) {
    case 0:
        world_compact(w);
        return;
    case 1:
        world_lift(w);
        return;
    default:
        world_append(w);
    }
}

struct walk {
    struct world w;
    struct seen seen;
    int64_t done;
    struct tn_directory lake;
};

static void take_one_pick(struct walk *k)
{
    struct world *w = &k->w;
    struct tn_worker *worker = &w->source.worker;
    struct tn_share_limits limits = {.files = 1 + (uint32_t)random_below(&w->random, 12)};
    struct tn_share_pick pick;
    struct tn_share_pick again;
    struct tn_share_tally tally = {0};
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_share_pick(ROOT, k->done, 0, &limits, worker, &pick, &w->err);
    CHECK_OK(rc, w->err);
    CHECK(tn_arena_mark(&worker->arena) == mark);
    rc = tn_share_pick(ROOT, k->done, pick.last, &limits, worker, &again, &w->err);
    CHECK_OK(rc, w->err);
    CHECK(memcmp(&pick, &again, sizeof pick) == 0 && pick.first == k->done + 1);
    k->seen.count = k->seen.rows = 0;
    rc = tn_share_each_data(&pick, see, &k->seen, &w->err);
    CHECK_OK(rc, w->err);
    CHECK(k->seen.count == pick.data_count && k->seen.rows == pick.data_rows);
    CHECK(pick.change_count == 0 && (pick.data_count == 0 || pick.schema_id == 0));
    rc = tn_share_send(&pick, &k->lake.target, &tally, &w->err);
    CHECK_OK(rc, w->err);
    rc = k->lake.target.vtable->settle(&k->lake.target, &w->err);
    CHECK_OK(rc, w->err);
    k->done = pick.last;
}

/* Picks of any size together have all that was appended, once; a pick that is made again has what
 * it had; files that compaction and expiry would take are there. */
static void picks_have_what_was_appended_once_in_order(void)
{
    uint64_t first_seed = given_number("SEED", 3);
    for (uint64_t seed = first_seed; seed < first_seed + 6; seed++) {
        static struct walk k;
        struct world *w = &k.w;
        world_init(w, seed);
        k.seen = (struct seen){.w = w};
        k.done = 0;
        tn_rc rc = tn_directory_init(&k.lake, &w->target.io, "lake", &w->source.own, &w->err);
        CHECK_OK(rc, w->err);
        for (int step = 0; step < 60; step++) {
            change(w);
            rc = tn_consumer_write(&w->source.disk.io, ROOT, TN_SHARE_CONSUMER, k.done + 1,
                                   &w->source.own, &w->err);
            CHECK_OK(rc, w->err);
            world_expire(w, 1, &w->source.worker);
            if (random_below(&w->random, 3) == 0) {
                take_one_pick(&k);
            }
        }
        CHECK(k.done > 0);
        world_deinit(w);
    }
}

static void lost_snapshots_and_overwrites_are_refused(void)
{
    static struct world w;
    struct tn_share_pick pick;
    struct tn_share_limits none = {0};
    struct tn_err err;
    world_init(&w, given_number("SEED", 4));
    tn_rc rc = tn_share_pick(ROOT, 0, 0, &none, &w.source.worker, &pick, &err);
    CHECK_OK(rc, err);
    CHECK(pick.last == 0 && tn_share_pick_empty(&pick));
    for (int i = 0; i < 4; i++) {
        world_append(&w);
    }
    world_expire(&w, 2, &w.source.worker);
    rc = tn_share_pick(ROOT, 1, 0, &none, &w.source.worker, &pick, &err);
    CHECK(rc == TN_CORRUPT && strstr(err.text, "snapshot 2") != NULL);
    rc = tn_share_pick(ROOT, 2, 0, &none, &w.source.worker, &pick, &err);
    CHECK_OK(rc, err);
    CHECK(pick.last == 4);
    rc = tn_share_pick(ROOT, 7, 0, &none, &w.source.worker, &pick, &err);
    CHECK(rc == TN_CONFLICT && strstr(err.text, "made anew") != NULL);
    world_deinit(&w);
}

static const struct test tests[] = {
    TEST(what_is_kept_reads_back_and_damage_is_no_beginning),
    TEST(adopted_table_has_the_schemas_of_the_lake),
    TEST(adoption_refuses_what_it_cant_keep),
    TEST(cut_adoption_leaves_no_half_table),
    TEST(look_costs_one_request_and_adopts_what_is_new),
    TEST(gateway_altered_in_another_order_is_refused),
    TEST(newer_schema_that_cant_be_written_is_refused),
    TEST(picks_have_what_was_appended_once_in_order),
    TEST(lost_snapshots_and_overwrites_are_refused),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
