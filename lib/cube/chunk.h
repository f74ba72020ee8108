/*
 * How a chunk is stored: the samples of its dates one behind the other (`data`), and which of its pixels are known
 * (`cover`).
 */
#ifndef MC_CUBE_CHUNK_H
#define MC_CUBE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapcache/cube.h"

/* The pixels of chunk x, y. */
static inline mc_cube_window
mc_chunk_window(const mc_cube_shape *shape, int x, int y)
{
    mc_cube_window w = { x * shape->chunk_width, y * shape->chunk_height, (x + 1) * shape->chunk_width,
                         (y + 1) * shape->chunk_height };
    if (w.x1 > shape->width)
        w.x1 = shape->width;
    if (w.y1 > shape->height)
        w.y1 = shape->height;
    return w;
}

static inline size_t
mc_cube_window_pixels(const mc_cube_window *window)
{
    return (size_t)(window->x1 - window->x0) * (size_t)(window->y1 - window->y0);
}

/* The chunks that a window of pixels touches. */
static inline mc_cube_window
mc_cube_window_chunks(const mc_cube_shape *shape, const mc_cube_window *window)
{
    return (mc_cube_window){ window->x0 / shape->chunk_width, window->y0 / shape->chunk_height,
                             (window->x1 - 1) / shape->chunk_width + 1, (window->y1 - 1) / shape->chunk_height + 1 };
}

/* Bytes of a mask of so many pixels: one bit each, the lowest bit of a byte first. */
static inline size_t
mc_mask_size(size_t pixels)
{
    return (pixels + 7) / 8;
}

/* The pixels that lie in both; x0 >= x1 or y0 >= y1: none. */
static inline mc_cube_window
mc_cube_window_intersection(const mc_cube_window *a, const mc_cube_window *b)
{
    return (mc_cube_window){ a->x0 > b->x0 ? a->x0 : b->x0, a->y0 > b->y0 ? a->y0 : b->y0,
                             a->x1 < b->x1 ? a->x1 : b->x1, a->y1 < b->y1 ? a->y1 : b->y1 };
}

/* How many bits of a mask are set. */
static inline size_t
mc_mask_count(const uint8_t *mask, size_t pixels)
{
    size_t set = 0;
    for (size_t i = 0; i < mc_mask_size(pixels); i++)
        set += (size_t)__builtin_popcount(mask[i]);
    return set;
}

typedef enum mc_cover { MC_COVER_NONE, MC_COVER_ALL, MC_COVER_SOME } mc_cover;

/*
 * `cover` as stored: the number of dates (two bytes, big-endian), a byte (mc_cover) for each of them, and, in the same
 * order, a mask for each that is MC_COVER_SOME. Nothing at all (size 0) where all pixels of all dates are known.
 */

/* What a mask with so many bits says. */
static inline mc_cover
mc_cover_of(size_t set, size_t pixels)
{
    return set == 0 ? MC_COVER_NONE : set == pixels ? MC_COVER_ALL : MC_COVER_SOME;
}

/* The most bytes that it takes. */
size_t mc_cover_size(int dates, size_t pixels);

/* Writes it and returns its size. `covers` of each date, masks[i] where covers[i] is MC_COVER_SOME. */
size_t mc_cover_write(uint8_t *out, const mc_cover *covers, const uint8_t *const *masks, int dates, size_t pixels);

/* Of one date; those behind the last that it speaks of have no pixels. False: it is no such thing. */
bool mc_cover_read(mc_cover *cover, const uint8_t **mask, const void *stored, size_t size, int slot, size_t pixels);

#endif
