#include "app/seen.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "app/ask.h"
#include "base/check.h"

enum { PAGE_SHARE = 2 /* of the arena's room */, WHOSE_SIZE = 512 };

#define FIELD(key, kind, record, member)                                                 \
    {                                                                                    \
        key, TN_JSON_##kind, TN_JSON_OPTIONAL, (uint32_t)offsetof(struct record, member) \
    }

static const struct tn_json_field of_daemon[] = {
    FIELD("daemon", TEXT, tn_seen_daemon, version),
    FIELD("status", TEXT, tn_seen_daemon, status),
    FIELD("config", TEXT, tn_seen_daemon, config),
    FIELD("listen", TEXT, tn_seen_daemon, listen),
    FIELD("process", I64, tn_seen_daemon, process),
    FIELD("up_ms", I64, tn_seen_daemon, up_ms),
    FIELD("messages", I64, tn_seen_daemon, messages),
    FIELD("refused", I64, tn_seen_daemon, refused),
    FIELD("stalls", I64, tn_seen_daemon, stalls),
    FIELD("stall_longest_us", I64, tn_seen_daemon, stall_longest_us),
    FIELD("disk_reserve", I64, tn_seen_daemon, disk_reserve),
    FIELD("disk_free", I64, tn_seen_daemon, disk_free),
    FIELD("wear_budget", I64, tn_seen_daemon, wear_budget),
    FIELD("wear_left", I64, tn_seen_daemon, wear_left),
    FIELD("wear_overdraft", I64, tn_seen_daemon, wear_overdraft),
    FIELD("trouble", TEXT, tn_seen_daemon, trouble),
};

static const struct tn_json_field of_journal[] = {
    FIELD("trouble", TEXT, tn_seen_journal, trouble),
    FIELD("bytes", I64, tn_seen_journal, bytes),
    FIELD("bytes_max", I64, tn_seen_journal, bytes_max),
    FIELD("durable", I64, tn_seen_journal, durable),
    FIELD("next", I64, tn_seen_journal, next),
    FIELD("waits", I64, tn_seen_journal, waits),
};

static const struct tn_json_field of_table[] = {
    FIELD("table", TEXT, tn_seen_table, name),
    FIELD("state", TEXT, tn_seen_table, state),
    FIELD("trouble", TEXT, tn_seen_table, trouble),
    FIELD("rows", I64, tn_seen_table, rows),
    FIELD("letters", I64, tn_seen_table, letters),
    FIELD("uncommitted", I64, tn_seen_table, uncommitted),
    FIELD("oldest_ms", I64, tn_seen_table, oldest_ms),
    FIELD("snapshot", I64, tn_seen_table, snapshot),
    FIELD("snapshots", I64, tn_seen_table, snapshots),
    FIELD("untold", I64, tn_seen_table, untold),
    FIELD("runs_max", I64, tn_seen_table, runs_max),
    FIELD("runs_stop", I64, tn_seen_table, runs_stop),
    FIELD("files_max", I64, tn_seen_table, files_max),
    FIELD("level0_bytes", I64, tn_seen_table, level0_bytes),
};

static const struct tn_json_field of_source[] = {
    FIELD("source", TEXT, tn_seen_source, name),
    FIELD("kind", TEXT, tn_seen_source, kind),
    FIELD("state", TEXT, tn_seen_source, state),
    FIELD("at", TEXT, tn_seen_source, at),
    FIELD("trouble", TEXT, tn_seen_source, trouble),
    FIELD("messages", I64, tn_seen_source, messages),
    FIELD("rows", I64, tn_seen_source, rows),
    FIELD("letters", I64, tn_seen_source, letters),
    FIELD("refused", I64, tn_seen_source, refused),
};

static const struct tn_json_field of_lake[] = {
    FIELD("lake", TEXT, tn_seen_lake, name),
    FIELD("target", TEXT, tn_seen_lake, target),
    FIELD("uploads", I64, tn_seen_lake, uploads),
    FIELD("failures", I64, tn_seen_lake, failures),
    FIELD("sent_bytes", I64, tn_seen_lake, sent_bytes),
    FIELD("gets", I64, tn_seen_lake, gets),
    FIELD("heads", I64, tn_seen_lake, heads),
    FIELD("puts", I64, tn_seen_lake, puts),
    FIELD("lists", I64, tn_seen_lake, lists),
    FIELD("deletes", I64, tn_seen_lake, deletes),
    FIELD("day_bytes", I64, tn_seen_lake, day_bytes),
    FIELD("day_requests", I64, tn_seen_lake, day_requests),
    FIELD("month_bytes", I64, tn_seen_lake, month_bytes),
    FIELD("month_requests", I64, tn_seen_lake, month_requests),
};

static const struct tn_json_field of_mirror[] = {
    FIELD("mirror", TEXT, tn_seen_mirror, table),
    FIELD("lake", TEXT, tn_seen_mirror, lake),
    FIELD("state", TEXT, tn_seen_mirror, state),
    FIELD("shared", TEXT, tn_seen_mirror, shared),
    FIELD("kind", TEXT, tn_seen_mirror, kind),
    FIELD("trouble", TEXT, tn_seen_mirror, trouble),
    FIELD("snapshot", I64, tn_seen_mirror, snapshot),
    FIELD("behind", I64, tn_seen_mirror, behind),
    FIELD("behind_bytes", I64, tn_seen_mirror, behind_bytes),
    FIELD("pinned_bytes", I64, tn_seen_mirror, pinned_bytes),
    FIELD("behind_ms", I64, tn_seen_mirror, behind_ms),
    FIELD("lake_snapshot", I64, tn_seen_mirror, lake_snapshot),
    FIELD("commits", I64, tn_seen_mirror, commits),
    FIELD("lost_names", I64, tn_seen_mirror, lost_names),
    FIELD("replaced_commits", I64, tn_seen_mirror, replaced_commits),
    FIELD("tags_left", I64, tn_seen_mirror, tags_left),
    FIELD("tags_denied", I64, tn_seen_mirror, tags_denied),
};

static const struct tn_json_field of_part[] = {
    FIELD("part", TEXT, tn_seen_part, name), FIELD("kind", TEXT, tn_seen_part, kind),
    FIELD("size", I64, tn_seen_part, size),  FIELD("used", I64, tn_seen_part, used),
    FIELD("peak", I64, tn_seen_part, peak),
};

enum { SINGLE, LIST };

static const struct {
    const char *first; /* member */
    const struct tn_json_field *fields;
    uint32_t count;
    int kind;
    size_t at;   /* in struct tn_seen */
    size_t size; /* of a list's item */
} records[] = {
    {"daemon", of_daemon, sizeof of_daemon / sizeof of_daemon[0], SINGLE,
     offsetof(struct tn_seen, daemon), 0},
    {"journal", of_journal, sizeof of_journal / sizeof of_journal[0], SINGLE,
     offsetof(struct tn_seen, journal), 0},
    {"table", of_table, sizeof of_table / sizeof of_table[0], LIST,
     offsetof(struct tn_seen, tables), sizeof(struct tn_seen_table)},
    {"source", of_source, sizeof of_source / sizeof of_source[0], LIST,
     offsetof(struct tn_seen, sources), sizeof(struct tn_seen_source)},
    {"part", of_part, sizeof of_part / sizeof of_part[0], LIST, offsetof(struct tn_seen, parts),
     sizeof(struct tn_seen_part)},
    {"lake", of_lake, sizeof of_lake / sizeof of_lake[0], LIST, offsetof(struct tn_seen, lakes),
     sizeof(struct tn_seen_lake)},
    {"mirror", of_mirror, sizeof of_mirror / sizeof of_mirror[0], LIST,
     offsetof(struct tn_seen, mirrors), sizeof(struct tn_seen_mirror)},
};
enum { RECORD_COUNT = sizeof records / sizeof records[0] };

_Static_assert(offsetof(struct tn_seen_table, next) == 0 &&
                   offsetof(struct tn_seen_source, next) == 0 &&
                   offsetof(struct tn_seen_part, next) == 0 &&
                   offsetof(struct tn_seen_lake, next) == 0 &&
                   offsetof(struct tn_seen_mirror, next) == 0,
               "lists are linked by their first member");

bool tn_seen_next(struct tn_bytes *page, struct tn_bytes *object)
{
    while (page->size > 0) {
        const unsigned char *end = memchr(page->data, '\n', page->size);
        struct tn_bytes line = {page->data, end ? (size_t)(end - page->data) : page->size};
        size_t taken = line.size + (end != NULL);
        page->data += taken;
        page->size -= taken;
        if (line.size > 2 && memcmp(line.data, "{\"", 2) == 0) {
            line.size -= line.data[line.size - 1] == ',';
            *object = line;
            return true;
        }
    }
    return false;
}

static int record_of(struct tn_bytes object)
{
    for (int i = 0; i < RECORD_COUNT; i++) {
        size_t size = strlen(records[i].first);
        if (object.size > size + 2 && memcmp(object.data + 2, records[i].first, size) == 0 &&
            object.data[size + 2] == '"') {
            return i;
        }
    }
    return -1;
}

/* A list's structs begin with a pointer to the next one, which is set as bytes: each list has a
 * type of its own. `ends` is where the next one's goes. */
static tn_rc read_record(struct tn_seen *seen, int i, const struct cJSON *json,
                         unsigned char *ends[RECORD_COUNT], struct tn_arena *arena,
                         struct tn_err *err)
{
    void *record = (unsigned char *)seen + records[i].at;
    if (records[i].kind == LIST) {
        tn_rc rc = tn_arena_need(arena, records[i].size, "what was answered", &record, err);
        if (rc != TN_OK) {
            return rc;
        }
        memcpy(ends[i], &record, sizeof record);
        ends[i] = record;
    }
    return tn_json_read(json, records[i].fields, records[i].count, record, arena, err);
}

static tn_rc read_object(struct tn_seen *seen, struct tn_bytes object,
                         unsigned char *ends[RECORD_COUNT], struct tn_arena *arena,
                         struct tn_err *err)
{
    struct cJSON *json;
    int i = record_of(object);
    if (i < 0) {
        return TN_OK; /* of a newer version */
    }
    tn_rc rc = tn_json_open(object, arena, &json, err);
    if (rc == TN_OK) {
        rc = read_record(seen, i, json, ends, arena, err);
        tn_json_close(json);
    }
    return rc;
}

static tn_rc read_page(struct tn_seen *seen, struct tn_arena *arena, struct tn_err *err)
{
    unsigned char *ends[RECORD_COUNT];
    struct tn_bytes page = seen->page;
    struct tn_bytes object;
    tn_rc rc = TN_OK;
    for (int i = 0; i < RECORD_COUNT; i++) {
        ends[i] = (unsigned char *)seen + records[i].at;
    }
    while (rc == TN_OK && tn_seen_next(&page, &object)) {
        rc = read_object(seen, object, ends, arena, err);
    }
    return rc;
}

tn_rc tn_seen_ask(struct tn_seen *seen, const char *warehouse, struct tn_arena *arena,
                  struct tn_err *err)
{
    void *memory;
    struct tn_buf page;
    size_t room = tn_arena_free(arena) / PAGE_SHARE;
    *seen = (struct tn_seen){.tables = NULL};
    tn_rc rc = tn_arena_need(arena, room, "an answer", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_buf_init(&page, memory, room);
    rc = tn_ask(warehouse, "/status", &page, err);
    seen->page = tn_buf_bytes(&page);
    return rc == TN_OK ? read_page(seen, arena, err) : rc;
}

static uint32_t mirror_reasons(const struct tn_seen *seen, tn_seen_reason *each, void *user)
{
    uint32_t count = 0;
    for (const struct tn_seen_mirror *m = seen->mirrors; m; m = m->next) {
        char whose[WHOSE_SIZE];
        if (m->trouble) {
            (void)snprintf(whose, sizeof whose, "lake %s: %s", m->lake ? m->lake : "",
                           m->table ? m->table : "a table");
            each(user, whose, m->trouble);
            count++;
        }
    }
    return count;
}

uint32_t tn_seen_reasons(const struct tn_seen *seen, tn_seen_reason *each, void *user)
{
    uint32_t count = 0;
    for (const struct tn_seen_table *t = seen->tables; t; t = t->next) {
        if (t->trouble) {
            each(user, t->name ? t->name : "a table", t->trouble);
            count++;
        }
    }
    for (const struct tn_seen_source *s = seen->sources; s; s = s->next) {
        if (s->trouble) {
            each(user, s->name ? s->name : "a source", s->trouble);
            count++;
        }
    }
    count += mirror_reasons(seen, each, user);
    if (seen->journal.trouble) {
        each(user, "journal", seen->journal.trouble);
        count++;
    }
    if (seen->daemon.trouble) {
        each(user, "reload", seen->daemon.trouble);
        count++;
    }
    bool ok = seen->daemon.status && strcmp(seen->daemon.status, "ok") == 0;
    if (!ok && count == 0) {
        each(user, "daemon", "takes no rows: it starts, or ends");
        count++;
    }
    return count;
}
