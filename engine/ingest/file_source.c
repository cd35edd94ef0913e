#include "ingest/file_source.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/wait.h"

enum {
    PAUSE_MS_MIN = 20,
    PAUSE_MS_MAX = 1000,
    RETRY_MS = 1000, /* what is wrong may be right again */
};

static int64_t now_ms(const struct tn_file_source *s)
{
    return tn_clock_monotonic_ms(s->spec.clock);
}

/* ---- what the log hears ---- */

static void say(struct tn_file_source *s, enum tn_log_level level, tn_rc rc,
                const struct tn_err *err)
{
    if (s->said != rc) {
        tn_log_event(s->spec.log, level, "source", "source=%s table=%s rc=%d text=\"%s\"",
                     s->spec.name, s->spec.table, (int)rc, err->text);
    }
    s->said = rc;
    s->trouble = *err;
}

static void say_loss(const struct tn_file_source *s)
{
    static const struct {
        enum tn_log_level level;
        const char *text;
    } losses[] = {
        [TN_FILE_LOSS_GONE] = {TN_LOG_ERROR,
                               "the file that was read is neither there nor beside it: what it "
                               "had and was not read is lost; the oldest that is newer is read"},
        [TN_FILE_LOSS_CUT] = {TN_LOG_WARN,
                              "it was cut short or written anew, and no copy is beside it: what "
                              "was not read before is lost; the oldest that is newer is read"},
        [TN_FILE_LOSS_PACKED] = {TN_LOG_ERROR, "a rotated file was compressed before it was read: "
                                               "its rows are lost"},
    };
    if (s->look.loss != TN_FILE_LOSS_NONE) {
        tn_log_event(s->spec.log, losses[s->look.loss].level, "source",
                     "source=%s path=%s reads=%s text=\"%s\"", s->spec.name, s->spec.path,
                     s->look.name, losses[s->look.loss].text);
    }
}

static void say_too_long(const struct tn_file_source *s)
{
    tn_log_event(s->spec.log, TN_LOG_WARN, "source",
                 "source=%s path=%s line=%" PRIu64 " text=\"%s of %" PRIu64 " bytes %s\"",
                 s->spec.name, s->look.name, s->look.place.line + 1,
                 s->look.given_up ? "a text" : "a record", s->look.too_long,
                 s->look.given_up ? "has no end: the next line is a record again"
                                  : "is longer than a message may be");
}

static void say_refused(const struct tn_file_source *s, const struct tn_err *err)
{
    tn_log_event(s->spec.log, TN_LOG_WARN, "source",
                 "source=%s path=%s line=%" PRIu64 " text=\"not taken, for good: %s\"",
                 s->spec.name, s->look.name, s->look.place.line + 1, err->text);
}

/* ---- the place ---- */

/* Reading goes on where the hub says, which is where it is already, if it lost nothing. */
static void go_to_place(struct tn_file_source *s)
{
    struct tn_file_place place;
    s->rewinds = false;
    if (tn_hub_place(s->spec.hub, tn_bytes_of(s->sender), &place) != TN_OK) {
        place = (struct tn_file_place){.offset = 0};
    }
    if (tn_file_place_equal(&place, &s->taken)) {
        return;
    }
    tn_file_look_close(&s->look);
    s->taken = place;
    s->look.place = place;
    s->looked = false;
    s->offers = false;
    s->ended = false;
    s->wake_ms = 0;
    tn_log_event(s->spec.log, TN_LOG_INFO, "source",
                 "source=%s text=\"goes on at byte %" PRIu64 " (line %" PRIu64 ")\"", s->spec.name,
                 place.offset, place.line + 1);
}

/* ---- offers ---- */

static tn_rc offer(struct tn_file_source *s, bool rows, struct tn_message *message,
                   struct tn_err *err)
{
    const struct tn_file_look *l = &s->look;
    *message = (struct tn_message){.source = s->spec.name,
                                   .received_ms = s->spec.clock->vtable->now_ms(s->spec.clock),
                                   .sender = tn_bytes_of(s->sender),
                                   .from = &l->place,
                                   .behind = &l->next};
    if (rows) {
        size_t header = l->too_long == 0 ? l->header_size : 0;
        message->table = s->spec.table;
        message->input = s->spec.input;
        message->bytes = (struct tn_bytes){l->data - header, l->batch + header};
        message->header_size = header;
        message->cut_size = l->too_long;
        message->split = !l->one;
    }
    return tn_hub_offer(s->spec.hub, message, err);
}

static void taken(struct tn_file_source *s, const struct tn_message *message)
{
    struct tn_file_look *l = &s->look;
    tn_file_place_back(&l->next, tn_message_left(message));
    if (l->too_long > 0) {
        say_too_long(s);
    }
    s->batches++;
    s->rows += message->rows;
    s->dead += message->dead;
    s->said = TN_OK;
    s->offers = false;
    s->wake_ms = 0;
    s->pause_ms = PAUSE_MS_MIN;
    l->place = l->next;
    s->taken = l->next;
    l->limit = l->limit < l->size / 2 ? l->limit * 2 : l->size;
}

/* The rows of a batch may need more room than there is; half of it needs less. */
static tn_rc refused(struct tn_file_source *s, struct tn_message *message, struct tn_err *err)
{
    struct tn_file_look *l = &s->look;
    if (!l->one) {
        l->limit = l->batch / 2;
        s->offers = false;
        s->wake_ms = 0;
        return TN_OK;
    }
    struct tn_err why = *err;
    tn_rc rc = offer(s, false, message, err);
    if (rc == TN_OK) {
        say_refused(s, &why);
        taken(s, message);
        s->dead++;
    }
    return rc;
}

static void offer_batch(struct tn_file_source *s)
{
    struct tn_err err = {0};
    struct tn_message message;
    s->blocked = false;
    tn_rc rc = offer(s, true, &message, &err);
    if (rc == TN_OK) {
        taken(s, &message);
    } else if (rc == TN_INVALID) {
        rc = refused(s, &message, &err);
    }
    if (rc == TN_AGAIN) {
        s->blocked = true;
    } else if (rc != TN_OK) {
        say(s, TN_LOG_WARN, rc, &err);
    }
    if (rc != TN_OK) {
        s->wake_ms = now_ms(s) + RETRY_MS;
    }
}

/* ---- looks ---- */

static tn_rc execute(struct tn_task *task, void *context, struct tn_err *err)
{
    (void)context;
    struct tn_file_source *s = (struct tn_file_source *)(void *)task;
    return tn_file_look(&s->look, err);
}

static void complete(struct tn_task *task, tn_rc rc)
{
    (void)rc; /* it stays in the task */
    struct tn_file_source *s = (struct tn_file_source *)(void *)task;
    s->under_way = false;
    s->looked = true;
    if (s->stopping) {
        tn_file_look_close(&s->look);
    }
    s->spec.notify(s->spec.user);
}

static void rest(struct tn_file_source *s)
{
    s->wake_ms = now_ms(s) + s->pause_ms;
    s->pause_ms = s->pause_ms * 2 < PAUSE_MS_MAX ? s->pause_ms * 2 : PAUSE_MS_MAX;
}

static void take_look(struct tn_file_source *s)
{
    tn_rc rc = s->task.rc;
    s->looked = false;
    s->idle = rc == TN_OK && s->look.batch == 0;
    say_loss(s);
    if (rc == TN_OK && s->look.batch > 0) {
        s->offers = true;
        s->wake_ms = 0;
        return;
    }
    if (rc != TN_OK && rc != TN_AGAIN) {
        say(s, rc == TN_ABSENT ? TN_LOG_INFO : TN_LOG_WARN, rc, &s->task.err);
    }
    s->said = rc == TN_OK ? TN_OK : s->said;
    s->ended = s->spec.once && rc != TN_AGAIN;
    if (s->ended) { /* who waits for that looks at once */
        s->spec.notify(s->spec.user);
    }
    rest(s);
}

/* ---- public ---- */

static struct tn_file_source *of_listener(struct tn_hub_listener *listener)
{
    return (struct tn_file_source *)(void *)((char *)listener -
                                             offsetof(struct tn_file_source, listener));
}

static void on_room(struct tn_hub_listener *listener)
{
    struct tn_file_source *s = of_listener(listener);
    if (s->blocked) {
        s->blocked = false;
        s->wake_ms = 0;
        s->spec.notify(s->spec.user);
    }
}

static void on_durable(struct tn_hub_listener *listener, uint64_t place)
{
    (void)listener; /* the place is the table's, with the rows */
    (void)place;
}

static void on_rewound(struct tn_hub_listener *listener)
{
    struct tn_file_source *s = of_listener(listener);
    s->rewinds = true;
    s->spec.notify(s->spec.user);
}

size_t tn_file_source_memory(const struct tn_hub *hub)
{
    return hub->size_max;
}

tn_rc tn_file_source_open(struct tn_file_source *source, const struct tn_file_source_spec *spec,
                          struct tn_err *err)
{
    struct tn_file_source *s = source;
    memset(s, 0, sizeof *s); /* too large for a literal */
    s->spec = *spec;
    s->task = (struct tn_task){.execute = execute, .complete = complete, .lane = TN_LANE_SHORT};
    s->pause_ms = PAUSE_MS_MIN;
    s->look.path = spec->path;
    s->look.input = spec->input;
    s->look.once = spec->once;
    s->look.data = (unsigned char *)spec->memory + TN_FILE_HEADER_MAX;
    s->look.size = spec->hub->size_max - TN_FILE_HEADER_MAX;
    int size = snprintf(s->sender, sizeof s->sender, "file:%s", spec->name);
    if (size >= (int)sizeof s->sender) {
        return tn_err_set(err, TN_INVALID, 0, "a name of more than %zu bytes", sizeof s->sender);
    }
    tn_rc rc = tn_file_look_init(&s->look, err);
    if (rc == TN_OK) {
        go_to_place(s);
        s->listener =
            (struct tn_hub_listener){.room = on_room, .durable = on_durable, .rewound = on_rewound};
        tn_hub_listen(spec->hub, &s->listener);
    }
    return rc;
}

void tn_file_source_turn(struct tn_file_source *source, uint32_t *wait_ms)
{
    struct tn_file_source *s = source;
    if (s->rewinds && !s->under_way) {
        go_to_place(s);
    }
    if (s->looked) {
        take_look(s);
    }
    if (s->ended || s->stopping || s->under_way) {
        return;
    }
    int64_t left = s->wake_ms > 0 ? s->wake_ms - now_ms(s) : 0;
    if (left <= 0 && s->offers) {
        offer_batch(s);
        left = s->wake_ms > 0 ? s->wake_ms - now_ms(s) : 0;
    }
    if (left <= 0 && !s->offers) {
        s->under_way = true;
        tn_exec_submit(s->spec.exec, &s->task);
        return;
    }
    tn_wait_lower(wait_ms, left);
}

void tn_file_source_stop(struct tn_file_source *source)
{
    source->stopping = true;
    if (!source->under_way) {
        tn_file_look_close(&source->look);
    }
}
