/* See dimension_counters.h. */
#include "dimension/dimension_counters.h"

MC_COUNTERS_DEFINE(MC_DIMENSION_COUNTERS)
