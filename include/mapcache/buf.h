/*
 * Reference-counted bytes. A buffer grows up to its mandatory maximum while one owner fills it; once shared it is
 * read-only.
 */
#ifndef MAPCACHE_BUF_H
#define MAPCACHE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "mapcache/error.h"

/* Of one stored tile: more is damaged, or meant to harm. */
enum { MC_TILE_BYTES_MAX = 256 << 20 };

typedef struct mc_buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t maximum;
    _Atomic unsigned references;
} mc_buf;

/* An empty buffer with one reference that may grow to `maximum` bytes. Memory comes from malloc, so that it may change
 * threads; from 64 KB on it counts in the budget of the process (<memory_budget>). The initial capacity is a wish: who
 * writes to `data` by himself calls mc_buf_reserve before. */
mc_buf *mc_buf_create(size_t initial_capacity, size_t maximum);

/* A copy of `size` bytes with one reference; for bytes that are ours, or few. */
mc_buf *mc_buf_copy(const void *data, size_t size);

/* The same of as many bytes as a store or an origin has; attached to `pool`. MC_ERR_UNAVAILABLE without memory. */
mc_error *mc_buf_duplicate(mc_buf **copy, const void *data, size_t size, apr_pool_t *pool) MC_CHECKED;

mc_buf *mc_buf_ref(mc_buf *buf);
void mc_buf_unref(mc_buf *buf); /* NULL is ignored */

/* Gives the caller's reference to `pool`: it is dropped when the pool is cleared. Returns buf. */
mc_buf *mc_buf_attach(mc_buf *buf, apr_pool_t *pool);

/* Makes room for `more` bytes. MC_ERR_LIMIT beyond the maximum, MC_ERR_UNAVAILABLE without memory. */
mc_error *mc_buf_reserve(mc_buf *buf, size_t more, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_buf_append(mc_buf *buf, const void *data, size_t size, apr_pool_t *pool) MC_CHECKED;

#endif
