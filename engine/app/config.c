#include "app/config.h"

#include <inttypes.h>

#include "app/config_private.h"
#include "io/net_uv.h"

/* Of the journal: a sender's name and memo are some hundred bytes; the most that are told apart. */
enum {
    SECOND_MS = 1000,
    HOUR_MS = 3600 * SECOND_MS,
    KIB = 1024,
    MIB = 1024 * 1024,
    SENDERS = 256,
    MEMOS_SIZE = 64 * KIB
};
enum { SYNC_SIZE_MAX = 4 * MIB, JOURNAL_SIZE_MIN = 4 * MIB, SYNCS_OF_JOURNAL = 8 };

static void take_listen(struct tn_config_reader *r, struct tn_config_node *node,
                        const struct tn_config_member *member, void *target)
{
    (void)member;
    bool loopback = true;
    static const char want[] = "an address with a port: 127.0.0.1:7080, [::1]:7080, 0.0.0.0:7080";
    const char *text = tn_config_text(r, node, want);
    if (!text) {
        return;
    }
    *(const char **)target = tn_config_keep(r, text);
    if (!tn_config_listen_parse(text, &loopback)) {
        tn_config_wrong_value(r, node, "%s", want);
    } else {
        tn_config_check_open(r, node->parent, "listen", loopback);
    }
}

static void take_sync(struct tn_config_reader *r, struct tn_config_node *node,
                      const struct tn_config_member *member, void *target)
{
    (void)member;
    struct tn_config_journal *journal = target;
    struct tn_commit_rule rule = {0};
    struct tn_err err = {0};
    static const char want[] = "a rule like '100ms or 256K', of at most 60s and 4M";
    const char *text = tn_config_text(r, node, want);
    if (!text) {
        return;
    }
    if (tn_config_rule_parse(text, false, &rule, &err) != TN_OK) {
        tn_config_wrong_value(r, node, "%s%s%s", want, node->secret ? "" : "; ",
                              node->secret ? "" : err.text);
    } else if (rule.ms > INT64_C(60) * SECOND_MS || rule.bytes > SYNC_SIZE_MAX) {
        tn_config_wrong_value(r, node, "%s", want);
    } else if (rule.ms == 0) {
        tn_config_wrong_value(r, node, "a time in it: a quiet sender would wait for ever");
    } else {
        journal->sync_ms = (uint32_t)rule.ms;
        journal->sync_bytes = (uint32_t)rule.bytes;
    }
}

static void take_journal(struct tn_config_reader *r, struct tn_config_node *node,
                         const struct tn_config_member *member, void *target)
{
    static const struct tn_config_member members[] = {
        {"sync", take_sync, 0, 0, 0, false},
        {"size", tn_config_take_size, offsetof(struct tn_config_journal, size_max),
         JOURNAL_SIZE_MIN, UINT64_C(1) << 40, false},
    };
    (void)member;
    const struct tn_config_journal *journal = target;
    if (tn_config_members(r, node, members, sizeof members / sizeof members[0], target) &&
        journal->size_max / SYNCS_OF_JOURNAL < journal->sync_bytes) {
        tn_config_wrong(r, node, "the size is less than %d times what is synced at once",
                        SYNCS_OF_JOURNAL);
    }
}

static void take_limits(struct tn_config_reader *r, struct tn_config_node *node,
                        const struct tn_config_member *member, void *target)
{
    static const struct tn_config_member members[] = {
        {"connections", tn_config_take_count, offsetof(struct tn_config_http, connections), 1, 1024,
         false},
        {"body_size", tn_config_take_size_32, offsetof(struct tn_config_http, body_size_max), 1024,
         64 << 20, false},
        {"timeout", tn_config_take_ms, offsetof(struct tn_config_http, timeout_ms), 100, 600000,
         false},
        {"idle", tn_config_take_ms, offsetof(struct tn_config_http, idle_ms), 100, 3600000, false},
    };
    (void)member;
    (void)tn_config_members(r, node, members, sizeof members / sizeof members[0], target);
}

static void take_compaction(struct tn_config_reader *r, struct tn_config_node *node,
                            const struct tn_config_member *member, void *target)
{
    static const struct tn_config_member members[] = {
        {"unit_size_max", tn_config_take_size, offsetof(struct tn_config, unit_size_max), 1,
         UINT64_C(1) << 50, false},
    };
    (void)member;
    (void)tn_config_members(r, node, members, sizeof members / sizeof members[0], target);
}

#define AT(member) offsetof(struct tn_config, member)

static const struct tn_config_member members[] = {
    {"warehouse", tn_config_take_path, AT(warehouse), 0, 0, true},
    {"memory", tn_config_take_size, AT(memory), 1 << 20, UINT64_C(1) << 40, false},
    {"disk_reserve", tn_config_take_size, AT(disk_reserve), 4 << 20, UINT64_C(1) << 50, false},
    {"wear_budget", tn_config_take_size, AT(wear_budget), 0, UINT64_C(1) << 50, false},
    {"compaction", take_compaction, 0, 0, 0, false},
    {"listen", take_listen, AT(http.listen), 0, 0, false},
    {"token", tn_config_take_token, AT(http.token), 0, 0, false},
    {"tls", tn_config_take_tls, AT(http.tls), 0, 0, false},
    {"limits", take_limits, AT(http), 0, 0, false},
    {"journal", take_journal, AT(journal), 0, 0, false},
    {"pace", tn_config_take_ms, AT(pace_ms), 1, HOUR_MS, false},
    {"tables", tn_config_take_tables, 0, 0, 0, true},
    {"sources", tn_config_take_sources, 0, 0, 0, false},
    {"lakes", tn_config_take_lakes, 0, 0, 0, false},
    {"metered", tn_config_take_texts, AT(metered), 0, 0, false},
};

/* What is only of use with another member. */
static void check_http(struct tn_config_reader *r, struct tn_config_node *root)
{
    static const char *const of_http[] = {"token", "tls", "limits"};
    bool listens = tn_config_member_of(root, "listen");
    for (size_t i = 0; i < sizeof of_http / sizeof of_http[0] && !listens; i++) {
        const struct tn_config_node *node = tn_config_member_of(root, of_http[i]);
        if (node) {
            tn_config_wrong(r, node, "is of HTTP, and 'listen' is missing");
        }
    }
    tn_config_check_served(r, tn_config_member_of(root, "tls"));
}

/* With the daemon's own socket. */
static void check_listeners(struct tn_config_reader *r, struct tn_config_node *root)
{
    int count = r->config->http.listen ? 2 : 1;
    for (const struct tn_config_source *s = r->config->sources; s; s = s->next) {
        count += s->kind == TN_SOURCE_SOCKET;
    }
    if (count > TN_UV_LISTENERS_MAX) {
        tn_config_wrong(r, tn_config_member_of(root, "sources"),
                        "with HTTP and the daemon's own socket %d listen; at most %d can", count,
                        TN_UV_LISTENERS_MAX);
    }
}

static tn_rc fill(struct tn_config_reader *r, struct tn_config_node *root, struct tn_err *err)
{
    if (root->kind != TN_CONFIG_TABLE) {
        tn_config_wrong_value(r, root, "a table that the file returns: return { ... }");
        return TN_OK;
    }
    (void)tn_config_members(r, root, members, sizeof members / sizeof members[0], r->config);
    check_http(r, root);
    check_listeners(r, root);
    struct tn_config_node *tables = tn_config_member_of(root, "tables");
    tn_rc rc = r->config->tables ? tn_config_check_tables(r, tables, err) : TN_OK;
    return rc == TN_OK ? tn_config_check_lakes(r, tn_config_member_of(root, "lakes"), err) : rc;
}

static tn_rc read_all(struct tn_config_reader *r, struct tn_err *err)
{
    struct tn_config_node *root = NULL;
    tn_rc rc = tn_config_tree(r, &root, err);
    if (rc == TN_OK && root) {
        rc = fill(r, root, err);
    }
    if (rc == TN_OK && r->full) {
        rc = tn_err_set(err, TN_AGAIN, 0,
                        "the configuration doesn't fit the memory that is for "
                        "it: %zu bytes, and %zu for what is kept",
                        r->scratch.size, r->kept->size);
    }
    if (rc == TN_OK && r->wrong_count > 0) {
        rc = tn_err_set(err, TN_INVALID, 0, "%" PRIu32 " %s wrong", r->wrong_count,
                        r->wrong_count == 1 ? "thing is" : "things are");
    }
    return rc;
}

tn_rc tn_config_read(const char *path, void *vm_memory, size_t vm_size, struct tn_arena *arena,
                     tn_config_wrong_fn *wrong, void *user, struct tn_config *config,
                     struct tn_err *err)
{
    struct tn_config made = {
        .path = tn_arena_text(arena, tn_bytes_of(path)),
        .disk_reserve = 16 * MIB,
        .wear_budget = TN_CONFIG_NO_BUDGET,
        .http = {.connections = 16,
                 .body_size_max = 256 * KIB,
                 .timeout_ms = 10 * SECOND_MS,
                 .idle_ms = 60 * SECOND_MS},
        .journal = {.sync_ms = 100, .sync_bytes = 256 * KIB, .size_max = 64 * MIB}};
    size_t vm_part = vm_size / 2 / 16 * 16;
    struct tn_config_reader r = {.kept = arena,
                                 .vm_memory = vm_memory,
                                 .vm_size = vm_part,
                                 .wrong = wrong,
                                 .user = user,
                                 .config = &made};
    tn_arena_init(&r.scratch, (unsigned char *)vm_memory + vm_part, vm_size - vm_part);
    tn_rc rc = made.path ? tn_config_folder(arena, path, &r.folder, &r.name, err)
                         : tn_err_set(err, TN_AGAIN, 0, "no memory for a configuration");
    if (rc == TN_OK) {
        rc = read_all(&r, err);
    }
    if (rc == TN_OK) {
        *config = made;
        return TN_OK;
    }
    return tn_err_in(err, "%s", path);
}

void tn_config_journal_spec(const struct tn_config *config, struct tn_journal_spec *spec)
{
    const struct tn_config_journal *journal = &config->journal;
    spec->sync_ms = journal->sync_ms;
    spec->block_size = journal->sync_bytes > 256 * KIB ? journal->sync_bytes : 256 * KIB;
    spec->sync_bytes = journal->sync_bytes > 0 ? journal->sync_bytes : spec->block_size;
    spec->size_max = journal->size_max;
    spec->file_size = journal->size_max / SYNCS_OF_JOURNAL;
    spec->sender_max = SENDERS;
    spec->memo_bytes = MEMOS_SIZE;
}
