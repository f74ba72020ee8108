/* See telemetry_counters.h. */
#include "telemetry/telemetry_counters.h"

MC_COUNTERS_DEFINE(MC_TELEMETRY_COUNTERS)
