/* What this room counts. */
#ifndef MC_DB_POSTGRES_POSTGRES_COUNTERS_H
#define MC_DB_POSTGRES_POSTGRES_COUNTERS_H

#include "base/metrics.h"

/* name (OpenMetrics, without the mapcache_ prefix), help */
#define MC_POSTGRES_COUNTERS(X)                                                                                        \
    X(postgres_queries_total, "Queries sent to PostgreSQL.")                                                           \
    X(postgres_errors_total, "Queries to PostgreSQL that failed.")                                                     \
    X(postgres_bytes_total, "Bytes of rows received from PostgreSQL.")                                                 \
    X(postgres_connections_total, "Connections to PostgreSQL that were opened.")                                       \
    X(postgres_cancels_total, "Queries that were cancelled at PostgreSQL.")

MC_POSTGRES_COUNTERS(MC_COUNTER_DECLARE)

#endif
