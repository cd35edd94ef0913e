/* tarn_private: the C API's engine on doors of the caller's: for tests, on tests/sim/. */
#pragma once

#include "io/clock.h"
#include "io/io.h"
#include "tarn.h"

/* As tarn_open; `warehouse` is not looked at. `io` and `clock` outlive the engine. */
tarn_rc tarn_open_on(const tarn_engine_options *options, struct tn_io *io, struct tn_clock *clock,
                     tarn_engine **engine, tarn_error *error);
