#include <stdio.h>

#include "table/fsck_private.h"

static bool is_float(const struct tn_type *type)
{
    return type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE;
}

static bool is_time(const struct tn_type *type)
{
    return type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ;
}

/* ---- cut bounds: `truncate(n)`, and formats that keep milliseconds ---- */

static bool begins(struct tn_bytes text, struct tn_bytes with)
{
    return text.size >= with.size && memcmp(text.data, with.data, with.size) == 0;
}

/* Where the last code point of a text starts; of binaries, the last byte. */
static size_t last_unit(const struct tn_type *type, struct tn_bytes text)
{
    size_t at = text.size - 1;
    while (tn_type_textual(type->kind) && at > 0 && (text.data[at] & 0xc0) == 0x80) {
        at--;
    }
    return at;
}

/* Whether a lower bound was cut from `value`: it begins with the bound. */
static bool low_cut_from(const struct tn_type *type, const struct tn_value *low,
                         const struct tn_value *value)
{
    if (is_time(type)) {
        return low->as.i64 == value->as.i64;
    }
    bool bytes = tn_type_textual(type->kind) || tn_type_binary(type->kind);
    return bytes && low->as.bytes.size > 0 && begins(value->as.bytes, low->as.bytes);
}

/* Whether an upper bound was cut from `value` and rounded up in its last character. */
static bool high_cut_from(const struct tn_type *type, const struct tn_value *high,
                          const struct tn_value *value)
{
    if (is_time(type)) {
        return high->as.i64 == value->as.i64 || high->as.i64 - 1 == value->as.i64;
    }
    if ((!tn_type_textual(type->kind) && !tn_type_binary(type->kind)) || high->as.bytes.size == 0) {
        return false;
    }
    struct tn_bytes head = {high->as.bytes.data, last_unit(type, high->as.bytes)};
    return value->as.bytes.size > head.size && begins(value->as.bytes, head);
}

/* ---- values ---- */

static void keep_text(const struct tn_type *type, const struct tn_value *value, char *text,
                      size_t size)
{
    struct tn_buf buf;
    unsigned char whole[256];
    tn_buf_init(&buf, whole, sizeof whole);
    tn_value_format_json(type, value, &buf);
    if (buf.overflow) {
        (void)snprintf(text, size, "a long value");
    } else {
        (void)snprintf(text, size, "%.*s", (int)buf.size, (const char *)buf.data);
    }
}

/* <0, 0, >0; -0.0 and 0.0 are the same here, as some writers take them. */
static int compare(const struct tn_type *type, const struct tn_value *a, const struct tn_value *b)
{
    return is_float(type) ? (a->as.f64 > b->as.f64) - (a->as.f64 < b->as.f64)
                          : tn_value_compare(type, a, b);
}

static bool is_nan(const struct tn_type *type, const struct tn_value *value)
{
    return is_float(type) && value->as.f64 != value->as.f64;
}

static void add_low(struct tn_fsck_claim *claim, const struct tn_value *value)
{
    int order = compare(&claim->type, value, &claim->low);
    if (order < 0 && claim->low_passed[0] == 0) {
        keep_text(&claim->type, value, claim->low_passed, sizeof claim->low_passed);
    }
    claim->low_met = claim->low_met || order == 0 ||
                     (order > 0 && low_cut_from(&claim->type, &claim->low, value));
}

static void add_high(struct tn_fsck_claim *claim, const struct tn_value *value)
{
    int order = compare(&claim->type, value, &claim->high);
    if (order > 0 && claim->high_passed[0] == 0) {
        keep_text(&claim->type, value, claim->high_passed, sizeof claim->high_passed);
    }
    claim->high_met = claim->high_met || order == 0 ||
                      (order < 0 && high_cut_from(&claim->type, &claim->high, value));
}

void tn_fsck_claim_add(struct tn_fsck_claim *claim, const struct tn_value *value)
{
    if (value->null) {
        claim->nulls++;
        return;
    }
    claim->values++;
    if (is_nan(&claim->type, value)) {
        claim->nan = true;
        return;
    }
    if (!claim->low.null && !is_nan(&claim->type, &claim->low)) {
        add_low(claim, value);
    }
    if (!claim->high.null && !is_nan(&claim->type, &claim->high)) {
        add_high(claim, value);
    }
}

/* ---- the verdict ---- */

static tn_rc check_bound(struct tn_fsck *f, const struct tn_fsck_claim *claim, bool low,
                         const char *file, struct tn_err *err)
{
    const struct tn_value *bound = low ? &claim->low : &claim->high;
    const char *passed = low ? claim->low_passed : claim->high_passed;
    bool met = low ? claim->low_met : claim->high_met;
    char text[48];
    if (bound->null) {
        return TN_OK;
    }
    keep_text(&claim->type, bound, text, sizeof text);
    const char *name = low ? "min" : "max";
    if (claim->values == 0) {
        return tn_fsck_problem(f, err, file, "%s of %s: %s %s, yet the data is all null",
                               claim->kind, claim->name, name, text);
    }
    if (passed[0]) {
        return tn_fsck_problem(f, err, file, "%s of %s: %s %s, the data has %s", claim->kind,
                               claim->name, name, text, passed);
    }
    if (is_nan(&claim->type, bound) ? !claim->nan : !met && !claim->nan) {
        return tn_fsck_problem(f, err, file, "%s of %s: %s %s, which the data doesn't reach",
                               claim->kind, claim->name, name, text);
    }
    return TN_OK;
}

tn_rc tn_fsck_claim_check(struct tn_fsck *f, const struct tn_fsck_claim *claim, const char *file,
                          struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (claim->nested) {
        return TN_OK;
    }
    if (claim->null_count >= 0 && claim->null_count != claim->nulls) {
        rc = tn_fsck_problem(f, err, file, "%s of %s: null count %lld, the data has %lld",
                             claim->kind, claim->name, (long long)claim->null_count,
                             (long long)claim->nulls);
    }
    if (rc == TN_OK && claim->exact && claim->values > 0 && !claim->nan &&
        (claim->low.null || claim->high.null)) {
        rc = tn_fsck_problem(f, err, file, "%s of %s: no min or max", claim->kind, claim->name);
    }
    rc = rc != TN_OK ? rc : check_bound(f, claim, true, file, err);
    return rc != TN_OK ? rc : check_bound(f, claim, false, file, err);
}

bool tn_fsck_claims_load(struct tn_fsck_claim *claims, uint32_t count, const struct tn_stats *stats,
                         struct tn_type *types, struct tn_value *values, struct tn_err *err)
{
    if (stats->null_count_count != count) {
        (void)tn_err_set(err, TN_CORRUPT, 0, "%u null counts, not %u", stats->null_count_count,
                         count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        types[i] = claims[i].type;
        if (claims[i].nested) { /* always NULL; another type than that could not be decoded */
            types[i] = (struct tn_type){.kind = TN_TYPE_VARBINARY, .nullable = true, .length = 1};
        }
    }
    if (tn_binary_to_values(stats->min, types, count, values, err) != TN_OK ||
        tn_binary_to_values(stats->max, types, count, values + count, err) != TN_OK) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        claims[i].low = values[i];
        claims[i].high = values[count + i];
        claims[i].null_count = stats->null_counts[i];
    }
    return true;
}
