/* See stroke_tile.h. The small plane stays in the processor's nearest memory; its corner is at a whole pixel near the
 * stroke. */
#include "draw/raster/stroke_tile.h"

#include <math.h>
#include <string.h>

#include "draw/raster/bands.h"
#include "draw/raster/blocks.h"
#include "draw/raster/outline_private.h"

enum { SIDE = 256 /* pixels */, BLOCK = 1 << MC_BLOCKS_BITS_MIN };
_Static_assert((int)MC_STAMP_PIXELS == (int)MC_CANVAS_PIECE, "a stamp is laid as a square");

struct mc_stroke_tile {
    mc_outline *plane;
    mc_shape shape; /* what is painted, seen from the plane's corner; its ends are the shape's own */
    mc_canvas_ink ink;
    const mc_canvas *canvas; /* that it is an ink of */
};

static apr_status_t
free_tile(void *data)
{
    mc_stroke_tile *tile = data;
    tile->shape.ends = NULL;
    mc_shape_free(&tile->shape);
    return APR_SUCCESS;
}

mc_error *
mc_stroke_tile_create(mc_stroke_tile **tile, apr_pool_t *pool)
{
    mc_stroke_tile *made = apr_pcalloc(pool, sizeof(*made));
    apr_pool_cleanup_register(pool, made, free_tile, apr_pool_cleanup_null);
    MC_TRY(mc_outline_create(&made->plane, SIDE, SIDE, pool));
    *tile = made;
    return MC_OK;
}

static void
choose_ink(mc_stroke_tile *tile, mc_canvas *canvas, mc_color color)
{
    if (tile->canvas == canvas && memcmp(&tile->ink.color, &color, sizeof(color)) == 0)
        return;
    tile->ink = mc_canvas_ink_of(canvas, color);
    tile->canvas = canvas;
    tile->plane->coarse = canvas->palette != NULL;
}

/* A line that is one stamp (outline_stamps.c) is laid without any plane. */
static bool
lay_stamp(mc_canvas *canvas, const mc_stroke_tile *tile, const mc_shape *shape, float width)
{
    int left, top;
    uint8_t mask[MC_CANVAS_PIECE];
    if (shape->point_count != 2 || shape->kind != MC_SHAPE_LINES || width > 1 || !tile->plane->coarse ||
        !mc_outline_cover_stamp(mask, &left, &top, shape->points[0], shape->points[1], width))
        return false;
    mc_canvas_square(canvas, left, top, mask, &tile->ink);
    return true;
}

/* Where the plane's corner has to be, so that blocks begin where most strokes do; false where one is too large. */
static bool
place_window(int *left, int *top, const mc_shape *shape, const mc_pen *pen, bool thin)
{
    int32_t minx, miny, maxx, maxy;
    double most = thin ? fmax(1, pen->width / 2 + 0.5) + 1 : mc_bands_reach(pen) + 1;
    int around = (int)most + 1, near = ((int)fmax(1, pen->width / 2 + 0.5) + 1) % BLOCK;
    if (!mc_shape_bounds(shape, &minx, &miny, &maxx, &maxy))
        return false;
    around = near + (around - near + BLOCK - 1) / BLOCK * BLOCK;
    *left = (minx >> 8) - around;
    *top = (miny >> 8) - around;
    return (maxx >> 8) + around - *left < SIDE && (maxy >> 8) + around - *top < SIDE;
}

static void
move_into_window(mc_shape *out, const mc_shape *shape, int left, int top)
{
    mc_shape_clear(out, shape->kind);
    if (!mc_shape_reserve(out, shape->point_count))
        return;
    for (int i = 0; i < shape->point_count; i++)
        out->points[i] =
            (mc_shape_point){ shape->points[i].x - left * MC_SUBPIXELS, shape->points[i].y - top * MC_SUBPIXELS };
    out->point_count = shape->point_count;
    out->ends = shape->ends;
    out->part_count = shape->part_count;
}

/* Blocks that are laid from top to bottom where a stroke has few rows: it then touches most of them in each row. */
enum { FEW_ROWS = 24 };

static void
lay_few_rows(mc_canvas *canvas, const mc_stroke_tile *tile, int left, int top)
{
    mc_outline *plane = tile->plane;
    const int rows = plane->bottom - plane->top + 1;
    uint64_t bits = 0;
    for (int y = plane->top; y <= plane->bottom; y++) {
        bits |= plane->touched[y];
        plane->touched[y] = 0;
    }
    uint8_t *mask = plane->plane + (size_t)plane->top * (size_t)plane->stride;
    for (; bits != 0; bits &= bits - 1) {
        const int x = __builtin_ctzll(bits) * BLOCK;
        mc_canvas_column(canvas, left + x, top + plane->top, rows, mask + x, (size_t)plane->stride, &tile->ink);
    }
}

static void
lay_many_rows(mc_canvas *canvas, const mc_stroke_tile *tile, int left, int top)
{
    mc_outline *plane = tile->plane;
    for (int y = plane->top; y <= plane->bottom; y++) {
        uint8_t *mask = plane->plane + (size_t)y * (size_t)plane->stride;
        for (uint64_t bits = plane->touched[y]; bits != 0; bits &= bits - 1) {
            const int x = __builtin_ctzll(bits) * BLOCK;
            mc_canvas_column(canvas, left + x, top + y, 1, mask + x, (size_t)plane->stride, &tile->ink);
        }
        plane->touched[y] = 0;
    }
}

/* Lays what is on the plane, which becomes empty. */
static void
lay_window(mc_canvas *canvas, const mc_stroke_tile *tile, int left, int top)
{
    const bool few = tile->plane->bottom - tile->plane->top < FEW_ROWS;
    (few ? lay_few_rows : lay_many_rows)(canvas, tile, left, top);
    mc_outline_done(tile->plane);
}

bool
mc_stroke_tile_paint(mc_stroke_tile *tile, mc_canvas *canvas, const mc_shape *shape, const mc_pen *pen, bool thin,
                     mc_color color)
{
    int left, top;
    choose_ink(tile, canvas, color);
    if (thin && lay_stamp(canvas, tile, shape, (float)pen->width))
        return true;
    if (!place_window(&left, &top, shape, pen, thin))
        return false;
    if (left >= canvas->width || top >= canvas->height || left <= -SIDE || top <= -SIDE)
        return true;
    move_into_window(&tile->shape, shape, left, top);
    if (thin)
        mc_outline_add(tile->plane, &tile->shape, (float)pen->width);
    else
        mc_bands_add(tile->plane, &tile->shape, pen);
    lay_window(canvas, tile, left, top);
    return true;
}
