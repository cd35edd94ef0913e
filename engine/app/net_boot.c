#include "app/net_boot.h"

#include "base/check.h"
#include "io/net_uv.h"
#include "io/tls_memory.h"

enum {
    UV_HEAP_SIZE = 32 * 1024,
    BUFFER_SIZE = 4096,
    BUFFERS_MIN = 4,
    ROUNDING = 64,      /* each of the three begins aligned */
    STREAMS_MAX = 4096, /* so that no size overflows */
};

static size_t size_beside_buffers(uint32_t streams_max)
{
    return UV_HEAP_SIZE + ROUNDING + tn_net_uv_size(streams_max);
}

size_t tn_net_boot_size(uint32_t streams_max)
{
    return streams_max > STREAMS_MAX
               ? SIZE_MAX
               : size_beside_buffers(streams_max) + BUFFERS_MIN * (BUFFER_SIZE + ROUNDING);
}

static void carve_net(struct tn_app *app, size_t buffers_size)
{
    (void)tn_budget_carve(&app->budget, "net");
    tn_env_measure(&app->env, &app->budget);
    tn_budget_arena(&app->budget, "net", &app->net);
    void *heap = tn_arena_take_raw(&app->net, UV_HEAP_SIZE);
    void *buffers = tn_arena_take_raw(&app->net, buffers_size);
    TN_CHECK(heap && buffers);
    tn_heap_init(&app->uv, heap, UV_HEAP_SIZE, true);
    tn_pool_init(&app->buffers, buffers, buffers_size, BUFFER_SIZE);
}

tn_rc tn_net_boot(struct tn_app *app, uint32_t streams_max, struct tn_net **net, struct tn_err *err)
{
    const struct tn_part *part = tn_budget_part(&app->budget, "net");
    if (part->size < tn_net_boot_size(streams_max)) {
        return tn_err_set(err, TN_AGAIN, 0,
                          "%u connections at once: the %zu KiB of the part 'net' are too few",
                          streams_max, part->size / 1024);
    }
    carve_net(app, part->size - size_beside_buffers(streams_max));
    struct tn_net_spec spec = {.heap = &app->uv,
                               .arena = &app->net,
                               .buffers = &app->buffers,
                               .clock = &tn_clock_system,
                               .streams_max = streams_max};
    return tn_net_uv_open(&spec, net, err);
}

void tn_net_boot_tls(struct tn_app *app)
{
    (void)tn_budget_carve(&app->budget, "tls");
    tn_env_measure(&app->env, &app->budget);
    tn_budget_heap(&app->budget, "tls", &app->tls, true);
    tn_tls_boot(&app->tls);
}
