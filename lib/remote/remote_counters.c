/* See remote_counters.h. */
#include "remote/remote_counters.h"

MC_COUNTERS_DEFINE(MC_REMOTE_COUNTERS)
