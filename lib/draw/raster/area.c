/*
 * Signed areas. An edge adds to each pixel that it crosses the area between itself and the pixel's right side, times
 * its height there, and to the pixel right of it what is left: summed from the left, a row then holds the coverage.
 * All crossings are computed from the edge's own ends, relative to its first one, never from a neighbouring crossing:
 * an edge gives the same numbers in every tile.
 */
#include "draw/raster/area.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "draw/raster/blocks.h"
#include "draw/raster/plane.h"

enum {
    SHIFT = 8, /* of MC_SUBPIXELS */
    FULL = MC_SUBPIXELS * MC_SUBPIXELS * 2,
    NARROW = 32 * MC_SUBPIXELS, /* edges for which one look tells the blocks of all rows */
};

mc_error *
mc_area_create(mc_area **coverage, int width, int height, apr_pool_t *pool)
{
    if (width < 1 || height < 1 || width > 32768 || height > 32768)
        return mc_error_create(pool, MC_ERR_LIMIT, "a map of %dx%d pixels cannot be painted", width, height);
    mc_area *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_area){ .width = width, .height = height, .top = height, .bottom = -1 };
    made->block_bits = mc_blocks_bits(width + 2);
    made->stride = ((width + 1) >> made->block_bits << made->block_bits) + (1 << made->block_bits);
    made->cells = mc_plane_acquire(sizeof(int32_t) * (size_t)made->stride * (size_t)height, &made->dirty, pool);
    made->touched = apr_pcalloc(pool, sizeof(*made->touched) * (size_t)height);
    *coverage = made;
    return MC_OK;
}

/* Blocks of all that an edge may touch, with its ends in subpixels: the pixels from the one that it begins in to the
 * one right of its end. */
static inline uint64_t
blocks_between(const mc_area *plane, int32_t x0, int32_t x1)
{
    int first = (x0 < x1 ? x0 : x1) >> SHIFT, last = ((x0 < x1 ? x1 : x0) >> SHIFT) + 1;
    first = first < 0 ? 0 : first;
    last = last < 0 ? 0 : last > plane->width ? plane->width : last;
    return first > last ? 0 : mc_blocks_of(first, last, plane->block_bits);
}

/* Where thousands of rings lie over each other, sums wrap around. Under MC_EVEN_ODD only the parity of a sum counts,
 * and wrapping around does not change the parity. */
static inline void
add_cell_area(int32_t *cell, int32_t area)
{
    *cell = (int32_t)((uint32_t)*cell + (uint32_t)area);
}

/* An edge inside one row, from (xa, ..) to (xb, ..), `dy` subpixels high with its sign; xa and xb in subpixels. The
 * share of each pixel is by its share of the width, computed from the left end. */
static void
add_in_row(mc_area *plane, int y, int32_t xa, int32_t xb, int32_t dy)
{
    int32_t *row = plane->cells + (size_t)y * (size_t)plane->stride;
    int32_t limit = plane->width << SHIFT;
    int32_t left = xa < xb ? xa : xb, right = xa < xb ? xb : xa;
    if (left >= limit)
        return;
    if (right <= 0) {
        add_cell_area(&row[0], dy * 2 * MC_SUBPIXELS);
        return;
    }
    int first = left >> SHIFT, last = right >> SHIFT;
    if (first == last) {
        int32_t inside = (left & (MC_SUBPIXELS - 1)) + (right & (MC_SUBPIXELS - 1));
        add_cell_area(&row[first], dy * (2 * MC_SUBPIXELS - inside));
        add_cell_area(&row[first + 1], dy * inside);
        return;
    }
    double slope = (double)dy / (double)(right - left);
    int32_t before = 0; /* of dy, spent up to column `from` */
    int32_t from = left;
    int begin = first < 0 ? 0 : first, end = last < plane->width ? last : plane->width - 1;
    if (first < 0) {
        before = (int32_t)lrint((double)(0 - left) * slope);
        add_cell_area(&row[0], before * 2 * MC_SUBPIXELS);
        from = 0;
    }
    for (int column = begin; column <= end; column++) {
        int32_t edge = (column + 1) << SHIFT;
        int32_t to = edge < right ? edge : right;
        int32_t spent = to == right ? dy : (int32_t)lrint((double)(to - left) * slope);
        int32_t inside = (from - (column << SHIFT)) + (to - (column << SHIFT));
        add_cell_area(&row[column], (spent - before) * (2 * MC_SUBPIXELS - inside));
        add_cell_area(&row[column + 1], (spent - before) * inside);
        before = spent;
        from = to;
    }
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
    int32_t limit = plane->height << SHIFT, right = plane->width << SHIFT;
    if (y1 <= 0 || y0 >= limit || (x0 >= right && x1 >= right))
        return;
    int top = y0 < 0 ? 0 : y0 >> SHIFT, bottom = y1 > limit ? plane->height - 1 : (y1 - 1) >> SHIFT;
    if (top < plane->top)
        plane->top = top;
    if (bottom > plane->bottom)
        plane->bottom = bottom;
    bool narrow = x0 - x1 < NARROW && x1 - x0 < NARROW;
    uint64_t blocks = narrow ? blocks_between(plane, x0, x1) : 0;
    if (y0 >> SHIFT == (y1 - 1) >> SHIFT) {
        plane->touched[top] |= narrow ? blocks : blocks_between(plane, x0, x1);
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
        plane->touched[y] |= narrow ? blocks : blocks_between(plane, x, next);
        add_in_row(plane, y, x, next, (to - from) * sign);
        from = to;
        x = next;
    }
}

/* An edge inside one pixel, as most are where data is dense; false, and nothing is added: it is none. The same numbers
 * as from add_edge, which do not depend on the edge's direction but for their sign. */
static inline bool
add_edge_in_pixel(mc_area *plane, mc_shape_point a, mc_shape_point b)
{
    const int32_t upper = a.y < b.y ? a.y : b.y, lower = a.y < b.y ? b.y : a.y;
    const int column = a.x >> SHIFT, y = upper >> SHIFT;
    if (((column ^ (b.x >> SHIFT)) | (y ^ ((lower - 1) >> SHIFT))) != 0 || (unsigned)column >= (unsigned)plane->width ||
        (unsigned)y >= (unsigned)plane->height)
        return false;
    int32_t *cells = plane->cells + (size_t)y * (size_t)plane->stride + column;
    const int32_t inside = (a.x & (MC_SUBPIXELS - 1)) + (b.x & (MC_SUBPIXELS - 1)), dy = b.y - a.y;
    add_cell_area(&cells[0], dy * (2 * MC_SUBPIXELS - inside));
    add_cell_area(&cells[1], dy * inside);
    plane->touched[y] |= mc_blocks_of(column, column + 1, plane->block_bits);
    plane->top = y < plane->top ? y : plane->top;
    plane->bottom = y > plane->bottom ? y : plane->bottom;
    return true;
}

void
mc_area_add(mc_area *coverage, const mc_shape *shape, int32_t dx, int32_t dy)
{
    int begin = 0;
    coverage->dirty = true;
    for (int part = 0; part < shape->part_count; part++) {
        int end = shape->ends[part];
        mc_shape_point last = { shape->points[end - 1].x + dx, shape->points[end - 1].y + dy };
        for (int i = begin; i < end; i++) {
            mc_shape_point p = shape->points[i];
            p = (mc_shape_point){ p.x + dx, p.y + dy };
            if (!add_edge_in_pixel(coverage, last, p))
                add_edge(coverage, last.x, last.y, p.x, p.y);
            last = p;
        }
        begin = end;
    }
}

void
mc_area_add_edge(mc_area *coverage, mc_shape_point a, mc_shape_point b)
{
    coverage->dirty = true;
    if (!add_edge_in_pixel(coverage, a, b))
        add_edge(coverage, a.x, a.y, b.x, b.y);
}

#ifdef __SSE4_1__
typedef __m128i cells4; /* four neighbours */

/* Sums from the left; `before` is that of all cells before them. */
static inline cells4
sum_cells_prefix(cells4 cells, cells4 before)
{
    cells = _mm_add_epi32(cells, _mm_slli_si128(cells, 4));
    cells = _mm_add_epi32(cells, _mm_slli_si128(cells, 8));
    return _mm_add_epi32(cells, before);
}

/* Coverage of sums, in 15 or in 255 steps. */
static inline cells4
coverage_steps(cells4 sums, mc_fill_rule rule, int bits)
{
    const cells4 full = _mm_set1_epi32(FULL), twice = _mm_set1_epi32(2 * FULL);
    cells4 area = rule == MC_NON_ZERO ? _mm_abs_epi32(sums) : _mm_and_si128(sums, _mm_set1_epi32(2 * FULL - 1));
    area = _mm_min_epi32(area, rule == MC_NON_ZERO ? full : _mm_sub_epi32(twice, area));
    area = _mm_sub_epi32(_mm_sll_epi32(area, _mm_cvtsi32_si128(bits)), area);
    return _mm_srli_epi32(_mm_add_epi32(area, _mm_set1_epi32(FULL / 2)), 2 * SHIFT + 1);
}

/* Coverage of sixteen cells, which become empty; *sum goes on. */
static inline void
take_sixteen(uint8_t *mask, int32_t *cells, int32_t *sum, mc_fill_rule rule, bool coarse)
{
    cells4 run = _mm_set1_epi32(*sum), four[4];
    for (int i = 0; i < 4; i++) {
        cells4 *at = (cells4 *)(void *)(cells + i * 4);
        run = sum_cells_prefix(_mm_loadu_si128(at), run);
        _mm_storeu_si128(at, _mm_setzero_si128());
        four[i] = coverage_steps(run, rule, coarse ? 4 : 8);
        run = _mm_shuffle_epi32(run, 0xff);
    }
    *sum = _mm_cvtsi128_si32(run);
    __m128i bytes = _mm_packus_epi16(_mm_packus_epi32(four[0], four[1]), _mm_packus_epi32(four[2], four[3]));
    if (coarse)
        bytes = _mm_or_si128(bytes, _mm_slli_epi16(bytes, 4)); /* times 17 */
    _mm_storeu_si128((__m128i *)(void *)mask, bytes);
}
#endif

static inline uint8_t
cell_coverage(int32_t sum, mc_fill_rule rule, bool coarse)
{
    int32_t area = rule == MC_NON_ZERO ? (sum < 0 ? (int32_t)(0U - (uint32_t)sum) : sum) : sum & (2 * FULL - 1);
    if (area > FULL || area < 0)
        area = rule == MC_NON_ZERO ? FULL : 2 * FULL - area;
    int32_t steps = coarse ? (area * 15 + FULL / 2) / FULL * 17 : (area * 255 + FULL / 2) / FULL;
    return (uint8_t)steps;
}

#ifndef __SSE4_1__
static void
take_sixteen(uint8_t *mask, int32_t *cells, int32_t *sum, mc_fill_rule rule, bool coarse)
{
    for (int i = 0; i < 16; i++) {
        add_cell_area(sum, cells[i]);
        cells[i] = 0;
        mask[i] = cell_coverage(*sum, rule, coarse);
    }
}
#endif

/* The cells of one run of blocks, each sixteen apart; those beyond the width belong to nobody but are emptied, too. */
static void
take_block_run(mc_area *coverage, int32_t *row, int begin, int end, mc_fill_rule rule, uint8_t *mask, int32_t *sum)
{
    int x = begin;
    for (; x < end && x < coverage->width; x += 16, mask += 16)
        take_sixteen(mask, row + x, sum, rule, coverage->coarse);
    if (x < end)
        memset(row + x, 0, sizeof(*row) * (size_t)(end - x));
}

void
mc_area_take_row(mc_area *coverage, int y, mc_fill_rule rule, uint8_t *mask, int *x, int *count)
{
    uint64_t bits = coverage->touched[y];
    *count = 0;
    if (bits == 0)
        return;
    int32_t *row = coverage->cells + (size_t)y * (size_t)coverage->stride;
    int32_t sum = 0;
    int width = coverage->width, first = __builtin_ctzll(bits) << coverage->block_bits, at = first;
    while (bits != 0) {
        int begin, end;
        mc_blocks_take(&bits, coverage->block_bits, &begin, &end);
        if (begin > at && at < width)
            memset(mask + (at - first), cell_coverage(sum, rule, coverage->coarse),
                   (size_t)((begin < width ? begin : width) - at));
        take_block_run(coverage, row, begin, end, rule, mask + (begin - first), &sum);
        at = end;
    }
    if (sum != 0 && at < width) { /* the rings go on to the right of the map */
        memset(mask + (at - first), cell_coverage(sum, rule, coverage->coarse), (size_t)(width - at));
        at = width;
    }
    *x = first;
    *count = (at < width ? at : width) - first;
    *count = *count < 0 ? 0 : *count;
    coverage->touched[y] = 0;
}

void
mc_area_done(mc_area *coverage)
{
    coverage->top = coverage->height;
    coverage->bottom = -1;
    coverage->dirty = false;
}
