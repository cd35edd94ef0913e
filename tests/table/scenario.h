/* scenario: a tiny random table, fixed by its seed: its options, the rows that are put into it, and
 * a model of what they make.
 *
 *     rows 0..row_count-1, cuts at some of them; the position "r" says that rows 0..r-1 are in.
 *     So a snapshot at position r must hold exactly the fold of rows 0..r-1.
 *
 * Columns: p INT, k BIGINT, s INT, v STRING. The key is k, or p and k. Scenarios of
 * bed_scenario_init keep the newest row of a key; those of bed_scenario_init_merging have any merge
 * engine and changelog producer. There the model is the same whenever rows meet: nothing is deleted
 * where older values would show again.
 */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "schema/options.h"

enum {
    BED_KEYS = 12,
    BED_ROWS_MAX = 1024,
    BED_ROUNDS_MAX = 16,
    BED_VALUE_MAX = 400, /* bytes of a text */
};

struct bed_row {
    int32_t key;
    int32_t partition;
    int32_t sequence;
    uint32_t value;
    bool sequence_null; /* partial-update and aggregation only */
    bool value_null;    /* likewise */
    bool deletes;
};

enum bed_lives {
    BED_LIVES_ON, /* one process writes all of it */
    BED_STARTS,   /* a process a commit */
    BED_NAMES,    /* likewise, and each names its commit: --user, --commit-id */
};

struct bed_scenario {
    uint64_t seed;
    int32_t buckets;
    bool partitioned;
    bool sequenced;
    bool keyed; /* false: an append table */
    bool write_only;
    enum bed_lives lives;
    bool local_merge;  /* rows of a key are merged before anything is told of them */
    bool deduplicates; /* changelogs don't tell of rows that stay as they are */
    bool gentle;       /* changes may be told some commits later */
    uint32_t
        full_every; /* rounds from one full compaction to the next, which tells; 0: none is due */
    enum tn_merge_engine engine;
    enum tn_changelog_producer producer;
    uint32_t row_count;
    uint32_t cut_count;
    uint32_t cuts[BED_ROUNDS_MAX]; /* rows before each; the last is row_count */
    char schema[2048];             /* what the user said */
    struct bed_row rows[BED_ROWS_MAX];
};

static const char bed_schema_format[] =
    "{\"fields\":[{\"name\":\"p\",\"type\":\"INT\"},{\"name\":\"k\",\"type\":\"BIGINT\"},"
    "{\"name\":\"s\",\"type\":\"INT\"},{\"name\":\"v\",\"type\":\"STRING\"}],"
    "\"partitionKeys\":[%s],\"primaryKeys\":[%s],\"options\":{\"file.format\":\"avro\",\"bucket\":"
    "\"%d\",%s%s%s"
    "\"target-file-size\":\"%s\",\"num-sorted-run.compaction-trigger\":\"%d\","
    "\"num-sorted-run.stop-trigger\":\"%d\",\"snapshot.num-retained.min\":\"1\","
    "\"snapshot.num-retained.max\":\"%d\",\"snapshot.expire.limit\":\"%d\","
    "\"manifest.merge-min-count\":\"%d\",\"manifest.target-file-size\":\"%s\","
    "\"manifest.full-compaction-threshold-size\":\"%s\"}}";

static __attribute__((unused, noinline, format(printf, 2, 3))) void
bed_scenario_option(struct bed_scenario *s, const char *format, ...)
{
    va_list args;
    size_t length = strlen(s->schema) - 2;
    CHECK(strcmp(s->schema + length, "}}") == 0);
    va_start(args, format);
    int added = vsnprintf(s->schema + length, sizeof s->schema - length, format, args);
    va_end(args);
    CHECK(added > 0 && length + (size_t)added + 3 <= sizeof s->schema);
    memcpy(s->schema + length + added, "}}", 3);
}

static __attribute__((unused, noinline)) void bed_scenario_options(struct bed_scenario *s,
                                                                   uint64_t *random)
{
    const char *keys = s->partitioned ? "\"p\",\"k\"" : "\"k\"";
    static const char *const limits[] = {
        "1 b\"", "4 kb\"",
        "10 kb\",\"compaction.offpeak.start.hour\":\"22\",\"compaction.offpeak.end.hour\":\"9\","
        "\"compaction.offpeak-ratio\":\"50\""};
    int trigger = 1 + (int)random_below(random, 3);
    (void)snprintf(s->schema, sizeof s->schema, bed_schema_format, s->partitioned ? "\"p\"" : "",
                   s->keyed ? keys : "", s->buckets, s->keyed ? "" : "\"bucket-key\":\"k\",",
                   s->sequenced ? "\"sequence.field\":\"s\"," : "",
                   random_below(random, 5) == 0 && s->keyed ? "\"commit.force-compact\":\"true\","
                                                            : "",
                   random_below(random, 2) == 0 ? "2 kb" : "1 mb", trigger,
                   trigger + (int)random_below(random, 3), 1 + (int)random_below(random, 3),
                   1 + (int)random_below(random, 4), 2 + (int)random_below(random, 3),
                   random_below(random, 2) == 0 ? "1 kb" : "8 mb",
                   random_below(random, 2) == 0 ? "1 kb" : "16 mb");
    uint32_t limit = random_below(random, 6);
    if (limit < sizeof limits / sizeof limits[0]) {
        bed_scenario_option(s, ",\"tarn.compaction.unit-size-max\":\"%s", limits[limit]);
    }
}

/* With a sequence field nothing is deleted: what a late row finds after a delete depends on when it
 * was compacted, in Paimon, too. */
static __attribute__((unused, noinline)) void bed_scenario_init(struct bed_scenario *s,
                                                                uint64_t seed, uint32_t rounds)
{
    uint64_t random = seed;
    memset(s, 0, sizeof *s);
    check_seed = seed;
    s->seed = seed;
    s->cut_count = rounds;
    s->buckets = 1 + (int32_t)random_below(&random, 3);
    s->partitioned = random_below(&random, 3) == 0;
    s->keyed = random_below(&random, 6) != 0;
    s->sequenced = s->keyed && random_below(&random, 3) == 0;
    bed_scenario_options(s, &random);
    uint32_t rows_max = 1 + random_below(&random, 12);
    for (uint32_t r = 0; r < rounds; r++) {
        s->row_count += 1 + random_below(&random, rows_max);
        s->cuts[r] = s->row_count;
    }
    CHECK(rounds <= BED_ROUNDS_MAX && s->row_count <= BED_ROWS_MAX);
    for (uint32_t i = 0; i < s->row_count; i++) {
        struct bed_row *row = &s->rows[i];
        row->key = s->keyed ? (int32_t)random_below(&random, BED_KEYS) : (int32_t)i;
        row->partition = (int32_t)random_below(&random, 2);
        row->sequence = (int32_t)random_below(&random, 50);
        row->value = (uint32_t)random_next(&random);
        row->deletes = s->keyed && !s->sequenced && random_below(&random, 4) == 0;
    }
}

/* Nothing expires by number. */
static __attribute__((unused, noinline)) void bed_scenario_keep_snapshots(struct bed_scenario *s)
{
    static const char option[] = "\"snapshot.num-retained.max\":\"";
    char *at = strstr(s->schema, option);
    size_t length = strlen(s->schema);
    CHECK(at && length + 3 <= sizeof s->schema);
    at += sizeof option - 1;
    memmove(at + 2, at, strlen(at) + 1);
    memcpy(at, "99", 2);
}

/* ---- any engine and producer ---- */

static __attribute__((unused, noinline)) void bed_scenario_engine(struct bed_scenario *s,
                                                                  uint64_t *random)
{
    bool deletes = false;
    switch (s->engine) {
    case TN_MERGE_DEDUPLICATE:
        return;
    case TN_MERGE_PARTIAL_UPDATE:
        deletes = random_below(random, 2) == 0;
        bed_scenario_option(s, ",\"merge-engine\":\"partial-update\"%s",
                            deletes ? ",\"partial-update.remove-record-on-delete\":\"true\"" : "");
        break;
    case TN_MERGE_AGGREGATION:
        bed_scenario_option(s, ",\"merge-engine\":\"aggregation\","
                               "\"fields.s.aggregate-function\":\"sum\"");
        break;
    case TN_MERGE_FIRST_ROW:
        bed_scenario_option(s, ",\"merge-engine\":\"first-row\"");
        break;
    }
    for (uint32_t i = 0; i < s->row_count; i++) {
        struct bed_row *row = &s->rows[i];
        bool nulls = !deletes && s->engine != TN_MERGE_FIRST_ROW;
        row->deletes = row->deletes && deletes;
        row->sequence_null = nulls && random_below(random, 3) == 0;
        row->value_null = nulls && random_below(random, 3) == 0;
    }
}

static __attribute__((unused, noinline)) void bed_scenario_producer(struct bed_scenario *s,
                                                                    uint64_t *random)
{
    switch (s->producer) {
    case TN_CHANGELOG_NONE:
        return;
    case TN_CHANGELOG_INPUT:
        bed_scenario_option(s, ",\"changelog-producer\":\"input\"");
        return;
    case TN_CHANGELOG_LOOKUP: {
        bool waits = random_below(random, 3) != 0;
        s->gentle = random_below(random, 4) == 0;
        bed_scenario_option(s,
                            ",\"changelog-producer\":\"lookup\",\"lookup-wait\":\"%s\","
                            "\"lookup-compact\":\"%s\"",
                            waits ? "true" : "false", s->gentle ? "gentle" : "radical");
        break;
    }
    case TN_CHANGELOG_FULL_COMPACTION:
        s->full_every = 1 + random_below(random, 3);
        bed_scenario_option(s,
                            ",\"changelog-producer\":\"full-compaction\","
                            "\"full-compaction.delta-commits\":\"%u\"",
                            s->full_every);
        break;
    }
    s->deduplicates = random_below(random, 2) == 0;
    bed_scenario_option(s, ",\"changelog-producer.row-deduplicate\":\"%s\"",
                        s->deduplicates ? "true" : "false");
}

/* A table without keys stays as it is; so does what orders the rows of one that has a sequence
 * field: other engines would depend on when late rows meet. */
static __attribute__((unused, noinline)) void
bed_scenario_init_merging(struct bed_scenario *s, uint64_t seed, uint32_t rounds)
{
    uint64_t random = seed ^ 0x6d65726765; /* the other scenario's table is another one */
    bed_scenario_init(s, seed, rounds);
    if (!s->keyed) {
        return;
    }
    s->engine =
        s->sequenced ? TN_MERGE_DEDUPLICATE : (enum tn_merge_engine)random_below(&random, 4);
    s->producer = (enum tn_changelog_producer)random_below(&random, 4);
    if (s->engine == TN_MERGE_FIRST_ROW && s->producer != TN_CHANGELOG_NONE) {
        s->producer = TN_CHANGELOG_LOOKUP;
    }
    bed_scenario_engine(s, &random);
    bed_scenario_producer(s, &random);
    s->local_merge = random_below(&random, 4) == 0;
    if (s->local_merge) {
        bed_scenario_option(s, ",\"local-merge-buffer-size\":\"64 kb\"");
    }
    if (s->producer < TN_CHANGELOG_FULL_COMPACTION && random_below(&random, 4) == 0) {
        bed_scenario_option(s, ",\"force-lookup\":\"true\"");
    }
    s->write_only = random_below(&random, 6) == 0;
    if (s->write_only) {
        bed_scenario_option(s, ",\"write-only\":\"true\"");
    } else {
        s->lives = (enum bed_lives)random_below(&random, 3);
    }
}

/* Whether nothing is untold when a writer has ended whose last round had this number. */
static __attribute__((unused, noinline)) bool bed_tells(const struct bed_scenario *s, int64_t round)
{
    bool due = s->full_every > 0 && round % s->full_every == 0;
    return !s->write_only && (s->producer == TN_CHANGELOG_LOOKUP ? !s->gentle : due);
}

/* The text of a row: its number decides content and length. */
static __attribute__((unused, noinline)) struct tn_bytes bed_text(uint32_t value,
                                                                  char text[BED_VALUE_MAX])
{
    uint64_t random = value;
    uint32_t size = 12 + (value % 4 == 0 ? value / 4 % (BED_VALUE_MAX - 12) : 0);
    for (uint32_t i = 0; i < size; i++) {
        text[i] = (char)('a' + random_below(&random, 26));
    }
    return (struct tn_bytes){(const unsigned char *)text, size};
}

/* ---- the model ---- */

enum { BED_SLOTS = 2 * BED_ROWS_MAX };

/* Append tables have a key a row, too: its number. */
struct bed_state {
    bool present[BED_SLOTS];
    struct bed_row rows[BED_SLOTS];
};

static __attribute__((unused, noinline)) uint32_t bed_slot(const struct bed_scenario *s,
                                                           int64_t key, int32_t partition)
{
    CHECK(key >= 0 && key < BED_ROWS_MAX);
    return (uint32_t)key + (s->partitioned && partition ? BED_ROWS_MAX : 0);
}

/* One more row of its key. */
static __attribute__((unused, noinline)) void bed_merge(const struct bed_scenario *s,
                                                        struct bed_row *is, bool *present,
                                                        const struct bed_row *row)
{
    bool merges = *present && !row->deletes;
    if (merges && s->engine == TN_MERGE_FIRST_ROW) {
        return;
    }
    if (merges && s->sequenced && row->sequence < is->sequence) {
        return;
    }
    struct bed_row was = *is;
    *is = *row;
    *present = !row->deletes;
    if (!merges || s->engine == TN_MERGE_DEDUPLICATE) {
        return;
    }
    if (row->value_null) {
        is->value = was.value;
        is->value_null = was.value_null;
    }
    if (row->sequence_null) {
        is->sequence = was.sequence;
        is->sequence_null = was.sequence_null;
    } else if (s->engine == TN_MERGE_AGGREGATION && !was.sequence_null) {
        is->sequence += was.sequence;
    }
}

static __attribute__((unused, noinline)) void bed_fold(const struct bed_scenario *s, uint32_t count,
                                                       struct bed_state *state)
{
    memset(state->present, 0, sizeof state->present);
    for (uint32_t i = 0; i < count; i++) {
        const struct bed_row *row = &s->rows[i];
        uint32_t slot = bed_slot(s, row->key, row->partition);
        bed_merge(s, &state->rows[slot], &state->present[slot], row);
    }
}

static __attribute__((unused, noinline)) bool bed_is_cut(const struct bed_scenario *s, uint32_t row)
{
    for (uint32_t i = 0; i < s->cut_count; i++) {
        if (s->cuts[i] == row) {
            return true;
        }
    }
    return row == 0;
}
