#include "app/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "ingest/mqtt_topic.h"
#include "schema/value.h"
#include "upload/ledger.h"
#include "upload/s3.h"

enum {
    CALM_MS = 60 * 1000, /* from one failure of a script to the next try */
    SAY_MS = 60 * 1000,  /* troubles of a place are logged once in so long */
    STEPS_MAX = 64,
    ASKED_MAX = 16,    /* scripts, in a turn */
    PLACE_STREAMS = 2, /* one, and TLS over it */
    ALIGNMENT = 64,
};

static int64_t now_of(const struct tn_tell *tell)
{
    return tn_clock_monotonic_ms(tell->spec.env->clock);
}

/* ---- what it will take ---- */

size_t tn_tell_memory(const struct tn_config *config)
{
    size_t each = sizeof(struct tn_tell_mark) + sizeof(struct tn_told_entry);
    return config->notify_count == 0
               ? 0
               : config->notify_count * (sizeof(struct tn_tell_place) + ALIGNMENT) +
                     config->upload_count * each + ALIGNMENT;
}

uint32_t tn_tell_streams(const struct tn_config *config)
{
    return config->notify_count * PLACE_STREAMS;
}

size_t tn_tell_tls(const struct tn_config *config)
{
    size_t size = 0;
    for (const struct tn_config_lake *l = config->lakes; l; l = l->next) {
        bool tls = l->notify.url && (l->notify.tls.ca || l->notify.tls.pinned);
        size +=
            tls ? TN_TLS_STREAM_SIZE + 2 * (l->notify.tls.ca ? strlen(l->notify.tls.ca) : 0) : 0;
    }
    return size;
}

/* ---- open ---- */

static struct tn_bytes text_or_none(const char *text)
{
    return text ? tn_bytes_of(text) : (struct tn_bytes){0};
}

static tn_rc open_teller(struct tn_tell *tell, struct tn_tell_place *place, struct tn_err *err)
{
    const struct tn_config_notify *config = &place->lake->config->notify;
    struct tn_tls_spec tls = {.clock = tell->spec.env->clock,
                              .ca = text_or_none(config->tls.ca),
                              .pinned = text_or_none(config->tls.pinned),
                              .certificate = text_or_none(config->tls.certificate),
                              .key = text_or_none(config->tls.key)};
    (void)snprintf(place->client_id, sizeof place->client_id, "tarn-%.13s-%s", tell->spec.identity,
                   place->lake->config->name);
    (void)snprintf(place->topic, sizeof place->topic, "tarn/lakes/%s", place->lake->config->name);
    tn_rc rc = tls.ca.data || tls.pinned.data ? tn_tls_config_make(&tls, &place->tls, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_teller_spec spec = {.net = tell->spec.net,
                                  .exec = tell->spec.exec,
                                  .tls = place->tls,
                                  .config = config,
                                  .client_id =
                                      config->client_id ? config->client_id : place->client_id};
    return tn_teller_open(&place->teller, &spec, err);
}

/* By the ledger it is certain; else an upload must end first. */
static bool is_written_down(const struct tn_tell *tell, const struct tn_lakes_mirror *m)
{
    const struct tn_lakes *lakes = tell->spec.lakes;
    struct tn_ledger ledger;
    struct tn_err ignored = {0};
    return tn_ledger_read(tell->spec.env->io, m->keeper->name, m->lake->consumer,
                          &lakes->spec.worker->arena, &ledger, &ignored) == TN_OK &&
           ledger.have == m->have_id;
}

static void fill_entries(const struct tn_tell_place *place, struct tn_told_entry *entries)
{
    for (uint32_t i = 0; i < place->mark_count; i++) {
        entries[i] = (struct tn_told_entry){.table = place->marks[i].mirror->keeper->name,
                                            .id = place->marks[i].told};
    }
}

static void warn(const struct tn_tell *tell, const struct tn_tell_place *place, struct tn_err *err)
{
    (void)tn_err_in(err, "lake %s: what was told of it", place->lake->config->name);
    tn_log_err(tell->spec.log, TN_LOG_WARN, "tell", err);
}

/* Who was not told of before is told of what comes: that is written down at once, so that nothing
 * is left out when this start is cut. */
static void open_marks(struct tn_tell *tell, struct tn_tell_place *place)
{
    struct tn_told_entry *entries = tell->saving.entries;
    struct tn_arena *scratch = &tell->spec.lakes->spec.worker->arena;
    struct tn_err err = {0};
    fill_entries(place, entries);
    tn_rc rc = tn_told_load(entries, place->mark_count, tell->spec.env->io,
                            place->lake->config->name, scratch, &err);
    if (rc != TN_OK && rc != TN_ABSENT) {
        warn(tell, place, &err);
    }
    bool news = false;
    for (uint32_t i = 0; i < place->mark_count; i++) {
        struct tn_tell_mark *mark = &place->marks[i];
        bool known = entries[i].id != TN_TOLD_UNKNOWN;
        mark->told = known ? entries[i].id : mark->opened_id > 0 ? mark->opened_id : 0;
        news = news || !known;
    }
    fill_entries(place, entries);
    if (news && tn_told_save(entries, place->mark_count, tell->spec.env->io,
                             place->lake->config->name, scratch, &err) != TN_OK) {
        warn(tell, place, &err);
        place->dirty = true;
    }
}

static tn_rc open_place(struct tn_tell *tell, struct tn_lakes_lake *lake,
                        struct tn_tell_mark **marks, struct tn_err *err)
{
    struct tn_tell_place *place = &tell->places[tell->place_count];
    const struct tn_lakes *lakes = tell->spec.lakes;
    memset(place, 0, sizeof *place);
    place->lake = lake;
    place->marks = *marks;
    tell->place_count++;
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        const struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (m->lake == lake) {
            place->marks[place->mark_count++] =
                (struct tn_tell_mark){.mirror = m,
                                      .opened_id = m->have_id,
                                      .known = m->have_id > 0 && is_written_down(tell, m)};
        }
    }
    *marks += place->mark_count;
    open_marks(tell, place);
    lake->tell = place;
    tn_rc rc = open_teller(tell, place, err);
    return rc == TN_OK ? rc : tn_err_in(err, "lakes.%s.notify", lake->config->name);
}

tn_rc tn_tell_open(struct tn_tell *tell, const struct tn_tell_spec *spec, struct tn_err *err)
{
    struct tn_lakes *lakes = spec->lakes;
    uint32_t uploads = spec->config->upload_count;
    void *memory[3] = {NULL, NULL, NULL};
    *tell = (struct tn_tell){.spec = *spec};
    if (spec->config->notify_count == 0) {
        return TN_OK;
    }
    const size_t sizes[] = {spec->config->notify_count * sizeof(struct tn_tell_place),
                            uploads * sizeof(struct tn_tell_mark),
                            uploads * sizeof(struct tn_told_entry)};
    tn_rc rc = TN_OK;
    for (int i = 0; rc == TN_OK && i < 3; i++) {
        rc = tn_arena_need(spec->arena, sizes[i], "who is told of uploads", &memory[i], err);
    }
    tell->places = memory[0];
    struct tn_tell_mark *marks = memory[1];
    tell->saving.entries = memory[2];
    for (uint32_t i = 0; rc == TN_OK && i < lakes->lake_count; i++) {
        if (lakes->lakes[i].config->notify.url) {
            rc = open_place(tell, &lakes->lakes[i], &marks, err);
        }
    }
    return rc;
}

/* ---- what there is to tell ---- */

/* What the lake is known to have. */
static int64_t have_of(const struct tn_tell_mark *mark)
{
    const struct tn_lakes_mirror *m = mark->mirror;
    return m->known || mark->known || m->have_id > mark->opened_id ? m->have_id : 0;
}

uint32_t tn_tell_behind(const struct tn_tell_place *place)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < place->mark_count; i++) {
        count += have_of(&place->marks[i]) > place->marks[i].told;
    }
    return count;
}

/* A lake that has less than was told of has another one of that name now; or of a shared table
 * somebody wrote over the last. */
static void forget_another_table(struct tn_tell_mark *mark)
{
    const struct tn_lakes_mirror *m = mark->mirror;
    if (m->known && m->have_id < mark->told) {
        mark->told = m->shared ? m->have_id : 0;
    }
}

static void say(const struct tn_tell *tell, struct tn_tell_place *place, const char *table,
                int64_t now)
{
    if (place->said_ms == 0 || now - place->said_ms >= SAY_MS) {
        place->said_ms = now;
        tn_log_event(tell->spec.log, TN_LOG_WARN, "tell", "lake=%s table=%s text=\"%s\"",
                     place->lake->config->name, table, place->trouble_text.text);
    }
}

/* A table's own script is there while the table is open. */
static struct tn_script *script_of(const struct tn_tell_place *place,
                                   const struct tn_lakes_mirror *m)
{
    struct tn_scripted *scripted = m->keeper->scripted;
    struct tn_script *own =
        scripted && scripted->open ? tn_script_pair_uploaded(&scripted->pair) : NULL;
    struct tn_script *policy = place->lake->policy ? &place->lake->policy->script : NULL;
    return own ? own : policy && tn_script_has(policy, TN_SCRIPT_UPLOADED) ? policy : NULL;
}

static void put_usual(const struct tn_uploaded_event *event, struct tn_buf *out)
{
    tn_buf_text(out, "{\"lake\":");
    tn_json_string(out, tn_bytes_of(event->lake));
    tn_buf_text(out, ",\"table\":");
    tn_json_string(out, tn_bytes_of(event->table));
    tn_buf_format(out, ",\"first\":%" PRId64 ",\"snapshot\":%" PRId64 ",\"ms\":%" PRId64,
                  event->first, event->snapshot, event->now_ms);
    tn_buf_format(out, ",\"clock\":\"%s\"}", event->clock);
}

/* Who a message is for the script doesn't say, so it has to fit. */
static tn_rc check_message(const struct tn_tell_place *place,
                           const struct tn_uploaded_message *said, struct tn_err *err)
{
    bool mqtt = place->teller.url.mqtt;
    if (!mqtt && (said->topic.data || said->retain)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "uploaded: '%s' is MQTT's, and the lake's `notify` is a POST",
                          said->topic.data ? "topic" : "retain");
    }
    if (tn_mqtt_text_valid(said->topic) < said->topic.size) { /* brokers would hang up */
        return tn_err_set(err, TN_INVALID, 0, "uploaded: 'topic' is no UTF-8");
    }
    if (mqtt && said->type) {
        return tn_err_set(err, TN_INVALID, 0,
                          "uploaded: 'type' is of a POST, and the lake's `notify` is MQTT");
    }
    return TN_OK;
}

/* NULL in `payload`: nothing is to be told. */
static tn_rc make_message(struct tn_tell *tell, struct tn_tell_place *place,
                          const struct tn_tell_mark *mark, int64_t have,
                          struct tn_teller_message *message, struct tn_err *err)
{
    const struct tn_config_notify *config = &place->lake->config->notify;
    struct tn_script *script = script_of(place, mark->mirror);
    struct tn_uploaded_message said = {0};
    struct tn_buf room;
    struct tn_uploaded_event event = {.lake = place->lake->config->name,
                                      .table = mark->mirror->keeper->name,
                                      .first = mark->told + 1,
                                      .snapshot = have};
    tn_rc rc = TN_OK;
    event.clock = tn_clock_watch_look(&tell->spec.lakes->watch, &event.now_ms);
    tn_buf_init(&room, place->room, sizeof place->room);
    if (script) {
        rc = tn_script_uploaded(script, &event, &said, &room, err);
    } else {
        put_usual(&event, &room);
        said.payload = tn_buf_bytes(&room);
    }
    if (rc == TN_OK) {
        rc = check_message(place, &said, err);
    }
    *message = (struct tn_teller_message){
        .payload = said.payload,
        .topic = tn_bytes_of(config->topic ? config->topic : place->topic),
        .type = script ? "text/plain; charset=utf-8" : "application/json",
        .retain = said.retain};
    message->topic = said.topic.data ? said.topic : message->topic;
    message->type = said.type ? said.type : message->type;
    return rc;
}

static void note_script_failed(struct tn_tell *tell, struct tn_tell_place *place,
                               struct tn_tell_mark *mark, const struct tn_err *err, int64_t now)
{
    mark->calm_ms = now + CALM_MS;
    place->script_failures++;
    place->trouble = TN_INVALID;
    place->trouble_text = *err;
    say(tell, place, mark->mirror->keeper->name, now);
}

static void begin(struct tn_tell *tell, struct tn_tell_place *place, struct tn_tell_mark *mark,
                  int64_t now)
{
    struct tn_teller_message message;
    struct tn_err err = {0};
    int64_t have = have_of(mark);
    tn_rc rc = make_message(tell, place, mark, have, &message, &err);
    if (rc != TN_OK) {
        note_script_failed(tell, place, mark, &err, now);
    } else if (!message.payload.data) {
        mark->told = have;
        place->dirty = true;
        place->trouble = TN_OK;
    } else {
        place->now = mark;
        place->now_id = have;
        tn_teller_tell(&place->teller, &message, &tell->ops);
    }
}

/* In turns, so that one table with much news doesn't hold back the others. */
static struct tn_tell_mark *next_mark(struct tn_tell_place *place, int64_t now, uint32_t *wait_ms)
{
    for (uint32_t i = 0; i < place->mark_count; i++) {
        uint32_t at = (place->next + i) % place->mark_count;
        struct tn_tell_mark *mark = &place->marks[at];
        forget_another_table(mark);
        bool news = have_of(mark) > mark->told && mark->mirror->keeper->table;
        if (news && now >= mark->calm_ms) {
            place->next = at + 1;
            return mark;
        }
        if (news) {
            tn_wait_lower(wait_ms, mark->calm_ms - now);
        }
    }
    return NULL;
}

/* ---- how one ends ---- */

static void note_failed(struct tn_tell *tell, struct tn_tell_place *place, int64_t now)
{
    struct tn_clock *clock = tell->spec.env->clock;
    const struct tn_teller *teller = &place->teller;
    place->failures++;
    place->failed = true;
    place->tries++;
    place->retry_ms =
        now + tn_s3_pause_ms(place->tries, teller->retry_after_ms, clock->vtable->random(clock));
}

static void take_outcome(struct tn_tell *tell, struct tn_tell_place *place, int64_t now)
{
    struct tn_teller *teller = &place->teller;
    struct tn_tell_mark *mark = place->now;
    teller->ended = false;
    place->now = NULL;
    if (teller->rc == TN_CANCELED) {
        return;
    }
    bool passed = teller->rc == TN_OK || teller->refused;
    place->messages += teller->rc == TN_OK;
    place->refused += teller->rc != TN_OK && teller->refused;
    place->trouble = teller->rc;
    if (passed) {
        mark->told = place->now_id;
        place->dirty = true;
        place->tries = 0;
    } else {
        note_failed(tell, place, now);
    }
    if (teller->rc != TN_OK) {
        place->trouble_text = teller->err;
        (void)tn_err_in(&place->trouble_text, "%s%s", teller->url.authority,
                        teller->refused ? ": refused for good" : "");
        say(tell, place, mark->mirror->keeper->name, now);
    }
}

/* ---- the file ---- */

static tn_rc execute_save(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_tell_saving *s = (struct tn_tell_saving *)(void *)task;
    struct tn_worker *worker = context;
    return tn_told_save(s->entries, s->place->mark_count, s->tell->spec.env->io,
                        s->place->lake->config->name, &worker->arena, err);
}

/* One that failed is written with the next. */
static void saved(struct tn_task *task, tn_rc rc)
{
    struct tn_tell_saving *s = (struct tn_tell_saving *)(void *)task;
    if (rc != TN_OK) {
        warn(s->tell, s->place, &task->err);
    }
    s->place = NULL;
}

static void turn_saving(struct tn_tell *tell)
{
    struct tn_tell_saving *s = &tell->saving;
    for (uint32_t i = 0; !s->place && i < tell->place_count; i++) {
        struct tn_tell_place *place = &tell->places[i];
        if (place->dirty) {
            place->dirty = false;
            fill_entries(place, s->entries);
            s->task =
                (struct tn_task){.execute = execute_save, .complete = saved, .lane = TN_LANE_SHORT};
            s->tell = tell;
            s->place = place;
            tn_exec_submit(tell->spec.env->exec, &s->task);
        }
    }
}

/* ---- turns ---- */

static void turn_place(struct tn_tell *tell, struct tn_tell_place *place, int64_t now,
                       uint32_t *wait_ms)
{
    if (place->now && place->teller.ended) {
        take_outcome(tell, place, now);
    }
    for (int i = 0; i < ASKED_MAX && !place->now && !tell->stopping; i++) {
        uint32_t soon = UINT32_MAX;
        struct tn_tell_mark *mark = next_mark(place, now, &soon);
        if (mark && now < place->retry_ms) {
            tn_wait_lower(wait_ms, place->retry_ms - now);
            return;
        }
        if (!mark) {
            *wait_ms = soon < *wait_ms ? soon : *wait_ms;
            return;
        }
        begin(tell, place, mark, now);
    }
    if (!place->now && !tell->stopping) {
        *wait_ms = 0; /* there is more */
    }
}

void tn_tell_turn(struct tn_tell *tell, uint32_t *wait_ms)
{
    if (tell->place_count == 0) {
        return;
    }
    (void)tn_ops_run(&tell->ops, STEPS_MAX);
    int64_t now = now_of(tell);
    for (uint32_t i = 0; i < tell->place_count; i++) {
        turn_place(tell, &tell->places[i], now, wait_ms);
    }
    turn_saving(tell);
    if (tell->ops.first) {
        *wait_ms = 0;
    }
}

void tn_tell_hurry(struct tn_tell *tell)
{
    for (uint32_t i = 0; i < tell->place_count; i++) {
        struct tn_tell_place *place = &tell->places[i];
        place->failed = false;
        place->retry_ms = 0;
    }
}

bool tn_tell_settled(const struct tn_tell *tell)
{
    for (uint32_t i = 0; i < tell->place_count; i++) {
        struct tn_tell_place *place = &tell->places[i];
        uint32_t ignored = UINT32_MAX;
        bool news = next_mark(place, now_of(tell), &ignored);
        if (place->now || (news && !place->failed)) {
            return false;
        }
    }
    return !tell->saving.place;
}

void tn_tell_stop(struct tn_tell *tell)
{
    tell->stopping = true;
    for (uint32_t i = 0; i < tell->place_count; i++) {
        tn_teller_stop(&tell->places[i].teller);
    }
}

bool tn_tell_stopped(const struct tn_tell *tell)
{
    for (uint32_t i = 0; i < tell->place_count; i++) {
        if (tn_teller_busy(&tell->places[i].teller)) {
            return false;
        }
    }
    return true;
}

void tn_tell_close(struct tn_tell *tell)
{
    for (uint32_t i = 0; i < tell->place_count; i++) {
        struct tn_tell_place *place = &tell->places[i];
        struct tn_err err = {0};
        if (place->now && place->teller.ended) {
            take_outcome(tell, place, now_of(tell));
        }
        fill_entries(place, tell->saving.entries);
        if (place->dirty && tn_told_save(tell->saving.entries, place->mark_count,
                                         tell->spec.env->io, place->lake->config->name,
                                         &tell->spec.lakes->spec.worker->arena, &err) != TN_OK) {
            warn(tell, place, &err);
        }
        if (place->tls) {
            tn_tls_config_free(place->tls);
        }
        place->lake->tell = NULL;
    }
    tell->place_count = 0;
}
