#include "table/letter_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/poison.h"
#include "file/names.h"
#include "table/make.h"

enum {
    /* Of the memtable's part: an arena, which more rows don't make larger, and a share of the rest;
     * and what the other table is left of it at least. */
    ARENA_SIZE = 288 * 1024,
    SHARE = 5,
    OWNER_SIZE = 1024 * 1024,
    /* Of the share two rows are beside the memtable, which takes rows of an eighth of it. */
    ROW_SHARE = 12,
    MEMTABLE_SHARE = 8,
    ROW_FIXED = 1024, /* of a row, all but the texts: slots, the table's name */
    BLOCK_SIZE = 16 * 1024,
};

static const struct column {
    const char *name;
    const char *type; /* as a schema has it */
} COLUMNS[TN_LETTER_COLUMNS] = {
    [TN_LETTER_SOURCE] = {"source", "STRING"}, [TN_LETTER_POSITION] = {"position", "BIGINT"},
    [TN_LETTER_PART] = {"part", "INT"},        [TN_LETTER_TABLE] = {"table", "STRING"},
    [TN_LETTER_LINE] = {"line", "BIGINT"},     [TN_LETTER_INPUT] = {"input", "STRING"},
    [TN_LETTER_HEADER] = {"header", "STRING"}, [TN_LETTER_REASON] = {"reason", "STRING"},
    [TN_LETTER_RECORD] = {"record", "STRING"}, [TN_LETTER_BYTES] = {"bytes", "BYTES"},
    [TN_LETTER_RETRY] = {"retry", "BIGINT"},
};
enum { KEYS = TN_LETTER_PART + 1 };

static struct tn_letter_table *of(struct tn_letter_box *box)
{
    return (struct tn_letter_table *)(void *)box;
}

/* ---- its share ---- */

static tn_rc take_share(struct tn_letter_table *l, struct tn_env *env, struct tn_err *err)
{
    size_t size = env->memtable_size;
    size_t share = (size / SHARE + ARENA_SIZE) & ~(size_t)63;
    if (size < share + OWNER_SIZE) {
        return tn_err_set(err, TN_AGAIN, 0,
                          "there is no memory for dead letters in a table beside this one; a file "
                          "needs none");
    }
    unsigned char *memory = (unsigned char *)env->memtable + ((size - share) & ~(size_t)63);
    uint32_t row_size = (uint32_t)((share - ARENA_SIZE) / ROW_SHARE) & ~63u;
    row_size = row_size < env->row_size_max ? row_size : env->row_size_max;
    l->owner = env;
    l->owner_was = *env;
    l->env = *env;
    tn_arena_init(&l->arena, memory, ARENA_SIZE);
    l->row = memory + share - row_size;
    l->text = l->row - row_size;
    tn_unpoison(l->text, 2 * (size_t)row_size); /* a pool may have lain there */
    l->env.arena = &l->arena;
    l->env.lasting = &l->arena; /* the worker is the other table's */
    l->env.block_size = BLOCK_SIZE;
    l->env.memtable = memory + ARENA_SIZE;
    l->env.memtable_size = share - ARENA_SIZE - 2 * (size_t)row_size;
    l->env.row_size_max = row_size;
    l->box.size_max = row_size > ROW_FIXED ? row_size - ROW_FIXED : 1;
    env->memtable_size = (size_t)(memory - (unsigned char *)env->memtable);
    size_t left = env->memtable_size / MEMTABLE_SHARE;
    env->row_size_max = left < env->row_size_max ? (uint32_t)left : env->row_size_max;
    return TN_OK;
}

/* ---- the table: made, or checked ---- */

tn_rc tn_letter_table_schema(struct tn_arena *arena, struct tn_schema *schema, struct tn_err *err)
{
    enum { TEXT_SIZE = 2048 };
    struct tn_buf text;
    void *data;
    tn_rc rc = tn_arena_need(arena, TEXT_SIZE, "a schema", &data, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(&text, data, TEXT_SIZE);
    tn_buf_text(&text, "{\"fields\":[");
    for (int i = 0; i < TN_LETTER_COLUMNS; i++) {
        tn_buf_format(&text, "%s{\"name\":\"%s\",\"type\":\"%s\"}", i > 0 ? "," : "",
                      COLUMNS[i].name, COLUMNS[i].type);
    }
    tn_buf_text(&text, "],\"primaryKeys\":[");
    for (int i = 0; i < KEYS; i++) {
        tn_buf_format(&text, "%s\"%s\"", i > 0 ? "," : "", COLUMNS[i].name);
    }
    tn_buf_text(&text, "],\"options\":{\"bucket\":\"1\"},\"comment\":\"dead letters\"}");
    return tn_schema_from_user(tn_buf_bytes(&text), arena, schema, err);
}

static tn_rc make(struct tn_letter_table *l, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&l->arena);
    struct tn_schema schema;
    struct tn_options options;
    tn_rc rc = tn_letter_table_schema(&l->arena, &schema, err);
    if (rc == TN_OK) {
        rc = tn_make_table(&l->env, l->name, &schema, &options, err);
    }
    tn_arena_reset(&l->arena, mark);
    return rc;
}

static bool has_keys(const struct tn_schema *schema)
{
    const struct tn_columns *keys = &schema->primary_keys;
    bool same = keys->count == KEYS && schema->partition_keys.count == 0;
    for (uint32_t i = 0; same && i < KEYS; i++) {
        same = strcmp(schema->fields[keys->index[i]].name, COLUMNS[i].name) == 0;
    }
    return same;
}

/* One that a person made may have more columns, if they may be NULL, and any options that a table
 * with keys may have. */
static tn_rc check(struct tn_letter_table *l, const struct tn_schema *schema, struct tn_err *err)
{
    uint32_t known = 0;
    for (int i = 0; i < TN_LETTER_COLUMNS; i++) {
        int32_t field = tn_schema_find(schema, tn_bytes_of(COLUMNS[i].name));
        struct tn_type want;
        tn_rc rc = tn_type_parse(tn_bytes_of(COLUMNS[i].type), &want, err);
        if (rc != TN_OK) {
            return rc;
        }
        const struct tn_type *type = field >= 0 ? &schema->fields[field].type : NULL;
        if (!type || type->kind != want.kind || type->length != want.length ||
            (i >= KEYS && !type->nullable)) {
            return tn_err_set(err, TN_INVALID, 0,
                              "%s is no table of dead letters: want a column '%s' of type %s",
                              l->name, COLUMNS[i].name, COLUMNS[i].type);
        }
        known++;
    }
    for (uint32_t i = 0; i < schema->field_count; i++) {
        known += !schema->fields[i].type.nullable;
    }
    struct tn_options options;
    tn_rc rc = tn_options_read(schema, TN_OPTIONS_WRITE, &l->arena, &options, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (options.merge_engine != TN_MERGE_DEDUPLICATE || options.sequence_fields.count > 0 ||
        options.ignore_delete || options.rowkind_field >= 0 ||
        tn_schema_option(schema, "tarn.script")) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%s is no table of dead letters: of a key the row that came last must "
                          "count (merge-engine deduplicate, no sequence.field, rowkind.field, "
                          "ignore-delete or tarn.script)",
                          l->name);
    }
    if (!has_keys(schema) || known != TN_LETTER_COLUMNS + KEYS) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%s is no table of dead letters: want the primary key source, position, "
                          "part, no partitions, and other columns that may be NULL",
                          l->name);
    }
    return TN_OK;
}

static tn_rc look(struct tn_letter_table *l, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&l->arena);
    const struct tn_schema *schema;
    struct tn_schemas *schemas = tn_arena_take(&l->arena, sizeof *schemas);
    if (!schemas) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a table of dead letters");
    }
    tn_schemas_init(schemas, l->env.io, l->root, &l->arena);
    tn_rc rc = tn_schemas_newest(schemas, &schema, err);
    l->absent = rc == TN_ABSENT;
    if (rc == TN_OK) {
        rc = check(l, schema, err);
    }
    tn_arena_reset(&l->arena, mark);
    return l->absent ? TN_OK : rc;
}

/* ---- rows ---- */

static tn_rc open_table(struct tn_letter_table *l, struct tn_err *err)
{
    if (l->table) {
        return TN_OK;
    }
    struct tn_table_spec spec = {.name = l->name, .identifier = -1, .compact = true, .small = true};
    tn_rc rc = l->absent ? make(l, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    l->absent = false;
    rc = tn_table_open(&l->env, &spec, &l->table, err);
    for (int i = 0; rc == TN_OK && i < TN_LETTER_COLUMNS; i++) {
        l->columns[i] =
            (uint32_t)tn_row_layout_find(tn_table_layout(l->table), tn_bytes_of(COLUMNS[i].name));
    }
    return rc;
}

void tn_letter_table_rest(struct tn_letter_table *letters)
{
    if (letters->table) {
        tn_table_close(letters->table);
    }
    letters->table = NULL;
}

static tn_rc pack(struct tn_letter_table *l, const struct tn_value *values, struct tn_row *row,
                  struct tn_err *err)
{
    const struct tn_row_layout *layout = tn_table_layout(l->table);
    size_t mark = tn_arena_mark(&l->arena);
    void *memory;
    tn_rc rc = tn_arena_need(&l->arena, layout->column_count * sizeof(struct tn_value), "a letter",
                             &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_value *all = memory;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        all[i].null = true;
    }
    for (int i = 0; i < TN_LETTER_COLUMNS; i++) {
        all[l->columns[i]] = values[i];
    }
    uint32_t size = tn_row_packed_size(layout, all);
    if (size > l->env.row_size_max) {
        rc = tn_err_set(err, TN_UNSUPPORTED, 0, "a dead letter of %u bytes, at most %u fit %s",
                        size, l->env.row_size_max, l->name);
    } else {
        *row = (struct tn_row){l->row, tn_row_pack(layout, all, l->row)};
    }
    tn_arena_reset(&l->arena, mark);
    return rc;
}

/* What was put is committed where a round's list is full, or nothing is left that would end. */
static tn_rc make_room(struct tn_letter_table *l, struct tn_err *err)
{
    if (!tn_table_wants_cut(l->table) && !tn_table_idle(l->table)) {
        return tn_table_turn(l->table, true, err);
    }
    tn_rc rc = tn_table_finish(l->table, l->row_count, err);
    tn_table_release(l->table);
    return rc;
}

tn_rc tn_letter_table_put(struct tn_letter_table *letters, const struct tn_value *values,
                          enum tn_row_kind kind, struct tn_err *err)
{
    struct tn_row row;
    tn_rc rc = open_table(letters, err);
    if (rc == TN_OK) {
        rc = pack(letters, values, &row, err);
    }
    if (rc == TN_OK && tn_table_wants_cut(letters->table)) {
        rc = make_room(letters, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    do {
        rc = tn_table_put(letters->table, row, kind, err);
        if (rc == TN_AGAIN) {
            rc = make_room(letters, err);
            rc = rc == TN_OK ? TN_AGAIN : rc;
        }
    } while (rc == TN_AGAIN);
    letters->row_count += rc == TN_OK;
    return rc == TN_INVALID ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text) : rc;
}

/* ---- the box ---- */

static struct tn_value text_or_null(struct tn_bytes bytes)
{
    struct tn_value value = {.null = bytes.size == 0, .as.bytes = bytes};
    return value;
}

static tn_rc box_put(struct tn_letter_box *box, const struct tn_dead_letter *letter,
                     struct tn_err *err)
{
    struct tn_letter_table *l = of(box);
    tn_rc rc = tn_letter_record(letter, 0, l->text, letter->record_size, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_bytes record = {l->text, letter->record_size};
    bool text = tn_is_utf8(record);
    struct tn_value values[TN_LETTER_COLUMNS] = {
        [TN_LETTER_SOURCE] = {.as.bytes = letter->source},
        [TN_LETTER_POSITION] = {.as.i64 = letter->position},
        [TN_LETTER_PART] = {.as.i64 = (int64_t)letter->part},
        [TN_LETTER_TABLE] = {.as.bytes = letter->table},
        [TN_LETTER_LINE] = {.null = letter->line == 0, .as.i64 = (int64_t)letter->line},
        [TN_LETTER_INPUT] = text_or_null(letter->input),
        [TN_LETTER_HEADER] = text_or_null(letter->header),
        [TN_LETTER_REASON] = {.as.bytes = letter->reason},
        [TN_LETTER_RECORD] = {.null = !text, .as.bytes = record},
        [TN_LETTER_BYTES] = {.null = text, .as.bytes = record},
        [TN_LETTER_RETRY] = {.null = true},
    };
    rc = tn_letter_table_put(l, values, TN_ROW_INSERT, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", l->name);
}

static tn_rc box_commit(struct tn_letter_box *box, struct tn_err *err)
{
    struct tn_letter_table *l = of(box);
    tn_rc rc = l->table ? tn_table_finish(l->table, l->row_count, err) : TN_OK;
    return rc == TN_OK ? rc : tn_err_in(err, "%s", l->name);
}

/* ---- letters that are there ---- */

void tn_letter_table_quote(struct tn_buf *where, const char *text)
{
    tn_buf_byte(where, '\'');
    for (; *text; text++) {
        tn_buf_text(where, *text == '\'' ? "'" : "");
        tn_buf_byte(where, (unsigned char)*text);
    }
    tn_buf_byte(where, '\'');
}

struct find {
    struct tn_letter_table *letters;
    tn_letter_fn *each;
    void *user;
};

static tn_rc scan_all(struct tn_letter_table *l, const struct find *find, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK) {
        struct tn_kv kv;
        struct tn_value values[TN_LETTER_COLUMNS];
        rc = tn_scan_next(&l->scan, &kv, err);
        for (uint32_t i = 0; rc == TN_OK && i < TN_LETTER_COLUMNS; i++) {
            tn_row_get(&l->scan.projection.layout, kv.row, l->scan.projection.columns.index[i],
                       &values[i]);
        }
        rc = rc == TN_OK ? find->each(find->user, values, err) : rc;
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

struct view { /* what a scan needs of its table */
    struct tn_schemas schemas;
    const struct tn_schema *schema;
    struct tn_options options;
    struct tn_snapshot snapshot;
    bool empty; /* there is none */
    uint32_t fields[TN_LETTER_COLUMNS];
    struct tn_predicate *predicate;
};

static tn_rc open_view(struct tn_letter_table *l, struct view *v, const char *where,
                       struct tn_err *err)
{
    int64_t id = 0;
    tn_schemas_init(&v->schemas, l->env.io, l->root, &l->arena);
    tn_rc rc = tn_schemas_newest(&v->schemas, &v->schema, err);
    if (rc == TN_OK) {
        rc = tn_options_read(v->schema, TN_OPTIONS_READ, &l->arena, &v->options, err);
    }
    for (int i = 0; rc == TN_OK && i < TN_LETTER_COLUMNS; i++) {
        v->fields[i] = (uint32_t)tn_schema_find(v->schema, tn_bytes_of(COLUMNS[i].name));
    }
    if (rc == TN_OK && where) {
        rc = tn_predicate_parse(where, v->schema, &l->arena, &v->predicate, err);
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(l->env.io, l->root, &l->arena, &id, err);
        v->empty = rc == TN_ABSENT;
        rc = v->empty ? TN_OK : rc;
    }
    return rc == TN_OK && !v->empty
               ? tn_snapshot_read(l->env.io, l->root, id, &l->arena, &v->snapshot, err)
               : rc;
}

/* With the memory of the table, which is closed meanwhile. */
static tn_rc scan(struct tn_letter_table *l, const char *where, const struct find *find,
                  struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(&l->arena, sizeof(struct view), "a scan", &memory, err);
    struct view *v = memory;
    if (rc == TN_OK) {
        rc = open_view(l, v, where, err);
    }
    if (rc != TN_OK || v->empty) {
        return rc;
    }
    struct tn_scan_spec spec = {.root = l->root,
                                .snapshot = &v->snapshot,
                                .schema = v->schema,
                                .options = &v->options,
                                .schemas = &v->schemas,
                                .fields = v->fields,
                                .field_count = TN_LETTER_COLUMNS,
                                .predicate = v->predicate};
    rc = tn_scan_open(&l->scan, &spec, l->env.memtable, l->env.memtable_size, &l->arena,
                      l->env.workers[TN_LANE_LONG], err);
    if (rc == TN_OK) {
        rc = scan_all(l, find, err);
        tn_scan_close(&l->scan);
    }
    return rc;
}

tn_rc tn_letter_table_each(struct tn_letter_table *letters, const char *where, tn_letter_fn *each,
                           void *user, struct tn_err *err)
{
    struct tn_letter_table *l = letters;
    tn_rc rc = box_commit(&l->box, err);
    tn_letter_table_rest(l);
    while (l->env.exec->under_way > 0) { /* the scan has the worker to itself */
        (void)tn_exec_turn(l->env.exec, true);
    }
    if (rc == TN_OK && !l->absent) {
        size_t mark = tn_arena_mark(&l->arena);
        struct find find = {l, each, user};
        rc = scan(l, where, &find, err);
        tn_arena_reset(&l->arena, mark);
    }
    return rc;
}

/* ---- taken back ---- */

enum { FOUND_SIZE = 12 };

static tn_rc note_found(void *user, const struct tn_value *values, struct tn_err *err)
{
    struct tn_letter_table *l = user;
    unsigned char at[FOUND_SIZE];
    tn_store_u64(at, (uint64_t)values[TN_LETTER_POSITION].as.i64);
    tn_store_u32(at + 8, (uint32_t)values[TN_LETTER_PART].as.i64);
    return tn_spool_add(&l->found, (struct tn_bytes){at, sizeof at}, err);
}

static tn_rc delete_found(struct tn_letter_table *l, struct tn_bytes source, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint64_t at = 0; rc == TN_OK && at < l->found.size; at += FOUND_SIZE) {
        unsigned char key[FOUND_SIZE];
        rc = tn_spool_read(&l->found, at, key, sizeof key, err);
        if (rc != TN_OK) {
            break;
        }
        struct tn_value values[TN_LETTER_COLUMNS];
        for (int i = 0; i < TN_LETTER_COLUMNS; i++) {
            values[i] = (struct tn_value){.null = i >= KEYS};
        }
        values[TN_LETTER_SOURCE].as.bytes = source;
        values[TN_LETTER_POSITION].as.i64 = (int64_t)tn_load_u64(key);
        values[TN_LETTER_PART].as.i64 = (int32_t)tn_load_u32(key + 8);
        rc = tn_letter_table_put(l, values, TN_ROW_DELETE, err);
    }
    return rc;
}

static tn_rc take_name(void *user, const struct tn_value *values, struct tn_err *err)
{
    struct tn_bytes source = values[TN_LETTER_SOURCE].as.bytes;
    char *name = user;
    (void)err;
    if (source.size < TN_LETTER_SOURCE_SIZE) {
        memcpy(name, source.data, source.size);
        name[source.size] = 0;
    }
    return TN_OK;
}

static tn_rc box_find(struct tn_letter_box *box, const char *prefix,
                      char name[TN_LETTER_SOURCE_SIZE], struct tn_err *err)
{
    struct tn_buf where;
    enum { TEXT_SIZE = 4 * TN_LETTER_SOURCE_SIZE + 64 };
    struct tn_letter_table *l = of(box);
    char end[TN_LETTER_SOURCE_SIZE];
    int size = snprintf(end, sizeof end, "%s", prefix);
    name[0] = 0;
    if (size <= 0 || (size_t)size >= sizeof end) {
        return TN_OK;
    }
    end[size - 1]++; /* the first text behind all that begin so */
    tn_rc rc = box_commit(box, err);
    tn_letter_table_rest(l); /* the text lies below what a scan takes */
    size_t mark = tn_arena_mark(&l->arena);
    void *data = NULL;
    rc = rc != TN_OK ? rc : tn_arena_need(&l->arena, TEXT_SIZE, "a name", &data, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(&where, data, TEXT_SIZE);
    tn_buf_text(&where, "`source` >= ");
    tn_letter_table_quote(&where, prefix);
    tn_buf_text(&where, " and `source` < ");
    tn_letter_table_quote(&where, end);
    tn_buf_byte(&where, 0);
    if (!where.overflow) {
        rc = tn_letter_table_each(l, data, take_name, name, err);
    }
    tn_arena_reset(&l->arena, mark);
    return rc;
}

static tn_rc box_forget(struct tn_letter_box *box, const char *source, int64_t from, uint32_t part,
                        struct tn_err *err)
{
    struct tn_letter_table *l = of(box);
    struct tn_buf where;
    unsigned char data[2 * TN_LETTER_SOURCE_SIZE + 256];
    tn_buf_init(&where, data, sizeof data);
    tn_buf_text(&where, "`source` = ");
    tn_letter_table_quote(&where, source);
    tn_buf_format(&where,
                  " and (`position` > %" PRId64 " or `position` = %" PRId64
                  " and (`part` >= %u or `part` <= %" PRId64 "))",
                  from, from, part, -1 - (int64_t)part); /* as letter_resend.h numbers them */
    tn_buf_byte(&where, 0);
    tn_rc rc = tn_letter_table_each(l, (const char *)data, note_found, l, err);
    if (rc == TN_OK && l->found.size > 0) {
        rc = delete_found(l, tn_bytes_of(source), err);
    }
    if (rc == TN_OK) {
        rc = box_commit(box, err);
    }
    tn_spool_close(&l->found);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", l->name);
}

/* ---- open, close ---- */

static tn_rc open_all(struct tn_letter_table *l, const struct tn_letter_table_spec *spec,
                      struct tn_env *env, struct tn_err *err)
{
    tn_rc rc = take_share(l, env, err);
    if (rc == TN_OK) {
        rc = tn_spool_init(&l->found, l->env.io, l->name, "found", err);
    }
    if (rc == TN_OK) {
        rc = tn_name_table_root(&l->arena, l->name, &l->root, err);
    }
    if (rc == TN_OK) {
        rc = tn_table_lock(l->env.io, l->name, spec->who, &l->arena, &l->lock, err);
    }
    return rc == TN_OK ? look(l, err) : rc;
}

tn_rc tn_letter_table_open(struct tn_letter_table *letters, struct tn_env *env,
                           const struct tn_letter_table_spec *spec, struct tn_err *err)
{
    letters->box = (struct tn_letter_box){
        .put = box_put, .commit = box_commit, .forget = box_forget, .find = box_find};
    letters->name = spec->name;
    letters->lock = -1;
    letters->owner = NULL;
    letters->table = NULL;
    letters->row_count = 0;
    if (strcmp(spec->name, spec->table) == 0) {
        return tn_err_set(err, TN_INVALID, 0, "%s can't keep its own dead letters", spec->name);
    }
    tn_rc rc = open_all(letters, spec, env, err);
    if (rc != TN_OK) {
        tn_letter_table_close(letters);
        return tn_err_in(err, "%s", spec->name);
    }
    return rc;
}

void tn_letter_table_close(struct tn_letter_table *letters)
{
    tn_letter_table_rest(letters);
    if (letters->lock >= 0) {
        letters->env.io->vtable->close(letters->env.io, letters->lock);
    }
    letters->lock = -1;
    if (letters->owner) {
        letters->owner->memtable_size = letters->owner_was.memtable_size;
        letters->owner->row_size_max = letters->owner_was.row_size_max;
        letters->owner = NULL;
    }
}
