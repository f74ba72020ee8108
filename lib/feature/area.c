/*
 * Signed areas. An edge adds to each pixel that it crosses the area between itself and the pixel's right side, times
 * its height there, and to the pixel right of it what is left: summed from the left, a row then holds the coverage.
 * All crossings are computed from the edge's own ends, relative to its first one, never from a neighbouring crossing:
 * an edge gives the same numbers in every tile.
 */
#include "feature/area.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "feature/plane.h"

enum {
    SHIFT = 8, /* of MC_SUBPIXELS */
    FULL = MC_SUBPIXELS * MC_SUBPIXELS * 2,
};

mc_error *
mc_area_create(mc_area **coverage, int width, int height, apr_pool_t *pool)
{
    if (width < 1 || height < 1 || width > 32768 || height > 32768)
        return mc_error_create(pool, MC_ERR_LIMIT, "a map of %dx%d pixels cannot be painted", width, height);
    mc_area *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_area){ .width = width, .height = height, .stride = width + 2, .top = height, .bottom = -1 };
    made->cells = mc_plane_acquire(sizeof(int32_t) * (size_t)made->stride * (size_t)height, &made->dirty, pool);
    made->first = apr_palloc(pool, sizeof(int32_t) * (size_t)height * 2);
    made->last = made->first + height;
    for (int y = 0; y < height; y++) {
        made->first[y] = width + 1;
        made->last[y] = -1;
    }
    *coverage = made;
    return MC_OK;
}

static inline void
touch(mc_area *plane, int y, int first, int last)
{
    if (first < plane->first[y])
        plane->first[y] = first;
    if (last > plane->last[y])
        plane->last[y] = last;
}

/* An edge inside one row, from (xa, ..) to (xb, ..), `dy` subpixels high with its sign; xa and xb in subpixels. The
 * share of each pixel is by its share of the width, computed from the left end. */
static void
add_in_row(mc_area *plane, int y, int32_t xa, int32_t xb, int32_t dy)
{
    int32_t *row = plane->cells + (size_t)y * plane->stride;
    int32_t limit = plane->width << SHIFT;
    int32_t left = xa < xb ? xa : xb, right = xa < xb ? xb : xa;
    if (left >= limit)
        return;
    if (right <= 0) {
        row[0] += dy * 2 * MC_SUBPIXELS;
        touch(plane, y, 0, 0);
        return;
    }
    int first = left >> SHIFT, last = right >> SHIFT;
    if (first == last) {
        int32_t inside = (left & (MC_SUBPIXELS - 1)) + (right & (MC_SUBPIXELS - 1));
        row[first] += dy * (2 * MC_SUBPIXELS - inside);
        row[first + 1] += dy * inside;
        touch(plane, y, first, first + 1);
        return;
    }
    double slope = (double)dy / (double)(right - left);
    int32_t before = 0; /* of dy, spent up to column `from` */
    int32_t from = left;
    int begin = first < 0 ? 0 : first, end = last < plane->width ? last : plane->width - 1;
    if (first < 0) {
        before = (int32_t)lrint((double)(0 - left) * slope);
        row[0] += before * 2 * MC_SUBPIXELS;
        from = 0;
    }
    for (int column = begin; column <= end; column++) {
        int32_t edge = (column + 1) << SHIFT;
        int32_t to = edge < right ? edge : right;
        int32_t spent = to == right ? dy : (int32_t)lrint((double)(to - left) * slope);
        int32_t inside = (from - (column << SHIFT)) + (to - (column << SHIFT));
        row[column] += (spent - before) * (2 * MC_SUBPIXELS - inside);
        row[column + 1] += (spent - before) * inside;
        before = spent;
        from = to;
    }
    touch(plane, y, begin, end + 1);
}

static void
add_edge(mc_area *plane, int32_t x0, int32_t y0, int32_t x1, int32_t y1)
{
    if (y0 == y1)
        return;
    int32_t sign = 1;
    if (y0 > y1) { /* always downwards, so that both directions give the same crossings */
        int32_t x = x0, y = y0;
        x0 = x1;
        y0 = y1;
        x1 = x;
        y1 = y;
        sign = -1;
    }
    int32_t limit = plane->height << SHIFT;
    if (y1 <= 0 || y0 >= limit)
        return;
    int top = y0 < 0 ? 0 : y0 >> SHIFT, bottom = y1 > limit ? plane->height - 1 : (y1 - 1) >> SHIFT;
    if (top < plane->top)
        plane->top = top;
    if (bottom > plane->bottom)
        plane->bottom = bottom;
    if (y0 >> SHIFT == (y1 - 1) >> SHIFT) {
        add_in_row(plane, top, x0, x1, (y1 - y0) * sign);
        return;
    }
    double slope = (double)(x1 - x0) / (double)(y1 - y0);
    int32_t from = y0 < 0 ? 0 : y0;
    int32_t x = y0 < 0 ? x0 + (int32_t)lrint((double)(0 - y0) * slope) : x0;
    for (int y = top; y <= bottom; y++) {
        int32_t edge = (y + 1) << SHIFT;
        int32_t to = edge < y1 ? edge : y1;
        int32_t next = to == y1 ? x1 : x0 + (int32_t)lrint((double)(to - y0) * slope);
        add_in_row(plane, y, x, next, (to - from) * sign);
        from = to;
        x = next;
    }
}

void
mc_area_add(mc_area *coverage, const mc_shape *shape, int32_t dx, int32_t dy)
{
    int begin = 0;
    coverage->dirty = true;
    for (int part = 0; part < shape->part_count; part++) {
        int end = shape->ends[part];
        mc_shape_point last = shape->points[end - 1];
        for (int i = begin; i < end; i++) {
            mc_shape_point p = shape->points[i];
            add_edge(coverage, last.x + dx, last.y + dy, p.x + dx, p.y + dy);
            last = p;
        }
        begin = end;
    }
}

/* Coverage of a sum, in 255 or in 15 steps. */
static inline uint8_t
scaled(int32_t area, bool coarse)
{
    return coarse ? (uint8_t)((area * 15 + FULL / 2) / FULL * 17) : (uint8_t)((area * 255 + FULL / 2) / FULL);
}

static inline uint8_t
covered(int32_t sum, mc_fill_rule rule, bool coarse)
{
    int32_t area = rule == MC_NON_ZERO ? (sum < 0 ? -sum : sum) : sum & (2 * FULL - 1);
    if (area > FULL)
        area = rule == MC_NON_ZERO ? FULL : 2 * FULL - area;
    return scaled(area, coarse);
}

void
mc_area_take_row(mc_area *coverage, int y, mc_fill_rule rule, uint8_t *mask, int *x, int *count)
{
    int first = coverage->first[y], last = coverage->last[y];
    *count = 0;
    if (last < first)
        return;
    int32_t *row = coverage->cells + (size_t)y * coverage->stride;
    int32_t sum = 0;
    *x = first;
    int column = first;
    for (; column <= last && column < coverage->width; column++) {
        sum += row[column];
        mask[column - first] = covered(sum, rule, coverage->coarse);
    }
    memset(row + first, 0, sizeof(int32_t) * (size_t)(last - first + 1));
    if (sum != 0) /* the rings go on to the right of the map */
        for (uint8_t all = covered(sum, rule, coverage->coarse); column < coverage->width; column++)
            mask[column - first] = all;
    *count = column - first;
    coverage->first[y] = coverage->width + 1;
    coverage->last[y] = -1;
}

void
mc_area_done(mc_area *coverage)
{
    coverage->top = coverage->height;
    coverage->bottom = -1;
    coverage->dirty = false;
}
