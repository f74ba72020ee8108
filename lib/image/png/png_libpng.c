/*
 * PNG in its rarer forms (grey, 16 bit, interlaced, transparent colour), through libpng. Its long jumps stay inside
 * this file: what must be released is reached through one struct that outlives the jump.
 */
#include <png.h>
#include <string.h>

#include "image/codec.h"
#include "image/png/png.h"

typedef struct png_libpng_reader {
    const uint8_t *at;
    size_t left;
    png_structp png;
    png_infop info;
    mc_pixels *pixels;
    png_bytep *rows;
    char message[120];
} png_libpng_reader;

static void
read_png_memory(png_structp png, png_bytep out, size_t size)
{
    png_libpng_reader *r = png_get_io_ptr(png);
    if (size > r->left)
        png_error(png, "it ends too early");
    memcpy(out, r->at, size);
    r->at += size;
    r->left -= size;
}

static _Noreturn void
jump_on_libpng_error(png_structp png, png_const_charp message)
{
    png_libpng_reader *r = png_get_error_ptr(png);
    strncpy(r->message, message, sizeof(r->message) - 1);
    png_longjmp(png, 1);
}

static void
ignore_libpng_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* Makes libpng expand any form to rows of 8-bit R, G, B, A. */
static void
set_transformations(png_libpng_reader *r, const mc_png_header *header)
{
    png_set_expand(r->png);
    if (header->depth == 16)
        png_set_scale_16(r->png);
    if (header->color == MC_PNG_GRAY || header->color == MC_PNG_GRAY_ALPHA)
        png_set_gray_to_rgb(r->png);
    png_set_add_alpha(r->png, 255, PNG_FILLER_AFTER);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

/* False after a long jump; then r->message says why. */
static bool
read_libpng_image(png_libpng_reader *r, const mc_png_header *header)
{
    if (setjmp(png_jmpbuf(r->png)) != 0)
        return false;
    png_set_user_limits(r->png, (png_uint_32)mc_pixels_max, (png_uint_32)mc_pixels_max);
    png_set_chunk_malloc_max(r->png, 1 << 20);
    /* Nothing but pixels matters here: whatever else a file carries is neither kept nor inflated. */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_benign_errors(r->png, 0);
    png_set_check_for_invalid_index(r->png, -1);
    png_set_read_fn(r->png, r, read_png_memory);
    png_read_info(r->png, r->info);
    set_transformations(r, header);
    if (png_get_rowbytes(r->png, r->info) != r->pixels->stride)
        png_error(r->png, "an unexpected form");
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    return true;
}

static void
premultiply_png_pixels(mc_pixels *pixels)
{
    uint8_t all = 255, any = 0;
    for (int y = 0; y < pixels->height; y++) {
        uint8_t *row = pixels->data + (size_t)y * pixels->stride;
        mc_png_premultiply(row, row, (uint32_t)pixels->width, &all, &any);
    }
    pixels->opacity = mc_png_opacity(all, any);
}

mc_error *
mc_png_decode_any(mc_pixels **pixels, const mc_png_header *header, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    png_libpng_reader r = { .at = data, .left = size };
    MC_TRY(mc_pixels_create(&r.pixels, (int)header->width, (int)header->height, false, pool));
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, jump_on_libpng_error, ignore_libpng_warning);
    r.info = r.png == NULL ? NULL : png_create_info_struct(r.png);
    r.rows = apr_palloc(pool, sizeof(png_bytep) * header->height);
    for (uint32_t y = 0; y < header->height; y++)
        r.rows[y] = r.pixels->data + y * r.pixels->stride;
    bool read = r.info != NULL && read_libpng_image(&r, header);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    if (!read) {
        mc_pixels_unref(r.pixels);
        return mc_error_create(pool, MC_ERR_CORRUPT, "not a usable PNG image: %s",
                               r.message[0] == '\0' ? "libpng could not start" : r.message);
    }
    premultiply_png_pixels(r.pixels);
    *pixels = r.pixels;
    return MC_OK;
}
