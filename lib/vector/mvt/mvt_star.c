/*
 * See mvt_star.h. Seen from a point, each edge of a star turns the same way, by less than half a turn, and all of them
 * together go round once. Exact: whole numbers, of which no product overflows.
 */
#include "vector/mvt/mvt_star.h"

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

enum {
    STAR_VERTICES = 256, /* of larger rings few are stars */
    STAR_SIDE = 1 << 14, /* of the box, in units: products of two differences have 28 bits */
};

/* The middle of the ring's box; false where the ring is too large. */
static bool
find_middle(mc_shape_point *middle, const mc_shape *ring)
{
    int32_t minx, miny, maxx, maxy;
    if (ring->point_count > STAR_VERTICES || !mc_shape_bounds(ring, &minx, &miny, &maxx, &maxy) ||
        (int64_t)maxx - minx >= STAR_SIDE || (int64_t)maxy - miny >= STAR_SIDE)
        return false;
    *middle = (mc_shape_point){ minx + (maxx - minx) / 2, miny + (maxy - miny) / 2 };
    return true;
}

#ifdef __SSE4_1__

enum { LANES = 4, BEYOND = 2 /* vertices behind a block that the block looks at */ };

/* x and y from the middle, 16 bits each. There is room for a block more than there are vertices. */
static void
take_from_middle(int32_t *out, const mc_shape *ring, mc_shape_point middle)
{
    const __m128i at = _mm_set_epi32(middle.y, middle.x, middle.y, middle.x);
    int count = ring->point_count;
    for (int i = 0; i < count; i += 2) {
        const mc_shape_point *points = ring->points + i;
        __m128i two = i + 1 < count ? _mm_loadu_si128((const __m128i *)(const void *)points)
                                    : _mm_loadl_epi64((const __m128i *)(const void *)points);
        two = _mm_sub_epi32(two, at);
        _mm_storel_epi64((__m128i *)(void *)(out + i), _mm_packs_epi32(two, two));
    }
    for (int i = 0; i < LANES + BEYOND; i++)
        out[count + i] = out[i % count];
}

/* Four pairs: above 0 where `second` lies clockwise (on the screen) from `first`. */
static inline __m128i
cross_pairs(__m128i first, __m128i second)
{
    const __m128i swap = _mm_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2);
    __m128i across = _mm_sign_epi16(_mm_shuffle_epi8(second, swap), _mm_set1_epi32((int32_t)0xFFFF0001));
    return _mm_madd_epi16(first, across);
}

static bool
goes_round_once(const int32_t *vertices, int count)
{
    const __m128i zero = _mm_setzero_si128();
    int rounds = 0;
    for (int i = 0; i < count; i += LANES) {
        __m128i at = _mm_loadu_si128((const __m128i *)(const void *)(vertices + i));
        __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(vertices + i + 1));
        __m128i after = _mm_loadu_si128((const __m128i *)(const void *)(vertices + i + BEYOND));
        __m128i edge = _mm_sub_epi16(next, at);
        __m128i turns = _mm_cmpgt_epi32(cross_pairs(at, edge), zero);
        __m128i straight = _mm_cmpeq_epi32(cross_pairs(edge, _mm_sub_epi16(after, next)), zero);
        /* Vertices behind the last one are the first ones again: they may be looked at twice, but counted once. */
        if (_mm_movemask_ps(_mm_castsi128_ps(_mm_andnot_si128(straight, turns))) != (1 << LANES) - 1)
            return false;
        int counted = count - i < LANES ? (1 << (count - i)) - 1 : (1 << LANES) - 1;
        rounds +=
            __builtin_popcount((unsigned)(_mm_movemask_ps(_mm_castsi128_ps(_mm_andnot_si128(next, at))) & counted));
    }
    return rounds == 1;
}

bool
mc_mvt_is_star(const mc_shape *shape)
{
    mc_shape_point middle;
    int32_t vertices[STAR_VERTICES + LANES + BEYOND];
    if (shape->part_count != 1 || !find_middle(&middle, shape))
        return false;
    take_from_middle(vertices, shape, middle);
    return goes_round_once(vertices, shape->point_count);
}

#else

static int64_t
cross_points(mc_shape_point first, mc_shape_point second)
{
    return (int64_t)first.x * second.y - (int64_t)first.y * second.x;
}

static mc_shape_point
step_between(mc_shape_point from, mc_shape_point to)
{
    return (mc_shape_point){ to.x - from.x, to.y - from.y };
}

bool
mc_mvt_is_star(const mc_shape *shape)
{
    mc_shape_point middle;
    int rounds = 0, count = shape->point_count;
    if (shape->part_count != 1 || !find_middle(&middle, shape))
        return false;
    for (int i = 0; i < count; i++) {
        mc_shape_point here = shape->points[i], next = shape->points[(i + 1) % count];
        mc_shape_point edge = step_between(here, next), at = step_between(middle, here);
        if (cross_points(at, edge) <= 0 || cross_points(edge, step_between(next, shape->points[(i + 2) % count])) == 0)
            return false;
        rounds += at.y < 0 && next.y >= middle.y;
    }
    return rounds == 1;
}

#endif
