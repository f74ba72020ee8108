/*
 * PNG in its rarer forms (grey, 16 bit, interlaced, transparent colour), through libpng. Its long jumps stay inside
 * this file: what must be released is reached through one struct that outlives the jump.
 */
#include <string.h>

#include "image/codec.h"
#include "image/png/libpng.h"
#include "image/png/png.h"

typedef struct png_libpng_reader {
    mc_libpng libpng;
    const uint8_t *at;
    size_t left;
    mc_pixels *pixels;
    png_bytep *rows;
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

/* False after a long jump. */
static bool
read_libpng_image(png_libpng_reader *r)
{
    png_structp png = r->libpng.png;
    if (setjmp(png_jmpbuf(png)) != 0)
        return false;
    png_set_read_fn(png, r, read_png_memory);
    mc_libpng_read_head(&r->libpng, (png_uint_32)mc_pixels_max);
    mc_libpng_expand(&r->libpng, r->pixels->stride);
    png_read_image(png, r->rows);
    png_read_end(png, NULL);
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
    r.rows = apr_palloc(pool, sizeof(png_bytep) * header->height);
    for (uint32_t y = 0; y < header->height; y++)
        r.rows[y] = r.pixels->data + y * r.pixels->stride;
    bool read = mc_libpng_create(&r.libpng) && read_libpng_image(&r);
    mc_libpng_destroy(&r.libpng);
    if (!read) {
        mc_pixels_unref(r.pixels);
        return mc_error_create(pool, MC_ERR_CORRUPT, "not a usable PNG image: %s", mc_libpng_reason(&r.libpng));
    }
    premultiply_png_pixels(r.pixels);
    *pixels = r.pixels;
    return MC_OK;
}
