/* See cache_counters.h. */
#include "cache/cache_counters.h"

MC_COUNTERS_DEFINE(MC_CACHE_COUNTERS)
