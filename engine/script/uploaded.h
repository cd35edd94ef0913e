/* uploaded: what a script wants told once snapshots are whole at a lake.
 *
 *     if (tn_script_has(&script, TN_SCRIPT_UPLOADED)) {
 *         rc = tn_script_uploaded(&script, &event, &told, &room, err);
 *     }
 *
 *     return nil                           nothing is told
 *     return "plant.readings is there"     this text
 *     return { payload = "...",            with
 *              topic = "plant/lake",       MQTT: where to, instead of the configuration's
 *              retain = true,              MQTT: brokers keep it
 *              type = "application/json" } POST: its Content-Type
 *
 * Whom it is told is the configuration's alone: no answer names a host. An answer counts when all
 * of it is right. A failure is INVALID and doesn't count for the parking of a script: what is told
 * of uploads may not keep rows or uploads waiting. It may be asked again for the same snapshots, so
 * it should say what is so and remember nothing: what it writes into a store stays, also when it
 * fails.
 */
#pragma once

#include "script/script.h"

enum {
    TN_UPLOADED_PAYLOAD_MAX = 8192, /* bytes */
    TN_UPLOADED_TOPIC_MAX = 512,
    TN_UPLOADED_TYPE_MAX = 100,
    TN_UPLOADED_ROOM = TN_UPLOADED_PAYLOAD_MAX + TN_UPLOADED_TOPIC_MAX + TN_UPLOADED_TYPE_MAX + 1,
};

/* What a script sees; the names are the same. */
struct tn_uploaded_event {
    const char *lake;
    const char *table;
    int64_t first;     /* of those that were not told of yet */
    int64_t snapshot;  /* the newest that the lake has */
    int64_t now_ms;    /* since 1970, UTC */
    const char *clock; /* "synced", "unset" or "stepped" */
};

/* Views into the room. */
struct tn_uploaded_message {
    bool none; /* nothing is to be told */
    bool retain;
    struct tn_bytes payload;
    struct tn_bytes topic; /* no data: none was said; likewise: */
    const char *type;      /* NULL */
};

/* The script has an `uploaded`; `room` has TN_UPLOADED_ROOM bytes and is begun anew. CANCELED: the
 * script is parked for what its other handlers did. */
TN_MUST_USE tn_rc tn_script_uploaded(struct tn_script *script,
                                     const struct tn_uploaded_event *event,
                                     struct tn_uploaded_message *message, struct tn_buf *room,
                                     struct tn_err *err);
