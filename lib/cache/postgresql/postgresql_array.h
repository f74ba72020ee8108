/* Arrays as parameters of PostgreSQL statements, in their wire form (PostgreSQL's function array_recv). */
#ifndef MC_CACHE_POSTGRESQL_POSTGRESQL_ARRAY_H
#define MC_CACHE_POSTGRESQL_POSTGRESQL_ARRAY_H

#include "db/postgres/postgres.h"

typedef struct mc_byte_span {
    const void *data;
    size_t size;
} mc_byte_span;

/* int4[] and bytea[], with copies of the values in `pool`. All together at most 1 GB. */
mc_postgres_param mc_postgres_int_array(const int *values, int count, apr_pool_t *pool);
mc_postgres_param mc_postgres_bytea_array(const mc_byte_span *values, int count, apr_pool_t *pool);

#endif
