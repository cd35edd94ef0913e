#include "table/folder.h"

enum { NAME_SIZE = 256 }; /* NAME_MAX and a zero */

struct pass {
    const struct tn_folder *folder;
    struct tn_heap heap;
    char **names; /* ascending */
    uint32_t count;
    uint32_t room;
    char floor[NAME_SIZE]; /* the last name of the passes before */
    char limit[NAME_SIZE]; /* the smallest that this pass gave up, "" for none */
    bool first;
};

static uint32_t place_of(const struct pass *p, const char *name)
{
    uint32_t low = 0;
    uint32_t high = p->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(p->names[middle], name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void give_up_largest(struct pass *p)
{
    char *largest = p->names[--p->count];
    memcpy(p->limit, largest, strlen(largest) + 1);
    tn_heap_give(&p->heap, largest);
}

static bool make_room(struct pass *p)
{
    if (p->count < p->room) {
        return true;
    }
    uint32_t wanted = p->room ? 2 * p->room : 16;
    void *made = tn_heap_resize(&p->heap, p->names, wanted * sizeof *p->names);
    if (made) {
        p->names = made;
        p->room = wanted;
    }
    return made != NULL;
}

static bool outside(const struct pass *p, const char *name)
{
    return (!p->first && strcmp(name, p->floor) <= 0) ||
           (p->limit[0] && strcmp(name, p->limit) >= 0);
}

/* True: it is kept, or belongs to a later pass. */
static bool keep(struct pass *p, const char *name)
{
    size_t size = strlen(name) + 1;
    while (!outside(p, name)) {
        char *kept = make_room(p) ? tn_heap_take(&p->heap, size) : NULL;
        if (kept) {
            memcpy(kept, name, size);
            uint32_t at = place_of(p, name);
            memmove(p->names + at + 1, p->names + at, (p->count - at) * sizeof *p->names);
            p->names[at] = kept;
            p->count++;
            return true;
        }
        if (p->count == 0) {
            return false;
        }
        give_up_largest(p);
    }
    return true;
}

static tn_rc look_at(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct pass *p = user;
    size_t size = strlen(name);
    size_t before = strlen(p->folder->prefix);
    size_t behind = strlen(p->folder->suffix);
    char inner[NAME_SIZE];
    if (is_dir != p->folder->folders || size <= before + behind || size >= NAME_SIZE ||
        memcmp(name, p->folder->prefix, before) != 0 ||
        memcmp(name + size - behind, p->folder->suffix, behind) != 0) {
        return TN_OK;
    }
    size -= before + behind;
    memcpy(inner, name + before, size);
    inner[size] = 0;
    return keep(p, inner) ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's names");
}

static tn_rc give_names(struct pass *p, tn_folder_fn *each, void *user, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < p->count; i++) {
        memcpy(p->floor, p->names[i], strlen(p->names[i]) + 1);
        rc = each(user, p->names[i], err);
    }
    return rc;
}

tn_rc tn_folder_each(const struct tn_folder *folder, void *window, size_t window_size,
                     tn_folder_fn *each, void *user, struct tn_err *err)
{
    struct pass p = {.folder = folder, .first = true};
    tn_rc rc;
    do {
        tn_heap_init(&p.heap, window, window_size, false);
        p.names = NULL;
        p.count = 0;
        p.room = 0;
        p.limit[0] = 0;
        rc = folder->io->vtable->list(folder->io, folder->path, look_at, &p, err);
        if (rc == TN_OK) {
            rc = give_names(&p, each, user, err);
        }
        tn_heap_deinit(&p.heap);
        p.first = p.first && p.count == 0;
    } while (rc == TN_OK && p.limit[0]);
    return rc == TN_ABSENT ? TN_OK : rc;
}
