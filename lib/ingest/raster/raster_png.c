/*
 * PNG images. Those of moderate size are decoded in one piece, which is faster; larger ones row by row through libpng,
 * in constant memory, but for interlaced ones.
 */
#include <string.h>

#include "image/codec.h"
#include "image/png/libpng.h"
#include "image/png/png.h"
#include "ingest/raster/raster.h"
#include "memory/scratch.h"

#define WHOLE_PIXELS ((int64_t)1 << 24)
#define WHOLE_BYTES ((int64_t)1 << 28)

typedef struct png_state {
    mc_libpng libpng;
    bool begun;
    bool interlaced;
    mc_pixels *all; /* of an interlaced image, once it is read */
    FILE *file;
} png_state;

static void
read_raster_png_bytes(png_structp png, png_bytep out, size_t size)
{
    png_state *state = png_get_io_ptr(png);
    if (fread(out, 1, size, state->file) != size)
        png_error(png, "it ends too early");
}

/* False after a long jump. */
static bool
read_raster_png_head(png_state *state)
{
    if (setjmp(png_jmpbuf(state->libpng.png)) != 0)
        return false;
    png_set_read_fn(state->libpng.png, state, read_raster_png_bytes);
    mc_libpng_read_head(&state->libpng, mc_raster_side_max);
    return true;
}

/* False after a long jump. */
static bool
begin_raster_png_rows(png_state *state, size_t row_size)
{
    if (setjmp(png_jmpbuf(state->libpng.png)) != 0)
        return false;
    mc_libpng_expand(&state->libpng, row_size);
    state->begun = true;
    return true;
}

static mc_error *
raster_png_error(const png_state *state, apr_pool_t *pool)
{
    return mc_raster_broken(pool, "not a usable PNG image: %s", mc_libpng_reason(&state->libpng));
}

/* Deflate cannot shrink to less than 1/1032: a claim beyond that is a lie. */
static mc_error *
check_claim(const mc_raster *raster, int depth, apr_pool_t *pool)
{
    static const int samples[] = { 1, 0, 3, 1, 2, 0, 4 };
    const png_state *state = raster->state;
    int color = png_get_color_type(state->libpng.png, state->libpng.info);
    int64_t bits = (int64_t)raster->info.width * depth * samples[color];
    if ((bits + 7) / 8 * raster->info.height / 1032 > raster->file_size)
        return mc_raster_broken(pool, "it claims %d x %d pixels, which its %.0f bytes cannot hold", raster->info.width,
                                raster->info.height, (double)raster->file_size);
    return MC_OK;
}

static mc_error *
png_open(mc_raster *raster, apr_pool_t *pool)
{
    png_state *state = raster->state = apr_pcalloc(raster->pool, sizeof(*state));
    state->file = raster->file;
    if (!mc_libpng_create(&state->libpng) || !read_raster_png_head(state))
        return raster_png_error(state, pool);
    png_uint_32 width = png_get_image_width(state->libpng.png, state->libpng.info);
    png_uint_32 height = png_get_image_height(state->libpng.png, state->libpng.info);
    MC_TRY(mc_raster_check_size(width, height, pool));
    raster->info.width = (int)width;
    raster->info.height = (int)height;
    raster->info.bands = png_get_channels(state->libpng.png, state->libpng.info);
    state->interlaced = png_get_interlace_type(state->libpng.png, state->libpng.info) != PNG_INTERLACE_NONE;
    int color = png_get_color_type(state->libpng.png, state->libpng.info);
    raster->info.opaque = (color & PNG_COLOR_MASK_ALPHA) == 0 &&
                          !png_get_valid(state->libpng.png, state->libpng.info, PNG_INFO_tRNS) &&
                          !raster->options.has_no_data;
    return check_claim(raster, png_get_bit_depth(state->libpng.png, state->libpng.info), pool);
}

/* All of it, from the beginning of the file. */
static mc_error *
decode_raster_png(mc_pixels **pixels, mc_raster *raster, apr_pool_t *pool)
{
    size_t size = (size_t)raster->file_size;
    uint8_t *data = mc_scratch_acquire(size);
    if (data == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for its %.0f bytes", (double)raster->file_size);
    rewind(raster->file);
    size_t read = fread(data, 1, size, raster->file);
    mc_error *error = mc_png_decode(pixels, data, read, pool);
    mc_scratch_release(data);
    if (error != MC_OK || ((*pixels)->width == raster->info.width && (*pixels)->height == raster->info.height))
        return error;
    mc_pixels_unref(*pixels);
    *pixels = NULL;
    return mc_raster_broken(pool, "it has changed since its header was read");
}

static mc_error *
png_whole(mc_pixels **pixels, mc_raster *raster, apr_pool_t *pool)
{
    const mc_raster_info *info = &raster->info;
    bool moderate = info->width <= mc_pixels_max && info->height <= mc_pixels_max &&
                    (int64_t)info->width * info->height <= WHOLE_PIXELS && raster->file_size <= WHOLE_BYTES;
    return moderate ? decode_raster_png(pixels, raster, pool) : MC_OK;
}

static mc_error *
interlaced_rows(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool)
{
    png_state *state = raster->state;
    if (state->all == NULL) {
        if (raster->file_size > WHOLE_BYTES)
            return mc_error_create(pool, MC_ERR_LIMIT, "it is interlaced and too large for that: store it without");
        MC_TRY(decode_raster_png(&state->all, raster, pool));
    }
    for (int y = 0; y < count; y++)
        memcpy(bgra + (size_t)y * stride, state->all->data + (size_t)(raster->row + y) * state->all->stride,
               (size_t)raster->info.width * 4);
    return MC_OK;
}

/* False after a long jump. */
static bool
read_raster_png_rows(png_state *state, uint8_t *rgba, size_t stride, int count, bool last)
{
    if (setjmp(png_jmpbuf(state->libpng.png)) != 0)
        return false;
    for (int y = 0; y < count; y++)
        png_read_row(state->libpng.png, rgba + (size_t)y * stride, NULL);
    if (last)
        png_read_end(state->libpng.png, NULL);
    return true;
}

static mc_error *
png_rows(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool)
{
    png_state *state = raster->state;
    if (state->interlaced)
        return interlaced_rows(raster, bgra, stride, count, pool);
    if (!state->begun && !begin_raster_png_rows(state, (size_t)raster->info.width * 4))
        return raster_png_error(state, pool);
    if (!read_raster_png_rows(state, bgra, stride, count, raster->row + count == raster->info.height))
        return raster_png_error(state, pool);
    uint8_t all = 255, any = 0;
    for (int y = 0; y < count; y++)
        mc_png_premultiply(bgra + (size_t)y * stride, bgra + (size_t)y * stride, (uint32_t)raster->info.width, &all,
                           &any);
    return MC_OK;
}

static void
png_close(mc_raster *raster)
{
    png_state *state = raster->state;
    if (state == NULL)
        return;
    mc_libpng_destroy(&state->libpng);
    mc_pixels_unref(state->all);
    state->all = NULL;
}

const mc_raster_ops mc_raster_png = { "PNG", png_open, png_rows, png_whole, png_close };
