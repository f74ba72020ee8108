/* See tileset_counters.h. */
#include "tileset/tileset_counters.h"

MC_COUNTERS_DEFINE(MC_TILESET_COUNTERS)
