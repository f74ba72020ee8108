/* From the chunks of a level to the images of the next coarser one. */
#include "ingest/cube/cube_overview.h"

#include <apr_strings.h>
#include <string.h>

static mc_cube_image
halve_cube_image(const mc_cube_image *fine, apr_pool_t *pool)
{
    const mc_cube_window *c = &fine->chunks;
    mc_cube_image image = { .input = fine->input,
                            .chunks = { c->x0 / 2, c->y0 / 2, (c->x1 - 1) / 2 + 1, (c->y1 - 1) / 2 + 1 } };
    image.covers = apr_pcalloc(pool, mc_cube_window_pixels(&image.chunks));
    return image;
}

mc_error *
mc_cube_overview_begin(mc_cube_overview *overview, const mc_cube_batch *batch, const mc_cube_shape *fine,
                       const mc_cube_shape *shape, size_t room, const char *scratch, apr_pool_t *pool)
{
    mc_cube_batch *own = &overview->batch;
    *overview = (mc_cube_overview){ .fine = fine, .shape = shape, .batch = *batch, .spool = { NULL, 0, -1 } };
    own->stacks = apr_pmemdup(pool, batch->stacks, sizeof(*own->stacks) * (size_t)batch->count);
    for (int i = 0; i < own->count; i++) {
        mc_cube_stack *stack = &own->stacks[i];
        stack->count = stack->failed ? 0 : stack->count;
        stack->images = apr_palloc(pool, sizeof(*stack->images) * (size_t)(stack->count + 1));
        for (int j = 0; j < stack->count; j++)
            stack->images[j] = halve_cube_image(&batch->stacks[i].images[j], pool);
    }
    mc_cube_batch_arrange(own, shape);
    overview->buffer =
        apr_palloc(pool, mc_block_size((size_t)shape->chunk_width * (size_t)shape->chunk_height, shape->bands));
    return own->bytes == 0 ? MC_OK
                           : mc_spool_open(&overview->spool, own->bytes, own->bytes <= room ? NULL : scratch, pool);
}

void
mc_cube_overview_end(mc_cube_overview *overview)
{
    if (overview->shape != NULL)
        mc_spool_close(&overview->spool);
}

/* Pixels of a chunk. */
typedef struct fine_chunk {
    const uint8_t *samples, *mask;
    int width, height, bands;
} fine_chunk;

/* Those at x, y and beside, below. False: nothing is known there. */
static bool
mean_of_four(uint8_t *out, const fine_chunk *c, int x, int y)
{
    unsigned count = 0, known = 0, weight = 0, sums[4] = { 0 };
    int colors = c->bands == 4 ? 3 : c->bands;
    for (int row = y; row < y + 2 && row < c->height; row++)
        for (int column = x; column < x + 2 && column < c->width; column++) {
            size_t at = (size_t)row * (size_t)c->width + (size_t)column;
            const uint8_t *sample = c->samples + at * (size_t)c->bands;
            count++;
            if (c->mask != NULL && !(c->mask[at / 8] >> at % 8 & 1))
                continue;
            unsigned one = c->bands == 4 ? sample[3] : 1;
            known++;
            weight += one;
            for (int band = 0; band < colors; band++)
                sums[band] += one * sample[band];
        }
    if (known == 0 || (c->bands != 4 && 2 * known < count))
        return false;
    for (int band = 0; band < colors; band++)
        out[band] = (uint8_t)(weight == 0 ? 0 : (sums[band] + weight / 2) / weight);
    if (c->bands == 4)
        out[3] = (uint8_t)((weight + count / 2) / count);
    return true;
}

/* A row of means where all is known and nothing is transparent. */
static void
mean_of_rows(uint8_t *out, const fine_chunk *c, int y)
{
    size_t bands = (size_t)c->bands;
    const uint8_t *upper = c->samples + (size_t)y * (size_t)c->width * bands, *lower = upper + (size_t)c->width * bands;
    for (int x = 0; x < c->width / 2; x++, upper += bands, lower += bands)
        for (size_t band = 0; band < bands; band++, upper++, lower++)
            *out++ = (uint8_t)((upper[0] + upper[bands] + lower[0] + lower[bands] + 2) >> 2);
}

/* The chunk into a block that begins at column and row (in pixels of the coarser level) x0, y0 of it. */
static void
halve_fine_chunk(uint8_t *block, uint8_t *mask, size_t width, int x0, int y0, const fine_chunk *c)
{
    for (int y = 0; y < c->height; y += 2) {
        size_t at = (size_t)(y0 + y / 2) * width + (size_t)x0;
        bool plain = c->mask == NULL && c->bands != 4 && y + 1 < c->height;
        if (plain)
            mean_of_rows(block + at * (size_t)c->bands, c, y);
        for (int x = 0; x < c->width; x += 2, at++)
            if ((plain && x + 1 < c->width) || mean_of_four(block + at * (size_t)c->bands, c, x, y))
                mask[at / 8] = (uint8_t)(mask[at / 8] | 1u << at % 8);
    }
}

mc_error *
mc_cube_overview_add(mc_cube_overview *o, int stack, int number, int x, int y, const uint8_t *samples,
                     const uint8_t *fine_mask, apr_pool_t *pool)
{
    mc_cube_image *image = &o->batch.stacks[stack].images[number];
    mc_cube_window below = mc_chunk_window(o->fine, x, y), own = mc_chunk_window(o->shape, x / 2, y / 2);
    const fine_chunk chunk = { samples, fine_mask, below.x1 - below.x0, below.y1 - below.y0, o->fine->bands };
    size_t pixels = mc_cube_window_pixels(&own), size = mc_block_size(pixels, o->shape->bands);
    size_t offset = mc_cube_image_offset(image, o->shape, x / 2, y / 2);
    const uint8_t *found;
    uint8_t *block = mc_spool_room(&o->spool, offset, o->buffer), *mask = block + pixels * (size_t)o->shape->bands;
    MC_TRY(mc_spool_look(&found, &o->spool, offset, size, o->buffer, pool));
    halve_fine_chunk(block, mask, (size_t)(own.x1 - own.x0), x % 2 * o->fine->chunk_width / 2,
                     y % 2 * o->fine->chunk_height / 2, &chunk);
    image->covers[mc_cube_image_chunk(image, x / 2, y / 2)] = (uint8_t)mc_cover_of(mc_mask_count(mask, pixels), pixels);
    return mc_spool_keep(&o->spool, offset, block, size, pool);
}
