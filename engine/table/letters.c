#include "table/letters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "schema/value.h"

enum {
    ENTRY_SIZE = 40, /* in a spool, before the texts: see put_entry */
    PIECE_SIZE = 256 /* of a text: its JSON is six times as long at most */
};

/* ---- an entry of a spool ---- */

struct entry {
    struct tn_origin origin;
    uint64_t line;
    struct tn_bytes input;
    struct tn_bytes header;
    struct tn_bytes reason;
    uint32_t record_size;
};

static size_t heading_size(const struct entry *e)
{
    return ENTRY_SIZE + e->input.size + e->header.size + e->reason.size;
}

static bool fits(const struct tn_letters *l, const struct entry *e)
{
    size_t size = heading_size(e) + TN_LETTER_SOURCE_SIZE;
    return l->box->size_max == 0 ||
           (size <= l->box->size_max && e->record_size <= l->box->size_max - size);
}

/* What stands before the record. */
static tn_rc put_entry(struct tn_letters *l, struct tn_spool *spool, const struct entry *e,
                       struct tn_err *err)
{
    if (!fits(l, e)) {
        return tn_err_set(
            err, TN_UNSUPPORTED, 0,
            "a dead letter with a record of %u bytes is larger than the %u bytes that "
            "fit the memory for them (%.*s)",
            e->record_size, l->box->size_max, (int)(e->reason.size < 160 ? e->reason.size : 160),
            (const char *)e->reason.data);
    }
    unsigned char at[ENTRY_SIZE] = {0};
    tn_store_u32(at, (uint32_t)(heading_size(e) + e->record_size));
    tn_store_u32(at + 4, e->origin.part);
    tn_store_u64(at + 8, (uint64_t)e->origin.position);
    tn_store_u64(at + 16, e->line);
    tn_store_u32(at + 24, e->origin.source);
    tn_store_u32(at + 28, e->record_size);
    tn_store_u16(at + 32, (uint16_t)e->reason.size);
    tn_store_u16(at + 34, (uint16_t)e->header.size);
    at[36] = (unsigned char)e->input.size;
    struct tn_bytes parts[] = {{at, sizeof at}, e->input, e->header, e->reason};
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < sizeof parts / sizeof parts[0]; i++) {
        rc = parts[i].size > 0 ? tn_spool_add(spool, parts[i], err) : TN_OK;
    }
    return rc;
}

/* A reason may quote what is no text; a source may be named by what is none. */
static void make_text(unsigned char *at, size_t size)
{
    bool clean = tn_is_utf8((struct tn_bytes){at, size});
    for (size_t i = 0; !clean && i < size; i++) {
        at[i] = at[i] < 0x80 ? at[i] : '?';
    }
}

static struct tn_bytes reason_of(const char *text)
{
    struct tn_bytes reason = tn_bytes_of(text);
    reason.size = reason.size < TN_ERR_TEXT_SIZE ? reason.size : TN_ERR_TEXT_SIZE;
    return reason;
}

/* ---- records, on the loop ---- */

/* A source of which nothing died needs no name. */
static tn_rc write_name(struct tn_letters *l, struct tn_err *err)
{
    struct tn_letter_source *source = l->source;
    tn_rc rc = TN_OK;
    if (!source->named) {
        rc = tn_spool_add(&l->sources, (struct tn_bytes){source->name, sizeof source->name}, err);
        source->named = rc == TN_OK;
        source->number = (uint16_t)l->source_count;
        l->source_count += source->named;
    }
    return rc;
}

tn_rc tn_letters_bury(struct tn_letters *letters, const struct tn_letter_record *record,
                      struct tn_err *err)
{
    tn_rc rc = letters->muted ? TN_OK : write_name(letters, err);
    if (rc != TN_OK || letters->muted) {
        return rc;
    }
    bool is_row = strcmp(letters->input, TN_LETTER_ROW) == 0; /* sent again, and refused */
    uint64_t begin = letters->records.size;
    struct entry e = {.origin = {record->position, record->part, letters->source->number},
                      .line = is_row ? 0 : record->line,
                      .input = tn_bytes_of(letters->input),
                      .header = {letters->header, letters->header_size},
                      .reason = reason_of(record->reason),
                      .record_size = (uint32_t)record->record.size};
    rc = put_entry(letters, &letters->records, &e, err);
    if (rc == TN_OK && record->record.size > 0) {
        rc = tn_spool_add(&letters->records, record->record, err);
    }
    if (rc != TN_OK) {
        struct tn_err ignored = {0};
        tn_rc cut = tn_spool_cut(&letters->records, begin, &ignored);
        (void)cut; /* the first error is the one to tell */
        return rc;
    }
    return TN_OK;
}

/* ---- rows, on the worker ---- */

/* JSON piece by piece: first its size is counted, then it is written. */
struct writer {
    struct tn_spool *spool; /* NULL: counts */
    uint64_t size;
    tn_rc rc;
    struct tn_err *err;
};

static void write_bytes(struct writer *w, struct tn_bytes bytes)
{
    w->size += bytes.size;
    if (w->spool && w->rc == TN_OK && bytes.size > 0) {
        w->rc = tn_spool_add(w->spool, bytes, w->err);
    }
}

static void write_text(struct writer *w, const char *text)
{
    write_bytes(w, tn_bytes_of(text));
}

/* A value of bytes as tn_value_format_json has it: of each piece without the quotes. */
static void write_pieces(struct writer *w, const struct tn_type *type, struct tn_bytes bytes)
{
    unsigned char text[6 * PIECE_SIZE + 2];
    write_text(w, "\"");
    for (size_t at = 0; at < bytes.size; at += PIECE_SIZE) {
        size_t left = bytes.size - at;
        struct tn_value piece = {
            .as.bytes = {bytes.data + at, left < PIECE_SIZE ? left : PIECE_SIZE}};
        struct tn_buf buf;
        tn_buf_init(&buf, text, sizeof text);
        tn_value_format_json(type, &piece, &buf);
        write_bytes(w, (struct tn_bytes){text + 1, buf.size - 2});
    }
    write_text(w, "\"");
}

static void write_value(struct writer *w, const struct tn_column *column,
                        const struct tn_value *value)
{
    if (column->slot == TN_SLOT_BYTES && !value->null) {
        write_pieces(w, &column->type, value->as.bytes);
        return;
    }
    unsigned char text[128];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text);
    tn_value_format_json(&column->type, value, &buf);
    TN_CHECK(!buf.overflow);
    write_bytes(w, tn_buf_bytes(&buf));
}

static void write_row(struct writer *w, const struct tn_row_layout *layout,
                      const struct tn_letter *letter)
{
    static const struct tn_type NAME = {.kind = TN_TYPE_VARCHAR};
    write_text(w, "{\"kind\":\"");
    write_text(w, tn_row_kind_text(letter->kind));
    write_text(w, "\",\"row\":");
    for (uint32_t i = 0; i < layout->column_count; i++) {
        struct tn_value value;
        tn_row_get(layout, letter->row, i, &value);
        write_text(w, i > 0 ? "," : "{");
        write_pieces(w, &NAME, tn_bytes_of(layout->columns[i].name));
        write_text(w, ":");
        write_value(w, &layout->columns[i], &value);
    }
    write_text(w, "}}");
}

static struct tn_letters *letters_of(struct tn_letter_sink *sink)
{
    return (struct tn_letters *)(void *)sink;
}

static tn_rc sink_put(struct tn_letter_sink *sink, const struct tn_letter *letter,
                      struct tn_err *err)
{
    struct tn_letters *l = letters_of(sink);
    if (l->muted) {
        return TN_OK;
    }
    struct tn_err why; /* the reason may be in `err` */
    (void)snprintf(why.text, sizeof why.text, "%s", letter->reason);
    struct writer count = {.rc = TN_OK, .err = err};
    write_row(&count, l->layout, letter);
    struct entry e = {.origin = letter->origin,
                      .input = tn_bytes_of(TN_LETTER_ROW),
                      .reason = reason_of(why.text),
                      .record_size = (uint32_t)count.size};
    tn_rc rc = put_entry(l, &l->rows, &e, err);
    struct writer w = {.spool = &l->rows, .rc = rc, .err = err};
    write_row(&w, l->layout, letter);
    return w.rc; /* what is there of it goes with the flush */
}

static tn_rc sink_begin(struct tn_letter_sink *sink, struct tn_err *err)
{
    struct tn_letters *l = letters_of(sink);
    (void)err;
    (void)pthread_mutex_lock(&l->lock);
    l->flushing = true;
    l->rows_begin = l->rows.size;
    (void)pthread_mutex_unlock(&l->lock);
    return TN_OK;
}

static tn_rc sink_end(struct tn_letter_sink *sink, bool success, struct tn_err *err)
{
    struct tn_letters *l = letters_of(sink);
    tn_rc rc = success ? TN_OK : tn_spool_cut(&l->rows, l->rows_begin, err);
    (void)pthread_mutex_lock(&l->lock);
    l->flushing = false;
    if (success) {
        l->rows_end = l->rows.size;
    }
    (void)pthread_mutex_unlock(&l->lock);
    return rc;
}

/* ---- into the box ---- */

tn_rc tn_letter_record(const struct tn_dead_letter *letter, uint32_t at, void *data, size_t size,
                       struct tn_err *err)
{
    TN_CHECK(at <= letter->record_size && size <= letter->record_size - at);
    return tn_spool_read(letter->spool, letter->record_at + at, data, size, err);
}

static tn_rc read_name(struct tn_letters *l, uint32_t source, unsigned char *name,
                       struct tn_err *err)
{
    if (source >= l->source_count) { /* nobody said */
        memcpy(name, "?", sizeof "?");
        return TN_OK;
    }
    tn_rc rc = tn_spool_read(&l->sources, (uint64_t)source * TN_LETTER_SOURCE_SIZE, name,
                             TN_LETTER_SOURCE_SIZE, err);
    name[TN_LETTER_SOURCE_SIZE - 1] = 0; /* whatever the disk has kept */
    return rc;
}

/* Its texts are still to be read. The disk may have kept something else: all must fit where it
 * goes. */
static tn_rc read_heading(struct tn_letters *l, struct tn_spool *spool, uint64_t from,
                          struct entry *e, struct tn_err *err)
{
    unsigned char at[ENTRY_SIZE];
    tn_rc rc = tn_spool_read(spool, from, at, sizeof at, err);
    if (rc != TN_OK) {
        return rc;
    }
    *e = (struct entry){.origin = {(int64_t)tn_load_u64(at + 8), tn_load_u32(at + 4),
                                   (uint16_t)tn_load_u32(at + 24)},
                        .line = tn_load_u64(at + 16),
                        .input.size = at[36],
                        .header.size = tn_load_u16(at + 34),
                        .reason.size = tn_load_u16(at + 32),
                        .record_size = tn_load_u32(at + 28)};
    bool right = e->header.size <= TN_LETTER_HEADER_SIZE && e->reason.size <= TN_ERR_TEXT_SIZE &&
                 fits(l, e) && (uint64_t)heading_size(e) + e->record_size == tn_load_u32(at);
    return right ? TN_OK
                 : tn_err_set(err, TN_CORRUPT, 0, "%s: byte %" PRIu64 ": no letter begins here",
                              spool->path, from);
}

struct texts {
    unsigned char name[TN_LETTER_SOURCE_SIZE];
    unsigned char input[UINT8_MAX];
    unsigned char reason[TN_ERR_TEXT_SIZE];
};

static tn_rc read_texts(struct tn_letters *l, struct tn_spool *spool, uint64_t from,
                        struct entry *e, struct texts *texts, struct tn_err *err)
{
    const struct {
        unsigned char *data;
        struct tn_bytes *text;
    } parts[] = {
        {texts->input, &e->input}, {l->header_read, &e->header}, {texts->reason, &e->reason}};
    tn_rc rc = read_name(l, e->origin.source, texts->name, err);
    for (size_t i = 0; rc == TN_OK && i < sizeof parts / sizeof parts[0]; i++) {
        parts[i].text->data = parts[i].data;
        rc = tn_spool_read(spool, from, parts[i].data, parts[i].text->size, err);
        from += parts[i].text->size;
    }
    return rc;
}

static tn_rc publish_one(struct tn_letters *l, struct tn_spool *spool, uint64_t *from,
                         uint64_t *count, struct tn_err *err)
{
    struct texts texts;
    struct entry e;
    tn_rc rc = read_heading(l, spool, *from, &e, err);
    if (rc == TN_OK) {
        rc = read_texts(l, spool, *from + ENTRY_SIZE, &e, &texts, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    make_text(texts.reason, e.reason.size);
    uint64_t record_at = *from + heading_size(&e);
    struct tn_dead_letter letter = {.source = tn_bytes_of((const char *)texts.name),
                                    .position = e.origin.position,
                                    .part = e.origin.part,
                                    .line = e.line,
                                    .table = tn_bytes_of(l->table),
                                    .input = e.input,
                                    .header = e.header,
                                    .reason = e.reason,
                                    .record_size = e.record_size,
                                    .spool = spool,
                                    .record_at = record_at};
    rc = l->box->put(l->box, &letter, err);
    if (rc == TN_OK) {
        *from = record_at + e.record_size;
        *count += 1;
        l->uncommitted = true;
    }
    return rc;
}

static tn_rc publish_until(struct tn_letters *l, struct tn_spool *spool, uint64_t *from,
                           uint64_t end, uint64_t *count, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && *from < end) {
        rc = publish_one(l, spool, from, count, err);
    }
    return rc;
}

/* A box may let flushes go on while it works: `rows_end` moves, and rows behind it wait. */
static uint64_t end_of_rows(struct tn_letters *l)
{
    (void)pthread_mutex_lock(&l->lock);
    uint64_t end = l->rows_end;
    (void)pthread_mutex_unlock(&l->lock);
    return end;
}

/* What is in the box takes no room on the disk. */
static tn_rc empty_spools(struct tn_letters *l, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (l->records_done > 0 && l->records_done == l->records.size) {
        rc = tn_spool_cut(&l->records, 0, err);
        l->records_done = 0;
    }
    (void)pthread_mutex_lock(&l->lock);
    if (rc == TN_OK && !l->flushing && l->rows_done > 0 && l->rows_done == l->rows_end) {
        rc = tn_spool_cut(&l->rows, 0, err);
        l->rows_done = 0;
        l->rows_end = 0;
    }
    (void)pthread_mutex_unlock(&l->lock);
    return rc;
}

tn_rc tn_letters_publish(struct tn_letters *letters, struct tn_err *err)
{
    struct tn_letters *l = letters;
    tn_rc rc =
        publish_until(l, &l->records, &l->records_done, l->records.size, &l->record_count, err);
    if (rc == TN_OK) {
        rc = publish_until(l, &l->rows, &l->rows_done, end_of_rows(l), &l->row_count, err);
    }
    if (rc == TN_OK && l->uncommitted) {
        rc = l->box->commit(l->box, err);
        l->uncommitted = rc != TN_OK;
    }
    if (rc == TN_OK) {
        rc = empty_spools(l, err);
    }
    if (rc == TN_AGAIN) { /* memory that is short will be short again */
        rc = tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "dead letters of %s", l->table);
}

/* ---- open, close ---- */

tn_rc tn_letters_open(struct tn_letters *letters, struct tn_io *io, const char *table,
                      struct tn_letter_box *box, void *room, struct tn_err *err)
{
    *letters = (struct tn_letters){
        .sink = {sink_begin, sink_put, sink_end}, .box = box, .table = table, .header_read = room};
    letters->source = &letters->own;
    int failed = pthread_mutex_init(&letters->lock, NULL);
    TN_CHECK(failed == 0);
    tn_rc rcs[] = {/* all of them: close looks at each */
                   tn_spool_init(&letters->sources, io, table, "sources", err),
                   tn_spool_init(&letters->records, io, table, "letters", err),
                   tn_spool_init(&letters->rows, io, table, "rows", err)};
    return rcs[0] != TN_OK ? rcs[0] : rcs[1] != TN_OK ? rcs[1] : rcs[2];
}

void tn_letters_layout(struct tn_letters *letters, const struct tn_row_layout *layout)
{
    letters->layout = layout;
}

void tn_letters_mute(struct tn_letters *letters)
{
    letters->muted = true;
}

void tn_letters_close(struct tn_letters *letters)
{
    tn_spool_close(&letters->sources);
    tn_spool_close(&letters->records);
    tn_spool_close(&letters->rows);
    (void)pthread_mutex_destroy(&letters->lock);
}

tn_rc tn_letters_begin(struct tn_letters *letters, struct tn_letter_source *source,
                       const char *name, const char *input, int64_t from, uint32_t part, bool again,
                       struct tn_err *err)
{
    struct tn_letters *l = letters;
    size_t size = strlen(name);
    *source = (struct tn_letter_source){.number = TN_ORIGIN_NONE};
    l->source = source;
    if (l->muted) {
        return TN_OK;
    }
    if (size >= sizeof source->name || l->source_count >= TN_ORIGIN_NONE - 1) {
        return tn_err_set(err, TN_INVALID, 0, "%.100s: %s", name,
                          size >= sizeof source->name ? "the source's name is too long"
                                                      : "too many sources at once");
    }
    if (!l->swept) { /* the table's lock is there by now */
        tn_spool_sweep(&l->sources);
        tn_spool_sweep(&l->records);
        tn_spool_sweep(&l->rows);
        l->swept = true;
    }
    memcpy(source->name, name, size);
    make_text(source->name, size);
    tn_letters_input(l, input);
    source->number = (uint16_t)l->source_count;        /* if one is named next it's this one */
    tn_rc rc = l->layout ? write_name(l, err) : TN_OK; /* a row may die when this source is gone */
    return rc == TN_OK && again && l->box->forget
               ? l->box->forget(l->box, (const char *)source->name, from, part, err)
               : rc;
}

tn_rc tn_letters_source(struct tn_letters *letters, const char *name, const char *input,
                        int64_t from, uint32_t part, bool again, uint16_t *number,
                        struct tn_err *err)
{
    tn_rc rc = tn_letters_begin(letters, &letters->own, name, input, from, part, again, err);
    *number = letters->own.number;
    return rc;
}

void tn_letters_turn(struct tn_letters *letters, struct tn_letter_source *source)
{
    letters->source = source ? source : &letters->own;
}

void tn_letters_input(struct tn_letters *letters, const char *input)
{
    (void)snprintf(letters->input, sizeof letters->input, "%s", input);
    letters->header_size = 0;
}

void tn_letters_header(struct tn_letters *letters, struct tn_bytes header)
{
    static const char MARK[] = "\xEF\xBB\xBF"; /* of the byte order */
    enum { MARK_SIZE = sizeof MARK - 1 };
    if (strcmp(letters->input, "csv") != 0 || letters->header_size > 0) {
        return;
    }
    if (header.size >= MARK_SIZE && memcmp(header.data, MARK, MARK_SIZE) == 0) {
        header = (struct tn_bytes){header.data + MARK_SIZE, header.size - MARK_SIZE};
    }
    header.size -= header.size > 0 && header.data[header.size - 1] == '\r';
    if (header.size > 0 && header.size <= sizeof letters->header && tn_is_utf8(header)) {
        memcpy(letters->header, header.data, header.size);
        letters->header_size = (uint32_t)header.size;
    }
}
