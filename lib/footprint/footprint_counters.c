/* See footprint_counters.h. */
#include "footprint/footprint_counters.h"

MC_COUNTERS_DEFINE(MC_FOOTPRINT_COUNTERS)
