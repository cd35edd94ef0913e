#include "merge/bitmap32.h"

enum {
    COOKIE = 12346,
    COOKIE_WITH_RUNS = 12347, /* in the low 16 bits; the container count - 1 above */
    RUN_OFFSETS_FROM = 4,     /* with runs there are offsets from so many containers on */
    CONTAINERS_MAX = 65536,
    ARRAY_MAX = 4096, /* numbers */
    BITMAP_SIZE = 8192,
    NO_NUMBER = 65536, /* above all of a container, and above all keys */
};

enum form { FORM_ARRAY, FORM_BITMAP, FORM_RUNS };

/* A container, and a place in it. */
struct container {
    const unsigned char *data;
    enum form form;
    uint32_t count;  /* of numbers, of bits, of runs */
    uint32_t index;  /* of the number, bit or run that is next */
    uint32_t in_run; /* numbers of that run that were given */
};

/* Reads containers one after the other. The offsets are not needed for that. */
struct reader {
    struct tn_bytes rest;       /* from the next container on */
    const unsigned char *keys;  /* {key, cardinality - 1} */
    const unsigned char *flags; /* a bit a container: has runs; or NULL */
    uint32_t count;
    uint32_t index;
    uint32_t key; /* of `container`, or NO_NUMBER */
    struct container container;
};

static const unsigned char *take(struct tn_bytes *rest, size_t size)
{
    const unsigned char *at = rest->data;
    if (rest->size < size) {
        return NULL;
    }
    rest->data += size;
    rest->size -= size;
    return at;
}

static uint32_t word(const unsigned char *data, uint32_t index)
{
    return tn_load_u16(data + 2 * (size_t)index);
}

static bool ascends(const struct container *c)
{
    uint32_t next = 0; /* the least that may come */
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t start = word(c->data, c->form == FORM_RUNS ? 2 * i : i);
        uint32_t last = c->form == FORM_RUNS ? start + word(c->data, 2 * i + 1) : start;
        if (start < next || last > UINT16_MAX) {
            return false;
        }
        next = last + 1;
    }
    return true;
}

/* Moves to the next container; false when there should be one and is none. */
static bool step(struct reader *r)
{
    if (r->index == r->count) {
        r->key = NO_NUMBER;
        return true;
    }
    uint32_t key = word(r->keys, 2 * r->index);
    uint32_t cardinality = word(r->keys, 2 * r->index + 1) + 1;
    bool runs = r->flags && (r->flags[r->index / 8] >> (r->index % 8) & 1);
    struct container c = {.form = cardinality > ARRAY_MAX ? FORM_BITMAP : FORM_ARRAY,
                          .count = cardinality > ARRAY_MAX ? NO_NUMBER : cardinality};
    size_t size = c.form == FORM_BITMAP ? BITMAP_SIZE : 2 * (size_t)cardinality;
    if (runs) {
        const unsigned char *count = take(&r->rest, 2);
        if (count == NULL) {
            return false;
        }
        c.form = FORM_RUNS;
        c.count = tn_load_u16(count);
        size = 4 * (size_t)c.count;
    }
    c.data = take(&r->rest, size);
    bool later = r->index == 0 || key > r->key;
    if (c.data == NULL || !later || (c.form != FORM_BITMAP && !ascends(&c))) {
        return false;
    }
    r->container = c;
    r->key = key;
    r->index++;
    return true;
}

static bool open(struct reader *r, struct tn_bytes bytes)
{
    *r = (struct reader){.rest = bytes};
    const unsigned char *cookie = take(&r->rest, 4);
    uint32_t first = cookie ? tn_load_u32(cookie) : 0;
    bool runs = (first & UINT16_MAX) == COOKIE_WITH_RUNS;
    if (runs) {
        r->count = (first >> 16) + 1;
        r->flags = take(&r->rest, (r->count + 7) / 8);
    } else {
        const unsigned char *count = take(&r->rest, 4);
        r->count = count ? tn_load_u32(count) : UINT32_MAX;
    }
    if ((runs ? r->flags == NULL : first != COOKIE) || r->count > CONTAINERS_MAX) {
        return false;
    }
    r->keys = take(&r->rest, 4 * (size_t)r->count);
    bool offsets = !runs || r->count >= RUN_OFFSETS_FROM;
    return r->keys && (!offsets || take(&r->rest, 4 * (size_t)r->count)) && step(r);
}

/* The next number of a container, or NO_NUMBER. */
static uint32_t next_number(struct container *c)
{
    if (c->form == FORM_BITMAP) {
        while (c->index < c->count && !(c->data[c->index / 8] >> (c->index % 8) & 1)) {
            c->index++;
        }
    }
    if (c->index >= c->count) {
        return NO_NUMBER;
    }
    if (c->form == FORM_BITMAP) {
        return c->index++;
    }
    if (c->form == FORM_ARRAY) {
        return word(c->data, c->index++);
    }
    uint32_t number = word(c->data, 2 * c->index) + c->in_run;
    bool last = c->in_run == word(c->data, 2 * c->index + 1);
    c->in_run = last ? 0 : c->in_run + 1;
    c->index += last;
    return number;
}

/* Two containers as one, in order. */
struct pair {
    struct container a;
    struct container b;
    uint32_t next_a;
    uint32_t next_b;
};

static struct pair pair_of(const struct reader *a, const struct reader *b)
{
    uint32_t key = a->key < b->key ? a->key : b->key;
    struct pair pair = {.next_a = NO_NUMBER, .next_b = NO_NUMBER};
    if (a->key == key) {
        pair.a = a->container;
        pair.next_a = next_number(&pair.a);
    }
    if (b->key == key) {
        pair.b = b->container;
        pair.next_b = next_number(&pair.b);
    }
    return pair;
}

static uint32_t next_of_pair(struct pair *pair)
{
    uint32_t number = pair->next_a < pair->next_b ? pair->next_a : pair->next_b;
    if (number != NO_NUMBER && pair->next_a == number) {
        pair->next_a = next_number(&pair->a);
    }
    if (number != NO_NUMBER && pair->next_b == number) {
        pair->next_b = next_number(&pair->b);
    }
    return number;
}

static uint32_t count_pair(struct pair pair)
{
    uint32_t count = 0;
    while (next_of_pair(&pair) != NO_NUMBER) {
        count++;
    }
    return count;
}

static void append_zeros(struct tn_buf *out, size_t size)
{
    static const unsigned char zeros[64];
    for (; size > 0 && !out->overflow; size -= size < sizeof zeros ? size : sizeof zeros) {
        tn_buf_append(out, zeros, size < sizeof zeros ? size : sizeof zeros);
    }
}

static void append_array(struct tn_buf *out, struct pair pair)
{
    unsigned char number[2];
    for (uint32_t n = next_of_pair(&pair); n != NO_NUMBER; n = next_of_pair(&pair)) {
        tn_store_u16(number, (uint16_t)n);
        tn_buf_append(out, number, sizeof number);
    }
}

static void append_bitmap(struct tn_buf *out, struct pair pair)
{
    size_t start = out->size;
    append_zeros(out, BITMAP_SIZE);
    if (out->overflow) {
        return;
    }
    for (uint32_t n = next_of_pair(&pair); n != NO_NUMBER; n = next_of_pair(&pair)) {
        unsigned char *at = &out->data[start + n / 8];
        *at = (unsigned char)(*at | 1U << (n % 8));
    }
}

/* Moves the readers whose containers have the smaller key. */
static bool step_smaller(struct reader *a, struct reader *b)
{
    uint32_t key = a->key < b->key ? a->key : b->key;
    bool good = a->key != key || step(a);
    return (b->key != key || step(b)) && good;
}

/* Containers that hold something: Java writes none that is empty. */
static bool count_containers(struct reader a, struct reader b, uint32_t *count)
{
    bool good = true;
    *count = 0;
    while (good && (a.key != NO_NUMBER || b.key != NO_NUMBER)) {
        struct pair pair = pair_of(&a, &b);
        *count += next_of_pair(&pair) != NO_NUMBER;
        good = step_smaller(&a, &b);
    }
    return good;
}

/* `entry`, `offset`: places in the header. Container offsets count from `start`. */
static void append_container(struct tn_buf *out, size_t start, size_t entry, size_t offset,
                             uint32_t key, struct pair pair)
{
    uint32_t count = count_pair(pair);
    tn_store_u16(out->data + entry, (uint16_t)key);
    tn_store_u16(out->data + entry + 2, (uint16_t)(count - 1));
    tn_store_u32(out->data + offset, (uint32_t)(out->size - start));
    if (count > ARRAY_MAX) {
        append_bitmap(out, pair);
    } else {
        append_array(out, pair);
    }
}

bool tn_bitmap32_union(struct tn_bytes a, struct tn_bytes b, struct tn_buf *out)
{
    struct reader left;
    struct reader right;
    uint32_t count = 0;
    size_t start = out->size;
    if (!open(&left, a) || !open(&right, b) || !count_containers(left, right, &count)) {
        return false;
    }
    append_zeros(out, 8 + 8 * (size_t)count);
    if (out->overflow) {
        return true;
    }
    tn_store_u32(out->data + start, COOKIE);
    tn_store_u32(out->data + start + 4, count);
    size_t entry = start + 8;
    size_t offset = entry + 4 * (size_t)count;
    bool good = true;
    while (good && !out->overflow && (left.key != NO_NUMBER || right.key != NO_NUMBER)) {
        uint32_t key = left.key < right.key ? left.key : right.key;
        struct pair pair = pair_of(&left, &right);
        if (pair.next_a != NO_NUMBER || pair.next_b != NO_NUMBER) {
            append_container(out, start, entry, offset, key, pair);
            entry += 4;
            offset += 4;
        }
        good = step_smaller(&left, &right);
    }
    return good;
}
