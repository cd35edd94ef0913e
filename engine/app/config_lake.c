/* Lakes: where committed snapshots of tables are sent. */
#include <inttypes.h>

#include "app/config_private.h"
#include "app/lake_store.h"
#include "app/lakes.h"

enum {
    NAME_MAX_SIZE = 24, /* it is a part of a consumer's name */
    SECOND_MS = 1000,
    WEEK_MS = 7 * 24 * 3600 * SECOND_MS,
};

static void take_target(struct tn_config_reader *r, struct tn_config_node *node,
                        const struct tn_config_member *member, void *target)
{
    static const char want[] = "s3://bucket/prefix, or a folder, like '/mnt/lake'";
    const char *text = tn_config_text(r, node, want);
    struct tn_s3_place place;
    struct tn_err err;
    if (text && !tn_lake_is_store(text)) {
        tn_config_take_path(r, node, member, target);
    } else if (text && tn_s3_place_parse(&place, text, &err) == TN_OK) {
        *(const char **)target = tn_config_keep(r, text);
    } else if (text) {
        tn_config_wrong_value(r, node, "%s", want);
    }
}

/* Values may be secret, and are never told. */
static const char *option_text(struct tn_config_reader *r, struct tn_config_node *node)
{
    struct tn_lake_options options = {.ca_file = NULL};
    struct tn_err err;
    if (!node->key) {
        tn_config_wrong(r, node, "a list's item where names are wanted: ['s3.region'] = 'x'");
        return NULL;
    }
    node->secret = true;
    if (node->kind != TN_CONFIG_TEXT) {
        tn_config_wrong_value(r, node, "a text");
        return NULL;
    }
    const char *end = strrchr(node->key, '-');
    bool is_path = end && strcmp(end, "-file") == 0;
    const char *value = is_path ? tn_config_path(r, node->text) : node->text;
    const char *text = value ? tn_arena_format(r->kept, "%s=%s", node->key, value) : NULL;
    r->full |= !text;
    if (text && tn_lake_option(&options, text, &err) != TN_OK) {
        tn_config_wrong(r, node, "there is no such option of a lake; see `tarn help upload`");
        return NULL;
    }
    return text;
}

static void take_options(struct tn_config_reader *r, struct tn_config_node *node,
                         const struct tn_config_member *member, void *target)
{
    struct tn_text_list_item **end = target;
    (void)member;
    if (node->kind != TN_CONFIG_TABLE) {
        tn_config_wrong_value(r, node, "a table: { ['s3.endpoint'] = 'https://...' }");
        return;
    }
    for (struct tn_config_node *child = node->first; child; child = child->next) {
        const char *text = option_text(r, child);
        struct tn_text_list_item *item = text ? tn_config_take(r, sizeof *item) : NULL;
        if (item) {
            *item = (struct tn_text_list_item){.text = text};
            *end = item;
            end = &item->next;
        }
    }
}

static void take_full(struct tn_config_reader *r, struct tn_config_node *node,
                      const struct tn_config_member *member, void *target)
{
    static const char *const words[] = {"stop", "gap"};
    (void)member;
    *(bool *)target = tn_config_word(r, node, words, 2) == 1;
}

/* ---- its tables ---- */

static void add_table(struct tn_config_reader *r, struct tn_text_list_item ***end, const char *name)
{
    struct tn_text_list_item *item = tn_config_take(r, sizeof *item);
    if (item) {
        *item = (struct tn_text_list_item){.text = name};
        **end = item;
        *end = &item->next;
        r->config->upload_count++;
    }
}

static bool is_among(const struct tn_text_list_item *item, const char *name)
{
    while (item && strcmp(item->text, name) != 0) {
        item = item->next;
    }
    return item;
}

static void take_tables(struct tn_config_reader *r, struct tn_config_node *node,
                        const struct tn_config_member *member, void *target)
{
    struct tn_text_list_item **first = target;
    struct tn_text_list_item **end = target;
    struct tn_config_node *item = tn_config_item(r, node, NULL);
    if (!item && !node->told) {
        tn_config_wrong(r, node, "is empty: leave it out for all tables");
    }
    for (; item; item = tn_config_item(r, node, item)) {
        const char *name = NULL;
        tn_config_take_table(r, item, member, &name);
        if (name && is_among(*first, name)) {
            tn_config_wrong(r, item, "is there already");
        } else if (name) {
            add_table(r, &end, name);
        }
    }
}

static void add_all_tables(struct tn_config_reader *r, struct tn_config_lake *lake)
{
    struct tn_text_list_item **end = &lake->tables;
    for (const struct tn_config_table *t = r->config->tables; t; t = t->next) {
        add_table(r, &end, t->name);
    }
}

/* ---- lakes ---- */

static struct tn_config_lake *take_one(struct tn_config_reader *r, struct tn_config_node *node)
{
    static const struct tn_config_member members[] = {
        {"target", take_target, offsetof(struct tn_config_lake, target), 0, 0, true},
        {"tables", take_tables, offsetof(struct tn_config_lake, tables), 0, 0, false},
        {"every", tn_config_take_ms, offsetof(struct tn_config_lake, every_ms), SECOND_MS, WEEK_MS,
         false},
        {"options", take_options, offsetof(struct tn_config_lake, options), 0, 0, false},
        {"notify", tn_config_take_notify, offsetof(struct tn_config_lake, notify), 0, 0, false},
        {"policy", tn_config_take_path, offsetof(struct tn_config_lake, policy), 0, 0, false},
        {"rate", tn_config_take_size_32, offsetof(struct tn_config_lake, rate), 1024,
         UINT64_C(1) << 31, false},
        {"on_full", take_full, offsetof(struct tn_config_lake, gap), 0, 0, false},
    };
    struct tn_config_lake *lake = tn_config_take(r, sizeof *lake);
    if (!lake) {
        return NULL;
    }
    *lake = (struct tn_config_lake){.name = tn_config_keep(r, node->key)};
    if (tn_config_members(r, node, members, sizeof members / sizeof members[0], lake) &&
        !tn_config_member_of(node, "tables")) {
        add_all_tables(r, lake);
    }
    return lake;
}

static bool is_name(const char *text)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t size = strlen(text);
    return size > 0 && size <= NAME_MAX_SIZE && strspn(text, legal) == size;
}

static void check_target(struct tn_config_reader *r, const struct tn_config_node *node,
                         const struct tn_config_lake *lake)
{
    const struct tn_config_node *target = tn_config_member_of(node, "target");
    const char *warehouse = r->config->warehouse;
    if (!lake->target) {
        return;
    }
    if (!tn_lake_is_store(lake->target) && (lake->options || lake->rate > 0)) {
        tn_config_wrong(r, tn_config_member_of(node, lake->options ? "options" : "rate"),
                        "is of s3://..., and the target is a folder");
    }
    if (lake->policy && lake->every_ms > 0) {
        tn_config_wrong(r, tn_config_member_of(node, "every"), "says 'policy', too");
    }
    if (warehouse && strcmp(warehouse, lake->target) == 0) {
        tn_config_wrong(r, target, "that is the warehouse itself");
    }
    for (const struct tn_config_lake *l = r->config->lakes; l != lake; l = l->next) {
        if (l->target && strcmp(l->target, lake->target) == 0) {
            tn_config_wrong(r, target, "is that of lake '%s', too", l->name);
            return;
        }
    }
}

void tn_config_take_lakes(struct tn_config_reader *r, struct tn_config_node *node,
                          const struct tn_config_member *member, void *target)
{
    (void)member;
    struct tn_config *config = target;
    struct tn_config_lake **end = &config->lakes;
    if (node->kind != TN_CONFIG_TABLE) {
        tn_config_wrong_value(r, node, "lakes: { cloud = { target = '/mnt/lake' } }");
        return;
    }
    for (struct tn_config_node *child = node->first; child; child = child->next) {
        if (!child->key || !is_name(child->key)) {
            tn_config_wrong(r, child,
                            "a lake has a name, of at most %d letters, digits, - and _: cloud = "
                            "{...}",
                            NAME_MAX_SIZE);
            continue;
        }
        struct tn_config_lake *lake = take_one(r, child);
        if (lake) {
            *end = lake;
            end = &lake->next;
            config->lake_count++;
            config->policy_count += lake->policy != NULL;
            config->notify_count += lake->notify.url != NULL;
            check_target(r, child, lake);
        }
    }
}

/* ---- policies ---- */

struct policy_place {
    struct tn_lakes_policy policy;
    struct tn_io_posix files;
};

static tn_rc load_policy(struct tn_config_reader *r, struct policy_place *p, const char *name,
                         struct tn_err *err)
{
    struct tn_script_spec script = {.path = name};
    struct tn_vm_spec vm = {.memory = r->vm_memory,
                            .size = r->vm_size < TN_LAKES_POLICY_SIZE ? r->vm_size
                                                                      : TN_LAKES_POLICY_SIZE,
                            .io = &p->files.io};
    tn_rc rc = tn_vm_open(&p->policy.vm, &vm, err);
    if (rc == TN_OK) {
        rc = tn_script_load(&p->policy.script, &p->policy.vm, &script, err);
    }
    if (rc == TN_OK && !tn_script_has(&p->policy.script, TN_SCRIPT_UPLOAD)) {
        rc = tn_err_set(err, TN_INVALID, 0, "%s: it has no `upload`", name);
    }
    tn_vm_close(&p->policy.vm);
    return rc;
}

static tn_rc check_policy(struct tn_config_reader *r, const char *path, struct tn_err *err)
{
    const char *folder = NULL;
    const char *name = NULL;
    struct policy_place *p = tn_arena_take(&r->scratch, sizeof *p);
    tn_rc rc = p ? tn_config_folder(&r->scratch, path, &folder, &name, err)
                 : tn_err_set(err, TN_AGAIN, 0, "no memory for a policy");
    if (rc == TN_OK) {
        rc = tn_io_posix_open(&p->files, folder[0] ? folder : "/", err);
    }
    if (rc == TN_OK) {
        rc = load_policy(r, p, name, err);
        tn_io_posix_close(&p->files);
    }
    return rc;
}

tn_rc tn_config_check_lakes(struct tn_config_reader *r, struct tn_config_node *lakes,
                            struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (const struct tn_config_lake *l = r->config->lakes; rc == TN_OK && l; l = l->next) {
        size_t mark = tn_arena_mark(&r->scratch);
        struct tn_err why = {0};
        tn_rc wrong = l->policy ? check_policy(r, l->policy, &why) : TN_OK;
        if (wrong == TN_AGAIN) {
            *err = why;
            rc = wrong;
        } else if (wrong != TN_OK) {
            tn_config_wrong(r, tn_config_member_of(tn_config_member_of(lakes, l->name), "policy"),
                            "%s", why.text);
        }
        tn_arena_reset(&r->scratch, mark);
    }
    return rc;
}
