/* See quota_counters.h. */
#include "cache/quota/quota_counters.h"

MC_COUNTERS_DEFINE(MC_QUOTA_COUNTERS)
