/* Arrays in PostgreSQL's wire form: a head, then each value with its length in front, all numbers big-endian. */
#include "cache/postgresql/postgresql_array.h"
#include "base/bytes.h"

#include <string.h>

/* Object ids of the array types (src/include/catalog/pg_type.dat). */
enum { INT4_ARRAY = 1007, BYTEA_ARRAY = 1001, HEAD = 5 * 4, ARRAY_BYTES_MAX = 1 << 30 };

/* One dimension, no nulls, numbered from 1. */
static uint8_t *
put_head(uint8_t *at, unsigned type, int count)
{
    at = mc_store_big32(at, 1);
    at = mc_store_big32(at, 0);
    at = mc_store_big32(at, type);
    at = mc_store_big32(at, (unsigned)count);
    return mc_store_big32(at, 1);
}

static mc_postgres_param
param_of(const uint8_t *bytes, size_t size, unsigned type)
{
    MC_ASSERT(size <= ARRAY_BYTES_MAX);
    return (mc_postgres_param){ .value = bytes, .size = (int)size, .binary = true, .type = type };
}

mc_postgres_param
mc_postgres_int_array(const int *values, int count, apr_pool_t *pool)
{
    size_t size = HEAD + (size_t)count * 8;
    uint8_t *bytes = apr_palloc(pool, size), *at = put_head(bytes, MC_POSTGRES_INT4, count);
    for (int i = 0; i < count; i++)
        at = mc_store_big32(mc_store_big32(at, 4), (unsigned)values[i]);
    return param_of(bytes, size, INT4_ARRAY);
}

mc_postgres_param
mc_postgres_bytea_array(const mc_byte_span *values, int count, apr_pool_t *pool)
{
    size_t size = HEAD;
    for (int i = 0; i < count; i++)
        size += 4 + values[i].size;
    uint8_t *bytes = apr_palloc(pool, size), *at = put_head(bytes, MC_POSTGRES_BYTEA, count);
    for (int i = 0; i < count; i++) {
        at = mc_store_big32(at, (unsigned)values[i].size);
        memcpy(at, values[i].data, values[i].size);
        at += values[i].size;
    }
    return param_of(bytes, size, BYTEA_ARRAY);
}
