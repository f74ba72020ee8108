/* See server_counters.h. */
#include "server/server_counters.h"

MC_COUNTERS_DEFINE(MC_SERVER_COUNTERS)
