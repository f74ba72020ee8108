/*
 * PNG in. The forms that map servers send (8-bit RGB and RGBA, palettes; not interlaced) are inflated in one piece and
 * un-filtered here, three to seven times as fast as row by row; all others go through libpng. Every length, checksum
 * and size is checked: files come from outside.
 */
#include <libdeflate.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "base/budget.h"
#include "compress/inflate.h"
#include "image/box.h"
#include "image/codec.h"
#include "image/png/png.h"
#include "memory/scratch.h"

/* Streams that shrink by more than SPARSE_RATIO are mostly repetitions, which libdeflate 1.14 copies byte by byte. */
enum { HEADER_END = 8 + 25, SPARSE_RATIO = 24 };

static mc_error *
broken_png_error(apr_pool_t *pool, const char *what)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "not a usable PNG image: %s", what);
}

static bool
is_legal(int depth, int color)
{
    switch (color) {
    case MC_PNG_GRAY:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case MC_PNG_PALETTE:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case MC_PNG_RGB:
    case MC_PNG_GRAY_ALPHA:
    case MC_PNG_RGBA:
        return depth == 8 || depth == 16;
    default:
        return false;
    }
}

/* Checks signature, IHDR and its CRC; sizes within the decoder's bounds. */
static mc_error *
read_png_header(mc_png_header *header, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    if (size < HEADER_END || memcmp(data, mc_png_signature, 8) != 0)
        return broken_png_error(pool, "no header");
    if (mc_big32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0 ||
        libdeflate_crc32(0, data + 12, 17) != mc_big32(data + 29))
        return broken_png_error(pool, "a broken header");
    *header = (mc_png_header){ .width = mc_big32(data + 16),
                               .height = mc_big32(data + 20),
                               .depth = data[24],
                               .color = data[25],
                               .interlace = data[28] };
    if (!is_legal(header->depth, header->color) || data[26] != 0 || data[27] != 0 || header->interlace > 1)
        return broken_png_error(pool, "an unknown form");
    return mc_decode_check_size(header->width, header->height, pool);
}

mc_error *
mc_png_size(int *width, int *height, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    mc_png_header header;
    MC_TRY(read_png_header(&header, data, size, pool));
    *width = (int)header.width;
    *height = (int)header.height;
    return MC_OK;
}

/* The chunks that pixels depend on. */
typedef struct chunks {
    const uint8_t *palette, *transparency;
    size_t palette_size, transparency_size;
    const uint8_t *first; /* data of the first IDAT */
    size_t total;         /* of the data of all of them */
    int count;
} chunks;

static mc_error *
note_chunk(chunks *found, const uint8_t *chunk, size_t length, bool *within, apr_pool_t *pool)
{
    const uint8_t *type = chunk + 4;
    if (memcmp(type, "IDAT", 4) == 0) {
        if (found->count > 0 && !*within)
            return broken_png_error(pool, "image data in several places");
        if (found->count++ == 0)
            found->first = chunk + 8;
        found->total += length;
        *within = true;
        return MC_OK;
    }
    *within = false;
    if (memcmp(type, "PLTE", 4) == 0) {
        if (found->palette != NULL || found->count > 0 || length % 3 != 0 || length < 3 || length > 768)
            return broken_png_error(pool, "a broken palette");
        found->palette = chunk + 8;
        found->palette_size = length;
    } else if (memcmp(type, "tRNS", 4) == 0) {
        if (found->transparency != NULL || found->count > 0 || length > 256)
            return broken_png_error(pool, "broken transparency");
        found->transparency = chunk + 8;
        found->transparency_size = length;
    } else if ((type[0] & 0x20) == 0 && memcmp(type, "IEND", 4) != 0) {
        return broken_png_error(pool, "an unknown critical chunk");
    }
    return MC_OK;
}

/* Walks the whole file up to IEND. Checksums of chunks that are ignored do not matter. */
static mc_error *
walk_png_chunks(chunks *found, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    *found = (chunks){ 0 };
    bool within = false;
    for (size_t at = HEADER_END; size - at >= 12;) {
        size_t length = mc_big32(data + at);
        if (length > size - at - 12)
            return broken_png_error(pool, "it ends too early");
        const uint8_t *type = data + at + 4;
        bool matters = (type[0] & 0x20) == 0 || memcmp(type, "tRNS", 4) == 0;
        if (matters && libdeflate_crc32(0, type, length + 4) != mc_big32(type + 4 + length))
            return broken_png_error(pool, "a checksum that does not fit");
        MC_TRY(note_chunk(found, data + at, length, &within, pool));
        at += 12 + length;
        if (memcmp(type, "IEND", 4) == 0)
            return found->count > 0 ? MC_OK : broken_png_error(pool, "no image data");
    }
    return broken_png_error(pool, "it ends too early");
}

/* The data of all IDATs in one piece: in place when there is only one. *owned is scratch to release. */
static mc_error *
gather_png_stream(const uint8_t **stream, uint8_t **owned, const chunks *found, apr_pool_t *pool)
{
    *owned = NULL;
    *stream = found->first;
    if (found->count == 1)
        return MC_OK;
    *owned = mc_scratch_acquire(found->total + 1);
    if (*owned == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for %lu bytes of image data",
                               (unsigned long)found->total);
    const uint8_t *chunk = found->first - 8;
    size_t filled = 0;
    for (int i = 0; i < found->count; i++) {
        size_t length = mc_big32(chunk);
        memcpy(*owned + filled, chunk + 8, length);
        filled += length;
        chunk += 12 + length;
    }
    *stream = *owned;
    return MC_OK;
}

/* An image inflated and un-filtered, in the file's colours. */
typedef struct raster {
    mc_png_header header;
    chunks found;
    uint8_t *rows; /* scratch: each a byte and row_size bytes */
    size_t row_size;
    uint32_t begin, end; /* outside of these, rows hold zeros only */
} raster;

static bool
inflate_dense(raster *r, size_t size, const uint8_t *stream)
{
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    enum libdeflate_result result = LIBDEFLATE_INSUFFICIENT_SPACE;
    if (inflater != NULL)
        result = libdeflate_zlib_decompress(inflater, stream, r->found.total, r->rows, size, NULL);
    libdeflate_free_decompressor(inflater);
    r->begin = 0;
    r->end = r->header.height;
    return result == LIBDEFLATE_SUCCESS;
}

static bool
inflate_sparse(raster *r, size_t size, const uint8_t *stream)
{
    size_t begin, end;
    if (!mc_inflate_sparse(r->rows, size, stream, r->found.total, &begin, &end))
        return false;
    r->begin = (uint32_t)(begin / (r->row_size + 1));
    r->end = (uint32_t)((end + r->row_size) / (r->row_size + 1));
    return true;
}

/* Inflates the rows, exactly as many as there must be, into scratch memory, the caller's. */
static mc_error *
inflate_rows(raster *r, apr_pool_t *pool)
{
    size_t size = (r->row_size + 1) * r->header.height;
    /* Deflate cannot shrink to less than 1/1032: a claim beyond that needs no memory to be refused. */
    if (size / 1032 > r->found.total)
        return broken_png_error(pool, "too little image data");
    const uint8_t *stream;
    uint8_t *owned;
    MC_TRY(gather_png_stream(&stream, &owned, &r->found, pool));
    r->rows = mc_scratch_acquire(size + MC_INFLATE_SLACK);
    bool sparse = size / SPARSE_RATIO > r->found.total;
    bool room = r->rows != NULL;
    bool done = room && (sparse ? inflate_sparse(r, size, stream) : inflate_dense(r, size, stream));
    mc_scratch_release(owned);
    if (done)
        return MC_OK;
    if (!room)
        return mc_budget_error(size, pool);
    mc_scratch_release(r->rows);
    r->rows = NULL;
    return broken_png_error(pool, "image data that cannot be inflated to its size");
}

static void
convert_rgb_row(uint8_t *out, const uint8_t *in, uint32_t count)
{
    uint32_t x = 0;
#ifdef __SSE4_1__
    const __m128i order = _mm_setr_epi8(2, 1, 0, -1, 5, 4, 3, -1, 8, 7, 6, -1, 11, 10, 9, -1);
    const __m128i alpha = _mm_set1_epi32((int)0xff000000u);
    /* Sixteen bytes are read for four pixels: the last ones are left to the loop below. */
    for (; x + 6 <= count; x += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(in + (size_t)x * 3));
        _mm_storeu_si128((__m128i *)(void *)(out + (size_t)x * 4), _mm_or_si128(_mm_shuffle_epi8(four, order), alpha));
    }
#endif
    for (; x < count; x++) {
        uint8_t *pixel = out + (size_t)x * 4;
        pixel[0] = in[(size_t)x * 3 + 2];
        pixel[1] = in[(size_t)x * 3 + 1];
        pixel[2] = in[(size_t)x * 3];
        pixel[3] = 255;
    }
}

static void
convert_palette_row(uint8_t *out, const uint8_t *in, uint32_t count, int depth, const uint32_t colors[256])
{
    if (depth == 8) {
        for (uint32_t x = 0; x < count; x++)
            memcpy(out + (size_t)x * 4, &colors[in[x]], 4);
        return;
    }
    unsigned mask = (1u << depth) - 1;
    unsigned per_byte = 8u / (unsigned)depth;
    for (uint32_t x = 0; x < count; x++) {
        unsigned shift = 8u - (unsigned)depth * (x % per_byte + 1);
        memcpy(out + (size_t)x * 4, &colors[in[x / per_byte] >> shift & mask], 4);
    }
}

/* Premultiplied; entries that the file lacks are opaque black, as libpng has it. */
static void
palette_colors(uint32_t colors[256], const chunks *found)
{
    for (size_t i = 0; i < 256; i++) {
        uint8_t rgba[4] = { 0, 0, 0, 255 }, bgra[4], all = 255, any = 0;
        if (i * 3 < found->palette_size)
            memcpy(rgba, found->palette + i * 3, 3);
        if (i < found->transparency_size)
            rgba[3] = found->transparency[i];
        mc_png_premultiply(bgra, rgba, 1, &all, &any);
        memcpy(&colors[i], bgra, 4);
    }
}

static const uint8_t *
raster_row(const raster *r, uint32_t y)
{
    return r->rows + y * (r->row_size + 1) + 1;
}

static void
convert_rgba(mc_pixels *pixels, const raster *r)
{
    uint8_t all = r->begin == 0 && r->end == r->header.height ? 255 : 0, any = 0;
    for (uint32_t y = 0; y < r->header.height; y++) {
        uint8_t *out = pixels->data + y * pixels->stride;
        if (y < r->begin || y >= r->end)
            memset(out, 0, r->row_size);
        else
            mc_png_premultiply(out, raster_row(r, y), r->header.width, &all, &any);
    }
    pixels->opacity = mc_png_opacity(all, any);
}

static void
convert_png_raster(mc_pixels *pixels, const raster *r)
{
    uint32_t colors[256], width = r->header.width;
    if (r->header.color == MC_PNG_RGBA) {
        convert_rgba(pixels, r);
        return;
    }
    if (r->header.color == MC_PNG_PALETTE)
        palette_colors(colors, &r->found);
    for (uint32_t y = 0; y < r->header.height; y++) {
        uint8_t *out = pixels->data + y * pixels->stride;
        if (r->header.color == MC_PNG_RGB)
            convert_rgb_row(out, raster_row(r, y), width);
        else
            convert_palette_row(out, raster_row(r, y), width, r->header.depth, colors);
    }
    if (r->header.color == MC_PNG_RGB || r->found.transparency_size == 0)
        pixels->opacity = MC_OPAQUE;
    else
        mc_pixels_opacity(pixels);
}

/* Whether we read this form ourselves. */
static bool
is_usual_png(const mc_png_header *header, const chunks *found)
{
    bool plain = header->color == MC_PNG_RGBA || (header->color == MC_PNG_RGB && found->transparency == NULL);
    return header->interlace == 0 && ((plain && header->depth == 8) || header->color == MC_PNG_PALETTE);
}

static mc_error *
read_chunks(raster *r, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    *r = (raster){ .rows = NULL };
    MC_TRY(read_png_header(&r->header, data, size, pool));
    MC_TRY(walk_png_chunks(&r->found, data, size, pool));
    if (r->header.color == MC_PNG_PALETTE && r->found.palette == NULL)
        return broken_png_error(pool, "no palette");
    return MC_OK;
}

/* Above rows of zeros and below them, the filters have nothing to do. */
static bool
unfilter_png_rows(raster *r, int step)
{
    size_t stride = r->row_size + 1;
    while (r->begin < r->end && mc_png_is_zero(r->rows + r->begin * stride, stride))
        r->begin++;
    while (r->begin < r->end && mc_png_is_zero(r->rows + (r->end - 1) * stride, stride))
        r->end--;
    if (r->begin >= r->end)
        return true;
    uint32_t begin, end, skipped = r->begin;
    uint8_t *rows = r->rows + skipped * stride;
    if (skipped > 0 && step == 4 ? !mc_png_unfilter_window(rows, r->row_size, r->end - skipped, &begin, &end)
                                 : !mc_png_unfilter(rows, r->row_size, r->end - skipped, step, &begin, &end))
        return false;
    r->begin = skipped + begin;
    r->end = skipped + end;
    return true;
}

/* Fills r->rows of a usual form; the caller releases them. */
static mc_error *
read_png_raster_rows(raster *r, apr_pool_t *pool)
{
    const mc_png_header *header = &r->header;
    int step = header->color == MC_PNG_RGBA ? 4 : header->color == MC_PNG_RGB ? 3 : 1;
    r->row_size = header->color == MC_PNG_PALETTE ? ((size_t)header->width * (size_t)header->depth + 7) / 8
                                                  : (size_t)header->width * (size_t)step;
    MC_TRY(inflate_rows(r, pool));
    if (unfilter_png_rows(r, step))
        return MC_OK;
    mc_scratch_release(r->rows);
    r->rows = NULL;
    return broken_png_error(pool, "an unknown filter");
}

mc_error *
mc_png_decode(mc_pixels **pixels, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    raster r;
    MC_TRY(read_chunks(&r, data, size, pool));
    if (!is_usual_png(&r.header, &r.found)) {
        /* libpng inflates row by row, but allocates the result first. */
        size_t least = ((size_t)r.header.width * (size_t)r.header.depth + 7) / 8 * r.header.height;
        if (least / 1032 > r.found.total)
            return broken_png_error(pool, "too little image data");
        return mc_png_decode_any(pixels, &r.header, data, size, pool);
    }
    MC_TRY(read_png_raster_rows(&r, pool));
    mc_error *error = mc_pixels_create(pixels, (int)r.header.width, (int)r.header.height, false, pool);
    if (error == MC_OK)
        convert_png_raster(*pixels, &r);
    mc_scratch_release(r.rows);
    return error;
}

/* The box of what shows: only rows that hold anything are looked at. */
static mc_box
png_raster_box(const raster *r)
{
    if (r->begin >= r->end)
        return (mc_box){ .opacity = MC_EMPTY };
    mc_pixels part = { .width = (int)r->header.width,
                       .height = (int)(r->end - r->begin),
                       .stride = r->row_size + 1,
                       .data = r->rows + r->begin * (r->row_size + 1) + 1 };
    mc_box box = mc_pixels_box(&part);
    if (box.width > 0)
        box.top += (int)r->begin;
    return box;
}

static void
convert_box(uint8_t *out, const mc_box *box, const raster *r)
{
    uint8_t all, any;
    for (int y = 0; y < box->height; y++)
        mc_png_premultiply(out + (size_t)y * (size_t)box->width * 4,
                           raster_row(r, (uint32_t)(box->top + y)) + (size_t)box->left * 4, (uint32_t)box->width, &all,
                           &any);
}

mc_error *
mc_png_decode_box(bool *done, mc_box_image *image, mc_box_room *room, void *baton, const uint8_t *data, size_t size,
                  apr_pool_t *pool)
{
    raster r;
    *done = false;
    MC_TRY(read_chunks(&r, data, size, pool));
    if (!is_usual_png(&r.header, &r.found) || r.header.color != MC_PNG_RGBA)
        return MC_OK;
    MC_TRY(read_png_raster_rows(&r, pool));
    *image = (mc_box_image){ (int)r.header.width, (int)r.header.height, png_raster_box(&r) };
    uint8_t *out = image->box.width == 0 ? NULL : room(baton, image);
    if (out != NULL)
        convert_box(out, &image->box, &r);
    mc_scratch_release(r.rows);
    *done = true;
    return image->box.width > 0 && out == NULL
               ? mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image's pixels")
               : MC_OK;
}
