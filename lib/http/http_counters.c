/* See http_counters.h. */
#include "http/http_counters.h"

MC_COUNTERS_DEFINE(MC_HTTP_COUNTERS)
