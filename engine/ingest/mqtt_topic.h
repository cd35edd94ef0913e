/* mqtt_topic: names and filters of MQTT, as texts.
 *
 *     plant/+/+/data      + stands for one part, # for all that follow (also none), at the end only
 *     $share/group/f      a shared subscription: the broker gives each message of `f` to one client
 *
 * A name that begins with $ is the broker's own, and no filter that begins with a wildcard means
 * it. Source: MQTT 5.0, 4.7 and 4.8; 3.1.1 says the same, but knows no shared subscriptions.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"

enum { TN_MQTT_TEXT_MAX = 65535 }; /* bytes; what two bytes can say */

/* Well-formed UTF-8 without U+0000; the offset of the first byte that isn't, or the size. */
size_t tn_mqtt_text_valid(struct tn_bytes text);

/* INVALID says what is wrong with a name or a filter, and at which byte. */
TN_MUST_USE tn_rc tn_mqtt_topic_check(struct tn_bytes topic, struct tn_err *err);
TN_MUST_USE tn_rc tn_mqtt_filter_check(struct tn_bytes filter, struct tn_err *err);

/* Whether a subscription to `filter` gives `topic`; both are valid. */
bool tn_mqtt_topic_matches(struct tn_bytes filter, struct tn_bytes topic);

/* Whether there is a topic that both valid filters give. */
bool tn_mqtt_filters_overlap(struct tn_bytes a, struct tn_bytes b);

/* The parts between the slashes, views into `topic`: "/a//b" has four, of which two are empty.
 * Returns how many there are, also where that is more than `parts_max`, which is what is filled. */
uint32_t tn_mqtt_topic_parts(struct tn_bytes topic, struct tn_bytes *parts, uint32_t parts_max);
