/*
 * PNG out. Images of at most 256 colours become palette images without loss, which costs a third in time and size;
 * others true colour, without alpha where all is opaque, and filtered where that pays (png_predict.c).
 */
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "image/codec.h"
#include "image/png/indexed.h"
#include "mapcache/trace.h"
#include "memory/scratch.h"

static mc_deflate_level
level_of(const mc_format *format, mc_purpose purpose)
{
    switch (format->compression) {
    case MC_PNG_NONE:
        return MC_DEFLATE_STORED;
    case MC_PNG_FAST:
        return MC_DEFLATE_QUICK;
    case MC_PNG_BEST:
        return MC_DEFLATE_BEST;
    default:
        return purpose == MC_FOR_STORE ? MC_DEFLATE_GOOD : MC_DEFLATE_QUICK;
    }
}

/* 2^24 / alpha, rounded up: exact for every 16-bit dividend of mc_pixels_straight. */
static void
fill_alpha_reciprocals(uint32_t out[256])
{
    out[0] = 0;
    for (uint32_t a = 1; a < 256; a++)
        out[a] = ((1u << 24) + a - 1) / a;
}

#ifdef __SSE4_1__
/*
 * One pixel's colours as they were before they were multiplied. The quotients are exact: a dividend has at most 16
 * bits, so that one below a whole number is farther from that number than a float is from the quotient.
 */
static inline __m128i
divide_by_alpha(__m128i bgra)
{
    __m128i parts = _mm_cvtepu8_epi32(bgra), alpha = _mm_shuffle_epi32(parts, _MM_SHUFFLE(3, 3, 3, 3));
    __m128i value = _mm_min_epi32(parts, alpha);
    __m128i dividend = _mm_add_epi32(_mm_sub_epi32(_mm_slli_epi32(value, 8), value), _mm_srli_epi32(alpha, 1));
    __m128 divisor = _mm_cvtepi32_ps(_mm_max_epi32(alpha, _mm_set1_epi32(1)));
    __m128i straight = _mm_cvttps_epi32(_mm_div_ps(_mm_cvtepi32_ps(dividend), divisor));
    return _mm_blend_epi16(straight, alpha, 0xc0);
}

static inline __m128i
divide_four_by_alpha(__m128i four)
{
    __m128i low = _mm_packus_epi32(divide_by_alpha(four), divide_by_alpha(_mm_srli_si128(four, 4)));
    __m128i high =
        _mm_packus_epi32(divide_by_alpha(_mm_srli_si128(four, 8)), divide_by_alpha(_mm_srli_si128(four, 12)));
    return _mm_packus_epi16(low, high);
}
#endif

static void
write_rgba_row(uint8_t *out, const uint8_t *bgra, int count, const uint32_t inverse[256])
{
    int x = 0;
#ifdef __SSE4_1__
    const __m128i order = _mm_setr_epi8(2, 1, 0, 3, 6, 5, 4, 7, 10, 9, 8, 11, 14, 13, 12, 15);
    const __m128i opaque = _mm_set1_epi32((int)0xff000000u);
    for (; x + 4 <= count; x += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(bgra + (size_t)x * 4));
        if (!_mm_testc_si128(four, opaque) && !_mm_testz_si128(four, four))
            four = divide_four_by_alpha(four);
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)x * 4), _mm_shuffle_epi8(four, order));
    }
#endif
    for (; x < count; x++) {
        const uint8_t *in = bgra + (size_t)x * 4;
        uint8_t *pixel = out + (size_t)x * 4;
        uint32_t a = in[3];
        for (int c = 0; c < 3; c++) {
            uint32_t value = in[2 - c] < a ? in[2 - c] : a;
            pixel[c] = (uint8_t)(((uint64_t)(value * 255 + a / 2) * inverse[a]) >> 24);
        }
        pixel[3] = (uint8_t)a;
    }
}

static void
write_rgb_row(uint8_t *out, const uint8_t *bgra, int count)
{
    int x = 0;
#ifdef __SSE4_1__
    const __m128i order = _mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    /* Sixteen bytes are written for four pixels: the last ones are left to the loop below. */
    for (; x + 6 <= count; x += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(bgra + (size_t)x * 4));
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)x * 3), _mm_shuffle_epi8(four, order));
    }
#endif
    for (; x < count; x++) {
        out[(size_t)x * 3] = bgra[(size_t)x * 4 + 2];
        out[(size_t)x * 3 + 1] = bgra[(size_t)x * 4 + 1];
        out[(size_t)x * 3 + 2] = bgra[(size_t)x * 4];
    }
}

size_t
mc_png_rows_size(const mc_pixels *pixels, bool opaque)
{
    return ((size_t)pixels->width * (opaque ? 3 : 4) + 1) * (size_t)pixels->height;
}

mc_deflate_level
mc_png_rows(uint8_t *rows, const mc_pixels *pixels, bool opaque, mc_deflate_level level)
{
    size_t row_size = (size_t)pixels->width * (opaque ? 3 : 4);
    uint32_t inverse[256];
    fill_alpha_reciprocals(inverse);
    for (int y = 0; y < pixels->height; y++) {
        uint8_t *row = rows + (size_t)y * (row_size + 1);
        const uint8_t *in = pixels->data + (size_t)y * pixels->stride;
        row[0] = 0;
        if (opaque)
            write_rgb_row(row + 1, in, pixels->width);
        else
            write_rgba_row(row + 1, in, pixels->width, inverse);
    }
    return mc_png_looks_like_photo(pixels) ? mc_png_filter(rows, row_size, pixels->height, opaque ? 3 : 4, level)
                                           : level;
}

static mc_error *
encode_true_color(mc_buf *png, mc_pixels *pixels, mc_deflate_level level, apr_pool_t *pool)
{
    bool opaque = mc_pixels_opacity(pixels) == MC_OPAQUE;
    size_t size = mc_png_rows_size(pixels, opaque);
    uint8_t *rows = mc_scratch_acquire(size);
    if (rows == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image of %d x %d pixels", pixels->width,
                               pixels->height);
    level = mc_png_rows(rows, pixels, opaque, level);
    mc_png_header header = { .width = (uint32_t)pixels->width,
                             .height = (uint32_t)pixels->height,
                             .depth = 8,
                             .color = opaque ? MC_PNG_RGB : MC_PNG_RGBA };
    mc_error *error = mc_png_begin(png, &header, pool);
    if (error == MC_OK)
        error = mc_png_image_data(png, rows, size, level, pool);
    mc_scratch_release(rows);
    return error;
}

static void
pack_row(uint8_t *out, const uint8_t *indices, int count, int depth)
{
    if (depth == 8) {
        memcpy(out, indices, (size_t)count);
        return;
    }
    int per_byte = 8 / depth;
    for (int x = 0; x < count; x += per_byte) {
        unsigned byte = 0;
        for (int i = 0; i < per_byte; i++)
            byte = byte << depth | (x + i < count ? indices[x + i] : 0u);
        *out++ = (uint8_t)byte;
    }
}

/* Rows of indices, each `stride` bytes after the one before, into rows of fewer bits, each with its filter type. */
static void
pack_rows(uint8_t *rows, size_t row_size, const uint8_t *indices, size_t stride, int width, int height, int depth)
{
    for (int y = 0; y < height; y++) {
        uint8_t *row = rows + (size_t)y * (row_size + 1);
        row[0] = 0;
        pack_row(row + 1, indices + (size_t)y * stride, width, depth);
    }
}

/* Header, palette and data of an image of indices. `whole`: they have filter types in between already. */
static mc_error *
write_palette(mc_buf *png, const mc_palette *palette, const uint8_t *indices, size_t stride, int width, int height,
              bool whole, mc_deflate_level level, apr_pool_t *pool)
{
    int depth = palette->count <= 2 ? 1 : palette->count <= 4 ? 2 : palette->count <= 16 ? 4 : 8;
    size_t row_size = ((size_t)width * (size_t)depth + 7) / 8, size = (row_size + 1) * (size_t)height;
    mc_png_header header = {
        .width = (uint32_t)width, .height = (uint32_t)height, .depth = depth, .color = MC_PNG_PALETTE
    };
    MC_TRY(mc_png_begin(png, &header, pool));
    MC_TRY(mc_png_palette(png, palette, false, pool));
    if (whole && depth == 8)
        return mc_png_image_data(png, indices - 1, size, level, pool);
    uint8_t *rows = mc_scratch_acquire(size);
    if (rows == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image of %d x %d pixels", width, height);
    pack_rows(rows, row_size, indices, stride, width, height, depth);
    mc_error *error = mc_png_image_data(png, rows, size, level, pool);
    mc_scratch_release(rows);
    return error;
}

static mc_error *
encode_palette(mc_buf *png, const mc_pixels *pixels, const mc_palette *palette, const uint8_t *indices,
               mc_deflate_level level, apr_pool_t *pool)
{
    return write_palette(png, palette, indices, (size_t)pixels->width, pixels->width, pixels->height, false, level,
                         pool);
}

bool
mc_indexed_suits(const mc_format *format)
{
    return format->type == MC_FORMAT_PNG && format->colors == 0;
}

mc_error *
mc_indexed_encode(mc_buf **bytes, const mc_format *format, const mc_indexed *image, mc_purpose purpose, mc_ctx *ctx,
                  apr_pool_t *pool)
{
    MC_SPAN(ctx, "_mapcache_imageio_png_encode");
    mc_palette palette = { .count = image->count };
    memcpy(palette.colors, image->colors, sizeof(palette.colors));
    for (int i = 0; i < image->count; i++) /* alphas are written up to the last one that is not opaque */
        if (image->colors[i][3] != 255)
            palette.translucent = i + 1;
    mc_buf *png = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    MC_TRY(write_palette(png, &palette, image->rows + 1, image->stride, image->width, image->height, true,
                         level_of(format, purpose), pool));
    MC_TRY(mc_png_end(png, pool));
    *bytes = png;
    return MC_OK;
}

/* True when `palette` and `indices` hold the image. */
static bool
find_palette(mc_palette *palette, uint8_t *indices, mc_pixels *pixels, const mc_format *format, mc_purpose purpose)
{
    if (format->colors > 0) {
        mc_palette_quantize(palette, indices, pixels, format->colors);
        return true;
    }
    /* Other programs that read our stores take every palette image for opaque (docs/reference/configuration.md 12 row
     * 4). */
    if (purpose == MC_FOR_STORE && mc_pixels_opacity(pixels) != MC_OPAQUE)
        return false;
    return mc_palette_exact(palette, indices, pixels, 256);
}

static mc_error *
encode_png_pixels(mc_buf *png, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, apr_pool_t *pool)
{
    mc_deflate_level level = level_of(format, purpose);
    mc_palette palette;
    uint8_t *indices = mc_scratch_acquire((size_t)pixels->width * (size_t)pixels->height);
    if (indices == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image of %d x %d pixels", pixels->width,
                               pixels->height);
    mc_error *error = find_palette(&palette, indices, pixels, format, purpose)
                          ? encode_palette(png, pixels, &palette, indices, level, pool)
                          : encode_true_color(png, pixels, level, pool);
    mc_scratch_release(indices);
    return error == MC_OK ? mc_png_end(png, pool) : error;
}

static mc_error *
png_encode(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
           apr_pool_t *pool)
{
    MC_SPAN(ctx, "_mapcache_imageio_png_encode");
    mc_buf *png = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    MC_TRY(encode_png_pixels(png, format, pixels, purpose, pool));
    *bytes = png;
    return MC_OK;
}

const struct mc_format_ops mc_format_png_ops = { "PNG", png_encode };
