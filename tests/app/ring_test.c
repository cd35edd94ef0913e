/* Parcels of any size through a ring: each comes out as it went in, in order, and an empty ring has
 * room for as many of the longest as it was made for. */
#include "app/ring.h"

#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "given.h"
#include "random.h"

enum { PARCELS = 3, PARCEL_SIZE = 200, STEPS = 100000 };

static _Alignas(16) unsigned char memory[PARCELS * (PARCEL_SIZE + 64)];

static unsigned char byte_of(uint64_t place, uint32_t i)
{
    return (unsigned char)(place * 31 + i);
}

static bool put(struct tn_ring *ring, uint64_t place, uint32_t size)
{
    struct tn_ring_entry *entry = tn_ring_room(ring);
    if (!entry) {
        return false;
    }
    unsigned char *parcel = (unsigned char *)(entry + 1);
    memset(parcel, 0xEE, PARCEL_SIZE); /* there is room for the longest */
    for (uint32_t i = 0; i < size; i++) {
        parcel[i] = byte_of(place, i);
    }
    *entry = (struct tn_ring_entry){.place = place, .size = size};
    tn_ring_keep(ring, entry);
    return true;
}

static void check_oldest(const struct tn_ring *ring, uint64_t place)
{
    const struct tn_ring_entry *entry = tn_ring_oldest(ring);
    CHECK(entry && entry->place == place);
    const unsigned char *parcel = (const unsigned char *)(entry + 1);
    for (uint32_t i = 0; i < entry->size; i++) {
        CHECK(parcel[i] == byte_of(place, i));
    }
}

static void what_goes_in_comes_out_in_order(void)
{
    struct tn_ring ring;
    uint64_t random = given_number("SEED", 1);
    uint64_t in = 0;
    uint64_t out = 0;
    uint32_t refused = 0;
    CHECK(tn_ring_memory(PARCELS, PARCEL_SIZE) <= sizeof memory);
    tn_ring_init(&ring, memory, PARCELS, PARCEL_SIZE);
    for (uint32_t step = 0; step < STEPS; step++) {
        if (random_below(&random, 2) == 0) {
            uint32_t most = random_below(&random, 3) == 0 ? PARCEL_SIZE : 20;
            bool taken = put(&ring, in, random_below(&random, most + 1));
            in += taken;
            refused += !taken;
            CHECK(taken || ring.count > 0);
        } else if (ring.count > 0) {
            check_oldest(&ring, out++);
            tn_ring_forget(&ring);
        }
        CHECK(ring.count == in - out);
        CHECK(tn_ring_used(&ring) <= ring.size && (ring.count > 0 || !tn_ring_oldest(&ring)));
    }
    CHECK(refused > 0 && in > STEPS / 10);
}

static void an_empty_one_has_room_for_as_many_as_it_was_made_for(void)
{
    struct tn_ring ring;
    tn_ring_init(&ring, memory, PARCELS, PARCEL_SIZE);
    for (uint64_t round = 0; round < 2 * PARCELS; round++) {
        for (uint64_t i = 0; i < PARCELS; i++) {
            CHECK(put(&ring, i, PARCEL_SIZE));
        }
        CHECK(!tn_ring_room(&ring));
        for (uint64_t i = 0; i < PARCELS; i++) {
            check_oldest(&ring, i);
            tn_ring_forget(&ring);
        }
        CHECK(put(&ring, 0, (uint32_t)round)); /* so that the next ones begin elsewhere */
        tn_ring_forget(&ring);
    }
}

static const struct test tests[] = {
    TEST(what_goes_in_comes_out_in_order),
    TEST(an_empty_one_has_room_for_as_many_as_it_was_made_for),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
