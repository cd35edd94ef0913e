#include "ingest/mqtt_topic.h"

static const char share[] = "$share/";

/* ---- texts ---- */

/* The second byte of a character is narrower where the first would allow a longer form than needed,
 * a surrogate, or more than U+10FFFF. Source: Unicode, table 3-7. */
static bool second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return second >= 0x80 && second <= 0xBF;
    }
}

static size_t length_of(unsigned char first)
{
    if (first < 0x80) {
        return first != 0;
    }
    if (first < 0xC2 || first > 0xF4) {
        return 0;
    }
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

size_t tn_mqtt_text_valid(struct tn_bytes text)
{
    size_t at = 0;
    while (at < text.size) {
        const unsigned char *c = text.data + at;
        size_t length = length_of(c[0]);
        if (length == 0 || length > text.size - at) {
            return at;
        }
        if (length > 1 && !second_fits(c[0], c[1])) {
            return at;
        }
        for (size_t i = 2; i < length; i++) {
            if ((c[i] & 0xC0) != 0x80) {
                return at;
            }
        }
        at += length;
    }
    return at;
}

static tn_rc check_text(const char *what, struct tn_bytes text, struct tn_err *err)
{
    if (text.size == 0 || text.size > TN_MQTT_TEXT_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "%s of %zu bytes: it has 1 to %d", what, text.size,
                          TN_MQTT_TEXT_MAX);
    }
    size_t valid = tn_mqtt_text_valid(text);
    if (valid < text.size) {
        return tn_err_set(err, TN_INVALID, 0, "%s: byte %zu is no UTF-8, or a zero", what, valid);
    }
    return TN_OK;
}

tn_rc tn_mqtt_topic_check(struct tn_bytes topic, struct tn_err *err)
{
    tn_rc rc = check_text("topic", topic, err);
    if (rc) {
        return rc;
    }
    for (size_t i = 0; i < topic.size; i++) {
        if (topic.data[i] == '+' || topic.data[i] == '#') {
            return tn_err_set(err, TN_INVALID, 0, "topic: wildcard %c at byte %zu", topic.data[i],
                              i);
        }
    }
    return TN_OK;
}

/* ---- filters ---- */

static bool begins(struct tn_bytes text, const char *with)
{
    size_t size = strlen(with);
    return text.size >= size && memcmp(text.data, with, size) == 0;
}

/* Bytes of "$share/group/"; 0 where there is none, SIZE_MAX where it is not whole. */
static size_t share_size(struct tn_bytes filter)
{
    if (!begins(filter, share)) {
        return 0;
    }
    size_t begin = sizeof share - 1;
    for (size_t i = begin; i < filter.size; i++) {
        if (filter.data[i] == '+' || filter.data[i] == '#') {
            return SIZE_MAX;
        }
        if (filter.data[i] == '/') {
            return i > begin && i + 1 < filter.size ? i + 1 : SIZE_MAX;
        }
    }
    return SIZE_MAX;
}

/* A wildcard fills its part, and # is the last. */
static bool wildcard_fits(struct tn_bytes filter, size_t at)
{
    bool opens = at == 0 || filter.data[at - 1] == '/';
    bool last = at + 1 == filter.size;
    return opens && (last || (filter.data[at] == '+' && filter.data[at + 1] == '/'));
}

tn_rc tn_mqtt_filter_check(struct tn_bytes filter, struct tn_err *err)
{
    tn_rc rc = check_text("filter", filter, err);
    if (rc) {
        return rc;
    }
    size_t begin = share_size(filter);
    if (begin == SIZE_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "filter: it says $share/ but not GROUP/FILTER");
    }
    struct tn_bytes plain = {filter.data + begin, filter.size - begin};
    for (size_t i = 0; i < plain.size; i++) {
        bool wildcard = plain.data[i] == '+' || plain.data[i] == '#';
        if (wildcard && !wildcard_fits(plain, i)) {
            return tn_err_set(err, TN_INVALID, 0, "filter: %c at byte %zu is no part of its own%s",
                              plain.data[i], begin + i, plain.data[i] == '#' ? " at the end" : "");
        }
    }
    return TN_OK;
}

/* The part that begins at `at`. */
static struct tn_bytes part_at(struct tn_bytes text, size_t at)
{
    const unsigned char *begin = text.data + at;
    const unsigned char *slash = at < text.size ? memchr(begin, '/', text.size - at) : NULL;
    return (struct tn_bytes){begin, slash ? (size_t)(slash - begin) : text.size - at};
}

static bool is(struct tn_bytes part, char wildcard)
{
    return part.size == 1 && part.data[0] == (unsigned char)wildcard;
}

/* Without what makes it a shared one. */
static struct tn_bytes plain_of(struct tn_bytes filter)
{
    size_t shared = share_size(filter);
    size_t begin = shared == SIZE_MAX ? 0 : shared;
    return (struct tn_bytes){filter.data + begin, filter.size - begin};
}

static bool begins_wild(struct tn_bytes filter)
{
    return begins(filter, "+") || begins(filter, "#");
}

/* Past its last part a text stands one behind its end. */
static bool is_over(struct tn_bytes text, size_t at)
{
    return at > text.size;
}

bool tn_mqtt_filters_overlap(struct tn_bytes a, struct tn_bytes b)
{
    size_t i = 0;
    size_t j = 0;
    a = plain_of(a);
    b = plain_of(b);
    if ((begins(a, "$") && begins_wild(b)) || (begins(b, "$") && begins_wild(a))) {
        return false;
    }
    while (!is_over(a, i) && !is_over(b, j)) {
        struct tn_bytes x = part_at(a, i);
        struct tn_bytes y = part_at(b, j);
        if (is(x, '#') || is(y, '#')) {
            return true;
        }
        if (!is(x, '+') && !is(y, '+') && !tn_bytes_equal(x, y)) {
            return false;
        }
        i += x.size + 1;
        j += y.size + 1;
    }
    return (is_over(a, i) || is(part_at(a, i), '#')) && (is_over(b, j) || is(part_at(b, j), '#'));
}

bool tn_mqtt_topic_matches(struct tn_bytes filter, struct tn_bytes topic)
{
    size_t f = 0;
    size_t t = 0;
    filter = plain_of(filter);
    if (begins(topic, "$") && begins_wild(filter)) {
        return false;
    }
    while (!is_over(filter, f)) {
        struct tn_bytes want = part_at(filter, f);
        if (is(want, '#')) {
            return true;
        }
        if (is_over(topic, t)) {
            return false;
        }
        struct tn_bytes have = part_at(topic, t);
        if (!is(want, '+') && !tn_bytes_equal(want, have)) {
            return false;
        }
        f += want.size + 1;
        t += have.size + 1;
    }
    return is_over(topic, t);
}

uint32_t tn_mqtt_topic_parts(struct tn_bytes topic, struct tn_bytes *parts, uint32_t parts_max)
{
    uint32_t count = 0;
    for (size_t at = 0; at <= topic.size;) {
        struct tn_bytes part = part_at(topic, at);
        if (count < parts_max) {
            parts[count] = part;
        }
        count++;
        at += part.size + 1;
    }
    return count;
}
