/* Dead letters in a table: records that can't be read, rows that are refused, rows that can't be
 * resolved; flushes, cuts, compactions; the power goes before calls that change the disk, what is
 * left is looked at and written on, and cut again. What comes of a record may be another thing each
 * time it comes. Of what is committed every row is in the table or has a letter, and never both. */
#define BED_SCALE 4 /* two tables at once */
#include "bed.h"
#include "given.h"
#include "table/letter_resend.h"

enum { DEPTH_MAX = 2, LOOKER = DEPTH_MAX + 1, ENGINES };
enum { BESIDE = 1, KEYS_BESIDE = 1000 }; /* another writer, and the first of its keys */
enum { RECORDS_MAX = 48, PARTS = 4, VERSIONS_MAX = DEPTH_MAX + 2, RECORD_MAX = 400 };

#define SOURCE  "it's a source"
#define LETTERS "db.dead"
#define AGAIN   "again"

static struct bed_engine engines[ENGINES];
static struct bed_scenario scenario;
static uint32_t record_count;

/* ---- what comes of a record ---- */

enum fate { FATE_NONE, FATE_ROW, FATE_LETTER };

struct outcome {
    enum fate fates[PARTS];
    uint32_t refused; /* the letter of this part is the record's; PARTS: none is */
    uint32_t parts;
    bool unread;
};

/* Some records are the same whenever they come. */
static struct outcome outcome_of(uint32_t record, uint32_t version)
{
    uint64_t seed = scenario.seed * 1000003 + record;
    uint64_t random = seed % 3 == 0 ? seed : seed * 31 + version;
    (void)random_next(&random);
    struct outcome o = {.refused = PARTS, .parts = 1 + random_below(&random, PARTS)};
    o.unread = random_below(&random, 5) == 0;
    if (o.unread || random_below(&random, 6) == 0) {
        o.refused = o.unread ? 0 : random_below(&random, o.parts);
        o.parts = o.refused + 1;
        o.fates[o.refused] = FATE_LETTER;
    }
    for (uint32_t i = 0; i < o.parts; i++) {
        if (i != o.refused) {
            o.fates[i] = random_below(&random, 3) == 0 ? FATE_LETTER : FATE_ROW;
        }
    }
    return o;
}

/* ---- rows: k, version, how often it was folded ---- */

static struct tn_column columns_of_all[3];
static struct tn_row_layout layout_of_all;

/* It lives longer here: engines are many. */
static void learn_layout(const struct tn_table *table)
{
    layout_of_all = *tn_table_layout(table);
    memcpy(columns_of_all, layout_of_all.columns, sizeof columns_of_all);
    layout_of_all.columns = columns_of_all;
}

static struct tn_row pack(int64_t key, int64_t version, int64_t folds, unsigned char *at)
{
    struct tn_value values[3] = {{.as.i64 = key}, {.as.i64 = version}, {.as.i64 = folds}};
    return (struct tn_row){at, tn_row_pack(&layout_of_all, values, at)};
}

static int64_t column(struct tn_row row, uint32_t i)
{
    struct tn_value value;
    tn_row_get(&layout_of_all, row, i, &value);
    return value.as.i64;
}

static tn_rc judge(struct tn_resolver *resolver, const struct tn_row *now, struct tn_row row,
                   enum tn_row_kind kind, int64_t sequence, enum tn_verdict *verdict,
                   struct tn_buf *out, struct tn_err *err)
{
    (void)resolver;
    (void)kind;
    (void)sequence;
    uint32_t key = (uint32_t)column(row, 0);
    uint32_t version = (uint32_t)column(row, 1);
    struct outcome o = outcome_of(key / PARTS, version);
    if (o.fates[key % PARTS] == FATE_LETTER) {
        return tn_err_set(err, TN_INVALID, 0, "version %u", version);
    }
    unsigned char packed[64];
    struct tn_row is = pack(key, version, now ? column(*now, 2) + 1 : 1, packed);
    *verdict = TN_VERDICT_ROW;
    tn_buf_append(out, is.data, is.size);
    return TN_OK;
}

static struct tn_resolver resolver = {.resolve = judge};

/* ---- a program that writes ---- */

/* A box before the table: a process puts no letter twice, whatever failed and was done again. */
struct counted {
    struct tn_letter_box box; /* first */
    struct tn_letter_box *inner;
    bool put[RECORDS_MAX][PARTS];
};

struct program {
    struct bed_engine *engine;
    struct tn_letter_table box;
    struct counted counted;
    struct tn_letters letters;
    unsigned char header[TN_LETTER_HEADER_SIZE];
    struct tn_table *table;
    uint64_t random;
    uint32_t version;
    struct tn_resend resend;
    struct tn_resend_place place;
    bool sends_again;
    uint32_t retries; /* turns that may fail */
    uint16_t source;
    struct tn_err err;
};

static tn_rc counted_put(struct tn_letter_box *box, const struct tn_dead_letter *letter,
                         struct tn_err *err)
{
    struct counted *c = (struct counted *)(void *)box;
    CHECK(letter->position >= 0 && letter->position < RECORDS_MAX && letter->part < PARTS);
    tn_rc rc = c->inner->put(c->inner, letter, err);
    bool *put = &c->put[letter->position][letter->part];
    CHECK(rc != TN_OK || !*put);
    *put = *put || rc == TN_OK;
    return rc;
}

static tn_rc counted_commit(struct tn_letter_box *box, struct tn_err *err)
{
    struct counted *c = (struct counted *)(void *)box;
    return c->inner->commit(c->inner, err);
}

static tn_rc counted_forget(struct tn_letter_box *box, const char *source, int64_t from,
                            uint32_t part, struct tn_err *err)
{
    struct counted *c = (struct counted *)(void *)box;
    return c->inner->forget(c->inner, source, from, part, err);
}

static tn_rc publish(void *user_data, struct tn_err *err)
{
    struct program *p = user_data;
    return tn_letters_publish(&p->letters, err);
}

static tn_rc turn(struct program *p)
{
    tn_rc rc = tn_table_turn(p->table, true, &p->err);
    if (rc != TN_OK && p->retries > 0) {
        p->retries--;
        rc = TN_OK;
    }
    return rc;
}

static tn_rc bury(struct program *p, uint32_t record, uint32_t part)
{
    char text[RECORD_MAX];
    char reason[32];
    size_t size = (size_t)snprintf(text, sizeof text, "record %u of %u%*s", record, p->version,
                                   (int)(record * 7 % 300), "");
    (void)snprintf(reason, sizeof reason, "version %u", p->version);
    struct tn_letter_record letter = {.position = record,
                                      .part = part,
                                      .line = record + 1,
                                      .record = {(const unsigned char *)text, size},
                                      .reason = reason};
    return tn_letters_bury(&p->letters, &letter, &p->err);
}

static tn_rc put(struct program *p, uint32_t record, uint32_t part)
{
    unsigned char packed[64];
    struct tn_row row = pack(record * PARTS + part, p->version, 0, packed);
    struct tn_origin origin = {record, part, p->source};
    tn_rc rc;
    while ((rc = tn_table_put_from(p->table, row, TN_ROW_INSERT, &origin, &p->err)) == TN_AGAIN) {
        rc = turn(p);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return rc;
}

static tn_rc take(struct program *p, uint32_t record)
{
    struct outcome o = outcome_of(record, p->version);
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < o.parts; i++) {
        rc = i == o.refused ? bury(p, record, i) : put(p, record, i);
    }
    return rc;
}

static tn_rc cut_at(struct program *p, const char *source, const char *position)
{
    tn_rc rc = tn_letters_publish(&p->letters, &p->err);
    if (rc != TN_OK && p->retries > 0) {
        p->retries--;
        rc = tn_letters_publish(&p->letters, &p->err);
    }
    if (rc == TN_OK) {
        rc = tn_table_position(p->table, source, position, &p->err);
    }
    while (rc == TN_OK && (rc = tn_table_cut(p->table, 0, &p->err)) == TN_AGAIN) {
        rc = turn(p);
    }
    return rc;
}

static tn_rc cut(struct program *p, uint32_t records)
{
    char position[16];
    (void)snprintf(position, sizeof position, "%u", records);
    return cut_at(p, BED_SOURCE, position);
}

static tn_rc finish(struct program *p)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && (rc = tn_table_finish(p->table, record_count, &p->err)) != TN_OK &&
           p->retries > 0) {
        p->retries--;
        rc = TN_OK;
    }
    return rc;
}

static tn_rc write_records(struct program *p, uint32_t from)
{
    uint32_t cut_every = 2 + random_below(&p->random, 12);
    tn_rc rc = TN_OK;
    for (uint32_t i = from; rc == TN_OK && i < record_count; i++) {
        rc = take(p, i);
        for (uint32_t turns = random_below(&p->random, 8); rc == TN_OK && turns > 5; turns--) {
            rc = turn(p);
        }
        if (rc == TN_OK && random_below(&p->random, cut_every) == 0) {
            rc = cut(p, i + 1);
        }
    }
    rc = rc == TN_OK ? cut(p, record_count) : rc;
    return rc == TN_OK ? finish(p) : rc;
}

/* ---- one that sends letters again ---- */

static tn_rc cut_again(struct program *p, int64_t number, uint32_t part)
{
    char position[32];
    p->place = (struct tn_resend_place){number, part};
    (void)snprintf(position, sizeof position, "%" PRId64 ":%u", number, part);
    return cut_at(p, AGAIN, position);
}

/* The rows of a record from `part` on; a cut may come between them. */
static tn_rc take_again(struct program *p, uint32_t record, uint32_t part)
{
    struct outcome o = outcome_of(record, p->version);
    tn_rc rc = TN_OK;
    if (o.refused < part) {
        return bury(p, record, part);
    }
    for (uint32_t i = part; rc == TN_OK && i < o.parts; i++) {
        rc = i == o.refused ? bury(p, record, i) : put(p, record, i);
        if (rc == TN_OK && i + 1 < o.parts && random_below(&p->random, 6) == 0) {
            rc = cut_again(p, p->resend.number - 1, i + 1);
        }
    }
    return rc;
}

static tn_rc send_again(struct program *p, const struct tn_value *values)
{
    uint32_t record = (uint32_t)values[TN_LETTER_POSITION].as.i64;
    uint32_t part = (uint32_t)values[TN_LETTER_PART].as.i64;
    bool is_row = tn_bytes_equal(values[TN_LETTER_INPUT].as.bytes, tn_bytes_of(TN_LETTER_ROW));
    tn_rc rc = is_row ? put(p, record, part) : take_again(p, record, part);
    if (rc == TN_OK && random_below(&p->random, 4) == 0) {
        rc = cut_again(p, p->resend.number, 0);
    }
    return rc;
}

static tn_rc send_all(struct program *p)
{
    const char *text = tn_table_position_of(p->table, AGAIN);
    uint64_t left;
    if (text) {
        char *end;
        p->place.number = strtoll(text, &end, 10);
        p->place.part = (uint32_t)strtoul(end + 1, NULL, 10);
    }
    tn_rc rc = tn_resend_begin(&p->resend, &p->box, BED_TABLE, p->place, &p->err);
    while (rc == TN_OK) {
        struct tn_value values[TN_LETTER_COLUMNS];
        rc = tn_resend_next(&p->resend, values, &p->err);
        rc = rc == TN_OK ? send_again(p, values) : rc;
    }
    rc = rc == TN_ABSENT ? cut_again(p, p->resend.number, 0) : rc;
    rc = rc == TN_OK ? finish(p) : rc;
    rc = rc == TN_OK ? tn_resend_finish(&p->resend, p->place, &left, &p->err) : rc;
    tn_resend_close(&p->resend);
    return rc;
}

static tn_rc open_all(struct program *p, uint32_t *from)
{
    struct tn_letter_table_spec box = {.name = LETTERS, .who = "a test", .table = BED_TABLE};
    struct tn_table_spec spec = {.name = BED_TABLE,
                                 .who = "a test",
                                 .identifier = -1,
                                 .compact = true,
                                 .resolver = &resolver,
                                 .letters = &p->letters.sink,
                                 .publish_letters = publish,
                                 .user_data = p};
    p->engine->env.memtable_size = BED_MEMTABLE_SIZE;
    p->engine->env.row_size_max = 4096;
    tn_rc rc = tn_letter_table_open(&p->box, &p->engine->env, &box, &p->err);
    if (rc == TN_OK) {
        p->counted.inner = &p->box.box;
        p->counted.box = (struct tn_letter_box){.put = counted_put,
                                                .commit = counted_commit,
                                                .forget = counted_forget,
                                                .size_max = p->box.box.size_max};
        rc = tn_letters_open(&p->letters, p->engine->env.io, BED_TABLE, &p->counted.box, p->header,
                             &p->err);
    }
    p->engine->env.memtable_size = (size_t)(1 + random_below(&p->random, 4)) * 64 * 1024;
    if (rc == TN_OK) {
        rc = tn_table_open(&p->engine->env, &spec, &p->table, &p->err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    learn_layout(p->table);
    tn_letters_layout(&p->letters, tn_table_layout(p->table));
    const char *position = tn_table_position_of(p->table, BED_SOURCE);
    *from = position ? (uint32_t)strtoul(position, NULL, 10) : 0;
    return tn_letters_source(&p->letters, SOURCE, "json", *from, 0, !p->sends_again, &p->source,
                             &p->err);
}

static __attribute__((noinline)) tn_rc run_program(struct program *p)
{
    uint32_t from = 0;
    tn_rc rc = open_all(p, &from);
    if (rc == TN_OK) {
        rc = p->sends_again ? send_all(p) : write_records(p, from);
    }
    struct tn_err kept = p->err;
    if (p->table) {
        tn_letter_table_rest(&p->box);
        tn_table_close(p->table);
        tn_letters_close(&p->letters);
    }
    tn_letter_table_close(&p->box);
    p->err = kept;
    return rc;
}

/* ---- looking ---- */

struct found {
    enum fate fates[RECORDS_MAX][PARTS];
    uint32_t versions[RECORDS_MAX][PARTS];
    bool is_record[RECORDS_MAX][PARTS];
    const char *problem;
};
static struct found found;

static void note_found(int64_t record, int64_t part, enum fate fate, uint32_t version, bool whole)
{
    CHECK(record >= 0 && record < RECORDS_MAX && part >= 0 && part < PARTS);
    if (found.fates[record][part] != FATE_NONE && !found.problem) {
        found.problem = BED_PROBLEM("record %d: row %d is in the table and has a letter",
                                    (int)record, (int)part);
    }
    found.fates[record][part] = fate;
    found.versions[record][part] = version;
    found.is_record[record][part] = whole;
}

static uint32_t version_in(struct tn_bytes reason)
{
    char text[64];
    CHECK(reason.size < sizeof text);
    memcpy(text, reason.data, reason.size);
    text[reason.size] = 0;
    CHECK(strncmp(text, "version ", 8) == 0);
    return (uint32_t)strtoul(text + 8, NULL, 10);
}

static tn_rc see_letter(void *user, const struct tn_value *values, struct tn_err *err)
{
    (void)user;
    (void)err;
    CHECK(tn_bytes_equal(values[TN_LETTER_SOURCE].as.bytes, tn_bytes_of(SOURCE)));
    CHECK(tn_bytes_equal(values[TN_LETTER_TABLE].as.bytes, tn_bytes_of(BED_TABLE)));
    bool whole = tn_bytes_equal(values[TN_LETTER_INPUT].as.bytes, tn_bytes_of("json"));
    CHECK(whole == !values[TN_LETTER_LINE].null);
    note_found(values[TN_LETTER_POSITION].as.i64, values[TN_LETTER_PART].as.i64, FATE_LETTER,
               version_in(values[TN_LETTER_REASON].as.bytes), whole);
    return TN_OK;
}

static __attribute__((noinline)) const char *see_letters(struct bed_engine *engine)
{
    static struct tn_letter_table box;
    struct tn_err err;
    struct tn_letter_table_spec spec = {.name = LETTERS, .who = "a test", .table = BED_TABLE};
    engine->env.memtable_size = BED_MEMTABLE_SIZE;
    tn_rc rc = tn_letter_table_open(&box, &engine->env, &spec, &err);
    rc = rc == TN_OK ? tn_letter_table_each(&box, NULL, see_letter, NULL, &err) : rc;
    tn_letter_table_close(&box);
    return rc == TN_OK ? NULL : BED_PROBLEM("letters: %s", err.text);
}

static uint32_t position_in(const struct tn_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->properties.count; i++) {
        const struct tn_json_pair *pair = &snapshot->properties.pairs[i];
        if (strcmp(pair->key, TN_POSITION_PROPERTY BED_SOURCE) == 0) {
            return (uint32_t)strtoul(pair->value, NULL, 10);
        }
    }
    return 0;
}

/* Of the newest snapshot that has one: another writer's have none of ours. */
static uint32_t newest_position(struct bed_engine *engine, int64_t id)
{
    struct tn_snapshot snapshot;
    struct tn_err err;
    uint32_t position = 0;
    while (position == 0 && id > 0 &&
           tn_snapshot_read(engine->env.io, BED_ROOT, id--, &engine->own, &snapshot, &err) ==
               TN_OK) {
        position = position_in(&snapshot);
    }
    return position;
}

static const char *see_rows(struct bed_engine *engine, uint32_t *position)
{
    static struct tn_scan scan;
    static struct bed_reader reader;
    struct tn_snapshot snapshot;
    struct tn_err err;
    struct tn_kv kv;
    int64_t id;
    tn_arena_reset(&engine->own, 0);
    const char *problem = bed_read_open(engine, &reader);
    *position = 0;
    if (problem ||
        tn_snapshot_latest(engine->env.io, BED_ROOT, &engine->own, &id, &err) == TN_ABSENT) {
        return problem;
    }
    tn_rc rc = tn_snapshot_read(engine->env.io, BED_ROOT, id, &engine->own, &snapshot, &err);
    struct tn_scan_spec spec = {.root = BED_ROOT,
                                .snapshot = &snapshot,
                                .schema = reader.schema,
                                .options = &reader.options,
                                .schemas = &reader.schemas};
    if (rc == TN_OK) {
        *position = newest_position(engine, id);
        rc = tn_scan_open(&scan, &spec, engine->window, BED_WINDOW_SIZE, &engine->own,
                          &engine->workers[TN_LANE_LONG], &err);
    }
    if (rc != TN_OK) {
        return BED_PROBLEM("scan: %s", err.text);
    }
    while ((rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        int64_t key = column(kv.row, 0);
        if (key >= KEYS_BESIDE) {
            continue;
        }
        if (column(kv.row, 2) != 1) {
            problem = BED_PROBLEM("key %d was folded %d times", (int)key, (int)column(kv.row, 2));
        }
        note_found(key / PARTS, key % PARTS, FATE_ROW, (uint32_t)column(kv.row, 1), false);
    }
    tn_scan_close(&scan);
    tn_arena_reset(&engine->workers[TN_LANE_LONG].arena, engine->marks[TN_LANE_LONG]);
    return problem || rc == TN_ABSENT ? problem : BED_PROBLEM("scan: %s", err.text);
}

static const char *check_record(uint32_t record)
{
    uint32_t version = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
        version = found.fates[record][i] != FATE_NONE ? found.versions[record][i] : version;
    }
    struct outcome o = outcome_of(record, version);
    for (uint32_t i = 0; i < PARTS; i++) {
        bool same = found.fates[record][i] == o.fates[i];
        if (same && o.fates[i] != FATE_NONE) {
            same = found.versions[record][i] == version &&
                   found.is_record[record][i] == (i == o.refused);
        }
        if (!same) {
            return BED_PROBLEM("record %u: row %u is %d of version %u, not %d of %u", record, i,
                               (int)found.fates[record][i], found.versions[record][i],
                               (int)o.fates[i], version);
        }
    }
    return NULL;
}

/* Some time it had no more rows than those, and none was refused. */
static bool may_end(uint32_t record, uint32_t parts)
{
    for (uint32_t version = 2; version <= VERSIONS_MAX; version++) {
        struct outcome o = outcome_of(record, version);
        if (o.refused == PARTS && o.parts <= parts) {
            return true;
        }
    }
    return false;
}

/* After letters were sent again: rows of the first time are there, and of a record that had a
 * letter as a whole the rest is, too: rows, and a letter for what is behind them. */
static const char *check_sent(uint32_t record)
{
    struct outcome first = outcome_of(record, 1);
    uint32_t found_parts = 0;
    bool whole = false;
    while (found_parts < PARTS && found.fates[record][found_parts] != FATE_NONE && !whole) {
        whole = found.is_record[record][found_parts];
        found_parts++;
    }
    bool right = first.refused == PARTS ? found_parts == first.parts && !whole
                                        : whole || found_parts >= first.refused;
    if (first.refused < PARTS && !whole) {
        right = right && may_end(record, found_parts);
    }
    for (uint32_t i = found_parts; right && i < PARTS; i++) {
        right = found.fates[record][i] == FATE_NONE;
    }
    return right ? NULL
                 : BED_PROBLEM("record %u: %u rows are found%s, the first time %u and %s", record,
                               found_parts, whole ? ", one for the rest" : "", first.parts,
                               first.refused < PARTS ? "a letter" : "none");
}

static const char *see_all(struct sim_disk *disk, uint32_t *position)
{
    struct bed_engine *engine = &engines[LOOKER];
    memset(&found, 0, sizeof found);
    bed_engine_start(engine, &disk->io, 7);
    const char *problem = see_rows(engine, position);
    problem = problem ? problem : see_letters(engine);
    return problem ? problem : found.problem;
}

static const char *look_sent(struct sim_disk *disk)
{
    uint32_t position;
    const char *problem = see_all(disk, &position);
    for (uint32_t i = 0; !problem && i < record_count; i++) {
        problem = check_sent(i);
    }
    return problem;
}

/* All that is committed is right; of the rest there are letters at most. */
static const char *look(struct sim_disk *disk, uint32_t position_min)
{
    uint32_t position;
    const char *problem = see_all(disk, &position);
    if (!problem && position < position_min) {
        problem = BED_PROBLEM("%u of %u records are committed", position, position_min);
    }
    for (uint32_t i = 0; !problem && i < record_count; i++) {
        if (i < position) {
            problem = check_record(i);
        }
        for (uint32_t part = 0; !problem && i >= position && part < PARTS; part++) {
            problem = found.fates[i][part] == FATE_ROW
                          ? BED_PROBLEM("record %u of %u is not committed", i, position)
                          : NULL;
        }
    }
    return problem;
}

/* ---- runs that are cut ---- */

struct run {
    struct program program;
    struct sim_disk disk;
    uint64_t random;
    uint32_t depth;
    uint32_t every; /* one of so many calls is cut */
    double until;
    bool sends_again;
    uint64_t states;
    const char *problem;
    char text[900];
};
static struct run runs[DEPTH_MAX + 1];

static void run_at(struct run *run, const struct sim_disk *from);

static void fail(struct run *run, const char *problem, const char *how, uint64_t call)
{
    if (!run->problem) {
        char kept[800];
        (void)snprintf(kept, sizeof kept, "%s", problem);
        (void)snprintf(run->text, sizeof run->text, "%s (run %u, call %" PRIu64 ", %s)", kept,
                       run->depth, call, how);
        run->problem = run->text;
    }
}

static void look_and_go_on(struct run *run, struct sim_disk *left, const char *how, uint64_t call)
{
    run->states++;
    const char *problem = run->sends_again ? NULL : look(left, 0);
    if (problem) {
        fail(run, problem, how, call);
        return;
    }
    struct run *next = &runs[run->depth + 1];
    *next = (struct run){.random = random_next(&run->random),
                         .depth = run->depth + 1,
                         .every = 90,
                         .sends_again = run->sends_again,
                         .until = run->until};
    run_at(next, left);
    run->states += next->states;
    if (next->problem) {
        fail(run, next->problem, how, call);
    }
}

static void before_call(void *user, struct sim_disk *disk)
{
    struct run *run = user;
    if (run->problem || random_below(&run->random, run->every) != 0 || seconds_now() > run->until) {
        return;
    }
    struct sim_disk left;
    bool killed = random_below(&run->random, 4) == 0;
    sim_disk_clone(&left, disk);
    if (killed) {
        sim_disk_kill(&left);
    } else {
        sim_disk_reboot(&left, random_below(&run->random, 3) ? random_next(&run->random)
                                                             : SIM_SEED_NOTHING);
    }
    look_and_go_on(run, &left, killed ? "killed" : "cut", disk->calls);
    sim_disk_deinit(&left);
}

static void run_at(struct run *run, const struct sim_disk *from)
{
    struct bed_engine *engine = &engines[run->depth];
    sim_disk_clone(&run->disk, from);
    bed_engine_start(engine, &run->disk.io, random_next(&run->random));
    if (run->depth < DEPTH_MAX) {
        sim_disk_watch(&run->disk, before_call, run);
    }
    run->program = (struct program){.engine = engine,
                                    .random = random_next(&run->random),
                                    .version = run->depth + 1 + run->sends_again,
                                    .sends_again = run->sends_again};
    tn_rc rc = run_program(&run->program);
    sim_disk_watch(&run->disk, NULL, NULL);
    if (rc != TN_OK) {
        fail(run, run->program.err.text, "without a cut", 0);
    }
    const char *problem = run->problem       ? NULL
                          : run->sends_again ? look_sent(&run->disk)
                                             : look(&run->disk, record_count);
    if (problem) {
        fail(run, problem, "at the end", 0);
    }
    sim_disk_deinit(&run->disk);
}

static __attribute__((noinline)) void make_world(struct sim_disk *disk, uint64_t seed)
{
    uint64_t random = seed ^ 0x6c6574;
    check_seed = seed;
    scenario = (struct bed_scenario){.seed = seed, .buckets = 1 + (int)random_below(&random, 3)};
    record_count = 4 + random_below(&random, RECORDS_MAX - 4);
    uint32_t trigger = 1 + random_below(&random, 4);
    (void)snprintf(
        scenario.schema, sizeof scenario.schema,
        "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},{\"name\":\"version\",\"type\":\"INT\"},"
        "{\"name\":\"folds\",\"type\":\"INT\"}],\"partitionKeys\":[],\"primaryKeys\":[\"k\"],"
        "\"options\":{\"file.format\":\"avro\",\"bucket\":\"%d\",\"tarn.script\":\"t.lua\","
        "\"changelog-producer\":\"%s\",\"num-sorted-run.compaction-trigger\":\"%u\","
        "\"num-sorted-run.stop-trigger\":\"%u\",\"commit.force-compact\":\"%s\"}}",
        scenario.buckets, random_below(&random, 2) ? "input" : "none", trigger,
        trigger + random_below(&random, 3), random_below(&random, 4) ? "false" : "true");
    sim_disk_init(disk, BED_DISK_SIZE);
    bed_create(&engines[0], &disk->io, &scenario);
}

static void report(const struct run *run, const char *test)
{
    if (run->problem) {
        FAIL("%s\n%s\nrepeat: SEED=%" PRIu64 " tests/table/letters_test %s", run->problem,
             scenario.schema, scenario.seed, test);
    }
}

static void every_row_is_in_the_table_or_has_a_letter_after_any_cut(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t states = 0;
    uint64_t worlds = 0;
    do {
        struct sim_disk base;
        make_world(&base, seed + worlds);
        base.model = (seed + worlds) % 3 == 0 ? SIM_ORDERED : SIM_STRICT;
        runs[0] = (struct run){.random = seed + worlds, .every = 30, .until = until};
        run_at(&runs[0], &base);
        sim_disk_deinit(&base);
        report(&runs[0], __func__);
        states += runs[0].states;
        worlds++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " states\n", worlds, states);
}

static void letters_that_are_sent_again_are_folded_once_after_any_cut(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t states = 0;
    uint64_t worlds = 0;
    do {
        static struct program p;
        struct sim_disk base;
        make_world(&base, seed + worlds);
        bed_engine_start(&engines[0], &base.io, seed);
        p = (struct program){.engine = &engines[0], .random = seed + worlds, .version = 1};
        tn_rc rc = run_program(&p);
        CHECK_OK(rc, p.err);
        base.model = (seed + worlds) % 3 == 0 ? SIM_ORDERED : SIM_STRICT;
        sim_disk_kill(&base); /* handles and locks go */
        runs[0] =
            (struct run){.random = seed + worlds, .every = 30, .until = until, .sends_again = true};
        run_at(&runs[0], &base);
        sim_disk_deinit(&base);
        report(&runs[0], __func__);
        states += runs[0].states;
        worlds++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " states\n", worlds, states);
}

/* One call fails; the program tries again where it may, or begins again. */
static bool fail_one(const struct sim_disk *base, uint64_t seed, uint64_t call,
                     const char **problem)
{
    static const tn_rc codes[] = {TN_FULL, TN_IO};
    static struct program p;
    struct sim_disk disk;
    sim_disk_clone(&disk, base);
    sim_disk_fail_call(&disk, call, codes[(seed + call) % COUNT(codes)]);
    for (uint32_t version = 1; version <= VERSIONS_MAX; version++) {
        bed_engine_start(&engines[0], &disk.io, seed + version);
        p = (struct program){.engine = &engines[0],
                             .random = seed + version,
                             .version = version,
                             .retries = (seed + call) % 4 == 0 ? 0 : 4};
        if (run_program(&p) == TN_OK) {
            break;
        }
        sim_disk_fail_call(&disk, 0, TN_OK);
        *problem = version == VERSIONS_MAX ? BED_PROBLEM("%s", p.err.text) : look(&disk, 0);
        if (*problem) {
            break;
        }
    }
    bool reached = disk.calls >= call;
    sim_disk_fail_call(&disk, 0, TN_OK);
    *problem = *problem ? *problem : look(&disk, record_count);
    sim_disk_deinit(&disk);
    return reached;
}

static void a_call_that_fails_neither_loses_nor_repeats_a_letter(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t count = 0;
    do {
        struct sim_disk base;
        uint64_t random = seed;
        make_world(&base, seed);
        const char *problem = NULL;
        uint64_t call = base.calls;
        do {
            call += 1 + random_below(&random, 12);
            count++;
        } while (fail_one(&base, seed, call, &problem) && !problem && seconds_now() < until);
        if (problem) {
            static struct run run;
            fail(&run, problem, "which fails", call);
            report(&run, __func__);
        }
        sim_disk_deinit(&base);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " calls failed\n", count);
}

/* ---- another writer ---- */

struct rival {
    uint64_t random;
    uint32_t visits;
    bool here;
};

static tn_rc accept(struct tn_resolver *unused, const struct tn_row *now, struct tn_row row,
                    enum tn_row_kind kind, int64_t sequence, enum tn_verdict *verdict,
                    struct tn_buf *out, struct tn_err *err)
{
    (void)unused;
    (void)now;
    (void)kind;
    (void)sequence;
    (void)err;
    *verdict = TN_VERDICT_ROW;
    tn_buf_append(out, row.data, row.size);
    return TN_OK;
}

static struct tn_resolver accepts = {.resolve = accept};

/* A row in each bucket, most likely, without a lock. */
static void write_beside(struct rival *r, struct tn_io *io)
{
    enum { ROWS = 8 };
    struct tn_table_spec spec = {.name = BED_TABLE, .identifier = -1, .resolver = &accepts};
    struct bed_engine *engine = &engines[BESIDE];
    struct tn_table *table;
    struct tn_err err;
    bed_engine_start(engine, io, random_next(&r->random));
    tn_rc rc = tn_table_open(&engine->env, &spec, &table, &err);
    CHECK_OK(rc, err);
    learn_layout(table); /* we may not be open yet */
    for (int64_t i = 0; i < ROWS; i++) {
        unsigned char packed[64];
        struct tn_row row = pack(KEYS_BESIDE + i, r->visits, 1, packed);
        while ((rc = tn_table_put(table, row, TN_ROW_INSERT, &err)) == TN_AGAIN) {
            rc = tn_table_turn(table, true, &err);
            CHECK_OK(rc, err);
        }
        CHECK_OK(rc, err);
    }
    rc = tn_table_finish(table, ROWS, &err);
    CHECK_OK(rc, err);
    tn_table_close(table);
}

/* Its name of a writer is its own: ours is put back behind it. */
static void visit(void *user, struct sim_disk *disk)
{
    static const char path[] = ".tarn/" BED_TABLE ".writer";
    struct rival *r = user;
    struct tn_io *io = &disk->io;
    unsigned char ours[TN_UUID_SIZE];
    struct tn_bytes text;
    struct tn_err err;
    if (r->here || r->visits == VERSIONS_MAX - 1 || random_below(&r->random, 40) != 0) {
        return;
    }
    tn_arena_reset(&engines[LOOKER].own, 0);
    tn_rc rc = tn_io_read_all(io, path, 256, &engines[LOOKER].own, &text, &err);
    if (rc == TN_ABSENT) {
        return; /* we are not open yet */
    }
    CHECK(rc == TN_OK && text.size < sizeof ours);
    memcpy(ours, text.data, text.size);
    r->here = true;
    rc = io->vtable->unlink(io, path, &err);
    CHECK_OK(rc, err);
    write_beside(r, io);
    rc = io->vtable->unlink(io, path, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(io, path, (struct tn_bytes){ours, text.size}, &err);
    CHECK_OK(rc, err);
    r->here = false;
    r->visits++;
}

/* Letters of its rows may be published already; when the rows come again they may be none. */
static bool write_until_not_void(struct sim_disk *disk, struct rival *rival, const char **problem)
{
    static struct program p;
    uint32_t version = 1;
    tn_rc rc;
    sim_disk_watch(disk, visit, rival);
    do {
        bed_engine_start(&engines[0], &disk->io, random_next(&rival->random));
        p = (struct program){
            .engine = &engines[0], .random = random_next(&rival->random), .version = version++};
        rc = run_program(&p);
        rival->here = true; /* not beside who looks */
        *problem = rc != TN_OK && rc != TN_CONFLICT ? BED_PROBLEM("%s", p.err.text)
                                                    : look(disk, rc == TN_OK ? record_count : 0);
        rival->here = false;
    } while (rc == TN_CONFLICT && !*problem);
    sim_disk_watch(disk, NULL, NULL);
    return version > 2;
}

static void what_a_void_round_s_letters_say_is_taken_back(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint64_t worlds = 0;
    uint64_t voided = 0;
    do {
        struct sim_disk disk;
        struct rival rival = {.random = seed + worlds};
        const char *problem;
        make_world(&disk, seed + worlds);
        voided += write_until_not_void(&disk, &rival, &problem);
        if (problem) {
            FAIL("%s\n%s", problem, scenario.schema);
        }
        sim_disk_deinit(&disk);
        worlds++;
    } while (worlds < 20 || seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " had rounds that were void\n", worlds, voided);
    CHECK(voided > 0);
}

/* ---- many ---- */

enum { MANY = 3000, MANY_SIZE = 4000 };

static tn_rc count_letter(void *user, const struct tn_value *values, struct tn_err *err)
{
    uint32_t *count = user;
    (void)err;
    CHECK(values[TN_LETTER_POSITION].as.i64 == *count);
    ++*count;
    return TN_OK;
}

/* More than one commit of the table has memory for. */
static void any_number_of_letters_goes_into_a_table(void)
{
    static struct tn_letter_table box;
    static unsigned char record[MANY_SIZE];
    struct bed_engine *engine = &engines[0];
    struct sim_disk disk;
    struct tn_err err;
    struct tn_letter_table_spec spec = {.name = LETTERS, .who = "a test", .table = BED_TABLE};
    uint64_t random = 1;
    uint32_t count = 0;
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_engine_start(engine, &disk.io, 1);
    engine->env.memtable_size = BED_MEMTABLE_SIZE;
    tn_rc rc = tn_letter_table_open(&box, &engine->env, &spec, &err);
    for (uint32_t i = 0; rc == TN_OK && i < MANY; i++) {
        for (uint32_t at = 0; at < MANY_SIZE; at++) {
            record[at] = (unsigned char)('a' + random_below(&random, 26));
        }
        struct tn_value values[TN_LETTER_COLUMNS] = {
            [TN_LETTER_SOURCE] = {.as.bytes = tn_bytes_of(SOURCE)},
            [TN_LETTER_POSITION] = {.as.i64 = i},
            [TN_LETTER_RECORD] = {.as.bytes = {record, sizeof record}}};
        rc = tn_letter_table_put(&box, values, TN_ROW_INSERT, &err);
    }
    rc = rc == TN_OK ? box.box.commit(&box.box, &err) : rc;
    rc = rc == TN_OK ? tn_letter_table_each(&box, NULL, count_letter, &count, &err) : rc;
    CHECK_OK(rc, err);
    CHECK(count == MANY);
    tn_letter_table_close(&box);
    sim_disk_deinit(&disk);
}

/* As when a table's name is too long for a file's. */
static void letters_that_failed_to_open_can_be_closed(void)
{
    static struct tn_letters letters;
    static unsigned char header[TN_LETTER_HEADER_SIZE];
    static char name[400];
    struct tn_letter_box box = {0};
    struct sim_disk disk;
    struct tn_err err;
    memset(name, 'n', sizeof name - 1);
    memset(&letters, 0, sizeof letters);
    sim_disk_init(&disk, BED_DISK_SIZE);
    tn_rc rc = tn_letters_open(&letters, &disk.io, name, &box, header, &err);
    CHECK(rc == TN_INVALID);
    tn_letters_close(&letters);
    sim_disk_deinit(&disk);
}

static tn_rc take_none(struct tn_letter_box *box, const struct tn_dead_letter *letter,
                       struct tn_err *err)
{
    (void)box;
    (void)err;
    CHECK(!letter);
    return TN_OK;
}

static void a_scratch_file_that_changed_is_an_error(void)
{
    static struct tn_letters letters;
    static unsigned char header[TN_LETTER_HEADER_SIZE];
    static unsigned char other[512];
    struct tn_letter_box box = {.put = take_none, .size_max = 4000};
    struct tn_letter_record letter = {.record = tn_bytes_of("a record"), .reason = "a reason"};
    for (int fill = 0; fill < 256; fill += 85) {
        struct sim_disk disk;
        struct tn_err err;
        uint16_t source;
        int file;
        sim_disk_init(&disk, BED_DISK_SIZE);
        tn_rc rc = tn_letters_open(&letters, &disk.io, BED_TABLE, &box, header, &err);
        CHECK_OK(rc, err);
        rc = tn_letters_source(&letters, SOURCE, "json", 0, 0, false, &source, &err);
        CHECK_OK(rc, err);
        rc = tn_letters_bury(&letters, &letter, &err);
        CHECK_OK(rc, err);
        rc = disk.io.vtable->reopen(&disk.io, letters.records.path, 0, &file, &err);
        CHECK_OK(rc, err);
        memset(other, fill, sizeof other);
        rc = disk.io.vtable->append(&disk.io, file, (struct tn_bytes){other, sizeof other}, &err);
        CHECK_OK(rc, err);
        disk.io.vtable->close(&disk.io, file);
        rc = tn_letters_publish(&letters, &err);
        CHECK(rc == TN_CORRUPT && strstr(err.text, letters.records.path));
        tn_letters_close(&letters);
        sim_disk_deinit(&disk);
    }
}

static const struct test tests[] = {
    TEST(a_scratch_file_that_changed_is_an_error),
    TEST(what_a_void_round_s_letters_say_is_taken_back),
    TEST(any_number_of_letters_goes_into_a_table),
    TEST(letters_that_failed_to_open_can_be_closed),
    TEST(a_call_that_fails_neither_loses_nor_repeats_a_letter),
    TEST(every_row_is_in_the_table_or_has_a_letter_after_any_cut),
    TEST(letters_that_are_sent_again_are_folded_once_after_any_cut),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, COUNT(engines));
}
