/* world_index: index files of a source table, as official Paimon's writers leave them: tarn writes
 * none. An index manifest lists all that are live, and its name stays while they do. */
#pragma once

#include "upload/world.h"

enum { WORLD_INDEX_LIVE = 6 };

/* As Paimon 1.3.1 writes it. */
static const char world_index_schema[] =
    "{\"type\":\"record\",\"name\":\"record\",\"namespace\":\"org.apache.paimon.avro.generated\","
    "\"fields\":["
    "{\"name\":\"_VERSION\",\"type\":\"int\"},{\"name\":\"_KIND\",\"type\":\"int\"},"
    "{\"name\":\"_PARTITION\",\"type\":\"bytes\"},{\"name\":\"_BUCKET\",\"type\":\"int\"},"
    "{\"name\":\"_INDEX_TYPE\",\"type\":\"string\"},{\"name\":\"_FILE_NAME\",\"type\":\"string\"},"
    "{\"name\":\"_FILE_SIZE\",\"type\":\"long\"},{\"name\":\"_ROW_COUNT\",\"type\":\"long\"},"
    "{\"name\":\"_DELETIONS_VECTORS_RANGES\",\"type\":[\"null\",{\"type\":\"array\",\"items\":["
    "\"null\","
    "{\"type\":\"record\",\"name\":\"record__DELETIONS_VECTORS_RANGES\",\"fields\":["
    "{\"name\":\"f0\",\"type\":\"string\"},{\"name\":\"f1\",\"type\":\"int\"},{\"name\":\"f2\","
    "\"type\":\"int\"},"
    "{\"name\":\"_CARDINALITY\",\"type\":[\"null\",\"long\"],\"default\":null}]}]}],\"default\":"
    "null},"
    "{\"name\":\"_EXTERNAL_PATH\",\"type\":[\"null\",\"string\"],\"default\":null}]}";

struct world_index {
    char names[WORLD_INDEX_LIVE][48]; /* "": none */
    int64_t sizes[WORLD_INDEX_LIVE];
    char manifest[48];
};

static __attribute__((unused, noinline)) void world_index_record(struct world *w, const char *name,
                                                                 int64_t size, struct tn_buf *buf)
{
    struct tn_bytes partition = bed_partition(&w->source, world_dates[0]);
    tn_avro_write_long(buf, 1);
    tn_avro_write_long(buf, 0);
    tn_avro_write_bytes(buf, partition);
    tn_avro_write_long(buf, 1);
    tn_avro_write_bytes(buf, tn_bytes_of("DELETION_VECTORS"));
    tn_avro_write_bytes(buf, tn_bytes_of(name));
    tn_avro_write_long(buf, size);
    tn_avro_write_long(buf, 1);
    tn_avro_write_long(buf, 1); /* ranges: one */
    tn_avro_write_long(buf, 1);
    tn_avro_write_long(buf, 1);
    tn_avro_write_bytes(buf, tn_bytes_of("data-of-the-vector"));
    tn_avro_write_long(buf, 1);
    tn_avro_write_long(buf, size - 1);
    tn_avro_write_long(buf, 0);
    tn_avro_write_long(buf, 0);
    tn_avro_write_long(buf, 0); /* no external path */
}

static __attribute__((unused, noinline)) void world_index_manifest(struct world *w,
                                                                   const struct world_index *index)
{
    static const unsigned char sync[16] = "index";
    static unsigned char memory[16 * 1024];
    static unsigned char rows[8 * 1024];
    struct tn_buf buf;
    struct tn_buf block;
    int64_t count = 0;
    char path[128];
    tn_buf_init(&buf, memory, sizeof memory);
    tn_buf_init(&block, rows, sizeof rows);
    for (int i = 0; i < WORLD_INDEX_LIVE; i++) {
        if (index->names[i][0] != 0) {
            world_index_record(w, index->names[i], index->sizes[i], &block);
            count++;
        }
    }
    tn_avro_header_encode(tn_bytes_of(world_index_schema), TN_CODEC_ID_NULL, sync, &buf);
    tn_avro_write_long(&buf, count);
    tn_avro_write_bytes(&buf, tn_buf_bytes(&block));
    tn_buf_append(&buf, sync, sizeof sync);
    CHECK(!buf.overflow && !block.overflow);
    (void)snprintf(path, sizeof path, ROOT "/manifest/%s", index->manifest);
    world_write(&w->source.disk.io, path, tn_buf_bytes(&buf));
}

/* Some index files are replaced, as by a commit that deletes rows: the newest snapshot has others
 * than the one before. */
static __attribute__((unused, noinline)) void world_index_change(struct world *w,
                                                                 struct world_index *index)
{
    for (int i = 0; i < WORLD_INDEX_LIVE; i++) {
        char path[128];
        if (random_below(&w->random, 3) > 0) {
            continue;
        }
        index->names[i][0] = 0;
        if (random_below(&w->random, 4) == 0) {
            continue;
        }
        (void)snprintf(index->names[i], sizeof index->names[i], "index-%016llx-0",
                       (unsigned long long)random_next(&w->random));
        index->sizes[i] = 1 + random_below(&w->random, 500);
        (void)snprintf(path, sizeof path, ROOT "/index/%s", index->names[i]);
        world_write(&w->source.disk.io, path, world_content(index->names[i], index->sizes[i]));
    }
    (void)snprintf(index->manifest, sizeof index->manifest, "index-manifest-%016llx-0",
                   (unsigned long long)random_next(&w->random));
    world_index_manifest(w, index);
}

/* A commit whose snapshot has other index files; those behind it inherit them. */
static __attribute__((unused, noinline)) void world_append_index(struct world *w,
                                                                 struct world_index *index)
{
    char path[64];
    struct tn_bytes text;
    world_append(w);
    world_index_change(w, index);
    struct tn_snapshot snapshot = bed_snapshot(&w->source, w->newest);
    snapshot.index_manifest = index->manifest;
    tn_rc rc = tn_snapshot_text(&snapshot, &w->source.own, &text, &w->err);
    CHECK_OK(rc, w->err);
    (void)snprintf(path, sizeof path, ROOT "/snapshot/snapshot-%d", (int)w->newest);
    rc = w->source.disk.io.vtable->unlink(&w->source.disk.io, path, &w->err);
    CHECK_OK(rc, w->err);
    rc = tn_io_write_new(&w->source.disk.io, path, text, &w->err);
    CHECK_OK(rc, w->err);
}
