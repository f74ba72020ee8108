/*
 * Short lines of outlines, which are most of the lines where data is dense: at most three quarters of a pixel long and
 * a pixel wide, they touch four by four pixels. Both ends are moved to the nearest eighth of a pixel on the pixel grid;
 * then there are few different ones, which are computed once for the process and laid as they are.
 */
#include <pthread.h>
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

/* Coverage in 16 steps by a line one pixel wide, by where in its pixel the line begins and how it goes on. */
static struct {
    pthread_once_t once;
    uint8_t stamps[STAMPS][SIDE * SIDE];
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
        stamp[i] = (uint8_t)((int)((covered < 0 ? 0 : covered) * 15 + 0.5F) * 17);
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
}

/* Where it reaches over the edge of the map. */
static void
lay_clipped_stamp(mc_outline *outline, const uint8_t *stamp, int left, int top, uint8_t most)
{
    for (int i = 0; i < SIDE * SIDE; i++) {
        int x = left + i % SIDE, y = top + i / SIDE;
        if (x < 0 || y < 0 || x >= outline->width || y >= outline->height)
            continue;
        uint8_t *at = outline->plane + (size_t)y * (size_t)outline->stride + x;
        uint8_t value = stamp[i] < most ? stamp[i] : most;
        *at = value > *at ? value : *at;
        outline->touched[y] |= mc_blocks_of(x, x, outline->block_bits);
    }
}

static void
lay_whole_stamp(mc_outline *outline, const uint8_t *stamp, int left, int top, uint8_t most)
{
    uint8_t *row = outline->plane + (size_t)top * (size_t)outline->stride + left;
    uint64_t blocks = mc_blocks_of(left, left + SIDE - 1, outline->block_bits);
    uint8_t limited[SIDE * SIDE];
#ifdef __SSE4_1__
    __m128i all = _mm_min_epu8(_mm_loadu_si128((const __m128i *)(const void *)stamp), _mm_set1_epi8((char)most));
    _mm_storeu_si128((__m128i *)(void *)limited, all);
#else
    for (int i = 0; i < SIDE * SIDE; i++)
        limited[i] = stamp[i] < most ? stamp[i] : most;
#endif
    for (int y = 0; y < SIDE; y++, row += outline->stride) {
#ifdef __SSE4_1__
        uint32_t here, four;
        memcpy(&here, row, SIDE);
        memcpy(&four, limited + (size_t)y * SIDE, SIDE);
        four = (uint32_t)_mm_cvtsi128_si32(_mm_max_epu8(_mm_cvtsi32_si128((int)here), _mm_cvtsi32_si128((int)four)));
        memcpy(row, &four, SIDE);
#else
        for (int x = 0; x < SIDE; x++)
            row[x] = limited[y * SIDE + x] > row[x] ? limited[y * SIDE + x] : row[x];
#endif
        outline->touched[top + y] |= blocks;
    }
}

const uint8_t *
mc_outline_stamp_of(int *left, int *top, uint8_t *most, mc_shape_point a, mc_shape_point b, float pen)
{
    if (a.y > b.y || (a.y == b.y && a.x > b.x)) {
        mc_shape_point swap = a;
        a = b;
        b = swap;
    }
    int ax = (a.x + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT, ay = (a.y + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT;
    int dx = ((b.x + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT) - ax;
    int dy = ((b.y + (1 << (UNIT_SHIFT - 1))) >> UNIT_SHIFT) - ay;
    if (dx > LONGEST || dx < -LONGEST || dy > LONGEST)
        return NULL;
    pthread_once(&made.once, make_all_stamps);
    int fx = ax & (UNITS - 1), fy = ay & (UNITS - 1);
    *left = (ax >> 3) + first_of(fx, dx);
    *top = (ay >> 3) + first_of(fy, dy);
    *most = (uint8_t)((int)(pen * 15 + 0.5F) * 17);
    return made.stamps[stamp_number(fx, fy, dx, dy)];
}

bool
mc_outline_stamp(mc_outline *outline, mc_shape_point a, mc_shape_point b, float pen)
{
    int left, top;
    uint8_t most;
    const uint8_t *stamp = mc_outline_stamp_of(&left, &top, &most, a, b, pen);
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
        lay_clipped_stamp(outline, stamp, left, top, most);
    else
        lay_whole_stamp(outline, stamp, left, top, most);
    return true;
}
