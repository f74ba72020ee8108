/*
 * From the mosaic of one CRS to a map of another: the places of a lattice of pixels are transformed, what lies between
 * is interpolated where that is good enough, and else transformed pixel by pixel. Values are interpolated bilinearly.
 */
#include <math.h>
#include <string.h>

#include "source/tiles/mosaic.h"
#include "vector/crs/projection.h"

enum { CELL = 16 }; /* pixels from one place of the lattice to the next */

/* Pixels of the mosaic that an interpolated place may be off. */
#define TOLERANCE 0.05

typedef struct warping {
    mc_pixels *map;
    const mc_pixels *pixels;
    const mc_mosaic *mosaic;
    const mc_render *wanted;
} warping;

/* From pixels of the map (0, 0 is the outer corner of the first one) to pixels of the mosaic, in place. */
static void
find_in_mosaic(double *xy, int count, const warping *warp)
{
    const mc_extent *box = &warp->wanted->box;
    double width = (box->maxx - box->minx) / warp->wanted->width;
    double height = (box->maxy - box->miny) / warp->wanted->height;
    for (int i = 0; i < count; i++) {
        xy[2 * i] = box->minx + xy[2 * i] * width;
        xy[2 * i + 1] = box->maxy - xy[2 * i + 1] * height;
    }
    mc_projection_points(warp->mosaic->projection, xy, (size_t)count);
    double turn = warp->mosaic->turn, middle = (warp->mosaic->extent.minx + warp->mosaic->extent.maxx) / 2;
    for (int i = 0; i < count; i++) {
        if (turn > 0 && isfinite(xy[2 * i])) /* the mosaic may lie over the antimeridian */
            xy[2 * i] -= turn * round((xy[2 * i] - middle) / turn);
        xy[2 * i] = (xy[2 * i] - warp->mosaic->extent.minx) / warp->mosaic->scale_x;
        xy[2 * i + 1] = (warp->mosaic->extent.maxy - xy[2 * i + 1]) / warp->mosaic->scale_y;
    }
}

static int
clamp_index(int index, int count)
{
    return index < 0 ? 0 : index >= count ? count - 1 : index;
}

/* The mosaic's colour at a place, which may be none. */
static void
sample_mosaic(uint8_t out[4], const mc_pixels *pixels, double x, double y)
{
    if (!(x >= 0 && y >= 0 && x <= pixels->width && y <= pixels->height))
        return;
    double column = floor(x - 0.5), row = floor(y - 0.5);
    double right = x - 0.5 - column, lower = y - 0.5 - row;
    int x0 = clamp_index((int)column, pixels->width), x1 = clamp_index((int)column + 1, pixels->width);
    int y0 = clamp_index((int)row, pixels->height), y1 = clamp_index((int)row + 1, pixels->height);
    const uint8_t *above = pixels->data + (size_t)y0 * pixels->stride;
    const uint8_t *below = pixels->data + (size_t)y1 * pixels->stride;
    for (int i = 0; i < 4; i++) {
        double top = above[x0 * 4 + i] * (1 - right) + above[x1 * 4 + i] * right;
        double bottom = below[x0 * 4 + i] * (1 - right) + below[x1 * 4 + i] * right;
        out[i] = (uint8_t)(top * (1 - lower) + bottom * lower + 0.5);
    }
}

/* A cell's pixels, of which each is transformed. */
static void
warp_cell_exactly(const warping *warp, int left, int top, int width, int height)
{
    double xy[2 * CELL];
    for (int y = top; y < top + height; y++) {
        for (int i = 0; i < width; i++) {
            xy[2 * i] = left + i + 0.5;
            xy[2 * i + 1] = y + 0.5;
        }
        find_in_mosaic(xy, width, warp);
        uint8_t *row = warp->map->data + (size_t)y * warp->map->stride;
        for (int i = 0; i < width; i++)
            sample_mosaic(row + (size_t)(left + i) * 4, warp->pixels, xy[2 * i], xy[2 * i + 1]);
    }
}

/* The place in the mosaic between the corners of a cell: upper left, upper right, lower left, lower right. */
static void
interpolate_place(double *x, double *y, const double corners[8], double u, double v)
{
    double weights[4] = { (1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v };
    *x = *y = 0;
    for (int i = 0; i < 4; i++) {
        *x += weights[i] * corners[2 * i];
        *y += weights[i] * corners[2 * i + 1];
    }
}

static bool
is_place(const double xy[2])
{
    return isfinite(xy[0]) && isfinite(xy[1]);
}

/* Whether the middle of the cell, and the middles of two sides, are where interpolation has them. */
static bool
is_nearly_linear(const warping *warp, const double corners[8], int left, int top, int width, int height)
{
    static const double parts[3][2] = { { 0.5, 0.5 }, { 0.5, 0 }, { 0, 0.5 } };
    double xy[6];
    for (int i = 0; i < 4; i++)
        if (!is_place(&corners[2 * i]))
            return false;
    for (int i = 0; i < 3; i++) {
        xy[2 * i] = left + parts[i][0] * width;
        xy[2 * i + 1] = top + parts[i][1] * height;
    }
    find_in_mosaic(xy, 3, warp);
    for (int i = 0; i < 3; i++) {
        double x, y;
        interpolate_place(&x, &y, corners, parts[i][0], parts[i][1]);
        if (!is_place(&xy[2 * i]) || hypot(x - xy[2 * i], y - xy[2 * i + 1]) > TOLERANCE)
            return false;
    }
    return true;
}

static void
warp_cell(const warping *warp, int left, int top)
{
    int width = warp->map->width - left < CELL ? warp->map->width - left : CELL;
    int height = warp->map->height - top < CELL ? warp->map->height - top : CELL;
    double corners[8] = { left, top, left + width, top, left, top + height, left + width, top + height };
    find_in_mosaic(corners, 4, warp);
    if (!is_nearly_linear(warp, corners, left, top, width, height)) {
        warp_cell_exactly(warp, left, top, width, height);
        return;
    }
    for (int y = 0; y < height; y++) {
        uint8_t *row = warp->map->data + (size_t)(top + y) * warp->map->stride + (size_t)left * 4;
        for (int i = 0; i < width; i++) {
            double place_x, place_y;
            interpolate_place(&place_x, &place_y, corners, (i + 0.5) / width, (y + 0.5) / height);
            sample_mosaic(row + (size_t)i * 4, warp->pixels, place_x, place_y);
        }
    }
}

mc_error *
mc_mosaic_warp(mc_pixels *map, const mc_pixels *pixels, const mc_mosaic *mosaic, const mc_render *wanted, mc_ctx *ctx)
{
    const warping warp = { map, pixels, mosaic, wanted };
    for (int top = 0; top < map->height; top += CELL) {
        MC_TRY(mc_ctx_check(ctx, ctx->pool));
        for (int left = 0; left < map->width; left += CELL)
            warp_cell(&warp, left, top);
    }
    map->opacity = MC_OPACITY_UNKNOWN;
    return MC_OK;
}
