/* What of an inbox is taken in a round, from a store that sorts its names, page by page, from one
 * that doesn't, and from folders: as one that knew all names would choose. */
#include <stdlib.h>

#include "check.h"
#include "given.h"
#include "io/many.h"
#include "random.h"
#include "upload/inbox.h"

enum { NAMES = 4000, PAGE = 200, ARENA = 1 << 20 };

static struct name {
    char gateway[12];
    int64_t id;
    char path[40];
} names[NAMES];
static uint32_t count;

enum kind { SORTED, UNSORTED, FOLDERS };
static enum kind kind;
static uint32_t pages;
static struct tn_arena arena;

/* ---- an io that has only these names ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->path, ((const struct name *)b)->path);
}

static tn_rc walk_names(struct tn_io *io, struct tn_io_walk *walk, struct tn_err *err)
{
    uint32_t told = 0;
    tn_rc rc = TN_OK;
    (void)io;
    CHECK(strcmp(walk->path, ".tarn/db.t/inbox/") == 0);
    for (uint32_t i = 0; rc == TN_OK && i < count && (told % PAGE > 0 || !walk->enough); i++) {
        if (kind == UNSORTED || !walk->after || strcmp(names[i].path, walk->after) > 0) {
            pages += told++ % PAGE == 0;
            rc = walk->each(walk->user, names[i].path, false, err);
        }
    }
    return count == 0 ? tn_err_set(err, TN_ABSENT, 0, "nothing") : rc;
}

static tn_rc list_names(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                        struct tn_err *err)
{
    const char *folder = path + strlen(".tarn/db.t/inbox/");
    tn_rc rc = TN_OK;
    (void)io;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        char id[24];
        bool first = true;
        for (uint32_t k = 0; k < i && first && !*folder; k++) {
            first = strcmp(names[k].gateway, names[i].gateway) != 0;
        }
        (void)snprintf(id, sizeof id, "%d", (int)names[i].id);
        if (!*folder && first) {
            rc = each(user, names[i].gateway, true, err);
        } else if (*folder && strncmp(names[i].path, folder, strlen(folder)) == 0) {
            rc = each(user, id, false, err);
        }
    }
    return rc;
}

static const struct tn_io_vtable walking = {.walk = walk_names};
static const struct tn_io_vtable listing = {.list = list_names};

/* ---- what is wanted ---- */

static const char *turn;
static int64_t passed; /* each so many-th id is passed over; 0: none */

static bool is_passed(void *user, const struct tn_inbox_item *item)
{
    (void)user;
    return passed > 0 && item->id % passed == 0;
}

static bool is_behind(const struct name *name)
{
    char begin[16];
    (void)snprintf(begin, sizeof begin, "%s/", turn);
    return !*turn || strncmp(name->path, begin, strlen(begin)) == 0 ? !*turn
                                                                    : strcmp(name->path, begin) > 0;
}

static int by_turn(const void *a, const void *b)
{
    const struct name *one = a;
    const struct name *two = b;
    char left[16];
    char right[16];
    if (is_behind(one) != is_behind(two)) {
        return is_behind(one) ? -1 : 1;
    }
    (void)snprintf(left, sizeof left, "%s/", one->gateway);
    (void)snprintf(right, sizeof right, "%s/", two->gateway);
    int order = strcmp(left, right);
    return order != 0 ? order : (one->id > two->id) - (one->id < two->id);
}

/* The first of each gateway, and of these the first of all. */
static uint32_t choose(struct name *wanted, bool *more)
{
    static struct name all[NAMES];
    uint32_t taken = 0;
    uint32_t share = 0;
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (passed == 0 || names[i].id % passed > 0) {
            all[left++] = names[i];
        }
    }
    qsort(all, left, sizeof all[0], by_turn);
    for (uint32_t i = 0; i < left && taken < TN_INBOX_ITEMS_MAX; i++) {
        share = i > 0 && strcmp(all[i - 1].gateway, all[i].gateway) == 0 ? share + 1 : 0;
        if (share < TN_INBOX_SHARE_MAX) {
            wanted[taken++] = all[i];
        }
    }
    *more = taken < left;
    return taken;
}

static void name_path(struct name *name)
{
    char gateway[sizeof name->gateway];
    memcpy(gateway, name->gateway, sizeof gateway);
    (void)snprintf(name->path, sizeof name->path, "%s/%d", gateway, (int)name->id);
}

static void draw_names(uint64_t *random)
{
    uint32_t gateways = 1 + random_below(random, 400);
    uint32_t largest = 1 + random_below(random, 2000);
    uint32_t wanted = random_below(random, kind == FOLDERS ? 600 : NAMES);
    bool few = random_below(random, 2) == 0;
    count = 0;
    while (count < wanted) {
        struct name *name = &names[count];
        uint32_t number = random_below(random, gateways);
        number = few && random_below(random, 3) > 0 ? 0 : number;
        (void)snprintf(name->gateway, sizeof name->gateway, "%s%u", number % 3 ? "g" : "g-.",
                       (unsigned)number / 3);
        name->id = random_below(random, largest);
        name_path(name);
        count++;
    }
    qsort(names, count, sizeof names[0], by_path);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || strcmp(names[kept - 1].path, names[i].path) != 0) {
            names[kept++] = names[i];
        }
    }
    count = kept;
    for (uint32_t i = count; kind != SORTED && i > 1; i--) {
        uint32_t other = random_below(random, i);
        struct name moved = names[other];
        names[other] = names[i - 1];
        names[i - 1] = moved;
    }
}

static void check_choice(uint64_t *random)
{
    static struct name wanted[NAMES];
    struct tn_io io = {.vtable = kind == FOLDERS ? &listing : &walking};
    struct tn_inbox inbox;
    struct tn_err err;
    bool more;
    size_t mark = tn_arena_mark(&arena);
    draw_names(random);
    passed = random_below(random, 2) == 0 ? 0 : 1 + random_below(random, 4);
    turn = count == 0 || random_below(random, 3) == 0 ? ""
                                                      : names[random_below(random, count)].gateway;
    uint32_t expected = choose(wanted, &more);
    pages = 0;
    const struct tn_inbox_spec spec = {.table = "db.t", .after = turn, .passed = is_passed};
    tn_rc rc = tn_inbox_list(&io, &spec, &arena, &inbox, &err);
    CHECK_OK(rc, err);
    /* A share that was full when there was no more place may leave one free. */
    CHECK(more ? inbox.count > 0 && inbox.count <= expected : inbox.count == expected);
    CHECK(inbox.more || !more);
    CHECK(more || !inbox.more || expected == TN_INBOX_ITEMS_MAX);
    for (uint32_t i = 0; i < inbox.count; i++) {
        CHECK(strcmp(inbox.items[i].gateway, wanted[i].gateway) == 0);
        CHECK(inbox.items[i].id == wanted[i].id);
    }
    tn_arena_reset(&arena, mark);
}

static void first_of_each_gateway_from_one_on_are_taken(void)
{
    static unsigned char memory[ARENA];
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(2, 1);
    tn_arena_init(&arena, memory, sizeof memory);
    for (int i = 0; i < 60 || seconds_now() < until; i++, seed++) {
        uint64_t random = seed;
        check_seed = seed;
        kind = (enum kind)(seed % 3);
        check_choice(&random);
    }
}

/* However much waits, a round looks at no more pages than hold what it takes. */
static void what_is_not_needed_is_not_looked_at(void)
{
    static unsigned char memory[ARENA];
    struct tn_io io = {.vtable = &walking};
    struct tn_inbox inbox;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    kind = SORTED;
    for (count = 0; count < NAMES; count++) {
        struct name *name = &names[count];
        (void)snprintf(name->gateway, sizeof name->gateway, "g%04u", (unsigned)count);
        name->id = 7;
        name_path(name);
    }
    pages = 0;
    const struct tn_inbox_spec spec = {.table = "db.t", .after = "g1000"};
    tn_rc rc = tn_inbox_list(&io, &spec, &arena, &inbox, &err);
    CHECK_OK(rc, err);
    CHECK(inbox.count == TN_INBOX_ITEMS_MAX && inbox.more);
    CHECK(strcmp(inbox.items[0].gateway, "g1001") == 0);
    CHECK(pages == TN_INBOX_ITEMS_MAX / PAGE + 1);
}

static const struct test tests[] = {
    TEST(first_of_each_gateway_from_one_on_are_taken),
    TEST(what_is_not_needed_is_not_looked_at),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
