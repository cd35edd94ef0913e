#include "file/stats.h"

#include <string.h>

#include "base/check.h"

enum {
    TEXT_SIZE_MAX = 1024, /* of a kept bound; `full` and large n give up beyond it */
    CODE_POINT_MAX = 0x10ffff,
    SURROGATE_FIRST = 0xd800,
    SURROGATE_END = 0xe000,
};

/* Numbers are kept as two words that compare like the values: the first signed, the second unsigned
 * (decimals of 128 bits; nanos behind milliseconds). Nothing was seen while min_high > max_high. */
struct tn_stats_column {
    int64_t null_count;
    int64_t min_high;
    int64_t max_high;
    uint64_t min_low;
    uint64_t max_low;
    unsigned char *min_text;
    unsigned char *max_text;
    uint32_t min_size; /* bytes */
    uint32_t max_size;
    uint32_t text_size_max; /* bytes at min_text and max_text */
    uint32_t text_length;   /* code points that are kept */
    uint8_t slot;
    uint8_t mode;
    bool bounded;      /* the type and the values so far have bounds */
    bool text_seen;    /* min_text and max_text count */
    bool max_goes_on;  /* a value with this cut is longer than it */
    bool cut_by_bytes; /* text_length code points need not fit: a longer value ends the bounds */
};

/* ---- texts ---- */

/* The size of the code point that begins with this byte; 1 for what can't begin one. */
static uint32_t code_point_size(unsigned char first)
{
    if (first < 0xc0) {
        return 1;
    }
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Bytes of the first n code points. It depends on those bytes alone, so cutting keeps the order. */
static uint32_t cut_size(struct tn_bytes text, uint32_t n)
{
    size_t at = 0;
    for (uint32_t i = 0; i < n && at < text.size; i++) {
        at += code_point_size(text.data[at]);
    }
    return (uint32_t)(at < text.size ? at : text.size);
}

/* The code point that ends before `end`, and where it starts; -1 when the bytes are not UTF-8. */
static int32_t last_code_point(const unsigned char *text, uint32_t end, uint32_t *start)
{
    uint32_t at = end - 1;
    while (at > 0 && end - at < 4 && (text[at] & 0xc0) == 0x80) {
        at--;
    }
    uint32_t size = end - at;
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    if (size != code_point_size(text[at]) || (size == 1 && text[at] >= 0x80)) {
        return -1;
    }
    int32_t code = text[at] & masks[size];
    for (uint32_t i = at + 1; i < end; i++) {
        code = code << 6 | (text[i] & 0x3f);
    }
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *start = at;
    return code < least[size] ? -1 : code; /* longer than need be: the next would sort below */
}

static uint32_t put_code_point(int32_t code, unsigned char *out)
{
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    uint32_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (uint32_t i = size - 1; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (unsigned char)(marks[size] | code);
    return size;
}

/* The least text above all that begin with these bytes, in place. Source: Paimon, StringUtils /
 * SimpleColStats truncation; after U+D7FF comes U+E000, where Java writes a '?'. */
static bool round_up(unsigned char *text, uint32_t *size)
{
    uint32_t end = *size;
    while (end > 0) {
        uint32_t start = 0;
        int32_t code = last_code_point(text, end, &start);
        if (code < 0 || code > CODE_POINT_MAX) {
            return false;
        }
        if (code < CODE_POINT_MAX) {
            int32_t next = code + 1 == SURROGATE_FIRST ? SURROGATE_END : code + 1;
            *size = start + put_code_point(next, text + start);
            return true;
        }
        end = start;
    }
    return false;
}

static void keep_min(struct tn_stats_column *c, struct tn_bytes text)
{
    c->min_size = cut_size(text, c->text_length);
    memcpy(c->min_text, text.data, c->min_size);
}

/* `text` is above the kept maximum: another cut, or the same and then it goes on. */
static void keep_max(struct tn_stats_column *c, struct tn_bytes text)
{
    c->max_size = cut_size(text, c->text_length);
    c->max_goes_on = text.size > c->max_size;
    memcpy(c->max_text, text.data, c->max_size);
}

static int compare_texts(struct tn_bytes text, const unsigned char *kept, uint32_t kept_size)
{
    size_t both = text.size < kept_size ? text.size : kept_size;
    int order = both > 0 ? memcmp(text.data, kept, both) : 0;
    return order ? order : (text.size > kept_size) - (text.size < kept_size);
}

static void add_text(struct tn_stats_column *c, struct tn_bytes text)
{
    if (!c->bounded) {
        return;
    }
    if (c->cut_by_bytes && text.size > c->text_size_max) {
        c->bounded = false;
        return;
    }
    if (!c->text_seen) {
        keep_min(c, text);
        keep_max(c, text);
        c->text_seen = true;
        return;
    }
    if (compare_texts(text, c->min_text, c->min_size) < 0) {
        keep_min(c, text);
    }
    bool known = c->max_goes_on && text.size >= c->max_size &&
                 memcmp(text.data, c->max_text, c->max_size) == 0;
    if (!known && compare_texts(text, c->max_text, c->max_size) > 0) {
        keep_max(c, text);
    }
}

/* ---- numbers ---- */

static inline void add_number(struct tn_stats_column *c, int64_t value)
{
    c->min_high = value < c->min_high ? value : c->min_high;
    c->max_high = value > c->max_high ? value : c->max_high;
}

static void add_wide(struct tn_stats_column *c, int64_t high, uint64_t low)
{
    if (high < c->min_high || (high == c->min_high && low < c->min_low)) {
        c->min_high = high;
        c->min_low = low;
    }
    if (high > c->max_high || (high == c->max_high && low > c->max_low)) {
        c->max_high = high;
        c->max_low = low;
    }
}

/* Signed integers in Double.compare's order; the other way round it's the same function. */
static inline int64_t float_order(int64_t bits)
{
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* Paimon's avro files would say NaN is the maximum; no bounds at all are understood by everybody.
 */
static void add_float(struct tn_stats_column *c, double value)
{
    if (value != value) {
        c->bounded = false;
        return;
    }
    int64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    add_number(c, float_order(bits));
}

static double float_of_bits(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double double_of_bits(uint64_t bits)
{
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void add_value(struct tn_stats_column *c, const struct tn_row_layout *layout,
                             struct tn_row row, uint32_t column)
{
    const unsigned char *at = row.data + layout->columns[column].offset;
    switch ((enum tn_slot)c->slot) {
    case TN_SLOT_I8:
        add_number(c, (int8_t)at[0]);
        break;
    case TN_SLOT_I16:
        add_number(c, (int16_t)tn_load_u16(at));
        break;
    case TN_SLOT_I32:
        add_number(c, (int32_t)tn_load_u32(at));
        break;
    case TN_SLOT_I64:
    case TN_SLOT_DECIMAL64:
        add_number(c, (int64_t)tn_load_u64(at));
        break;
    case TN_SLOT_F32:
        add_float(c, float_of_bits(tn_load_u32(at)));
        break;
    case TN_SLOT_F64:
        add_float(c, double_of_bits(tn_load_u64(at)));
        break;
    case TN_SLOT_DECIMAL128:
        add_wide(c, (int64_t)tn_load_u64(at + 8), tn_load_u64(at));
        break;
    case TN_SLOT_TIME96:
        add_wide(c, (int64_t)tn_load_u64(at), tn_load_u32(at + 8));
        break;
    case TN_SLOT_BYTES:
        add_text(c, tn_row_bytes(layout, row, column));
        break;
    }
}

/* ---- the result ---- */

static bool has_bounds(const struct tn_stats_column *c)
{
    if (!c->bounded || c->mode == TN_STATS_NONE || c->mode == TN_STATS_COUNTS) {
        return false;
    }
    return c->slot == TN_SLOT_BYTES ? c->text_seen : c->min_high <= c->max_high;
}

static struct tn_value number_value(const struct tn_stats_column *c, int64_t high, uint64_t low)
{
    struct tn_value value = {.null = false};
    if (c->slot == TN_SLOT_F32 || c->slot == TN_SLOT_F64) {
        value.as.f64 = double_of_bits((uint64_t)float_order(high));
    } else if (c->slot == TN_SLOT_DECIMAL64) {
        value.as.i128 = tn_i128_of(high);
    } else if (c->slot == TN_SLOT_DECIMAL128) {
        value.as.i128 = (struct tn_i128){low, high};
    } else {
        value.as.i64 = high;
        value.nanos = c->slot == TN_SLOT_TIME96 ? (uint32_t)low : 0;
    }
    return value;
}

/* The bounds of one column. `rounded` takes text_size_max + 4 bytes. */
static void column_bounds(const struct tn_stats_column *c, unsigned char *rounded,
                          struct tn_value *min, struct tn_value *max)
{
    *min = *max = (struct tn_value){.null = true};
    if (!has_bounds(c)) {
        return;
    }
    if (c->slot != TN_SLOT_BYTES) {
        *min = number_value(c, c->min_high, c->min_low);
        *max = number_value(c, c->max_high, c->max_low);
        return;
    }
    uint32_t size = c->max_size;
    memcpy(rounded, c->max_text, size);
    if (c->max_goes_on && !round_up(rounded, &size)) {
        return;
    }
    min->null = max->null = false;
    min->as.bytes = (struct tn_bytes){c->min_text, c->min_size};
    max->as.bytes = (struct tn_bytes){rounded, size};
}

/* What a finished file says of some columns, and where that is put. */
struct summary {
    const struct tn_stats_collector *stats;
    struct tn_columns columns;
    struct tn_type *types;
    struct tn_value *min;
    struct tn_value *max;
    int64_t *null_counts;
};

/* Of one column in a BinaryRow, with what aligns it. */
static size_t bound_size(uint32_t text_size)
{
    return 8 + 16 + (size_t)text_size + 8 + 4;
}

static size_t rows_size(const struct summary *s)
{
    size_t size = 4 + 8 + (s->columns.count + 63) / 64 * 8;
    for (uint32_t i = 0; i < s->columns.count; i++) {
        size += bound_size(s->stats->columns[s->columns.index[i]].text_size_max);
    }
    return size;
}

static tn_rc summary_init(struct summary *s, struct tn_arena *arena, struct tn_arena *scratch,
                          struct tn_err *err)
{
    uint32_t count = s->columns.count;
    s->types = tn_arena_take(scratch, count * sizeof(struct tn_type));
    s->min = tn_arena_take(scratch, count * sizeof(struct tn_value));
    s->max = tn_arena_take(scratch, count * sizeof(struct tn_value));
    s->null_counts = tn_arena_take(arena, count * sizeof(int64_t) + 1);
    if (!s->types || !s->min || !s->max || !s->null_counts) {
        return tn_err_set(err, TN_AGAIN, 0, "statistics: the arena is full");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct tn_stats_column *c = &s->stats->columns[s->columns.index[i]];
        void *rounded = NULL;
        tn_rc rc = tn_arena_need(scratch, c->text_size_max + 4, "statistics", &rounded, err);
        if (rc) {
            return rc;
        }
        column_bounds(c, rounded, &s->min[i], &s->max[i]);
        s->types[i] = s->stats->layout->columns[s->columns.index[i]].type;
        s->null_counts[i] = c->mode == TN_STATS_NONE ? -1 : c->null_count;
    }
    return TN_OK;
}

static tn_rc make_bounds(const struct summary *s, const struct tn_value *values,
                         struct tn_arena *arena, struct tn_arena *scratch, struct tn_bytes *out,
                         struct tn_err *err)
{
    size_t size = rows_size(s);
    size_t mark = tn_arena_mark(scratch);
    void *memory;
    tn_rc rc = tn_arena_need(scratch, size, "statistics", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_buf buf;
    tn_buf_init(&buf, memory, size);
    tn_values_to_binary(s->types, values, s->columns.count, &buf);
    TN_CHECK(!buf.overflow);
    bool copied = false;
    *out = tn_arena_copy(arena, tn_buf_bytes(&buf), &copied);
    tn_arena_reset(scratch, mark);
    return copied ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "statistics: the arena is full");
}

static tn_rc summarize(const struct tn_stats_collector *stats, struct tn_columns columns,
                       struct tn_arena *arena, struct tn_arena *scratch, struct tn_stats *out,
                       struct tn_err *err)
{
    struct summary s = {.stats = stats, .columns = columns};
    struct tn_stats made = {0};
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = summary_init(&s, arena, scratch, err);
    if (rc == TN_OK) {
        rc = make_bounds(&s, s.min, arena, scratch, &made.min, err);
    }
    if (rc == TN_OK) {
        rc = make_bounds(&s, s.max, arena, scratch, &made.max, err);
    }
    tn_arena_reset(scratch, mark);
    if (rc == TN_OK) {
        made.null_counts = s.null_counts;
        made.null_count_count = columns.count;
        *out = made;
    }
    return rc;
}

/* ---- public ---- */

uint32_t tn_stats_cut_min(struct tn_bytes text, uint32_t n, unsigned char *out)
{
    uint32_t size = cut_size(text, n);
    if (size > 0) {
        memcpy(out, text.data, size);
    }
    return size;
}

bool tn_stats_cut_max(struct tn_bytes text, uint32_t n, unsigned char *out, uint32_t *size)
{
    uint32_t cut = tn_stats_cut_min(text, n, out);
    if (cut < text.size && !round_up(out, &cut)) {
        return false;
    }
    *size = cut;
    return true;
}

/* Bytes that each bound of a text column may take; 0 for others. */
static uint32_t text_size_max(const struct tn_column *column, enum tn_stats_mode mode,
                              uint32_t length)
{
    if (!tn_type_textual(column->type.kind) || mode == TN_STATS_NONE || mode == TN_STATS_COUNTS) {
        return 0;
    }
    bool all = mode == TN_STATS_FULL || length > TEXT_SIZE_MAX / 4;
    return all ? TEXT_SIZE_MAX : length * 4;
}

size_t tn_stats_size(const struct tn_row_layout *layout, const struct tn_options *options)
{
    size_t size = (layout->column_count + 1) * sizeof(struct tn_stats_column);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        size += 2 * (size_t)text_size_max(&layout->columns[i], options->stats_modes[i],
                                          options->stats_lengths[i]) +
                1 + _Alignof(max_align_t);
    }
    return size;
}

static tn_rc init_column(struct tn_stats_column *c, const struct tn_column *column,
                         enum tn_stats_mode mode, uint32_t length, struct tn_arena *arena,
                         struct tn_err *err)
{
    *c = (struct tn_stats_column){
        .min_high = INT64_MAX,
        .max_high = INT64_MIN,
        .min_low = UINT64_MAX,
        .slot = column->slot,
        .mode = (uint8_t)mode,
        .bounded = !tn_type_binary(column->type.kind), /* Paimon 1.3 keeps none of binary columns */
    };
    c->text_size_max = text_size_max(column, mode, length);
    if (c->text_size_max == 0) {
        c->bounded = c->bounded && !tn_type_textual(column->type.kind);
        return TN_OK;
    }
    c->text_length = mode == TN_STATS_FULL ? UINT32_MAX : length;
    c->cut_by_bytes = c->text_length > TEXT_SIZE_MAX / 4;
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, 2 * (size_t)c->text_size_max + 1, "statistics", &memory, err);
    if (rc == TN_OK) {
        c->min_text = memory;
        c->max_text = c->min_text + c->text_size_max;
    }
    return rc;
}

tn_rc tn_stats_init(struct tn_stats_collector *stats, const struct tn_row_layout *layout,
                    const struct tn_options *options, struct tn_arena *arena, struct tn_err *err)
{
    void *columns = NULL;
    tn_rc rc = tn_arena_need(arena, layout->column_count * sizeof(struct tn_stats_column),
                             "statistics", &columns, err);
    *stats = (struct tn_stats_collector){columns, layout->column_count, layout};
    for (uint32_t i = 0; i < layout->column_count && rc == TN_OK; i++) {
        rc = init_column(&stats->columns[i], &layout->columns[i], options->stats_modes[i],
                         options->stats_lengths[i], arena, err);
    }
    return rc;
}

void tn_stats_add(struct tn_stats_collector *stats, struct tn_row row)
{
    for (uint32_t i = 0; i < stats->count; i++) {
        struct tn_stats_column *c = &stats->columns[i];
        if (tn_row_null(row, i)) {
            c->null_count++;
        } else if (c->mode > TN_STATS_COUNTS) {
            add_value(c, stats->layout, row, i);
        }
    }
}

/* Which columns have statistics; their names, where not all have. */
static tn_rc choose(const struct tn_stats_collector *stats, bool dense, struct tn_arena *arena,
                    struct tn_arena *scratch, struct tn_columns *chosen, struct tn_texts *cols,
                    struct tn_err *err)
{
    uint32_t *index = tn_arena_take(scratch, stats->count * sizeof(uint32_t) + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; index && i < stats->count; i++) {
        if (!dense || stats->columns[i].mode != TN_STATS_NONE) {
            index[count++] = i;
        }
    }
    *cols = (struct tn_texts){0};
    bool whole = index != NULL;
    if (whole && count < stats->count) {
        const char **names = tn_arena_take(arena, count * sizeof(char *) + 1);
        whole = names != NULL;
        for (uint32_t i = 0; whole && i < count; i++) {
            names[i] = tn_arena_text(arena, tn_bytes_of(stats->layout->columns[index[i]].name));
            whole = names[i] != NULL;
        }
        *cols = (struct tn_texts){names, count, true};
    }
    *chosen = (struct tn_columns){index, count};
    return whole ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "statistics: the arena is full");
}

/* An arena's blocks are aligned. */
size_t tn_stats_scratch_size(const struct tn_row_layout *layout, const struct tn_options *options)
{
    size_t unit = _Alignof(max_align_t);
    size_t n = layout->column_count;
    size_t size = n * (sizeof(uint32_t) + sizeof(struct tn_type) + 2 * sizeof(struct tn_value)) +
                  4 + 8 + (n + 63) / 64 * 8 + 8 * unit;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        uint32_t text =
            text_size_max(&layout->columns[i], options->stats_modes[i], options->stats_lengths[i]);
        size += text + 4 + unit + bound_size(text);
    }
    return size;
}

tn_rc tn_stats_finish(const struct tn_stats_collector *stats, const struct tn_options *options,
                      struct tn_columns keys, struct tn_arena *arena, struct tn_arena *scratch,
                      struct tn_stats *values, struct tn_texts *cols, struct tn_stats *key_stats,
                      struct tn_err *err)
{
    struct tn_columns chosen;
    struct tn_texts names;
    struct tn_stats made = {.null_count_count = 0};
    struct tn_stats made_keys = {.null_count_count = 0};
    tn_rc rc = choose(stats, options->stats_dense, arena, scratch, &chosen, &names, err);
    if (rc == TN_OK) {
        rc = summarize(stats, chosen, arena, scratch, &made, err);
    }
    if (rc == TN_OK) {
        rc = summarize(stats, keys, arena, scratch, &made_keys, err);
    }
    if (rc) {
        return rc;
    }
    *values = made;
    *key_stats = made_keys;
    *cols = names;
    return TN_OK;
}
