/* resolve_world: tables whose rows are resolved before they are written, by a resolver in C, and a
 * model. Every snapshot holds what the model makes of the rows that it says are in; its changelog
 * leads from what was announced to what is; each row is in the table's fold or among the letters,
 * and in one of them. For tests of this folder.
 */
#pragma once

#include "bed.h"
#include "given.h"
#include "table/state.h"

enum { OURS, AGAIN, OTHER, ENGINES };
enum { KEYS = 16, ROWS_MAX = 1000, OTHERS_MAX = 400, TEXT_MAX = 300, ROW_MAX = TEXT_MAX + 64 };

static struct bed_engine engines[ENGINES];

/* ---- rows, and what is made of them ---- */

struct input {
    int32_t key;
    int32_t value;
    uint32_t text;
    enum tn_row_kind kind;
};

struct fact {
    bool present;
    int32_t count;
    int32_t high;
    int32_t told; /* of high, with a dead band */
    uint32_t text;
};

enum { HIDDEN_NONE, HIDDEN_SOME, HIDDEN_ROWS }; /* how announce is: no function, images, all rows */

static struct {
    struct bed_scenario base; /* seed and schema */
    int announce;
    bool changelog;
    uint32_t row_count;
    struct input rows[ROWS_MAX];
    uint32_t other_count;
    struct input others[OTHERS_MAX];
} world;

enum fate { FATE_KEPT, FATE_DELETED, FATE_ROW, FATE_LETTER };

/* What comes of one row; `is` is what was there, and becomes what is. */
static enum fate fate_of(const struct input *row, struct fact *is)
{
    if (row->value == 13) {
        return FATE_LETTER;
    }
    if (row->kind == TN_ROW_DELETE) {
        return row->value % 3 == 0 ? FATE_KEPT : FATE_DELETED;
    }
    if (row->value % 7 == 0) {
        return FATE_KEPT;
    }
    if (row->value % 19 == 0) {
        return FATE_DELETED;
    }
    struct fact was = *is;
    *is = (struct fact){true, 1, row->value, row->value, row->text};
    if (was.present) {
        is->count = row->value % 5 == 0 ? was.count : was.count + 1;
        is->high = was.high > row->value ? was.high : row->value;
        is->told = is->high - was.told > 10 ? is->high : was.told;
        is->text = row->value % 5 == 0 ? was.text : row->text;
    }
    return FATE_ROW;
}

static bool seen(const struct fact *fact)
{
    return fact->present && (world.announce == HIDDEN_NONE || fact->count % 4 != 3);
}

static bool announceable(const struct fact *fact)
{
    return world.announce == HIDDEN_NONE || fact->count % 17 != 16;
}

static bool same_fact(const struct fact *a, const struct fact *b)
{
    return a->present == b->present &&
           (!a->present || (a->count == b->count && a->high == b->high && a->told == b->told &&
                            a->text == b->text));
}

/* False: the row is a letter. */
static bool fold_row(const struct input *row, struct fact *facts)
{
    struct fact is = facts[row->key];
    if (row->kind == TN_ROW_UPDATE_BEFORE) {
        return true;
    }
    switch (fate_of(row, &is)) {
    case FATE_LETTER:
        return false;
    case FATE_KEPT:
        return true;
    case FATE_DELETED:
        facts[row->key] = (struct fact){0};
        return true;
    case FATE_ROW:
        break;
    }
    if (world.changelog && !same_fact(&is, &facts[row->key]) && !announceable(&is)) {
        return false;
    }
    facts[row->key] = is;
    return true;
}

static struct tn_bytes text_of(uint32_t value, char text[TEXT_MAX])
{
    uint64_t random = value;
    uint32_t size = 9 + (value % 3 == 0 ? value % (TEXT_MAX - 9) : 0);
    for (uint32_t i = 0; i < size; i++) {
        text[i] = (char)('a' + random_below(&random, 26));
    }
    return (struct tn_bytes){(const unsigned char *)text, size};
}

/* ---- packed rows: k, n, high, told, t ---- */

static struct tn_column columns_of_all[5];
static struct tn_row_layout layout_of_all;

static uint32_t pack_fact(int32_t key, const struct fact *fact, bool image, unsigned char *at)
{
    char text[TEXT_MAX];
    struct tn_value values[5] = {{.as.i64 = key},
                                 {.as.i64 = fact->count, .null = image},
                                 {.as.i64 = fact->high, .null = image},
                                 {.as.i64 = fact->told},
                                 {.as.bytes = text_of(fact->text, text), .null = image}};
    CHECK(tn_row_packed_size(&layout_of_all, values) <= ROW_MAX);
    return tn_row_pack(&layout_of_all, values, at);
}

/* Input rows have the kind of value in n, the text's number in told. */
static struct tn_row pack_input(const struct input *row, unsigned char *at)
{
    struct fact fact = {true, row->value, 0, (int32_t)row->text, row->text};
    return (struct tn_row){at, pack_fact(row->key, &fact, false, at)};
}

static int32_t column(struct tn_row row, uint32_t i)
{
    struct tn_value value;
    tn_row_get(&layout_of_all, row, i, &value);
    return value.null ? -1 : (int32_t)value.as.i64;
}

/* The text's number is not in a finished row: all numbers that fit it are one fact to us, so it is
 * looked for among the inputs of the key. */
static uint32_t text_in(struct tn_row row)
{
    char text[TEXT_MAX];
    struct tn_bytes bytes = tn_row_bytes(&layout_of_all, row, 4);
    for (uint32_t i = 0; i < world.row_count + world.other_count; i++) {
        const struct input *input =
            i < world.row_count ? &world.rows[i] : &world.others[i - world.row_count];
        if (input->key == column(row, 0) && tn_bytes_equal(text_of(input->text, text), bytes)) {
            return input->text;
        }
    }
    CHECK(!"a text that nobody put");
    return 0;
}

static struct fact unpack(struct tn_row row)
{
    return (struct fact){true, column(row, 1), column(row, 2), column(row, 3), text_in(row)};
}

/* ---- the resolver ---- */

static struct {
    struct tn_resolver resolver;
    uint64_t calls;
    uint64_t cancel_at; /* 0: never */
} judge;

static tn_rc judge_row(struct tn_resolver *resolver, const struct tn_row *now, struct tn_row row,
                       enum tn_row_kind kind, int64_t sequence, enum tn_verdict *verdict,
                       struct tn_buf *out, struct tn_err *err)
{
    (void)resolver;
    CHECK(kind != TN_ROW_UPDATE_BEFORE && sequence >= 0 && out->size == 0);
    CHECK(tn_row_valid(&layout_of_all, row) && (!now || tn_row_valid(&layout_of_all, *now)));
    CHECK(!now || column(*now, 0) == column(row, 0));
    if (++judge.calls == judge.cancel_at) {
        return tn_err_set(err, TN_CANCELED, 0, "the script is parked");
    }
    struct input input = {column(row, 0), column(row, 1), (uint32_t)column(row, 3), kind};
    struct fact is = now ? unpack(*now) : (struct fact){0};
    unsigned char packed[ROW_MAX];
    switch (fate_of(&input, &is)) {
    case FATE_LETTER:
        return tn_err_set(err, TN_INVALID, 0, "value %d", input.value);
    case FATE_KEPT:
        *verdict = TN_VERDICT_KEEP;
        return TN_OK;
    case FATE_DELETED:
        *verdict = TN_VERDICT_DELETE;
        return TN_OK;
    case FATE_ROW:
        break;
    }
    *verdict = TN_VERDICT_ROW;
    tn_buf_append(out, packed, pack_fact(input.key, &is, false, packed));
    return TN_OK;
}

static tn_rc judge_image(struct tn_resolver *resolver, struct tn_row row, bool *shown,
                         struct tn_buf *out, struct tn_err *err)
{
    (void)resolver;
    struct fact fact = unpack(row);
    unsigned char packed[ROW_MAX];
    if (!announceable(&fact)) {
        return tn_err_set(err, TN_INVALID, 0, "count %d can't be announced", fact.count);
    }
    *shown = seen(&fact);
    if (*shown) {
        uint32_t size = pack_fact(column(row, 0), &fact, world.announce == HIDDEN_SOME, packed);
        tn_buf_append(out, packed, size);
    }
    return TN_OK;
}

/* ---- the letters: those that were put, those of flushes that went well, those that others see.
 * Of our rows only; another writer's have a source of their own. ---- */

struct letters {
    struct tn_letter_sink sink; /* first */
    bool open;
    uint32_t put[ROWS_MAX];
    uint32_t put_count;
    bool ready[ROWS_MAX];
    bool published[ROWS_MAX];
    uint32_t delays;  /* AGAINs before the next OK */
    uint32_t refusal; /* 1: the next publish fails */
    uint64_t publishings;
};

static struct letters sinks[ENGINES];

static tn_rc letters_begin(struct tn_letter_sink *sink, struct tn_err *err)
{
    (void)err;
    struct letters *l = (struct letters *)(void *)sink;
    CHECK(!l->open);
    l->open = true;
    l->put_count = 0;
    return TN_OK;
}

static tn_rc letters_put(struct tn_letter_sink *sink, const struct tn_letter *letter,
                         struct tn_err *err)
{
    (void)err;
    struct letters *l = (struct letters *)(void *)sink;
    CHECK(l->open && letter->reason[0] != 0 && letter->origin.part == 7);
    if (letter->origin.source == 1) {
        return TN_OK;
    }
    CHECK(letter->origin.source == 0 && letter->origin.position < world.row_count);
    const struct input *row = &world.rows[letter->origin.position];
    unsigned char packed[ROW_MAX];
    struct tn_row want = pack_input(row, packed);
    CHECK(letter->kind == row->kind && letter->row.size == want.size);
    CHECK(memcmp(letter->row.data, want.data, want.size) == 0);
    for (uint32_t i = 0; i < l->put_count; i++) {
        CHECK(l->put[i] != letter->origin.position);
    }
    l->put[l->put_count++] = (uint32_t)letter->origin.position;
    return TN_OK;
}

static tn_rc letters_end(struct tn_letter_sink *sink, bool success, struct tn_err *err)
{
    (void)err;
    struct letters *l = (struct letters *)(void *)sink;
    CHECK(l->open);
    l->open = false;
    for (uint32_t i = 0; success && i < l->put_count; i++) {
        CHECK(!l->ready[l->put[i]]); /* not twice, whatever failed between */
        l->ready[l->put[i]] = true;
    }
    return TN_OK;
}

static tn_rc letters_publish(struct letters *l, struct tn_err *err)
{
    CHECK(!l->open);
    if (l->delays > 0) {
        l->delays--;
        return tn_err_set(err, TN_AGAIN, 0, "not yet");
    }
    if (l->refusal > 0) {
        l->refusal--;
        return tn_err_set(err, TN_FULL, 0, "no room for letters");
    }
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        l->published[i] = l->published[i] || l->ready[i];
    }
    l->publishings++;
    return TN_OK;
}

/* A process that starts has only what was published. */
static __attribute__((noinline)) void letters_start(struct letters *l, const bool *published)
{
    bool kept[ROWS_MAX] = {0};
    if (published) {
        memcpy(kept, published, sizeof kept);
    }
    *l = (struct letters){.sink = {letters_begin, letters_put, letters_end}};
    memcpy(l->published, kept, sizeof kept);
}

/* ---- a world ---- */

static void draw_inputs(struct input *rows, uint32_t count, uint64_t *random)
{
    uint32_t keys = 1 + random_below(random, KEYS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = random_below(random, 10);
        rows[i] = (struct input){(int32_t)random_below(random, keys),
                                 (int32_t)random_below(random, 60), random_below(random, 1000000),
                                 kind == 0   ? TN_ROW_DELETE
                                 : kind == 1 ? TN_ROW_UPDATE_BEFORE
                                 : kind < 5  ? TN_ROW_UPDATE_AFTER
                                             : TN_ROW_INSERT};
    }
}

static uint32_t runs_min; /* before a bucket is compacted; 0: any */

static __attribute__((noinline)) void make_world(uint64_t seed, uint32_t row_count, bool expires)
{
    uint64_t random = seed ^ 0x7265736f6c7665;
    memset(&world, 0, sizeof world);
    check_seed = seed;
    world.base.seed = seed;
    world.base.buckets = 1 + (int32_t)random_below(&random, 3);
    world.row_count = row_count;
    world.changelog = random_below(&random, 4) != 0;
    world.announce = (int)random_below(&random, 3);
    uint32_t trigger = runs_min > 0 ? runs_min : 1 + random_below(&random, 4);
    (void)snprintf(
        world.base.schema, sizeof world.base.schema,
        "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"INT\"},"
        "{\"name\":\"high\",\"type\":\"INT\"},{\"name\":\"told\",\"type\":\"INT\"},"
        "{\"name\":\"t\",\"type\":\"STRING\"}],\"partitionKeys\":[],\"primaryKeys\":[\"k\"],"
        "\"options\":{\"file.format\":\"avro\",\"bucket\":\"%d\",\"tarn.script\":\"t.lua\","
        "\"changelog-producer\":\"%s\",\"target-file-size\":\"%s\","
        "\"num-sorted-run.compaction-trigger\":\"%u\",\"num-sorted-run.stop-trigger\":\"%u\","
        "\"commit.force-compact\":\"%s\",\"snapshot.num-retained.min\":\"1\","
        "\"snapshot.num-retained.max\":\"%u\"}}",
        world.base.buckets, world.changelog ? "input" : "none",
        random_below(&random, 2) ? "2 kb" : "1 mb", trigger, trigger + random_below(&random, 3),
        random_below(&random, 4) ? "false" : "true",
        expires ? 1 + random_below(&random, 3) : 100000);
    draw_inputs(world.rows, row_count, &random);
    world.other_count = OTHERS_MAX;
    draw_inputs(world.others, OTHERS_MAX, &random);
    judge.resolver.resolve = judge_row;
    judge.resolver.announce = world.announce == HIDDEN_NONE ? NULL : judge_image;
    judge.calls = 0;
    judge.cancel_at = 0;
    for (uint32_t i = 0; i < ENGINES; i++) {
        letters_start(&sinks[i], NULL);
    }
}

/* ---- looking ---- */

struct look {
    struct bed_engine *engine;
    struct bed_reader reader;
    struct fact facts[KEYS]; /* of the model, at a snapshot */
    struct fact told[KEYS];  /* what a follower has */
    bool letters[ROWS_MAX];  /* of the model */
    uint32_t position;
    uint32_t others;
    int64_t first;
    int64_t last;
    bool placed; /* the position is known: not behind a snapshot of others, ours having expired */
    bool voided; /* rounds were: a letter of theirs may be a row that came again */
};

static struct fact image_of(const struct fact *fact)
{
    struct fact none = {0};
    if (!seen(fact)) {
        return none;
    }
    return world.announce == HIDDEN_SOME ? (struct fact){true, -1, -1, fact->told, 0} : *fact;
}

static struct fact image_in(struct tn_row row)
{
    if (!tn_row_null(row, 4)) {
        return unpack(row);
    }
    return (struct fact){true, column(row, 1), column(row, 2), column(row, 3), 0};
}

static const char *position_in(const struct tn_snapshot *snapshot, const char *source,
                               uint32_t *position)
{
    for (uint32_t i = 0; i < snapshot->properties.count; i++) {
        const struct tn_json_pair *pair = &snapshot->properties.pairs[i];
        if (strncmp(pair->key, TN_POSITION_PROPERTY, sizeof TN_POSITION_PROPERTY - 1) == 0 &&
            strcmp(pair->key + sizeof TN_POSITION_PROPERTY - 1, source) == 0) {
            uint32_t at = (uint32_t)strtoul(pair->value, NULL, 10);
            if (at < *position) {
                return BED_PROBLEM("%s: %u after %u", source, at, *position);
            }
            *position = at;
        }
    }
    return NULL;
}

/* Our snapshots say by which script they were made. */
static bool has_own_property(const struct tn_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->properties.count; i++) {
        const struct tn_json_pair *pair = &snapshot->properties.pairs[i];
        if (strcmp(pair->key, "tarn.script.merge") == 0 && strcmp(pair->value, "0123") == 0) {
            return true;
        }
    }
    return false;
}

static const char *advance(struct look *look, const struct tn_snapshot *snapshot)
{
    uint32_t from = look->position;
    uint32_t others = look->others;
    const char *problem = bed_has_position(snapshot) && !has_own_property(snapshot)
                              ? "no script is named"
                              : position_in(snapshot, BED_SOURCE, &look->position);
    problem = problem ? problem : position_in(snapshot, "other", &look->others);
    for (uint32_t i = from; !problem && i < look->position; i++) {
        look->letters[i] = !fold_row(&world.rows[i], look->facts);
    }
    for (uint32_t i = others; !problem && i < look->others; i++) {
        (void)fold_row(&world.others[i], look->facts);
    }
    return problem;
}

static const char *read_rows(struct look *look, const struct tn_snapshot *snapshot)
{
    static struct tn_scan scan;
    struct bed_engine *engine = look->engine;
    struct tn_err err;
    struct tn_kv kv;
    bool found[KEYS] = {0};
    struct tn_scan_spec spec = {.root = BED_ROOT,
                                .snapshot = snapshot,
                                .schema = look->reader.schema,
                                .options = &look->reader.options,
                                .schemas = &look->reader.schemas};
    const char *problem = NULL;
    tn_rc rc = tn_scan_open(&scan, &spec, engine->window, BED_WINDOW_SIZE, &engine->own,
                            &engine->workers[TN_LANE_LONG], &err);
    if (rc != TN_OK) {
        return BED_PROBLEM("scan: %s", err.text);
    }
    while (!problem && (rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        struct fact fact = unpack(kv.row);
        int32_t key = column(kv.row, 0);
        found[key] = true;
        if (!same_fact(&fact, &look->facts[key])) {
            problem = BED_PROBLEM("key %d: %d %d %d, not %d %d %d (%d)", key, fact.count, fact.high,
                                  fact.told, look->facts[key].count, look->facts[key].high,
                                  look->facts[key].told, look->facts[key].present);
        }
    }
    if (!problem && rc != TN_ABSENT) {
        problem = BED_PROBLEM("scan: %s", err.text);
    }
    tn_scan_close(&scan);
    tn_arena_reset(&engine->workers[TN_LANE_LONG].arena, engine->marks[TN_LANE_LONG]);
    for (int32_t key = 0; !problem && key < KEYS; key++) {
        if (look->facts[key].present != found[key]) {
            problem = BED_PROBLEM("key %d is lost", key);
        }
    }
    return problem;
}

/* One row of a changelog: what it takes away is what was told before. */
static const char *follow_row(struct look *look, const struct tn_kv *kv, int32_t *updating)
{
    int32_t key = column(kv->row, 0);
    struct fact image = image_in(kv->row);
    struct fact *told = &look->told[key];
    const char *kind = tn_row_kind_text(kv->kind);
    if ((kv->kind == TN_ROW_UPDATE_AFTER) != (*updating >= 0) ||
        (*updating >= 0 && *updating != key)) {
        return BED_PROBLEM("changelog: %s of key %d, and its other half is not there", kind, key);
    }
    if (tn_row_kind_retracts(kv->kind) && !same_fact(told, &image)) {
        return BED_PROBLEM("changelog: %s of key %d shows what was not told", kind, key);
    }
    if (kv->kind == TN_ROW_INSERT && told->present) {
        return BED_PROBLEM("changelog: %s of key %d, which was told", kind, key);
    }
    if (kv->kind == TN_ROW_UPDATE_AFTER && same_fact(told, &image)) {
        return BED_PROBLEM("changelog: %s of key %d changes nothing", kind, key);
    }
    *updating = kv->kind == TN_ROW_UPDATE_BEFORE ? key : -1;
    if (kv->kind == TN_ROW_DELETE) {
        *told = (struct fact){0};
    } else if (!tn_row_kind_retracts(kv->kind)) {
        *told = image;
    }
    return NULL;
}

static const char *follow(struct look *look, int64_t id)
{
    static struct tn_tail tail;
    struct bed_engine *engine = look->engine;
    struct tn_scan_spec scan = {.root = BED_ROOT,
                                .schema = look->reader.schema,
                                .options = &look->reader.options,
                                .schemas = &look->reader.schemas};
    struct tn_tail_spec spec = {.scan = &scan, .source = TN_TAIL_CHANGELOG};
    struct tn_err err;
    struct tn_kv kv;
    int32_t updating = -1;
    const char *problem = NULL;
    tn_rc rc = tn_tail_open(&tail, &spec, &engine->own, &engine->workers[TN_LANE_LONG], &err);
    if (rc == TN_OK) {
        rc = tn_tail_begin(&tail, id, &err);
    }
    while (rc == TN_OK && !problem && (rc = tn_tail_next(&tail, &kv, &err)) == TN_OK) {
        problem = follow_row(look, &kv, &updating);
    }
    tn_tail_end(&tail);
    if (!problem && (rc != TN_ABSENT || updating >= 0)) {
        return BED_PROBLEM("changelog: %s", updating >= 0 ? "ends with a -U" : err.text);
    }
    for (int32_t key = 0; !problem && key < KEYS; key++) {
        struct fact image = image_of(&look->facts[key]);
        if (!same_fact(&image, &look->told[key])) {
            problem = BED_PROBLEM("followed: key %d", key);
        }
    }
    return problem;
}

static const char *look_at(struct look *look, int64_t id)
{
    struct bed_engine *engine = look->engine;
    struct tn_snapshot snapshot;
    struct tn_err err;
    size_t mark = tn_arena_mark(&engine->own);
    tn_rc rc = tn_snapshot_read(engine->env.io, BED_ROOT, id, &engine->own, &snapshot, &err);
    if (rc != TN_OK) {
        return BED_PROBLEM("%s", err.text);
    }
    bool known = look->placed;
    look->placed = known || look->first == 1 || bed_has_position(&snapshot);
    const char *problem = advance(look, &snapshot);
    problem = problem || !look->placed ? problem : read_rows(look, &snapshot);
    if (!problem && world.changelog && (known || id == 1)) {
        problem = follow(look, id);
    }
    for (int32_t key = 0; !problem && look->placed && key < KEYS; key++) {
        look->told[key] = image_of(&look->facts[key]);
    }
    tn_arena_reset(&engine->own, mark);
    return problem;
}

/* Letters of rows that are in are published; no row that is none is one. */
static const char *look_at_letters(const struct look *look, const bool *published)
{
    for (uint32_t i = 0; i < look->position; i++) {
        if (look->letters[i] ? !published[i] : published[i] && !look->voided) {
            return BED_PROBLEM("row %u of %u is %s", i, look->position,
                               published[i] ? "in the table and a letter"
                                            : "neither in the table nor a letter");
        }
    }
    return NULL;
}

static __attribute__((noinline)) const char *look_at_all(struct look *look, const bool *published)
{
    struct bed_engine *engine = look->engine;
    struct tn_err err;
    tn_arena_reset(&engine->own, 0);
    const char *problem = bed_read_open(engine, &look->reader);
    look->first = 1;
    if (problem) {
        return problem;
    }
    tn_rc rc = tn_snapshot_latest(engine->env.io, BED_ROOT, &engine->own, &look->last, &err);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(engine->env.io, BED_ROOT, &engine->own, &look->first, &err);
    }
    for (int64_t id = look->first; rc == TN_OK && !problem && id <= look->last; id++) {
        problem = look_at(look, id);
        if (problem) {
            static char text[700];
            (void)snprintf(text, sizeof text, "snapshot %" PRId64 " of %" PRId64 ": %s", id,
                           look->last, problem);
            problem = text;
        }
    }
    return problem ? problem : look_at_letters(look, published);
}

/* ---- writing ---- */

struct writer {
    struct bed_engine *engine;
    struct letters *letters;
    uint64_t random;
    struct tn_table *table;
    const struct input *rows;
    uint32_t row_count;
    const char *source;
    uint32_t recovered;
    uint32_t told; /* rows that were reported durable */
    uint32_t cut_every;
    uint32_t freeze_every; /* rows, about; 0: when pages are short */
    uint32_t removals_max; /* files that compactions may take of a round; 0: as the table has it */
    uint32_t waited;       /* turns before which a result waited for a cut, and rows for a flush */
    uint32_t crowded;      /* turns behind which a bucket had too many runs for one */
    uint32_t retries;
    bool finished;
    struct tn_err err;
    struct tn_table_counts counts;
};

static void committed(void *user, const struct tn_committed *committed)
{
    struct writer *w = user;
    w->told = committed->row_count > w->told ? (uint32_t)committed->row_count : w->told;
}

static tn_rc publish(void *user, struct tn_err *err)
{
    struct writer *w = user;
    return letters_publish(w->letters, err);
}

static tn_rc open_table(struct writer *w)
{
    static const struct tn_property own[] = {{"tarn.script.merge", "0123"}};
    struct tn_table_spec spec = {.name = BED_TABLE,
                                 .who = w->source[0] == 'o' ? NULL : "a test",
                                 .identifier = -1,
                                 .compact = true,
                                 .resolver = &judge.resolver,
                                 .letters = &w->letters->sink,
                                 .publish_letters = publish,
                                 .properties = own,
                                 .property_count = 1,
                                 .committed = committed,
                                 .user_data = w};
    tn_rc rc = tn_table_open(&w->engine->env, &spec, &w->table, &w->err);
    if (rc == TN_OK) {
        const char *position = tn_table_position_of(w->table, w->source);
        w->recovered = position ? (uint32_t)strtoul(position, NULL, 10) : 0;
        layout_of_all = *tn_table_layout(w->table); /* which lives longer here: engines are many */
        memcpy(columns_of_all, layout_of_all.columns, sizeof columns_of_all);
        layout_of_all.columns = columns_of_all;
        w->table->removals_max = w->removals_max > 0 ? w->removals_max : w->table->removals_max;
    }
    return rc;
}

static void freeze_all(struct writer *w)
{
    for (uint32_t i = 0; i < w->table->places.buckets; i++) {
        struct tn_bucket *bucket = &w->table->buckets[i];
        if (bucket->active) {
            tn_buckets_freeze(w->table, bucket);
        }
    }
}

static tn_rc turn(struct writer *w)
{
    struct tn_table *t = w->table;
    w->waited += t->result_waits && tn_buckets_wait(t);
    tn_rc rc = tn_table_turn(t, true, &w->err);
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        w->crowded += t->buckets[i].crowded;
    }
    if (rc != TN_OK && rc != TN_CONFLICT && w->retries > 0) {
        w->retries--;
        return TN_OK;
    }
    return rc;
}

static tn_rc put(struct writer *w, uint32_t i)
{
    unsigned char packed[ROW_MAX];
    struct tn_row row = pack_input(&w->rows[i], packed);
    struct tn_origin origin = {.position = i, .part = 7, .source = w->source[0] == 'o'};
    tn_rc rc;
    while ((rc = tn_table_put_from(w->table, row, w->rows[i].kind, &origin, &w->err)) == TN_AGAIN) {
        rc = turn(w);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return rc;
}

static tn_rc cut(struct writer *w, uint32_t rows)
{
    char position[16];
    (void)snprintf(position, sizeof position, "%u", rows);
    tn_rc rc = tn_table_position(w->table, w->source, position, &w->err);
    while (rc == TN_OK && (rc = tn_table_cut(w->table, rows, &w->err)) == TN_AGAIN) {
        rc = turn(w);
    }
    return rc;
}

static tn_rc finish(struct writer *w)
{
    tn_rc rc = cut(w, w->row_count);
    while (rc == TN_OK) {
        rc = tn_table_finish(w->table, w->row_count, &w->err);
        if (rc == TN_OK || rc == TN_CONFLICT || w->retries == 0) {
            return rc;
        }
        w->retries--;
        rc = TN_OK;
    }
    return rc;
}

/* Rows from `recovered` on, with turns and cuts between them at random. */
static __attribute__((noinline)) tn_rc write_rows(struct writer *w)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = w->recovered; rc == TN_OK && i < w->row_count; i++) {
        rc = put(w, i);
        if (rc == TN_OK && w->freeze_every > 0 && random_below(&w->random, w->freeze_every) == 0) {
            freeze_all(w);
            rc = turn(w);
        }
        for (uint32_t turns = random_below(&w->random, 8); rc == TN_OK && turns > 6; turns--) {
            rc = turn(w);
        }
        bool full = w->freeze_every > 0 && tn_table_wants_cut(w->table) &&
                    (!w->table->result_waits || random_below(&w->random, 8) == 0);
        if (rc == TN_OK && (full || random_below(&w->random, w->cut_every) == 0)) {
            w->letters->delays = random_below(&w->random, 4);
            rc = cut(w, i + 1);
            for (uint32_t turns = random_below(&w->random, 12); rc == TN_OK && turns > 0; turns--) {
                rc = turn(w);
            }
        }
    }
    return rc == TN_OK ? finish(w) : rc;
}

static void close_table(struct writer *w)
{
    struct tn_err kept = w->err;
    w->counts = *tn_table_counts(w->table);
    tn_table_close(w->table);
    w->err = kept;
}

static __attribute__((noinline)) tn_rc write_all(struct writer *w)
{
    w->engine->env.memtable_size = (size_t)(1 + random_below(&w->random, 4)) * 64 * 1024;
    tn_rc rc = open_table(w);
    if (rc == TN_OK) {
        rc = write_rows(w);
        close_table(w);
    }
    w->finished = rc == TN_OK;
    return rc;
}

static struct writer our_writer(struct bed_engine *engine, uint64_t random)
{
    return (struct writer){.engine = engine,
                           .letters = &sinks[engine - engines],
                           .random = random,
                           .rows = world.rows,
                           .row_count = world.row_count,
                           .source = BED_SOURCE,
                           .cut_every = 1 + (uint32_t)(random % 5 ? random % 40 : random % 400)};
}

static void stop(const struct sim_disk *disk, const char *problem)
{
    COMPLAIN("%s\n%s", problem, world.base.schema);
    if (disk) {
        sim_disk_print_trace(disk);
    }
    abort();
}

static __attribute__((noinline)) void look_again(struct bed_engine *engine, struct sim_disk *disk,
                                                 const struct writer *w, bool voided)
{
    static struct look look;
    memset(&look, 0, sizeof look);
    look.engine = engine;
    look.voided = voided;
    bed_engine_start(engine, &disk->io, 5);
    const char *problem = look_at_all(&look, w->letters->published);
    if (!problem && look.placed && look.position < w->told) {
        problem = BED_PROBLEM("%u rows are in, %u were reported", look.position, w->told);
    }
    engine->env.memtable_size = BED_MEMTABLE_SIZE;
    if (!problem && w->finished) { /* what a cut leaves the next start tidies up */
        problem = bed_fsck(engine);
    }
    if (problem) {
        stop(disk, problem);
    }
}

static void begin_disk(struct sim_disk *disk)
{
    sim_disk_init(disk, BED_DISK_SIZE);
    bed_create(&engines[OURS], &disk->io, &world.base);
}
