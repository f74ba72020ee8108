/* Reference-counted bytes. */
#include "mapcache/buf.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/references.h"

static mc_buf *
buf_alloc(size_t capacity, size_t maximum)
{
    mc_buf *buf = calloc(1, sizeof(*buf));
    MC_ASSERT(buf != NULL);
    if (capacity > 0) {
        buf->data = malloc(capacity);
        MC_ASSERT(buf->data != NULL);
    }
    buf->capacity = capacity;
    buf->maximum = maximum;
    atomic_init(&buf->references, 1);
    return buf;
}

mc_buf *
mc_buf_create(size_t initial_capacity, size_t maximum)
{
    return buf_alloc(initial_capacity < maximum ? initial_capacity : maximum, maximum);
}

mc_buf *
mc_buf_copy(const void *data, size_t size)
{
    mc_buf *buf = buf_alloc(size, size);
    if (size > 0)
        memcpy(buf->data, data, size);
    buf->size = size;
    return buf;
}

mc_buf *
mc_buf_ref(mc_buf *buf)
{
    mc_references_take(&buf->references);
    return buf;
}

void
mc_buf_unref(mc_buf *buf)
{
    if (buf == NULL || !mc_references_drop(&buf->references))
        return;
    free(buf->data);
    free(buf);
}

static apr_status_t
unref_buf_cleanup(void *data)
{
    mc_buf_unref(data);
    return APR_SUCCESS;
}

mc_buf *
mc_buf_attach(mc_buf *buf, apr_pool_t *pool)
{
    apr_pool_cleanup_register(pool, buf, unref_buf_cleanup, apr_pool_cleanup_null);
    return buf;
}

mc_error *
mc_buf_reserve(mc_buf *buf, size_t more, apr_pool_t *pool)
{
    if (more > buf->maximum - buf->size)
        return mc_error_create(pool, MC_ERR_LIMIT, "more than %lu bytes", (unsigned long)buf->maximum);
    size_t needed = buf->size + more;
    if (needed <= buf->capacity)
        return MC_OK;
    size_t capacity = buf->capacity < 256 ? 256 : buf->capacity;
    while (capacity < needed)
        capacity = capacity > buf->maximum / 2 ? buf->maximum : capacity * 2;
    uint8_t *data = realloc(buf->data, capacity);
    if (data == NULL)
        return mc_error_create(pool, MC_ERR_LIMIT, "no memory for %lu bytes", (unsigned long)capacity);
    buf->data = data;
    buf->capacity = capacity;
    return MC_OK;
}

mc_error *
mc_buf_append(mc_buf *buf, const void *data, size_t size, apr_pool_t *pool)
{
    MC_TRY(mc_buf_reserve(buf, size, pool));
    if (size > 0)
        memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    return MC_OK;
}
