#include "app/mapper.h"

enum { MADE_SHARE = 8 };

void tn_mapper_init_on(struct tn_mapper *mapper, struct tn_script *script, struct tn_clock *clock,
                       int64_t known_ms, void *memory, size_t size)
{
    *mapper = (struct tn_mapper){.script = script};
    tn_clock_watch_init(&mapper->watch, clock, known_ms);
    tn_buf_init(&mapper->made, memory, size);
}

tn_rc tn_mapper_init(struct tn_mapper *mapper, struct tn_script *script, struct tn_clock *clock,
                     int64_t known_ms, struct tn_arena *arena, struct tn_err *err)
{
    size_t size = tn_arena_free(arena) / MADE_SHARE;
    void *memory;
    tn_rc rc = tn_arena_need(arena, size, "the rows of a record", &memory, err);
    if (rc == TN_OK) {
        tn_mapper_init_on(mapper, script, clock, known_ms, memory, size);
    }
    return rc;
}

void tn_mapper_begin(struct tn_mapper *mapper)
{
    mapper->row = 0;
    mapper->made.size = 0;
    mapper->rest = (struct tn_bytes){0};
}

/* What is mapped next, or ABSENT. */
static tn_rc map(struct tn_mapper *m, struct tn_decoder *decoder, struct tn_decoded *decoded,
                 const struct tn_script_meta *meta, uint32_t *count, struct tn_err *err)
{
    uint32_t at = m->row;
    if (m->records) {
        m->kind = TN_ROW_INSERT;
        return tn_script_map_json(m->script, decoded->record, meta, count, &m->made, err);
    }
    m->kind = tn_decoded_kind(decoded, at);
    struct tn_row row = tn_decoder_row(decoder, decoded, at);
    if (m->kind == TN_ROW_UPDATE_BEFORE) { /* it says what was, not what is to be */
        unsigned char size[4];
        tn_store_u32(size, row.size);
        tn_buf_append(&m->made, size, sizeof size);
        tn_buf_append(&m->made, row.data, row.size);
        *count = 1;
        return m->made.overflow ? TN_AGAIN : TN_OK;
    }
    return tn_script_map(m->script, row, meta, count, &m->made, err);
}

static tn_rc map_next(struct tn_mapper *m, struct tn_decoder *decoder, struct tn_decoded *decoded,
                      uint64_t position, struct tn_err *err)
{
    struct tn_script_meta meta = {
        .topic = m->topic, .source = m->source, .position = (int64_t)position};
    meta.clock = tn_clock_watch_look(&m->watch, &meta.received_ms);
    uint32_t count = 0;
    m->made.size = 0;
    m->made.overflow = false;
    tn_rc rc = map(m, decoder, decoded, &meta, &count, err);
    m->row++;
    m->rest = rc == TN_OK ? tn_buf_bytes(&m->made) : (struct tn_bytes){0};
    m->dropped += rc == TN_OK && count == 0;
    return rc == TN_AGAIN ? TN_INVALID : rc; /* rows that don't fit are the script's mistake */
}

tn_rc tn_mapper_next(struct tn_mapper *m, struct tn_decoder *decoder, struct tn_decoded *decoded,
                     uint64_t position, struct tn_row *row, enum tn_row_kind *kind,
                     struct tn_err *err)
{
    uint32_t most = m->records ? decoded->record.size > 0 : decoded->count;
    while (!tn_script_next_row(&m->rest, row)) {
        if (m->row >= most) {
            return TN_ABSENT;
        }
        tn_rc rc = map_next(m, decoder, decoded, position, err);
        if (rc != TN_OK) {
            m->row = most;
            return rc;
        }
    }
    *kind = m->kind;
    return TN_OK;
}
