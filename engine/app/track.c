#include "app/track.h"

#include "app/keeper.h"

void tn_track_begin(struct tn_track *track, const struct tn_file_place *place)
{
    track->rewound = track->behind.identity[0] && !tn_file_place_equal(&track->behind, place);
    track->at = *place;
    track->behind = *place;
    track->cut = *place;
    track->committed = *place;
    track->fresh = !place->identity[0];
    track->kept = 0;
}

/* What was read of a file that is left may be removed, or be compressed; of a first one nobody
 * would know the other name that it gets: both are committed at once. */
static void move_on(struct tn_track *track, const struct tn_message *message)
{
    track->hurries = track->fresh || message->from->passed != track->behind.passed;
    track->fresh = false;
    track->behind = *message->behind;
}

static void arrive(struct tn_track *track)
{
    track->size = 0;
    track->at = track->behind;
    track->keeper->wants_cut = track->keeper->wants_cut || track->hurries;
    tn_keeper_moved(track->keeper);
}

void tn_track_keep(struct tn_track *track, const struct tn_message *message, uint64_t place)
{
    move_on(track, message);
    track->kept = place;
}

void tn_track_reach(struct tn_track *track, uint64_t place)
{
    if (track->kept > 0 && place > track->kept) {
        track->at = track->behind;
    }
}

/* Its first bytes, and its time, are those of when it was read. */
static void stand_at_begin(struct tn_track *track, const struct tn_message *message)
{
    track->at = *message->from;
    memcpy(track->at.identity, message->behind->identity, sizeof track->at.identity);
    track->at.modified_ns = message->behind->modified_ns;
}

void tn_track_take(struct tn_track *track, const struct tn_message *message, size_t size)
{
    const unsigned char *bytes = message->bytes.data;
    move_on(track, message);
    stand_at_begin(track, message);
    track->size = size;
    track->rest = 0;
    track->from = *message->from;
    track->begin = 0;
    track->lines = 0;
    track->header_size = message->header_size;
    track->header_lines = 0;
    for (size_t i = 0; i < message->header_size; i++) {
        track->header_lines += bytes[i] == '\n';
    }
}

void tn_track_pass(struct tn_track *track, const struct tn_message *message)
{
    move_on(track, message);
    arrive(track);
}

static void begin_record(struct tn_track *track, const struct tn_parcel_item *place)
{
    track->begin += place->record;
    track->lines += place->part;
    size_t begin = track->begin - track->header_size;
    bool any = track->lines > track->header_lines; /* it is all of the message's where none is */
    track->done = begin == 0 ? track->from.part : 0;
    track->at.offset = track->from.offset + begin;
    track->at.line = track->from.line + (any ? track->lines - track->header_lines : 0);
    track->at.part = track->done;
}

static tn_rc put_item(struct tn_track *track, const struct tn_parcel_head *head,
                      const struct tn_parcel_item *item, int64_t now_ms, struct tn_err *err)
{
    struct tn_keeper_from from = {.letters = &track->letters,
                                  .position = tn_track_number(&track->at),
                                  .line = track->at.line + 1};
    if (item->kind == TN_PARCEL_PLACE) {
        begin_record(track, item);
        return TN_OK;
    }
    if (item->kind != TN_PARCEL_HEADER && item->part < track->done) {
        return TN_OK;
    }
    tn_rc rc = tn_keeper_put_from(track->keeper, &from, head, item, now_ms, err);
    if (rc == TN_OK && item->kind != TN_PARCEL_HEADER) {
        track->at.part = item->part + 1;
    }
    return rc;
}

tn_rc tn_track_put(struct tn_track *track, int64_t now_ms, uint32_t *items, struct tn_err *err)
{
    struct tn_bytes rest = {track->parcel, track->size};
    struct tn_parcel_head head;
    struct tn_parcel_item item;
    tn_rc rc = tn_parcel_open(&rest, &head, err);
    if (rc == TN_OK) {
        tn_keeper_parcel(track->keeper, &head, rest);
    }
    if (rc == TN_OK && track->rest > 0) {
        rest = (struct tn_bytes){track->parcel + track->rest, track->size - track->rest};
    }
    while (rc == TN_OK && *items > 0 && (rc = tn_parcel_next(&rest, &item, err)) == TN_OK) {
        rc = put_item(track, &head, &item, now_ms, err);
        if (rc == TN_OK) {
            track->rest = (size_t)(rest.data - track->parcel);
            (*items)--;
        }
    }
    if (rc == TN_ABSENT) {
        arrive(track);
        return TN_OK;
    }
    return rc == TN_OK ? TN_AGAIN : rc;
}

tn_rc tn_track_note(const struct tn_track *track, struct tn_table *table, struct tn_err *err)
{
    char text[TN_FILE_PLACE_SIZE];
    if (!track->at.identity[0]) {
        return TN_OK;
    }
    tn_file_place_format(&track->at, text);
    return tn_table_position(table, track->source, text, err);
}
