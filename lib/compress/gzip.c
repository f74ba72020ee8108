/* gzip: see gzip.h. Compressed by ISA-L where speed matters most, else by libdeflate. */
#include "compress/gzip.h"

#include <libdeflate.h>

#include "compress/deflate.h"
#include "compress/quick_deflate.h"
#include "memory/scratch.h"

enum { SMALLEST = 18, ROOM_AT_FIRST = 16384 };

bool
mc_is_gzip(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    return size >= SMALLEST && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

static size_t
compress_fast(void *out, size_t room, const mc_deflate_part *parts, int count)
{
    void *memory = mc_scratch_acquire(mc_quick_deflate_memory());
    size_t written = memory == NULL ? 0 : mc_quick_deflate_parts(memory, out, room, parts, count, true);
    mc_scratch_release(memory);
    return written;
}

/* A buffer in which every member of so many bytes has room. */
static mc_error *
create_member(mc_buf **out, size_t *room, size_t size, apr_pool_t *pool)
{
    *room = libdeflate_gzip_compress_bound(NULL, size) + SMALLEST;
    *out = mc_buf_attach(mc_buf_create(*room, *room), pool);
    return mc_buf_reserve(*out, *room, pool);
}

mc_error *
mc_gzip_parts(mc_buf **out, const mc_deflate_part *parts, int count, size_t size, apr_pool_t *pool)
{
    size_t room;
    mc_buf *made;
    *out = NULL;
    MC_TRY(create_member(&made, &room, size, pool));
    made->size = compress_fast(made->data, room, parts, count);
    if (made->size > 0)
        *out = made;
    return MC_OK;
}

mc_error *
mc_gzip(mc_buf **out, const void *data, size_t size, mc_gzip_level level, apr_pool_t *pool)
{
    size_t room;
    const mc_deflate_part all = { data, size };
    MC_TRY(create_member(out, &room, size, pool));
    size_t written = level == MC_GZIP_FAST ? compress_fast((*out)->data, room, &all, 1) : 0;
    if (written == 0)
        written = mc_deflate((*out)->data, room, data, size, level == MC_GZIP_BEST ? 12 : 6, true);
    if (written == 0)
        return mc_error_create(pool, MC_ERR_LIMIT, "%lu bytes cannot be compressed", (unsigned long)size);
    (*out)->size = written;
    return MC_OK;
}

/* One member behind what is there; grows the room as it takes. */
static mc_error *
expand_member(mc_buf *out, size_t *taken, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    struct libdeflate_decompressor *expander = libdeflate_alloc_decompressor();
    enum libdeflate_result result = LIBDEFLATE_INSUFFICIENT_SPACE;
    mc_error *error = MC_OK;
    size_t made = 0;
    for (size_t room = ROOM_AT_FIRST; expander != NULL && result == LIBDEFLATE_INSUFFICIENT_SPACE; room *= 4) {
        size_t most = out->maximum - out->size;
        error = mc_buf_reserve(out, room < most ? room : most, pool);
        if (error != MC_OK)
            break;
        result = libdeflate_gzip_decompress_ex(expander, data, size, out->data + out->size,
                                               out->capacity - out->size < most ? out->capacity - out->size : most,
                                               taken, &made);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE && room >= most)
            break;
    }
    if (expander != NULL)
        libdeflate_free_decompressor(expander);
    MC_TRY(error);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
        return mc_error_create(pool, MC_ERR_LIMIT, "gzip that expands to more than %lu bytes",
                               (unsigned long)out->maximum);
    if (result != LIBDEFLATE_SUCCESS)
        return mc_error_create(pool, MC_ERR_CORRUPT, "broken or truncated gzip");
    out->size += made;
    return MC_OK;
}

mc_error *
mc_gunzip(mc_buf **out, const void *data, size_t size, size_t most, apr_pool_t *pool)
{
    const uint8_t *at = data, *end = at + size;
    *out = mc_buf_attach(mc_buf_create(size * 4 < most ? size * 4 : most, most), pool);
    do {
        size_t taken = 0;
        MC_TRY(expand_member(*out, &taken, at, (size_t)(end - at), pool));
        at += taken;
    } while (at < end);
    return MC_OK;
}
