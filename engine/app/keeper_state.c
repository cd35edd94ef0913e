#include "app/keeper_private.h"

size_t tn_keeper_state_size(const struct tn_keeper *keeper)
{
    return keeper->keeps ? tn_script_state_room(keeper->mapper.script) : 0;
}

tn_rc tn_keeper_put_back(struct tn_keeper *keeper, const struct tn_journal *journal,
                         struct tn_err *err)
{
    struct tn_keeper *k = keeper;
    struct tn_bytes pieces = {0};
    uint64_t ignored;
    k->state_saved = 0;
    if (!k->keeps) {
        return TN_OK;
    }
    if (tn_journal_memo(journal, tn_bytes_of(k->state_name), &pieces, &ignored) != TN_OK) {
        pieces = (struct tn_bytes){0};
    }
    tn_rc rc = tn_script_restore(k->mapper.script, pieces, err);
    k->state_saved = rc == TN_OK ? pieces.size : 0;
    return rc;
}

/* Without what was kept nothing is lost but what a script makes of it, and it could never be read
 * again: so the table goes on. */
tn_rc tn_keeper_restore(struct tn_keeper *keeper, const struct tn_journal *journal,
                        struct tn_err *err)
{
    struct tn_keeper *k = keeper;
    size_t size = tn_keeper_state_size(k);
    if (size > k->state_room) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%s: its script keeps up to %zu bytes now, and %zu when tarn began: "
                          "`tarn reload` begins anew",
                          k->name, size, k->state_room);
    }
    tn_rc rc = tn_keeper_put_back(k, journal, err);
    if (rc == TN_CORRUPT) {
        tn_log_event(k->spec.log, TN_LOG_WARN, "script",
                     "table=%s text=\"its stores begin empty: what was kept of them: %s\"", k->name,
                     err->text);
        rc = TN_OK;
    }
    return rc;
}

tn_rc tn_keeper_state(struct tn_keeper *keeper, void *room, struct tn_journal_part *part,
                      struct tn_err *err)
{
    struct tn_keeper *k = keeper;
    struct tn_buf piece;
    bool all = false;
    tn_buf_init(&piece, room, k->state_room);
    tn_rc rc = k->keeps ? tn_script_save(k->mapper.script, k->state_saved, k->state_room, &all,
                                         &piece, err)
                        : TN_OK;
    *part = (struct tn_journal_part){.kind = all ? TN_JOURNAL_MEMO : TN_JOURNAL_MORE,
                                     .name = tn_bytes_of(k->state_name),
                                     .data = tn_buf_bytes(&piece)};
    return rc;
}

/* Where it can't be noted it is saved once more, and comes to the same. */
void tn_keeper_state_saved(struct tn_keeper *keeper, const struct tn_journal_part *part)
{
    struct tn_err ignored = {0};
    bool all = part->kind == TN_JOURNAL_MEMO;
    keeper->state_saved = part->data.size + (all ? 0 : keeper->state_saved);
    if (tn_script_saved(keeper->mapper.script, &ignored) != TN_OK) {
        keeper->state_saved = 0;
    }
}
