/* sensors: a stream of simulated readings as Debezium writes them, for the demo.
 *
 * Record i is the same in every run, so a run that was killed goes on at any i. A row is what a
 * sensor read in a minute, and is updated some times in it; one record in fifty deletes; one in
 * twenty comes up to ten minutes late, with an old `seq`, so that it must not win against what came
 * since. Their minutes pass quickly: ten in a second of the stream.
 *
 * No sensor does both: once a compaction has dropped a delete, here as in official Paimon, an older
 * row that comes late would be back, and what the table ends with would depend on when it
 * compacted.
 */
#pragma once

#include "base/bytes.h"

enum {
    TN_SENSORS_COUNT = 500,
    TN_SENSORS_A_SECOND = 20000, /* records of the stream's own time */
    TN_SENSORS_RECORD_MAX = 256, /* bytes */
};

extern const char tn_sensors_schema[]; /* JSON, as `create --schema` takes it */

/* Appends record `number`, with its line end. */
void tn_sensors_record(uint64_t number, struct tn_buf *buf);
