#include <inttypes.h>
#include <string.h>

#include "app/shadow_private.h"

enum { TEXT_SIZE = 256 * 1024, VALUE_SIZE_MAX = 200, DIGEST_SHOWN = 8 };

struct report {
    FILE *to;
    uint32_t examples;
    uint64_t keys;
    uint64_t others;
};

/* ---- rows ---- */

static void put_row(const struct tn_shadow_table *t, const struct tn_columns *columns,
                    struct tn_row row, struct tn_buf *out)
{
    if (row.data) {
        tn_row_format_json(&t->layout, columns, row, out);
    } else {
        tn_buf_text(out, "no row");
    }
}

static void put_value(const struct tn_shadow_table *t, struct tn_row row, uint32_t column,
                      struct tn_buf *out)
{
    size_t begin = out->size;
    struct tn_value value;
    tn_row_get(&t->layout, row, column, &value);
    tn_value_format_json(&t->layout.columns[column].type, &value, out);
    if (out->size - begin > VALUE_SIZE_MAX) {
        size_t span = tn_utf8_span((struct tn_bytes){out->data + begin, VALUE_SIZE_MAX});
        out->size = begin + span;
        tn_buf_text(out, "...");
    }
}

/* {"dev":"a"}: n 3 -> 4, temp null -> 21.5 */
static void say_key(const struct tn_shadow_table *t, struct tn_row was, struct tn_row is, FILE *to)
{
    static char text[TEXT_SIZE];
    struct tn_buf out;
    const char *before = ": ";
    tn_buf_init(&out, text, sizeof text);
    put_row(t, &t->reader.schema->primary_keys, was.data ? was : is, &out);
    if (!was.data || !is.data) {
        tn_buf_text(&out, before);
        put_row(t, NULL, was, &out);
        tn_buf_text(&out, " -> ");
        put_row(t, NULL, is, &out);
    }
    for (uint32_t i = 0; was.data && is.data && i < t->layout.column_count; i++) {
        const struct tn_columns one = {&i, 1};
        if (tn_row_compare(&t->layout, one, was, is) != 0) {
            tn_buf_format(&out, "%s%s ", before, t->layout.columns[i].name);
            put_value(t, was, i, &out);
            tn_buf_text(&out, " -> ");
            put_value(t, is, i, &out);
            before = ", ";
        }
    }
    (void)fprintf(to, "    %.*s%s\n", (int)out.size, text, out.overflow ? "..." : "");
}

/* Of a key that one of them knows; `was` is copied, for a look-up holds one row at a time. */
static tn_rc compare_key(struct report *r, struct tn_shadow_table *t, struct tn_row key,
                         struct tn_err *err)
{
    static unsigned char copy[TN_TRIAL_ROW_SIZE_MAX];
    struct tn_row was;
    struct tn_row is;
    tn_rc rc = tn_shadow_now(t, TN_SHADOW_OLD, key, &was, err);
    if (rc == TN_OK && was.size > sizeof copy) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "a row of %u bytes", was.size);
    }
    if (rc == TN_OK && was.data) {
        memcpy(copy, was.data, was.size);
        was.data = copy;
    }
    rc = rc == TN_OK ? tn_shadow_now(t, TN_SHADOW_NEW, key, &is, err) : rc;
    if (rc != TN_OK) {
        return rc;
    }
    bool same =
        was.size == is.size && (!was.data || (is.data && memcmp(was.data, is.data, was.size) == 0));
    r->keys++;
    r->others += !same;
    if (!same && r->others <= r->examples && r->to) {
        say_key(t, was, is, r->to);
    }
    return TN_OK;
}

/* All keys of the old one, then those that only the new one has. */
static tn_rc compare_keys(struct report *r, struct tn_shadow_table *t, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int side = 0; side < TN_SHADOW_SIDES; side++) {
        const struct tn_trial *trial = &t->sides[side].trial;
        for (uint32_t i = 0; rc == TN_OK && i < TN_TRIAL_PLACES; i++) {
            const struct tn_trial_key *key = trial->keys[i];
            if (!key) {
                continue;
            }
            struct tn_row row = {key->row, key->room};
            bool told =
                side == TN_SHADOW_NEW && tn_trial_key_of(&t->sides[TN_SHADOW_OLD].trial, row);
            rc = told ? TN_OK : compare_key(r, t, row, err);
        }
    }
    return rc;
}

/* First counted, then shown: what is most important stands first. */
static tn_rc say_keys(struct tn_shadow_table *t, uint32_t examples, FILE *to, struct tn_err *err)
{
    struct report r = {.to = NULL};
    tn_rc rc = compare_keys(&r, t, err);
    if (rc == TN_OK) {
        (void)fprintf(to, "  %" PRIu64 " of %" PRIu64 " keys would have another row%s\n", r.others,
                      r.keys, r.others > 0 && examples > 0 ? ", as" : "");
        r = (struct report){.to = to, .examples = examples};
        rc = r.examples > 0 ? compare_keys(&r, t, err) : rc;
    }
    return rc;
}

/* ---- figures ---- */

static void say_side(const struct tn_shadow_side *side, const char *name, FILE *to)
{
    const struct tn_trial *trial = &side->trial;
    (void)fprintf(to,
                  "  %s: %.*s: %" PRIu64 " changes of the table, %" PRIu64 " told, %" PRIu64
                  " dead letters%s\n",
                  name, DIGEST_SHOWN, side->script.digest, trial->changed, trial->told, trial->dead,
                  side->parked ? "; it would be parked" : "");
    tn_trial_say_costs(trial, "    ", to);
    for (int i = 0; i < TN_SHADOW_WHYS && side->whys[i].count > 0; i++) {
        (void)fprintf(to, "    %" PRIu64 " dead: %s\n", side->whys[i].count, side->whys[i].text);
    }
    if (side->other_whys > 0) {
        (void)fprintf(to, "    %" PRIu64 " dead for other reasons\n", side->other_whys);
    }
}

static tn_rc say_table(struct tn_shadow_table *t, uint32_t examples, FILE *to, struct tn_err *err)
{
    (void)fprintf(to, "%s: %s\n", t->of->name, t->of->path);
    (void)fprintf(to, "  %" PRIu64 " records, of %" PRIu64 " comes something else\n",
                  t->sides[TN_SHADOW_OLD].trial.records, t->differ);
    if (t->trouble != TN_OK) {
        (void)fprintf(to, "  then no more, and %" PRIu64 " messages not at all: %s\n", t->missed,
                      t->trouble_text.text);
    }
    say_side(&t->sides[TN_SHADOW_OLD], "old", to);
    say_side(&t->sides[TN_SHADOW_NEW], "new", to);
    tn_rc rc = say_keys(t, examples, to, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", t->of->name);
}

static void say_others(const struct tn_shadow *s, FILE *to)
{
    for (const struct tn_scripts_table *of = s->scripts.tables; of; of = of->next) {
        if (!of->stays) {
            (void)fprintf(to, "%s: it isn't in the new configuration\n", of->name);
        } else if (of->schema < 0) {
            (void)fprintf(to, "%s: it is shut in tarn run: nothing to compare\n", of->name);
        }
    }
    if (s->scripts.more > 0) {
        (void)fprintf(to, "new tables, with nothing to compare them with: %" PRIu32 "\n",
                      s->scripts.more);
    }
    if (!s->tables) {
        (void)fputs("no script is another one than tarn run has\n", to);
    }
}

tn_rc tn_shadow_report(struct tn_shadow *s, uint32_t examples, FILE *to, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (struct tn_shadow_table *t = s->tables; rc == TN_OK && t; t = t->next) {
        rc = say_table(t, examples, to, err);
    }
    say_others(s, to);
    if (s->tables) {
        (void)fprintf(
            to, "%.1f s; %" PRIu64 " messages with %" PRIu64 " rows were left out, of all tables\n",
            (double)(s->ended_ms - s->begun_ms) / 1000, s->left_out, s->left_out_rows);
    }
    return rc;
}
