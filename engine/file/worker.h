/* worker: what one task works with, and shares with nobody while it runs.
 *
 * A context belongs to one worker thread (or to the inline executor). A task takes what it needs
 * from `arena` and leaves it as it found it.
 */
#pragma once

#include "base/arena.h"
#include "format/codec.h"
#include "io/clock.h"
#include "io/io.h"

struct tn_plan_cache; /* commit/manifest.h */

struct tn_worker {
    struct tn_arena arena;
    struct tn_codec codec;
    struct tn_io *io;
    struct tn_clock *clock;
    struct tn_plan_cache *plans; /* or NULL */
};
