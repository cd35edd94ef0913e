/* pausing: somebody who has committers wait, at a table on a simulated disk. */
#pragma once

#include <stdalign.h>

#include "check.h"
#include "upload/directory.h"
#include "upload/gather_pauser.h"

struct pausing {
    struct tn_directory directory;
    alignas(16) unsigned char memory[64 * 1024];
    alignas(16) unsigned char scratch_memory[64 * 1024];
    struct tn_arena scratch;
    struct tn_pauser pauser;
    bool lost;
};

static inline void pausing_init(struct pausing *p, struct tn_io *io, struct tn_clock *clock,
                                const char *by)
{
    struct tn_arena arena;
    struct tn_err err;
    tn_arena_init(&arena, p->memory, sizeof p->memory);
    tn_arena_init(&p->scratch, p->scratch_memory, sizeof p->scratch_memory);
    tn_rc rc = tn_directory_init(&p->directory, io, "lake", &arena, &err);
    CHECK_OK(rc, err);
    tn_pauser_init(&p->pauser, &p->directory.target, clock, "db.t", by);
}

static inline void pausing_keep(struct pausing *p)
{
    struct tn_err err;
    tn_rc rc = tn_pauser_keep(&p->pauser, &p->scratch, &p->lost, &err);
    CHECK_OK(rc, err);
    CHECK(tn_arena_mark(&p->scratch) == 0);
}

static inline void pausing_lift(struct pausing *p)
{
    struct tn_err err;
    tn_rc rc = tn_pauser_lift(&p->pauser, &p->scratch, &err);
    CHECK_OK(rc, err);
}
