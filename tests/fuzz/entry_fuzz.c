/* entry: any bytes as a manifest, as a manifest list and as an index manifest. What decodes is
 * encoded, decoded again, and must not differ. */
#include <string.h>

#include "base/check.h"
#include "file/meta.h"
#include "fuzz/fuzz.h"
#include "fuzz/heaps.h"

enum { ARENA_SIZE = 4 << 20, RAW_SIZE = 256 << 10, RECORDS_MAX = 1000 };

static struct tn_arena arena;
static struct tn_codec codec;
static struct tn_err err;
static unsigned char raw_memory[RAW_SIZE];
static unsigned char text_memory[2][RAW_SIZE];
static size_t start;

static void set_up(void)
{
    static _Alignas(16) unsigned char arena_memory[ARENA_SIZE];
    heaps_init();
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    tn_rc rc = tn_codec_init(&codec, 1, 0, &arena, &err);
    TN_CHECK(rc == TN_OK);
    start = tn_arena_mark(&arena);
}

/* Encoding is a function of the record: what was written, read and written again is the same. */
static void check_same(const struct tn_buf *first, const struct tn_buf *second)
{
    if (!first->overflow && !second->overflow) {
        TN_CHECK(tn_bytes_equal(tn_buf_bytes(first), tn_buf_bytes(second)));
    }
}

static tn_rc one_index(const struct tn_meta_plan *plan, struct tn_avro_cursor *c)
{
    struct tn_index_entry entry;
    tn_rc rc = tn_index_decode(plan, c, &arena, &entry, &err);
    TN_CHECK(rc != TN_OK || (entry.file_size >= 0 && entry.file_name[0] && entry.index_type));
    return rc;
}

static tn_rc one_record(const struct tn_meta_plan *plan, const struct tn_meta_plan *own, bool list,
                        struct tn_avro_cursor *c)
{
    struct tn_buf texts[2];
    tn_buf_init(&texts[0], text_memory[0], RAW_SIZE);
    tn_buf_init(&texts[1], text_memory[1], RAW_SIZE);
    struct tn_entry entry;
    struct tn_manifest_meta meta;
    tn_rc rc = list ? tn_manifest_meta_decode(plan, c, &arena, &meta, &err)
                    : tn_entry_decode(plan, c, &arena, &entry, &err);
    if (rc) {
        return rc;
    }
    if (list) {
        tn_manifest_meta_encode(&meta, &texts[0]);
    } else {
        (void)tn_entry_identity(&entry, &arena);
        tn_entry_encode(&entry, &texts[0]);
    }
    if (texts[0].overflow) {
        return TN_AGAIN;
    }
    struct tn_avro_cursor again = {texts[0].data, texts[0].data + texts[0].size, false};
    rc = list ? tn_manifest_meta_decode(own, &again, &arena, &meta, &err)
              : tn_entry_decode(own, &again, &arena, &entry, &err);
    if (rc == TN_AGAIN) {
        return rc;
    }
    TN_CHECK(rc == TN_OK && again.at == again.end);
    if (list) {
        tn_manifest_meta_encode(&meta, &texts[1]);
    } else {
        tn_entry_encode(&entry, &texts[1]);
    }
    check_same(&texts[0], &texts[1]);
    return TN_OK;
}

static void blocks(struct tn_bytes file, const struct tn_avro_header *header,
                   const struct tn_meta_plan *plan, const struct tn_meta_plan *own, bool list)
{
    size_t at = header->size;
    while (at < file.size) {
        int64_t count = 0;
        int64_t size = 0;
        uint32_t head = 0;
        struct tn_bytes rest = {file.data + at, file.size - at};
        tn_rc rc = tn_avro_block_decode(rest, &count, &size, &head, &err);
        if (rc || size > (int64_t)(rest.size - head)) {
            return;
        }
        struct tn_buf raw;
        size_t needed = 0;
        tn_buf_init(&raw, raw_memory, RAW_SIZE);
        rc = tn_codec_decompress(&codec, header->codec,
                                 (struct tn_bytes){rest.data + head, (size_t)size}, &arena, &raw,
                                 &needed, &err);
        struct tn_avro_cursor c = {raw.data, raw.data + raw.size, rc != TN_OK};
        size_t mark = tn_arena_mark(&arena);
        for (int64_t i = 0; i < count && i < RECORDS_MAX && rc == TN_OK && !c.failed; i++) {
            rc = own ? one_record(plan, own, list, &c) : one_index(plan, &c);
            tn_arena_reset(&arena, mark);
        }
        at += head + (size_t)size + 16;
    }
}

static void as(struct tn_bytes file, bool list)
{
    struct tn_avro_header header;
    struct tn_meta_plan plan;
    struct tn_meta_plan own;
    tn_arena_reset(&arena, start);
    tn_rc rc = tn_avro_header_decode(file, &header, &err);
    if (rc) {
        return;
    }
    rc = list ? tn_manifest_list_plan(header.schema, &arena, &plan, &err)
              : tn_entry_plan(header.schema, &arena, &plan, &err);
    if (rc) {
        return;
    }
    rc = list ? tn_manifest_list_plan(tn_bytes_of(tn_manifest_list_avro_schema), &arena, &own, &err)
              : tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), &arena, &own, &err);
    if (rc == TN_OK) {
        blocks(file, &header, &plan, &own, list);
    }
}

static void as_index(struct tn_bytes file)
{
    struct tn_avro_header header;
    struct tn_meta_plan plan;
    tn_arena_reset(&arena, start);
    if (tn_avro_header_decode(file, &header, &err) == TN_OK &&
        tn_index_plan(header.schema, &arena, &plan, &err) == TN_OK) {
        blocks(file, &header, &plan, NULL, false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!arena.base) {
        set_up();
    }
    as((struct tn_bytes){data, size}, false);
    as((struct tn_bytes){data, size}, true);
    as_index((struct tn_bytes){data, size});
    return 0;
}
