#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/keeper_private.h"

enum {
    RECORD_BITS = 20, /* of a letter's position: records of one message */
    POSITION_SIZE = TN_JOURNAL_IDENTITY_SIZE + 40,
};

int64_t tn_keeper_letter_position(uint64_t place, uint32_t record)
{
    return (int64_t)(place << RECORD_BITS | (record & ((UINT32_C(1) << RECORD_BITS) - 1)));
}

/* ---- of the journal, and of tracks ---- */

/* "<identity>:<place>", and ":<items>" of it where there are some */
static bool parse_position(const char *text, char identity[TN_JOURNAL_IDENTITY_SIZE],
                           struct tn_keeper_place *at)
{
    size_t size = strcspn(text, ":");
    if (size >= TN_JOURNAL_IDENTITY_SIZE || !text[size]) {
        return false;
    }
    memcpy(identity, text, size);
    identity[size] = 0;
    char *end;
    at->place = strtoull(text + size + 1, &end, 10);
    at->items = *end == ':' ? (uint32_t)strtoul(end + 1, &end, 10) : 0;
    return *end == 0;
}

static tn_rc read_position(const struct tn_keeper *k, char identity[TN_JOURNAL_IDENTITY_SIZE],
                           struct tn_keeper_place *at, struct tn_err *err)
{
    const char *text = tn_table_position_of(k->table, TN_KEEPER_SOURCE);
    *at = (struct tn_keeper_place){0};
    identity[0] = 0;
    if (text && !parse_position(text, identity, at)) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: position of the journal: '%s'", k->name, text);
    }
    return TN_OK;
}

uint64_t tn_keeper_known(const struct tn_keeper *keeper)
{
    char identity[TN_JOURNAL_IDENTITY_SIZE];
    struct tn_keeper_place at;
    struct tn_err ignored;
    return read_position(keeper, identity, &at, &ignored) == TN_OK ? at.place : 0;
}

/* The place of a track: the journal's, where the table has none, or has not all of what came with
 * it: a file whose records are kept (track.h). */
static tn_rc read_track(const struct tn_keeper *k, const struct tn_track *track,
                        const struct tn_journal *journal, struct tn_file_place *place,
                        struct tn_err *err)
{
    const char *text = tn_table_position_of(k->table, track->source);
    struct tn_bytes memo;
    uint64_t told = 0;
    *place = (struct tn_file_place){.offset = 0};
    if (text && !tn_file_place_parse(tn_bytes_of(text), place)) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: position of %s: '%s'", k->name, track->source,
                          text);
    }
    struct tn_file_place kept = {.offset = 0};
    if (tn_journal_memo(journal, tn_bytes_of(track->source), &memo, &told) == TN_OK &&
        (!text || told >= k->next.place) && tn_file_place_parse(memo, &kept)) {
        *place = kept;
    }
    return TN_OK;
}

/* ---- where it begins ---- */

/* Letters of what comes again are taken back; of a message of which a part is in they stay, and are
 * made once more. */
static tn_rc name_source(struct tn_keeper *k, struct tn_err *err)
{
    char name[TN_LETTER_SOURCE_SIZE];
    uint64_t from = k->next.place + (k->next.items > 0);
    (void)snprintf(name, sizeof name, "%s:%s", TN_KEEPER_SOURCE, k->name);
    return tn_letters_source(&k->dead.letters, name, "json", tn_keeper_letter_position(from, 0), 0,
                             true, &k->source, err);
}

static tn_rc begin_track(struct tn_keeper *k, struct tn_track *track,
                         const struct tn_journal *journal, struct tn_err *err)
{
    char name[TN_LETTER_SOURCE_SIZE];
    struct tn_file_place place;
    tn_rc rc = read_track(k, track, journal, &place, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_track_begin(track, &place);
    (void)snprintf(name, sizeof name, "%s:%s", track->source, k->name);
    return tn_letters_begin(&k->dead.letters, &track->letters, name, "json",
                            tn_track_number(&place), place.part, true, err);
}

tn_rc tn_keeper_begin(struct tn_keeper *keeper, const struct tn_journal *journal,
                      struct tn_err *err)
{
    char identity[TN_JOURNAL_IDENTITY_SIZE];
    struct tn_keeper_place at;
    uint64_t first = tn_journal_first(journal);
    tn_rc rc = read_position(keeper, identity, &at, err);
    if (rc != TN_OK) {
        return rc;
    }
    /* What was trimmed nobody wanted: of a quiet table positions move only with its rows. */
    if (strcmp(identity, tn_journal_identity(journal)) != 0 || at.place < first) {
        at = (struct tn_keeper_place){.place = first};
    }
    keeper->next = at;
    keeper->cut = at;
    keeper->committed = at;
    keeper->before = at;
    rc = tn_keeper_restore(keeper, journal, err);
    if (rc == TN_OK) {
        rc = name_source(keeper, err);
    }
    for (struct tn_track *track = keeper->tracks; rc == TN_OK && track; track = track->next) {
        rc = begin_track(keeper, track, journal, err);
    }
    return rc;
}

/* ---- what a commit names ---- */

tn_rc tn_keeper_note(const struct tn_keeper *keeper, const char *identity,
                     struct tn_keeper_place at, struct tn_err *err)
{
    const struct tn_keeper *k = keeper;
    char text[POSITION_SIZE];
    int size = snprintf(text, sizeof text, "%s:%" PRIu64, identity, at.place);
    if (at.items > 0) {
        (void)snprintf(text + size, sizeof text - (size_t)size, ":%u", at.items);
    }
    tn_rc rc = TN_OK;
    if (k->items != k->items_cut) { /* without rows the old one will do */
        rc = tn_table_position(k->table, TN_KEEPER_SOURCE, text, err);
    }
    for (struct tn_track *track = k->tracks; rc == TN_OK && track; track = track->next) {
        tn_track_reach(track, at.place);
        rc = tn_track_note(track, k->table, err);
    }
    return rc;
}
