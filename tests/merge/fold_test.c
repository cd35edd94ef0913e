/* The fold against tables of cases, one for each rule of each mode, and against a slow model on
 * random versions. Versions are in sources of their own, or of one level. */
#include "merge/fold.h"

#include "base/heap.h"
#include "check.h"
#include "format/json.h"
#include "random.h"

enum {
    HEAP_SIZE = 1 << 20,
    ARENA_SIZE = 4 << 20,
    VERSIONS_MAX = 400,
    SOURCES_MAX = 16,
    TEXT_SIZE = 1 << 15,
    ROW_MAX = 64,
    LEVEL_MAX = 5,
    NO_VALUE = INT32_MIN, /* NULL */
};

static unsigned char heap_memory[HEAP_SIZE];
static unsigned char arena_memory[ARENA_SIZE];

/* Rows as a cursor, each in a place that the next call overwrites. */
struct list {
    struct tn_iter iter; /* first */
    struct tn_kv rows[VERSIONS_MAX];
    uint32_t count;
    uint32_t at;
    unsigned char row[ROW_MAX];
};

static struct {
    struct tn_change_sink sink; /* first */
    struct tn_state state;
    struct tn_arena arena;
    struct tn_schema schema;
    struct tn_options options;
    struct tn_row_layout layout;
    struct tn_order order;
    uint32_t *fields_of;
    const struct tn_engine *engine;
    struct list lists[SOURCES_MAX];
    uint32_t list_count;
    struct tn_kv states[VERSIONS_MAX]; /* in key order */
    uint32_t state_count;
    uint32_t state_at;
    uint32_t asked;
    char rows[TEXT_SIZE];
    char told[TEXT_SIZE];
    struct tn_err err;
} bed;

/* ---- rows ---- */

static struct tn_kv make_kv(int32_t key, int32_t level, int64_t sequence, enum tn_row_kind kind,
                            int32_t v)
{
    struct tn_value values[] = {{.as.i64 = key},
                                {.null = v == NO_VALUE, .as.i64 = v == NO_VALUE ? 0 : v}};
    unsigned char *data = tn_arena_take(&bed.arena, ROW_MAX);
    CHECK(data);
    struct tn_kv kv = {.row = {data, tn_row_pack(&bed.layout, values, data)},
                       .sequence = sequence,
                       .kind = kind,
                       .level = level};
    kv.prefix = tn_row_prefix(&bed.layout, bed.order.keys, kv.row);
    return kv;
}

static int32_t value_of(const struct tn_kv *kv, uint32_t column)
{
    struct tn_value value;
    tn_row_get(&bed.layout, kv->row, column, &value);
    return value.null ? NO_VALUE : (int32_t)value.as.i64;
}

static void append(char *text, const struct tn_kv *kv, enum tn_row_kind kind)
{
    size_t size = strlen(text);
    int32_t v = value_of(kv, 1);
    char number[16] = "N";
    if (v != NO_VALUE) {
        (void)snprintf(number, sizeof number, "%d", v);
    }
    int n = snprintf(text + size, TEXT_SIZE - size, "%s%d %s %s", size > 0 ? ", " : "",
                     value_of(kv, 0), tn_row_kind_text(kind), number);
    CHECK(n > 0 && size + (size_t)n < TEXT_SIZE);
}

/* ---- what surrounds a fold ---- */

static tn_rc list_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    (void)err;
    struct list *list = (struct list *)(void *)iter;
    memset(list->row, 0xEE, sizeof list->row);
    if (list->at == list->count) {
        return TN_ABSENT;
    }
    *kv = list->rows[list->at++];
    memcpy(list->row, kv->row.data, kv->row.size);
    kv->row.data = list->row;
    return TN_OK;
}

static void list_close(struct tn_iter *iter)
{
    (void)iter;
}

static const struct tn_iter_vtable list_vtable = {list_next, NULL, list_close, NULL};

/* Keys must be asked in order; what was found lives until the next call. */
static tn_rc state_find(struct tn_state *state, const struct tn_kv *key, struct tn_kv *found,
                        struct tn_err *err)
{
    (void)err;
    static unsigned char row[ROW_MAX];
    static int32_t last;
    CHECK(state == &bed.state);
    memset(row, 0xEE, sizeof row);
    int32_t id = value_of(key, 0);
    CHECK(bed.asked == 0 || last < id);
    last = id;
    bed.asked++;
    while (bed.state_at < bed.state_count && value_of(&bed.states[bed.state_at], 0) < id) {
        bed.state_at++;
    }
    if (bed.state_at == bed.state_count || value_of(&bed.states[bed.state_at], 0) != id) {
        return TN_ABSENT;
    }
    *found = bed.states[bed.state_at];
    memcpy(row, found->row.data, found->row.size);
    found->row.data = row;
    return TN_OK;
}

static tn_rc sink_put(struct tn_change_sink *sink, const struct tn_kv *kv, struct tn_err *err)
{
    (void)err;
    CHECK(sink == &bed.sink);
    append(bed.told, kv, kv->kind);
    return TN_OK;
}

static const char *engine_names[] = {"deduplicate", "partial-update", "aggregation", "first-row"};

static void bed_begin(enum tn_merge_engine engine)
{
    memset(&bed, 0, sizeof bed);
    bed.sink.put = sink_put;
    bed.state.find = state_find;
    tn_arena_init(&bed.arena, arena_memory, sizeof arena_memory);
    char text[512];
    (void)snprintf(
        text, sizeof text,
        "{\"fields\": [{\"name\": \"id\", \"type\": \"INT\"}, {\"name\": \"v\", \"type\": "
        "\"INT\"}], \"primaryKeys\": [\"id\"], \"options\": {\"bucket\": \"1\", "
        "\"file.format\": \"avro\", \"merge-engine\": \"%s\"%s}}",
        engine_names[engine],
        engine == TN_MERGE_AGGREGATION ? ", \"fields.v.aggregate-function\": \"sum\"" : "");
    tn_rc rc = tn_schema_from_user(tn_bytes_of(text), &bed.arena, &bed.schema, &bed.err);
    CHECK_OK(rc, bed.err);
    rc = tn_options_read(&bed.schema, TN_OPTIONS_READ, &bed.arena, &bed.options, &bed.err);
    CHECK_OK(rc, bed.err);
    rc = tn_schema_layout(&bed.schema, &bed.layout, &bed.fields_of, NULL, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    bed.order = (struct tn_order){
        .layout = &bed.layout, .keys = bed.schema.primary_keys, .prefix_decides = true};
    rc = tn_engine_make(&bed.options, &bed.order, bed.fields_of, &bed.arena, &bed.engine, &bed.err);
    CHECK_OK(rc, bed.err);
}

static void add_to(uint32_t list, struct tn_kv kv)
{
    CHECK(list < SOURCES_MAX && bed.lists[list].count < VERSIONS_MAX);
    bed.lists[list].rows[bed.lists[list].count++] = kv;
    bed.list_count = list >= bed.list_count ? list + 1 : bed.list_count;
}

/* Folds all; what came is in bed.rows, what was told in bed.told. */
static tn_rc run(const struct tn_fold_spec *spec)
{
    struct tn_iter *iters[SOURCES_MAX];
    for (uint32_t i = 0; i < bed.list_count; i++) {
        bed.lists[i].iter.vtable = &list_vtable;
        iters[i] = &bed.lists[i].iter;
    }
    struct tn_merge merge;
    struct tn_fold fold;
    tn_rc rc = tn_merge_init(&merge, &bed.order, tn_fold_merges(spec), iters, bed.list_count,
                             &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    size_t before = bed.arena.used;
    rc = tn_fold_init(&fold, &merge, spec, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    CHECK(bed.arena.used - before <= tn_fold_size(spec));
    struct tn_kv kv;
    while ((rc = tn_iter_next(&fold.iter, &kv, &bed.err)) == TN_OK) {
        CHECK(kv.prefix == tn_row_prefix(&bed.layout, bed.order.keys, kv.row));
        append(bed.rows, &kv, kv.kind);
    }
    return rc;
}

/* ---- the rules ---- */

enum { DELETES = 1, STATE = 2, TELL = 4, UNEQUAL = 8, NO_ENGINE = 16 };

struct rule {
    enum tn_merge_engine engine;
    enum tn_fold_mode mode;
    unsigned with;        /* of the above: drop_deletes, a state, a change, row-deduplicate */
    const char *versions; /* "level sequence kind value, ..." of key 1 */
    const char *state;    /* "sequence kind value", or NULL */
    const char *rows;     /* NULL: INVALID */
    const char *told;
};

#define SUM   TN_MERGE_AGGREGATION
#define NEW   TN_MERGE_DEDUPLICATE
#define FIRST TN_MERGE_FIRST_ROW
#define PART  TN_MERGE_PARTIAL_UPDATE

static const struct rule rules[] = {
    /* a single version passes as it is; several are merged, of all levels */
    {SUM, TN_FOLD_PLAIN, 0, "0 1 -D 5", NULL, "1 -D 5", ""},
    {SUM, TN_FOLD_PLAIN, DELETES, "0 1 -D 5", NULL, "", ""},
    {SUM, TN_FOLD_PLAIN, 0, "0 1 +U 5", NULL, "1 +U 5", ""},
    {SUM, TN_FOLD_PLAIN, 0, "0 1 +I 5, 0 2 +I 7", NULL, "1 +I 12", ""},
    {SUM, TN_FOLD_PLAIN, DELETES, "0 1 -D 5, 0 2 -D 2", NULL, "1 +I -7", ""},
    {SUM, TN_FOLD_PLAIN, 0, "5 1 +I 5, 3 2 +I 7, 0 3 -D 1", NULL, "1 +I 11", ""},
    {PART, TN_FOLD_PLAIN, 0, "5 1 +I 5, 0 2 +I N", NULL, "1 +I 5", ""},
    {PART, TN_FOLD_PLAIN, 0, "5 1 +I 5, 0 2 -D N", NULL, NULL, ""},
    {PART, TN_FOLD_PLAIN, 0, "0 2 -D 7", NULL, "1 -D 7", ""},
    {FIRST, TN_FOLD_PLAIN, 0, "5 1 +I 5, 4 2 +I 6", NULL, "1 +I 5", ""},
    {NEW, TN_FOLD_PLAIN, 0, "0 9 +U 5, 0 4 -D 6", NULL, "1 +U 5", ""},
    {NEW, TN_FOLD_PLAIN, NO_ENGINE, "0 9 +U 5, 0 4 -D 6", NULL, "1 +U 5", ""},
    {NEW, TN_FOLD_PLAIN, NO_ENGINE | DELETES, "0 9 -U 5, 0 4 +I 6", NULL, "", ""},
    /* reading what lookups made: of the deeper levels the nearest counts */
    {SUM, TN_FOLD_LOOKUP, 0, "5 1 +I 5, 3 2 +I 6", NULL, "1 +I 6", ""},
    {SUM, TN_FOLD_LOOKUP, 0, "5 1 +I 5, 3 2 +I 6, 0 3 +I 1, 0 4 +I 2", NULL, "1 +I 9", ""},
    {SUM, TN_FOLD_LOOKUP, 0, "3 1 +I 5, 5 2 +I 6, -1 3 +I 1", NULL, "1 +I 6", ""},
    {SUM, TN_FOLD_LOOKUP, 0, "3 1 +I 5, 3 2 +I 6, 0 3 +I 1", NULL, "1 +I 6", ""}, /* one of them */
    {SUM, TN_FOLD_LOOKUP, 0, "0 1 -D 5", NULL, "1 -D 5", ""},
    {SUM, TN_FOLD_LOOKUP, 0, "5 1 +I 7, 3 2 -D 5", NULL, "1 +I -5", ""}, /* no longer single */
    {NEW, TN_FOLD_LOOKUP, 0, "5 9 +I 7, 3 2 +I 5", NULL, "1 +I 5", ""},
    {NEW, TN_FOLD_LOOKUP, NO_ENGINE, "5 9 +I 7, 3 2 +I 5", NULL, "1 +I 5", ""},
    {NEW, TN_FOLD_LOOKUP, NO_ENGINE, "5 9 +I 7, 3 2 +I 5, 0 1 +I 4", NULL, "1 +I 5", ""},
    /* compaction by lookup: no single version passes, the state has its place in the sequence */
    {SUM, TN_FOLD_LOOKUP, STATE | TELL, "0 1 -D 5", NULL, "1 +I -5", "1 +I -5"},
    {SUM, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +I 5", "1 +I 10", "1 +I 15", "1 -U 10, 1 +U 15"},
    {SUM, TN_FOLD_LOOKUP, STATE, "0 5 +I 5", "1 +I 10", "1 +I 15", ""},
    {SUM, TN_FOLD_LOOKUP, STATE | TELL, "3 1 +I 10, 0 5 +I 5", "0 +I 99", "1 +I 15",
     "1 -U 10, 1 +U 15"},
    {SUM, TN_FOLD_LOOKUP, STATE | TELL, "5 1 +I 10, 3 5 +I 5", "0 +I 99", "1 +I 5", ""},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +I 5", NULL, "1 +I 5", "1 +I 5"},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +U 5", "1 -D 4", "1 +U 5", "1 +I 5"},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 -D 5", NULL, "1 -D 5", ""},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +I 5, 0 6 -D N", NULL, "1 -D N", ""},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 -D N", "1 +I 10", "1 -D N", "1 -D 10"},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL | DELETES, "0 5 -D N", "1 +I 10", "", "1 -D 10"},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +I 7, 0 6 +I 8", "1 +I 10", "1 +I 8",
     "1 -U 10, 1 +U 8"},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +I 10", "1 +I 10", "1 +I 10", "1 -U 10, 1 +U 10"},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL | UNEQUAL, "0 5 +I 10", "1 +I 10", "1 +I 10", ""},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL | UNEQUAL, "0 5 +I 11", "1 +I 10", "1 +I 11",
     "1 -U 10, 1 +U 11"},
    {NEW, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +I 7", "9 +I 10", "1 +I 10", "1 -U 10, 1 +U 10"},
    {PART, TN_FOLD_LOOKUP, STATE | TELL, "0 5 +I N, 0 9 +I N", "7 +I 3", "1 +I 3",
     "1 -U 3, 1 +U 3"},
    {NEW, TN_FOLD_LOOKUP, TELL, "0 5 +I 7", NULL, "1 +I 7", "1 +I 7"},
    /* first-row: what is there stays; a retract is an error even alone */
    {FIRST, TN_FOLD_FIRST_ROW, STATE | TELL, "0 5 +U 5, 0 6 +I 6", NULL, "1 +U 5", "1 +U 5"},
    {FIRST, TN_FOLD_FIRST_ROW, STATE, "0 5 +I 5, 0 6 +I 6", NULL, "1 +I 5", ""},
    {FIRST, TN_FOLD_FIRST_ROW, STATE | TELL, "0 5 +I 5, 0 6 +I 6", "1 +I 1", "", ""},
    {FIRST, TN_FOLD_FIRST_ROW, STATE | TELL, "3 1 +I 1, 0 6 +I 6", "0 +I 9", "1 +I 1", ""},
    {FIRST, TN_FOLD_FIRST_ROW, STATE | TELL, "0 1 -D 5", NULL, NULL, ""},
    {FIRST, TN_FOLD_FIRST_ROW, STATE | TELL, "3 1 +I 1, 0 1 -D 5", "0 +I 9", NULL, ""},
    /* full compaction: "was" is what the last level had */
    {SUM, TN_FOLD_FULL, TELL, "5 1 +I 5", NULL, "1 +I 5", ""},
    {SUM, TN_FOLD_FULL, TELL, "0 1 +U 5", NULL, "1 +U 5", "1 +I 5"},
    {SUM, TN_FOLD_FULL, TELL, "0 1 -D 5", NULL, "", ""},
    {SUM, TN_FOLD_FULL, TELL, "5 1 +I 10, 0 2 +I 5", NULL, "1 +I 15", "1 -U 10, 1 +U 15"},
    {SUM, TN_FOLD_FULL, TELL, "4 1 +I 10, 0 2 +I 5", NULL, "1 +I 15", "1 +I 15"},
    {NEW, TN_FOLD_FULL, TELL, "5 1 +I 10, 0 2 -D N", NULL, "", "1 -D 10"},
    {NEW, TN_FOLD_FULL, TELL, "3 1 +I 10, 0 2 -D N", NULL, "", ""},
    {NEW, TN_FOLD_FULL, TELL, "5 1 +I 10, 0 2 +I 10", NULL, "1 +I 10", "1 -U 10, 1 +U 10"},
    {NEW, TN_FOLD_FULL, TELL | UNEQUAL, "5 1 +I 10, 0 2 +I 10", NULL, "1 +I 10", ""},
    {NEW, TN_FOLD_FULL, TELL, "0 1 +I 8, 5 2 +I 10", NULL, "1 +I 10", "1 -U 10, 1 +U 10"},
    /* no fold */
    {SUM, TN_FOLD_NONE, 0, "0 5 +I 5, 3 1 -D 1, 0 4 +U 4", NULL, "1 -D 1, 1 +U 4, 1 +I 5", ""},
};

static enum tn_row_kind parse_kind(const char *text)
{
    enum tn_row_kind kind;
    CHECK(tn_row_kind_parse(tn_bytes_of(text), &kind));
    return kind;
}

static struct tn_kv parse_version(int32_t level, const char *text)
{
    long long sequence;
    char kind[4];
    char value[16];
    CHECK(sscanf(text, "%lld %3s %15[-N0-9]", &sequence, kind, value) == 3);
    return make_kv(1, level, sequence, parse_kind(kind),
                   strcmp(value, "N") == 0 ? NO_VALUE : (int32_t)strtol(value, NULL, 10));
}

static void parse_versions(const char *text)
{
    while (text) {
        char *behind;
        int32_t level = (int32_t)strtol(text, &behind, 10);
        add_to(bed.list_count, parse_version(level, behind));
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
}

static uint32_t compared[] = {0, 1};

static struct tn_change change_of(bool deduplicate)
{
    return (struct tn_change){.layout = &bed.layout,
                              .compared = {compared, 2},
                              .deduplicate = deduplicate,
                              .sink = &bed.sink};
}

static void each_mode_folds_and_tells_by_its_rules(void)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        const struct rule *rule = &rules[i];
        bed_begin(rule->engine);
        parse_versions(rule->versions);
        if (rule->state) {
            bed.states[bed.state_count++] = parse_version(LEVEL_MAX, rule->state);
        }
        struct tn_change change = change_of(rule->with & UNEQUAL);
        struct tn_fold_spec spec = {.engine = rule->with & NO_ENGINE ? NULL : bed.engine,
                                    .mode = rule->mode,
                                    .drop_deletes = rule->with & DELETES,
                                    .level_max = LEVEL_MAX,
                                    .state = rule->with & STATE ? &bed.state : NULL,
                                    .change = rule->with & TELL ? &change : NULL,
                                    .row_size_max = ROW_MAX};
        tn_rc rc = run(&spec);
        bool good = rule->rows ? rc == TN_ABSENT && strcmp(bed.rows, rule->rows) == 0 &&
                                     strcmp(bed.told, rule->told) == 0
                               : rc == TN_INVALID;
        if (!good) {
            (void)fprintf(stderr, "rule %zu: %s: rc %d, rows '%s', told '%s'\n", i, rule->versions,
                          (int)rc, bed.rows, bed.told);
        }
        CHECK(good);
    }
}

/* Two versions of a key; the bad one can't be read. It matters where a fold looks at it. */
static void a_version_that_cannot_be_read_counts_only_when_it_is_looked_at(void)
{
    static const char reason[] = "'abc' is no INT";
    static const struct {
        enum tn_merge_engine engine;
        int64_t bad_sequence; /* of the bad one; the good one has 5 */
        int32_t bad_value;
        bool by_sequence_field;
        tn_rc rc;
    } cases[] = {
        {NEW, 1, 7, false, TN_ABSENT},  {NEW, 9, 7, false, TN_CORRUPT},
        {NEW, 1, 7, true, TN_ABSENT},   {NEW, 1, NO_VALUE, true, TN_CORRUPT},
        {SUM, 1, 7, false, TN_CORRUPT}, {SUM, 9, 7, false, TN_CORRUPT},
    };
    static const uint32_t value_column[] = {1};
    for (size_t i = 0; i < COUNT(cases); i++) {
        bed_begin(cases[i].engine);
        if (cases[i].by_sequence_field) {
            bed.order.sequence_fields = (struct tn_columns){value_column, 1};
        }
        struct tn_kv bad = make_kv(1, 0, cases[i].bad_sequence, TN_ROW_INSERT, cases[i].bad_value);
        bad.bad = reason;
        add_to(0, bad);
        add_to(1, make_kv(1, 0, 5, TN_ROW_INSERT, 8));
        struct tn_fold_spec spec = {.engine = bed.engine, .row_size_max = ROW_MAX};
        tn_rc rc = run(&spec);
        CHECK(rc == cases[i].rc);
        CHECK(rc == TN_ABSENT ? strcmp(bed.rows, "1 +I 8") == 0
                              : strcmp(bed.err.text, reason) == 0);
    }
}

/* ---- random versions against a model ---- */

struct draw {
    struct tn_kv all[VERSIONS_MAX]; /* in key order, oldest first */
    uint32_t count;
};

static int compare_full(const void *a, const void *b)
{
    int c = tn_kv_compare(&bed.order, a, b);
    return c != 0 ? c : tn_kv_newer(&bed.order, b, a) ? -1 : 1;
}

/* Level 0 (list 0) may hold a key often where `repeated`, deeper ones hold it once. */
static void draw_versions(struct draw *draw, uint64_t *seed, bool repeated)
{
    uint32_t keys = 1 + random_below(seed, 30);
    for (int32_t level = 0; level <= LEVEL_MAX; level++) {
        uint32_t from = draw->count;
        for (uint32_t key = 0; key < keys; key++) {
            uint32_t copies = random_below(seed, level == 0 && repeated ? 4 : 2);
            for (uint32_t c = 0; c < copies && draw->count < VERSIONS_MAX; c++) {
                draw->all[draw->count] = make_kv(
                    (int32_t)key, level, (int64_t)(draw->count * 7919 % 1009),
                    (enum tn_row_kind)random_below(seed, 4), (int32_t)random_below(seed, 3) - 1);
                draw->count++;
            }
        }
        qsort(draw->all + from, draw->count - from, sizeof *draw->all, compare_full);
        for (uint32_t i = from; i < draw->count; i++) {
            add_to((uint32_t)level, draw->all[i]);
        }
    }
    qsort(draw->all, draw->count, sizeof *draw->all, compare_full);
    for (uint32_t key = 0; key < keys; key++) {
        if (random_below(seed, 2) == 0) {
            bed.states[bed.state_count++] = make_kv(
                (int32_t)key, LEVEL_MAX + 1, (int64_t)random_below(seed, 900) + 2000,
                random_below(seed, 4) == 0 ? TN_ROW_DELETE : TN_ROW_INSERT, 100 + (int32_t)key);
        }
    }
}

/* Sum or newest of versions that are in order. */
static struct tn_kv model_reduce(const struct tn_kv *group, uint32_t count)
{
    if (tn_engine_keeps_newest(bed.engine)) {
        return group[count - 1];
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        int32_t v = value_of(&group[i], 1);
        sum += tn_row_kind_retracts(group[i].kind) ? -v : v;
    }
    return make_kv(value_of(&group[0], 0), 0, 0, TN_ROW_INSERT, (int32_t)sum);
}

static void model_tell(char *told, const struct tn_fold_spec *spec, const struct tn_kv *was,
                       const struct tn_kv *is)
{
    bool before = was && !tn_row_kind_retracts(was->kind);
    bool after = !tn_row_kind_retracts(is->kind);
    if (before && after) {
        if (!spec->change->deduplicate || value_of(was, 1) != value_of(is, 1)) {
            append(told, was, TN_ROW_UPDATE_BEFORE);
            append(told, is, TN_ROW_UPDATE_AFTER);
        }
    } else if (before) {
        append(told, was, TN_ROW_DELETE);
    } else if (after) {
        append(told, is, TN_ROW_INSERT);
    }
}

static const struct tn_kv *model_state(int32_t key)
{
    for (uint32_t i = 0; i < bed.state_count; i++) {
        if (value_of(&bed.states[i], 0) == key) {
            return &bed.states[i];
        }
    }
    return NULL;
}

/* The versions of one key that count, with the state; where "was" stands in them, or -1. */
static uint32_t model_select(const struct tn_fold_spec *spec, const struct tn_kv *group,
                             uint32_t count, struct tn_kv *used, int *was, bool *level0)
{
    int32_t nearest = INT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        nearest = group[i].level > 0 && group[i].level < nearest ? group[i].level : nearest;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (spec->mode != TN_FOLD_LOOKUP || group[i].level == 0 || group[i].level == nearest) {
            used[n++] = group[i];
        }
    }
    const struct tn_kv *state =
        spec->state && nearest == INT32_MAX ? model_state(value_of(&group[0], 0)) : NULL;
    if (state) {
        used[n++] = *state;
        qsort(used, n, sizeof *used, compare_full);
    }
    *was = -1;
    for (uint32_t i = 0; i < n; i++) {
        *level0 = *level0 || used[i].level == 0;
        if (spec->mode == TN_FOLD_FULL ? used[i].level == LEVEL_MAX : used[i].level > 0) {
            *was = (int)i;
        }
    }
    return n;
}

static void model_key(const struct tn_fold_spec *spec, const struct tn_kv *group, uint32_t count,
                      char *rows, char *told)
{
    static struct tn_kv used[VERSIONS_MAX];
    int was;
    bool level0 = false;
    uint32_t n = model_select(spec, group, count, used, &was, &level0);
    bool single = count == 1 && !(spec->mode == TN_FOLD_LOOKUP && spec->change);
    struct tn_kv is = single ? group[0] : model_reduce(used, n);
    bool silent = (spec->mode == TN_FOLD_LOOKUP && !level0) ||
                  (spec->mode == TN_FOLD_FULL && single && was >= 0);
    if (spec->change && !silent) {
        model_tell(told, spec, was >= 0 ? &used[was] : NULL, &is);
    }
    bool drop = spec->drop_deletes || spec->mode == TN_FOLD_FULL;
    if (!drop || !tn_row_kind_retracts(is.kind)) {
        append(rows, &is, is.kind);
    }
}

static void random_versions_are_folded_as_the_model_does(void)
{
    static const enum tn_fold_mode modes[] = {TN_FOLD_PLAIN, TN_FOLD_LOOKUP, TN_FOLD_LOOKUP,
                                              TN_FOLD_FULL};
    for (uint64_t round = 0; round < 400; round++) {
        uint64_t seed = round;
        static struct draw draw;
        static char rows[TEXT_SIZE];
        static char told[TEXT_SIZE];
        memset(&draw, 0, sizeof draw);
        rows[0] = told[0] = 0;
        bed_begin(random_below(&seed, 2) == 0 ? TN_MERGE_DEDUPLICATE : TN_MERGE_AGGREGATION);
        uint32_t m = random_below(&seed, COUNT(modes));
        bool tells = m >= 2;
        struct tn_change change = change_of(random_below(&seed, 2) == 0);
        struct tn_fold_spec spec = {.engine = bed.engine,
                                    .mode = modes[m],
                                    .repeated = random_below(&seed, 2) == 0,
                                    .drop_deletes = random_below(&seed, 2) == 0,
                                    .level_max = LEVEL_MAX,
                                    .state = m == 2 ? &bed.state : NULL,
                                    .change = tells ? &change : NULL,
                                    .row_size_max = ROW_MAX};
        draw_versions(&draw, &seed, spec.repeated);
        for (uint32_t at = 0; at < draw.count;) {
            uint32_t count = 1;
            while (at + count < draw.count &&
                   tn_kv_compare(&bed.order, &draw.all[at], &draw.all[at + count]) == 0) {
                count++;
            }
            model_key(&spec, &draw.all[at], count, rows, told);
            at += count;
        }
        CHECK(run(&spec) == TN_ABSENT);
        CHECK(strcmp(bed.rows, rows) == 0);
        CHECK(strcmp(bed.told, told) == 0);
    }
}

static const struct test tests[] = {
    TEST(a_version_that_cannot_be_read_counts_only_when_it_is_looked_at),
    TEST(each_mode_folds_and_tells_by_its_rules),
    TEST(random_versions_are_folded_as_the_model_does),
};

int main(int argc, char **argv)
{
    static struct tn_heap heap;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
    tn_json_use_heap(&heap);
    return run_tests(argc, argv, tests, COUNT(tests));
}
