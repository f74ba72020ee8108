/* From an image file to the samples of chunks. */
#include <stdlib.h>
#include <string.h>

#include "ingest/cube_plan.h"

/* Pixels up to which an image is decoded all at once, which is faster. */
#define WHOLE ((int64_t)4 << 20)

/* What counts as there where the cube has no alpha. */
enum { MOSTLY = 128 };

typedef struct decoding {
    mc_cube_image *image;
    const mc_cube_shape *shape;
    mc_spool *spool;
    bool opaque;
    uint8_t *buffer; /* a row of chunks, where the spool is a file */
    apr_pool_t *pool;
} decoding;

static inline uint8_t
straight(uint8_t value, uint8_t alpha)
{
    unsigned plain = (value * 255u + alpha / 2u) / alpha;
    return (uint8_t)(plain > 255 ? 255 : plain);
}

/* One pixel, with an alpha above 0. */
static inline void
convert_one(uint8_t *out, const uint8_t *bgra, int bands)
{
    uint8_t rgb[3] = { bgra[2], bgra[1], bgra[0] };
    if (bgra[3] != 255)
        for (int i = 0; i < 3; i++)
            rgb[i] = straight(rgb[i], bgra[3]);
    if (bands == 1) { /* luma of ITU-R BT.601; equal values stay what they are */
        out[0] = (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8);
        return;
    }
    memcpy(out, rgb, 3);
    if (bands == 4)
        out[3] = bgra[3];
}

static void
convert_opaque(uint8_t *out, const uint8_t *bgra, int count, int bands)
{
    if (bands == 3) {
        for (int i = 0; i < count; i++, out += 3, bgra += 4) {
            out[0] = bgra[2];
            out[1] = bgra[1];
            out[2] = bgra[0];
        }
        return;
    }
    for (int i = 0; i < count; i++, out += bands, bgra += 4)
        convert_one(out, bgra, bands);
}

/* Bits of the mask are set where there is something. */
static void
convert_some(uint8_t *out, uint8_t *mask, size_t bit, const uint8_t *bgra, int count, int bands)
{
    int least = bands == 4 ? 1 : MOSTLY;
    for (int i = 0; i < count; i++, bit++) {
        if (bgra[4 * i + 3] < least)
            continue;
        convert_one(out + (size_t)(i * bands), bgra + 4 * i, bands);
        mask[bit / 8] = (uint8_t)(mask[bit / 8] | 1u << bit % 8);
    }
}

/* ALL, NONE or SOME by the mask; only the last keeps it. */
static void
settle(mc_cube_image *image, size_t index, size_t pixels)
{
    uint8_t *mask = image->masks[index];
    size_t set = 0;
    for (size_t i = 0; i < mc_mask_size(pixels); i++)
        set += (size_t)__builtin_popcount(mask[i]);
    image->covers[index] = set == 0 ? MC_COVER_NONE : set == pixels ? MC_COVER_ALL : MC_COVER_SOME;
    if (image->covers[index] != MC_COVER_SOME) {
        free(mask);
        image->masks[index] = NULL;
    }
}

/* Rows y0 to y1 of chunk x, y out of `rows`, which begin with row y0 of the cube at the image's first column. */
static void
cut_chunk(const decoding *d, uint8_t *out, int x, int y, const uint8_t *rows, size_t stride)
{
    mc_cube_image *image = d->image;
    int bands = d->shape->bands;
    mc_cube_window chunk = mc_chunk_window(d->shape, x, y), part = chunk;
    part.x0 = part.x0 < image->window.x0 ? image->window.x0 : part.x0;
    part.y0 = part.y0 < image->window.y0 ? image->window.y0 : part.y0;
    part.x1 = part.x1 > image->window.x1 ? image->window.x1 : part.x1;
    part.y1 = part.y1 > image->window.y1 ? image->window.y1 : part.y1;
    size_t index = mc_cube_image_chunk(image, x, y), width = (size_t)(chunk.x1 - chunk.x0);
    size_t pixels = mc_window_pixels(&chunk);
    bool whole = d->opaque && memcmp(&chunk, &part, sizeof(chunk)) == 0;
    image->covers[index] = MC_COVER_ALL;
    if (!whole) {
        memset(out, 0, pixels * (size_t)bands);
        image->masks[index] = calloc(1, mc_mask_size(pixels));
        MC_ASSERT(image->masks[index] != NULL);
    }
    for (int row = part.y0; row < part.y1; row++) {
        const uint8_t *from = rows + (size_t)(row - part.y0) * stride + (size_t)(part.x0 - image->left) * 4;
        size_t at = (size_t)(row - chunk.y0) * width + (size_t)(part.x0 - chunk.x0);
        if (whole)
            convert_opaque(out + at * (size_t)bands, from, part.x1 - part.x0, bands);
        else
            convert_some(out + at * (size_t)bands, image->masks[index], at, from, part.x1 - part.x0, bands);
    }
    if (!whole)
        settle(image, index, pixels);
}

/* All chunks of row y; `rows` as above. */
static mc_error *
cut_row(const decoding *d, int y, const uint8_t *rows, size_t stride)
{
    const mc_cube_image *image = d->image;
    size_t offset = mc_cube_image_offset(image, d->shape, image->chunks.x0, y), end = offset;
    uint8_t *out = mc_spool_room(d->spool, offset, d->buffer);
    for (int x = image->chunks.x0; x < image->chunks.x1; x++) {
        mc_cube_window chunk = mc_chunk_window(d->shape, x, y);
        cut_chunk(d, out + (end - offset), x, y, rows, stride);
        end += mc_window_pixels(&chunk) * (size_t)d->shape->bands;
    }
    return mc_spool_keep(d->spool, offset, out, end - offset, d->pool);
}

/* The rows of the image in chunk row y, counted in the cube. */
static void
rows_in(int *first, int *end, const decoding *d, int y)
{
    mc_cube_window chunk = mc_chunk_window(d->shape, 0, y);
    *first = chunk.y0 < d->image->window.y0 ? d->image->window.y0 : chunk.y0;
    *end = chunk.y1 > d->image->window.y1 ? d->image->window.y1 : chunk.y1;
}

static mc_error *
decode_whole(const decoding *d, mc_raster *raster)
{
    mc_pixels *pixels;
    mc_error *error = MC_OK;
    MC_TRY(mc_raster_read(&pixels, raster, d->pool));
    for (int y = d->image->chunks.y0; y < d->image->chunks.y1 && error == MC_OK; y++) {
        int first, end;
        rows_in(&first, &end, d, y);
        error = cut_row(d, y, pixels->data + (size_t)(first - d->image->top) * pixels->stride, pixels->stride);
    }
    mc_pixels_unref(pixels);
    return error;
}

/* A row of chunks at a time. Rows above and below the cube are decoded, too: what is broken there is as broken. */
static mc_error *
decode_rows(const decoding *d, mc_raster *raster)
{
    const mc_cube_image *image = d->image;
    size_t stride = (size_t)image->width * 4;
    uint8_t *rows = apr_palloc(d->pool, stride * (size_t)d->shape->chunk_height);
    for (int above = image->window.y0 - image->top, count; above > 0; above -= count) {
        count = above < d->shape->chunk_height ? above : d->shape->chunk_height;
        MC_TRY(mc_raster_rows(raster, rows, stride, count, d->pool));
    }
    for (int y = image->chunks.y0; y < image->chunks.y1; y++) {
        int first, end;
        rows_in(&first, &end, d, y);
        MC_TRY(mc_raster_rows(raster, rows, stride, end - first, d->pool));
        MC_TRY(cut_row(d, y, rows, stride));
    }
    for (int below = image->height - mc_raster_row(raster), count; below > 0; below -= count) {
        count = below < d->shape->chunk_height ? below : d->shape->chunk_height;
        MC_TRY(mc_raster_rows(raster, rows, stride, count, d->pool));
    }
    return MC_OK;
}

static mc_error *
of_image(const mc_cube_image *image, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "%s: its size has changed since it was first looked at",
                           image->input->path);
}

mc_error *
mc_cube_image_decode(mc_cube_image *image, const mc_cube_shape *shape, mc_spool *spool,
                     const mc_raster_options *options, apr_pool_t *pool)
{
    mc_raster *raster;
    size_t count = (size_t)(image->chunks.x1 - image->chunks.x0) * (size_t)(image->chunks.y1 - image->chunks.y0);
    image->covers = calloc(count, 1);
    image->masks = calloc(count, sizeof(*image->masks));
    MC_ASSERT(image->covers != NULL && image->masks != NULL);
    MC_TRY(mc_raster_open(&raster, image->input->path, options, pool));
    const mc_raster_info *info = mc_raster_about(raster);
    if (info->width != image->width || info->height != image->height)
        return of_image(image, pool);
    decoding d = { .image = image, .shape = shape, .spool = spool, .opaque = info->opaque, .pool = pool };
    if (spool->memory == NULL) {
        mc_cube_window last = mc_chunk_window(shape, image->chunks.x1 - 1, 0);
        size_t across = (size_t)(last.x1 - image->chunks.x0 * shape->chunk_width);
        d.buffer = apr_palloc(pool, across * (size_t)shape->chunk_height * (size_t)shape->bands);
    }
    bool at_once =
        info->width <= mc_pixels_max && info->height <= mc_pixels_max && (int64_t)info->width * info->height <= WHOLE;
    mc_error *error = at_once ? decode_whole(&d, raster) : decode_rows(&d, raster);
    mc_raster_close(raster);
    return error;
}

void
mc_cube_image_forget(mc_cube_image *image)
{
    size_t count = (size_t)(image->chunks.x1 - image->chunks.x0) * (size_t)(image->chunks.y1 - image->chunks.y0);
    for (size_t i = 0; image->masks != NULL && i < count; i++)
        free(image->masks[i]);
    free(image->masks);
    free(image->covers);
    image->masks = NULL;
    image->covers = NULL;
}
