#include "app/offers.h"

#include <inttypes.h>
#include <string.h>

#include "app/control.h"
#include "app/job.h"

enum { INPUT_SIZE = 32 };

static const struct tn_keeper *find(const struct tn_intake *in, const char *table)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        if (strcmp(in->spec.keepers[i].name, table) == 0) {
            return &in->spec.keepers[i];
        }
    }
    return NULL;
}

static tn_rc read_table(const struct tn_intake *in, struct tn_bytes query,
                        char table[TN_JOB_TABLE_SIZE], struct tn_err *err)
{
    bool said = tn_job_member(query, "table", table, TN_JOB_TABLE_SIZE);
    return said && find(in, table)
               ? TN_OK
               : tn_err_set(err, TN_ABSENT, 0, "it is none of tarn run's tables");
}

int tn_offers_get(const struct tn_intake *intake, struct tn_bytes query, struct tn_buf *out)
{
    char table[TN_JOB_TABLE_SIZE];
    struct tn_err err;
    size_t most = intake->hub.size_max;
    tn_rc rc = read_table(intake, query, table, &err);
    tn_buf_format(out, "{\"rc\":%d,\"size_max\":%zu", (int)rc,
                  most < TN_CONTROL_BODY_SIZE ? most : (size_t)TN_CONTROL_BODY_SIZE);
    tn_job_put_end(out, rc, &err);
    return 200;
}

int tn_offers_post(struct tn_intake *intake, struct tn_bytes query, struct tn_bytes body,
                   struct tn_buf *out)
{
    char table[TN_JOB_TABLE_SIZE];
    char input[INPUT_SIZE];
    struct tn_err err;
    struct tn_clock *clock = intake->spec.env->clock;
    struct tn_message message = {.bytes = body,
                                 .source = "write",
                                 .split = tn_job_number(query, "split") == 1,
                                 .cut_size = tn_job_number(query, "cut"),
                                 .received_ms = clock->vtable->now_ms(clock)};
    tn_rc rc = read_table(intake, query, table, &err);
    if (rc == TN_OK) {
        message.table = table;
        rc = tn_job_member(query, "input", input, sizeof input)
                 ? tn_input_parse(input, &message.input, &err)
                 : tn_err_set(&err, TN_INVALID, 0, "it doesn't say what its input is");
    }
    if (rc == TN_OK) {
        rc = tn_hub_offer(&intake->hub, &message, &err);
    }
    tn_buf_format(out, "{\"rc\":%d", (int)rc);
    if (rc == TN_OK) {
        tn_buf_format(out, ",\"place\":%" PRIu64 ",\"rows\":%" PRIu32 ",\"dead\":%" PRIu32,
                      message.place, message.rows, message.dead);
    }
    if (rc == TN_OK && message.left > 0) {
        tn_buf_format(out, ",\"left\":%zu", message.left);
    }
    tn_job_put_end(out, rc, &err);
    return 200;
}
