/* Chains of commits against a model, on a disk that is cut before each call. */
#include "model.h"

/* ---- a second committer between two calls of the first ---- */

struct rival {
    struct tn_io io; /* first */
    struct tn_io_vtable vtable;
    struct bed *bed;
    int left; /* how many names it takes */
    int64_t taken;
    int before; /* names that it takes at once, before ours is given, */
    int behind; /* or behind it */
    int keeps;  /* snapshots, then: all older ones expire */
    int unseen; /* names that it takes when a snapshot was looked for and not found */
};

static struct rival rival;

static void rival_commits(void)
{
    static struct bed other; /* the same disk, a worker of its own */
    struct tn_commit_result result;
    struct tn_err err;
    char name[32];
    other = *rival.bed;
    sim_clock_init(&other.clock, 1000 + (uint64_t)rival.taken);
    bed_worker(&other, &rival.bed->disk.io, 2 << 20);
    other.own = (struct tn_arena){0};
    static unsigned char own[1 << 16];
    tn_arena_init(&other.own, own, sizeof own);
    (void)snprintf(name, sizeof name, "rival-%" PRId64 ".avro", rival.taken);
    struct tn_entry entry = bed_entry(&other, name, (struct bed_file){.rows = 1, .bucket = 1});
    struct tn_commit_spec spec = bed_spec(&other, rival.taken++);
    spec.user = "rival";
    spec.added = &entry;
    spec.added_count = 1;
    tn_rc rc = tn_commit(&spec, &other.worker, &result, &err);
    CHECK_OK(rc, err);
    free(other.worker_memory);
}

static void rival_rushes(int *names)
{
    struct tn_io *disk = &rival.bed->disk.io;
    struct tn_arena *own = &rival.bed->own;
    struct tn_err err;
    int64_t newest = 0;
    bool any = *names > 0;
    for (; *names > 0; --*names) {
        rival_commits();
    }
    tn_rc rc = any ? tn_snapshot_latest(disk, ROOT, own, &newest, &err) : TN_OK;
    CHECK_OK(rc, err);
    for (int64_t id = 1; any && id <= newest - rival.keeps; id++) {
        char path[64];
        (void)snprintf(path, sizeof path, ROOT "/snapshot/snapshot-%" PRId64, id);
        rc = disk->vtable->unlink(disk, path, &err);
        CHECK(rc == TN_OK || rc == TN_ABSENT);
    }
}

static tn_rc rival_rename(struct tn_io *io, const char *path, const char *path_new,
                          struct tn_err *err)
{
    (void)io;
    if (rival.left > 0) {
        rival.left--;
        rival_commits();
    }
    rival_rushes(&rival.before);
    struct tn_io *disk = &rival.bed->disk.io;
    tn_rc rc = disk->vtable->rename_new(disk, path, path_new, err);
    rival_rushes(&rival.behind);
    return rc;
}

static tn_rc rival_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                        struct tn_err *err)
{
    (void)io;
    tn_rc rc = rival.bed->disk.io.vtable->open(&rival.bed->disk.io, path, file, size, err);
    if (rc == TN_ABSENT && rival.unseen > 0 && strstr(path, "/snapshot-")) {
        rival.unseen--;
        rival_commits();
    }
    return rc;
}
static tn_rc rival_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                        size_t *got, struct tn_err *err)
{
    (void)io;
    struct tn_io *disk = &rival.bed->disk.io;
    return disk->vtable->read(disk, file, offset, data, size, got, err);
}
static tn_rc rival_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->create(&rival.bed->disk.io, path, file, err);
}
static tn_rc rival_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->append(&rival.bed->disk.io, file, bytes, err);
}
static void rival_close(struct tn_io *io, int file)
{
    (void)io;
    rival.bed->disk.io.vtable->close(&rival.bed->disk.io, file);
}
static tn_rc rival_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                        struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->sync(&rival.bed->disk.io, paths, count, err);
}
static tn_rc rival_replace(struct tn_io *io, const char *path, const char *path_new,
                           struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->replace(&rival.bed->disk.io, path, path_new, err);
}
static tn_rc rival_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->unlink(&rival.bed->disk.io, path, err);
}
static tn_rc rival_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->make_dir(&rival.bed->disk.io, path, err);
}
static tn_rc rival_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                        struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->list(&rival.bed->disk.io, path, each, user, err);
}
static tn_rc rival_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    (void)io;
    return rival.bed->disk.io.vtable->stat(&rival.bed->disk.io, path, size, err);
}

static void send_rival(struct bed *bed, int names)
{
    rival = (struct rival){.bed = bed, .left = names};
    rival.vtable = (struct tn_io_vtable){.open = rival_open,
                                         .read = rival_read,
                                         .create = rival_create,
                                         .append = rival_append,
                                         .close = rival_close,
                                         .sync = rival_sync,
                                         .rename_new = rival_rename,
                                         .replace = rival_replace,
                                         .unlink = rival_unlink,
                                         .make_dir = rival_make_dir,
                                         .list = rival_list,
                                         .stat = rival_stat};
    rival.io.vtable = &rival.vtable;
    bed->worker.io = &rival.io;
}

/* ---- */

static __attribute__((noinline)) void append_one(struct bed *bed, int64_t identifier,
                                                 const char *name)
{
    struct bed_file file = {.first = identifier, .last = identifier, .rows = 1};
    struct tn_entry entry = bed_entry(bed, name, file);
    struct tn_commit_spec spec = bed_spec(bed, identifier);
    spec.added = &entry;
    spec.added_count = 1;
    (void)must_commit(bed, &spec);
}

static __attribute__((noinline)) void check_chain(struct bed *bed, int64_t last)
{
    for (int64_t id = 1; id <= last; id++) {
        struct tn_snapshot s = bed_snapshot(bed, id);
        CHECK(s.id == id && s.version.value == 3);
        (void)bed_live(bed, &s);
    }
}

static void a_first_commit_is_what_paimon_writes(void)
{
    static struct bed bed;
    bed_init(&bed, 1, false);
    append_one(&bed, 1, "data-a.avro");
    struct tn_snapshot s = bed_snapshot(&bed, 1);
    CHECK(strcmp(s.commit_kind, "APPEND") == 0 && s.commit_identifier.value == 1);
    CHECK(s.total_record_count.value == 1 && s.delta_record_count.value == 1);
    CHECK(s.base_manifest_list_size.value == 884 && !s.watermark.present);
    CHECK(strcmp(bed_list(&bed, s.base_manifest_list, s.base_manifest_list_size), "") == 0);
    CHECK(strcmp(bed_list(&bed, s.delta_manifest_list, s.delta_manifest_list_size), "1/0") == 0);
    CHECK(strcmp(bed_live(&bed, &s), "data-a.avro@0") == 0);
    bed_deinit(&bed);
}

/* Behaviour 6.5, observed with merge-min-count 3. */
static void manifests_merge_as_paimon_s_do(void)
{
    static const char *const bases[] = {"",        "1/0", "1/0,1/0", "3/0",
                                        "3/0,1/0", "5/0", "5/0,1/0", "7/0"};
    static struct bed bed;
    bed_init(&bed, 1, false);
    bed.options.manifest_merge_min = 3;
    for (int64_t i = 0; i < (int64_t)COUNT(bases); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "data-%" PRId64 ".avro", i);
        append_one(&bed, i, name);
        struct tn_snapshot s = bed_snapshot(&bed, i + 1);
        CHECK(strcmp(bed_list(&bed, s.base_manifest_list, s.base_manifest_list_size), bases[i]) ==
              0);
    }
    check_chain(&bed, COUNT(bases));
    bed_deinit(&bed);
}

/* ---- a chain of random commits against a model ---- */

static void random_chain(uint64_t seed, int32_t merge_min, int64_t target, int64_t full)
{
    static struct bed bed;
    static struct model model;
    model = (struct model){.key = 1};
    bed_init(&bed, seed, true);
    bed.options.manifest_merge_min = merge_min;
    bed.options.manifest_target_size = target;
    bed.options.manifest_full_threshold = full;
    for (int64_t i = 0; i < 40; i++) {
        size_t mark = tn_arena_mark(&bed.own);
        CHECK(model.count < MODEL_MAX - 20);
        random_commit(&bed, &model, &seed, i);
        if (bed.own.used - mark > BED_OWN_SIZE / 8) {
            break;
        }
    }
    bed_deinit(&bed);
}

static void chains_of_commits_hold_what_a_model_holds(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        random_chain(seed, 30, 8 << 20, 16 << 20); /* nothing merges */
        random_chain(seed, 3, 8 << 20, 16 << 20);  /* minor, the tail */
        random_chain(seed, 100, 6000, 16 << 20);   /* minor, by size */
        random_chain(seed, 100, 6000, 9000);       /* full */
    }
}

/* ---- races and conflicts ---- */

static void lost_names_are_tried_again_and_all_commits_are_there_once(void)
{
    static struct bed bed;
    bed_init(&bed, 3, false);
    append_one(&bed, 1, "first.avro");
    send_rival(&bed, 3);
    struct tn_entry entry = bed_entry(&bed, "ours.avro", (struct bed_file){.rows = 1});
    struct tn_commit_spec spec = bed_spec(&bed, 2);
    spec.added = &entry;
    spec.added_count = 1;
    spec.last_seen = 1;
    struct tn_commit_result result = must_commit(&bed, &spec);
    CHECK(result.append_id == 5 && result.attempts == 4 && result.foreign);
    struct tn_snapshot s = bed_snapshot(&bed, 5);
    CHECK(strcmp(bed_live(&bed, &s),
                 "first.avro@0 ours.avro@0 rival-0.avro@0 rival-1.avro@0 rival-2.avro@0") == 0);
    check_chain(&bed, 5);
    bed_deinit(&bed);
}

/* ---- somebody commits and expires in the middle of a commit ---- */

static struct tn_entry given_file;
static struct tn_commit_removal taken_file;

static void gives(struct bed *bed, struct tn_commit_spec *spec)
{
    given_file = bed_entry(bed, "ours.avro", (struct bed_file){.rows = 1});
    spec->added = &given_file;
    spec->added_count = 1;
}

static void takes(struct bed *bed, struct tn_commit_spec *spec)
{
    struct tn_entry first = bed_entry(bed, "first.avro", (struct bed_file){.rows = 1});
    taken_file = bed_removal(&first);
    spec->removed = &taken_file;
    spec->removed_count = 1;
}

static void upgrades(struct bed *bed, struct tn_commit_spec *spec)
{
    takes(bed, spec);
    taken_file.upgrade_level = 5;
}

static void only_tells(struct bed *bed, struct tn_commit_spec *spec)
{
    (void)bed;
    spec->append_even_if_empty = true;
}

static const struct rush {
    void (*round)(struct bed *bed, struct tn_commit_spec *spec);
    const char *there; /* once, when it is committed */
    const char *gone;
} rushes[] = {
    {gives, "ours.avro@0", NULL},
    {takes, NULL, "first.avro@"},
    {upgrades, "first.avro@5", "first.avro@0"},
    {only_tells, "first.avro@0", NULL},
};

static void check_rushed(struct bed *bed, const struct rush *rush, bool done, int rivals)
{
    struct tn_err err;
    int64_t newest;
    tn_rc rc = tn_snapshot_latest(&bed->disk.io, ROOT, &bed->own, &newest, &err);
    CHECK_OK(rc, err);
    CHECK(newest == 1 + rivals + (done ? 1 : 0) || rush->round == only_tells);
    struct tn_snapshot s = bed_snapshot(bed, newest);
    const char *live = bed_live(bed, &s);
    const char *there = strstr(live, done && rush->there ? rush->there : "first.avro@0");
    CHECK(there || (done && !rush->there));
    CHECK(!there || !strstr(there + 1, rush->there ? rush->there : "first.avro@0"));
    CHECK(!done || !rush->gone || !strstr(live, rush->gone));
    for (int i = 0; i < rivals; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "rival-%d.avro@0", i);
        CHECK(strstr(live, name));
    }
}

/* The name that is to be given may be free again. The newest snapshot has everything once, or it is
 * said that nobody knows: when all that could tell went with it. What others went on with is not
 * taken away. */
static void rush_past(const struct rush *rush, int before, int behind, int keeps)
{
    static struct bed bed;
    struct tn_commit_result result;
    struct tn_err err;
    bed_init(&bed, 3, false);
    bed.options.manifest_merge_min = 1 + (before + behind + keeps) % 3;
    append_one(&bed, 1, "first.avro");
    send_rival(&bed, 0);
    rival.before = before;
    rival.behind = behind;
    rival.keeps = keeps;
    struct tn_commit_spec spec = bed_spec(&bed, 2);
    rush->round(&bed, &spec);
    spec.last_seen = 1;
    tn_rc rc = tn_commit(&spec, &bed.worker, &result, &err);
    bool untold = rc == TN_IO && strstr(err.text, "can't be told");
    CHECK(rc == TN_OK || (untold && before > keeps && behind > 0));
    check_rushed(&bed, rush, rc == TN_OK, before + behind);
    bed_deinit(&bed);
}

static void a_name_that_was_taken_and_has_expired_is_not_taken_again(void)
{
    for (size_t i = 0; i < COUNT(rushes); i++) {
        for (int before = 0; before < 5; before++) {
            for (int behind = 0; behind < 5; behind++) {
                for (int keeps = 1; keeps < 4; keeps++) {
                    rush_past(&rushes[i], before, behind, keeps);
                }
            }
        }
    }
}

/* Before the first snapshot there is none, which looks as if it had expired. Another's on top of
 * it, made while that is looked at, is no proof that others went on without it. */
static void a_snapshot_on_top_of_the_first_stands_on_it(void)
{
    static struct bed bed;
    bed_init(&bed, 5, false);
    send_rival(&bed, 0);
    rival.unseen = 1;
    append_one(&bed, 1, "ours.avro");
    CHECK(rival.taken == 1);
    struct tn_snapshot s = bed_snapshot(&bed, 2);
    CHECK(strcmp(bed_live(&bed, &s), "ours.avro@0 rival-0.avro@0") == 0);
    check_chain(&bed, 2);
    bed_deinit(&bed);
}

static tn_rc count_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)name;
    (void)is_dir;
    (void)err;
    ++*(int *)user;
    return TN_OK;
}

static int count_files(struct bed *bed, const char *folder)
{
    int count = 0;
    struct tn_err err;
    tn_rc rc = bed->disk.io.vtable->list(&bed->disk.io, folder, count_name, &count, &err);
    CHECK_OK(rc, err);
    return count;
}

static void too_many_lost_names_are_a_conflict_that_leaves_nothing(void)
{
    static struct bed bed;
    struct tn_commit_result result;
    struct tn_err err;
    bed_init(&bed, 3, false);
    bed.options.commit_max_retries = 2;
    send_rival(&bed, 100);
    struct tn_entry entry = bed_entry(&bed, "ours.avro", (struct bed_file){.rows = 1});
    struct tn_commit_spec spec = bed_spec(&bed, 2);
    spec.added = &entry;
    spec.added_count = 1;
    tn_rc rc = tn_commit(&spec, &bed.worker, &result, &err);
    CHECK(rc == TN_CONFLICT && result.append_id == 0);
    CHECK(count_files(&bed, ROOT "/manifest/") ==
          3 * 3); /* the rival's: manifest, two lists each */
    CHECK(count_files(&bed, ROOT "/snapshot/") == 3 + 1);
    bed_deinit(&bed);
}

struct refusal {
    const char *what;
    int32_t level;
    int64_t first;
    int64_t last;
    const char *added;
    int32_t total;
    bool remove_absent;
};

/* Behaviour 6.4: the rows stand, the compaction is void, and nothing of it is left. */
static void compactions_that_conflict_are_refused_and_rows_stand(void)
{
    static const struct refusal cases[] = {
        {"isn't live any more", 5, 1, 2, "new.avro", 2, true},
        {"would overlap", 5, 150, 160, "new.avro", 2, false},
        {"already there", 5, 100, 200, "high.avro", 2, false},
        {"buckets", 5, 1, 2, "new.avro", 3, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct bed bed;
        struct tn_commit_result result;
        struct tn_err err = {0};
        bed_init(&bed, 3, false);
        static struct tn_entry old[2];
        static struct tn_entry result_file;
        old[0] = bed_entry(&bed, "low.avro", (struct bed_file){.rows = 1});
        old[1] = bed_entry(&bed, "high.avro",
                           (struct bed_file){.level = 5, .first = 100, .last = 200, .rows = 1});
        struct tn_commit_spec spec = bed_spec(&bed, 1);
        spec.added = old;
        spec.added_count = 2;
        (void)must_commit(&bed, &spec);
        int files = count_files(&bed, ROOT "/manifest/");

        struct bed_file file = {
            .level = cases[i].level, .first = cases[i].first, .last = cases[i].last, .rows = 1};
        result_file = bed_entry(&bed, cases[i].added, file);
        struct tn_commit_removal removal = bed_removal(&old[0]);
        result_file.total_buckets = cases[i].total;
        removal.level = cases[i].remove_absent ? 1 : 0;
        spec = bed_spec(&bed, 2);
        spec.append_even_if_empty = true;
        spec.removed = &removal;
        spec.removed_count = 1;
        spec.compacted = &result_file;
        spec.compacted_count = 1;
        tn_rc rc = tn_commit(&spec, &bed.worker, &result, &err);
        CHECK_OK(rc, err);
        CHECK(result.compact_refused && result.append_id == 2 && result.compact_id == 0);
        CHECK(strstr(err.text, cases[i].what) != NULL);
        CHECK(count_files(&bed, ROOT "/manifest/") == files + 2);
        check_chain(&bed, 2);
        bed_deinit(&bed);
    }
}

static void an_upgrade_deletes_before_it_adds(void)
{
    static struct bed bed;
    bed_init(&bed, 3, false);
    append_one(&bed, 1, "a.avro");
    struct tn_entry a = bed_entry(&bed, "a.avro", (struct bed_file){.rows = 1});
    struct tn_commit_removal removal = bed_removal(&a);
    removal.upgrade_level = 5;
    struct tn_commit_spec spec = bed_spec(&bed, 2);
    spec.removed = &removal;
    spec.removed_count = 1;
    struct tn_commit_result result = must_commit(&bed, &spec);
    CHECK(result.compact_id == 2 && result.append_id == 0);
    struct tn_snapshot s = bed_snapshot(&bed, 2);
    CHECK(strcmp(bed_live(&bed, &s), "a.avro@5") == 0 && s.delta_record_count.value == 0);
    CHECK(strcmp(bed_list(&bed, s.delta_manifest_list, s.delta_manifest_list_size), "1/1") == 0);
    bed_deinit(&bed);
}

static void a_commit_that_is_there_is_not_made_again(void)
{
    static struct bed bed;
    struct tn_commit_result result;
    struct tn_err err;
    bed_init(&bed, 3, false);
    append_one(&bed, 7, "a.avro");
    append_one(&bed, 8, "b.avro");
    struct tn_entry entry = bed_entry(&bed, "c.avro", (struct bed_file){.rows = 1});
    struct tn_commit_spec spec = bed_spec(&bed, 7);
    spec.added = &entry;
    spec.added_count = 1;
    spec.skip_if_done = true;
    tn_rc rc = tn_commit(&spec, &bed.worker, &result, &err);
    CHECK(rc == TN_EXISTS && result.append_id == 0);
    spec.identifier = 8;
    rc = tn_commit(&spec, &bed.worker, &result, &err);
    CHECK(rc == TN_EXISTS && result.append_id == 2);
    spec.user = "somebody";
    result = must_commit(&bed, &spec);
    CHECK(result.append_id == 3);
    bed_deinit(&bed);
}

/* An old commit is repeated whose snapshot has expired: later ones of its user stand for it, also
 * behind those of others. Nothing of a user stands for no one. */
static void a_commit_that_has_expired_is_not_made_again(void)
{
    static struct bed bed;
    struct tn_commit_result result;
    struct tn_err err;
    bed_init(&bed, 3, false);
    append_one(&bed, 7, "a.avro");
    append_one(&bed, 9, "b.avro");
    struct tn_entry entry = bed_entry(&bed, "c.avro", (struct bed_file){.rows = 1});
    struct tn_commit_spec spec = bed_spec(&bed, 1);
    const char *user = spec.user;
    spec.added = &entry;
    spec.added_count = 1;
    spec.user = "somebody";
    (void)must_commit(&bed, &spec);
    tn_rc rc = bed.disk.io.vtable->unlink(&bed.disk.io, ROOT "/snapshot/snapshot-1", &err);
    CHECK_OK(rc, err);
    spec.user = user;
    spec.skip_if_done = true;
    static const int64_t repeated[] = {7, 8, 9};
    for (size_t i = 0; i < COUNT(repeated); i++) {
        spec.identifier = repeated[i];
        rc = tn_commit(&spec, &bed.worker, &result, &err);
        CHECK(rc == TN_EXISTS);
    }
    entry = bed_entry(&bed, "d.avro", (struct bed_file){.rows = 1});
    spec.identifier = 10;
    result = must_commit(&bed, &spec);
    CHECK(result.append_id == 4);
    bed_deinit(&bed);
}

/* Watermark is the larger one, properties stay with their snapshot, time never goes back. */
static void what_is_inherited_is_inherited(void)
{
    static struct bed bed;
    struct tn_json_pair pair = {"tarn.round", "1"};
    bed_init(&bed, 3, false);
    struct tn_commit_spec spec = bed_spec(&bed, 1);
    spec.append_even_if_empty = true;
    spec.watermark = (struct tn_json_i64){50, true};
    spec.properties = (struct tn_json_map){&pair, 1};
    (void)must_commit(&bed, &spec);
    sim_clock_set_ms(&bed.clock, 1000);
    spec = bed_spec(&bed, 2);
    spec.append_even_if_empty = true;
    spec.watermark = (struct tn_json_i64){20, true};
    (void)must_commit(&bed, &spec);
    struct tn_snapshot first = bed_snapshot(&bed, 1);
    struct tn_snapshot second = bed_snapshot(&bed, 2);
    CHECK(first.properties.count == 1 && second.properties.count == 0);
    CHECK(second.watermark.value == 50 && second.time_ms.value == first.time_ms.value);
    bed_deinit(&bed);
}

/* ---- cuts and faults ---- */

static __attribute__((noinline)) void make_two_rounds(struct bed *bed)
{
    static struct tn_entry added[2];
    static struct tn_entry compacted;
    static struct tn_commit_removal removed[2];
    struct tn_commit_result result;
    struct tn_err err;
    added[0] = bed_entry(bed, "b.avro", (struct bed_file){.first = 1, .last = 3, .rows = 3});
    compacted =
        bed_entry(bed, "c.avro", (struct bed_file){.level = 5, .first = 1, .last = 3, .rows = 3});
    added[1] = bed_entry(bed, "a.avro", (struct bed_file){.first = 1, .last = 1, .rows = 1});
    removed[0] = bed_removal(&added[0]);
    removed[1] = bed_removal(&added[1]);
    struct tn_commit_spec spec = bed_spec(bed, 2);
    spec.added = added;
    spec.added_count = 1;
    spec.removed = removed;
    spec.removed_count = 2;
    spec.compacted = &compacted;
    spec.compacted_count = 1;
    tn_rc rc = tn_commit(&spec, &bed->worker, &result, &err);
    CHECK(rc == TN_OK || rc == TN_IO);
}

/* After any cut the newest snapshot is one of the three, whole, and the next commit goes through.
 */
static void a_cut_at_any_call_leaves_a_whole_table(void)
{
    static const char *const states[] = {"", "a.avro@0", "a.avro@0 b.avro@0", "c.avro@5"};
    uint32_t seen = 0;
    for (uint64_t cut = 1;; cut++) {
        bool off = false;
        for (uint64_t seed = 0; seed < 3; seed++) {
            static struct bed bed;
            struct tn_err err;
            int64_t id;
            bed_init(&bed, 5, false);
            append_one(&bed, 1, "a.avro");
            sim_disk_cut_at(&bed.disk, bed.disk.calls + cut);
            make_two_rounds(&bed);
            off = bed.disk.off;
            sim_disk_reboot(&bed.disk, seed);
            tn_rc rc = tn_snapshot_latest(&bed.disk.io, ROOT, &bed.own, &id, &err);
            CHECK_OK(rc, err);
            CHECK(id >= 1 && id <= 3 && (off || id == 3));
            struct tn_snapshot s = bed_snapshot(&bed, id);
            CHECK(strcmp(bed_live(&bed, &s), states[id]) == 0);
            seen |= 1u << id;
            append_one(&bed, 9, "next.avro");
            check_chain(&bed, id + 1);
            bed_deinit(&bed);
        }
        if (!off) {
            break;
        }
    }
    CHECK(seen == 14);
}

/* Each call fails once, without or after having done its work: rows are there once or not at all,
 * as the answer says, and a caller that asks again with skip_if_done has them once. */
static void a_failed_call_never_doubles_or_loses_rows(void)
{
    for (uint64_t call = 1; call < 120; call++) {
        for (int late = 0; late < 2; late++) {
            static struct bed bed;
            struct tn_commit_result result;
            struct tn_err err;
            bed_init(&bed, 5, false);
            append_one(&bed, 1, "a.avro");
            struct tn_entry entry = bed_entry(&bed, "b.avro", (struct bed_file){.rows = 2});
            struct tn_commit_spec spec = bed_spec(&bed, 2);
            spec.added = &entry;
            spec.added_count = 1;
            (late ? sim_disk_fail_call_late : sim_disk_fail_call)(&bed.disk, bed.disk.calls + call,
                                                                  TN_IO);
            tn_rc rc = tn_commit(&spec, &bed.worker, &result, &err);
            CHECK(rc == TN_OK || rc == TN_IO);
            CHECK(rc != TN_OK || result.append_id == 2);
            if (rc == TN_IO) {
                spec.skip_if_done = true;
                rc = tn_commit(&spec, &bed.worker, &result, &err);
                CHECK(rc == TN_OK || rc == TN_EXISTS);
            }
            sim_disk_fail_call(&bed.disk, 0, TN_OK);
            struct tn_snapshot s = bed_snapshot(&bed, 2);
            CHECK(strcmp(bed_live(&bed, &s), "a.avro@0 b.avro@0") == 0);
            bed_deinit(&bed);
        }
    }
}

/* A full disk takes nothing from a table: FULL, and what the attempt wrote is gone again. */
static void a_full_disk_leaves_no_files_behind(void)
{
    static struct bed bed;
    struct tn_commit_result result;
    struct tn_err err;
    bed_init(&bed, 5, false);
    append_one(&bed, 1, "a.avro");
    int files = count_files(&bed, ROOT "/manifest/");
    struct tn_entry entry = bed_entry(&bed, "b.avro", (struct bed_file){.rows = 2});
    struct tn_commit_spec spec = bed_spec(&bed, 2);
    spec.added = &entry;
    spec.added_count = 1;
    uint64_t used = sim_disk_used(&bed.disk);
    tn_rc rc = TN_FULL;
    for (uint64_t room = 0; rc == TN_FULL; room += 200) {
        CHECK(count_files(&bed, ROOT "/manifest/") == files && room < 10000);
        sim_disk_capacity(&bed.disk, used + room);
        rc = tn_commit(&spec, &bed.worker, &result, &err);
    }
    CHECK_OK(rc, err);
    check_chain(&bed, 2);
    bed_deinit(&bed);
}

/* Three manifests wait to be merged and there are `room` bytes: what the base list became, or
 * "again". */
static __attribute__((noinline)) const char *commit_in(struct bed *bed, size_t room)
{
    struct tn_commit_result result;
    struct tn_err err;
    size_t size = bed->worker.arena.size;
    bed->worker.arena.size = bed->worker.arena.used + room;
    struct tn_entry entry = bed_entry(bed, "4.avro", (struct bed_file){.rows = 1});
    struct tn_commit_spec spec = bed_spec(bed, 4);
    spec.added = &entry;
    spec.added_count = 1;
    tn_rc rc = tn_commit(&spec, &bed->worker, &result, &err);
    CHECK(rc == TN_OK || rc == TN_AGAIN);
    bed->worker.arena.size = size;
    if (rc == TN_AGAIN) {
        return "again";
    }
    struct tn_snapshot s = bed_snapshot(bed, 4);
    CHECK(strcmp(bed_live(bed, &s), "1.avro@0 2.avro@0 3.avro@0 4.avro@0") == 0);
    return bed_list(bed, s.base_manifest_list, s.base_manifest_list_size);
}

/* Less and less memory: merging is given up first, then AGAIN; never a damaged table. */
static void little_memory_gives_up_merging_first(void)
{
    bool merged = false;
    bool unmerged = false;
    bool again = false;
    for (size_t room = 100 << 10; room < (1600 << 10); room += 100 << 10) {
        static struct bed bed;
        bed_init(&bed, 5, false);
        append_one(&bed, 1, "1.avro");
        append_one(&bed, 2, "2.avro");
        append_one(&bed, 3, "3.avro");
        bed.options.manifest_merge_min = 3;
        const char *base = commit_in(&bed, room);
        merged = merged || strcmp(base, "3/0") == 0;
        unmerged = unmerged || strcmp(base, "1/0,1/0,1/0") == 0;
        again = again || strcmp(base, "again") == 0;
        bed_deinit(&bed);
    }
    CHECK(merged && unmerged && again);
}

static const struct test tests[] = {
    TEST(a_first_commit_is_what_paimon_writes),
    TEST(manifests_merge_as_paimon_s_do),
    TEST(chains_of_commits_hold_what_a_model_holds),
    TEST(lost_names_are_tried_again_and_all_commits_are_there_once),
    TEST(a_name_that_was_taken_and_has_expired_is_not_taken_again),
    TEST(a_snapshot_on_top_of_the_first_stands_on_it),
    TEST(too_many_lost_names_are_a_conflict_that_leaves_nothing),
    TEST(compactions_that_conflict_are_refused_and_rows_stand),
    TEST(an_upgrade_deletes_before_it_adds),
    TEST(a_commit_that_is_there_is_not_made_again),
    TEST(a_commit_that_has_expired_is_not_made_again),
    TEST(what_is_inherited_is_inherited),
    TEST(a_cut_at_any_call_leaves_a_whole_table),
    TEST(a_failed_call_never_doubles_or_loses_rows),
    TEST(a_full_disk_leaves_no_files_behind),
    TEST(little_memory_gives_up_merging_first),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
