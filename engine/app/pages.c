#include "app/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/metrics.h"
#include "app/scripts.h"
#include "schema/value.h"

enum {
    HTTP_OK = 200,
    HTTP_UNAVAILABLE = 503,
};

/* ---- /health, /ready ---- */

struct reasons {
    struct tn_buf *out;
    uint32_t count;
};

static void add_reason(struct reasons *r, const char *what, const char *name, const char *text)
{
    size_t size = strlen(text);
    tn_buf_format(r->out, "%s{\"%s\":", r->count > 0 ? "," : ",\"reasons\":[", what);
    tn_json_string(r->out, tn_bytes_of(name));
    tn_buf_text(r->out, ",\"text\":");
    tn_json_string(r->out, (struct tn_bytes){
                               (const unsigned char *)text,
                               tn_utf8_span((struct tn_bytes){(const unsigned char *)text, size})});
    tn_buf_text(r->out, "}");
    r->count++;
}

static void say_keepers(const struct tn_intake *in, struct reasons *r)
{
    for (uint32_t i = 0; i < in->spec.keeper_count; i++) {
        const char *trouble = tn_status_table_trouble(&in->spec.keepers[i]);
        if (trouble) {
            add_reason(r, "table", in->spec.keepers[i].name, trouble);
        }
    }
}

static void say_source(void *user, const struct tn_source_status *status)
{
    if (status->trouble) {
        add_reason(user, "source", status->name, status->trouble);
    }
}

static void say_lakes(const struct tn_lakes *lakes, struct reasons *r)
{
    char text[TN_ERR_TEXT_SIZE];
    char whose[2 * TN_LAKES_CONSUMER_SIZE + TN_ERR_TEXT_SIZE];
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        const struct tn_lakes_mirror *m = &lakes->mirrors[i];
        const char *trouble = tn_lakes_trouble(lakes, m, text, sizeof text);
        if (trouble) {
            (void)snprintf(whose, sizeof whose, "%s: %s", m->keeper->name, trouble);
            add_reason(r, "lake", m->lake->config->name, whose);
        }
    }
}

static int fill_health(void *user, struct tn_buf *out)
{
    struct tn_pages *pages = user;
    const struct tn_intake *in = pages->of.intake;
    const char *journal = tn_status_journal_trouble(in);
    const char *reload = tn_status_reload_trouble(pages->of.reload);
    enum tn_health health = tn_status_health(&pages->of);
    struct tn_buf text;
    struct reasons reasons = {.out = &text};
    tn_buf_init(&text, pages->text, sizeof pages->text);
    say_keepers(in, &reasons);
    tn_sources_each(pages->of.sources, say_source, &reasons);
    say_lakes(pages->of.lakes, &reasons);
    if (journal) {
        add_reason(&reasons, "table", "", journal);
    }
    if (reload) {
        add_reason(&reasons, "reload", pages->of.config->path, reload);
    }
    tn_buf_text(&text, reasons.count > 0 ? "]" : "");
    tn_buf_format(out, "{\"status\":\"%s\"", tn_health_text(health));
    if (!text.overflow) {
        tn_buf_append(out, pages->text, text.size);
    }
    tn_buf_text(out, "}\n");
    return health == TN_HEALTH_FAILING ? HTTP_UNAVAILABLE : HTTP_OK;
}

static int fill_ready(void *user, struct tn_buf *out)
{
    const struct tn_intake *in = ((const struct tn_pages *)user)->of.intake;
    bool ready = tn_intake_ready(in) && !in->stopping;
    tn_buf_format(out, "{\"ready\":%s}\n", ready ? "true" : "false");
    return ready ? HTTP_OK : HTTP_UNAVAILABLE;
}

/* ---- /status ---- */

static bool put_status(void *user, uint32_t index, struct tn_buf *out)
{
    return tn_status_page(&((const struct tn_pages *)user)->of, index, out);
}

/* ---- /reload ---- */

static int fill_reload(void *user, struct tn_buf *out)
{
    const struct tn_status_spec *of = &((const struct tn_pages *)user)->of;
    const struct tn_reload *r = of->reload;
    const char *trouble = tn_status_reload_trouble(r);
    bool ready = tn_intake_ready(of->intake) && !of->intake->stopping;
    tn_buf_format(out,
                  "{\"reload\":%" PRIu64 ",\"answered\":%" PRIu64 ",\"begun_ms\":%" PRId64
                  ",\"ready\":%d",
                  r->asked, r->answered, of->begun_ms, ready);
    if (trouble) {
        tn_buf_text(out, ",\"trouble\":");
        tn_json_string(out, tn_bytes_of(trouble));
    }
    tn_buf_text(out, "}\n");
    return HTTP_OK;
}

static int ask_reload(void *user, struct tn_bytes query, struct tn_bytes body, struct tn_buf *out)
{
    struct tn_reload *r = ((struct tn_pages *)user)->of.reload;
    (void)body;
    (void)(tn_job_number(query, "look") == 1 ? tn_reload_look(r) : tn_reload_ask(r));
    return fill_reload(user, out);
}

/* ---- /shadow ---- */

static int ask_shadow(void *user, struct tn_bytes query, struct tn_bytes body, struct tn_buf *out)
{
    struct tn_pages *pages = user;
    struct tn_tee *tee = &pages->jobs->spec.intake->tee;
    const char *refusal = pages->of.reload->refusal;
    struct tn_err err = {.text = ""};
    (void)body;
    if (tn_job_number(query, "end") == 1) {
        tn_tee_close(tee);
    } else if (!refusal && tn_tee_open(tee, pages->of.config->warehouse, &err) != TN_OK) {
        refusal = err.text;
    }
    tn_buf_format(out, "{\"sent\":%" PRIu64 ",\"left_out\":%" PRIu64 ",\"left_out_rows\":%" PRIu64,
                  tee->sent, tee->left_out, tee->left_out_rows);
    if (refusal) {
        tn_buf_text(out, ",\"trouble\":");
        tn_json_string(out, tn_bytes_of(refusal));
    }
    tn_buf_text(out, "}\n");
    return HTTP_OK;
}

static bool put_scripts(void *user, uint32_t index, struct tn_buf *out)
{
    return tn_scripts_page(((const struct tn_pages *)user)->of.reload, index, out);
}

/* ---- /job ---- */

static int ask_job(void *user, struct tn_bytes query, struct tn_bytes body, struct tn_buf *out)
{
    (void)body;
    return tn_jobs_post(((struct tn_pages *)user)->jobs, query, out);
}

static int fill_job(void *user, struct tn_bytes query, struct tn_bytes body, struct tn_buf *out)
{
    (void)body;
    return tn_jobs_get(((struct tn_pages *)user)->jobs, query, out);
}

/* ---- /offer ---- */

static int ask_offer(void *user, struct tn_bytes query, struct tn_bytes body, struct tn_buf *out)
{
    return tn_offers_post(((struct tn_pages *)user)->jobs->spec.intake, query, body, out);
}

static int fill_offer(void *user, struct tn_bytes query, struct tn_bytes body, struct tn_buf *out)
{
    (void)body;
    return tn_offers_get(((const struct tn_pages *)user)->jobs->spec.intake, query, out);
}

/* ---- /metrics ---- */

static bool put_metrics(void *user, uint32_t index, struct tn_buf *out)
{
    return tn_metrics_part(&((const struct tn_pages *)user)->of, index, out);
}

void tn_pages_init(struct tn_pages *pages, const struct tn_status_spec *of, struct tn_jobs *jobs)
{
    static const char json[] = "application/json";
    static const char text[] = "text/plain; version=0.0.4";
    *pages = (struct tn_pages){
        .of = *of,
        .jobs = jobs,
        .pages = {{.path = "/health", .type = json, .open = true, .fill = fill_health},
                  {.path = "/ready", .type = json, .open = true, .fill = fill_ready},
                  {.path = "/status", .type = json, .part = put_status},
                  {.path = "/metrics", .type = text, .part = put_metrics},
                  {.path = "/reload", .type = json, .fill = fill_reload},
                  {.path = "/reload", .type = json, .post = true, .ask = ask_reload},
                  {.path = "/shadow", .type = "text/plain", .part = put_scripts},
                  {.path = "/shadow", .type = json, .post = true, .ask = ask_shadow},
                  {.path = TN_JOB_PAGE, .type = json, .ask = fill_job},
                  {.path = TN_JOB_PAGE, .type = json, .post = true, .ask = ask_job},
                  {.path = TN_OFFER_PAGE, .type = json, .ask = fill_offer},
                  {.path = TN_OFFER_PAGE, .type = json, .post = true, .ask = ask_offer}}};
    for (int i = 0; i < TN_PAGES_COUNT + TN_PAGES_OWN; i++) {
        pages->pages[i].user = pages;
    }
}
