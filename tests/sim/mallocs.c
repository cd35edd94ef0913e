#include "sim/mallocs.h"

uint64_t sim_mallocs;
