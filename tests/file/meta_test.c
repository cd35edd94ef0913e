/* meta: manifests and manifest lists of Java and Python writers say what fastavro read in them (see
 * tests/golden/manifest/README.md); what is written reads back; broken bytes are errors. */
#include "file/meta.h"

#include "file/setup.h"
#include "random.h"

static const char *const manifests[] = {
    "java-pk",      "java-partitions", "java-compaction", "java-index",      "java-extra-files",
    "java-row-ids", "java-write-cols", "java-no-stats",   "java-some-stats", "pypaimon",
};
static const char *const lists[] = {"java-list", "java-list-partitions", "pypaimon-list",
                                    "java-list-empty"};

/* ---- walking a container ---- */

typedef tn_rc record_fn(struct setup *s, const struct tn_meta_plan *plan, struct tn_avro_cursor *c,
                        void *user);

static tn_rc walk_block(struct setup *s, const struct tn_meta_plan *plan, struct tn_bytes raw,
                        int64_t count, record_fn *each, void *user)
{
    struct tn_avro_cursor c = {raw.data, raw.data + raw.size, false};
    for (int64_t i = 0; i < count; i++) {
        tn_rc rc = each(s, plan, &c, user);
        if (rc) {
            return rc;
        }
    }
    return c.at == c.end ? TN_OK : TN_CORRUPT;
}

static tn_rc walk(struct setup *s, struct tn_bytes file, bool list, record_fn *each, void *user)
{
    struct tn_avro_header header;
    struct tn_meta_plan plan;
    tn_rc rc = tn_avro_header_decode(file, &header, &s->err);
    if (rc) {
        return rc;
    }
    rc = list ? tn_manifest_list_plan(header.schema, &s->arena, &plan, &s->err)
              : tn_entry_plan(header.schema, &s->arena, &plan, &s->err);
    size_t at = header.size;
    while (rc == TN_OK && at < file.size) {
        int64_t count = 0;
        int64_t size = 0;
        uint32_t head = 0;
        struct tn_bytes rest = {file.data + at, file.size - at};
        rc = tn_avro_block_decode(rest, &count, &size, &head, &s->err);
        if (rc || size > (int64_t)rest.size - head - 16) {
            return TN_CORRUPT;
        }
        static unsigned char memory[SETUP_FILE_MAX];
        struct tn_buf raw;
        size_t needed = 0;
        tn_buf_init(&raw, memory, sizeof memory);
        struct tn_bytes block = {rest.data + head, (size_t)size};
        rc = tn_codec_decompress(&s->worker.codec, header.codec, block, &s->worker.arena, &raw,
                                 &needed, &s->err);
        if (rc == TN_OK) {
            rc = walk_block(s, &plan, tn_buf_bytes(&raw), count, each, user);
        }
        at += head + (size_t)size + 16;
    }
    return rc;
}

/* ---- the text of a record, as tests/golden/manifest/describe.py writes it ---- */

static void put_hex(struct tn_buf *out, struct tn_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        tn_buf_format(out, "%02x", bytes.data[i]);
    }
}

static void put_bytes(struct tn_buf *out, const char *name, struct tn_bytes bytes)
{
    tn_buf_format(out, " %s=", name);
    if (bytes.data) {
        put_hex(out, bytes);
    } else {
        tn_buf_text(out, "null");
    }
}

static void put_number(struct tn_buf *out, const char *name, struct tn_json_i64 number)
{
    if (number.present) {
        tn_buf_format(out, " %s=%" PRId64, name, number.value);
    } else {
        tn_buf_format(out, " %s=null", name);
    }
}

static void put_i64(struct tn_buf *out, const char *name, int64_t number)
{
    tn_buf_format(out, " %s=%" PRId64, name, number);
}

static void put_texts(struct tn_buf *out, const char *name, const struct tn_texts *texts)
{
    tn_buf_format(out, " %s=", name);
    if (!texts->present) {
        tn_buf_text(out, "null");
        return;
    }
    tn_buf_byte(out, '[');
    for (uint32_t i = 0; i < texts->count; i++) {
        tn_buf_format(out, "%s%s", i > 0 ? "," : "", texts->items[i]);
    }
    tn_buf_byte(out, ']');
}

static void put_stats(struct tn_buf *out, const char *name, const struct tn_stats *stats)
{
    tn_buf_format(out, " %s=(", name);
    put_hex(out, stats->min);
    tn_buf_byte(out, ',');
    put_hex(out, stats->max);
    for (uint32_t i = 0; i < stats->null_count_count; i++) {
        if (stats->null_counts[i] < 0) {
            tn_buf_text(out, ",null");
        } else {
            tn_buf_format(out, ",%" PRId64, stats->null_counts[i]);
        }
    }
    tn_buf_byte(out, ')');
}

static void put_entry(struct tn_buf *out, const struct tn_entry *entry)
{
    const struct tn_file_meta *file = &entry->file;
    tn_buf_format(out, "kind=%d", (int)entry->kind);
    put_bytes(out, "partition", entry->partition);
    put_i64(out, "bucket", entry->bucket);
    put_i64(out, "total_buckets", entry->total_buckets);
    tn_buf_format(out, " name=%s", file->file_name);
    put_i64(out, "size", file->file_size);
    put_i64(out, "rows", file->row_count);
    put_bytes(out, "min_key", file->min_key);
    put_bytes(out, "max_key", file->max_key);
    put_stats(out, "key_stats", &file->key_stats);
    put_stats(out, "value_stats", &file->value_stats);
    put_i64(out, "min_sequence", file->min_sequence);
    put_i64(out, "max_sequence", file->max_sequence);
    put_i64(out, "schema", file->schema_id);
    put_i64(out, "level", file->level);
    put_texts(out, "extra", &file->extra_files);
    put_number(out, "created", file->creation_time_ms);
    put_number(out, "deletes", file->delete_row_count);
    put_bytes(out, "index", file->embedded_index);
    put_number(out, "source", file->file_source);
    put_texts(out, "stats_cols", &file->value_stats_cols);
    tn_buf_format(out, " external=%s", file->external_path ? file->external_path : "null");
    put_number(out, "first_row_id", file->first_row_id);
    put_texts(out, "write_cols", &file->write_cols);
    tn_buf_byte(out, '\n');
}

static void put_manifest(struct tn_buf *out, const struct tn_manifest_meta *meta)
{
    tn_buf_format(out, "name=%s", meta->file_name);
    put_i64(out, "size", meta->file_size);
    put_i64(out, "added", meta->added_count);
    put_i64(out, "deleted", meta->deleted_count);
    put_stats(out, "partition_stats", &meta->partition_stats);
    put_i64(out, "schema", meta->schema_id);
    put_number(out, "min_bucket", meta->min_bucket);
    put_number(out, "max_bucket", meta->max_bucket);
    put_number(out, "min_level", meta->min_level);
    put_number(out, "max_level", meta->max_level);
    tn_buf_byte(out, '\n');
}

static tn_rc describe_entry(struct setup *s, const struct tn_meta_plan *plan,
                            struct tn_avro_cursor *c, void *user)
{
    struct tn_entry entry;
    tn_rc rc = tn_entry_decode(plan, c, &s->arena, &entry, &s->err);
    if (rc == TN_OK) {
        put_entry(user, &entry);
    }
    return rc;
}

static tn_rc describe_manifest(struct setup *s, const struct tn_meta_plan *plan,
                               struct tn_avro_cursor *c, void *user)
{
    struct tn_manifest_meta meta;
    tn_rc rc = tn_manifest_meta_decode(plan, c, &s->arena, &meta, &s->err);
    if (rc == TN_OK) {
        put_manifest(user, &meta);
    }
    return rc;
}

static tn_rc describe(struct setup *s, struct tn_bytes file, bool list, struct tn_buf *out)
{
    return walk(s, file, list, list ? describe_manifest : describe_entry, out);
}

static struct tn_bytes golden(struct setup *s, const char *name, const char *suffix)
{
    char path[128];
    (void)snprintf(path, sizeof path, "tests/golden/manifest/%s%s", name, suffix);
    return setup_golden(s, path);
}

static void check_described(const char *name, bool list)
{
    static unsigned char memory[SETUP_FILE_MAX];
    static struct setup s;
    struct tn_buf out;
    setup_begin(&s);
    tn_buf_init(&out, memory, sizeof memory);
    tn_rc rc = describe(&s, golden(&s, name, ""), list, &out);
    CHECK_OK(rc, s.err);
    CHECK(!out.overflow);
    CHECK(tn_bytes_equal(tn_buf_bytes(&out), golden(&s, name, ".txt")));
    setup_end(&s);
}

static void manifests_of_other_writers_say_what_fastavro_reads(void)
{
    for (size_t i = 0; i < COUNT(manifests); i++) {
        check_described(manifests[i], false);
    }
}

static void manifest_lists_of_other_writers_say_what_fastavro_reads(void)
{
    for (size_t i = 0; i < COUNT(lists); i++) {
        check_described(lists[i], true);
    }
}

/* The schema texts are Java's to the byte, and so are the records made from what Java wrote. */

static tn_rc reencode_entry(struct setup *s, const struct tn_meta_plan *plan,
                            struct tn_avro_cursor *c, void *user)
{
    static unsigned char memory[SETUP_FILE_MAX];
    const unsigned char *start = c->at;
    struct tn_buf out;
    tn_buf_init(&out, memory, sizeof memory);
    tn_rc rc = TN_OK;
    if (*(bool *)user) {
        struct tn_manifest_meta meta;
        rc = tn_manifest_meta_decode(plan, c, &s->arena, &meta, &s->err);
        CHECK_OK(rc, s->err);
        tn_manifest_meta_encode(&meta, &out);
    } else {
        struct tn_entry entry;
        rc = tn_entry_decode(plan, c, &s->arena, &entry, &s->err);
        CHECK_OK(rc, s->err);
        tn_entry_encode(&entry, &out);
    }
    CHECK(tn_bytes_equal(tn_buf_bytes(&out), (struct tn_bytes){start, (size_t)(c->at - start)}));
    return rc;
}

static void check_reencoded(const char *name, bool list, const char *schema)
{
    static struct setup s;
    setup_begin(&s);
    struct tn_bytes file = golden(&s, name, "");
    struct tn_avro_header header;
    tn_rc rc = tn_avro_header_decode(file, &header, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(tn_bytes_equal(header.schema, tn_bytes_of(schema)));
    rc = walk(&s, file, list, reencode_entry, &list);
    CHECK_OK(rc, s.err);
    setup_end(&s);
}

static void records_are_written_byte_for_byte_as_java_does(void)
{
    for (size_t i = 0; i < COUNT(manifests); i++) {
        if (strncmp(manifests[i], "java", 4) == 0) {
            check_reencoded(manifests[i], false, tn_entry_avro_schema);
        }
    }
    for (size_t i = 0; i < COUNT(lists); i++) {
        if (strncmp(lists[i], "java", 4) == 0) {
            check_reencoded(lists[i], true, tn_manifest_list_avro_schema);
        }
    }
}

/* ---- what a schema may say ---- */

#define RECORD(fields) "{\"type\":\"record\",\"name\":\"r\",\"fields\":[" fields "]}"
#define LIST_HEAD                                                                             \
    "{\"name\":\"_VERSION\",\"type\":\"int\"},{\"name\":\"_FILE_NAME\",\"type\":\"string\"}," \
    "{\"name\":\"_FILE_SIZE\",\"type\":\"long\"},{\"name\":\"_NUM_ADDED_FILES\",\"type\":"    \
    "\"long\"}"                                                                               \
    ",{\"name\":\"_NUM_DELETED_FILES\",\"type\":\"long\"},"
#define LIST_STATS                                                                                 \
    "{\"name\":\"_PARTITION_STATS\",\"type\":{\"type\":\"record\",\"name\":\"s\",\"fields\":["     \
    "{\"name\":\"_MIN_VALUES\",\"type\":\"bytes\"},{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"}," \
    "{\"name\":\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":"                 \
    "[\"null\",\"long\"]}]}]}},"
#define LIST_ID "{\"name\":\"_SCHEMA_ID\",\"type\":\"long\"}"

static tn_rc plan_list(struct setup *s, const char *schema, struct tn_meta_plan *plan)
{
    return tn_manifest_list_plan(tn_bytes_of(schema), &s->arena, plan, &s->err);
}

static void fields_that_lack_or_have_other_types_are_named(void)
{
    static const struct {
        const char *schema;
        const char *named; /* NULL: fine */
    } cases[] = {
        {RECORD(LIST_HEAD LIST_STATS LIST_ID), NULL},
        {RECORD(LIST_HEAD LIST_STATS "{\"name\":\"x\",\"type\":\"int\"}," LIST_ID), NULL},
        {RECORD(LIST_HEAD LIST_ID), "_PARTITION_STATS"},
        {RECORD(LIST_HEAD LIST_STATS "{\"name\":\"_SCHEMA_ID\",\"type\":\"string\"}"),
         "_SCHEMA_ID"},
        {RECORD(LIST_STATS LIST_ID), "_VERSION"},
        {"\"int\"", "record"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct setup s;
        struct tn_meta_plan plan;
        setup_begin(&s);
        tn_rc rc = plan_list(&s, cases[i].schema, &plan);
        CHECK(rc == (cases[i].named ? TN_CORRUPT : TN_OK));
        CHECK(!cases[i].named || strstr(s.err.text, cases[i].named));
        setup_end(&s);
    }
}

/* Version, name, sizes 1 1 0, stats (empty, empty, null union), schema 0. */
static void values_that_can_not_be_are_refused(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        tn_rc rc;
    } cases[] = {
        {"\x04\x02m\x02\x02\x00\x00\x00\x00\x00", 10, TN_OK},
        {"\x06\x02m\x02\x02\x00\x00\x00\x00\x00", 10, TN_UNSUPPORTED}, /* version 3 */
        {"\x04\x02/\x02\x02\x00\x00\x00\x00\x00", 10, TN_CORRUPT},     /* a path */
        {"\x04\x04..\x02\x02\x00\x00\x00\x00\x00", 11, TN_CORRUPT},    /* another folder */
        {"\x04\x02\x00\x02\x02\x00\x00\x00\x00\x00", 10, TN_CORRUPT},  /* a zero byte */
        {"\x04\x02m\x01\x02\x00\x00\x00\x00\x00", 10, TN_CORRUPT},     /* size -1 */
        {"\x04\x02m\x02\x02\x00\x00\x00\x02\x04\x00\x08\x00\x00", 14, TN_CORRUPT},
        {"\x04\x02m\x02\x02\x00\x00\x00\x02\x02\x02\x0a\x00\x00", 14, TN_OK}, /* one null count */
        {"\x04\x02m\x02\x02\x00\x00\x00\x02\x01\x04\x02\x0a\x00\x00", 15,
         TN_OK}, /* with its size */
    };
    static struct setup s;
    struct tn_meta_plan plan;
    setup_begin(&s);
    tn_rc rc = plan_list(&s, RECORD(LIST_HEAD LIST_STATS LIST_ID), &plan);
    CHECK_OK(rc, s.err);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const unsigned char *bytes = (const unsigned char *)cases[i].bytes;
        struct tn_avro_cursor c = {bytes, bytes + cases[i].size, false};
        struct tn_manifest_meta meta;
        rc = tn_manifest_meta_decode(&plan, &c, &s.arena, &meta, &s.err);
        CHECK(rc == cases[i].rc);
        CHECK(rc != TN_OK || c.at == c.end);
        CHECK(rc != TN_OK || !meta.min_bucket.present);
    }
    setup_end(&s);
}

/* ---- properties ---- */

static const char *random_text(struct setup *s, uint64_t *seed)
{
    char text[40];
    uint32_t size = random_below(seed, sizeof text - 1);
    for (uint32_t i = 0; i < size; i++) {
        text[i] = (char)('a' + random_below(seed, 26));
    }
    text[size] = 0;
    return tn_arena_text(&s->arena, tn_bytes_of(size > 0 ? text : "x"));
}

static struct tn_bytes random_bytes(struct setup *s, uint64_t *seed)
{
    size_t size = random_below(seed, 60);
    unsigned char *data = tn_arena_take(&s->arena, size + 1);
    for (size_t i = 0; i < size; i++) {
        data[i] = (unsigned char)random_next(seed);
    }
    return (struct tn_bytes){data, size};
}

static int64_t random_number(uint64_t *seed)
{
    return (int64_t)(random_next(seed) >> random_below(seed, 64));
}

static struct tn_json_i64 random_optional(uint64_t *seed)
{
    bool present = random_below(seed, 2) == 1;
    return (struct tn_json_i64){present ? (int64_t)random_below(seed, 1000) - 500 : 0, present};
}

static struct tn_texts random_texts(struct setup *s, uint64_t *seed, bool nullable)
{
    if (nullable && random_below(seed, 2) == 0) {
        return (struct tn_texts){0};
    }
    uint32_t count = random_below(seed, 4);
    const char **items = tn_arena_take(&s->arena, count * sizeof *items + 1);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = random_text(s, seed);
    }
    return (struct tn_texts){items, count, true};
}

static struct tn_stats random_stats(struct setup *s, uint64_t *seed)
{
    uint32_t count = random_below(seed, 5);
    int64_t *counts = tn_arena_take(&s->arena, count * sizeof *counts + 1);
    for (uint32_t i = 0; i < count; i++) {
        counts[i] = (int64_t)random_below(seed, 100) - 1;
    }
    return (struct tn_stats){random_bytes(s, seed), random_bytes(s, seed), counts, count};
}

static struct tn_entry random_entry(struct setup *s, uint64_t *seed)
{
    return (struct tn_entry){
        .kind = (enum tn_entry_kind)random_below(seed, 2),
        .partition = random_bytes(s, seed),
        .bucket = (int32_t)random_below(seed, 100) - 2,
        .total_buckets = (int32_t)random_below(seed, 100) - 2,
        .file = {.file_name = random_text(s, seed),
                 .file_size = random_number(seed) & INT64_MAX,
                 .row_count = random_number(seed) & INT64_MAX,
                 .min_key = random_bytes(s, seed),
                 .max_key = random_bytes(s, seed),
                 .key_stats = random_stats(s, seed),
                 .value_stats = random_stats(s, seed),
                 .min_sequence = random_number(seed),
                 .max_sequence = random_number(seed),
                 .schema_id = random_number(seed) & INT64_MAX,
                 .level = (int32_t)random_below(seed, 6),
                 .extra_files = random_texts(s, seed, false),
                 .creation_time_ms = random_optional(seed),
                 .delete_row_count = random_optional(seed),
                 .embedded_index =
                     random_below(seed, 2) ? random_bytes(s, seed) : (struct tn_bytes){0},
                 .file_source = random_optional(seed),
                 .value_stats_cols = random_texts(s, seed, true),
                 .external_path = random_below(seed, 2) ? random_text(s, seed) : NULL,
                 .first_row_id = random_optional(seed),
                 .write_cols = random_texts(s, seed, true)},
    };
}

/* Equal by their text, which has every member in it. */
static bool same_text(const struct tn_entry *a, const struct tn_entry *b)
{
    static unsigned char memory[2][1 << 16];
    struct tn_buf texts[2];
    tn_buf_init(&texts[0], memory[0], sizeof memory[0]);
    tn_buf_init(&texts[1], memory[1], sizeof memory[1]);
    put_entry(&texts[0], a);
    put_entry(&texts[1], b);
    return !texts[0].overflow && tn_bytes_equal(tn_buf_bytes(&texts[0]), tn_buf_bytes(&texts[1]));
}

static void any_entry_reads_back_and_copies(void)
{
    static struct setup s;
    struct tn_meta_plan plan;
    setup_begin(&s);
    tn_rc rc = tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), &s.arena, &plan, &s.err);
    CHECK_OK(rc, s.err);
    size_t mark = tn_arena_mark(&s.arena);
    for (uint64_t seed = 1; seed < 2000; seed++) {
        uint64_t state = seed;
        struct tn_entry entry = random_entry(&s, &state);
        static unsigned char memory[1 << 16];
        struct tn_buf buf;
        tn_buf_init(&buf, memory, sizeof memory);
        tn_entry_encode(&entry, &buf);
        struct tn_avro_cursor c = {buf.data, buf.data + buf.size, false};
        static struct tn_entry back;
        rc = tn_entry_decode(&plan, &c, &s.arena, &back, &s.err);
        CHECK_OK(rc, s.err);
        CHECK(c.at == c.end);
        CHECK(same_text(&entry, &back));
        struct tn_entry copy = entry;
        rc = tn_file_meta_copy(&entry.file, &s.arena, &copy.file, &s.err);
        CHECK_OK(rc, s.err);
        CHECK(copy.file.file_name != entry.file.file_name);
        CHECK(same_text(&entry, &copy));
        tn_arena_reset(&s.arena, mark);
    }
    setup_end(&s);
}

static bool same_identity(const struct tn_entry *a, const struct tn_entry *b)
{
    struct tn_hash_128 left = tn_entry_identity(a, NULL);
    struct tn_hash_128 right = tn_entry_identity(b, NULL);
    return left.high == right.high && left.low == right.low;
}

static void identity_is_of_some_members_only(void)
{
    static struct setup s;
    setup_begin(&s);
    uint64_t seed = 5;
    struct tn_entry entry = random_entry(&s, &seed);
    entry.file.external_path = NULL;
    entry.file.embedded_index = (struct tn_bytes){0};
    struct tn_entry other = entry;
    other.kind = entry.kind == TN_ENTRY_ADD ? TN_ENTRY_DELETE : TN_ENTRY_ADD;
    other.total_buckets++;
    other.file.row_count++;
    other.file.schema_id++;
    CHECK(same_identity(&entry, &other));
    for (int i = 0; i < 7; i++) {
        const char *extra[] = {"e"};
        other = entry;
        other.bucket += i == 0;
        other.file.level += i == 1;
        other.file.file_name = i == 2 ? "another" : entry.file.file_name;
        other.partition = i == 3 ? tn_bytes_of("p") : entry.partition;
        other.file.external_path = i == 4 ? "" : NULL;
        other.file.embedded_index = i == 5 ? tn_bytes_of("") : entry.file.embedded_index;
        other.file.extra_files =
            i == 6 ? (struct tn_texts){extra, 1, true} : entry.file.extra_files;
        CHECK(!same_identity(&entry, &other));
    }
    setup_end(&s);
}

/* A random entry's bytes, and how to read them; until the next call. */
static struct tn_bytes encoded_entry(struct setup *s, uint64_t *seed, struct tn_meta_plan *plan)
{
    static unsigned char memory[SETUP_FILE_MAX];
    tn_rc rc = tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), &s->arena, plan, &s->err);
    CHECK_OK(rc, s->err);
    struct tn_entry entry = random_entry(s, seed);
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_entry_encode(&entry, &buf);
    return tn_buf_bytes(&buf);
}

/* Each byte of a manifest is changed in turn, each length cut: an error or other values, no more.
 */
static void changed_bytes_are_errors_and_no_more(void)
{
    static struct setup s;
    setup_begin(&s);
    struct tn_meta_plan plan;
    uint64_t seed = 3;
    struct tn_bytes bytes = encoded_entry(&s, &seed, &plan);
    tn_rc rc = TN_OK;
    size_t mark = tn_arena_mark(&s.arena);
    for (size_t size = 0; size < bytes.size; size++) {
        unsigned char *exact = malloc(size + 1); /* so that ASan sees a byte too far */
        memcpy(exact, bytes.data, size);
        struct tn_avro_cursor c = {exact, exact + size, false};
        static struct tn_entry back;
        rc = tn_entry_decode(&plan, &c, &s.arena, &back, &s.err);
        CHECK(rc == TN_CORRUPT);
        free(exact);
        tn_arena_reset(&s.arena, mark);
    }
    for (size_t i = 0; i < 20000; i++) {
        unsigned char *exact = malloc(bytes.size);
        memcpy(exact, bytes.data, bytes.size);
        for (uint32_t k = random_below(&seed, 4); k < 4; k++) {
            exact[random_below(&seed, (uint32_t)bytes.size)] = (unsigned char)random_next(&seed);
        }
        struct tn_avro_cursor c = {exact, exact + bytes.size, false};
        static struct tn_entry back;
        rc = tn_entry_decode(&plan, &c, &s.arena, &back, &s.err);
        CHECK(rc == TN_OK || rc == TN_CORRUPT || rc == TN_UNSUPPORTED);
        free(exact);
        tn_arena_reset(&s.arena, mark);
    }
    setup_end(&s);
}

static void a_full_arena_says_again(void)
{
    static struct setup s;
    setup_begin(&s);
    struct tn_meta_plan plan;
    uint64_t seed = 8;
    struct tn_bytes bytes = encoded_entry(&s, &seed, &plan);
    tn_rc rc = TN_OK;
    size_t again = 0;
    for (size_t size = 0; again == 0 || rc != TN_OK; size += 16) {
        static unsigned char small_memory[4096];
        struct tn_arena small;
        static struct tn_entry back;
        struct tn_avro_cursor c = {bytes.data, bytes.data + bytes.size, false};
        tn_arena_init(&small, small_memory, size);
        rc = tn_entry_decode(&plan, &c, &small, &back, &s.err);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
        again += rc == TN_AGAIN;
        CHECK(size < sizeof small_memory - 16);
    }
    setup_end(&s);
}

static const struct test tests[] = {
    TEST(manifests_of_other_writers_say_what_fastavro_reads),
    TEST(manifest_lists_of_other_writers_say_what_fastavro_reads),
    TEST(records_are_written_byte_for_byte_as_java_does),
    TEST(fields_that_lack_or_have_other_types_are_named),
    TEST(values_that_can_not_be_are_refused),
    TEST(any_entry_reads_back_and_copies),
    TEST(identity_is_of_some_members_only),
    TEST(changed_bytes_are_errors_and_no_more),
    TEST(a_full_arena_says_again),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
