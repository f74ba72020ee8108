/* See postgres_counters.h. */
#include "db/postgres/postgres_counters.h"

MC_COUNTERS_DEFINE(MC_POSTGRES_COUNTERS)
