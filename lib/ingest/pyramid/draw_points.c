/*
 * Images of another CRS, turned ones, and those with transparency: where each pixel of the tile lies on the image is
 * computed, then taken from there. The transformation is made for the corners of cells of 16 x 16 pixels and
 * interpolated in those where that is right within an eighth of a pixel.
 */
#include <math.h>
#include <string.h>

#include "ingest/pyramid/draw.h"
#include "ingest/pyramid/vec4f.h"
#include "memory/scratch.h"

enum { CELL = 16, FINEST = 16 };
#define EXACT 0.125

/* Where the pixels of a tile lie. */
typedef struct places {
    const mc_image_placement *placement;
    const mc_projection *projection;
    mc_extent tile;
    double step_x, step_y;                          /* of a pixel, units of the grid's CRS */
    double columns[CELL * CELL], rows[CELL * CELL]; /* of the cell's pixels, on the image */
} places;

static void
tile_pixel_place(double xy[2], const places *p, double x, double y)
{
    xy[0] = p->tile.minx + x * p->step_x;
    xy[1] = p->tile.maxy - y * p->step_y;
}

static void
place_each(places *p, int left, int top)
{
    double xy[2 * CELL];
    for (int y = 0; y < CELL; y++) {
        for (int x = 0; x < CELL; x++)
            tile_pixel_place(xy + (ptrdiff_t)2 * x, p, left + x + 0.5, top + y + 0.5);
        mc_image_placement_points(p->placement, p->projection, xy, CELL);
        for (int x = 0; x < CELL; x++) {
            p->columns[y * CELL + x] = xy[2 * x];
            p->rows[y * CELL + x] = xy[2 * x + 1];
        }
    }
}

static double
interpolate_corners(const double *corners, double u, double v)
{
    double upper = corners[0] + (corners[2] - corners[0]) * u, lower = corners[4] + (corners[6] - corners[4]) * u;
    return upper + (lower - upper) * v;
}

/* Corners 0 to 3 and, to compare with, the middle and the middles of the edges. */
static void
place_cell(places *p, int left, int top)
{
    static const double u[7] = { 0, 1, 0, 1, 0.5, 0.5, 0 }, v[7] = { 0, 0, 1, 1, 0.5, 0, 0.5 };
    double xy[14];
    for (int i = 0; i < 7; i++)
        tile_pixel_place(xy + (ptrdiff_t)2 * i, p, left + CELL * u[i], top + CELL * v[i]);
    mc_image_placement_points(p->placement, p->projection, xy, 7);
    bool straight = true;
    for (int i = 0; i < 7 && straight; i++)
        straight = isfinite(xy[2 * i]) && fabs(interpolate_corners(xy, u[i], v[i]) - xy[2 * i]) < EXACT &&
                   fabs(interpolate_corners(xy + 1, u[i], v[i]) - xy[2 * i + 1]) < EXACT;
    if (!straight) {
        place_each(p, left, top);
        return;
    }
    for (int i = 0; i < CELL * CELL; i++) {
        double x = (i % CELL + 0.5) / CELL, y = (i / CELL + 0.5) / CELL;
        p->columns[i] = interpolate_corners(xy, x, y);
        p->rows[i] = interpolate_corners(xy + 1, x, y);
    }
}

/* --- what stands there ------------------------------------------------------------------------------------------- */

/* A pixel of the image, or of its edge; NULL where the window has none. */
static const uint8_t *
window_pixel_at(const mc_raster_strip *window, int height, int column, int row)
{
    column = column < 0 ? 0 : column >= window->rows.width ? window->rows.width - 1 : column;
    row = row < 0 ? 0 : row >= height ? height - 1 : row;
    row -= window->first;
    if (row < 0 || row >= window->rows.height)
        return NULL;
    return window->rows.data + (size_t)row * window->rows.stride + (size_t)column * 4;
}

/* Sums of pixels that hold data. */
typedef struct draw_points_gathered {
    mc_vec4f color;
    float weight;
} draw_points_gathered;

static void
gather_weighted_pixel(draw_points_gathered *sum, const uint8_t *pixel, float weight)
{
    if (pixel == NULL || pixel[3] == 0)
        return;
    sum->color += mc_vec4f_load(pixel) * mc_vec4f_splat(weight);
    sum->weight += weight;
}

static void
gather_four(draw_points_gathered *sum, const mc_raster_strip *window, int height, double column, double row)
{
    double left = floor(column - 0.5), top = floor(row - 0.5);
    float u = (float)(column - 0.5 - left), v = (float)(row - 0.5 - top);
    int x = (int)left, y = (int)top;
    gather_weighted_pixel(sum, window_pixel_at(window, height, x, y), (1 - u) * (1 - v));
    gather_weighted_pixel(sum, window_pixel_at(window, height, x + 1, y), u * (1 - v));
    gather_weighted_pixel(sum, window_pixel_at(window, height, x, y + 1), (1 - u) * v);
    gather_weighted_pixel(sum, window_pixel_at(window, height, x + 1, y + 1), u * v);
}

/* Between four opaque pixels; false where they are not all in the window. */
static inline bool
interpolate_window_pixel(uint8_t *out, const mc_raster_strip *window, double column, double row)
{
    const mc_pixels *rows = &window->rows;
    double left = column - 0.5, top = row - 0.5 - window->first;
    if (!(left >= 0 && left < rows->width - 1 && top >= 0 && top < rows->height - 1))
        return false;
    int x = (int)left, y = (int)top;
    mc_vec4f u = mc_vec4f_splat((float)(left - x)), v = mc_vec4f_splat((float)(top - y));
    const uint8_t *upper = rows->data + (size_t)y * rows->stride + (size_t)x * 4, *lower = upper + rows->stride;
    mc_vec4f a = mc_vec4f_load(upper), b = mc_vec4f_load(upper + 4);
    mc_vec4f c = mc_vec4f_load(lower), d = mc_vec4f_load(lower + 4);
    a += (b - a) * u;
    c += (d - c) * u;
    mc_vec4f_store(out, a + (c - a) * v);
    return true;
}

/* How pixels of a tile are taken. */
typedef struct taking {
    const mc_draw *draw;
    int height; /* of the image */
    int finer;  /* points across and down a pixel whose mean it is */
    bool plain; /* between pixels that are all opaque */
} taking;

/* Takes the pixel at a place of the image; ax to by: how the place changes from pixel to pixel, across and down. */
static bool
sample_source_point(uint8_t *out, const taking *t, double column, double row, const double step[4])
{
    const mc_raster_strip *window = t->draw->window;
    draw_points_gathered sum = { { 0 }, 0 };
    if (!(column >= 0 && column < window->rows.width && row >= 0 && row < t->height))
        return false;
    const uint8_t *nearest = window_pixel_at(window, t->height, (int)column, (int)row);
    if (t->draw->mode == MC_INGEST_NEAREST) {
        gather_weighted_pixel(&sum, nearest, 1);
    } else if (t->draw->mode == MC_INGEST_BILINEAR) {
        if (nearest != NULL && nearest[3] != 0)
            gather_four(&sum, window, t->height, column, row);
    } else {
        for (int i = 0; i < t->finer * t->finer; i++) {
            double u = (i % t->finer + 0.5) / t->finer - 0.5, v = (i / t->finer + 0.5) / t->finer - 0.5;
            double x = column + u * step[0] + v * step[2], y = row + u * step[1] + v * step[3];
            if (x >= 0 && x < window->rows.width && y >= 0 && y < t->height)
                gather_weighted_pixel(&sum, window_pixel_at(window, t->height, (int)x, (int)y), 1);
        }
    }
    if (!(sum.weight > 0))
        return false;
    mc_vec4f_store(out, sum.color / mc_vec4f_splat(sum.weight));
    return out[3] != 0;
}

static bool
take_cell(mc_pixels *tile, int left, int top, const places *p, const taking *t)
{
    bool changed = false;
    int width = tile->width - left < CELL ? tile->width - left : CELL;
    int height = tile->height - top < CELL ? tile->height - top : CELL;
    const double step[4] = { p->columns[1] - p->columns[0], p->rows[1] - p->rows[0], p->columns[CELL] - p->columns[0],
                             p->rows[CELL] - p->rows[0] };
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t pixel[4];
            int at = y * CELL + x;
            uint8_t *place = tile->data + (size_t)(top + y) * tile->stride + (size_t)(left + x) * 4;
            if (t->plain && interpolate_window_pixel(place, t->draw->window, p->columns[at], p->rows[at])) {
                changed = true;
                continue;
            }
            if (!sample_source_point(pixel, t, p->columns[at], p->rows[at], step))
                continue;
            memcpy(place, pixel, 4);
            changed = true;
        }
    return changed;
}

mc_error *
mc_draw_points(bool *changed, mc_pixels *tile, const mc_draw *draw, int x, int y, mc_ctx *ctx)
{
    const mc_image_placement *placement = draw->placement;
    mc_projection *projection = NULL;
    if (placement->image->srs != NULL && !mc_grid_has_srs(placement->grid, placement->image->srs))
        MC_TRY(mc_projection_open(&projection, placement->grid->srs, placement->image->srs, ctx->pool));
    double resolution = placement->grid->levels[draw->z].resolution;
    places p = { .placement = placement,
                 .projection = projection,
                 .tile = mc_grid_tile_extent(placement->grid, draw->z, x, y) };
    p.step_x = p.step_y = resolution;
    double shrink = ceil(mc_image_placement_shrink(placement, projection, draw->z));
    taking t = { draw, placement->image->height,
                 shrink < 1        ? 1
                 : shrink > FINEST ? FINEST
                                   : (int)shrink,
                 draw->mode == MC_INGEST_BILINEAR && draw->window->rows.opacity == MC_OPAQUE };
    for (int top = 0; top < tile->height; top += CELL)
        for (int left = 0; left < tile->width; left += CELL) {
            place_cell(&p, left, top);
            if (take_cell(tile, left, top, &p, &t))
                *changed = true;
        }
    tile->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}
