#include "write/resolve.h"

/* ---- origins ---- */

enum { POSITION_BYTES = 8, PART_BYTES = 4, WIDTH_BYTE = 1 };

static uint32_t bytes_of(uint64_t value)
{
    uint32_t count = 0;
    for (; value > 0; value >>= 8) {
        count++;
    }
    return count;
}

/* Of each number its low bytes, as many as say it; before and behind them how many those are, so
 * that an origin is found from either end. */
uint32_t tn_origin_put(unsigned char *at, const struct tn_origin *origin)
{
    const uint64_t numbers[] = {(uint64_t)origin->position, origin->part, origin->source};
    uint32_t counts[] = {bytes_of(numbers[0]), bytes_of(numbers[1]), bytes_of(numbers[2])};
    unsigned char *to = at + WIDTH_BYTE;
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t byte = 0; byte < counts[i]; byte++) {
            *to++ = (unsigned char)(numbers[i] >> 8 * byte);
        }
    }
    *at = (unsigned char)(counts[0] +
                          (POSITION_BYTES + 1) * (counts[1] + (PART_BYTES + 1) * counts[2]));
    *to++ = *at;
    return (uint32_t)(to - at);
}

static void split_width(unsigned char width, uint32_t counts[3])
{
    counts[0] = width % (POSITION_BYTES + 1);
    counts[1] = width / (POSITION_BYTES + 1) % (PART_BYTES + 1);
    counts[2] = width / (POSITION_BYTES + 1) / (PART_BYTES + 1);
}

struct tn_origin tn_origin_get(const unsigned char *at)
{
    uint32_t counts[3];
    uint64_t numbers[3] = {0};
    split_width(*at++, counts);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t byte = 0; byte < counts[i]; byte++) {
            numbers[i] |= (uint64_t)*at++ << 8 * byte;
        }
    }
    return (struct tn_origin){.position = (int64_t)numbers[0],
                              .part = (uint32_t)numbers[1],
                              .source = (uint16_t)numbers[2]};
}

/* Of the one that ends a row. */
static uint32_t origin_size(struct tn_row row)
{
    uint32_t counts[3];
    split_width(row.data[row.size - 1], counts);
    return counts[0] + counts[1] + counts[2] + 2 * WIDTH_BYTE;
}

/* ---- one key ---- */

/* What followers see of a row. */
struct image {
    struct tn_buf bytes;
    bool shown;
};

enum { ROWS = 2, IMAGES = 3 };

struct resolving {
    const struct tn_resolve_spec *spec;
    struct tn_resolve_counts *counts;
    struct tn_err *err;
    bool times; /* some column's range is looked at */
    struct tn_change change;
    struct tn_buf rows[ROWS]; /* now, and the result that comes */
    struct image images[IMAGES];
    /* Of the key at hand. */
    struct tn_kv was;
    struct tn_kv now;
    bool is_was; /* there is a row */
    bool is_now;
    bool changed;
    uint32_t now_at;   /* of rows: where the next result does not go */
    uint32_t image_at; /* of images: what is seen of now; 0 is of was */
    bool looked;       /* what is seen of was is known */
    bool unseeable;    /* it can't be: the text says why */
    char why[TN_ERR_TEXT_SIZE];
};

static bool same(struct tn_row a, struct tn_row b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static struct tn_row row_in(const struct tn_buf *buf)
{
    return (struct tn_row){buf->data, (uint32_t)buf->size};
}

static tn_rc send_letter(struct resolving *r, const struct tn_kv *came, const char *reason)
{
    struct tn_letter letter = {.origin = tn_origin_get(came->row.data + came->row.size),
                               .kind = came->kind,
                               .row = came->row,
                               .reason = reason};
    if (!r->spec->letters) {
        return tn_err_set(r->err, TN_UNSUPPORTED, 0, "a row can't be resolved: %s", reason);
    }
    r->counts->letters++;
    return r->spec->letters->put(r->spec->letters, &letter, r->err);
}

/* ---- what a writer would refuse ---- */

/* Paimon's files have microseconds of 64 bits. */
static bool micros_fit(int64_t ms)
{
    return ms >= INT64_MIN / 1000 + 1 && ms <= INT64_MAX / 1000 - 1;
}

static tn_rc check_column(const struct tn_resolve_spec *spec, struct tn_row row, uint32_t column,
                          struct tn_err *err)
{
    const struct tn_column *c = &spec->order->layout->columns[column];
    if (tn_row_null(row, column)) {
        return c->type.nullable
                   ? TN_OK
                   : tn_err_set(err, TN_INVALID, 0,
                                "column '%s' is NOT NULL, and the result has none", c->name);
    }
    if (c->slot == TN_SLOT_TIME96 && !micros_fit((int64_t)tn_load_u64(row.data + c->offset))) {
        return tn_err_set(err, TN_INVALID, 0,
                          "column '%s': a timestamp is out of the range of microseconds", c->name);
    }
    return TN_OK;
}

/* Whether each NULL of the row may be one. */
static bool nulls_fit(const struct tn_row_layout *layout, struct tn_row row)
{
    for (uint32_t i = 0; i < (layout->column_count + 7) / 8; i++) {
        for (unsigned bits = row.data[i]; bits != 0; bits &= bits - 1) {
            if (!layout->columns[8 * i + (uint32_t)__builtin_ctz(bits)].type.nullable) {
                return false;
            }
        }
    }
    return true;
}

static bool has_times(const struct tn_row_layout *layout)
{
    uint32_t i = 0;
    while (i < layout->column_count && layout->columns[i].slot != TN_SLOT_TIME96) {
        i++;
    }
    return i < layout->column_count;
}

static tn_rc check_row(const struct resolving *r, const struct tn_buf *buf, struct tn_row key,
                       const char *what)
{
    const struct tn_resolve_spec *spec = r->spec;
    const struct tn_row_layout *layout = spec->order->layout;
    struct tn_err *err = r->err;
    if (buf->overflow) {
        return tn_err_set(err, TN_INVALID, 0, "%s is longer than %u bytes", what,
                          spec->row_size_max);
    }
    if (tn_row_compare(layout, spec->order->keys, row_in(buf), key) != 0) {
        return tn_err_set(err, TN_INVALID, 0, "%s has another key", what);
    }
    tn_rc rc = TN_OK;
    bool sure = !r->times && nulls_fit(layout, row_in(buf));
    for (uint32_t i = 0; !sure && rc == TN_OK && i < layout->column_count; i++) {
        rc = check_column(spec, row_in(buf), i, err);
    }
    return rc;
}

/* ---- what followers see ---- */

static tn_rc look(struct resolving *r, struct tn_row row, struct image *image)
{
    const struct tn_resolve_spec *spec = r->spec;
    image->bytes.size = 0;
    image->bytes.overflow = false;
    image->shown = false;
    tn_rc rc = spec->resolver->announce(spec->resolver, row, &image->shown, &image->bytes, r->err);
    return rc == TN_OK && image->shown ? check_row(r, &image->bytes, row, "what is announced") : rc;
}

static bool announces(const struct resolving *r)
{
    return r->spec->changes && r->spec->resolver->announce;
}

/* Asked once, when the key is about to change: what was announced before must be known, or the
 * difference can't be told. */
static tn_rc look_at_was(struct resolving *r)
{
    if (!r->looked && r->is_was) {
        tn_rc rc = look(r, r->was.row, &r->images[0]);
        if (rc != TN_OK && rc != TN_INVALID) {
            return rc;
        }
        r->unseeable = rc == TN_INVALID;
        if (r->unseeable) {
            (void)tn_err_in(r->err, "the row that is there");
            memcpy(r->why, r->err->text, sizeof r->why);
        }
    }
    r->looked = true;
    if (r->unseeable) {
        return tn_err_set(r->err, TN_INVALID, 0, "%s", r->why);
    }
    return TN_OK;
}

/* The image that comes: neither that of was nor of now. */
static uint32_t next_image(const struct resolving *r)
{
    return r->image_at == 1 ? 2 : 1;
}

/* ---- one row ---- */

static tn_rc take_row(struct resolving *r, const struct tn_kv *came)
{
    struct tn_buf *result = &r->rows[!r->now_at];
    tn_rc rc = check_row(r, result, came->row, "the result");
    if (rc != TN_OK || (r->is_now && same(r->now.row, row_in(result)))) {
        return rc;
    }
    if (announces(r)) {
        rc = look_at_was(r);
        if (rc == TN_OK) {
            rc = look(r, row_in(result), &r->images[next_image(r)]);
        }
        if (rc != TN_OK) {
            return rc;
        }
        r->image_at = next_image(r);
    }
    r->now_at = !r->now_at;
    r->now = *came;
    r->now.row = row_in(result);
    r->is_now = true;
    r->changed = true;
    return TN_OK;
}

static tn_rc take_delete(struct resolving *r, const struct tn_kv *came)
{
    if (!r->is_now) {
        return TN_OK;
    }
    tn_rc rc = announces(r) ? look_at_was(r) : TN_OK;
    if (rc == TN_OK) {
        r->now = *came;
        r->is_now = false;
        r->changed = true;
    }
    return rc;
}

static tn_rc resolve_row(struct resolving *r, const struct tn_kv *came)
{
    const struct tn_resolve_spec *spec = r->spec;
    struct tn_buf *result = &r->rows[!r->now_at];
    enum tn_verdict verdict = TN_VERDICT_KEEP;
    result->size = 0;
    result->overflow = false;
    r->counts->rows++;
    tn_rc rc = spec->resolver->resolve(spec->resolver, r->is_now ? &r->now.row : NULL, came->row,
                                       came->kind, came->sequence, &verdict, result, r->err);
    if (rc == TN_OK && verdict == TN_VERDICT_ROW) {
        rc = take_row(r, came);
    } else if (rc == TN_OK && verdict == TN_VERDICT_DELETE) {
        rc = take_delete(r, came);
    }
    if (rc == TN_INVALID) {
        struct tn_err why = *r->err; /* where the sink puts what it has to say */
        return send_letter(r, came, why.text);
    }
    return rc;
}

/* ---- begin and end of a key ---- */

static tn_rc begin_key(struct resolving *r, const struct tn_kv *key)
{
    tn_rc rc = r->spec->before->find(r->spec->before, key, &r->was, r->err);
    if (rc != TN_OK && rc != TN_ABSENT) {
        return rc;
    }
    r->is_was = rc == TN_OK && !tn_row_kind_retracts(r->was.kind);
    r->is_now = r->is_was;
    r->now = r->was;
    r->changed = false;
    r->image_at = 0;
    r->looked = false;
    r->unseeable = false;
    r->counts->keys++;
    return TN_OK;
}

static tn_rc tell(struct resolving *r)
{
    const struct image *before = &r->images[0];
    const struct image *after = &r->images[r->image_at];
    bool is_before = r->is_was;
    bool is_after = r->is_now;
    struct tn_kv was = r->was;
    struct tn_kv now = r->now;
    if (announces(r)) {
        is_before = is_before && before->shown;
        is_after = is_after && after->shown;
        was.row = is_before ? row_in(&before->bytes) : was.row;
        now.row = is_after ? row_in(&after->bytes) : now.row;
        if (is_before && is_after && same(was.row, now.row)) {
            return TN_OK;
        }
    }
    now.kind = TN_ROW_INSERT; /* whatever kind came: this one is there */
    return tn_change_tell(&r->change, is_before ? &was : NULL, is_after ? &now : NULL, r->err);
}

static tn_rc end_key(struct resolving *r)
{
    bool same_row = r->is_was && r->is_now && same(r->was.row, r->now.row);
    if (!r->changed || (!r->is_was && !r->is_now) || same_row) {
        return TN_OK;
    }
    struct tn_kv finished = r->now;
    finished.row = r->is_now ? r->now.row : r->was.row;
    finished.kind = !r->is_now ? TN_ROW_DELETE : r->is_was ? TN_ROW_UPDATE_AFTER : TN_ROW_INSERT;
    r->counts->written++;
    tn_rc rc = r->spec->rows->put(r->spec->rows, &finished, r->err);
    return rc == TN_OK && r->spec->changes ? tell(r) : rc;
}

/* ---- all of them ---- */

/* The next row without its origin, which stays behind it. */
static tn_rc next_row(struct resolving *r, struct tn_memtable_iter *iter, struct tn_kv *kv)
{
    tn_rc rc = tn_iter_next(&iter->iter, kv, r->err);
    if (rc == TN_OK) {
        kv->row.size -= origin_size(kv->row);
        kv->sequence += r->spec->sequence_shift;
    }
    return rc;
}

static tn_rc resolve_all(struct resolving *r)
{
    struct tn_memtable_iter iter;
    struct tn_kv key = {0};
    struct tn_kv came;
    bool begun = false;
    tn_memtable_iter_init(&iter, r->spec->memtable);
    tn_rc rc = next_row(r, &iter, &came);
    while (rc == TN_OK) {
        if (begun && tn_kv_compare(r->spec->order, &key, &came) != 0) {
            rc = end_key(r);
            begun = false;
        }
        if (rc == TN_OK && !begun) {
            key = came;
            rc = begin_key(r, &key);
            begun = true;
        }
        if (rc == TN_OK && came.kind != TN_ROW_UPDATE_BEFORE) {
            rc = resolve_row(r, &came);
        }
        rc = rc == TN_OK ? next_row(r, &iter, &came) : rc == TN_ABSENT ? TN_CORRUPT : rc;
    }
    if (rc != TN_ABSENT) {
        return rc;
    }
    return begun ? end_key(r) : TN_OK;
}

static size_t buffer_size(uint32_t row_size_max)
{
    return ((size_t)row_size_max + 15) & ~(size_t)15;
}

size_t tn_resolve_size(uint32_t row_size_max)
{
    return ((sizeof(struct resolving) + 15) & ~(size_t)15) +
           (ROWS + IMAGES) * buffer_size(row_size_max);
}

tn_rc tn_resolve(const struct tn_resolve_spec *spec, struct tn_arena *arena,
                 struct tn_resolve_counts *counts, struct tn_err *err)
{
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, tn_resolve_size(spec->row_size_max), "resolved rows", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct resolving *r = memory;
    unsigned char *at = (unsigned char *)memory + tn_resolve_size(spec->row_size_max) -
                        (ROWS + IMAGES) * buffer_size(spec->row_size_max);
    *counts = (struct tn_resolve_counts){0};
    r->spec = spec;
    r->counts = counts;
    r->err = err;
    r->times = has_times(spec->order->layout);
    r->change = (struct tn_change){.layout = spec->order->layout, .sink = spec->changes};
    for (uint32_t i = 0; i < ROWS + IMAGES; i++, at += buffer_size(spec->row_size_max)) {
        tn_buf_init(i < ROWS ? &r->rows[i] : &r->images[i - ROWS].bytes, at, spec->row_size_max);
    }
    return resolve_all(r);
}
