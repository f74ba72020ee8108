/* See source_counters.h. */
#include "source/source_counters.h"

MC_COUNTERS_DEFINE(MC_SOURCE_COUNTERS)
