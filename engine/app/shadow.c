#include "app/shadow_private.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/ask.h"
#include "app/stop.h"
#include "app/tee.h"
#include "io/packet.h"

enum {
    WINDOW_SHARE = 4, /* of the memory, for look-ups */
    PAGE_SIZE = 1 << 20,
    LOOK_MS = 100, /* at signals */
};

static int64_t now_ms(void)
{
    struct tn_clock *clock = &tn_clock_system;
    return tn_clock_monotonic_ms(clock);
}

/* ---- the daemon ---- */

static tn_rc read_scripts(struct tn_shadow *s, struct tn_err *err)
{
    struct tn_buf page;
    void *memory;
    tn_rc rc = tn_shadow_need(s, PAGE_SIZE, "the scripts", &memory, err);
    if (rc == TN_OK) {
        tn_buf_init(&page, memory, PAGE_SIZE);
        rc = tn_ask(s->app->warehouse, "/shadow", &page, err);
    }
    return rc == TN_OK ? tn_scripts_read(&page, &s->arena, &s->scripts, err) : rc;
}

struct answer {
    int64_t left_out;
    int64_t left_out_rows;
    const char *trouble;
};

static tn_rc tell(struct tn_shadow *s, const char *page, struct tn_err *err)
{
    static const struct tn_json_field fields[] = {
        {"left_out", TN_JSON_I64, TN_JSON_REQUIRED, (uint32_t)offsetof(struct answer, left_out)},
        {"left_out_rows", TN_JSON_I64, TN_JSON_REQUIRED,
         (uint32_t)offsetof(struct answer, left_out_rows)},
        {"trouble", TN_JSON_TEXT, TN_JSON_OPTIONAL, (uint32_t)offsetof(struct answer, trouble)},
    };
    struct tn_ask_spec spec = {.warehouse = s->app->warehouse,
                               .method = "POST",
                               .page = page,
                               .fields = fields,
                               .field_count = sizeof fields / sizeof fields[0]};
    struct answer answer = {.trouble = NULL};
    tn_arena_reset(&s->app->input, 0);
    tn_rc rc = tn_ask_object(&spec, &s->app->input, &answer, err);
    if (rc == TN_OK) {
        s->left_out = (uint64_t)answer.left_out;
        s->left_out_rows = (uint64_t)answer.left_out_rows;
    }
    return rc == TN_OK && answer.trouble
               ? tn_err_set(err, TN_INVALID, 0, "refused: %s", answer.trouble)
               : rc;
}

/* One at a time: its socket is the one that the daemon looks for. */
static tn_rc lock(struct tn_shadow *s, struct tn_err *err)
{
    struct tn_io *io = &s->app->posix.io;
    char who[64];
    (void)snprintf(who, sizeof who, "tarn reload --shadow, process %ld", (long)getpid());
    return io->vtable->lock(io, ".tarn/shadow.lock", who, &s->lock, err);
}

/* Who is another user than the daemon lets it in. */
static void give_to_daemon(const struct tn_shadow *s, const char *path)
{
    char daemon[TN_ASK_PATH_SIZE];
    struct tn_err ignored;
    struct stat stat_of;
    if (tn_ask_path(s->app->warehouse, daemon, &ignored) == TN_OK && stat(daemon, &stat_of) == 0 &&
        stat_of.st_uid != geteuid() && chown(path, stat_of.st_uid, stat_of.st_gid) != 0) {
        return; /* the daemon says that it can't be reached */
    }
}

static tn_rc listen_there(struct tn_shadow *s, struct tn_err *err)
{
    char text[TN_PACKET_PATH_SIZE];
    struct tn_buf path;
    tn_buf_init(&path, text, sizeof text);
    tn_rc rc = tn_tee_path(s->app->warehouse, &path, err);
    if (rc == TN_OK) { /* one of who was killed may be there: the lock is ours */
        rc = tn_packet_listen(text, &s->listener, err);
    }
    if (rc == TN_OK) {
        give_to_daemon(s, text);
        rc = tell(s, "/shadow", err);
    }
    if (rc == TN_OK) {
        rc = tn_packet_accept(s->listener, text, &s->fd, err);
    }
    (void)unlink(text);
    return rc;
}

tn_rc tn_shadow_open(struct tn_shadow *s, struct tn_app *app, struct tn_err *err)
{
    const struct tn_part *part = tn_budget_part(&app->budget, "memtable");
    size_t window = part->size / WINDOW_SHARE;
    void *packet;
    *s = (struct tn_shadow){.app = app,
                            .lock = -1,
                            .listener = -1,
                            .fd = -1,
                            .window = part->base,
                            .window_size = window};
    tn_arena_init(&s->arena, part->base + window, part->size - window);
    tn_rc rc = lock(s, err);
    if (rc == TN_OK) {
        rc = tn_shadow_need(s, TN_TEE_PACKET_SIZE_MAX, "a message", &packet, err);
    }
    if (rc == TN_OK) {
        s->packet = packet;
        rc = read_scripts(s, err);
    }
    return rc == TN_OK ? tn_shadow_open_tables(s, err) : rc;
}

void tn_shadow_close(struct tn_shadow *s)
{
    for (struct tn_shadow_table *t = s->tables; t; t = t->next) {
        tn_shadow_close_table(t);
    }
    tn_packet_close(s->fd);
    tn_packet_close(s->listener);
    if (s->lock >= 0) {
        s->app->posix.io.vtable->close(&s->app->posix.io, s->lock);
    }
}

/* ---- messages ---- */

static struct tn_shadow_table *find_table(struct tn_shadow *s, const char *name)
{
    struct tn_shadow_table *t = s->tables;
    while (t && strcmp(t->of->name, name) != 0) {
        t = t->next;
    }
    return t;
}

/* ABSENT behind the last one. A script that the daemon would park goes on here. */
static tn_rc next_record(struct tn_shadow_side *side, struct tn_err *err)
{
    if (tn_script_parked(&side->script)) {
        side->parked = true;
        tn_script_resume(&side->script);
    }
    tn_rc rc = tn_trial_next(&side->trial, err);
    if (rc == TN_CANCELED) { /* within a record of many rows */
        side->parked = true;
        tn_script_resume(&side->script);
        rc = TN_OK;
    }
    return rc;
}

static tn_rc compare(struct tn_shadow_table *t, const struct tn_message *message,
                     struct tn_err *err)
{
    struct tn_shadow_side *sides = t->sides;
    tn_rc rcs[TN_SHADOW_SIDES] = {TN_OK, TN_OK};
    tn_rc rc = TN_OK;
    struct tn_script_meta meta = {.source = message->source};
    meta.topic = message->topic.size > 0 ? (const char *)message->topic.data : NULL;
    meta.clock = tn_clock_watch_look(&t->watch, &meta.received_ms);
    for (int i = 0; rc == TN_OK && i < TN_SHADOW_SIDES; i++) {
        sides[i].trial.meta = meta;
        rc = tn_trial_begin(&sides[i].trial, message->input, message->bytes, err);
    }
    while (rc == TN_OK && (rcs[0] == TN_OK || rcs[1] == TN_OK)) {
        for (int i = 0; rc == TN_OK && i < TN_SHADOW_SIDES; i++) {
            rcs[i] = rcs[i] == TN_OK ? next_record(&sides[i], err) : rcs[i];
            rc = rcs[i] == TN_ABSENT ? TN_OK : rcs[i];
        }
        t->differ += rcs[0] != rcs[1] || sides[0].trial.outcome != sides[1].trial.outcome;
    }
    return rc;
}

static tn_rc take(struct tn_shadow *s, struct tn_bytes packet, struct tn_err *err)
{
    struct tn_message message;
    tn_rc rc = tn_tee_read(packet, &message, err);
    struct tn_shadow_table *t = rc == TN_OK ? find_table(s, message.table) : NULL;
    if (t && t->trouble != TN_OK) {
        t->missed++;
    } else if (t) {
        t->trouble = compare(t, &message, &t->trouble_text);
    }
    return rc;
}

static tn_rc receive(struct tn_shadow *s, struct tn_err *err)
{
    struct tn_bytes packet;
    tn_rc rc = tn_packet_receive(s->fd, s->packet, TN_TEE_PACKET_SIZE_MAX, &packet);
    s->left_out += rc == TN_FULL;
    s->cut = s->cut || rc == TN_ABSENT;
    return rc == TN_OK ? take(s, packet, err) : TN_OK;
}

tn_rc tn_shadow_run(struct tn_shadow *s, int64_t ms, struct tn_err *err)
{
    struct tn_err ignored;
    tn_stop_hold();
    tn_rc rc = listen_there(s, err);
    if (rc == TN_OK && !tn_common.quiet) {
        (void)fprintf(stderr, "tarn: for %.1f s what comes goes through both scripts\n",
                      (double)ms / 1000);
    }
    s->begun_ms = now_ms();
    int64_t left = ms;
    while (rc == TN_OK && left > 0 && !s->cut && !s->stopped) {
        tn_packet_wait(s->fd, (int)(left < LOOK_MS ? left : LOOK_MS));
        rc = receive(s, err);
        s->stopped = tn_stop_came(0);
        left = ms - (now_ms() - s->begun_ms);
    }
    s->ended_ms = now_ms();
    uint64_t too_long = s->left_out;
    bool ended = rc == TN_OK && !s->cut && tell(s, "/shadow?end=1", &ignored) == TN_OK;
    s->left_out += ended ? too_long : 0;
    while (rc == TN_OK && ended && !s->cut) { /* what is on its way */
        rc = receive(s, err);
    }
    s->cut = rc == TN_OK && !ended;
    tn_stop_let();
    return rc;
}

/* ---- afterwards ---- */

const char *tn_shadow_objection(const struct tn_shadow *s)
{
    if (s->cut) {
        return "tarn run ended, or began anew, meanwhile";
    }
    for (const struct tn_shadow_table *t = s->tables; t; t = t->next) {
        const struct tn_shadow_side *sides = t->sides;
        if (t->trouble != TN_OK) {
            return "not all that came went through both scripts";
        }
        if (sides[TN_SHADOW_NEW].trial.dead > sides[TN_SHADOW_OLD].trial.dead) {
            return "a new script made more dead letters than the old one";
        }
        if (sides[TN_SHADOW_NEW].parked && !sides[TN_SHADOW_OLD].parked) {
            return "a new script failed so often that its table would be closed";
        }
    }
    return s->stopped ? "it was stopped before its time" : NULL;
}

tn_rc tn_shadow_check_files(struct tn_shadow *s, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (struct tn_shadow_table *t = s->tables; rc == TN_OK && t; t = t->next) {
        const struct tn_vm_text *text = t->sides[TN_SHADOW_NEW].vm.texts;
        for (; rc == TN_OK && text; text = text->next) {
            struct tn_bytes now;
            tn_arena_reset(&s->app->input, 0);
            rc = tn_io_read_all(&t->files.io, text->path, tn_vm_limits_default.source_size,
                                &s->app->input, &now, err);
            if (rc == TN_OK && !tn_bytes_equal(now, text->bytes)) {
                rc = tn_err_set(err, TN_INVALID, 0,
                                "%s: script %s was changed meanwhile, and is not what was shown",
                                t->of->name, text->path);
            }
        }
    }
    return rc;
}
