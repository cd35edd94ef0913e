/* tarn pools: the parts of the block of memory, and what each has: of the warehouse's daemon, when
 * there is one; else what boot took of this process' own, and with a table what its script takes,
 * too. */
#include <stdio.h>

#include "app/ask.h"
#include "app/cells.h"
#include "app/cmd.h"
#include "app/seen.h"
#include "app/suggest.h"
#include "file/names.h"
#include "script/scripted.h"

static const char *const columns[] = {"part", "kind", "size", "used", "peak", "for"};

static tn_rc put(struct tn_cells *cells, const char *name, const char *kind, size_t size,
                 size_t used, size_t peak, const char *use, struct tn_err *err)
{
    tn_cells_text(cells, name);
    tn_cells_text(cells, kind);
    tn_cells_number(cells, (int64_t)size);
    tn_cells_number(cells, (int64_t)used);
    tn_cells_number(cells, (int64_t)peak);
    tn_cells_text(cells, use);
    return tn_cells_end(cells, err);
}

static tn_rc put_parts(const struct tn_budget *budget, struct tn_cells *cells, struct tn_err *err)
{
    size_t sum = 0;
    size_t sum_used = 0;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < budget->part_count; i++) {
        const struct tn_part *part = &budget->parts[i];
        size_t used;
        size_t peak;
        tn_part_usage(part, &used, &peak);
        sum += part->base ? part->size : 0;
        sum_used += used;
        rc = put(cells, part->spec->name, tn_part_kind_text(part->spec->kind), part->size, used,
                 peak, tn_part_use(part->spec->name), err);
    }
    return rc == TN_OK ? put(cells, "block", "all parts", sum, sum_used, sum_used, NULL, err) : rc;
}

static tn_rc put_rest(const struct tn_app *app, struct tn_cells *cells, struct tn_err *err)
{
    static const char *const LANES[TN_LANE_COUNT] = {"short codec", "long codec"};
    tn_rc rc = TN_OK;
    for (int lane = 0; rc == TN_OK && lane < TN_LANE_COUNT; lane++) {
        const struct tn_codec *codec = &app->workers[lane].codec;
        size_t size = tn_codec_size(codec->level, codec->block_max);
        rc = put(cells, LANES[lane], "zstd", size, size, size, "in its lane's part", err);
    }
    size_t other = (size_t)tn_board.other_kib * 1024;
    return rc == TN_OK ? put(cells, "other", "process", other, other, other,
                             "libc, stacks, code: outside the block", err)
                       : rc;
}

static tn_rc check_there(struct tn_app *app, const char *table, struct tn_err *err)
{
    struct tn_io *io = &app->posix.io;
    size_t mark = tn_arena_mark(&app->table);
    const char *root;
    int64_t ignored;
    tn_rc rc = tn_name_table_root(&app->table, table, &root, err);
    if (rc == TN_OK) {
        const char *schemas = tn_arena_format(&app->table, "%s/schema", root);
        rc = schemas ? io->vtable->modified(io, schemas, &ignored, err)
                     : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    }
    tn_arena_reset(&app->table, mark);
    return rc == TN_ABSENT ? tn_suggest_table(app, table, err) : rc;
}

/* As its writer would have it. */
static tn_rc open_script(struct tn_app *app, const char *table, struct tn_scripted *scripted,
                         struct tn_err *err)
{
    struct tn_scripted_spec spec = {
        .env = &app->env, .budget = &app->budget, .table = table, .warehouse = app->warehouse};
    tn_rc rc = check_there(app, table, err);
    return rc == TN_OK ? tn_scripted_find(scripted, &spec, err) : rc;
}

/* ---- a daemon's ---- */

static tn_rc put_seen(const struct tn_seen *seen, struct tn_cells *cells, struct tn_err *err)
{
    size_t sum = 0;
    size_t sum_used = 0;
    size_t sum_peak = 0;
    tn_rc rc = TN_OK;
    for (const struct tn_seen_part *part = seen->parts; rc == TN_OK && part; part = part->next) {
        size_t size = (size_t)part->size.value;
        sum += size;
        sum_used += (size_t)part->used.value;
        sum_peak += (size_t)part->peak.value;
        rc = put(cells, part->name, part->kind, size, (size_t)part->used.value,
                 (size_t)part->peak.value, part->name ? tn_part_use(part->name) : NULL, err);
    }
    return rc == TN_OK ? put(cells, "block", "all parts", sum, sum_used, sum_peak, NULL, err) : rc;
}

static tn_rc pools_of_daemon(struct tn_app *app, const char *warehouse, struct tn_err *err)
{
    static struct tn_cells cells;
    struct tn_arena arena;
    struct tn_seen seen;
    tn_arena_init(&arena, app->env.memtable, app->env.memtable_size); /* no table is open */
    tn_rc rc = tn_seen_ask(&seen, warehouse, &arena, err);
    if (rc == TN_OK) {
        rc = tn_cells_open(&cells, columns, sizeof columns / sizeof columns[0], &app->input, err);
    }
    if (rc == TN_OK) {
        rc = put_seen(&seen, &cells, err);
    }
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

/* ---- the verb ---- */

static const char *asked; /* the warehouse of a daemon; NULL: the parts of this process */

static tn_rc pools(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_cells cells;
    static struct tn_scripted scripted;
    struct tn_arena *arena = &app->input;
    if (asked) {
        return pools_of_daemon(app, asked, err);
    }
    tn_rc rc = words->count > 0 ? open_script(app, words->items[0], &scripted, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_cells_open(&cells, columns, sizeof columns / sizeof columns[0], arena, err);
    if (rc == TN_OK) {
        rc = put_parts(&app->budget, &cells, err);
    }
    if (rc == TN_OK) {
        rc = put_rest(app, &cells, err);
    }
    tn_scripted_close(&scripted);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

static int run(const struct tn_text_list *words)
{
    if (words->count > 1) {
        return tn_say_usage(&tn_cmd_pools);
    }
    if (words->count == 0) {
        const char *warehouse = tn_warehouse();
        long process = tn_ask_process(warehouse);
        asked = process > 0 ? warehouse : NULL;
        tn_common.warehouse = "."; /* nothing in it is looked at */
        if (asked && !tn_common.quiet) {
            (void)fprintf(stderr, "of tarn run, process %ld\n", process);
        }
    }
    return tn_run_verb(pools, words);
}

const struct tn_command tn_cmd_pools = {
    "pools", "pools [D.T]", "prints the parts of the memory block: size, used, peak", NULL, 0, run,
};
