/* See simplify.h. */
#include "vector/geometry/simplify.h"

#ifdef __SSE4_2__
#include <nmmintrin.h>

#include "vector/geometry/simplify_small.h"
#endif

/* Directions are in quarters of a unit: differences have 28 bits (MC_SHAPE_REACH), so that sums of products of two
 * directions fit. */
enum { QUARTERS = 4 };

#ifdef __SSE4_2__

/*
 * Of an anchor: the directions from there in which a line passes all vertices since then closely enough. Each pair of
 * coordinates is in the lower halves of two numbers, x first. All 0: every direction. Whether a vertex is kept cannot
 * be foreseen: there are no branches on the way there, and what comes of both answers is known before the answer is.
 */
typedef struct sector {
    __m128i left, right; /* left: the other way round, -x and -y */
    __m128i far;         /* 0, and the square of the distance of the last vertex that is not close to the anchor */
} sector;

/* What the line has to pass. */
typedef struct closeness {
    __m128i off;    /* -tolerance, tolerance: to the left of a vertex, where the line is steep beside it, else above */
    __m128i square; /* vertices that are not further away than the root of this are close to the anchor */
} closeness;

/* Two numbers of 64 bits: the sums of both halves of one and of the other, or the differences. */
static inline __m128i
add_halves(__m128i one, __m128i other)
{
    return _mm_add_epi64(_mm_unpacklo_epi64(one, other), _mm_unpackhi_epi64(one, other));
}

static inline __m128i
subtract_halves(__m128i one, __m128i other)
{
    return _mm_sub_epi64(_mm_unpacklo_epi64(one, other), _mm_unpackhi_epi64(one, other));
}

static inline __m128i
upper_half(__m128i both)
{
    return _mm_blend_epi16(both, _mm_setzero_si128(), 0x0F);
}

static inline __m128i
swap_halves(__m128i both)
{
    return _mm_shuffle_epi32(both, _MM_SHUFFLE(1, 0, 3, 2));
}

/* The directions of a line that passes (x, y). `far` is left out. */
static inline sector
sector_of_vertex(__m128i at, __m128i swapped, const closeness *c)
{
    /* Equally far in x and in y is not steep. */
    __m128i beside = _mm_cmpgt_epi32(_mm_add_epi32(_mm_abs_epi32(swapped), _mm_set_epi64x(1, 0)), _mm_abs_epi32(at));
    __m128i off = _mm_and_si128(beside, _mm_sign_epi32(c->off, swapped)), quarters = _mm_slli_epi32(at, 2);
    return (sector){ .left = _mm_sub_epi32(_mm_sub_epi32(_mm_setzero_si128(), quarters), off),
                     .right = _mm_sub_epi32(quarters, off) };
}

/* From now on the line has to pass (x, y), too: at most `tolerance` quarters above or below it or, where it is steep,
 * beside it. That is never further away, and needs no root. square: of its distance, in the upper half. */
static inline sector
narrow_sector(const sector *s, __m128i at, __m128i swapped, __m128i square, const closeness *c)
{
    sector made = sector_of_vertex(at, swapped, c);
    __m128i apart = _mm_shuffle_epi32(_mm_cmpgt_epi64(square, c->square), _MM_SHUFFLE(3, 2, 3, 2));
    __m128i turns = subtract_halves(_mm_mul_epi32(made.left, swap_halves(s->left)),
                                    _mm_mul_epi32(s->right, swap_halves(made.right)));
    turns = _mm_andnot_si128(_mm_srai_epi32(turns, 31), apart);
    made.left = _mm_blendv_epi8(s->left, made.left, _mm_shuffle_epi32(turns, _MM_SHUFFLE(1, 1, 1, 1)));
    made.right = _mm_blendv_epi8(s->right, made.right, _mm_shuffle_epi32(turns, _MM_SHUFFLE(3, 3, 3, 3)));
    made.far = _mm_blendv_epi8(s->far, upper_half(square), apart);
    return made;
}

/* The directions where the vertex is the first one behind the anchor. */
static inline sector
begin_sector(__m128i at, const closeness *c)
{
    sector made = sector_of_vertex(at, swap_halves(at), c);
    __m128i squares = _mm_mul_epi32(at, at), square = _mm_add_epi64(squares, swap_halves(squares));
    __m128i apart = _mm_cmpgt_epi64(square, _mm_shuffle_epi32(c->square, _MM_SHUFFLE(3, 2, 3, 2)));
    return (sector){ .left = _mm_and_si128(made.left, apart),
                     .right = _mm_and_si128(made.right, apart),
                     .far = upper_half(_mm_and_si128(square, apart)) };
}

static inline sector
choose_sector(const sector *no, const sector *yes, __m128i which)
{
    return (sector){ .left = _mm_blendv_epi8(no->left, yes->left, which),
                     .right = _mm_blendv_epi8(no->right, yes->right, which),
                     .far = _mm_blendv_epi8(no->far, yes->far, which) };
}

static inline __m128i
load_vertex(const mc_shape_point *p)
{
    return _mm_shuffle_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p), _MM_SHUFFLE(1, 1, 0, 0));
}

static inline void
store_vertex(mc_shape_point *p, __m128i at)
{
    _mm_storel_epi64((__m128i *)(void *)p, _mm_shuffle_epi32(at, _MM_SHUFFLE(3, 3, 2, 0)));
}

/* Writes what is left of a part, for which there is room for one vertex more than it has; returns how many. */
static int
simplify_part(mc_shape_point *out, const mc_shape_point *points, int count, bool closed, int64_t tolerance)
{
    const closeness c = { .off = _mm_set_epi64x(tolerance, -tolerance),
                          .square = _mm_set_epi64x(tolerance * tolerance / (QUARTERS * QUARTERS), 0) };
    sector s = { _mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128() };
    __m128i anchor = load_vertex(points), last = anchor;
    int kept = 1;
    out[0] = points[0];
    for (int i = 1; i < count + closed; i++) {
        __m128i p = load_vertex(&points[i == count ? 0 : i]), at = _mm_sub_epi32(p, anchor), swapped = swap_halves(at);
        /* The line passes between both, does not turn back, and goes on. */
        __m128i between = subtract_halves(_mm_mul_epi32(s.right, swapped), _mm_mul_epi32(s.left, swapped));
        __m128i ahead = add_halves(_mm_mul_epi32(s.right, at), _mm_mul_epi32(at, at));
        __m128i below = _mm_or_si128(between, _mm_sub_epi64(ahead, s.far));
        __m128i fails = _mm_cmpgt_epi64(_mm_setzero_si128(), _mm_or_si128(below, swap_halves(below)));
        sector goes_on = narrow_sector(&s, at, swapped, ahead, &c), begins = begin_sector(_mm_sub_epi32(p, last), &c);
        store_vertex(&out[kept], last); /* written over by the next one unless it is kept */
        kept -= _mm_cvtsi128_si32(fails);
        anchor = _mm_blendv_epi8(anchor, last, fails);
        s = choose_sector(&goes_on, &begins, fails);
        last = p;
    }
    if (!closed && !mc_shape_same_point(out[kept - 1], points[count - 1]))
        out[kept++] = points[count - 1];
    return kept;
}

#else

/* One of two numbers by a mask of all bits or none. Whether a vertex is kept cannot be foreseen: there are no branches
 * on the way there. */
static inline int64_t
select_by_mask(int64_t mask, int64_t yes, int64_t no)
{
    return no ^ ((yes ^ no) & mask);
}

/* The directions from an anchor in which a line passes all vertices since then closely enough. */
typedef struct sector {
    int64_t left_x, left_y, right_x, right_y; /* all 0: every direction */
    int64_t far;                              /* square of the distance of the last vertex that is not close to it */
} sector;

/* Whether the line from the anchor along (x, y) still does, and does not turn back: all bits, or none. */
static inline int64_t
sector_holds(const sector *s, int64_t x, int64_t y)
{
    int64_t right = s->right_x * y - s->right_y * x, left = x * s->left_y - y * s->left_x;
    int64_t ahead = s->right_x * x + s->right_y * y, beyond = x * x + y * y - s->far;
    return ~((right | left | ahead | beyond) >> 63);
}

/* From now on the line has to pass (x, y), too: at most `tolerance` quarters above or below it or, where it is steep,
 * beside it. That is never further away, and needs no root. */
static inline void
sector_narrow(sector *s, int64_t x, int64_t y, int64_t tolerance)
{
    int64_t x_sign = x >> 63, y_sign = y >> 63, square = x * x + y * y;
    int64_t steep = ((x ^ x_sign) - x_sign - (y ^ y_sign) + y_sign) >> 63;
    int64_t apart = (tolerance * tolerance - square * QUARTERS * QUARTERS) >> 63;
    int64_t off_x = steep & ((-tolerance ^ y_sign) - y_sign), off_y = ~steep & ((tolerance ^ x_sign) - x_sign);
    int64_t left_x = x * QUARTERS + off_x, left_y = y * QUARTERS + off_y;
    int64_t right_x = x * QUARTERS - off_x, right_y = y * QUARTERS - off_y;
    int64_t left = apart & ~((left_x * s->left_y - left_y * s->left_x) >> 63);
    int64_t right = apart & ~((s->right_x * right_y - s->right_y * right_x) >> 63);
    s->left_x = select_by_mask(left, left_x, s->left_x);
    s->left_y = select_by_mask(left, left_y, s->left_y);
    s->right_x = select_by_mask(right, right_x, s->right_x);
    s->right_y = select_by_mask(right, right_y, s->right_y);
    s->far = select_by_mask(apart, square, s->far);
}

/* Writes what is left of a part, for which there is room for one vertex more than it has; returns how many. */
static int
simplify_part(mc_shape_point *out, const mc_shape_point *points, int count, bool closed, int64_t tolerance)
{
    sector s = { 0 };
    mc_shape_point anchor = points[0], last = anchor;
    int kept = 1;
    out[0] = last;
    for (int i = 1; i < count + closed; i++) {
        mc_shape_point p = points[i == count ? 0 : i];
        int64_t holds = sector_holds(&s, (int64_t)p.x - anchor.x, (int64_t)p.y - anchor.y);
        out[kept] = last; /* written over by the next one unless it is kept */
        kept += (int)(holds + 1);
        anchor.x = (int32_t)select_by_mask(holds, anchor.x, last.x);
        anchor.y = (int32_t)select_by_mask(holds, anchor.y, last.y);
        s = (sector){ s.left_x & holds, s.left_y & holds, s.right_x & holds, s.right_y & holds, s.far & holds };
        sector_narrow(&s, (int64_t)p.x - anchor.x, (int64_t)p.y - anchor.y, tolerance);
        last = p;
    }
    if (!closed && !mc_shape_same_point(out[kept - 1], last))
        out[kept++] = last;
    return kept;
}

#endif

#ifdef __SSE4_2__
/* Writes what is left of all parts, for which there is room; false where the shape is too large for that. */
static bool
simplify_small_shape(mc_shape *out, const mc_shape *in, int64_t tolerance)
{
    mc_shape_point middle;
    if (!mc_simplify_is_small(&middle, in, tolerance))
        return false;
    for (int part = 0; part < in->part_count; part++) {
        int begin = mc_shape_part_begin(in, part);
        out->point_count +=
            mc_simplify_small_part(out->points + out->point_count, in->points + begin, in->ends[part] - begin,
                                   in->kind == MC_SHAPE_POLYGONS, tolerance, middle);
        mc_shape_end_part(out);
    }
    return true;
}
#endif

void
mc_shape_simplify(mc_shape *out, const mc_shape *in, double tolerance)
{
    mc_shape_clear(out, in->kind);
    if (!mc_shape_reserve(out, in->point_count + in->part_count + 1))
        return;
#ifdef __SSE4_2__
    if (simplify_small_shape(out, in, (int64_t)(tolerance * QUARTERS)))
        return;
#endif
    for (int part = 0; part < in->part_count; part++) {
        int begin = mc_shape_part_begin(in, part);
        out->point_count += simplify_part(out->points + out->point_count, in->points + begin, in->ends[part] - begin,
                                          in->kind == MC_SHAPE_POLYGONS, (int64_t)(tolerance * QUARTERS));
        mc_shape_end_part(out);
    }
}
