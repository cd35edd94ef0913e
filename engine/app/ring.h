/* ring: parcels on their way from the journal to their tables, the oldest first.
 *
 *     | tail: next .. | oldest | ... | newest |  nothing |
 *                       ^head                   ^wrap: it goes on at 0
 *
 * A parcel lies in one piece. It is made where it is to lie, and how long it will be is not known
 * before: so room is for the longest, and what it didn't take is the next one's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Before a parcel. */
struct tn_ring_entry {
    uint64_t place; /* in the journal */
    uint64_t next;  /* of the entry behind it */
    uint32_t size;  /* of the parcel */
    uint32_t keeper;
    uint32_t rest; /* where the parcel's next item begins; 0: the head was not read */
    uint32_t unused;
};

struct tn_ring {
    unsigned char *data;
    size_t size;
    size_t slot; /* of the longest entry */
    size_t head; /* of the oldest */
    size_t tail; /* where the next one begins */
    size_t wrap; /* where entries end that go on at 0; `size`: they don't */
    uint32_t count;
};

/* Bytes for so many of the longest. */
size_t tn_ring_memory(uint32_t parcels, size_t parcel_size);
void tn_ring_init(struct tn_ring *ring, void *memory, uint32_t parcels, size_t parcel_size);

/* Room for an entry with the longest parcel, which nothing has yet; NULL: there is none. */
struct tn_ring_entry *tn_ring_room(struct tn_ring *ring);
/* The entry for which there was room, with its parcel, is the newest. */
void tn_ring_keep(struct tn_ring *ring, const struct tn_ring_entry *entry);

/* NULL: it is empty. */
struct tn_ring_entry *tn_ring_oldest(const struct tn_ring *ring);
void tn_ring_forget(struct tn_ring *ring);

/* Bytes from the oldest to the newest. */
size_t tn_ring_used(const struct tn_ring *ring);
