/*
 * PNG images. Those of moderate size are decoded in one piece, which is faster; larger ones row by row through libpng,
 * in constant memory, but for interlaced ones.
 */
#include <png.h>
#include <string.h>

#include "image/codec.h"
#include "image/png/png.h"
#include "image/scratch.h"
#include "ingest/raster/raster.h"

#define WHOLE_PIXELS ((int64_t)1 << 24)
#define WHOLE_BYTES ((int64_t)1 << 28)

typedef struct png_state {
    png_structp png;
    png_infop info;
    bool begun;
    bool interlaced;
    mc_pixels *all; /* of an interlaced image, once it is read */
    FILE *file;
    char message[120];
} png_state;

static void
read_raster_png_bytes(png_structp png, png_bytep out, size_t size)
{
    png_state *state = png_get_io_ptr(png);
    if (fread(out, 1, size, state->file) != size)
        png_error(png, "it ends too early");
}

static _Noreturn void
jump_on_raster_png_error(png_structp png, png_const_charp message)
{
    png_state *state = png_get_error_ptr(png);
    strncpy(state->message, message, sizeof(state->message) - 1);
    png_longjmp(png, 1);
}

static void
ignore_raster_png_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

/* False after a long jump; then state->message says why. */
static bool
read_raster_png_head(png_state *state)
{
    if (setjmp(png_jmpbuf(state->png)) != 0)
        return false;
    png_set_user_limits(state->png, mc_raster_side_max, mc_raster_side_max);
    png_set_chunk_malloc_max(state->png, 1 << 20);
    png_set_keep_unknown_chunks(state->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_benign_errors(state->png, 0);
    png_set_check_for_invalid_index(state->png, -1);
    png_set_read_fn(state->png, state, read_raster_png_bytes);
    png_read_info(state->png, state->info);
    return true;
}

/* Makes libpng expand any form to rows of 8-bit R, G, B, A. */
static bool
begin_raster_png_rows(png_state *state, size_t row_size)
{
    if (setjmp(png_jmpbuf(state->png)) != 0)
        return false;
    png_byte color = png_get_color_type(state->png, state->info);
    png_set_expand(state->png);
    if (png_get_bit_depth(state->png, state->info) == 16)
        png_set_scale_16(state->png);
    if (color == PNG_COLOR_TYPE_GRAY || color == PNG_COLOR_TYPE_GRAY_ALPHA)
        png_set_gray_to_rgb(state->png);
    png_set_add_alpha(state->png, 255, PNG_FILLER_AFTER);
    png_set_interlace_handling(state->png);
    png_read_update_info(state->png, state->info);
    if (png_get_rowbytes(state->png, state->info) != row_size)
        png_error(state->png, "an unexpected form");
    state->begun = true;
    return true;
}

static mc_error *
raster_png_error(const png_state *state, apr_pool_t *pool)
{
    return mc_raster_broken(pool, "not a usable PNG image: %s",
                            state->message[0] == '\0' ? "libpng could not start" : state->message);
}

/* Deflate cannot shrink to less than 1/1032: a claim beyond that is a lie. */
static mc_error *
check_claim(const mc_raster *raster, int depth, apr_pool_t *pool)
{
    static const int samples[] = { 1, 0, 3, 1, 2, 0, 4 };
    const png_state *state = raster->state;
    int color = png_get_color_type(state->png, state->info);
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
    state->png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, state, jump_on_raster_png_error, ignore_raster_png_warning);
    state->info = state->png == NULL ? NULL : png_create_info_struct(state->png);
    if (state->info == NULL || !read_raster_png_head(state))
        return raster_png_error(state, pool);
    png_uint_32 width = png_get_image_width(state->png, state->info);
    png_uint_32 height = png_get_image_height(state->png, state->info);
    MC_TRY(mc_raster_check_size(width, height, pool));
    raster->info.width = (int)width;
    raster->info.height = (int)height;
    raster->info.bands = png_get_channels(state->png, state->info);
    state->interlaced = png_get_interlace_type(state->png, state->info) != PNG_INTERLACE_NONE;
    int color = png_get_color_type(state->png, state->info);
    raster->info.opaque = (color & PNG_COLOR_MASK_ALPHA) == 0 &&
                          !png_get_valid(state->png, state->info, PNG_INFO_tRNS) && !raster->options.has_no_data;
    return check_claim(raster, png_get_bit_depth(state->png, state->info), pool);
}

/* All of it, from the beginning of the file. */
static mc_error *
decode_raster_png(mc_pixels **pixels, mc_raster *raster, apr_pool_t *pool)
{
    size_t size = (size_t)raster->file_size;
    uint8_t *data = mc_scratch_acquire(size);
    if (data == NULL)
        return mc_error_create(pool, MC_ERR_LIMIT, "no memory for its %.0f bytes", (double)raster->file_size);
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
    if (setjmp(png_jmpbuf(state->png)) != 0)
        return false;
    for (int y = 0; y < count; y++)
        png_read_row(state->png, rgba + (size_t)y * stride, NULL);
    if (last)
        png_read_end(state->png, NULL);
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
    png_destroy_read_struct(&state->png, &state->info, NULL);
    mc_pixels_unref(state->all);
    state->all = NULL;
}

const mc_raster_ops mc_raster_png = { "PNG", png_open, png_rows, png_whole, png_close };
