#include "app/sizes.h"

#include "app/control.h"
#include "app/intake.h"
#include "app/lakes.h"
#include "app/sources.h"
#include "app/tell.h"

enum {
    PARCEL_MIN = 16 * 1024,
    PARCEL_MAX = 1024 * 1024,
    ROUNDING = 4096,
    SHRINK = 8,     /* the next one that is tried is shorter by this part */
    ROOM_SHARE = 2, /* of a parcel, for the rows of a record */
    PATH_SIZE = 512,
    BESIDE = 32 * 1024, /* the log, and what is aligned */
};

static void compute(const struct tn_config *config, const struct tn_intake_states *states,
                    size_t parcel, struct tn_sizes *sizes)
{
    struct tn_env env = {0};
    struct tn_intake_spec spec = {.env = &env,
                                  .keeper_count = config->table_count,
                                  .config = config,
                                  .parcel_size = parcel,
                                  .states = *states};
    *sizes = (struct tn_sizes){
        .parcel = parcel, .message = tn_intake_size_max(&spec), .room = parcel / ROOM_SHARE};
    sizes->intake = tn_intake_memory(&spec);
    sizes->sources = tn_sources_memory(config, sizes->message);
    sizes->control = tn_control_memory();
    sizes->scripts = (config->table_count - config->plain_count) * sizeof(struct tn_scripted);
    sizes->lakes = tn_lakes_memory(config) + tn_tell_memory(config);
    sizes->tables = config->table_count *
                        (sizeof(struct tn_keeper) + sizeof(struct tn_table_share) + PATH_SIZE) +
                    sizes->scripts + sizes->room + BESIDE;
}

void tn_sizes_least(const struct tn_config *config, struct tn_sizes *sizes)
{
    compute(config, &(struct tn_intake_states){0}, PARCEL_MIN, sizes);
}

size_t tn_sizes_sum(const struct tn_sizes *sizes)
{
    return sizes->intake + sizes->sources + sizes->control + sizes->tables + sizes->lakes;
}

tn_rc tn_sizes_choose(const struct tn_config *config, size_t available, struct tn_sizes *sizes,
                      struct tn_err *err)
{
    const struct tn_intake_states none = {0};
    for (size_t size = PARCEL_MAX; size >= PARCEL_MIN; size -= size / SHRINK) {
        compute(config, &none, size / ROUNDING * ROUNDING, sizes);
        if (tn_sizes_sum(sizes) <= available) {
            return TN_OK;
        }
    }
    tn_sizes_least(config, sizes);
    if (tn_sizes_sum(sizes) <= available) {
        return TN_OK;
    }
    return tn_err_set(err, TN_INVALID, 0,
                      "sources, tables and the shortest messages need %zu bytes of the part "
                      "'input', which has %zu; fewer connections need less, or give it more memory",
                      tn_sizes_sum(sizes), available);
}

tn_rc tn_sizes_choose_beside(const struct tn_config *config, const struct tn_intake_states *states,
                             size_t available, struct tn_sizes *sizes, struct tn_err *err)
{
    struct tn_sizes next = *sizes;
    for (size_t size = sizes->parcel; size >= PARCEL_MIN; size -= size / SHRINK) {
        compute(config, states, size / ROUNDING * ROUNDING, &next);
        if (tn_sizes_sum(&next) - next.tables <= available) {
            next.tables = sizes->tables;
            next.scripts = sizes->scripts;
            next.room = sizes->room;
            *sizes = next;
            return TN_OK;
        }
    }
    compute(config, states, PARCEL_MIN, &next);
    return tn_err_set(
        err, TN_INVALID, 0,
        "what scripts keep (tarn.state) with sources and the shortest messages needs "
        "%zu bytes of the part 'input', of which %zu are left; smaller stores or fewer "
        "connections need less, or give it more memory",
        tn_sizes_sum(&next) - next.tables, available);
}
