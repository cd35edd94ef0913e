#include "app/shadow_private.h"

#include <string.h>

#include "base/hash.h"
#include "read/lookup.h"
#include "script/scripted.h"

enum { DECODER_SIZE = 512 * 1024 };

/* ---- the script that the daemon runs, as files ---- */

struct texts {
    struct tn_io io; /* first */
    const struct tn_vm_text *first;
};

static const struct tn_vm_text *text_at(const struct texts *texts, int file)
{
    const struct tn_vm_text *text = texts->first;
    for (int i = 0; i < file; i++) {
        text = text->next;
    }
    return text;
}

static tn_rc open_text(struct tn_io *io, const char *path, int *file, uint64_t *size,
                       struct tn_err *err)
{
    int number = 0;
    for (const struct tn_vm_text *t = ((struct texts *)(void *)io)->first; t; t = t->next) {
        if (strcmp(t->path, path) == 0) {
            *file = number;
            *size = t->bytes.size;
            return TN_OK;
        }
        number++;
    }
    return tn_err_set(err, TN_ABSENT, 0, "%s: tarn run has not loaded it", path);
}

static tn_rc read_text(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                       size_t *got, struct tn_err *err)
{
    const struct tn_vm_text *text = text_at((struct texts *)(void *)io, file);
    (void)err;
    size_t rest = offset < text->bytes.size ? text->bytes.size - (size_t)offset : 0;
    *got = size < rest ? size : rest;
    memcpy(data, text->bytes.data + offset, *got);
    return TN_OK;
}

static void close_text(struct tn_io *io, int file)
{
    (void)io;
    (void)file;
}

static const struct tn_io_vtable texts_vtable = {
    .open = open_text, .read = read_text, .close = close_text};

static bool same_texts(const struct tn_vm_text *a, const struct tn_vm_text *b)
{
    while (a && b && strcmp(a->path, b->path) == 0 && tn_bytes_equal(a->bytes, b->bytes)) {
        a = a->next;
        b = b->next;
    }
    return !a && !b;
}

/* ---- what is there ---- */

static tn_rc look_up(struct tn_shadow_table *t, struct tn_row row, struct tn_row *was,
                     struct tn_err *err)
{
    static struct tn_lookup lookup;
    struct tn_shadow *s = t->shadow;
    struct tn_worker *worker = &s->app->workers[TN_LANE_LONG];
    struct tn_columns keys = t->reader.schema->primary_keys;
    struct tn_arena *arena = &s->app->table;
    size_t mark = tn_arena_mark(arena);
    size_t worker_mark = tn_arena_mark(&worker->arena);
    struct tn_value *key = tn_arena_take(arena, keys.count * sizeof *key);
    if (!key) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a key");
    }
    for (uint32_t i = 0; i < keys.count; i++) {
        tn_row_get(&t->layout, row, keys.index[i], &key[i]);
    }
    tn_rc rc = tn_lookup(&t->scan, key, s->window, s->window_size, arena, worker, &lookup, err);
    if (rc == TN_OK) {
        *was = lookup.kv.row; /* in the window */
    }
    if (rc != TN_OK && rc != TN_ABSENT && tn_reader_expired(&t->reader, err)) {
        rc = tn_err_set(err, TN_IO, 0, "the snapshot that it began with expired meanwhile");
    }
    tn_arena_reset(arena, mark);
    tn_arena_reset(&worker->arena, worker_mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc find(void *user, struct tn_row row, struct tn_row *was, struct tn_err *err)
{
    struct tn_shadow_table *t = user;
    return t->reader.empty ? TN_OK : look_up(t, row, was, err);
}

tn_rc tn_shadow_now(struct tn_shadow_table *t, int side, struct tn_row key, struct tn_row *row,
                    struct tn_err *err)
{
    const struct tn_trial_key *known = tn_trial_key_of(&t->sides[side].trial, key);
    *row = (struct tn_row){NULL, 0};
    if (!known) {
        return find(t, key, row, err);
    }
    if (known->size > 0) {
        *row = (struct tn_row){known->row, known->size};
    }
    return TN_OK;
}

/* ---- letters ---- */

static void count_why(struct tn_shadow_side *side, const char *reason)
{
    for (int i = 0; i < TN_SHADOW_WHYS; i++) {
        struct tn_shadow_why *why = &side->whys[i];
        if (why->count == 0) {
            (void)snprintf(why->text, sizeof why->text, "%s", reason);
        }
        if (strcmp(why->text, reason) == 0) {
            why->count++;
            return;
        }
    }
    side->other_whys++;
}

static void bury_old(void *user, const char *reason)
{
    count_why(&((struct tn_shadow_table *)user)->sides[TN_SHADOW_OLD], reason);
}

static void bury_new(void *user, const char *reason)
{
    count_why(&((struct tn_shadow_table *)user)->sides[TN_SHADOW_NEW], reason);
}

/* ---- loading ---- */

tn_rc tn_shadow_need(struct tn_shadow *s, size_t size, const char *what, void **memory,
                     struct tn_err *err)
{
    tn_rc rc = tn_arena_need(&s->arena, size, what, memory, err);
    return rc == TN_OK ? rc : tn_err_in(err, "a shadow needs more --memory");
}

/* As the daemon loads it; the new one's cases run. */
static tn_rc load(struct tn_shadow_table *t, int which, struct tn_io *io,
                  const struct tn_default_row *defaults, struct tn_err *err)
{
    struct tn_shadow_side *side = &t->sides[which];
    void *memory;
    tn_rc rc = tn_shadow_need(t->shadow, TN_VM_SIZE, "a script's state", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_vm_spec vm = {.memory = memory,
                            .size = TN_VM_SIZE,
                            .io = io,
                            .seed = tn_hash_64(tn_bytes_of(t->of->name), 0)};
    struct tn_script_spec spec = {.path = t->of->texts->path,
                                  .layout = &t->layout,
                                  .keys = t->reader.schema->primary_keys,
                                  .defaults = *defaults,
                                  .table = t->of->name,
                                  .row_size_max = TN_TRIAL_ROW_SIZE_MAX,
                                  .skip_cases = which == TN_SHADOW_OLD};
    rc = tn_vm_open(&side->vm, &vm, err);
    return rc == TN_OK ? tn_script_load(&side->script, &side->vm, &spec, err) : rc;
}

static tn_rc open_trial(struct tn_shadow_table *t, int which, const enum tn_epoch *epochs,
                        struct tn_err *err)
{
    struct tn_shadow *s = t->shadow;
    struct tn_trial_spec spec = {.script = &t->sides[which].script,
                                 .schema = t->reader.schema,
                                 .layout = &t->layout,
                                 .keys = t->reader.schema->primary_keys,
                                 .late_by = t->late_by,
                                 .quiet = true,
                                 .unknown = t->of->unknown,
                                 .epochs = epochs,
                                 .find = find,
                                 .dead = which == TN_SHADOW_OLD ? bury_old : bury_new,
                                 .user = t};
    void *decoders;
    void *memory;
    tn_rc rc = tn_shadow_need(s, sizeof *spec.decoders, "a decoder", &decoders, err);
    if (rc == TN_OK) {
        rc = tn_shadow_need(s, DECODER_SIZE, "a decoder", &memory, err);
    }
    if (rc == TN_OK) {
        spec.decoders = decoders;
        tn_arena_init(spec.decoders, memory, DECODER_SIZE);
        rc = tn_trial_open(&t->sides[which].trial, &spec, &s->arena, err);
    }
    return rc;
}

static tn_rc open_columns(struct tn_shadow_table *t, struct tn_default_row *defaults,
                          struct tn_err *err)
{
    struct tn_reader *r = &t->reader;
    struct tn_arena *arena = &t->shadow->app->table;
    tn_rc rc = tn_reader_open(r, t->shadow->app, t->of->name, err);
    if (rc == TN_OK && r->schema->id != t->of->schema) {
        return tn_err_set(err, TN_INVALID, 0,
                          "its schema is %lld, and tarn run has it with %lld: reload first",
                          (long long)r->schema->id, (long long)t->of->schema);
    }
    if (rc == TN_OK) {
        rc = tn_schema_layout(r->schema, &t->layout, NULL, NULL, arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_default_row_make(r->schema, &t->layout, arena, defaults, err);
    }
    t->scan = (struct tn_scan_spec){.root = r->root,
                                    .snapshot = &r->snapshot,
                                    .schema = r->schema,
                                    .options = &r->options,
                                    .schemas = &r->schemas};
    return rc == TN_OK ? tn_scripted_late(r->schema, arena, &t->late_by, err) : rc;
}

static tn_rc open_folder(struct tn_shadow_table *t, struct tn_err *err)
{
    const char *slash = strrchr(t->of->path, '/');
    char *folder = tn_arena_format(&t->shadow->arena, "%.*s",
                                   (int)(slash ? slash - t->of->path + 1 : 0), t->of->path);
    t->files.root = -1;
    return folder ? tn_io_posix_open(&t->files, *folder ? folder : ".", err)
                  : tn_err_set(err, TN_AGAIN, 0, "no memory for a script's path");
}

static tn_rc open_scripts(struct tn_shadow_table *t, const struct tn_default_row *defaults,
                          struct tn_err *err)
{
    struct texts texts = {.io.vtable = &texts_vtable, .first = t->of->texts};
    tn_rc rc = load(t, TN_SHADOW_OLD, &texts.io, defaults, err);
    t->sides[TN_SHADOW_OLD].vm.spec.io = NULL;
    if (rc == TN_OK) {
        rc = open_folder(t, err);
    }
    if (rc == TN_OK) {
        rc = load(t, TN_SHADOW_NEW, &t->files.io, defaults, err);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "script %s", t->of->path);
}

void tn_shadow_close_table(struct tn_shadow_table *t)
{
    for (int i = 0; i < TN_SHADOW_SIDES; i++) {
        tn_vm_close(&t->sides[i].vm);
    }
    if (t->files.root >= 0) {
        tn_io_posix_close(&t->files);
    }
}

/* `*other` false: it is the same script. */
static tn_rc open_table(struct tn_shadow_table *t, bool *other, struct tn_err *err)
{
    struct tn_default_row defaults = {0};
    const enum tn_epoch *epochs = NULL;
    t->files.root = -1;
    tn_rc rc = open_columns(t, &defaults, err);
    if (rc == TN_OK) {
        rc = open_scripts(t, &defaults, err);
    }
    *other = rc == TN_OK &&
             !same_texts(t->sides[TN_SHADOW_OLD].vm.texts, t->sides[TN_SHADOW_NEW].vm.texts);
    if (*other) {
        rc = tn_config_epochs(t->of->times, t->reader.schema, &t->shadow->app->table, &epochs, err);
    }
    for (int i = 0; *other && rc == TN_OK && i < TN_SHADOW_SIDES; i++) {
        rc = open_trial(t, i, epochs, err);
    }
    tn_clock_watch_init(&t->watch, &tn_clock_system,
                        t->reader.empty ? 0 : t->reader.snapshot.time_ms.value);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", t->of->name);
}

tn_rc tn_shadow_open_tables(struct tn_shadow *s, struct tn_err *err)
{
    struct tn_shadow_table **last = &s->tables;
    tn_rc rc = TN_OK;
    for (const struct tn_scripts_table *of = s->scripts.tables; rc == TN_OK && of; of = of->next) {
        size_t mark = tn_arena_mark(&s->arena);
        void *memory;
        bool other = false;
        if (!of->texts || !of->stays) {
            continue;
        }
        rc = tn_shadow_need(s, sizeof(struct tn_shadow_table), "a table", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        struct tn_shadow_table *t = memory;
        t->of = of;
        t->shadow = s;
        rc = open_table(t, &other, err);
        if (other) {
            *last = t;
            last = &t->next;
        } else {
            tn_shadow_close_table(t);
            tn_arena_reset(&s->arena, mark);
        }
    }
    return rc;
}
