#include "read/history.h"

#include "base/check.h"

struct version {
    struct tn_find_version *kept;
    const char *file;
    const char *bad;
    bool told;
    struct version *next; /* which is newer */
};

/* A place for what the merge has made; it grows. */
struct place {
    unsigned char *data;
    uint32_t room;
    struct tn_row row;
};

struct teller {
    struct tn_fold_watch watch; /* first */
    const struct tn_history_spec *spec;
    struct tn_history *history;
    struct tn_find find;
    struct tn_arena rows; /* the versions', and places */
    const struct tn_engine *engine;
    struct version *oldest;
    uint32_t longest;    /* bytes of a row */
    uint32_t step_count; /* told */
    struct tn_value *values;
    bool *changed;
    struct place places[2]; /* before and after a version, by turns */
    uint32_t place;         /* where the row that was made last is */
    bool begun;
    enum tn_row_kind kind; /* of it */
};

/* ---- taking versions ---- */

static const char *below_root(const struct teller *t, const char *dir)
{
    size_t size = strlen(t->spec->scan->root);
    return strncmp(dir, t->spec->scan->root, size) == 0 && dir[size] == '/' ? dir + size + 1 : dir;
}

/* Its place is behind all that are older. */
static void put_in_order(struct teller *t, struct version *version)
{
    const struct tn_order *order = &t->history->projection.order;
    struct version **at = &t->oldest;
    while (*at && !tn_kv_newer(order, &(*at)->kept->kv, &version->kept->kv)) {
        at = &(*at)->next;
    }
    version->next = *at;
    *at = version;
}

/* Where the newest version alone is looked at, others may be bad: that is told, not met. */
static tn_rc take(void *user, const struct tn_kv *kv, const struct tn_level_file *file,
                  const char *dir, struct tn_err *err)
{
    struct teller *t = user;
    void *memory;
    struct tn_find_version *kept;
    tn_rc rc = tn_arena_need(&t->rows, sizeof(struct version), "a version", &memory, err);
    if (rc == TN_OK) {
        rc = tn_find_keep(kv, &t->rows, &kept, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct version *version = memory;
    *version = (struct version){.kept = kept};
    version->file = tn_arena_format(&t->rows, "%s%s", below_root(t, dir), file->name);
    version->bad = kv->bad ? tn_arena_format(&t->rows, "%s", kv->bad) : NULL;
    kept->kv.bad = tn_engine_keeps_newest(t->engine) ? NULL : version->bad;
    if (!version->file || (kv->bad && !version->bad)) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a version's file");
    }
    t->longest = kv->row.size > t->longest ? kv->row.size : t->longest;
    t->history->version_count++;
    put_in_order(t, version);
    return TN_OK;
}

/* ---- telling of them ---- */

static enum tn_history_order order_of(const struct teller *t, const struct version *version)
{
    const struct tn_order *order = &t->history->projection.order;
    const struct version *before = t->oldest;
    if (before == version) {
        return TN_HISTORY_FIRST;
    }
    while (before->next != version) {
        before = before->next;
    }
    const struct tn_kv *a = &before->kept->kv;
    const struct tn_kv *b = &version->kept->kv;
    if (order->sequence_fields.count > 0 &&
        tn_kv_compare_sequence_fields(order, a->row, b->row) != 0) {
        return TN_HISTORY_SEQUENCE_FIELDS;
    }
    if (a->sequence != b->sequence) {
        return TN_HISTORY_SEQUENCE_NUMBER;
    }
    return tn_row_kind_retracts(a->kind) != tn_row_kind_retracts(b->kind) ? TN_HISTORY_ADD
                                                                          : TN_HISTORY_LEVEL;
}

static tn_rc tell(struct teller *t, struct version *version, struct tn_history_step *step,
                  struct tn_err *err)
{
    version->told = true;
    step->number = ++t->step_count;
    step->file = version->file;
    step->kv = &version->kept->kv;
    step->bad = version->bad;
    step->order = order_of(t, version);
    return t->spec->step(t->spec->user, t->history, step, err);
}

static bool same_version(const struct tn_kv *a, const struct tn_kv *b)
{
    return a->sequence == b->sequence && a->kind == b->kind && a->level == b->level;
}

/* The fold may have copied its row. Of two that are the same in all, either is the one. */
static struct version *version_of(const struct teller *t, const struct tn_kv *kv)
{
    struct version *version = t->oldest;
    while (version && (version->told || !same_version(kv, &version->kept->kv) ||
                       kv->row.size != version->kept->kv.row.size ||
                       memcmp(kv->row.data, version->kept->kv.row.data, kv->row.size) != 0)) {
        version = version->next;
    }
    TN_CHECK(version);
    return version;
}

static tn_rc pack(struct teller *t, struct place *place, struct tn_err *err)
{
    const struct tn_row_layout *layout = &t->history->projection.layout;
    uint32_t size = tn_row_packed_size(layout, t->values);
    if (size > place->room) {
        void *memory;
        tn_rc rc = tn_arena_need(&t->rows, size, "a row", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        place->data = memory;
        place->room = size;
    }
    place->row = (struct tn_row){place->data, tn_row_pack(layout, t->values, place->data)};
    return TN_OK;
}

static void compare(struct teller *t, struct tn_row before, struct tn_row after)
{
    const struct tn_row_layout *layout = &t->history->projection.layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        struct tn_value was;
        struct tn_value is;
        tn_row_get(layout, before, i, &was);
        tn_row_get(layout, after, i, &is);
        t->changed[i] = tn_value_compare(&layout->columns[i].type, &was, &is) != 0;
    }
}

/* A version went into the reducer: what it holds now is held against what it held. */
static tn_rc look(struct teller *t, const struct tn_kv *kv, const struct tn_reducer *reducer,
                  struct tn_history_step *step, struct tn_err *err)
{
    struct tn_kv newest;
    enum tn_row_kind before = t->kind;
    step->deed = TN_HISTORY_PASSED;
    if (!tn_reducer_look(reducer, t->values, &t->kind, &newest) || !same_version(&newest, kv)) {
        return TN_OK;
    }
    struct place *after = &t->places[1 - t->place];
    tn_rc rc = pack(t, after, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (t->begun) {
        compare(t, t->places[t->place].row, after->row);
        step->changed = t->changed;
        step->before = before;
    }
    step->deed = t->begun ? TN_HISTORY_COUNTS : TN_HISTORY_BEGINS;
    step->row = after->row;
    step->kind = t->kind;
    t->begun = true;
    t->place = 1 - t->place;
    return TN_OK;
}

static tn_rc seen(struct tn_fold_watch *watch, const struct tn_kv *kv, enum tn_fold_deed deed,
                  const struct tn_reducer *reducer, struct tn_err *err)
{
    static const enum tn_history_deed deeds[] = {
        [TN_FOLD_PASSED] = TN_HISTORY_ALONE,
        [TN_FOLD_DEEPER] = TN_HISTORY_DEEPER,
        [TN_FOLD_FAILED] = TN_HISTORY_FAILS,
    };
    struct teller *t = (struct teller *)(void *)watch;
    struct tn_history_step step = {.deed = deeds[deed]};
    tn_rc rc = TN_OK;
    if (deed == TN_FOLD_FED) {
        rc = look(t, kv, reducer, &step, err);
    }
    if (deed == TN_FOLD_FAILED) {
        step.why = err->text;
    }
    return rc == TN_OK ? tell(t, version_of(t, kv), &step, err) : rc;
}

/* ---- merging ---- */

static bool unseen(const struct teller *t, const struct version *version)
{
    return t->history->engine == TN_MERGE_FIRST_ROW && version->kept->kv.level <= 0;
}

/* The versions that a reader merges; each is a cursor of its own. */
static uint32_t link_seen(struct teller *t, struct tn_find_version **first)
{
    uint32_t count = 0;
    for (struct version *version = t->oldest; version; version = version->next) {
        if (!unseen(t, version)) {
            version->kept->next = *first;
            *first = version->kept;
            count++;
        }
    }
    return count;
}

static tn_rc tell_rest(struct teller *t, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (struct version *version = t->oldest; rc == TN_OK && version; version = version->next) {
        if (!version->told) {
            struct tn_history_step step = {.deed = unseen(t, version) ? TN_HISTORY_UNSEEN
                                                                      : TN_HISTORY_UNREACHED};
            rc = tell(t, version, &step, err);
        }
    }
    return rc;
}

static tn_rc copy_result(struct teller *t, const struct tn_kv *kv, struct tn_err *err)
{
    struct tn_find_version *kept;
    tn_rc rc = tn_find_keep(kv, &t->rows, &kept, err);
    if (rc == TN_OK) {
        t->history->kv = kept->kv;
        t->history->there = true;
    }
    return rc;
}

static const char *bad_of(const struct teller *t, const struct tn_kv *result)
{
    const struct version *version = t->oldest;
    while (version && !(version->bad && same_version(result, &version->kept->kv))) {
        version = version->next;
    }
    return version ? version->bad : NULL;
}

static tn_rc merge(struct teller *t, struct tn_err *err)
{
    const struct tn_projection *p = &t->history->projection;
    struct tn_arena *arena = &t->find.worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_find_version *first = NULL;
    struct tn_fold_spec fold = p->fold;
    struct tn_kv kv;
    uint32_t count = link_seen(t, &first);
    fold.engine = t->engine;
    fold.watch = &t->watch;
    tn_rc rc = count > 0 ? tn_find_fold(first, count, t->longest, &p->order, &fold, arena, &kv, err)
                         : TN_ABSENT;
    if (rc == TN_OK) {
        rc = copy_result(t, &kv, err);
    }
    tn_arena_reset(arena, mark);
    if (rc == TN_OK && tn_engine_keeps_newest(t->engine) && bad_of(t, &t->history->kv)) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s", bad_of(t, &t->history->kv));
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* An error of the merge is what a reader meets: it is kept till all is told. */
static tn_rc tell_all(struct teller *t, struct tn_err *err)
{
    struct tn_err reason;
    tn_rc rc = merge(t, err);
    reason = *err;
    tn_rc told = tell_rest(t, err);
    if (told == TN_OK && rc != TN_OK) {
        *err = reason;
    }
    return told == TN_OK ? rc : told;
}

static tn_rc make_room(struct teller *t, struct tn_arena *arena, struct tn_err *err)
{
    uint32_t n = t->history->projection.layout.column_count + 1;
    void *memory;
    tn_rc rc = tn_arena_need(arena, n * (sizeof *t->values + sizeof *t->changed), "a row's values",
                             &memory, err);
    if (rc == TN_OK) {
        t->values = memory;
        t->changed = (bool *)(t->values + n);
    }
    return rc;
}

/* A watched fold has an engine, even where the newest version is all. */
static tn_rc make_engine(struct teller *t, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_scan_spec *scan = t->spec->scan;
    const struct tn_projection *p = &t->history->projection;
    t->engine = p->fold.engine;
    return t->engine ? TN_OK
                     : tn_engine_make(scan->options, &p->order, NULL, arena, &t->engine, err);
}

static bool wanted(const void *user, const struct tn_entry *entry)
{
    (void)user;
    (void)entry;
    return true;
}

static const struct tn_plan_filter all_files = {wanted, NULL, .level0 = true};

tn_rc tn_history(const struct tn_history_spec *spec, void *window, size_t window_size,
                 struct tn_arena *arena, struct tn_worker *worker, struct tn_history *history,
                 struct tn_err *err)
{
    *history = (struct tn_history){.engine = spec->scan->options->merge_engine};
    struct teller t = {.watch = {seen}, .spec = spec, .history = history};
    struct tn_scan_spec own = *spec->scan;
    own.keep_deletes = true;
    own.filter = &all_files;
    tn_rc rc = tn_find_init(&t.find, &own, spec->key, &history->projection, arena, worker, err);
    if (rc == TN_OK) {
        rc = make_room(&t, arena, err);
    }
    if (rc == TN_OK) {
        rc = make_engine(&t, arena, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    size_t half = window_size / 2 & ~(size_t)63;
    tn_arena_init(&t.rows, (unsigned char *)window + half, window_size - half);
    t.find.taker = (struct tn_find_taker){take, NULL, &t};
    rc = tn_find_run(&t.find, window, half, err);
    history->file_count = t.find.file_count;
    if (rc == TN_OK && history->version_count == 0) {
        return TN_ABSENT;
    }
    return rc == TN_OK ? tell_all(&t, err) : rc;
}
