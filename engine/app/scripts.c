#include "app/scripts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { PIECE_SIZE = 2048, PATH_SIZE_MAX = 2048, DIGEST_SIZE = 32 };

/* ---- what is told ---- */

static void put_head(const struct tn_keeper *k, const struct tn_script_pair *pair,
                     struct tn_buf *out)
{
    tn_buf_format(out, "table %s\nabout %s %" PRId64 " %d %d\n", k->name,
                  pair ? pair->scripts[TN_SCRIPT_WORKER].digest : "-",
                  k->table ? tn_table_schema(k->table)->id : -1, (int)k->spec.config->unknown,
                  k->stays);
    if (pair && strlen(k->scripted->path) < PATH_SIZE_MAX) {
        tn_buf_format(out, "path %s\n", k->scripted->path);
    }
}

static bool put_text(const struct tn_vm_text *text, uint32_t *left, struct tn_buf *out)
{
    size_t at = (size_t)*left > 0 ? ((size_t)*left - 1) * PIECE_SIZE : 0;
    if (*left == 0) {
        tn_buf_format(out, "file %zu %s\n", text->bytes.size, text->path);
        return true;
    }
    if (at < text->bytes.size) {
        size_t rest = text->bytes.size - at;
        tn_buf_append(out, text->bytes.data + at, rest < PIECE_SIZE ? rest : PIECE_SIZE);
        return true;
    }
    *left -= (uint32_t)(1 + (text->bytes.size + PIECE_SIZE - 1) / PIECE_SIZE);
    return false;
}

/* Part `*left`; false: it has fewer, and so many are taken off. A worker may run the script
 * meanwhile, but its texts stay as they are. */
static bool put_table(const struct tn_keeper *k, uint32_t *left, struct tn_buf *out)
{
    bool runs = k->scripted && k->scripted->open;
    const struct tn_script_pair *pair = runs ? &k->scripted->pair : NULL;
    if ((*left)-- == 0) {
        put_head(k, pair, out);
        return true;
    }
    for (const struct tn_config_pair *time = k->spec.config->times; time; time = time->next) {
        if ((*left)-- == 0) {
            tn_buf_format(out, "time %s %s\n", time->value, time->key);
            return true;
        }
    }
    const struct tn_vm_text *text = pair ? pair->vms[TN_SCRIPT_WORKER].texts : NULL;
    for (; text; text = text->next) {
        if (put_text(text, left, out)) {
            return true;
        }
    }
    return false;
}

bool tn_scripts_page(const struct tn_reload *reload, uint32_t index, struct tn_buf *out)
{
    uint32_t left = index;
    for (uint32_t i = 0; i < reload->spec.keeper_count; i++) {
        if (put_table(&reload->spec.keepers[i], &left, out)) {
            return true;
        }
    }
    if (left == 0) {
        tn_buf_format(out, "end %" PRIu32 "\n", reload->more);
    }
    return left == 0;
}

/* ---- what is read ---- */

struct reading {
    unsigned char *at;
    unsigned char *end;
    struct tn_arena *arena;
    struct tn_scripts *scripts;
    struct tn_scripts_table **last;
    struct tn_scripts_table *table;
    struct tn_vm_text **last_text;
    bool ended;
};

/* Takes a line off; NULL: there is none. */
static char *take_line(struct reading *r)
{
    unsigned char *line = r->at;
    unsigned char *end = memchr(line, '\n', (size_t)(r->end - line));
    if (!end) {
        return NULL;
    }
    *end = 0;
    r->at = end + 1;
    return (char *)line;
}

/* The word in front; the rest is what is behind its blank. */
static char *take_word(char **rest)
{
    char *word = *rest;
    size_t size = strcspn(word, " ");
    *rest = word + size + (word[size] == ' ');
    word[size] = 0;
    return word;
}

static bool read_table(struct reading *r, const char *name)
{
    struct tn_scripts_table *table = tn_arena_take(r->arena, sizeof *table);
    if (!table) {
        return false;
    }
    table->name = name;
    *r->last = table;
    r->last = &table->next;
    r->last_text = &table->texts;
    r->table = table;
    return true;
}

static bool read_about(struct reading *r, char *rest)
{
    r->table->digest = take_word(&rest);
    r->table->schema = strtoll(take_word(&rest), NULL, 10);
    r->table->unknown = *take_word(&rest) == '1' ? TN_UNKNOWN_DROP : TN_UNKNOWN_FAIL;
    r->table->stays = *rest == '1';
    return true;
}

static bool read_time(struct reading *r, char *rest)
{
    struct tn_config_pair *pair = tn_arena_take(r->arena, sizeof *pair);
    if (!pair) {
        return false;
    }
    pair->value = take_word(&rest);
    pair->key = rest;
    pair->next = r->table->times;
    r->table->times = pair;
    return true;
}

static bool read_file(struct reading *r, char *rest)
{
    size_t size = strtoul(take_word(&rest), NULL, 10);
    struct tn_vm_text *text = tn_arena_take(r->arena, sizeof *text);
    if (!text || size > (size_t)(r->end - r->at)) {
        return false;
    }
    *text = (struct tn_vm_text){.path = rest, .bytes = {r->at, size}};
    *r->last_text = text;
    r->last_text = &text->next;
    r->at += size;
    return true;
}

static bool read_line(struct reading *r, char *line)
{
    const char *word = take_word(&line);
    if (strcmp(word, "end") == 0) {
        r->ended = true;
        r->scripts->more = (uint32_t)strtoul(line, NULL, 10);
        return true;
    }
    if (strcmp(word, "table") == 0) {
        return read_table(r, line);
    }
    if (r->table && strcmp(word, "path") == 0) {
        r->table->path = line;
        return true;
    }
    return r->table && (strcmp(word, "about") == 0  ? read_about(r, line)
                        : strcmp(word, "time") == 0 ? read_time(r, line)
                        : strcmp(word, "file") == 0 ? read_file(r, line)
                                                    : false);
}

/* Its text is the one that it says. */
static bool is_whole(const struct tn_scripts_table *table)
{
    unsigned char digest[DIGEST_SIZE];
    char text[2 * DIGEST_SIZE + 1];
    struct tn_buf hex;
    if (!table->texts) {
        return true;
    }
    tn_hash_sha256(table->texts->bytes, digest);
    tn_buf_init(&hex, text, sizeof text);
    for (int i = 0; i < DIGEST_SIZE; i++) {
        tn_buf_format(&hex, "%02x", digest[i]);
    }
    return table->path && table->digest && hex.size == strlen(table->digest) &&
           memcmp(text, table->digest, hex.size) == 0;
}

tn_rc tn_scripts_read(struct tn_buf *page, struct tn_arena *arena, struct tn_scripts *scripts,
                      struct tn_err *err)
{
    struct reading r = {.at = page->data,
                        .end = page->data + page->size,
                        .arena = arena,
                        .scripts = scripts,
                        .last = &scripts->tables};
    *scripts = (struct tn_scripts){0};
    bool good = true;
    for (char *line; good && !r.ended && (line = take_line(&r)) != NULL;) {
        good = read_line(&r, line);
    }
    for (const struct tn_scripts_table *t = scripts->tables; good && t; t = t->next) {
        good = is_whole(t);
    }
    return good && r.ended
               ? TN_OK
               : tn_err_set(err, TN_CORRUPT, 0,
                            "what tarn run says of its scripts can't be read: they were "
                            "loaded anew meanwhile, or it is another tarn");
}
