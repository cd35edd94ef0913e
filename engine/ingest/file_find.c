#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/file_look.h"

enum {
    COPIES_MAX = 512,      /* files that are opened to see whether they are one */
    COPY_HASHED_MIN = 256, /* with fewer first bytes the same two files may be two; a guess */
    MISSED_MAX = 2,        /* a file may be renamed while its folder is read */
    SPREAD = 0x1E3779B1,   /* inodes lie close together */
    COUNTER_DIGITS = 5,    /* of NAME.12; more are a date */
};

static const char nothing_known[] = "0-0-0-";

/* ---- identities ---- */

static bool same_file(const struct tn_source_about *a, const struct tn_source_about *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static const char *behind_dash(const char *text)
{
    const char *dash = strchr(text, '-');
    return dash ? dash + 1 : text + strlen(text);
}

static uint64_t inode_of(const char *identity)
{
    return strtoull(behind_dash(identity), NULL, 10);
}

/* "<bytes hashed>-<hash>" */
static const char *bytes_of(const char *identity)
{
    return behind_dash(behind_dash(identity));
}

enum likeness { OTHER, ALIKE, COPY, DEVICE_RENAMED, SAME };

static enum likeness compare(const char *known, const char *identity)
{
    if (strcmp(known, identity) == 0) {
        return SAME;
    }
    if (strcmp(bytes_of(known), bytes_of(identity)) != 0) {
        return OTHER;
    }
    if (inode_of(known) == inode_of(identity)) {
        return DEVICE_RENAMED;
    }
    return strtoull(bytes_of(known), NULL, 10) >= COPY_HASHED_MIN ? COPY : ALIKE;
}

/* ---- names ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Behind NAME and its "." or "-". */
static const char *suffix_of(const struct tn_file_look *l, const char *name)
{
    return name + strlen(base_of(l->path)) + 1;
}

static bool name_sibling(struct tn_file_look *l, const char *name)
{
    int size = snprintf(l->sibling, sizeof l->sibling, "%s%s%s", l->folder,
                        l->folder[strlen(l->folder) - 1] == '/' ? "" : "/", name);
    return size > 0 && (size_t)size < sizeof l->sibling;
}

static bool is_packed(const char *name)
{
    static const char *const endings[] = {".gz", ".xz", ".bz2", ".zst", ".lz4", ".Z"};
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t end = strlen(endings[i]);
        if (size > end && strcmp(name + size - end, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- the place's file ---- */

struct search {
    struct tn_file_look *look;
    uint64_t sums[2]; /* of what each walk saw */
    uint32_t count;   /* of files that may be copies */
    enum likeness best;
    struct tn_source_about about; /* of the best, whose path is `coming` */
};

static tn_rc open_known(const struct tn_file_look *l, const char *path, struct tn_source *file,
                        enum likeness *likeness, struct tn_err *err)
{
    tn_rc rc = tn_source_open(file, path, l->place.identity, err);
    if (rc == TN_OK) {
        *likeness = compare(l->place.identity, file->identity);
    }
    return rc;
}

/* Only one that has the place's inode is worth an error. */
static tn_rc consider(struct search *s, const char *path, bool copies, struct tn_err *err)
{
    struct tn_file_look *l = s->look;
    struct tn_source_about about;
    struct tn_source file;
    enum likeness likeness = OTHER;
    if (tn_source_stat(path, &about, err) != TN_OK || !about.regular ||
        about.size < l->place.offset) {
        return TN_OK;
    }
    bool inode = about.inode == inode_of(l->place.identity);
    if (!inode && (!copies || ++s->count > COPIES_MAX)) {
        return TN_OK;
    }
    tn_rc rc = open_known(l, path, &file, &likeness, err);
    if (rc != TN_OK) {
        return inode && err->os != ENOENT ? rc : TN_OK;
    }
    tn_source_close(&file);
    bool better =
        likeness > s->best || (likeness == s->best && about.modified_ns > s->about.modified_ns);
    if (better && likeness > ALIKE) {
        s->best = likeness;
        s->about = about;
        (void)snprintf(l->coming, sizeof l->coming, "%s", path);
    }
    return TN_OK;
}

/* A name that moves meanwhile may be seen twice or not at all. Then two walks differ. */
static bool add_to_sum(struct tn_file_look *l, const char *name, uint64_t *sum)
{
    struct tn_source_about about;
    struct tn_err ignored;
    bool there = name_sibling(l, name) && tn_source_stat(l->sibling, &about, &ignored) == TN_OK;
    *sum += there ? about.inode * SPREAD + 1 : 0;
    return there;
}

static tn_rc sum_sibling(void *user, const char *name, struct tn_err *err)
{
    (void)err;
    struct search *s = user;
    (void)add_to_sum(s->look, name, &s->sums[0]);
    return TN_OK;
}

static tn_rc consider_sibling(void *user, const char *name, struct tn_err *err)
{
    struct search *s = user;
    bool there = add_to_sum(s->look, name, &s->sums[1]);
    return there ? consider(s, s->look->sibling, true, err) : TN_OK;
}

static tn_rc rotates(const struct tn_file_look *l, struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "%s is rotated just now", l->path);
}

/* AGAIN: what stands under the path changed meanwhile, so that a name may have been missed. */
static tn_rc check_still(const struct tn_file_look *l, tn_rc before,
                         const struct tn_source_about *about, struct tn_err *err)
{
    struct tn_source_about now = {0};
    tn_rc rc = tn_source_stat(l->path, &now, err);
    bool still = rc == before && (rc != TN_OK || same_file(&now, about));
    return still ? TN_OK : rotates(l, err);
}

static void take_file(struct tn_file_look *l, const struct tn_source *file, const char *path)
{
    (void)snprintf(l->name, sizeof l->name, "%s", path);
    l->file = *file;
    l->file.name = l->name;
    l->open = true;
    l->header_size = 0;
    l->scanned = (struct tn_file_scan){.end = 0};
    l->missed = 0;
    l->idle = (struct tn_source_about){0};
}

/* Goes on in `coming`, where the place is. */
static tn_rc open_found(struct tn_file_look *l, enum likeness least, struct tn_err *err)
{
    struct tn_source file;
    enum likeness likeness = OTHER;
    tn_rc rc = open_known(l, l->coming, &file, &likeness, err);
    if (rc != TN_OK) {
        return err->os == ENOENT ? TN_AGAIN : rc;
    }
    if (likeness < least) {
        tn_source_close(&file);
        return rotates(l, err);
    }
    take_file(l, &file, l->coming);
    (void)memcpy(l->place.identity, file.identity, sizeof l->place.identity);
    return TN_OK;
}

/* AGAIN: it is not the one that was seen. */
static tn_rc open_anew(struct tn_file_look *l, const char *path,
                       const struct tn_source_about *about, struct tn_err *err)
{
    struct tn_source file;
    struct tn_source_about now;
    if (!about->regular) {
        return tn_err_set(err, TN_IO, 0, "open %s: not a file", path);
    }
    tn_rc rc = tn_source_open(&file, path, nothing_known, err);
    if (rc != TN_OK) {
        return err->os == ENOENT ? TN_AGAIN : rc;
    }
    rc = tn_source_about(&file, &now, err);
    if (rc == TN_OK && !same_file(&now, about)) {
        rc = rotates(l, err);
    }
    if (rc != TN_OK) {
        tn_source_close(&file);
        return rc;
    }
    tn_file_look_close(l);
    take_file(l, &file, path);
    l->place = (struct tn_file_place){.modified_ns = about->modified_ns,
                                      .passed = l->place.passed + l->place.offset};
    (void)memcpy(l->place.identity, file.identity, sizeof l->place.identity);
    return TN_OK;
}

static tn_rc consider_siblings(struct search *s, struct tn_err *err)
{
    struct tn_file_look *l = s->look;
    tn_rc rc = tn_source_siblings(l->folder, base_of(l->path), sum_sibling, s, err);
    if (rc == TN_OK) {
        rc = tn_source_siblings(l->folder, base_of(l->path), consider_sibling, s, err);
    }
    if (rc == TN_OK && s->sums[0] != s->sums[1]) {
        return rotates(l, err);
    }
    return rc != TN_OK && err->os == ENOENT ? TN_ABSENT : rc;
}

/* ---- the one behind it ---- */

struct queue {
    struct tn_file_look *look;
    const struct tn_source_about *path;
    struct tn_source_about current;
    char suffix[2][64]; /* of the current one, in each walk */
    struct tn_file_next *next;
    char next_suffix[64];
    uint64_t sums[2]; /* of what each walk saw */
};

/* NAME.2 is older than NAME.1; of dates the smaller. */
static bool is_counter(const char *suffix)
{
    size_t digits = strspn(suffix, "0123456789");
    return digits > 0 && digits <= COUNTER_DIGITS && !suffix[digits];
}

/* Whether b came after a. Times of change are those of a clock that ticks. */
static bool is_after(const struct tn_source_about *a, const char *a_suffix,
                     const struct tn_source_about *b, const char *b_suffix)
{
    if (a->modified_ns != b->modified_ns) {
        return b->modified_ns > a->modified_ns;
    }
    if (is_counter(a_suffix) && is_counter(b_suffix)) {
        return strtol(a_suffix, NULL, 10) > strtol(b_suffix, NULL, 10);
    }
    return strcmp(a_suffix, b_suffix) < 0;
}

/* A number or a date: other names may be anything. */
static bool look_at(struct queue *q, int walk, const char *name, struct tn_source_about *about)
{
    const char *suffix = suffix_of(q->look, name);
    struct tn_err ignored;
    return add_to_sum(q->look, name, &q->sums[walk]) && suffix[0] >= '0' && suffix[0] <= '9' &&
           strlen(suffix) < sizeof q->suffix[0] &&
           tn_source_stat(q->look->sibling, about, &ignored) == TN_OK && about->regular;
}

static bool is_current(struct queue *q, int walk, const char *name,
                       const struct tn_source_about *about)
{
    bool current = same_file(about, &q->current);
    if (current) {
        (void)snprintf(q->suffix[walk], sizeof q->suffix[walk], "%s", suffix_of(q->look, name));
    }
    return current;
}

static tn_rc find_current(void *user, const char *name, struct tn_err *err)
{
    (void)err;
    struct queue *q = user;
    struct tn_source_about about;
    if (look_at(q, 0, name, &about)) {
        (void)is_current(q, 0, name, &about);
    }
    return TN_OK;
}

static tn_rc find_oldest(void *user, const char *name, struct tn_err *err)
{
    (void)err;
    struct queue *q = user;
    struct tn_source_about about;
    if (!look_at(q, 1, name, &about) || is_current(q, 1, name, &about) ||
        same_file(&about, q->path) || about.size == 0) {
        return TN_OK;
    }
    const char *suffix = suffix_of(q->look, name);
    if (is_packed(name)) {
        q->next->packed |= about.modified_ns > q->current.modified_ns;
        return TN_OK;
    }
    if (!is_after(&q->current, q->suffix[0], &about, suffix) ||
        (q->next->found && is_after(&q->next->about, q->next_suffix, &about, suffix))) {
        return TN_OK;
    }
    q->next->found = true;
    q->next->about = about;
    (void)snprintf(q->next_suffix, sizeof q->next_suffix, "%s", suffix);
    (void)snprintf(q->look->coming, sizeof q->look->coming, "%s", q->look->sibling);
    return TN_OK;
}

/* `next` is the oldest sibling that is after `q->current`, if any is. */
static tn_rc find_behind(struct queue *q, tn_rc there, struct tn_err *err)
{
    struct tn_file_look *l = q->look;
    tn_rc rc = tn_source_siblings(l->folder, base_of(l->path), find_current, q, err);
    if (rc == TN_OK) {
        rc = tn_source_siblings(l->folder, base_of(l->path), find_oldest, q, err);
    }
    bool moved = q->sums[0] != q->sums[1] || strcmp(q->suffix[0], q->suffix[1]) != 0;
    if (rc == TN_OK && moved) {
        rc = rotates(l, err);
    }
    return rc == TN_OK ? check_still(l, there, q->path, err) : rc;
}

tn_rc tn_file_find_next(struct tn_file_look *look, struct tn_file_next *next, struct tn_err *err)
{
    struct tn_file_look *l = look;
    struct tn_source_about path = {0};
    struct queue q = {.look = l, .path = &path, .next = next};
    *next = (struct tn_file_next){0};
    tn_rc there = tn_source_stat(l->path, &path, err);
    tn_rc rc = tn_source_about(&l->file, &q.current, err);
    if (rc != TN_OK || (there == TN_OK && same_file(&path, &q.current))) {
        return rc;
    }
    rc = find_behind(&q, there, err);
    if (rc == TN_OK && !next->found && there == TN_OK && path.regular && path.size > 0) {
        next->found = true;
        next->about = path;
        (void)snprintf(l->coming, sizeof l->coming, "%s", l->path);
    }
    return rc;
}

tn_rc tn_file_begin_next(struct tn_file_look *look, const struct tn_file_next *next,
                         struct tn_err *err)
{
    tn_rc rc = open_anew(look, look->coming, &next->about, err);
    if (rc == TN_OK && next->packed) {
        look->loss = TN_FILE_LOSS_PACKED;
    }
    return rc;
}

/* ---- the place's file, or what is left behind it ---- */

static tn_rc absent(const struct tn_file_look *l, struct tn_err *err)
{
    return tn_err_set(err, TN_ABSENT, ENOENT, "open %s: there is no such file", l->path);
}

/* `coming` came behind the place's file, or is a copy of it of which too little was read. */
static tn_rc open_left(struct tn_file_look *l, const struct tn_file_next *next, struct tn_err *err)
{
    struct tn_source file;
    enum likeness likeness = OTHER;
    tn_rc rc = open_known(l, l->coming, &file, &likeness, err);
    if (rc != TN_OK) {
        return err->os == ENOENT ? TN_AGAIN : rc;
    }
    tn_source_close(&file);
    bool copy = likeness >= ALIKE && next->about.size >= l->place.offset;
    return copy ? open_found(l, ALIKE, err) : open_anew(l, l->coming, &next->about, err);
}

/* The place's file is gone, and with it its name: what came behind it was changed after the last
 * byte that was read. Where the clock doesn't tell, rather twice than not at all. */
static tn_rc give_up(struct tn_file_look *l, tn_rc there, const struct tn_source_about *path,
                     struct tn_err *err)
{
    struct tn_file_next next = {0};
    struct queue q = {
        .look = l, .path = path, .current = {.modified_ns = l->place.modified_ns}, .next = &next};
    if (++l->missed < MISSED_MAX) {
        return tn_err_set(err, TN_AGAIN, 0, "the file that %s was is not found", l->path);
    }
    tn_rc rc = find_behind(&q, there, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (!next.found && there != TN_OK) {
        return absent(l, err);
    }
    bool cut = there == TN_OK && path->inode == inode_of(l->place.identity);
    bool any = l->place.offset > 0;
    rc = next.found ? open_left(l, &next, err) : open_anew(l, l->path, path, err);
    if (rc == TN_OK && any) {
        l->loss = next.packed ? TN_FILE_LOSS_PACKED : cut ? TN_FILE_LOSS_CUT : TN_FILE_LOSS_GONE;
    }
    return rc;
}

tn_rc tn_file_find(struct tn_file_look *look, struct tn_err *err)
{
    struct tn_file_look *l = look;
    struct tn_source_about path = {0};
    struct search s = {.look = l};
    tn_rc there = tn_source_stat(l->path, &path, err);
    if (there != TN_OK && there != TN_ABSENT) {
        return there;
    }
    if (!l->place.identity[0]) {
        return there == TN_OK ? open_anew(l, l->path, &path, err) : there;
    }
    tn_rc rc = there == TN_OK ? consider(&s, l->path, false, err) : TN_OK;
    if (rc == TN_OK && s.best != SAME) {
        rc = consider_siblings(&s, err);
    }
    if (rc == TN_OK) {
        rc = check_still(l, there, &path, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (s.best > COPY || (s.best == COPY && ++l->missed >= MISSED_MAX)) {
        return open_found(l, COPY, err);
    }
    if (s.best == COPY) { /* the file itself may have moved past the walk */
        return rotates(l, err);
    }
    return give_up(l, there, &path, err);
}
