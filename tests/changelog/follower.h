/* follower: somebody who keeps a copy of a random table (table/bed.h) by what he is told. */
#pragma once

#include "changelog/tail.h"
#include "table/bed.h"

struct follower_row {
    bool present;
    int32_t sequence;
    uint32_t size;
    char text[BED_VALUE_MAX];
};

struct follower {
    const struct bed_scenario *scenario;
    uint64_t told; /* rows */
    struct follower_row rows[BED_SLOTS];
};

/* He begins with what the model says of the first `count` rows. */
static __attribute__((unused, noinline)) void
follower_begin(struct follower *f, const struct bed_scenario *s, uint32_t count)
{
    static struct bed_state state;
    memset(f, 0, sizeof *f);
    f->scenario = s;
    bed_fold(s, count, &state);
    for (uint32_t slot = 0; slot < BED_SLOTS; slot++) {
        if (state.present[slot]) {
            struct follower_row *row = &f->rows[slot];
            row->present = true;
            row->sequence = state.rows[slot].sequence;
            row->size = (uint32_t)bed_text(state.rows[slot].value, row->text).size;
        }
    }
}

/* An older row of a table with a sequence field changes nothing. */
static __attribute__((unused, noinline)) void
follower_apply(struct follower *f, const struct tn_row_layout *layout, const struct tn_kv *kv)
{
    struct tn_value values[4];
    for (uint32_t i = 0; i < COUNT(values); i++) {
        tn_row_get(layout, kv->row, i, &values[i]);
    }
    uint32_t slot = bed_slot(f->scenario, values[1].as.i64, (int32_t)values[0].as.i64);
    struct follower_row *row = &f->rows[slot];
    f->told++;
    if (tn_row_kind_retracts(kv->kind)) {
        row->present = false;
        return;
    }
    if (f->scenario->sequenced && row->present && values[2].as.i64 < row->sequence) {
        return;
    }
    CHECK(values[3].as.bytes.size <= BED_VALUE_MAX);
    row->present = true;
    row->sequence = (int32_t)values[2].as.i64;
    row->size = (uint32_t)values[3].as.bytes.size;
    memcpy(row->text, values[3].as.bytes.data, row->size);
}

static __attribute__((unused, noinline)) void follower_check(const struct follower *f,
                                                             uint32_t count)
{
    static struct follower model;
    follower_begin(&model, f->scenario, count);
    for (uint32_t slot = 0; slot < BED_SLOTS; slot++) {
        const struct follower_row *got = &f->rows[slot];
        const struct follower_row *want = &model.rows[slot];
        bool same = got->present == want->present &&
                    (!got->present || (got->sequence == want->sequence && got->size == want->size &&
                                       memcmp(got->text, want->text, got->size) == 0));
        if (!same) {
            FAIL("slot %u is not what %u rows make", slot, count);
        }
    }
}

/* ---- a table of a scenario, open for reading ---- */

struct table {
    struct bed_engine engine;
    struct sim_disk disk;
    struct bed_scenario scenario;
    struct bed_reader reader;
    struct tn_scan_spec spec;
    int64_t first;
    int64_t last;
    struct tn_err err;
};

static __attribute__((unused, noinline)) struct tn_worker *table_worker(struct table *t)
{
    return &t->engine.workers[TN_LANE_LONG];
}

static __attribute__((unused, noinline)) void table_read(struct table *t)
{
    tn_arena_reset(&t->engine.own, 0);
    const char *problem = bed_read_open(&t->engine, &t->reader);
    CHECK(!problem);
    t->spec = (struct tn_scan_spec){.root = BED_ROOT,
                                    .schema = t->reader.schema,
                                    .options = &t->reader.options,
                                    .schemas = &t->reader.schemas};
}

static __attribute__((unused, noinline)) void table_open(struct table *t, uint64_t seed)
{
    if (!t->engine.memory) {
        bed_engine_make(&t->engine);
    }
    bed_scenario_init(&t->scenario, seed, 8);
    sim_disk_init(&t->disk, BED_DISK_SIZE);
    bed_create(&t->engine, &t->disk.io, &t->scenario);
    bed_engine_start(&t->engine, &t->disk.io, seed);
    struct bed_writer w = {.engine = &t->engine, .scenario = &t->scenario, .who = "a test"};
    tn_rc rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    table_read(t);
    rc = tn_tail_range(&t->disk.io, BED_ROOT, &t->engine.own, &t->first, &t->last, &t->err);
    CHECK_OK(rc, t->err);
}

static __attribute__((unused, noinline)) void table_close(struct table *t)
{
    sim_disk_deinit(&t->disk);
}

static __attribute__((unused, noinline)) void table_snapshot(struct table *t, int64_t id,
                                                             struct tn_snapshot *snapshot)
{
    tn_rc rc = tn_snapshot_read(&t->disk.io, BED_ROOT, id, &t->engine.own, snapshot, &t->err);
    CHECK_OK(rc, t->err);
}

/* How many of the scenario's rows are in a snapshot. */
static __attribute__((unused, noinline)) uint32_t table_position(struct table *t, int64_t id)
{
    struct tn_snapshot snapshot;
    uint32_t position = 0;
    size_t mark = tn_arena_mark(&t->engine.own);
    table_snapshot(t, id, &snapshot);
    const char *problem = bed_position_of(&snapshot, &t->scenario, &position);
    CHECK(!problem);
    tn_arena_reset(&t->engine.own, mark);
    return position;
}
