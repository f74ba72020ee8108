/* The outer form of a PNG that is written: signature, chunks with checksums, the compressed image data. */
#include <libdeflate.h>
#include <string.h>

#include "base/budget.h"
#include "compress/deflate.h"
#include "compress/literal_deflate.h"
#include "compress/quick_deflate.h"
#include "image/codec.h"
#include "image/png/png.h"
#include "memory/scratch.h"

mc_error *
mc_png_chunk(mc_buf *png, const char type[4], const void *data, size_t size, apr_pool_t *pool)
{
    MC_TRY(mc_buf_reserve(png, size + 12, pool));
    uint8_t *at = png->data + png->size;
    (void)mc_store_big32(at, (uint32_t)size);
    memcpy(at + 4, type, 4);
    if (size > 0)
        memcpy(at + 8, data, size);
    (void)mc_store_big32(at + 8 + size, libdeflate_crc32(0, at + 4, size + 4));
    png->size += size + 12;
    return MC_OK;
}

mc_error *
mc_png_begin(mc_buf *png, const mc_png_header *header, apr_pool_t *pool)
{
    uint8_t body[13] = { 0 };
    (void)mc_store_big32(body, header->width);
    (void)mc_store_big32(body + 4, header->height);
    body[8] = (uint8_t)header->depth;
    body[9] = (uint8_t)header->color;
    MC_TRY(mc_buf_append(png, mc_png_signature, sizeof(mc_png_signature), pool));
    return mc_png_chunk(png, "IHDR", body, sizeof(body), pool);
}

mc_error *
mc_png_palette(mc_buf *png, const mc_palette *palette, bool always, apr_pool_t *pool)
{
    uint8_t colors[256 * 3], alphas[256];
    for (int i = 0; i < palette->count; i++) {
        const uint8_t *bgra = palette->colors[i];
        for (int c = 0; c < 3; c++)
            colors[i * 3 + c] = mc_pixels_straight(bgra[2 - c], bgra[3]);
        alphas[i] = bgra[3];
    }
    MC_TRY(mc_png_chunk(png, "PLTE", colors, (size_t)palette->count * 3, pool));
    int count = always ? palette->count : palette->translucent;
    return count == 0 ? MC_OK : mc_png_chunk(png, "tRNS", alphas, (size_t)count, pool);
}

enum { CODES_ROOM = 1024 }; /* for what a compressor keeps free */

/* The zlib stream of `rows`, written to `out`; 0 when it did not fit (or the compressor is not to be had). */
static size_t
deflate_quick(uint8_t *out, size_t room, const uint8_t *rows, size_t size)
{
    void *memory = mc_scratch_acquire(mc_quick_deflate_memory());
    size_t written = memory == NULL ? 0 : mc_quick_deflate(memory, out, room, rows, size, false);
    mc_scratch_release(memory);
    return written;
}

static size_t
deflate_rows(mc_deflate_level level, uint8_t *out, size_t room, const uint8_t *rows, size_t size)
{
    switch (level) {
    case MC_DEFLATE_STORED:
        return mc_deflate(out, room, rows, size, 0, false);
    case MC_DEFLATE_QUICK:
        return deflate_quick(out, room, rows, size);
    case MC_DEFLATE_LITERALS:
        return mc_literal_deflate(out, room, rows, size);
    case MC_DEFLATE_BEST:
        return mc_deflate(out, room, rows, size, 12, false);
    case MC_DEFLATE_GOOD:
        break;
    }
    return mc_deflate(out, room, rows, size, 6, false);
}

mc_error *
mc_png_deflate(uint8_t **stream, size_t *written, size_t before, const uint8_t *rows, size_t size,
               mc_deflate_level level, apr_pool_t *pool)
{
    size_t stored = libdeflate_zlib_compress_bound(NULL, size) + CODES_ROOM;
    size_t room = level == MC_DEFLATE_LITERALS ? mc_literal_deflate_room(size) : stored;
    *stream = mc_scratch_acquire(before + room);
    *written = 0;
    if (*stream == NULL)
        return mc_budget_error(before + room, pool);
    *written = deflate_rows(level, *stream + before, room, rows, size);
    /* What cannot be shrunk may not fit the quick way; stored always does. */
    if (*written == 0 || *written > stored)
        *written = mc_deflate(*stream + before, room, rows, size, 0, false);
    if (*written > 0 && *written <= INT32_MAX - before)
        return MC_OK;
    mc_scratch_release(*stream);
    *stream = NULL;
    return mc_error_create(pool, MC_ERR_LIMIT, "an image too large to be compressed");
}

mc_error *
mc_png_image_data(mc_buf *png, const uint8_t *rows, size_t size, mc_deflate_level level, apr_pool_t *pool)
{
    /* Compressed into scratch: the buffer that stays, perhaps for long in a cache, is only as large as its content. */
    uint8_t *stream;
    size_t written;
    MC_TRY(mc_png_deflate(&stream, &written, 0, rows, size, level, pool));
    mc_error *error = mc_png_chunk(png, "IDAT", stream, written, pool);
    mc_scratch_release(stream);
    return error;
}

mc_error *
mc_png_end(mc_buf *png, apr_pool_t *pool)
{
    return mc_png_chunk(png, "IEND", NULL, 0, pool);
}
