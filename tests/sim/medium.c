#include "sim/medium.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sim/mallocs.h"

void *sim_grown(void *array, size_t count, size_t item_size)
{
    if ((count & (count - 1)) == 0) { /* full at each power of two, and at 0 */
        sim_mallocs++;
        array = realloc(array, (count > 0 ? 2 * count : 1) * item_size);
        CHECK(array != NULL);
    }
    return array;
}

void *sim_copied(const void *data, size_t size)
{
    sim_mallocs++;
    unsigned char *copy = malloc(size > 0 ? size : 1);
    CHECK(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

char *sim_copied_text(const char *text)
{
    return text ? sim_copied(text, strlen(text) + 1) : NULL;
}

void *sim_copied_array(const void *array, size_t count, size_t item_size)
{
    size_t capacity = 1;
    while (capacity < count) {
        capacity *= 2;
    }
    sim_mallocs++;
    void *copy = malloc(capacity * item_size);
    CHECK(copy != NULL);
    if (count > 0) {
        memcpy(copy, array, count * item_size);
    }
    return copy;
}

void sim_set_size(struct sim_disk *disk, struct sim_inode *inode, size_t size)
{
    if (size > inode->size) {
        sim_mallocs++;
        unsigned char *data = realloc(inode->data, size);
        CHECK(data != NULL);
        inode->data = data;
    }
    disk->memory += size - inode->size;
    inode->size = size;
    CHECK(disk->memory <= disk->memory_max);
}

void sim_drop_old(struct sim_disk *disk, struct sim_inode *inode)
{
    disk->memory -= inode->old ? inode->old_size : 0;
    free(inode->old);
    inode->old = NULL;
}

struct sim_entry *sim_copied_entries(const struct sim_entry *entries, uint32_t count)
{
    struct sim_entry *copy = sim_copied_array(entries, count, sizeof *copy);
    for (uint32_t i = 0; i < count; i++) {
        copy[i].name = sim_copied_text(entries[i].name);
    }
    return copy;
}

void sim_free_entries(struct sim_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(entries[i].name);
    }
    free(entries);
}

static uint32_t hash_name(uint32_t dir, const char *name)
{
    uint32_t hash = 2166136261U ^ dir; /* FNV-1a */
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    }
    return hash;
}

uint32_t sim_find(const struct sim_entry *entries, uint32_t count, uint32_t dir, const char *name)
{
    uint32_t hash = hash_name(dir, name);
    for (uint32_t i = 0; i < count; i++) {
        const struct sim_entry *entry = &entries[i];
        if (entry->hash == hash && entry->dir == dir && strcmp(entry->name, name) == 0) {
            return i;
        }
    }
    return SIM_NONE;
}

void sim_put_name(struct sim_entry **entries, uint32_t *count, uint32_t dir, const char *name,
                  uint32_t inode)
{
    uint32_t at = sim_find(*entries, *count, dir, name);
    if (at != SIM_NONE) {
        (*entries)[at].inode = inode;
        return;
    }
    *entries = sim_grown(*entries, *count, sizeof **entries);
    (*entries)[(*count)++] = (struct sim_entry){
        .dir = dir, .inode = inode, .hash = hash_name(dir, name), .name = sim_copied_text(name)};
}

void sim_drop_at(struct sim_entry *entries, uint32_t *count, uint32_t at)
{
    free(entries[at].name);
    entries[at] = entries[--*count];
}

static void drop_name(struct sim_entry *entries, uint32_t *count, uint32_t dir, const char *name)
{
    uint32_t at = sim_find(entries, *count, dir, name);
    if (at != SIM_NONE) {
        sim_drop_at(entries, count, at);
    }
}

void sim_apply(struct sim_entry **entries, uint32_t *count, const struct sim_change *change)
{
    if (change->kind == SIM_CHANGE_UNLINK) {
        drop_name(*entries, count, change->dir, change->name);
        return;
    }
    if (change->name_old) {
        drop_name(*entries, count, change->dir, change->name_old);
    }
    sim_put_name(entries, count, change->dir, change->name, change->inode);
}

void sim_free_change(struct sim_change *change)
{
    free(change->name);
    free(change->name_old);
}

void sim_count_links(struct sim_disk *disk)
{
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        disk->inodes[i].links = 0;
    }
    for (uint32_t i = 0; i < disk->entry_count; i++) {
        disk->inodes[disk->entries[i].inode].links++;
    }
    disk->inodes[SIM_ROOT].links = 1;
}

void sim_change_names(struct sim_disk *disk, enum sim_change_kind kind, uint32_t dir,
                      uint32_t inode, const char *name, const char *name_old)
{
    disk->changes = sim_grown(disk->changes, disk->change_count, sizeof *disk->changes);
    struct sim_change *change = &disk->changes[disk->change_count++];
    *change = (struct sim_change){.kind = kind,
                                  .dir = dir,
                                  .inode = inode,
                                  .name = sim_copied_text(name),
                                  .name_old = sim_copied_text(name_old)};
    sim_apply(&disk->entries, &disk->entry_count, change);
    sim_count_links(disk);
}

void sim_settle(struct sim_disk *disk, uint32_t dir)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->change_count; i++) {
        struct sim_change *change = &disk->changes[i];
        if (dir != SIM_NONE && change->dir != dir) {
            disk->changes[kept++] = *change;
            continue;
        }
        sim_apply(&disk->stable, &disk->stable_count, change);
        sim_free_change(change);
    }
    disk->change_count = kept;
}

uint32_t sim_new_inode(struct sim_disk *disk, bool is_dir)
{
    uint32_t at = 0;
    while (at < disk->inode_count && disk->inodes[at].used) {
        at++;
    }
    if (at == disk->inode_count) {
        disk->inodes = sim_grown(disk->inodes, disk->inode_count, sizeof *disk->inodes);
        disk->inode_count++;
    }
    disk->inodes[at] =
        (struct sim_inode){.used = true, .is_dir = is_dir, .modified_ms = disk->now_ms};
    return at;
}

void sim_free_inode(struct sim_disk *disk, struct sim_inode *inode)
{
    disk->memory -= inode->size;
    sim_drop_old(disk, inode);
    free(inode->data);
    *inode = (struct sim_inode){0};
}

void sim_free_unreachable(struct sim_disk *disk)
{
    sim_mallocs++;
    bool *reached = calloc(disk->inode_count, sizeof *reached);
    CHECK(reached != NULL);
    reached[SIM_ROOT] = true;
    for (uint32_t i = 0; i < disk->entry_count; i++) {
        reached[disk->entries[i].inode] = true;
    }
    for (uint32_t i = 0; i < disk->stable_count; i++) {
        reached[disk->stable[i].inode] = true;
    }
    for (uint32_t i = 0; i < disk->change_count; i++) {
        reached[disk->changes[i].inode] = true;
        reached[disk->changes[i].dir] = true;
    }
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        struct sim_inode *inode = &disk->inodes[i];
        if (inode->used && !reached[i] && inode->opens == 0) {
            sim_free_inode(disk, inode);
        }
    }
    free(reached);
}

void sim_copy_end(char to[SIM_PATH_SIZE], const char *path)
{
    size_t length = strlen(path);
    size_t skip = length >= SIM_PATH_SIZE ? length - SIM_PATH_SIZE + 1 : 0;
    memcpy(to, path + skip, length - skip + 1);
}

void sim_trace(struct sim_disk *disk, uint64_t number, const char *verb, const char *path,
               bool changes)
{
    disk->trace = sim_grown(disk->trace, (size_t)disk->trace_count, sizeof *disk->trace);
    struct sim_call *call = &disk->trace[disk->trace_count++];
    *call = (struct sim_call){.number = number, .verb = verb, .changes = changes};
    sim_copy_end(call->path, path);
}
