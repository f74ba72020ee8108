/*
 * Short lines of outlines, which are most of the lines where data is dense: at most three quarters of a pixel long and
 * a pixel wide, they touch four by four pixels. Both ends are moved to the nearest eighth of a pixel on the pixel grid;
 * then there are few different ones, which are computed once for the process and laid as they are.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "draw/raster/outline_private.h"

enum {
    UNITS = 8, /* of a pixel */
    UNIT_SHIFT = 5,
    LONGEST = 6, /* units, across and down */
    SIDE = 4,    /* pixels of a stamp */
    WIDTHS = 2 * LONGEST + 1,
    STAMPS = UNITS * UNITS * (LONGEST + 1) * WIDTHS,
};

/* Coverage in 16 steps by a line one pixel wide, by where in its pixel the line begins and how it goes on: four bits
 * for each pixel, so that more of them stay in the nearest cache. */
static struct {
    pthread_once_t once;
    atomic_bool ready;
    uint8_t stamps[STAMPS][SIDE * SIDE / 2];
} made = { .once = PTHREAD_ONCE_INIT };

static inline int
stamp_number(int fx, int fy, int dx, int dy)
{
    return ((fy * UNITS + fx) * (LONGEST + 1) + dy) * WIDTHS + dx + LONGEST;
}

/* The first column and row that a line may touch, from its first point's pixel: it reaches one pixel around itself. */
static inline int
first_of(int f, int d)
{
    return (f + (d < 0 ? d : 0) - UNITS) >> 3;
}

static void
make_stamp(int fx, int fy, int dx, int dy)
{
    uint8_t *stamp = made.stamps[stamp_number(fx, fy, dx, dy)];
    int left = first_of(fx, dx), top = first_of(fy, dy);
    for (int i = 0; i < SIDE * SIDE; i++) {
        float x = (float)((left + i % SIDE) * UNITS + UNITS / 2 - fx);
        float y = (float)((top + i / SIDE) * UNITS + UNITS / 2 - fy);
        float length2 = (float)(dx * dx + dy * dy), t = length2 > 0 ? (x * (float)dx + y * (float)dy) / length2 : 0;
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        float ex = x - t * (float)dx, ey = y - t * (float)dy;
        float covered = 1 - sqrtf(ex * ex + ey * ey) / UNITS;
        stamp[i / 2] |= (uint8_t)((int)((covered < 0 ? 0 : covered) * 15 + 0.5F) << i % 2 * 4);
    }
}

static void
make_all_stamps(void)
{
    for (int fy = 0; fy < UNITS; fy++)
        for (int fx = 0; fx < UNITS; fx++)
            for (int dy = 0; dy <= LONGEST; dy++)
                for (int dx = -LONGEST; dx <= LONGEST; dx++)
                    make_stamp(fx, fy, dx, dy);
    atomic_store_explicit(&made.ready, true, memory_order_release);
}

/* The stamp of a line from its upper end, and its first column and row; NULL: the line is too long for one. */
static inline const uint8_t *
find_stamp(int *left, int *top, mc_shape_point a, mc_shape_point b)
{
    int ax = (a.x + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT, ay = (a.y + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT;
    int dx = ((b.x + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT) - ax;
    int dy = ((b.y + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT) - ay;
    if (((unsigned)(dx + LONGEST) > 2 * LONGEST) | (dy > LONGEST))
        return NULL;
    if (!atomic_load_explicit(&made.ready, memory_order_acquire))
        pthread_once(&made.once, make_all_stamps);
    int fx = ax & (UNITS - 1), fy = ay & (UNITS - 1);
    *left = (ax >> 3) + first_of(fx, dx);
    *top = (ay >> 3) + first_of(fy, dy);
    return made.stamps[stamp_number(fx, fy, dx, dy)];
}

/* Coverage of a line whose pen is as wide as `most` says. */
#ifdef __SSE4_1__
static inline __m128i
stamp_coverage(const uint8_t *stamp, uint8_t most)
{
    const __m128i low = _mm_set1_epi8(15), packed = _mm_loadl_epi64((const __m128i *)(const void *)stamp);
    __m128i steps = _mm_unpacklo_epi8(_mm_and_si128(packed, low), _mm_and_si128(_mm_srli_epi16(packed, 4), low));
    return _mm_min_epu8(_mm_or_si128(steps, _mm_slli_epi16(steps, 4)) /* times 17 */, _mm_set1_epi8((char)most));
}
#endif

static inline void
write_stamp_coverage(uint8_t covered[SIDE * SIDE], const uint8_t *stamp, uint8_t most)
{
#ifdef __SSE4_1__
    _mm_storeu_si128((__m128i *)(void *)covered, stamp_coverage(stamp, most));
#else
    for (int i = 0; i < SIDE * SIDE; i++) {
        const uint8_t value = (uint8_t)((stamp[i / 2] >> i % 2 * 4 & 15) * 17);
        covered[i] = value < most ? value : most;
    }
#endif
}

/* The most that a pen of at most a pixel covers. */
static inline uint8_t
most_of_pen(float pen)
{
    return (uint8_t)((int)(pen * 15 + 0.5F) * 17);
}

/* Where it reaches over the edge of the map. */
static void
lay_clipped_stamp(mc_outline *outline, const uint8_t *stamp, int left, int top, uint8_t most)
{
    uint8_t covered[SIDE * SIDE];
    write_stamp_coverage(covered, stamp, most);
    for (int i = 0; i < SIDE * SIDE; i++) {
        int x = left + i % SIDE, y = top + i / SIDE;
        if (x < 0 || y < 0 || x >= outline->width || y >= outline->height)
            continue;
        uint8_t *at = outline->plane + (size_t)y * (size_t)outline->stride + x;
        *at = covered[i] > *at ? covered[i] : *at;
        outline->touched[y] |= mc_blocks_of(x, x, outline->block_bits);
    }
}

#ifdef __SSE4_1__
/* The larger of what is there and of the first four of `covered`. */
static inline void
put_larger_four(uint8_t *row, __m128i covered)
{
    uint32_t four;
    memcpy(&four, row, SIDE);
    four = (uint32_t)_mm_cvtsi128_si32(_mm_max_epu8(_mm_cvtsi32_si128((int)four), covered));
    memcpy(row, &four, SIDE);
}
#endif

static inline void
lay_whole_stamp(mc_outline *outline, const uint8_t *stamp, int left, int top, uint8_t most)
{
    const size_t stride = (size_t)outline->stride;
    uint8_t *row = outline->plane + (size_t)top * stride + left;
    const uint64_t blocks = mc_blocks_of(left, left + SIDE - 1, outline->block_bits);
#ifdef __SSE4_1__
    const __m128i covered = stamp_coverage(stamp, most);
    put_larger_four(row, covered);
    put_larger_four(row + stride, _mm_srli_si128(covered, SIDE));
    put_larger_four(row + 2 * stride, _mm_srli_si128(covered, 2 * SIDE));
    put_larger_four(row + 3 * stride, _mm_srli_si128(covered, 3 * SIDE));
#else
    uint8_t covered[SIDE * SIDE];
    write_stamp_coverage(covered, stamp, most);
    for (int y = 0; y < SIDE; y++, row += stride)
        for (int x = 0; x < SIDE; x++)
            row[x] = covered[y * SIDE + x] > row[x] ? covered[y * SIDE + x] : row[x];
#endif
    for (int y = 0; y < SIDE; y++)
        outline->touched[top + y] |= blocks;
}

bool
mc_outline_cover_stamp(uint8_t covered[MC_STAMP_PIXELS], int *left, int *top, mc_shape_point a, mc_shape_point b,
                       float pen)
{
    const bool upwards = a.y > b.y || (a.y == b.y && a.x > b.x);
    const uint8_t *stamp = find_stamp(left, top, upwards ? b : a, upwards ? a : b);
    if (stamp != NULL)
        write_stamp_coverage(covered, stamp, most_of_pen(pen));
    return stamp != NULL;
}

bool
mc_outline_stamp(mc_outline *outline, mc_shape_point a, mc_shape_point b, float pen)
{
    int left, top;
    const uint8_t *stamp = find_stamp(&left, &top, a, b);
    if (stamp == NULL)
        return false;
    if (left <= -SIDE || top <= -SIDE || left >= outline->width || top >= outline->height)
        return true;
    int bottom = top + SIDE - 1;
    outline->dirty = true;
    outline->top = top < outline->top ? (top < 0 ? 0 : top) : outline->top;
    bottom = bottom >= outline->height ? outline->height - 1 : bottom;
    outline->bottom = bottom > outline->bottom ? bottom : outline->bottom;
    if (left < 0 || top < 0 || top + SIDE > outline->height)
        lay_clipped_stamp(outline, stamp, left, top, most_of_pen(pen));
    else
        lay_whole_stamp(outline, stamp, left, top, most_of_pen(pen));
    return true;
}
