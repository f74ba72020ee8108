/* See overview_counters.h. */
#include "overview/overview_counters.h"

MC_COUNTERS_DEFINE(MC_OVERVIEW_COUNTERS)
