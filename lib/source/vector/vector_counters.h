/* What this room counts. */
#ifndef MC_SOURCE_VECTOR_VECTOR_COUNTERS_H
#define MC_SOURCE_VECTOR_VECTOR_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_VECTOR_COUNTERS(X)                                                                                          \
    X(vector_tiles_total, "Vector tiles made.")                                                                        \
    X(vector_features_total, "Features in the vector tiles that were made.")                                           \
    X(vector_dropped_total, "Features left out of vector tiles that were over their budget.")                          \
    X(vector_bytes_total, "Bytes of the vector tiles that were made, before compression.")                             \
    X(vector_late_total, "Vector tiles that were given up because they took longer than their budget.")                \
    X(vector_maps_total, "Maps and metatiles drawn from vector data.")

MC_VECTOR_COUNTERS(MC_COUNTER_DECLARE)

#endif
