/* See vector_counters.h. */
#include "source/vector/vector_counters.h"

MC_COUNTERS_DEFINE(MC_VECTOR_COUNTERS)
