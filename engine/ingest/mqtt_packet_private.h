/* mqtt_packet_private: what the parts of mqtt_packet share.
 *
 *     mqtt_packet.c      decode
 *     mqtt_encode.c      encode
 *     mqtt_property.c    properties of 5.0: the table of them, reading, writing
 *     mqtt_reason.c      reason codes: the table of them
 */
#pragma once

#include "ingest/mqtt_packet.h"

/* Where the next byte comes from. */
struct tn_mqtt_reader {
    const unsigned char *start; /* of the packet; the others are offsets */
    size_t at;
    size_t end;
    size_t known_end; /* < end: what is behind it hasn't come yet */
    enum tn_mqtt_version version;
    enum tn_mqtt_type type;
    unsigned char fault;
    struct tn_err *err;
};

/* Sets fault and text: "PUBLISH, byte 9: ...". Returns INVALID. */
TN_MUST_USE tn_rc tn_mqtt_fail(struct tn_mqtt_reader *r, unsigned char fault, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));

/* AGAIN where the bytes are still to come, INVALID where the packet ends. */
TN_MUST_USE tn_rc tn_mqtt_need(struct tn_mqtt_reader *r, size_t size, const char *what);
TN_MUST_USE tn_rc tn_mqtt_read_byte(struct tn_mqtt_reader *r, const char *what,
                                    unsigned char *value);
TN_MUST_USE tn_rc tn_mqtt_read_u16(struct tn_mqtt_reader *r, const char *what, uint16_t *value);
TN_MUST_USE tn_rc tn_mqtt_read_u32(struct tn_mqtt_reader *r, const char *what, uint32_t *value);
TN_MUST_USE tn_rc tn_mqtt_read_varint(struct tn_mqtt_reader *r, const char *what, uint32_t *value);
TN_MUST_USE tn_rc tn_mqtt_read_binary(struct tn_mqtt_reader *r, const char *what,
                                      struct tn_bytes *value);
TN_MUST_USE tn_rc tn_mqtt_read_text(struct tn_mqtt_reader *r, const char *what,
                                    struct tn_bytes *value);

/* Properties with their size before them; `type` 0 stands for those of a will. */
TN_MUST_USE tn_rc tn_mqtt_read_properties(struct tn_mqtt_reader *r, enum tn_mqtt_type type,
                                          struct tn_bytes *properties);

/* Appends 1 to 4 bytes. */
void tn_mqtt_put_varint(struct tn_buf *out, uint32_t value);

/* Appends text with its size in two bytes; what is longer than those can say overflows. */
void tn_mqtt_put_sized(struct tn_buf *out, struct tn_bytes text);
void tn_mqtt_put_u16(struct tn_buf *out, uint32_t value);

/* Whether 5.0 lets a packet of this type carry the code. */
bool tn_mqtt_reason_fits(enum tn_mqtt_type type, unsigned char reason);

/* CONNACK's code of 3.1.1 (0 to 5) for one of 5.0 and back. false: there is none. */
bool tn_mqtt_reason_from_v3(unsigned char code, unsigned char *reason);
bool tn_mqtt_reason_to_v3(unsigned char reason, unsigned char *code);
