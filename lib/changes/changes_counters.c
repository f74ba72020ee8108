/* See changes_counters.h. */
#include "changes/changes_counters.h"

MC_COUNTERS_DEFINE(MC_CHANGES_COUNTERS)
