#include "app/ring.h"

#include "base/check.h"

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

static size_t slot_size(size_t parcel_size)
{
    return sizeof(struct tn_ring_entry) + aligned(parcel_size);
}

static struct tn_ring_entry *entry_at(const struct tn_ring *ring, size_t at)
{
    return (struct tn_ring_entry *)(void *)(ring->data + at);
}

size_t tn_ring_memory(uint32_t parcels, size_t parcel_size)
{
    return parcels * slot_size(parcel_size);
}

void tn_ring_init(struct tn_ring *ring, void *memory, uint32_t parcels, size_t parcel_size)
{
    size_t size = tn_ring_memory(parcels, parcel_size);
    *ring = (struct tn_ring){
        .data = memory, .size = size, .slot = slot_size(parcel_size), .wrap = size};
}

struct tn_ring_entry *tn_ring_room(struct tn_ring *ring)
{
    if (ring->count == 0) {
        ring->head = 0;
        ring->tail = 0;
        ring->wrap = ring->size;
    }
    if (ring->tail >= ring->head && (ring->count == 0 || ring->tail > ring->head)) {
        if (ring->size - ring->tail >= ring->slot) {
            return entry_at(ring, ring->tail);
        }
        if (ring->head < ring->slot) {
            return NULL;
        }
        ring->wrap = ring->tail;
        ring->tail = 0;
        return entry_at(ring, 0);
    }
    return ring->head - ring->tail >= ring->slot ? entry_at(ring, ring->tail) : NULL;
}

void tn_ring_keep(struct tn_ring *ring, const struct tn_ring_entry *entry)
{
    TN_CHECK(sizeof *entry + aligned(entry->size) <= ring->slot);
    ring->tail += sizeof *entry + aligned(entry->size);
    ring->count++;
}

struct tn_ring_entry *tn_ring_oldest(const struct tn_ring *ring)
{
    return ring->count > 0 ? entry_at(ring, ring->head) : NULL;
}

void tn_ring_forget(struct tn_ring *ring)
{
    const struct tn_ring_entry *entry = tn_ring_oldest(ring);
    TN_CHECK(entry);
    ring->head += sizeof *entry + aligned(entry->size);
    ring->count--;
    if (ring->head == ring->wrap) {
        ring->head = 0;
        ring->wrap = ring->size;
    }
}

size_t tn_ring_used(const struct tn_ring *ring)
{
    return ring->tail >= ring->head ? ring->tail - ring->head
                                    : ring->wrap - ring->head + ring->tail;
}
