/* tarn demo: simulated sensors into a table, with a lake in a folder.
 *
 *     sensors -> decoder -> table -> commit a second -> lake
 *
 * The number of the next record is the source's position, committed with the rows, so a demo that
 * was killed goes on as if nothing had happened.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/feed.h"
#include "app/lake.h"
#include "app/output.h"
#include "app/sensors.h"
#include "table/make.h"

static const char TABLE[] = "demo.readings";
static const char SOURCE[] = "demo";
static const char POSITION[] = "sensors:"; /* and the number of the next record */

static struct {
    const char *dir;
    const char *lake;
    int64_t seconds;
    int64_t records;
    bool fast;
} o = {.dir = "tarn-demo", .seconds = 8};

static const struct tn_flag flags[] = {
    {"dir", 0, TN_FLAG_TEXT, &o.dir, "DIR", "where all of it lies; default: tarn-demo"},
    {"lake", 0, TN_FLAG_TEXT, &o.lake, "DIR", "the folder that plays the lake; default: DIR/lake"},
    {"seconds", 0, TN_FLAG_I64, &o.seconds, "N", "how long the sensors send; default: 8"},
    {"records", 0, TN_FLAG_I64, &o.records, "N", "instead: up to record N, whoever sent the first"},
    {"fast", 0, TN_FLAG_SET, &o.fast, NULL, "don't wait for the clock"},
};

enum {
    BATCH = 200, /* records: 10 ms of the stream */
    BUFFER_SIZE = BATCH * TN_SENSORS_RECORD_MAX,
};

struct demo {
    struct tn_app *app;
    struct tn_table *table;
    struct tn_feed feed;
    struct tn_lake lake;
    struct tn_buf buf;
    uint64_t first; /* records */
    uint64_t next;
    uint64_t end;
    int64_t start_ns;
    bool fresh; /* a snapshot that the lake doesn't have */
    uint64_t lake_files;
    uint64_t lake_bytes;
    uint64_t lake_syncs;
};

static void say_committed(void *user_data, const struct tn_committed *committed)
{
    struct demo *demo = user_data;
    int64_t id =
        committed->compact_id > committed->append_id ? committed->compact_id : committed->append_id;
    if (id == 0) {
        return;
    }
    demo->fresh = true;
    if (!tn_common.quiet) {
        (void)fprintf(stderr,
                      "committed snapshot=%" PRId64 " rows=%" PRIu64 " table=%s data_bytes=%" PRIu64
                      " written_bytes=%" PRIu64 "\n",
                      id, committed->row_count, TABLE,
                      demo->table ? tn_table_counts(demo->table)->flushed_bytes : 0,
                      demo->app->posix.io.counts.bytes_written);
        (void)fflush(stderr);
    }
}

static void bury(void *user, const struct tn_decoded *decoded, const char *reason)
{
    (void)user;
    (void)fprintf(stderr, "tarn: sensors:%" PRIu64 ": %s\n", decoded->line, reason);
}

/* A record is a line. */
static tn_rc note(void *user, struct tn_feed_place place, struct tn_err *err)
{
    struct demo *demo = user;
    char text[48];
    (void)snprintf(text, sizeof text, "%s%" PRIu64, POSITION, demo->first + place.line);
    return tn_table_position(demo->table, SOURCE, text, err);
}

/* ---- before the first record ---- */

static tn_rc make_folder(const char *path, struct tn_err *err)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "make folder %s: %s", path, strerror(os));
    }
    return TN_OK;
}

static tn_rc place(struct tn_err *err)
{
    enum { PATH_SIZE = 1024 };
    static char warehouse[PATH_SIZE];
    static char lake[PATH_SIZE];
    int size = snprintf(warehouse, sizeof warehouse, "%s/warehouse", o.dir);
    (void)snprintf(lake, sizeof lake, "%s/lake", o.dir);
    if (size < 0 || size >= PATH_SIZE) {
        return tn_err_set(err, TN_INVALID, 0, "--dir %s: too long", o.dir);
    }
    tn_common.warehouse = tn_common.warehouse ? tn_common.warehouse : warehouse;
    o.lake = o.lake ? o.lake : lake;
    return make_folder(o.dir, err);
}

/* The table's memory goes back: what follows has all of it. */
static tn_rc make_table(struct tn_app *app, struct tn_err *err)
{
    struct tn_schema schema;
    struct tn_options options;
    size_t mark = tn_arena_mark(&app->table);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(tn_sensors_schema), &app->table, &schema, err);
    if (rc == TN_OK) {
        rc = tn_make_table(&app->env, TABLE, &schema, &options, err);
    }
    tn_arena_reset(&app->table, mark);
    return rc == TN_EXISTS ? TN_OK : rc;
}

static tn_rc find_start(struct demo *demo, struct tn_err *err)
{
    const char *text = tn_table_position_of(demo->table, SOURCE);
    size_t prefix = sizeof POSITION - 1;
    char *end = NULL;
    if (text) {
        bool known = strncmp(text, POSITION, prefix) == 0;
        demo->first = known ? strtoull(text + prefix, &end, 10) : 0;
        if (!known || *end != 0) {
            return tn_err_set(err, TN_CORRUPT, 0, "position of %s: '%s'", SOURCE, text);
        }
    }
    demo->next = demo->first;
    demo->end = o.records > 0
                    ? (uint64_t)o.records
                    : demo->first + (uint64_t)(o.seconds > 0 ? o.seconds : 0) * TN_SENSORS_A_SECOND;
    if (demo->first > 0 && !tn_common.quiet) {
        (void)fprintf(stderr, "tarn: the sensors go on at record %" PRIu64 "\n", demo->first);
    }
    return TN_OK;
}

static tn_rc open_decoder(struct demo *demo, struct tn_err *err)
{
    const struct tn_schema *schema = tn_table_schema(demo->table);
    void *memory;
    tn_rc rc = tn_arena_need(&demo->app->input, schema->field_count * sizeof(enum tn_epoch),
                             "times", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    enum tn_epoch *epochs = memory;
    int32_t ts = tn_schema_find(schema, tn_bytes_of("ts"));
    if (ts >= 0) {
        epochs[ts] = TN_EPOCH_MS;
    }
    struct tn_decode_spec spec = {.input = TN_INPUT_DEBEZIUM,
                                  .schema = schema,
                                  .layout = tn_table_layout(demo->table),
                                  .epochs = epochs,
                                  .record_size_max = TN_SENSORS_RECORD_MAX};
    rc = tn_decoder_open(&demo->feed.decoder, &spec, &demo->app->input, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(&demo->app->input, BUFFER_SIZE, "records", &memory, err);
    }
    if (rc == TN_OK) {
        tn_buf_init(&demo->buf, memory, BUFFER_SIZE);
    }
    return rc;
}

static tn_rc open_all(struct demo *demo, struct tn_err *err)
{
    static char who[64];
    (void)snprintf(who, sizeof who, "tarn demo, process %ld", (long)getpid());
    tn_rc rc = make_table(demo->app, err);
    if (rc == TN_OK) {
        rc = tn_lake_open(&demo->lake, demo->app, o.lake, TABLE, true, err);
    }
    if (rc == TN_OK) {
        struct tn_table_spec spec = {.name = TABLE,
                                     .who = who,
                                     .identifier = -1,
                                     .compact = true,
                                     .committed = say_committed,
                                     .user_data = demo};
        rc = tn_table_open(&demo->app->env, &spec, &demo->table, err);
    }
    if (rc == TN_OK) {
        rc = tn_table_tell(demo->table, err);
    }
    if (rc == TN_OK) {
        struct tn_feed_spec feed = {.table = demo->table,
                                    .clock = demo->app->env.clock,
                                    .every_rows = TN_SENSORS_A_SECOND,
                                    .note = note,
                                    .bury = bury,
                                    .user = demo};
        tn_feed_init(&demo->feed, &feed);
        rc = find_start(demo, err);
    }
    return rc == TN_OK ? open_decoder(demo, err) : rc;
}

/* ---- the stream ---- */

static tn_rc sync_lake(struct demo *demo, struct tn_err *err)
{
    struct tn_delta_result result;
    struct tn_delta_spec spec = {.root = tn_table_root(demo->table),
                                 .consumer = demo->lake.consumer};
    demo->fresh = false;
    tn_rc rc = tn_lake_sync(&demo->lake, demo->app, &spec, &result, err);
    demo->lake_files += result.files;
    demo->lake_bytes += result.bytes;
    demo->lake_syncs++;
    return rc;
}

/* Work that is due, then the lake. */
static tn_rc turn(struct demo *demo, struct tn_err *err)
{
    tn_rc rc = tn_table_turn(demo->table, false, err);
    return rc == TN_OK && demo->fresh ? sync_lake(demo, err) : rc;
}

static tn_rc send_batch(struct demo *demo, struct tn_err *err)
{
    demo->buf.size = 0;
    uint64_t count = demo->end - demo->next < BATCH ? demo->end - demo->next : BATCH;
    for (uint64_t i = 0; i < count; i++) {
        tn_sensors_record(demo->next + i, &demo->buf);
    }
    struct tn_bytes input = {demo->buf.data, demo->buf.size};
    tn_rc rc = tn_feed_eat(&demo->feed, &input, false, err);
    demo->next += count;
    return rc == TN_AGAIN ? TN_OK : rc; /* records are sent whole */
}

/* The stream keeps its own time: it is never ahead of the clock. */
static void wait_until_due(const struct demo *demo)
{
    struct tn_clock *clock = demo->app->env.clock;
    int64_t passed_ns = clock->vtable->monotonic_ns(clock) - demo->start_ns;
    int64_t due_ns =
        (int64_t)(demo->next - demo->first) * (1000 * 1000 * 1000 / TN_SENSORS_A_SECOND);
    if (!o.fast && due_ns > passed_ns) {
        int64_t left_ns = due_ns - passed_ns;
        struct timespec pause = {.tv_sec = (time_t)(left_ns / (1000 * 1000 * 1000)),
                                 .tv_nsec = (long)(left_ns % (1000 * 1000 * 1000))};
        (void)nanosleep(&pause, NULL);
    }
}

static tn_rc stream(struct demo *demo, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    demo->start_ns = demo->app->env.clock->vtable->monotonic_ns(demo->app->env.clock);
    while (rc == TN_OK && demo->next < demo->end) {
        rc = send_batch(demo, err);
        if (rc == TN_OK) {
            rc = turn(demo, err);
        }
        wait_until_due(demo);
    }
    if (rc == TN_OK) {
        rc = tn_feed_note(&demo->feed, err);
    }
    if (rc == TN_OK) {
        rc = tn_table_finish(demo->table, demo->feed.rows, err);
    }
    return rc == TN_OK ? sync_lake(demo, err) : rc;
}

/* ---- what it came to ---- */

static int64_t peak_kib(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;
}

static tn_rc report(const struct demo *demo, struct tn_err *err)
{
    const struct tn_table_counts *counts = tn_table_counts(demo->table);
    const struct {
        const char *name;
        uint64_t value;
    } lines[] = {
        {"first_record", demo->first},
        {"records", demo->next - demo->first},
        {"dead", demo->feed.dead},
        {"commits", counts->commits},
        {"compactions", counts->compactions},
        {"data_bytes", counts->flushed_bytes},
        {"written_bytes", demo->app->posix.io.counts.bytes_written},
        {"lake_syncs", demo->lake_syncs},
        {"lake_files", demo->lake_files},
        {"lake_bytes", demo->lake_bytes},
        {"peak_memory_kib", (uint64_t)peak_kib()},
    };
    enum { COUNT = sizeof lines / sizeof lines[0] };
    const char *names[COUNT];
    char texts[COUNT][24];
    struct tn_cell cells[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int size = snprintf(texts[i], sizeof texts[i], "%" PRIu64, lines[i].value);
        struct tn_bytes text = {(const unsigned char *)texts[i], (size_t)size};
        names[i] = lines[i].name;
        cells[i] = (struct tn_cell){.text = text, .json = text};
    }
    struct tn_output output;
    tn_rc rc = tn_output_open(&output, names, COUNT, &demo->app->input, err);
    if (rc == TN_OK) {
        rc = tn_output_row(&output, cells, err);
    }
    return rc == TN_OK ? tn_output_close(&output, err) : rc;
}

static tn_rc show(struct demo *demo, struct tn_err *err)
{
    tn_rc rc = open_all(demo, err);
    if (rc == TN_OK) {
        rc = stream(demo, err);
    }
    if (rc == TN_OK) {
        rc = report(demo, err);
    }
    if (demo->table) {
        tn_table_close(demo->table);
    }
    tn_lake_close(&demo->lake);
    return rc;
}

static int run(const struct tn_text_list *words)
{
    static struct tn_app app;
    static struct demo demo;
    struct tn_err err = {0};
    if (words->count > 0) {
        return tn_say_usage(&tn_cmd_demo);
    }
    demo.app = &app;
    demo.lake.lock = -1;
    tn_rc rc = place(&err);
    if (rc == TN_OK) {
        rc = tn_boot(&app, true, &err);
    }
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    rc = show(&demo, &err);
    int code = rc == TN_OK ? 0 : tn_say_error(rc, &err);
    if (code == 0 && demo.feed.dead > 0) {
        code = 1;
    }
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_demo = {
    "demo",
    "demo",
    "simulated sensors into demo.readings, with a lake in a folder; nothing to set up",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
