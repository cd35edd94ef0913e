#include <stdarg.h>
#include <stdio.h>

#include "file/names.h"
#include "table/fsck_private.h"

/* A file that was missing while its subject was there; whether it still is, is asked at the end. */
struct tn_fsck_missing {
    struct tn_fsck_missing *next;
    int64_t id;
    size_t file; /* where in `texts` each text begins; the subject's path is the first */
    size_t text;
    char texts[];
};

enum { HELD_MAX = 256 }; /* beyond: told at once, so that damage can't eat the memory */

void tn_fsck_subject(struct tn_fsck *f, const char *path, int64_t id)
{
    f->subject = path;
    f->subject_id = id;
    f->left_out = false;
}

/* Files go before their snapshot does, so one below EARLIEST may be in pieces. Official expiry
 * moves EARLIEST last: there only the end of the check tells. */
static tn_rc look_again(struct tn_fsck *f, const char *path, int64_t id, bool *gone,
                        struct tn_err *err)
{
    uint64_t size;
    int64_t earliest = 0;
    tn_rc rc = f->io->vtable->stat(f->io, path, &size, err);
    if (rc == TN_OK && id > 0) {
        size_t mark = tn_arena_mark(&f->worker->arena);
        rc = tn_snapshot_earliest(f->io, f->home, &f->worker->arena, &earliest, err);
        tn_arena_reset(&f->worker->arena, mark);
    }
    *gone = rc == TN_ABSENT || (rc == TN_OK && id > 0 && id < earliest);
    return rc == TN_OK || rc == TN_ABSENT ? TN_OK : tn_fsck_stop(f, rc);
}

tn_rc tn_fsck_expired(struct tn_fsck *f, int64_t id, bool *gone, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *path =
        tn_name_numbered(&f->worker->arena, f->home, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = path ? look_again(f, path, id, gone, err) : tn_fsck_no_path(f, err);
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

/* The same of a subject before: this one lives longer. */
static void let_go(struct tn_fsck *f, const char *file)
{
    for (struct tn_fsck_missing **at = &f->held; *at; at = &(*at)->next) {
        struct tn_fsck_missing *held = *at;
        if (strcmp(held->texts + held->file, file) == 0 &&
            strcmp(held->texts + held->text, f->text) == 0) {
            *at = held->next;
            tn_heap_give(f->spec->heap, held);
            f->held_count--;
            return;
        }
    }
}

static bool hold(struct tn_fsck *f, const char *file)
{
    let_go(f, file);
    size_t subject_size = strlen(f->subject) + 1;
    size_t file_size = strlen(file) + 1;
    size_t text_size = strlen(f->text) + 1;
    if (f->held_count == HELD_MAX) {
        return false;
    }
    struct tn_fsck_missing *held =
        tn_heap_take(f->spec->heap, sizeof *held + subject_size + file_size + text_size);
    if (!held) {
        return false;
    }
    *held = (struct tn_fsck_missing){.next = f->held,
                                     .id = f->subject_id,
                                     .file = subject_size,
                                     .text = subject_size + file_size};
    memcpy(held->texts, f->subject, subject_size);
    memcpy(held->texts + held->file, file, file_size);
    memcpy(held->texts + held->text, f->text, text_size);
    f->held = held;
    f->held_count++;
    return true;
}

tn_rc tn_fsck_missing(struct tn_fsck *f, struct tn_err *err, const char *file, const char *format,
                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    f->missed++;
    if (f->left_out || f->forgives) {
        return TN_OK;
    }
    if (f->subject) {
        tn_rc rc = look_again(f, f->subject, f->subject_id, &f->left_out, err);
        if (rc != TN_OK || f->left_out || hold(f, file)) {
            return rc;
        }
    }
    return tn_fsck_told(f, err, file);
}

tn_rc tn_fsck_note_left_out(struct tn_fsck *f, struct tn_err *err)
{
    f->result->left_out++;
    return tn_fsck_note(f, err, f->subject, "went while it was checked: left out");
}

static struct tn_fsck_missing *take_held(struct tn_fsck *f)
{
    struct tn_fsck_missing *held = f->held;
    f->held = held ? held->next : NULL;
    f->held_count -= held ? 1 : 0;
    return held;
}

void tn_fsck_drop_held(struct tn_fsck *f)
{
    for (struct tn_fsck_missing *held = take_held(f); held; held = take_held(f)) {
        tn_heap_give(f->spec->heap, held);
    }
}

tn_rc tn_fsck_any_left(struct tn_fsck *f, bool *any, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    *any = false;
    for (const struct tn_fsck_missing *held = f->held; rc == TN_OK && held && !*any;
         held = held->next) {
        rc = look_again(f, held->texts, held->id, any, err);
    }
    return rc;
}

/* The list is newest first; findings come in order. */
static void reverse(struct tn_fsck *f)
{
    struct tn_fsck_missing *turned = NULL;
    while (f->held) {
        struct tn_fsck_missing *held = f->held;
        f->held = held->next;
        held->next = turned;
        turned = held;
    }
    f->held = turned;
}

tn_rc tn_fsck_tell_held(struct tn_fsck *f, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    reverse(f);
    for (struct tn_fsck_missing *held = take_held(f); held; held = take_held(f)) {
        bool gone = false;
        rc = rc == TN_OK ? look_again(f, held->texts, held->id, &gone, err) : rc;
        if (rc == TN_OK && !gone) {
            rc = tn_fsck_problem(f, err, held->texts + held->file, "%s", held->texts + held->text);
        }
        tn_heap_give(f->spec->heap, held);
    }
    return rc;
}
