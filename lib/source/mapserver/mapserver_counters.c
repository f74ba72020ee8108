/* See mapserver_counters.h. */
#include "source/mapserver/mapserver_counters.h"

MC_COUNTERS_DEFINE(MC_MAPSERVER_COUNTERS)
