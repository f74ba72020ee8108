/* See cdn_counters.h. */
#include "cdn/cdn_counters.h"

MC_COUNTERS_DEFINE(MC_CDN_COUNTERS)
