/* Tables whose rows are resolved before they are written: a resolver in C, random rows, flushes at
 * any size, commits, compactions, another compactor, another writer, power cuts. Every snapshot
 * holds what the model makes of the rows that it says are in; its changelog leads from what was
 * announced to what is; each row is in the table's fold or among the letters, and in one of them.
 */
#include "base/exec.h"

#include "bed.h"
#include "commit/expire.h"
#include "given.h"
#include "table/state.h"
#include "temp.h"

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
    }
    return rc;
}

static tn_rc turn(struct writer *w)
{
    tn_rc rc = tn_table_turn(w->table, true, &w->err);
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
        for (uint32_t turns = random_below(&w->random, 8); rc == TN_OK && turns > 6; turns--) {
            rc = turn(w);
        }
        if (rc == TN_OK && random_below(&w->random, w->cut_every) == 0) {
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

/* ---- tests ---- */

static void every_snapshot_is_what_the_rows_make(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 8;
    uint64_t runs = 0;
    uint64_t flushes = 0;
    uint64_t letters = 0;
    do {
        struct sim_disk disk;
        uint64_t random = seed;
        make_world(seed, 1 + random_below(&random, ROWS_MAX), random_below(&random, 3) == 0);
        begin_disk(&disk);
        struct writer w = our_writer(&engines[OURS], random);
        tn_rc rc = write_all(&w);
        if (rc != TN_OK) {
            stop(&disk, w.err.text);
        }
        CHECK(w.told == world.row_count);
        flushes += w.counts.flushes;
        letters += w.counts.letters;
        look_again(&engines[OURS], &disk, &w, false);
        sim_disk_deinit(&disk);
        seed++;
        runs++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " flushes, %" PRIu64 " letters\n", runs, flushes,
                 letters);
}

/* ---- the power goes ---- */

struct cuts {
    struct sim_disk disk;
    struct writer writer;
    uint64_t random;
    uint32_t every;
    uint64_t states;
};

/* What is left is opened, looked at, and written on. */
static void look_behind_cut(struct cuts *cuts, const struct sim_disk *disk)
{
    struct sim_disk found;
    struct writer w = our_writer(&engines[AGAIN], random_next(&cuts->random));
    sim_disk_clone(&found, disk);
    sim_disk_reboot(&found, random_below(&cuts->random, 4) ? random_next(&cuts->random) % 100000
                                                           : SIM_SEED_NOTHING);
    letters_start(w.letters, cuts->writer.letters->published);
    w.told = cuts->writer.told;
    look_again(w.engine, &found, &w, false);
    bed_engine_start(w.engine, &found.io, cuts->random);
    tn_rc rc = write_all(&w);
    if (rc != TN_OK) {
        stop(&found, w.err.text);
    }
    CHECK(w.told == world.row_count);
    look_again(w.engine, &found, &w, false);
    sim_disk_deinit(&found);
    cuts->states++;
}

static void before_cut(void *user, struct sim_disk *disk)
{
    struct cuts *cuts = user;
    if (random_below(&cuts->random, cuts->every) == 0) {
        look_behind_cut(cuts, disk);
    }
}

static void a_cut_neither_loses_nor_doubles_a_row(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 4;
    uint64_t states = 0;
    do {
        static struct cuts cuts;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, 200), random_below(&random, 2) == 0);
        cuts = (struct cuts){.random = random, .every = 40};
        begin_disk(&cuts.disk);
        cuts.disk.model = seed % 3 == 0 ? SIM_ORDERED : SIM_STRICT;
        cuts.writer = our_writer(&engines[OURS], random);
        sim_disk_watch(&cuts.disk, before_cut, &cuts);
        tn_rc rc = write_all(&cuts.writer);
        if (rc != TN_OK) {
            stop(&cuts.disk, cuts.writer.err.text);
        }
        sim_disk_deinit(&cuts.disk);
        states += cuts.states;
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " states\n", states);
}

/* ---- calls fail, the script is parked, letters can't be published ---- */

/* As a daemon does it: a table that ended is opened again, and goes on behind what is committed. */
static __attribute__((noinline)) tn_rc write_stubbornly(struct writer *w, uint32_t *reopened)
{
    tn_rc rc = write_all(w);
    for (*reopened = 0; rc != TN_OK && *reopened < 20; (*reopened)++) {
        letters_start(w->letters, w->letters->published);
        rc = write_all(w);
    }
    return rc;
}

static void an_error_neither_loses_nor_doubles_a_row(void)
{
    static const tn_rc codes[] = {TN_FULL, TN_IO, TN_FULL, TN_FULL};
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 8;
    uint64_t retried = 0;
    uint64_t reopened_all = 0;
    do {
        struct sim_disk disk;
        uint64_t random = seed;
        uint32_t reopened;
        make_world(seed, 20 + random_below(&random, 400), random_below(&random, 2) == 0);
        begin_disk(&disk);
        struct writer w = our_writer(&engines[OURS], random);
        w.retries = 3;
        w.letters->refusal = random_below(&random, 2);
        judge.cancel_at = random_below(&random, 2) * random_below(&random, 400);
        sim_disk_fail_call(&disk, 20 + random_below(&random, 3000), codes[seed % COUNT(codes)]);
        tn_rc rc = write_stubbornly(&w, &reopened);
        if (rc != TN_OK) {
            stop(&disk, w.err.text);
        }
        CHECK(w.told == world.row_count);
        retried += 3 - w.retries;
        reopened_all += reopened;
        sim_disk_fail_call(&disk, 0, TN_OK);
        look_again(&engines[OURS], &disk, &w, false);
        sim_disk_deinit(&disk);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " errors went by, %" PRIu64 " tables opened again\n", retried,
                 reopened_all);
}

static void a_parked_script_keeps_rows_and_its_text(void)
{
    struct sim_disk disk;
    make_world(3, 200, false);
    begin_disk(&disk);
    struct writer w = our_writer(&engines[OURS], 3);
    w.cut_every = UINT32_MAX;
    judge.cancel_at = 60;
    tn_rc rc = open_table(&w);
    CHECK_OK(rc, w.err);
    rc = write_rows(&w);
    CHECK(rc == TN_CANCELED && strcmp(w.err.text, "the script is parked") == 0);
    judge.cancel_at = judge.calls + 1;
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK(rc == TN_CANCELED && strcmp(w.err.text, "the script is parked") == 0);
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK_OK(rc, w.err);
    close_table(&w);
    CHECK(w.told == world.row_count);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
}

/* Until they are, nothing is committed; an error comes out, and it is tried again. */
static void letters_are_published_before_their_round(void)
{
    struct sim_disk disk;
    make_world(4, 100, false);
    begin_disk(&disk);
    struct writer w = our_writer(&engines[OURS], 4);
    w.cut_every = UINT32_MAX;
    world.rows[3].value = 13;
    tn_rc rc = open_table(&w);
    CHECK_OK(rc, w.err);
    w.letters->refusal = 2;
    w.letters->delays = 5;
    rc = write_rows(&w);
    CHECK(rc == TN_FULL && strcmp(w.err.text, "no room for letters") == 0 && w.told == 0);
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK(rc == TN_FULL && w.told == 0);
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(w.told == world.row_count && w.letters->publishings == 1 && w.letters->published[3]);
    rc = tn_table_finish(w.table, world.row_count, &w.err); /* a round without letters */
    CHECK_OK(rc, w.err);
    CHECK(w.letters->publishings == 1);
    close_table(&w);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
}

/* The resolver and the sink are asked on a thread of their own, and letters published while none
 * is. */
static void a_worker_s_thread_resolves_as_well(void)
{
    uint64_t seed = given_number("SEED", 1);
    for (uint64_t end = seed + 6; seed < end; seed++) {
        static struct look look;
        char root[TEMP_SIZE];
        struct tn_io_posix posix;
        temp_make(root);
        bed_open_files(&posix, root);
        make_world(seed, ROWS_MAX / 2, true);
        bed_create(&engines[OURS], &posix.io, &world.base);
        struct writer w = our_writer(&engines[OURS], seed);
        bed_engine_start_threads(&engines[OURS], &posix.io);
        tn_rc rc = write_all(&w);
        bed_engine_stop(&engines[OURS]);
        CHECK_OK(rc, w.err);
        bed_engine_start(&engines[OURS], &posix.io, seed);
        memset(&look, 0, sizeof look);
        look.engine = &engines[OURS];
        const char *problem = look_at_all(&look, w.letters->published);
        if (problem) {
            stop(NULL, problem);
        }
        CHECK(look.position == world.row_count);
        tn_io_posix_close(&posix);
        temp_remove(root);
    }
}

/* With `size` bytes for flushes and compactions. */
static uint64_t write_many_runs(uint32_t size)
{
    struct sim_disk disk;
    runs_min = 400;
    make_world(7, 900, true);
    runs_min = 0;
    world.announce = HIDDEN_NONE; /* so that no row is a letter */
    judge.resolver.announce = NULL;
    for (uint32_t i = 0; i < world.row_count; i++) { /* each is a row, of any key */
        world.rows[i] = (struct input){world.rows[i].key, 1 + (int32_t)(i % 3), i, TN_ROW_INSERT};
    }
    begin_disk(&disk);
    struct tn_arena *arena = &engines[OURS].workers[TN_LANE_LONG].arena;
    CHECK(tn_arena_free(arena) > size);
    (void)tn_arena_take(arena, tn_arena_free(arena) - size);
    struct writer w = our_writer(&engines[OURS], 7);
    w.cut_every = 1;
    tn_rc rc = write_all(&w);
    if (rc != TN_OK) {
        stop(&disk, w.err.text);
    }
    CHECK(w.counts.flushes > 400 && w.counts.letters == 0);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
    return w.counts.compactions;
}

/* Memory for a lookup in fewer runs than there may be: a compaction comes first then. */
static void runs_that_are_too_many_are_compacted_first(void)
{
    uint64_t compactions = 0;
    for (uint32_t size = 600 << 10; compactions == 0; size -= 50 << 10) {
        compactions = write_many_runs(size);
    }
}

static void without_a_resolver_no_row_is_taken(void)
{
    struct sim_disk disk;
    make_world(5, 100, false);
    begin_disk(&disk);
    struct writer w = our_writer(&engines[OURS], 5);
    tn_rc rc = write_all(&w);
    CHECK_OK(rc, w.err);
    struct bed_writer plain = {.engine = &engines[OURS], .scenario = &world.base, .who = "a test"};
    rc = bed_open(&plain);
    CHECK_OK(rc, plain.err);
    unsigned char packed[ROW_MAX];
    rc = tn_table_put(plain.table, pack_input(&world.rows[0], packed), TN_ROW_INSERT, &plain.err);
    CHECK(rc == TN_UNSUPPORTED && strstr(plain.err.text, "'tarn.script' = 't.lua'"));
    bed_close(&plain);
    rc = bed_compact(&plain, BED_COMPACTS_ALL);
    CHECK_OK(rc, plain.err);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
}

/* ---- somebody else is there ---- */

static const char writer_path[] = ".tarn/" BED_TABLE ".writer";

struct beside {
    struct sim_disk disk;
    struct writer writer;
    uint64_t random;
    uint32_t every;
    bool appends; /* else he compacts */
    bool here;
    char his[TN_UUID_SIZE]; /* his id, once he has one */
    uint32_t others;        /* of his rows, that are in */
    uint64_t visits;
    bool untold; /* nobody could tell what he did */
};

static void put_id(struct tn_io *io, const char *id)
{
    struct tn_err err;
    tn_rc rc = io->vtable->unlink(io, writer_path, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    if (id[0]) {
        rc = tn_io_write_new(io, writer_path, tn_bytes_of(id), &err);
        CHECK_OK(rc, err);
    }
}

static void get_id(struct tn_io *io, char id[TN_UUID_SIZE])
{
    struct tn_err err;
    struct tn_bytes text;
    tn_rc rc = tn_io_read_all(io, writer_path, 256, &engines[OTHER].own, &text, &err);
    id[0] = 0;
    if (rc == TN_OK) {
        CHECK(text.size == TN_UUID_SIZE - 1);
        memcpy(id, text.data, text.size);
        id[text.size] = 0;
    }
}

static void compact_as_other(struct beside *b)
{
    struct bed_writer w = {.engine = &engines[OTHER], .scenario = &world.base};
    tn_rc rc = bed_compact(&w, random_below(&b->random, 2) ? BED_COMPACTS_ALL : BED_COMPACTS);
    if (rc != TN_OK) {
        stop(&b->disk, w.err.text);
    }
}

static void append_as_other(struct beside *b)
{
    uint32_t count = 1 + random_below(&b->random, 3);
    struct writer w = {.engine = &engines[OTHER],
                       .letters = &sinks[OTHER],
                       .random = b->random,
                       .rows = world.others,
                       .row_count = b->others + count,
                       .source = "other",
                       .cut_every = 1000};
    if (w.row_count > OTHERS_MAX) {
        return;
    }
    tn_rc rc = write_all(&w);
    if (rc != TN_OK) {
        stop(&b->disk, w.err.text);
    }
    b->others += count;
}

/* He obeys no consumer, as an old writer may: files of our newest snapshot go, too. */
static void forget_consumer(struct tn_io *io, const char *ours)
{
    struct tn_err err;
    char path[200];
    (void)snprintf(path, sizeof path, BED_ROOT "/consumer/consumer-tarn-%s", ours);
    tn_rc rc = io->vtable->unlink(io, path, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

static void visit(struct beside *b)
{
    struct tn_io *io = &b->disk.io;
    char ours[TN_UUID_SIZE];
    b->here = true;
    bed_engine_start(&engines[OTHER], io, random_next(&b->random));
    get_id(io, ours);
    if (ours[0]) { /* else we are not open yet */
        put_id(io, b->his);
        if (b->appends) {
            append_as_other(b);
        } else {
            forget_consumer(io, ours);
            compact_as_other(b);
        }
        get_id(io, b->his);
        put_id(io, ours);
        b->visits++;
    }
    b->here = false;
}

static void before_change(void *user, struct sim_disk *disk)
{
    struct beside *b = user;
    (void)disk;
    if (!b->here && random_below(&b->random, b->every) == 0) {
        visit(b);
    }
}

static __attribute__((noinline)) uint32_t write_beside(struct beside *b, uint64_t random)
{
    uint32_t reopened = 0;
    begin_disk(&b->disk);
    b->writer = our_writer(&engines[OURS], random);
    b->writer.retries = b->appends ? 0 : 20; /* what he expires may be what a commit reads */
    sim_disk_watch(&b->disk, before_change, b);
    tn_rc rc = write_all(&b->writer);
    while (rc == TN_CONFLICT && b->appends && reopened < 200) {
        CHECK(strstr(b->writer.err.text, "another writer"));
        letters_start(b->writer.letters, b->writer.letters->published);
        reopened++;
        bed_engine_start(&engines[OURS], &b->disk.io, random_next(&b->random));
        rc = write_all(&b->writer);
    }
    sim_disk_watch(&b->disk, NULL, NULL);
    /* Who only compacts changes no rows, but of what he did and expired at once nobody can tell. */
    bool untellable = rc == TN_CONFLICT && !b->appends &&
                      strstr(b->writer.err.text, "a snapshot of another writer changed");
    if (rc != TN_OK && !untellable) {
        stop(&b->disk, b->writer.err.text);
    }
    CHECK(untellable || b->writer.told == world.row_count);
    b->untold = untellable;
    look_again(&engines[OURS], &b->disk, &b->writer, b->appends);
    sim_disk_deinit(&b->disk);
    return reopened;
}

static void another_compactor_does_no_harm(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 8;
    uint64_t visits = 0;
    uint64_t untold = 0;
    do {
        static struct beside b;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, 300), random_below(&random, 2) == 0);
        b = (struct beside){.random = random, .every = 30 + random_below(&random, 200)};
        (void)write_beside(&b, random);
        visits += b.visits;
        untold += b.untold;
        seed++;
    } while (seconds_now() < until || visits == 0);
    (void)printf("%" PRIu64 " visits, %" PRIu64 " of them of nobody knew what\n", visits, untold);
}

/* He changes rows: what was resolved beside them before comes again, behind them. */
static void another_writer_s_rows_void_a_round(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 8;
    uint64_t visits = 0;
    uint64_t voided = 0;
    uint64_t seeds = 0;
    do {
        static struct beside b;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, ROWS_MAX - 20), false);
        b = (struct beside){
            .random = random, .every = 100 + random_below(&random, 400), .appends = true};
        voided += write_beside(&b, random);
        visits += b.visits;
        seed++;
        seeds++;
    } while (seconds_now() < until || seeds < 8);
    (void)printf("%" PRIu64 " visits, %" PRIu64 " rounds were void\n", visits, voided);
    CHECK(voided > 0 && voided < visits);
}

static int32_t bucket_of(int32_t key)
{
    unsigned char packed[ROW_MAX];
    unsigned char bytes[64];
    static const uint32_t keys[] = {0};
    struct tn_buf scratch;
    struct tn_err err;
    int32_t bucket = -1;
    struct input row = {.key = key};
    tn_buf_init(&scratch, bytes, sizeof bytes);
    tn_rc rc = tn_row_bucket(&layout_of_all, (struct tn_columns){keys, 1}, pack_input(&row, packed),
                             world.base.buckets, &scratch, &bucket, &err);
    CHECK_OK(rc, err);
    return bucket;
}

/* A cut after one row of bucket 0; rows of bucket 1 are flushed for want of memory before that
 * round is committed, since it waits for a compaction. False: it was committed before. */
static bool flush_behind_a_cut(struct beside *b)
{
    struct writer *w = &b->writer;
    struct bed_writer touches = {.table = w->table, .scenario = &world.base};
    tn_rc rc = bed_touch(&touches, 0, 1); /* so that no row waits for its files */
    CHECK_OK(rc, touches.err);
    for (uint32_t i = 0; i < 3; i++) { /* the last is compacted with those before */
        rc = put(w, i);
        CHECK_OK(rc, w->err);
        rc = cut(w, i + 1);
        CHECK_OK(rc, w->err);
        while (i < 2 && !tn_table_idle(w->table)) {
            rc = turn(w);
            CHECK_OK(rc, w->err);
        }
    }
    for (uint32_t i = 3; i < ROWS_MAX && !w->table->open->resolved; i++) {
        rc = put(w, i);
        CHECK_OK(rc, w->err);
    }
    return w->table->open->resolved && w->table->closing && w->told == 2;
}

static tn_rc count_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)entry;
    (void)err;
    ++*(uint32_t *)user;
    return TN_OK;
}

/* Whether snapshots behind `id` that are no compactions have files: rows that are all kept as they
 * were, or are letters, make none. */
static bool has_rows_behind(struct beside *b, int64_t id)
{
    struct bed_engine *engine = &engines[AGAIN];
    struct tn_live_filter every = {0};
    struct tn_snapshot snapshot;
    struct tn_list lists[TN_LIST_COUNT];
    struct tn_err err;
    uint32_t count = 0;
    bed_engine_start(engine, &b->disk.io, 1);
    while (tn_snapshot_read(&b->disk.io, BED_ROOT, ++id, &engine->own, &snapshot, &err) == TN_OK) {
        tn_lists_of(&snapshot, lists);
        if (strcmp(snapshot.commit_kind, "COMPACT") != 0) {
            tn_rc rc = tn_list_each(BED_ROOT, lists[1].name, lists[1].size, &every,
                                    &engine->workers[TN_LANE_LONG], count_entry, &count, &err);
            CHECK_OK(rc, err);
        }
    }
    return count > 0;
}

/* One whose rounds wait for compactions. */
static uint64_t make_waiting_world(uint64_t seed)
{
    do {
        make_world(++seed, ROWS_MAX, false);
    } while (world.base.buckets != 2 || !strstr(world.base.schema, "force-compact\":\"true") ||
             !strstr(world.base.schema, "compaction-trigger\":\"1\""));
    return seed;
}

/* His rows, and all of ours but three, in bucket 1. */
static void place_rows(void)
{
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        if (i < 3) {
            world.rows[i] = (struct input){0, 1 + (int32_t)i, i, TN_ROW_INSERT};
        }
        while (bucket_of(world.rows[i].key) != (i > 2)) {
            world.rows[i].key = (world.rows[i].key + 1) % KEYS;
        }
    }
    for (uint32_t i = 0; i < OTHERS_MAX; i++) {
        world.others[i].key = world.rows[3].key;
    }
}

enum next_fate { NEXT_LATE, NEXT_KEPT, NEXT_VOID, NEXT_FATES };

/* The next round's rows were resolved, and not committed, when he came: they are void exactly when
 * he changed rows. */
static __attribute__((noinline)) enum next_fate resolve_next(struct beside *b, uint64_t random)
{
    enum next_fate fate = NEXT_LATE;
    *b = (struct beside){.appends = true, .random = random};
    begin_disk(&b->disk);
    b->writer = our_writer(&engines[OURS], random);
    engines[OURS].env.memtable_size = 64 * 1024;
    tn_rc rc = open_table(&b->writer);
    CHECK_OK(rc, b->writer.err);
    place_rows();
    if (flush_behind_a_cut(b)) {
        int64_t seen = b->writer.table->last_seen;
        visit(b);
        fate = has_rows_behind(b, seen) ? NEXT_VOID : NEXT_KEPT;
        rc = turn(&b->writer);
        while (rc == TN_OK && !tn_table_idle(b->writer.table)) {
            rc = turn(&b->writer);
        }
        if (rc != (fate == NEXT_VOID ? TN_CONFLICT : TN_OK) || b->writer.told != 3) {
            stop(&b->disk, fate == NEXT_VOID ? "nobody minds his rows" : b->writer.err.text);
        }
        rc = turn(&b->writer);
        CHECK(rc == (fate == NEXT_VOID ? TN_CONFLICT : TN_OK));
    }
    close_table(&b->writer);
    look_again(&engines[OURS], &b->disk, &b->writer, true);
    letters_start(b->writer.letters, b->writer.letters->published);
    bed_engine_start(&engines[OURS], &b->disk.io, 99);
    rc = write_all(&b->writer);
    CHECK_OK(rc, b->writer.err);
    look_again(&engines[OURS], &b->disk, &b->writer, true);
    sim_disk_deinit(&b->disk);
    return fate;
}

static void rows_of_the_next_round_are_void_too(void)
{
    static struct beside b;
    uint64_t seed = given_number("SEED", 1) * 1000;
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 16;
    uint64_t fates[NEXT_FATES] = {0};
    while (fates[NEXT_VOID] < 3 || seconds_now() < until) {
        seed = make_waiting_world(seed);
        fates[resolve_next(&b, seed)]++;
    }
    (void)printf("the next round: %" PRIu64 " void, %" PRIu64 " kept, %" PRIu64 " came late\n",
                 fates[NEXT_VOID], fates[NEXT_KEPT], fates[NEXT_LATE]);
}

/* ---- somebody who leaves no snapshot ---- */

enum { HE_COMPACTS, HE_APPENDS, HE_WIPES, HE_DOES };

/* The properties of somebody's newest snapshot. */
struct kept {
    struct tn_json_pair pairs[16];
    uint32_t count;
    char text[2000];
    size_t size;
};

/* What is in is known by what was seen of each snapshot when it was the newest. */
struct unseen {
    struct beside beside;
    uint32_t may; /* what he does: 1 << HE_COMPACTS ... */
    struct look live;
    int64_t last;
    struct kept ours;
    struct kept his;
    uint64_t gone;   /* snapshots of his that nobody can read */
    uint64_t hidden; /* of them, that changed rows */
};

static const char *keep_text(struct kept *kept, const char *text)
{
    size_t size = strlen(text) + 1;
    CHECK(size <= sizeof kept->text - kept->size);
    char *at = memcpy(kept->text + kept->size, text, size);
    kept->size += size;
    return at;
}

static void keep_properties(struct kept *kept, const struct tn_snapshot *snapshot,
                            const char *source)
{
    uint32_t position = 0;
    if (position_in(snapshot, source, &position) || position == 0) {
        return;
    }
    CHECK(snapshot->properties.count <= COUNT(kept->pairs));
    kept->size = 0;
    kept->count = snapshot->properties.count;
    for (uint32_t i = 0; i < kept->count; i++) {
        kept->pairs[i].key = keep_text(kept, snapshot->properties.pairs[i].key);
        kept->pairs[i].value = keep_text(kept, snapshot->properties.pairs[i].value);
    }
}

static void see_newest(struct unseen *u)
{
    struct bed_engine *engine = &engines[AGAIN];
    struct tn_io *io = &u->beside.disk.io;
    static struct tn_snapshot snapshot;
    struct tn_err err;
    int64_t id = 0;
    tn_arena_reset(&engine->own, 0);
    tn_rc rc = tn_snapshot_latest(io, BED_ROOT, &engine->own, &id, &err);
    if (rc == TN_OK && id > u->last) {
        rc = tn_snapshot_read(io, BED_ROOT, id, &engine->own, &snapshot, &err);
        const char *problem = rc == TN_OK ? advance(&u->live, &snapshot) : err.text;
        if (problem) {
            stop(&u->beside.disk, problem);
        }
        keep_properties(&u->ours, &snapshot, BED_SOURCE);
        keep_properties(&u->his, &snapshot, "other");
        u->last = id;
    }
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

enum { WIPED_MAX = 400 };

struct wipe {
    struct tn_commit_removal files[WIPED_MAX];
    uint32_t count;
    int32_t bucket;
};

static tn_rc wipe_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct wipe *wipe = user;
    bool fits = true;
    struct tn_arena *arena = &engines[OTHER].own;
    if (entry->bucket == wipe->bucket) {
        CHECK(wipe->count < WIPED_MAX);
        wipe->files[wipe->count++] = (struct tn_commit_removal){
            .partition = tn_arena_copy(arena, entry->partition, &fits),
            .bucket = entry->bucket,
            .level = entry->file.level,
            .file_name = tn_arena_text(arena, tn_bytes_of(entry->file.file_name)),
            .upgrade_level = -1};
    }
    CHECK(fits);
    return TN_OK;
}

static void commit_as_other(struct unseen *u, const struct tn_commit_spec *given)
{
    struct bed_engine *engine = &engines[OTHER];
    static struct bed_reader reader;
    struct tn_commit_spec spec = *given;
    struct tn_commit_result result;
    struct tn_err err;
    CHECK(!bed_read_open(engine, &reader));
    spec.root = BED_ROOT;
    spec.schema = reader.schema;
    spec.options = &reader.options;
    spec.user = "another";
    tn_rc rc = tn_commit(&spec, &engine->workers[TN_LANE_LONG], &result, &err);
    if (rc != TN_OK) {
        stop(&u->beside.disk, err.text);
    }
}

/* As a partition is dropped: its files are taken, and none is given. */
static void wipe_as_other(struct unseen *u)
{
    static struct wipe wipe;
    struct bed_engine *engine = &engines[OTHER];
    static struct bed_reader reader;
    static struct tn_snapshot snapshot;
    struct tn_live_filter all = {0};
    struct tn_err err;
    wipe = (struct wipe){
        .bucket = (int32_t)random_below(&u->beside.random, (uint32_t)world.base.buckets)};
    CHECK(!bed_read_open(engine, &reader));
    if (tn_snapshot_read(engine->env.io, BED_ROOT, u->last, &engine->own, &snapshot, &err) !=
        TN_OK) {
        return; /* there is none yet */
    }
    tn_rc rc = tn_live_each(BED_ROOT, &snapshot, reader.schema, &all,
                            &engine->workers[TN_LANE_LONG], wipe_file, &wipe, &err);
    CHECK_OK(rc, err);
    if (wipe.count > 0) {
        commit_as_other(
            u, &(struct tn_commit_spec){.removed = wipe.files, .removed_count = wipe.count});
        see_newest(u);
        for (int32_t key = 0; key < KEYS; key++) {
            if (bucket_of(key) == wipe.bucket) {
                u->live.facts[key] = (struct fact){0};
            }
        }
    }
}

static void act_as_other(struct unseen *u)
{
    struct beside *b = &u->beside;
    uint32_t what = random_below(&b->random, HE_DOES);
    while (!(u->may & 1u << what)) {
        what = (what + 1) % HE_DOES;
    }
    int64_t last = u->last;
    if (what == HE_COMPACTS) {
        compact_as_other(b);
    } else if (what == HE_APPENDS) {
        append_as_other(b);
    } else {
        wipe_as_other(u);
    }
    see_newest(u);
    u->hidden += what != HE_COMPACTS && u->last > last;
}

/* For either writer one is left, which has no files of its own: it finds its positions. */
static void leave_positions(struct unseen *u, struct kept *kept)
{
    commit_as_other(u, &(struct tn_commit_spec){.append_even_if_empty = true,
                                                .properties = {kept->pairs, kept->count}});
    see_newest(u);
}

static void expire_as_other(struct unseen *u)
{
    struct bed_engine *engine = &engines[OTHER];
    static struct bed_reader reader;
    struct tn_expire_result result;
    struct tn_err err;
    int64_t first;
    leave_positions(u, &u->ours);
    leave_positions(u, &u->his);
    CHECK(!bed_read_open(engine, &reader));
    reader.options.snapshot_retained_min = 2;
    reader.options.snapshot_retained_max = 2;
    reader.options.snapshot_expire_limit = 10000;
    struct tn_expire_spec spec = {BED_ROOT, reader.schema, &reader.options, false, false};
    tn_rc rc = tn_expire(&spec, &engine->workers[TN_LANE_LONG], &result, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_earliest(engine->env.io, BED_ROOT, &engine->own, &first, &err);
    CHECK(rc == TN_OK && first == u->last - 1);
}

static void visit_unseen(struct unseen *u)
{
    struct beside *b = &u->beside;
    struct tn_io *io = &b->disk.io;
    char ours[TN_UUID_SIZE];
    int64_t last = u->last;
    b->here = true;
    bed_engine_start(&engines[OTHER], io, random_next(&b->random));
    get_id(io, ours);
    if (ours[0] && u->last > 0) {
        put_id(io, b->his);
        for (uint32_t acts = 1 + random_below(&b->random, 3); acts > 0; acts--) {
            act_as_other(u);
        }
        get_id(io, b->his);
        put_id(io, ours);
        u->gone += (uint64_t)(u->last - last);
        if (u->last > last) {
            forget_consumer(io, ours);
            forget_consumer(io, b->his);
            expire_as_other(u);
        }
        b->visits++;
    }
    b->here = false;
}

static void before_unseen(void *user, struct sim_disk *disk)
{
    struct unseen *u = user;
    struct beside *b = &u->beside;
    (void)disk;
    if (!b->here) {
        b->here = true;
        see_newest(u);
        b->here = false;
        if (random_below(&b->random, b->every) == 0) {
            visit_unseen(u);
        }
    }
}

static void look_at_newest(struct unseen *u)
{
    struct look *look = &u->live;
    static struct tn_snapshot snapshot;
    struct tn_err err;
    see_newest(u);
    look->engine = &engines[AGAIN];
    bed_engine_start(look->engine, &u->beside.disk.io, 5);
    const char *problem = bed_read_open(look->engine, &look->reader);
    if (!problem) {
        tn_rc rc = tn_snapshot_read(&u->beside.disk.io, BED_ROOT, u->last, &look->engine->own,
                                    &snapshot, &err);
        problem = rc == TN_OK ? read_rows(look, &snapshot) : err.text;
    }
    if (!problem && (look->position != world.row_count || look->others != u->beside.others)) {
        problem = BED_PROBLEM("%u rows are in, of others %u", look->position, look->others);
    }
    if (problem) {
        stop(&u->beside.disk, problem);
    }
}

static __attribute__((noinline)) uint32_t write_unseen(struct unseen *u, uint64_t random)
{
    struct beside *b = &u->beside;
    struct writer *w = &b->writer;
    uint32_t reopened = 0;
    begin_disk(&b->disk);
    bed_engine_start(&engines[AGAIN], &b->disk.io, random);
    *w = our_writer(&engines[OURS], random);
    w->retries = 20; /* what he expires may be what we read */
    sim_disk_watch(&b->disk, before_unseen, u);
    tn_rc rc;
    while ((rc = write_all(w)) != TN_OK && reopened < 200) {
        reopened += rc == TN_CONFLICT && strstr(w->err.text, "another writer changed rows");
        letters_start(w->letters, w->letters->published);
        bed_engine_start(&engines[OURS], &b->disk.io, random_next(&b->random));
    }
    sim_disk_watch(&b->disk, NULL, NULL);
    if (rc != TN_OK) {
        stop(&b->disk, w->err.text);
    }
    look_at_newest(u);
    sim_disk_deinit(&b->disk);
    return reopened;
}

struct unseen_count {
    uint64_t visits;
    uint64_t gone;
    uint64_t hidden;
    uint64_t voided;
};

static struct unseen_count visit_worlds_unseen(uint32_t may)
{
    uint64_t seed = given_number("SEED", 1);
    double until = seconds_now() + (double)given_number("CUT_SECONDS", 40) / 8;
    struct unseen_count count = {0};
    for (uint64_t end = seed + 8; seed < end || seconds_now() < until; seed++) {
        static struct unseen u;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, ROWS_MAX - 20), false);
        u = (struct unseen){.beside = {.random = random, .every = 100 + random_below(&random, 400)},
                            .may = may};
        count.voided += write_unseen(&u, random);
        count.visits += u.beside.visits;
        count.gone += u.gone;
        count.hidden += u.hidden;
    }
    (void)printf("%" PRIu64 " visits, %" PRIu64 " snapshots were gone, %" PRIu64
                 " of them had changed rows, %" PRIu64 " rounds were void\n",
                 count.visits, count.gone, count.hidden, count.voided);
    return count;
}

/* Lists of manifests that were merged tell nothing more, and a compaction that leaves no row looks
 * like rows that were dropped: some rounds are void for that. Without a trail it is most. */
static void a_compaction_that_is_gone_voids_no_round(void)
{
    struct unseen_count count = visit_worlds_unseen(1 << HE_COMPACTS);
    CHECK(count.voided * 5 < count.gone * 2);
}

static void rows_that_changed_unseen_void_a_round(void)
{
    struct unseen_count count =
        visit_worlds_unseen(1 << HE_COMPACTS | 1 << HE_APPENDS | 1 << HE_WIPES);
    CHECK(count.hidden > 0 && count.voided > 0);
}

static const struct test tests[] = {
    TEST(every_snapshot_is_what_the_rows_make),
    TEST(without_a_resolver_no_row_is_taken),
    TEST(letters_are_published_before_their_round),
    TEST(a_parked_script_keeps_rows_and_its_text),
    TEST(an_error_neither_loses_nor_doubles_a_row),
    TEST(another_compactor_does_no_harm),
    TEST(a_worker_s_thread_resolves_as_well),
    TEST(runs_that_are_too_many_are_compacted_first),
    TEST(another_writer_s_rows_void_a_round),
    TEST(rows_of_the_next_round_are_void_too),
    TEST(a_compaction_that_is_gone_voids_no_round),
    TEST(rows_that_changed_unseen_void_a_round),
    TEST(a_cut_neither_loses_nor_doubles_a_row),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, ENGINES);
}
