#include "app/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/http.h"
#include "schema/value.h"

const char *const tn_job_values[TN_JOB_VERBS][TN_JOB_VALUES] = {
    {"buckets", "compactions", "bytes_written", "snapshot", "behind", "behind_rc"},
    {"snapshots", "data_files", "metadata_files", "earliest", "tags", "changelogs"},
    {"snapshot"},
};

static const char *const verbs[TN_JOB_VERBS] = {"compact", "expire", "commit"};

enum { NUMBER_SIZE = 24 };

const char *tn_job_verb_name(enum tn_job_verb verb)
{
    return verbs[verb];
}

/* ---- members ---- */

static bool is_plain(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '_' || byte == '-';
}

void tn_job_put_text(struct tn_buf *query, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        tn_buf_format(query, is_plain(*at) ? "%c" : "%%%02X", *at);
    }
}

static void put_number(struct tn_buf *query, const char *name, int64_t number)
{
    if (number >= 0) {
        tn_buf_format(query, "&%s=%" PRId64, name, number);
    }
}

/* The next byte, which may be written as "%2E"; -1: that isn't any. */
static int next_byte(struct tn_bytes *text)
{
    unsigned char byte = *text->data++;
    text->size--;
    if (byte != '%') {
        return byte;
    }
    if (text->size < 2) {
        return -1;
    }
    int high = tn_http_hex(text->data[0]);
    int low = tn_http_hex(text->data[1]);
    text->data += 2;
    text->size -= 2;
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static bool decode(struct tn_bytes text, char *value, size_t size)
{
    size_t at = 0;
    while (text.size > 0) {
        int byte = next_byte(&text);
        if (byte <= 0 || at + 1 >= size) {
            return false;
        }
        value[at++] = (char)byte;
    }
    value[at] = 0;
    return true;
}

bool tn_job_member(struct tn_bytes query, const char *name, char *value, size_t size)
{
    size_t name_size = strlen(name);
    while (query.size > 0) {
        const unsigned char *end = memchr(query.data, '&', query.size);
        size_t member = end ? (size_t)(end - query.data) : query.size;
        if (member > name_size && query.data[name_size] == '=' &&
            memcmp(query.data, name, name_size) == 0) {
            return decode((struct tn_bytes){query.data + name_size + 1, member - name_size - 1},
                          value, size);
        }
        query.data += member + (end != NULL);
        query.size -= member + (end != NULL);
    }
    return false;
}

uint64_t tn_job_number(struct tn_bytes query, const char *name)
{
    char text[NUMBER_SIZE];
    return tn_job_member(query, name, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

static int64_t number_of(struct tn_bytes query, const char *name)
{
    char text[NUMBER_SIZE];
    bool there = tn_job_member(query, name, text, sizeof text);
    return there ? strtoll(text, NULL, 10) : -1;
}

/* ---- a wish ---- */

void tn_job_wish_put(const struct tn_job_wish *wish, struct tn_buf *query)
{
    tn_buf_format(query, "verb=%s&table=", verbs[wish->verb]);
    tn_job_put_text(query, wish->table);
    tn_buf_text(query, wish->full ? "&full=1" : "");
    tn_buf_text(query, wish->dry_run ? "&dry_run=1" : "");
    put_number(query, "retain_max", wish->expiry.retain_max);
    put_number(query, "retain_min", wish->expiry.retain_min);
    put_number(query, "older_ms", wish->expiry.older_ms);
    if (wish->place > 0) {
        tn_buf_format(query, "&place=%" PRIu64, wish->place);
    }
}

tn_rc tn_job_wish_read(struct tn_bytes query, struct tn_job_wish *wish, struct tn_err *err)
{
    char verb[NUMBER_SIZE];
    *wish = (struct tn_job_wish){.full = number_of(query, "full") == 1,
                                 .dry_run = number_of(query, "dry_run") == 1,
                                 .expiry = {.retain_max = number_of(query, "retain_max"),
                                            .retain_min = number_of(query, "retain_min"),
                                            .older_ms = number_of(query, "older_ms")},
                                 .place = tn_job_number(query, "place")};
    if (!tn_job_member(query, "table", wish->table, sizeof wish->table) ||
        !tn_job_member(query, "verb", verb, sizeof verb)) {
        return tn_err_set(err, TN_INVALID, 0, "a job has a verb and a table");
    }
    while (wish->verb < TN_JOB_VERBS && strcmp(verbs[wish->verb], verb) != 0) {
        wish->verb++;
    }
    return wish->verb < TN_JOB_VERBS
               ? TN_OK
               : tn_err_set(err, TN_UNSUPPORTED, 0, "this daemon has no job '%s'", verb);
}

/* ---- an answer ---- */

void tn_job_put_end(struct tn_buf *answer, tn_rc rc, const struct tn_err *err)
{
    if (rc != TN_OK) {
        struct tn_bytes text = tn_bytes_of(err->text);
        text.size = tn_utf8_span(text);
        tn_buf_text(answer, ",\"error\":");
        tn_json_string(answer, text);
    }
    tn_buf_text(answer, "}\n");
}
