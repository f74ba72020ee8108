/* From an image file to the samples of chunks. */
#include <stdlib.h>
#include <string.h>

#include "ingest/cube/cube_plan.h"

/* Pixels up to which an image is decoded all at once, which is faster; of a larger one so many are held at a time, or
 * one row. */
#define WHOLE ((int64_t)4 << 20)

/* What counts as there where the cube has no alpha. */
enum { MOSTLY = 128 };

typedef struct cube_decode_state {
    mc_cube_image *image;
    const mc_cube_shape *shape;
    mc_spool *spool;
    bool opaque;
    size_t mask_step; /* bytes of the mask of a chunk that is not cut off */
    uint8_t *masks;   /* of a row of chunks, with a step between */
    uint8_t *buffer;  /* samples of a chunk's rows, where the spool is a file */
    apr_pool_t *pool;
} cube_decode_state;

/* Rows of pixels that are there; of the cube, and in memory. */
typedef struct strip {
    int first, end;      /* rows of the cube */
    const uint8_t *bgra; /* of row `first`, at the image's first column */
    size_t stride;
} strip;

static inline uint8_t
unpremultiply_sample(uint8_t value, uint8_t alpha)
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
            rgb[i] = unpremultiply_sample(rgb[i], bgra[3]);
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

/* The strip's part of chunk x, y: its samples to the spool, its bits into the mask. */
static mc_error *
cut_part(const cube_decode_state *d, const strip *rows, int x, int y, bool whole, uint8_t *mask)
{
    const mc_cube_image *image = d->image;
    size_t bands = (size_t)d->shape->bands;
    mc_cube_window chunk = mc_chunk_window(d->shape, x, y), part = mc_cube_window_intersection(&chunk, &image->window);
    size_t width = (size_t)(chunk.x1 - chunk.x0), above = (size_t)(rows->first - chunk.y0) * width;
    size_t offset = mc_cube_image_offset(image, d->shape, x, y) + above * bands;
    uint8_t *out = mc_spool_room(d->spool, offset, d->buffer);
    for (int row = rows->first; row < rows->end; row++) {
        const uint8_t *from =
            rows->bgra + (size_t)(row - rows->first) * rows->stride + (size_t)(part.x0 - image->left) * 4;
        size_t at = (size_t)(row - rows->first) * width + (size_t)(part.x0 - chunk.x0);
        if (whole)
            convert_opaque(out + at * bands, from, part.x1 - part.x0, (int)bands);
        else
            convert_some(out + at * bands, mask, above + at, from, part.x1 - part.x0, (int)bands);
    }
    return mc_spool_keep(d->spool, offset, out, (size_t)(rows->end - rows->first) * width * bands, d->pool);
}

/* The rows of the image in chunk row y, counted in the cube. */
static void
rows_in(int *first, int *end, const cube_decode_state *d, int y)
{
    mc_cube_window chunk = mc_chunk_window(d->shape, d->image->chunks.x0, y);
    chunk = mc_cube_window_intersection(&chunk, &d->image->window);
    *first = chunk.y0;
    *end = chunk.y1;
}

/* All chunks of row y, as far as the strip has their rows: one strip after the other, from the top. */
static mc_error *
cut_strip(const cube_decode_state *d, int y, const strip *rows)
{
    mc_cube_image *image = d->image;
    int first, end;
    rows_in(&first, &end, d, y);
    for (int x = image->chunks.x0; x < image->chunks.x1; x++) {
        mc_cube_window chunk = mc_chunk_window(d->shape, x, y),
                       part = mc_cube_window_intersection(&chunk, &image->window);
        size_t index = mc_cube_image_chunk(image, x, y), pixels = mc_cube_window_pixels(&chunk);
        uint8_t *mask = d->masks + (size_t)(x - image->chunks.x0) * d->mask_step;
        bool whole = d->opaque && memcmp(&chunk, &part, sizeof(chunk)) == 0;
        if (rows->first == first && !whole)
            memset(mask, 0, mc_mask_size(pixels));
        MC_TRY(cut_part(d, rows, x, y, whole, mask));
        if (rows->end < end)
            continue;
        mc_cover cover = whole ? MC_COVER_ALL : mc_cover_of(mc_mask_count(mask, pixels), pixels);
        image->covers[index] = (uint8_t)cover;
        if (cover == MC_COVER_SOME)
            MC_TRY(mc_spool_keep(d->spool,
                                 mc_cube_image_offset(image, d->shape, x, y) + pixels * (size_t)d->shape->bands, mask,
                                 mc_mask_size(pixels), d->pool));
    }
    return MC_OK;
}

static mc_error *
decode_whole(const cube_decode_state *d, mc_raster *raster)
{
    mc_pixels *pixels;
    mc_error *error = MC_OK;
    MC_TRY(mc_raster_read(&pixels, raster, d->pool));
    for (int y = d->image->chunks.y0; y < d->image->chunks.y1 && error == MC_OK; y++) {
        strip rows = { .stride = pixels->stride };
        rows_in(&rows.first, &rows.end, d, y);
        rows.bgra = pixels->data + (size_t)(rows.first - d->image->top) * pixels->stride;
        error = cut_strip(d, y, &rows);
    }
    mc_pixels_unref(pixels);
    return error;
}

/* Some rows at a time. Those above and below the cube are decoded, too: what is broken there is as broken. */
static mc_error *
decode_rows(const cube_decode_state *d, mc_raster *raster)
{
    const mc_cube_image *image = d->image;
    size_t stride = (size_t)image->width * 4;
    int most = (int)(WHOLE / image->width), count;
    most = most < 1 ? 1 : most > d->shape->chunk_height ? d->shape->chunk_height : most;
    uint8_t *bgra = apr_palloc(d->pool, stride * (size_t)most);
    for (int above = image->window.y0 - image->top; above > 0; above -= count) {
        count = above < most ? above : most;
        MC_TRY(mc_raster_rows(raster, bgra, stride, count, d->pool));
    }
    for (int y = image->chunks.y0; y < image->chunks.y1; y++) {
        int end;
        strip rows = { .bgra = bgra, .stride = stride };
        for (rows_in(&rows.first, &end, d, y); rows.first < end; rows.first = rows.end) {
            rows.end = end - rows.first < most ? end : rows.first + most;
            MC_TRY(mc_raster_rows(raster, bgra, stride, rows.end - rows.first, d->pool));
            MC_TRY(cut_strip(d, y, &rows));
        }
    }
    for (int below = image->height - mc_raster_row(raster); below > 0; below -= count) {
        count = below < most ? below : most;
        MC_TRY(mc_raster_rows(raster, bgra, stride, count, d->pool));
    }
    return MC_OK;
}

static mc_error *
of_image(const mc_cube_image *image, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "%s: its size has changed since it was first looked at",
                           image->input->path);
}

/* Room for what a row of chunks needs. */
static mc_error *
prepare_cube_decoding(cube_decode_state *d, const mc_raster_info *info)
{
    const mc_cube_shape *shape = d->shape;
    mc_cube_image *image = d->image;
    size_t across = (size_t)(image->chunks.x1 - image->chunks.x0);
    size_t pixels = (size_t)shape->chunk_width * (size_t)shape->chunk_height;
    image->covers = calloc(across * (size_t)(image->chunks.y1 - image->chunks.y0), 1);
    if (image->covers == NULL)
        return mc_error_create(d->pool, MC_ERR_LIMIT, "%s: its chunks are more than there is memory for",
                               image->input->path);
    d->opaque = info->opaque;
    d->mask_step = mc_mask_size(pixels);
    d->masks = apr_palloc(d->pool, across * d->mask_step);
    d->buffer = d->spool->memory != NULL ? NULL : apr_palloc(d->pool, pixels * (size_t)shape->bands);
    return MC_OK;
}

mc_error *
mc_cube_image_decode(mc_cube_image *image, const mc_cube_shape *shape, mc_spool *spool,
                     const mc_raster_options *options, apr_pool_t *pool)
{
    mc_raster *raster;
    cube_decode_state d = { .image = image, .shape = shape, .spool = spool, .pool = pool };
    MC_TRY(mc_raster_open(&raster, image->input->path, options, pool));
    const mc_raster_info *info = mc_raster_about(raster);
    if (info->width != image->width || info->height != image->height)
        return of_image(image, pool);
    MC_TRY(prepare_cube_decoding(&d, info));
    bool at_once =
        info->width <= mc_pixels_max && info->height <= mc_pixels_max && (int64_t)info->width * info->height <= WHOLE;
    mc_error *error = at_once ? decode_whole(&d, raster) : decode_rows(&d, raster);
    mc_raster_close(raster);
    return error;
}

void
mc_cube_image_forget(mc_cube_image *image)
{
    free(image->covers);
    image->covers = NULL;
}
