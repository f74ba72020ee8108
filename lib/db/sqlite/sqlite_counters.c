/* See sqlite_counters.h. */
#include "db/sqlite/sqlite_counters.h"

MC_COUNTERS_DEFINE(MC_SQLITE_COUNTERS)
