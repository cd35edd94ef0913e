#include "app/sensors.h"

#include <inttypes.h>

const char tn_sensors_schema[] =
    "{\"fields\":["
    "{\"name\":\"dev\",\"type\":\"STRING\"},"
    "{\"name\":\"ts\",\"type\":\"TIMESTAMP(3)\"},"
    "{\"name\":\"temp\",\"type\":\"DOUBLE\"},"
    "{\"name\":\"unit\",\"type\":\"STRING\"},"
    "{\"name\":\"seq\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"dev\",\"ts\"],"
    "\"options\":{\"bucket\":\"2\",\"sequence.field\":\"seq\",\"file.format\":\"avro\","
    "\"snapshot.num-retained.min\":\"4\",\"snapshot.num-retained.max\":\"8\"},"
    "\"comment\":\"simulated sensors\"}";

enum {
    DELETES_EACH = 5, /* every fifth sensor deletes, the others come late */
    DELETED_PERCENT = 10,
    LATE_PERCENT = 6,
    LATE_MAX = 20 * 1000, /* records: ten minutes of the sensors' time */
    A_MINUTE = 2000,      /* records; four for each sensor */
    GATEWAYS = 7,
};

static const int64_t EPOCH_MS = 1764547200000; /* 2025-12-01 */

/* SplitMix64. */
static uint64_t mix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

static uint32_t below(uint64_t *state, uint32_t count)
{
    return (uint32_t)((mix(state) >> 32) * count >> 32);
}

void tn_sensors_record(uint64_t number, struct tn_buf *buf)
{
    uint64_t state = number * 0x2545f4914f6cdd1dU;
    uint32_t sensor = below(&state, TN_SENSORS_COUNT);
    bool deletes = sensor % DELETES_EACH == 0;
    uint64_t late = !deletes && below(&state, 100) < LATE_PERCENT ? 1 + below(&state, LATE_MAX) : 0;
    uint64_t sequence = number > late ? number - late : 0;
    int64_t ts = EPOCH_MS + (int64_t)(sequence / A_MINUTE) * 60 * 1000;
    bool deleted = deletes && below(&state, 100) < DELETED_PERCENT;
    /* hundredths of a degree, the sum of three draws around 21 */
    uint32_t temp = 600 + below(&state, 1001) + below(&state, 1001) + below(&state, 1001);
    tn_buf_format(buf, "{\"before\":%s", deleted ? "" : "null,\"after\":");
    tn_buf_format(buf, "{\"dev\":\"gw-%02" PRIu32 "/t%03" PRIu32 "\",\"ts\":%" PRId64,
                  sensor % GATEWAYS, sensor, ts);
    tn_buf_format(buf, ",\"temp\":%" PRIu32 ".%02" PRIu32 ",\"unit\":\"C\",\"seq\":%" PRIu64 "}",
                  temp / 100, temp % 100, sequence);
    tn_buf_format(buf, "%s,\"op\":\"%c\"}\n", deleted ? ",\"after\":null" : "",
                  deleted ? 'd' : 'u');
}
