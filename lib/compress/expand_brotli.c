/* Brotli by Google's library, in a module of its own. Its window has at most 16 MB: larger ones are an extension that
 * stays off. */
#include <brotli/decode.h>
#include <brotli/encode.h>

#include "compress/expand.h"

enum { ROOM_AT_FIRST = 16 << 10 };

/* Once more room, or MC_ERR_LIMIT. */
static mc_error *
make_brotli_room(mc_buf *out, apr_pool_t *pool)
{
    size_t most = out->maximum - out->size, room = out->size > ROOM_AT_FIRST ? out->size : ROOM_AT_FIRST;
    if (most == 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "brotli that expands to more than %lu bytes",
                               (unsigned long)out->maximum);
    return mc_buf_reserve(out, room < most ? room : most, pool);
}

static mc_error *
expand_stream(BrotliDecoderState *state, mc_buf *out, const void *data, size_t size, apr_pool_t *pool)
{
    const uint8_t *at = data;
    for (;;) {
        if (out->capacity == out->size || out->maximum == out->size)
            MC_TRY(make_brotli_room(out, pool));
        size_t most = out->maximum < out->capacity ? out->maximum : out->capacity;
        size_t room = most - out->size, before = room;
        uint8_t *end = out->data + out->size;
        BrotliDecoderResult result = BrotliDecoderDecompressStream(state, &size, &at, &room, &end, NULL);
        out->size += before - room;
        if (result == BROTLI_DECODER_RESULT_SUCCESS && size == 0)
            return MC_OK;
        if (result != BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT)
            return mc_error_create(pool, MC_ERR_CORRUPT, "broken or truncated brotli");
        if (room == 0 && out->size == out->maximum)
            return make_brotli_room(out, pool);
    }
}

static mc_error *
expand_brotli(mc_buf *out, const void *data, size_t size, apr_pool_t *pool)
{
    BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (state == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory to expand brotli");
    mc_error *error = expand_stream(state, out, data, size, pool);
    BrotliDecoderDestroyInstance(state);
    return error;
}

static size_t
bound_brotli(size_t size)
{
    return BrotliEncoderMaxCompressedSize(size);
}

/* The window is that of 22 bits whatever the size: its mark is in the first byte (RFC 7932, 9.1). */
static mc_error *
compress_brotli(mc_buf *out, const void *data, size_t size, int quality, apr_pool_t *pool)
{
    size_t room = out->capacity - out->size;
    if (size == 0) { /* the library's has another window: ours says 22 bits and that it is the last and empty */
        out->data[out->size++] = 0x3b;
        return MC_OK;
    }
    if (!BrotliEncoderCompress(quality, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, size, data, &room,
                               out->data + out->size))
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory to compress with brotli");
    out->size += room;
    return MC_OK;
}

const mc_expander mc_brotli_expander = { expand_brotli, bound_brotli, compress_brotli };
