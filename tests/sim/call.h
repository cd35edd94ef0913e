/* call: a request that is waited for, in tests of the network. */
#pragma once

#include "check.h"
#include "io/net.h"

struct call {
    struct tn_request request; /* first */
    int done;
};

static inline void on_call(struct tn_request *request)
{
    ((struct call *)(void *)request)->done++;
}

static inline void prepare(struct call *call, uint32_t timeout_ms)
{
    *call = (struct call){.request = {.done = on_call, .timeout_ms = timeout_ms}};
}
