#include "ingest/mqtt_session_private.h"

#include "base/check.h"

enum { HEX_DIGITS = 8, ID_DIGITS_MAX = 5 };

uint32_t tn_mqtt_known_slots(uint32_t known_max)
{
    uint32_t slots = 8;
    while (slots < 2 * known_max) {
        slots *= 2;
    }
    return slots;
}

/* Brokers count ids up, so the id itself is as good as a hash. */
static uint32_t home_of(const struct tn_mqtt_session *s, uint16_t id)
{
    return id & (s->slot_count - 1);
}

static uint32_t next_slot(const struct tn_mqtt_session *s, uint32_t slot)
{
    return (slot + 1) & (s->slot_count - 1);
}

/* Where `id` is, or the free slot where it would be. */
static uint32_t slot_of(const struct tn_mqtt_session *s, uint16_t id)
{
    uint32_t slot = home_of(s, id);
    while (s->entries[slot].id != 0 && s->entries[slot].id != id) {
        slot = next_slot(s, slot);
    }
    return slot;
}

struct tn_mqtt_entry *tn_mqtt_known_find(const struct tn_mqtt_session *s, uint16_t id)
{
    struct tn_mqtt_entry *entry = &s->entries[slot_of(s, id)];
    return id != 0 && entry->id == id ? entry : NULL;
}

struct tn_mqtt_entry *tn_mqtt_known_add(struct tn_mqtt_session *s, uint16_t id)
{
    TN_CHECK(id != 0);
    TN_CHECK(s->known_count < s->spec->known_max);
    struct tn_mqtt_entry *entry = &s->entries[slot_of(s, id)];
    TN_CHECK(entry->id == 0);
    entry->id = id;
    s->known_count++;
    return entry;
}

/* What stands behind a gap moves into it, unless that would be in front of its home. */
void tn_mqtt_known_remove(struct tn_mqtt_session *s, struct tn_mqtt_entry *entry)
{
    uint32_t mask = s->slot_count - 1;
    uint32_t gap = (uint32_t)(entry - s->entries);
    for (uint32_t slot = next_slot(s, gap); s->entries[slot].id != 0; slot = next_slot(s, slot)) {
        uint32_t home = home_of(s, s->entries[slot].id);
        if (((slot - home) & mask) >= ((slot - gap) & mask)) {
            s->entries[gap] = s->entries[slot];
            gap = slot;
        }
    }
    s->entries[gap] = (struct tn_mqtt_entry){0};
    s->known_count--;
}

void tn_mqtt_known_clear(struct tn_mqtt_session *s)
{
    memset(s->entries, 0, s->slot_count * sizeof *s->entries);
    s->known_count = 0;
    s->reply_count = 0;
}

bool tn_mqtt_known_evict(struct tn_mqtt_session *s)
{
    for (unsigned char qos = 1; qos <= 2; qos++) {
        for (uint32_t i = 0; i < s->slot_count; i++) {
            struct tn_mqtt_entry *entry = &s->entries[i];
            if (entry->id != 0 && entry->stale && entry->qos == qos) {
                s->place += qos == 2; /* what was saved still has it */
                tn_mqtt_known_remove(s, entry);
                return true;
            }
        }
    }
    return false;
}

bool tn_mqtt_drained(const struct tn_mqtt_session *s)
{
    if (!s->draining || s->pings_to_come > 0 || s->reply_count > 0 || !tn_mqtt_connected(s)) {
        return false;
    }
    for (uint32_t i = 0; i < s->slot_count; i++) {
        if (s->entries[i].id != 0 && !s->entries[i].stale) {
            return false;
        }
    }
    return true;
}

void tn_mqtt_known_disconnect(struct tn_mqtt_session *s)
{
    s->reply_count = 0;
    for (uint32_t i = 0; i < s->slot_count; i++) {
        s->entries[i].queued = false;
        s->entries[i].stale = s->entries[i].id != 0;
    }
}

/* ---- what a restart knows ---- */

static void save_one(struct tn_buf *text, uint16_t id, uint32_t hash)
{
    tn_buf_format(text, "%s%u.%08x", text->size > 0 ? " " : "", id, (unsigned)hash);
}

static void save_but(const struct tn_mqtt_session *s, uint16_t id, struct tn_buf *text)
{
    for (uint32_t i = 0; i < s->slot_count; i++) {
        const struct tn_mqtt_entry *entry = &s->entries[i];
        if (entry->qos == 2 && !entry->released && entry->id != id) {
            save_one(text, entry->id, entry->hash);
        }
    }
}

uint64_t tn_mqtt_session_save(const struct tn_mqtt_session *s, struct tn_buf *text)
{
    save_but(s, 0, text);
    return s->place;
}

uint64_t tn_mqtt_session_save_next(const struct tn_mqtt_session *s,
                                   const struct tn_mqtt_event *event, struct tn_buf *text)
{
    const struct tn_mqtt_message *message = &event->message;
    TN_CHECK(event->kind == TN_MQTT_MESSAGE);
    save_but(s, message->id, text);
    if (message->qos == 2) {
        save_one(text, message->id, message->hash);
    }
    return s->place + 1;
}

tn_rc tn_mqtt_session_recall(struct tn_mqtt_session *s, uint16_t id, uint32_t hash, bool partly,
                             struct tn_err *err)
{
    struct tn_mqtt_entry *entry = tn_mqtt_known_find(s, id);
    if (!entry) {
        if (s->known_count == s->spec->known_max) {
            return tn_err_set(err, TN_AGAIN, 0, "more than %u MQTT packet ids to remember",
                              s->spec->known_max);
        }
        entry = tn_mqtt_known_add(s, id);
    }
    *entry =
        (struct tn_mqtt_entry){.hash = hash, .id = id, .qos = 2, .stale = true, .partly = partly};
    s->remembers = true;
    return TN_OK;
}

void tn_mqtt_session_forget(struct tn_mqtt_session *s, uint16_t id)
{
    struct tn_mqtt_entry *entry = tn_mqtt_known_find(s, id);
    if (entry) {
        tn_mqtt_known_remove(s, entry);
    }
}

void tn_mqtt_session_forget_all(struct tn_mqtt_session *s)
{
    tn_mqtt_known_clear(s);
}

/* The lower-case digits that `save` writes; their count, 0 where there are none or too many. */
static size_t read_number(struct tn_bytes text, size_t at, uint32_t base, size_t digits_max,
                          uint32_t *number)
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 0;
    *number = 0;
    while (at + count < text.size) {
        const char *digit = memchr(digits, text.data[at + count], base);
        if (!digit) {
            break;
        }
        if (++count > digits_max) {
            return 0;
        }
        *number = *number * base + (uint32_t)(digit - digits);
    }
    return count;
}

/* "17.0badcafe" at `at`; its size, 0 where it is something else. */
static size_t read_known(struct tn_bytes text, size_t at, uint32_t *id, uint32_t *hash)
{
    size_t size = read_number(text, at, 10, ID_DIGITS_MAX, id);
    size_t dot = at + size;
    if (size == 0 || *id == 0 || *id > UINT16_MAX || dot >= text.size || text.data[dot] != '.') {
        return 0;
    }
    return read_number(text, dot + 1, 16, HEX_DIGITS, hash) == HEX_DIGITS ? size + 1 + HEX_DIGITS
                                                                          : 0;
}

tn_rc tn_mqtt_session_restore(struct tn_mqtt_session *s, struct tn_bytes text, struct tn_err *err)
{
    size_t at = 0;
    while (at < text.size) {
        uint32_t id = 0;
        uint32_t hash = 0;
        size_t size = read_known(text, at, &id, &hash);
        size_t end = at + size;
        bool more = end + 1 < text.size && text.data[end] == ' ';
        if (size == 0 || (end < text.size && !more)) {
            return tn_err_set(err, TN_INVALID, 0,
                              "MQTT session: from byte %zu of %zu: no id that "
                              "tarn wrote",
                              at, text.size);
        }
        tn_rc rc = tn_mqtt_session_recall(s, (uint16_t)id, hash, false, err);
        if (rc) {
            return rc;
        }
        at = end + more;
    }
    s->remembers = true;
    return TN_OK;
}
