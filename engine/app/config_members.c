/* Members of tables, by lists of them, and the kinds of values that many have. */
#include <inttypes.h>

#include "app/config_private.h"
#include "schema/value.h"

enum { WORDS_MAX = 32, LISTED_MAX = 24 };

/* ---- the arena of what is kept ---- */

void *tn_config_take(struct tn_config_reader *r, size_t size)
{
    void *memory = tn_arena_take(r->kept, size);
    r->full |= !memory;
    return memory;
}

const char *tn_config_keep(struct tn_config_reader *r, const char *text)
{
    const char *kept = tn_arena_text(r->kept, tn_bytes_of(text));
    r->full |= !kept;
    return kept;
}

const char *tn_config_path(struct tn_config_reader *r, const char *text)
{
    const char *path = text[0] == '/' ? tn_arena_text(r->kept, tn_bytes_of(text))
                                      : tn_arena_format(r->kept, "%s/%s", r->folder, text);
    r->full |= !path;
    return path;
}

/* ---- members ---- */

struct tn_config_node *tn_config_member_of(const struct tn_config_node *node, const char *name)
{
    struct tn_config_node *child = node->first;
    while (child && (!child->key || strcmp(child->key, name) != 0)) {
        child = child->next;
    }
    return child;
}

/* What would do, where no word is near: all of them, when they are few. */
static void put_words(const char *const *words, uint32_t count, struct tn_buf *buf)
{
    for (uint32_t i = 0; i < count && i < LISTED_MAX; i++) {
        tn_buf_format(buf, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", words[i]);
    }
}

static void tell_unknown(struct tn_config_reader *r, const struct tn_config_node *child,
                         const char *const *names, uint32_t count)
{
    char known[512];
    struct tn_buf buf;
    if (!child->key) {
        tn_config_wrong(r, child, "a list's item where members have names");
        return;
    }
    const char *near = tn_nearest_name(tn_bytes_of(child->key), names, count);
    tn_buf_init(&buf, known, sizeof known);
    put_words(names, count, &buf);
    if (near) {
        tn_config_wrong(r, child, "is unknown; did you mean '%s'?", near);
    } else {
        tn_config_wrong(r, child, "is unknown; known here: %.*s", (int)buf.size, known);
    }
}

bool tn_config_members(struct tn_config_reader *r, struct tn_config_node *node,
                       const struct tn_config_member *members, uint32_t count, void *target)
{
    const char *names[WORDS_MAX];
    if (node->kind != TN_CONFIG_TABLE) {
        tn_config_wrong_value(r, node, "a table of members");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct tn_config_node *child = tn_config_member_of(node, members[i].name);
        names[i] = members[i].name;
        if (child) {
            child->known = true;
            members[i].take(r, child, &members[i], (char *)target + members[i].offset);
        } else if (members[i].needed) {
            tn_config_wrong(r, node, "'%s' is missing", members[i].name);
        }
    }
    for (const struct tn_config_node *child = node->first; child; child = child->next) {
        if (!child->known) {
            tell_unknown(r, child, names, count);
        }
    }
    return true;
}

struct tn_config_node *tn_config_item(struct tn_config_reader *r, struct tn_config_node *list,
                                      const struct tn_config_node *before)
{
    if (!before && list->kind != TN_CONFIG_TABLE) {
        tn_config_wrong_value(r, list, "a list, like {...}");
        return NULL;
    }
    int64_t want = before ? before->index + 1 : 1;
    struct tn_config_node *item = before ? before->next : list->first;
    if (item && item->key) {
        if (!list->told) { /* once: a member of a list comes with others */
            list->told = true;
            tn_config_wrong(r, item,
                            "a member with a name in a list: are braces missing around it?");
        }
        return NULL;
    }
    if (item && item->index != want && !list->told) {
        list->told = true;
        tn_config_wrong(r, list, "item [%" PRId64 "] is missing: it is nil", want);
    }
    return item;
}

/* ---- texts and words ---- */

const char *tn_config_text(struct tn_config_reader *r, struct tn_config_node *node,
                           const char *want)
{
    if (node->told) {
        return NULL;
    }
    if (node->kind != TN_CONFIG_TEXT || node->text[0] == 0) {
        tn_config_wrong_value(r, node, "%s", want);
        return NULL;
    }
    return node->text;
}

int tn_config_word(struct tn_config_reader *r, struct tn_config_node *node,
                   const char *const *words, uint32_t count)
{
    char known[512];
    struct tn_buf buf;
    for (uint32_t i = 0; i < count && node->kind == TN_CONFIG_TEXT; i++) {
        if (strcmp(words[i], node->text) == 0) {
            return (int)i;
        }
    }
    tn_buf_init(&buf, known, sizeof known);
    put_words(words, count, &buf);
    const char *near = node->kind == TN_CONFIG_TEXT
                           ? tn_nearest_name(tn_bytes_of(node->text), words, count)
                           : NULL;
    if (near) {
        tn_config_wrong_value(r, node, "%.*s; did you mean '%s'?", (int)buf.size, known, near);
    } else {
        tn_config_wrong_value(r, node, "%.*s", (int)buf.size, known);
    }
    return -1;
}

void tn_config_take_text(struct tn_config_reader *r, struct tn_config_node *node,
                         const struct tn_config_member *member, void *target)
{
    const char *text = tn_config_text(r, node, "a text");
    if (text && member->high > 0 && strlen(text) > member->high) {
        tn_config_wrong(r, node, "has %zu bytes, at most %" PRIu64, strlen(text), member->high);
    } else if (text) {
        *(const char **)target = tn_config_keep(r, text);
    }
}

void tn_config_take_secret(struct tn_config_reader *r, struct tn_config_node *node,
                           const struct tn_config_member *member, void *target)
{
    node->secret = true;
    if (node->kind != TN_CONFIG_TEXT) {
        tn_config_wrong_value(r, node, "a text");
    } else if (strlen(node->text) > member->high) {
        tn_config_wrong(r, node, "has %zu bytes, at most %" PRIu64, strlen(node->text),
                        member->high);
    } else {
        *(const char **)target = tn_config_keep(r, node->text);
    }
}

void tn_config_take_path(struct tn_config_reader *r, struct tn_config_node *node,
                         const struct tn_config_member *member, void *target)
{
    (void)member;
    const char *text = tn_config_text(r, node, "a path");
    if (text && strlen(text) + strlen(r->folder) + 2 > TN_CONFIG_PATH_MAX) {
        tn_config_wrong(r, node, "the path has more than %d bytes", TN_CONFIG_PATH_MAX);
    } else if (text) {
        *(const char **)target = tn_config_path(r, text);
    }
}

void tn_config_take_input(struct tn_config_reader *r, struct tn_config_node *node,
                          const struct tn_config_member *member, void *target)
{
    (void)member;
    const char *names[TN_INPUT_COUNT];
    for (int i = 0; i < TN_INPUT_COUNT; i++) {
        names[i] = tn_input_name((enum tn_input)i);
    }
    int word = tn_config_word(r, node, names, TN_INPUT_COUNT);
    if (word >= 0) {
        *(enum tn_input *)target = (enum tn_input)word;
    }
}

/* ---- numbers ---- */

static void tell_size(struct tn_config_reader *r, struct tn_config_node *node,
                      const struct tn_config_member *member)
{
    char text[64];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text);
    tn_config_size_format(member->low, &buf);
    tn_buf_text(&buf, " to ");
    tn_config_size_format(member->high, &buf);
    tn_config_wrong_value(r, node, "a size like '32M', from %.*s", (int)buf.size, text);
}

static bool size_of(struct tn_config_reader *r, struct tn_config_node *node,
                    const struct tn_config_member *member, uint64_t *bytes)
{
    bool is_size = node->kind == TN_CONFIG_TEXT && tn_config_size_parse(node->text, bytes);
    if (node->kind == TN_CONFIG_INTEGER && node->integer >= 0) {
        *bytes = (uint64_t)node->integer;
        is_size = true;
    }
    is_size = is_size && *bytes >= member->low && *bytes <= member->high;
    if (!is_size) {
        tell_size(r, node, member);
    }
    return is_size;
}

void tn_config_take_size(struct tn_config_reader *r, struct tn_config_node *node,
                         const struct tn_config_member *member, void *target)
{
    uint64_t bytes = 0;
    if (size_of(r, node, member, &bytes)) {
        *(uint64_t *)target = bytes;
    }
}

void tn_config_take_size_32(struct tn_config_reader *r, struct tn_config_node *node,
                            const struct tn_config_member *member, void *target)
{
    uint64_t bytes = 0;
    if (size_of(r, node, member, &bytes)) {
        *(uint32_t *)target = (uint32_t)bytes;
    }
}

/* In ms; the bounds are, too. */
static bool time_of(struct tn_config_reader *r, struct tn_config_node *node,
                    const struct tn_config_member *member, int64_t *ms)
{
    char text[64];
    struct tn_buf buf;
    if (node->kind == TN_CONFIG_TEXT && tn_config_time_parse(node->text, ms) &&
        (uint64_t)*ms >= member->low && (uint64_t)*ms <= member->high) {
        return true;
    }
    tn_buf_init(&buf, text, sizeof text);
    tn_config_time_format((int64_t)member->low, &buf);
    tn_buf_text(&buf, " to ");
    tn_config_time_format((int64_t)member->high, &buf);
    tn_config_wrong_value(r, node, "a time with its unit, like '30s', from %.*s", (int)buf.size,
                          text);
    return false;
}

void tn_config_take_ms(struct tn_config_reader *r, struct tn_config_node *node,
                       const struct tn_config_member *member, void *target)
{
    int64_t ms = 0;
    if (time_of(r, node, member, &ms)) {
        *(uint32_t *)target = (uint32_t)ms;
    }
}

void tn_config_take_seconds(struct tn_config_reader *r, struct tn_config_node *node,
                            const struct tn_config_member *member, void *target)
{
    int64_t ms = 0;
    if (!time_of(r, node, member, &ms)) {
        return;
    }
    if (ms % 1000 != 0) {
        tn_config_wrong_value(r, node, "whole seconds");
        return;
    }
    *(uint32_t *)target = (uint32_t)(ms / 1000);
}

void tn_config_take_count(struct tn_config_reader *r, struct tn_config_node *node,
                          const struct tn_config_member *member, void *target)
{
    if (node->kind != TN_CONFIG_INTEGER || node->integer < (int64_t)member->low ||
        node->integer > (int64_t)member->high) {
        tn_config_wrong_value(r, node, "a whole number from %" PRIu64 " to %" PRIu64, member->low,
                              member->high);
        return;
    }
    *(uint32_t *)target = (uint32_t)node->integer;
}

/* ---- lists and pairs ---- */

static struct tn_text_list_item **add_text(struct tn_config_reader *r,
                                           struct tn_text_list_item **end, struct tn_bytes text)
{
    struct tn_text_list_item *item = tn_config_take(r, sizeof *item);
    if (!item) {
        return end;
    }
    item->text = tn_arena_text(r->kept, text);
    r->full |= !item->text;
    if (item->text) {
        *end = item;
        end = &item->next;
    }
    return end;
}

/* "a, b" */
static void split_text(struct tn_config_reader *r, struct tn_config_node *node,
                       struct tn_text_list_item **end)
{
    for (const char *at = node->text; at;) {
        at += strspn(at, " ");
        size_t size = strcspn(at, ",");
        const char *next = at[size] ? at + size + 1 : NULL;
        while (size > 0 && at[size - 1] == ' ') {
            size--;
        }
        if (size == 0) {
            tn_config_wrong_value(r, node, "names between commas");
            return;
        }
        end = add_text(r, end, (struct tn_bytes){(const unsigned char *)at, size});
        at = next;
    }
}

void tn_config_take_texts(struct tn_config_reader *r, struct tn_config_node *node,
                          const struct tn_config_member *member, void *target)
{
    struct tn_text_list_item **end = target;
    bool splits = member->high == 0;
    if (splits && node->kind == TN_CONFIG_TEXT && !node->told) {
        split_text(r, node, end);
        return;
    }
    struct tn_config_node *item = tn_config_item(r, node, NULL);
    if (!item && !node->told) {
        tn_config_wrong(r, node, "is empty");
    }
    for (; item; item = tn_config_item(r, node, item)) {
        const char *text = tn_config_text(r, item, "a text");
        if (text) {
            end = add_text(r, end, tn_bytes_of(text));
        }
    }
}

/* A value as a text; a number as Lua would write it. */
static const char *text_of(struct tn_config_reader *r, struct tn_config_node *node)
{
    char text[64];
    struct tn_buf buf;
    if (node->kind == TN_CONFIG_TEXT) {
        return node->told ? NULL : tn_config_keep(r, node->text);
    }
    if (node->kind == TN_CONFIG_TABLE || node->kind == TN_CONFIG_OTHER) {
        tn_config_wrong_value(r, node, "a text, a number, true or false");
        return NULL;
    }
    tn_buf_init(&buf, text, sizeof text - 1);
    tn_config_show(node, &buf);
    text[buf.size] = 0;
    return tn_config_keep(r, text);
}

void tn_config_take_pairs(struct tn_config_reader *r, struct tn_config_node *node,
                          const struct tn_config_member *member, void *target)
{
    (void)member;
    struct tn_config_pair **end = target;
    if (node->kind != TN_CONFIG_TABLE) {
        tn_config_wrong_value(r, node, "a table of names and values");
        return;
    }
    for (struct tn_config_node *child = node->first; child; child = child->next) {
        if (!child->key) {
            tn_config_wrong(r, child, "a list's item where names are wanted: name = value");
            continue;
        }
        const char *value = text_of(r, child);
        struct tn_config_pair *pair = value ? tn_config_take(r, sizeof *pair) : NULL;
        if (pair) {
            *pair = (struct tn_config_pair){tn_config_keep(r, child->key), value, NULL};
            *end = pair;
            end = &pair->next;
        }
    }
}
