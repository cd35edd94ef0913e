/* mallocs: how often the simulators called malloc, for a test that counts everybody else's. */
#pragma once

#include <stdint.h>

extern uint64_t sim_mallocs;
