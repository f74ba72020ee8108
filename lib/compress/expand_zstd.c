/* Zstandard by Facebook's library, in a module of its own. */
#include <zstd.h>

#include "compress/expand.h"

enum {
    ROOM_AT_FIRST = 16 << 10,
    WINDOW_LOG_MAX = 25 /* 32 MB of memory for a stream, whatever it says; RFC 8878 3.1.1.1.2 recommends 8 at least */
};

static mc_error *
make_zstd_room(mc_buf *out, apr_pool_t *pool)
{
    size_t most = out->maximum - out->size, room = out->size > ROOM_AT_FIRST ? out->size : ROOM_AT_FIRST;
    if (most == 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "zstd that expands to more than %lu bytes",
                               (unsigned long)out->maximum);
    return mc_buf_reserve(out, room < most ? room : most, pool);
}

static mc_error *
refuse_stream(const char *why, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "broken or truncated zstd: %s", why);
}

/* All frames, one behind the other. */
static mc_error *
expand_frames(ZSTD_DCtx *state, mc_buf *out, const void *data, size_t size, apr_pool_t *pool)
{
    ZSTD_inBuffer in = { data, size, 0 };
    for (;;) {
        if (out->capacity == out->size)
            MC_TRY(make_zstd_room(out, pool));
        size_t most = out->maximum < out->capacity ? out->maximum : out->capacity;
        ZSTD_outBuffer to = { out->data + out->size, most - out->size, 0 };
        size_t taken = in.pos;
        size_t left = ZSTD_decompressStream(state, &to, &in);
        if (ZSTD_isError(left))
            return refuse_stream(ZSTD_getErrorName(left), pool);
        out->size += to.pos;
        if (left == 0 && in.pos == in.size)
            return MC_OK;
        if (to.pos < to.size && in.pos == in.size)
            return refuse_stream("its end is missing", pool);
        if (to.pos == 0 && in.pos == taken) /* no room is left, or nothing goes on */
            MC_TRY(make_zstd_room(out, pool));
    }
}

static mc_error *
expand_zstd(mc_buf *out, const void *data, size_t size, apr_pool_t *pool)
{
    ZSTD_DCtx *state = ZSTD_createDCtx();
    if (state == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory to expand zstd");
    mc_error *error = ZSTD_isError(ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))
                          ? refuse_stream("its library cannot be set up", pool)
                          : expand_frames(state, out, data, size, pool);
    ZSTD_freeDCtx(state);
    return error;
}

static size_t
bound_zstd(size_t size)
{
    return ZSTD_compressBound(size);
}

static mc_error *
compress_zstd(mc_buf *out, const void *data, size_t size, int quality, apr_pool_t *pool)
{
    size_t made = ZSTD_compress(out->data + out->size, out->capacity - out->size, data, size, quality);
    if (ZSTD_isError(made))
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "cannot compress with zstd: %s", ZSTD_getErrorName(made));
    out->size += made;
    return MC_OK;
}

const mc_expander mc_zstd_expander = { expand_zstd, bound_zstd, compress_zstd };
