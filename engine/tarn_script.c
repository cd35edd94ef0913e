#include <stddef.h>

#include "tarn_parts.h"

enum { SCRIPT_SHARE = 8 /* of a table's memory: the rows of a put, and the text of a letter */ };

static struct tn_scripted_spec spec_of(tarn_engine *engine, const char *table)
{
    return (struct tn_scripted_spec){.env = &engine->env,
                                     .budget = &engine->budget,
                                     .table = table,
                                     .warehouse = engine->warehouse};
}

tn_rc tn_api_script_find(tarn_engine *engine, const char *table, struct tn_err *err)
{
    struct tn_scripted_spec spec = spec_of(engine, table);
    return tn_scripted_find(&engine->scripted, &spec, err);
}

tn_rc tn_api_script_try(tarn_engine *engine, const char *table, const struct tn_schema *schema,
                        struct tn_err *err)
{
    struct tn_scripted_spec spec = spec_of(engine, table);
    if (!tn_schema_option(schema, TN_SCRIPT_OPTION)) {
        return TN_OK;
    }
    if (engine->table || engine->scan) { /* which has the memory that a script would take */
        return tn_err_set(err, TN_AGAIN, 0, "a %s is open: close it first",
                          engine->table ? "table" : "scan");
    }
    tn_rc rc = tn_scripted_open(&engine->scripted, &spec, schema, err);
    tn_scripted_close(&engine->scripted);
    return rc;
}

/* ---- dead letters ---- */

static tn_rc frame(struct tn_letter_sink *sink, struct tn_err *err)
{
    (void)sink;
    (void)err;
    return TN_OK;
}

static tn_rc frame_end(struct tn_letter_sink *sink, bool success, struct tn_err *err)
{
    (void)success;
    return frame(sink, err);
}

static tn_rc tell(struct tn_letter_sink *sink, const struct tn_letter *letter, struct tn_err *err)
{
    struct tn_api_script *script = (struct tn_api_script *)(void *)sink;
    (void)err;
    script->text.size = 0;
    script->text.overflow = false;
    tn_row_format_json(script->layout, NULL, letter->row, &script->text);
    tn_buf_append(&script->text, "", 1);
    bool whole = !script->text.overflow;
    tarn_dead_letter told = {.reason = letter->reason,
                             .json = whole ? (const char *)script->text.data : NULL,
                             .json_size = whole ? script->text.size - 1 : 0,
                             .kind = (tarn_row_kind)letter->kind,
                             .put = letter->origin.position,
                             .part = letter->origin.part};
    script->dead_letter(script->user, &told);
    return TN_OK;
}

static tn_rc take(struct tn_arena *arena, size_t size, struct tn_buf *buf, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, size, "what a script makes", &memory, err);
    if (rc == TN_OK) {
        tn_buf_init(buf, memory, size);
    }
    return rc;
}

/* A program that was built before options had a callback has none. */
tn_rc tn_api_script_open(struct tn_api_script *script, tarn_engine *engine,
                         const tarn_table_options *options, struct tn_arena *arena,
                         struct tn_err *err)
{
    bool calls = options->size == sizeof *options && options->dead_letter;
    *script = (struct tn_api_script){.map = tn_scripted_map(&engine->scripted),
                                     .layout = &engine->scripted.layout};
    tn_rc rc = TN_OK;
    if (script->map) {
        rc = take(arena, arena->size / SCRIPT_SHARE, &script->made, err);
    }
    if (rc == TN_OK && calls && engine->scripted.open) {
        script->sink = (struct tn_letter_sink){.begin = frame, .put = tell, .end = frame_end};
        script->dead_letter = options->dead_letter;
        script->user = options->user;
        rc = take(arena, arena->size / SCRIPT_SHARE, &script->text, err);
    }
    return rc;
}

/* ---- rows ---- */

tn_rc tn_api_script_map(struct tn_api_script *script, int64_t put, const struct tn_bytes *json,
                        const struct tn_row *row, struct tn_bytes *rows, struct tn_err *err)
{
    struct tn_script_meta meta = {.position = put};
    meta.clock = tn_clock_watch_look(&script->watch, &meta.received_ms);
    uint32_t count;
    script->made.size = 0;
    script->made.overflow = false;
    tn_rc rc = json ? tn_script_map_json(script->map, *json, &meta, &count, &script->made, err)
                    : tn_script_map(script->map, *row, &meta, &count, &script->made, err);
    *rows = tn_buf_bytes(&script->made);
    return rc == TN_AGAIN ? TN_INVALID : rc;
}
