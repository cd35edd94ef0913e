#include "app/trial.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "io/clock.h"
#include "script/resolver.h"

enum {
    PLACES = TN_TRIAL_PLACES,
    KEYS_MAX = PLACES / 2,
    MAPPED_SIZE = 256 * 1024,
    SHOWN_MAX = 2000
};

enum { MAPPED, MERGED, TOLD_BEFORE, TOLD_AFTER };

/* ---- what is there ---- */

static struct tn_trial_key **place_of(const struct tn_trial *t, struct tn_row row, uint64_t *hash)
{
    *hash = tn_row_hash(t->spec.layout, t->spec.keys, row);
    uint32_t at = (uint32_t)*hash & (PLACES - 1);
    while (t->keys[at]) {
        struct tn_row other = {t->keys[at]->row, t->keys[at]->room};
        if (t->keys[at]->hash == *hash &&
            tn_row_compare(t->spec.layout, t->spec.keys, other, row) == 0) {
            break;
        }
        at = (at + 1) & (PLACES - 1);
    }
    return &t->keys[at];
}

const struct tn_trial_key *tn_trial_key_of(const struct tn_trial *t, struct tn_row row)
{
    uint64_t hash;
    return *place_of(t, row, &hash);
}

/* Room for a row a bit larger, since rows of a key grow; a smaller place is left behind. A deleted
 * key's row stays, for its key. */
static tn_rc keep(struct tn_trial *t, struct tn_trial_key **place, uint64_t hash, struct tn_row row,
                  struct tn_err *err)
{
    struct tn_trial_key *key = *place;
    if (!key && ++t->key_count > KEYS_MAX) {
        return tn_err_set(err, TN_AGAIN, 0, "more than %d keys", KEYS_MAX);
    }
    if (!key || key->room < row.size) {
        uint32_t room = row.size + row.size / 4;
        void *memory = NULL;
        tn_rc rc = tn_arena_need(t->arena, sizeof *key + room, "the rows by key", &memory, err);
        if (rc != TN_OK) {
            return rc;
        }
        key = memory;
        key->hash = hash;
        key->room = room;
        *place = key;
    }
    key->size = row.size;
    memcpy(key->row, row.data, row.size);
    return TN_OK;
}

/* ---- what is said ---- */

static void say_row(struct tn_trial *t, const char *before, struct tn_row row)
{
    static char text[2 * TN_TRIAL_ROW_SIZE_MAX];
    struct tn_buf buf;
    if (t->spec.quiet) {
        return;
    }
    tn_buf_init(&buf, text, sizeof text);
    tn_row_format_json(t->spec.layout, NULL, row, &buf);
    bool whole = !buf.overflow && buf.size <= SHOWN_MAX;
    (void)fprintf(t->spec.to, "%s %.*s%s\n", before, whole ? (int)buf.size : SHOWN_MAX, text,
                  whole ? "" : "...");
}

static void say(struct tn_trial *t, const char *what)
{
    if (!t->spec.quiet) {
        (void)fprintf(t->spec.to, "%s\n", what);
    }
}

/* One more thing that came of the record, in their order; of nothing the hash is always the same.
 */
static void note(struct tn_trial *t, char what, struct tn_row row)
{
    uint64_t tag = (unsigned char)what;
    uint64_t hash = tn_hash_64((struct tn_bytes){row.data, row.size}, tag);
    t->outcome = (t->outcome + tag) * UINT64_C(0x9e3779b97f4a7c15) + hash;
}

static void bury(struct tn_trial *t, const char *reason)
{
    t->dead++;
    note(t, 'x', (struct tn_row){NULL, 0}); /* why has the line, which may be another one */
    if (t->spec.dead) {
        t->spec.dead(t->spec.user, reason);
    }
    if (!t->spec.quiet) {
        (void)fprintf(t->spec.to, "    dead:  %s\n", reason);
    }
}

/* ---- one call, and what it cost ---- */

static int64_t now_ns(void)
{
    return tn_clock_system.vtable->monotonic_ns(&tn_clock_system);
}

static tn_rc count(struct tn_trial *t, enum tn_script_handler handler, int64_t begin, tn_rc rc)
{
    struct tn_trial_cost *cost = &t->costs[handler];
    const struct tn_vm *vm = t->spec.script->vm;
    if (tn_script_has(t->spec.script, handler)) {
        cost->calls++;
        cost->ns += (uint64_t)(now_ns() - begin);
        cost->bytes += (uint64_t)((int64_t)vm->limits.bytes - vm->bytes_left);
    }
    return rc;
}

static struct tn_buf buffer(struct tn_trial *t, int which)
{
    struct tn_buf buf;
    tn_buf_init(&buf, t->buffers[which], which == MAPPED ? MAPPED_SIZE : TN_TRIAL_ROW_SIZE_MAX);
    return buf;
}

/* The image of a row, or of none. */
static tn_rc show(struct tn_trial *t, const struct tn_row *row, int which, struct tn_row *image,
                  struct tn_err *err)
{
    struct tn_buf out = buffer(t, which);
    bool shown = false;
    tn_rc rc = TN_OK;
    if (row) {
        int64_t begin = now_ns();
        rc = count(t, TN_SCRIPT_ANNOUNCE, begin,
                   tn_script_announce(t->spec.script, *row, &shown, &out, err));
    }
    *image = (struct tn_row){out.data, shown ? (uint32_t)out.size : 0};
    return rc;
}

static bool same(struct tn_row a, struct tn_row b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

struct images {
    struct tn_row before;
    struct tn_row after;
};

static tn_rc show_both(struct tn_trial *t, const struct tn_row *was, const struct tn_row *is,
                       struct images *images, struct tn_err *err)
{
    tn_rc rc = show(t, was, TOLD_BEFORE, &images->before, err);
    return rc == TN_OK ? show(t, is, TOLD_AFTER, &images->after, err) : rc;
}

/* The difference of the images, as a changelog would have it. */
static void tell(struct tn_trial *t, struct tn_row before, struct tn_row after)
{
    if (same(before, after)) {
        say(t, "    told:  nothing");
        return;
    }
    t->told++;
    note(t, '-', before);
    note(t, '+', after);
    if (before.size > 0) {
        say_row(t, after.size > 0 ? "    told:  -U" : "    told:  -D", before);
    }
    if (after.size > 0) {
        say_row(t, before.size > 0 ? "    told:  +U" : "    told:  +I", after);
    }
}

/* ---- one row ---- */

static tn_rc decide(struct tn_trial *t, const struct tn_row *was, struct tn_row row,
                    enum tn_row_kind kind, enum tn_script_verdict *verdict, struct tn_buf *out,
                    struct tn_err *err)
{
    struct tn_script *script = t->spec.script;
    struct tn_script_ctx ctx = {kind, (int64_t)t->records,
                                tn_script_is_late(t->spec.layout, t->spec.late_by, was, row)};
    int64_t begin = now_ns();
    if (kind == TN_ROW_DELETE) {
        return count(t, TN_SCRIPT_RETRACT, begin,
                     tn_script_retract(script, was, row, &ctx, verdict, out, err));
    }
    if (!tn_script_has(script, TN_SCRIPT_MERGE)) {
        tn_buf_append(out, row.data, row.size);
        *verdict = TN_SCRIPT_ROW;
        return TN_OK;
    }
    return count(t, TN_SCRIPT_MERGE, begin,
                 tn_script_merge(script, was, row, &ctx, verdict, out, err));
}

/* `is` NULL: the key is gone. A change that can't be told is none. */
static tn_rc change(struct tn_trial *t, struct tn_trial_key **place, uint64_t hash,
                    const struct tn_row *was, const struct tn_row *is, struct tn_err *err)
{
    if ((!was && !is) || (was && is && same(*was, *is))) {
        say(t, "    table: as it was");
        return TN_OK;
    }
    struct images images;
    tn_rc rc = show_both(t, was, is, &images, err);
    if (rc != TN_OK) {
        return rc;
    }
    t->changed++;
    note(t, is ? 'r' : 'd', is ? *is : (struct tn_row){NULL, 0});
    if (is) {
        say_row(t, was ? "    table: +U" : "    table: +I", *is);
    } else {
        say(t, "    table: -D");
    }
    tell(t, images.before, images.after);
    if (is) {
        return keep(t, place, hash, *is, err);
    }
    (*place)->size = 0;
    return TN_OK;
}

static tn_rc merge_row(struct tn_trial *t, struct tn_row row, enum tn_row_kind kind,
                       struct tn_err *err)
{
    uint64_t hash;
    struct tn_trial_key **place = place_of(t, row, &hash);
    struct tn_row was = {NULL, 0};
    tn_rc rc = TN_OK;
    if (!*place && t->spec.find) {
        rc = t->spec.find(t->spec.user, row, &was, err);
        rc = rc == TN_OK && was.data ? keep(t, place, hash, was, err) : rc;
    }
    if (*place && (*place)->size > 0) {
        was = (struct tn_row){(*place)->row, (*place)->size};
    }
    struct tn_buf out = buffer(t, MERGED);
    enum tn_script_verdict verdict;
    rc = rc != TN_OK ? rc : decide(t, was.data ? &was : NULL, row, kind, &verdict, &out, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_row is = {out.data, (uint32_t)out.size};
    if (verdict == TN_SCRIPT_KEEP) {
        is = was;
    } else if (verdict == TN_SCRIPT_DELETE) {
        is.data = NULL;
    }
    return change(t, place, hash, was.data ? &was : NULL, is.data ? &is : NULL, err);
}

static tn_rc take_row(struct tn_trial *t, struct tn_row row, enum tn_row_kind kind,
                      struct tn_err *err)
{
    if (!t->spec.quiet) {
        char before[32];
        (void)snprintf(before, sizeof before, "%" PRIu64 " %s", t->line_number,
                       tn_row_kind_text(kind));
        say_row(t, before, row);
    }
    bool merged = t->spec.keys.count > 0 && kind != TN_ROW_UPDATE_BEFORE;
    tn_rc rc = merged ? merge_row(t, row, kind, err) : TN_OK;
    if (rc == TN_INVALID) {
        bury(t, err->text);
        return TN_OK;
    }
    return rc;
}

/* ---- records ---- */

static bool maps(const struct tn_trial *t)
{
    return tn_script_has(t->spec.script, TN_SCRIPT_MAP);
}

static bool maps_records(const struct tn_trial *t)
{
    return maps(t) && t->spec.input == TN_INPUT_JSON;
}

/* Of a record of JSON, or, where that is NULL, of a row. */
static tn_rc take_mapped(struct tn_trial *t, const struct tn_bytes *record, struct tn_row from,
                         enum tn_row_kind kind, struct tn_err *err)
{
    struct tn_script *script = t->spec.script;
    struct tn_script_meta meta = t->meta;
    meta.position = (int64_t)t->line_number;
    struct tn_buf out = buffer(t, MAPPED);
    uint32_t made = 0;
    int64_t begin = now_ns();
    tn_rc rc = count(t, TN_SCRIPT_MAP, begin,
                     record ? tn_script_map_json(script, *record, &meta, &made, &out, err)
                            : tn_script_map(script, from, &meta, &made, &out, err));
    if (rc != TN_OK || made == 0) {
        if (!t->spec.quiet) {
            (void)fprintf(t->spec.to, "%" PRIu64 " %s\n", t->line_number,
                          rc == TN_OK ? "dropped" : "no rows");
        }
    }
    if (rc == TN_INVALID) {
        bury(t, err->text);
        return TN_OK;
    }
    struct tn_bytes rows = tn_buf_bytes(&out);
    struct tn_row row;
    while (rc == TN_OK && tn_script_next_row(&rows, &row)) {
        rc = take_row(t, row, kind, err);
    }
    return rc;
}

static tn_rc take_rows(struct tn_trial *t, struct tn_decoded *decoded, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (decoded->dead) {
        if (!t->spec.quiet) {
            (void)fprintf(t->spec.to, "%" PRIu64 " no row\n", t->line_number);
        }
        bury(t, decoded->reason);
    }
    for (uint32_t i = 0; rc == TN_OK && i < decoded->count; i++) {
        struct tn_row row = tn_decoder_row(t->decoder, decoded, i);
        enum tn_row_kind kind = tn_decoded_kind(decoded, i);
        bool mapped = maps(t) && kind != TN_ROW_UPDATE_BEFORE;
        rc = mapped ? take_mapped(t, NULL, row, kind, err) : take_row(t, row, kind, err);
    }
    return rc;
}

static tn_rc take_decoded(struct tn_trial *t, struct tn_bytes line, struct tn_err *err)
{
    struct tn_decoded decoded;
    size_t eaten = 0;
    tn_rc rc = tn_decoder_next(t->decoder, line, true, &decoded, &eaten, err);
    return rc == TN_OK ? take_rows(t, &decoded, err) : rc == TN_AGAIN ? TN_OK : rc;
}

static bool blank(struct tn_bytes line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (!memchr(" \t\r\n", line.data[i], 4)) {
            return false;
        }
    }
    return true;
}

static tn_rc take_line(struct tn_trial *t, struct tn_bytes line, struct tn_err *err)
{
    t->line_number++;
    if (blank(line)) {
        return TN_OK;
    }
    t->records++;
    return maps_records(t) ? take_mapped(t, &line, (struct tn_row){0}, TN_ROW_INSERT, err)
                           : take_decoded(t, line, err);
}

tn_rc tn_trial_run(struct tn_trial *t, FILE *from, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && fgets((char *)t->line, TN_TRIAL_ROW_SIZE_MAX, from)) {
        struct tn_bytes line = tn_bytes_of((const char *)t->line);
        if (line.size == TN_TRIAL_ROW_SIZE_MAX - 1 && line.data[line.size - 1] != '\n') {
            return tn_err_set(err, TN_INVALID, 0, "line %" PRIu64 " has more than %d bytes",
                              t->line_number + 1, TN_TRIAL_ROW_SIZE_MAX - 2);
        }
        rc = take_line(t, line, err);
    }
    return rc;
}

/* ---- opening ---- */

static tn_rc all_ms(struct tn_trial *t, const enum tn_epoch **epochs, struct tn_err *err)
{
    void *memory = NULL;
    uint32_t fields = t->spec.schema->field_count;
    tn_rc rc = tn_arena_need(t->arena, (fields + 1) * sizeof **epochs, "the decoder", &memory, err);
    enum tn_epoch *list = memory;
    for (uint32_t i = 0; rc == TN_OK && i < fields; i++) {
        list[i] = TN_EPOCH_MS;
    }
    *epochs = list;
    return rc;
}

static tn_rc open_decoder(struct tn_trial *t, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_decode_spec spec = {.input = t->spec.input,
                                  .unknown = t->spec.unknown,
                                  .schema = t->spec.schema,
                                  .layout = t->spec.layout,
                                  .epochs = t->spec.epochs,
                                  .record_size_max = TN_TRIAL_ROW_SIZE_MAX,
                                  .row_size_max = TN_TRIAL_ROW_SIZE_MAX,
                                  .framed = maps_records(t)};
    tn_rc rc = spec.epochs ? TN_OK : all_ms(t, &spec.epochs, err);
    return rc == TN_OK ? tn_decoder_open(&t->decoder, &spec, arena, err) : rc;
}

tn_rc tn_trial_open(struct tn_trial *t, const struct tn_trial_spec *spec, struct tn_arena *arena,
                    struct tn_err *err)
{
    *t = (struct tn_trial){
        .spec = *spec, .arena = arena, .meta = {.clock = "synced", .source = "rows"}};
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, PLACES * sizeof(struct tn_trial_key *), "keys", &memory, err);
    t->keys = memory;
    for (int i = MAPPED; rc == TN_OK && i <= TOLD_AFTER; i++) {
        size_t size = i == MAPPED ? MAPPED_SIZE : TN_TRIAL_ROW_SIZE_MAX;
        rc = tn_arena_need(arena, size, "the rows", &memory, err);
        t->buffers[i] = memory;
    }
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, TN_TRIAL_ROW_SIZE_MAX, "a line", &memory, err);
        t->line = memory;
    }
    return rc == TN_OK && !spec->decoders && !maps_records(t) ? open_decoder(t, arena, err) : rc;
}

/* ---- messages ---- */

tn_rc tn_trial_begin(struct tn_trial *t, enum tn_input input, struct tn_bytes bytes,
                     struct tn_err *err)
{
    t->rest = bytes;
    if (t->decoder && t->spec.input == input && input != TN_INPUT_CSV) {
        return tn_decoder_resume(t->decoder, 1, (struct tn_bytes){0}, err);
    }
    tn_arena_reset(t->spec.decoders, 0);
    t->decoder = NULL;
    t->spec.input = input;
    return open_decoder(t, t->spec.decoders, err);
}

static tn_rc take_record(struct tn_trial *t, struct tn_decoded *decoded, struct tn_err *err)
{
    bool header = t->spec.input == TN_INPUT_CSV && decoded->count == 0 && !decoded->dead;
    if (header || decoded->record.size == 0) {
        return TN_OK;
    }
    t->records++;
    return maps_records(t) && !decoded->dead
               ? take_mapped(t, &decoded->record, (struct tn_row){0}, TN_ROW_INSERT, err)
               : take_rows(t, decoded, err);
}

tn_rc tn_trial_next(struct tn_trial *t, struct tn_err *err)
{
    struct tn_decoded decoded;
    size_t eaten = 0;
    t->outcome = 0;
    tn_rc rc = tn_decoder_next(t->decoder, t->rest, true, &decoded, &eaten, err);
    t->rest.data += eaten;
    t->rest.size -= eaten;
    if (rc == TN_INVALID) { /* no header that rows could be read by: all of it is a letter */
        t->rest.size = 0;
        bury(t, err->text);
        return TN_OK;
    }
    return rc == TN_OK ? take_record(t, &decoded, err) : rc == TN_AGAIN ? TN_ABSENT : rc;
}

void tn_trial_say_costs(const struct tn_trial *t, const char *indent, FILE *to)
{
    for (int i = 0; i < TN_SCRIPT_HANDLER_COUNT; i++) {
        const struct tn_trial_cost *cost = &t->costs[i];
        if (cost->calls > 0) {
            (void)fprintf(to,
                          "%s%s: %" PRIu64 " calls, %" PRIu64 " ns and %" PRIu64
                          " bytes of new memory a call\n",
                          indent, tn_script_handler_name((enum tn_script_handler)i), cost->calls,
                          cost->ns / cost->calls, cost->bytes / cost->calls);
        }
    }
}
