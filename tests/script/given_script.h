/* given_script: scripts that are texts in a test, on a state of their own. */
#pragma once

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>

#include "check.h"
#include "schema/schema.h"
#include "script/script.h"

enum { STATE_SIZE = TN_VM_SIZE, GIVEN_FILES_MAX = 4 };

/* ---- files that are texts ---- */

static struct given_file {
    const char *path;
    const char *text;
    size_t size;
} given_files[GIVEN_FILES_MAX];

static tn_rc given_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                        struct tn_err *err)
{
    (void)io;
    for (int i = 0; i < GIVEN_FILES_MAX; i++) {
        if (given_files[i].path && strcmp(given_files[i].path, path) == 0) {
            *file = i;
            *size = given_files[i].size;
            return TN_OK;
        }
    }
    return tn_err_set(err, TN_ABSENT, 0, "%s: there is no such file", path);
}

static tn_rc given_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                        size_t *got, struct tn_err *err)
{
    (void)io;
    (void)err;
    *got = size;
    memcpy(data, given_files[file].text + offset, size);
    return TN_OK;
}

static void given_close(struct tn_io *io, int file)
{
    (void)io;
    (void)file;
}

static const struct tn_io_vtable given_vtable = {
    .open = given_open, .read = given_read, .close = given_close};

/* ---- a state ---- */

struct given_state {
    struct tn_vm vm;
    struct tn_script script;
    struct tn_io io;
    struct tn_err err;
    char logged[256]; /* the newest line */
};

static _Alignas(16) unsigned char given_memory[STATE_SIZE];

static void given_log(void *user, const char *level, struct tn_bytes text)
{
    struct given_state *s = user;
    (void)snprintf(s->logged, sizeof s->logged, "%s %.*s", level, (int)text.size,
                   (const char *)text.data);
}

static inline void open_state(struct given_state *s, const struct tn_vm_limits *limits)
{
    *s = (struct given_state){.io = {.vtable = &given_vtable}};
    struct tn_vm_spec spec = {.memory = given_memory,
                              .size = sizeof given_memory,
                              .io = &s->io,
                              .seed = 42,
                              .limits = limits,
                              .log = given_log,
                              .user = s};
    tn_rc rc = tn_vm_open(&s->vm, &spec, &s->err);
    CHECK_OK(rc, s->err);
}

static void set_file(int number, const char *path, const char *text, size_t size)
{
    given_files[number] = (struct given_file){path, text, size};
}

/* Runs a text as a whole file. */
static inline tn_rc run_text(struct given_state *s, const char *text, int results)
{
    set_file(0, "t.lua", text, strlen(text));
    tn_rc rc = tn_vm_load(&s->vm, "t.lua", NULL, &s->err);
    return rc == TN_OK ? tn_vm_call(&s->vm, 0, results, &s->err) : rc;
}

/* ---- columns: "dev STRING NOT NULL, temp DOUBLE"; the first is the key ---- */

struct given_columns {
    _Alignas(16) unsigned char memory[16384];
    struct tn_arena arena;
    struct tn_row_layout layout;
};

static inline void open_columns(struct given_columns *c, const char *text)
{
    static const uint32_t names_max = 32;
    const char *names[32];
    struct tn_type types[32];
    struct tn_err err = {0};
    uint32_t count = 0;
    tn_arena_init(&c->arena, c->memory, sizeof c->memory);
    while (*text) {
        CHECK(count < names_max);
        size_t name = strcspn(text, " ");
        size_t depth_end = name;
        int depth = 0;
        while (text[depth_end] && (depth > 0 || text[depth_end] != ';')) {
            depth += (text[depth_end] == '(') - (text[depth_end] == ')');
            depth_end++;
        }
        struct tn_bytes type = {(const unsigned char *)text + name + 1, depth_end - name - 1};
        names[count] =
            tn_arena_text(&c->arena, (struct tn_bytes){(const unsigned char *)text, name});
        tn_rc rc = tn_type_parse(type, &types[count], &err);
        CHECK_OK(rc, err);
        count++;
        text += depth_end;
        text += strspn(text, "; ");
    }
    tn_rc rc = tn_row_layout_init(&c->layout, names, types, count, &c->arena, &err);
    CHECK_OK(rc, err);
}

static inline tn_rc load_script(struct given_state *s, const struct given_columns *c,
                                const char *text)
{
    static const uint32_t key[] = {0};
    set_file(0, "t.lua", text, strlen(text));
    struct tn_script_spec spec = {.path = "t.lua",
                                  .layout = c ? &c->layout : NULL,
                                  .keys = {key, c ? 1 : 0},
                                  .table = "plant.readings"};
    return tn_script_load(&s->script, &s->vm, &spec, &s->err);
}

/* A packed row of values given as texts, NULL for NULL. */
static inline struct tn_row pack_texts(const struct given_columns *c, const char *const *texts,
                                       unsigned char *data)
{
    struct tn_value values[32];
    static unsigned char scratch[1024];
    struct tn_buf buf;
    tn_buf_init(&buf, scratch, sizeof scratch);
    for (uint32_t i = 0; i < c->layout.column_count; i++) {
        struct tn_err err = {0};
        values[i] = (struct tn_value){.null = texts[i] == NULL};
        if (texts[i]) {
            tn_rc rc = tn_value_parse(&c->layout.columns[i].type, TN_EPOCH_NONE,
                                      tn_bytes_of(texts[i]), &buf, &values[i], &err);
            CHECK_OK(rc, err);
        }
    }
    return (struct tn_row){data, tn_row_pack(&c->layout, values, data)};
}

static inline const char *row_text(const struct given_columns *c, struct tn_row row)
{
    static char text[4096];
    struct tn_buf buf;
    CHECK(tn_row_valid(&c->layout, row));
    tn_buf_init(&buf, text, sizeof text - 1);
    tn_row_format_json(&c->layout, NULL, row, &buf);
    text[buf.size] = 0;
    return text;
}
