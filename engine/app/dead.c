#include "app/dead.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tn_rc tn_dead_is_table(struct tn_env *env, const char *name, bool *is_table, struct tn_err *err)
{
    struct tn_io *io = env->io;
    const char *dot = strchr(name, '.');
    *is_table = false;
    if (!dot || dot == name || !dot[1] || strchr(dot + 1, '.') || strchr(name, '/')) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(env->arena);
    const char *dir = tn_arena_format(env->arena, "%.*s.db", (int)(dot - name), name);
    int64_t ignored;
    tn_rc rc = dir ? io->vtable->modified(io, dir, &ignored, err)
                   : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    tn_arena_reset(env->arena, mark);
    *is_table = rc == TN_OK;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc open_box(struct tn_dead *dead, struct tn_env *env, const char *table, const char *who,
                      struct tn_letter_box **box, struct tn_err *err)
{
    struct tn_letter_table_spec spec = {.name = dead->where, .who = who, .table = table};
    void *memory;
    if (!dead->is_table) {
        *box = &dead->file.box;
        return tn_letter_file_open(&dead->file, dead->where, err);
    }
    tn_rc rc = tn_arena_need(env->arena, sizeof *dead->table, "dead letters", &memory, err);
    if (rc == TN_OK) {
        dead->table = memory;
        *box = &dead->table->box;
        rc = tn_letter_table_open(dead->table, env, &spec, err);
    }
    return rc;
}

tn_rc tn_dead_open(struct tn_dead *dead, struct tn_env *env, const char *where, const char *table,
                   const char *who, struct tn_err *err)
{
    struct tn_letter_box *box = NULL;
    void *room = NULL;
    dead->where = where;
    dead->open = false;
    dead->is_table = false;
    tn_rc rc = where ? tn_dead_is_table(env, where, &dead->is_table, err) : TN_OK;
    if (rc == TN_OK) {
        rc = tn_arena_need(env->arena, TN_LETTER_HEADER_SIZE, "dead letters", &room, err);
    }
    if (rc == TN_OK) {
        rc = open_box(dead, env, table, who, &box, err);
    }
    if (rc == TN_OK) {
        dead->open = true;
        rc = tn_letters_open(&dead->letters, env->io, table, box, room, err);
    }
    return rc;
}

static void say_count(const struct tn_dead *dead, uint64_t records, uint64_t rows)
{
    (void)fputs("tarn: ", stderr);
    if (records > 0) {
        (void)fprintf(stderr, "%" PRIu64 " records%s", records, rows > 0 ? " and " : "");
    }
    if (rows > 0) {
        (void)fprintf(stderr, "%" PRIu64 " rows", rows);
    }
    (void)fprintf(stderr, " went to the dead letters%s%s\n", dead->where ? ": " : "",
                  dead->where ? dead->where : "");
}

void tn_dead_rest(struct tn_dead *dead)
{
    if (dead->open && dead->is_table) {
        tn_letter_table_rest(dead->table);
    }
}

tn_rc tn_dead_end(struct tn_dead *dead, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (!dead->open) {
        return rc;
    }
    tn_letters_close(&dead->letters);
    if (dead->is_table) {
        tn_letter_table_close(dead->table);
    } else {
        rc = tn_letter_file_close(&dead->file, err);
    }
    dead->open = false;
    return rc;
}

int tn_dead_close(struct tn_dead *dead, uint64_t told, int code)
{
    if (!dead->open) {
        return code;
    }
    struct tn_err err = {0};
    uint64_t records = dead->where ? dead->letters.record_count : told;
    bool there = !dead->letters.uncommitted; /* else an error says that they may not be */
    if (there && records + dead->letters.row_count > 0) {
        say_count(dead, records, dead->letters.row_count);
        code = code == 0 ? 1 : code;
    }
    if (tn_dead_end(dead, &err) != TN_OK && code <= 1) {
        (void)fprintf(stderr, "tarn: %s\n", err.text);
        code = tn_exit_code(err.code);
    }
    return code;
}
