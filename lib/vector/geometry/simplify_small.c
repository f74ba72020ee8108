/*
 * The same arithmetic as in simplify.c: a product of two directions is a difference or a sum of two products, which one
 * instruction gives for numbers of 16 bits. What becomes of a sector if a vertex is kept, and if none is, is computed
 * in the two halves of a register, before it is known which of them goes on.
 */
#include "vector/geometry/simplify_small.h"

#include <stddef.h>

#ifdef __x86_64__

#include <immintrin.h>

#define WITH_AVX2 __attribute__((target("avx2")))

/*
 * Of an anchor: four pairs of x and y. The first one is the right border of the sector turned so that its product with
 * a vertex is above 0 where the vertex lies within, the second one the left border likewise, the third one the right
 * border as it is; the fourth one is a number of 32 bits, the square of the distance of the last vertex that is not
 * close to the anchor.
 */
typedef struct small_sector {
    __m256i now;     /* in its lower half */
    __m256i anchors; /* the anchor, and the last vertex, each four times */
    __m256i last;    /* the last vertex, eight times */
} small_sector;

typedef struct small_closeness {
    __m256i off;    /* the tolerance, with the signs that it has in each pair */
    __m256i square; /* as in simplify.c */
} small_closeness;

/* x and y change places in each pair. */
WITH_AVX2 static inline __m256i
swap_pairs(__m256i pairs)
{
    const __m256i swapped = _mm256_set_epi8(13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2, 13, 12, 15, 14, 9, 8,
                                            11, 10, 5, 4, 7, 6, 1, 0, 3, 2);
    return _mm256_shuffle_epi8(pairs, swapped);
}

/* The borders of the sector of a line that passes the vertex: right, left, right, and nothing. */
WITH_AVX2 static inline __m256i
borders_of_vertex(__m256i at, const small_closeness *c)
{
    const __m256i fours = _mm256_set_epi16(0, 0, 4, 4, 4, 4, 4, 4, 0, 0, 4, 4, 4, 4, 4, 4);
    __m256i swapped = swap_pairs(at);
    /* Equally far in x and in y is not steep. */
    __m256i most = _mm256_sub_epi16(_mm256_abs_epi16(at), _mm256_set1_epi32(1 << 16));
    __m256i beside = _mm256_cmpgt_epi16(_mm256_abs_epi16(swapped), most);
    __m256i off = _mm256_and_si256(beside, _mm256_sign_epi16(c->off, swapped));
    return _mm256_add_epi16(_mm256_mullo_epi16(at, fours), off);
}

/* The first two borders turned, and the square of the distance. */
WITH_AVX2 static inline __m256i
sector_of_borders(__m256i borders, __m256i square)
{
    const __m256i places = _mm256_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 5, 4, 7, 6, 1, 0, 3, 2, 15, 14, 13, 12, 11, 10,
                                           9, 8, 5, 4, 7, 6, 1, 0, 3, 2);
    const __m256i signs = _mm256_set_epi16(1, 1, 1, 1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1, -1);
    __m256i turned = _mm256_sign_epi16(_mm256_shuffle_epi8(borders, places), signs);
    return _mm256_blend_epi32(turned, square, 0x88);
}

/* All bits in the lower half where the line passes the vertex, too; none in the upper half. */
WITH_AVX2 static inline __m256i
line_goes_on(__m256i now, __m256i at)
{
    const __m256i above = _mm256_set_epi32(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, 0, 0, 0, 0);
    __m256i products = _mm256_madd_epi16(_mm256_blend_epi32(now, at, 0x88), at);
    __m256i below = _mm256_cmpgt_epi32(_mm256_blend_epi32(above, now, 0x08), products);
    return _mm256_cmpeq_epi64(_mm256_packs_epi32(below, below), _mm256_setzero_si256());
}

/* Takes the next vertex, eight times; returns 0 where the last one is kept, else -1. */
WITH_AVX2 static inline int
take_small_vertex(small_sector *s, __m256i p, const small_closeness *c)
{
    __m256i at = _mm256_sub_epi16(p, s->anchors), square = _mm256_madd_epi16(at, at);
    __m256i apart = _mm256_cmpgt_epi32(square, c->square), borders = borders_of_vertex(at, c);
    __m256i made = sector_of_borders(borders, square), holds = line_goes_on(s->now, at);
    __m256i turns = _mm256_shuffle_epi32(_mm256_madd_epi16(borders, s->now), _MM_SHUFFLE(3, 0, 1, 0));
    __m256i narrows = _mm256_andnot_si256(_mm256_srai_epi32(turns, 31), apart);
    __m256i goes_on = _mm256_blendv_epi8(s->now, made, narrows);
    __m256i begins = _mm256_permute4x64_epi64(_mm256_and_si256(made, apart), _MM_SHUFFLE(1, 0, 3, 2));
    s->now = _mm256_blendv_epi8(begins, goes_on, holds);
    s->anchors = _mm256_blendv_epi8(_mm256_blend_epi32(s->last, p, 0xF0), s->anchors, holds);
    s->last = p;
    return _mm_cvtsi128_si32(_mm256_castsi256_si128(holds));
}

WITH_AVX2 static inline __m256i
load_small_vertex(const mc_shape_point *p, __m128i middle)
{
    __m128i at = _mm_sub_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p), middle);
    return _mm256_broadcastd_epi32(_mm_packs_epi32(at, at));
}

WITH_AVX2 static int
simplify_small(mc_shape_point *out, const mc_shape_point *points, int count, bool closed, int16_t tolerance,
               mc_shape_point middle)
{
    const int16_t t = tolerance, minus = (int16_t)-tolerance;
    const small_closeness c = { .off = _mm256_set_epi16(0, 0, minus, t, t, minus, minus, t, 0, 0, minus, t, t, minus,
                                                        minus, t),
                                .square = _mm256_set1_epi32(tolerance * tolerance / 16) };
    const __m128i from = _mm_set_epi32(0, 0, middle.y, middle.x);
    __m256i first = load_small_vertex(points, from);
    small_sector s = { .now = _mm256_setzero_si256(), .anchors = first, .last = first };
    int kept = 1;
    out[0] = points[0];
    for (int i = 1; i < count; i++) {
        out[kept] = points[i - 1]; /* written over by the next one unless it is kept */
        kept += 1 + take_small_vertex(&s, load_small_vertex(&points[i], from), &c);
    }
    if (closed) {
        out[kept] = points[count - 1];
        kept += 1 + take_small_vertex(&s, first, &c);
    } else if (!mc_shape_same_point(out[kept - 1], points[count - 1]))
        out[kept++] = points[count - 1];
    return kept;
}

bool
mc_simplify_is_small(mc_shape_point *middle, const mc_shape *shape, int64_t tolerance)
{
    int32_t minx, miny, maxx, maxy;
    if (!__builtin_cpu_supports("avx2") || !mc_shape_bounds(shape, &minx, &miny, &maxx, &maxy))
        return false;
    int64_t width = (int64_t)maxx - minx, height = (int64_t)maxy - miny;
    *middle = (mc_shape_point){ (int32_t)(minx + width / 2), (int32_t)(miny + height / 2) };
    return 4 * (width > height ? width : height) + tolerance <= INT16_MAX;
}

int
mc_simplify_small_part(mc_shape_point *out, const mc_shape_point *points, int count, bool closed, int64_t tolerance,
                       mc_shape_point middle)
{
    return simplify_small(out, points, count, closed, (int16_t)tolerance, middle);
}

#else

bool
mc_simplify_is_small(mc_shape_point *middle, const mc_shape *shape, int64_t tolerance)
{
    (void)middle;
    (void)shape;
    (void)tolerance;
    return false;
}

int
mc_simplify_small_part(mc_shape_point *out, const mc_shape_point *points, int count, bool closed, int64_t tolerance,
                       mc_shape_point middle)
{
    (void)out;
    (void)points;
    (void)closed;
    (void)tolerance;
    (void)middle;
    return count;
}

#endif
