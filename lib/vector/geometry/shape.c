/* Shapes in pixels: see shape.h. */
#include "vector/geometry/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

enum { FIRST_POINTS = 256, FIRST_PARTS = 16, CHUNK = 1024 /* vertices that room is made for at a time */ };

void
mc_shape_clear(mc_shape *shape, mc_shape_kind kind)
{
    shape->kind = kind;
    shape->point_count = 0;
    shape->part_count = 0;
    shape->failed = false;
    shape->running = false;
    shape->far = false;
}

void
mc_shape_free(mc_shape *shape)
{
    free(shape->points);
    free(shape->ends);
    *shape = (mc_shape){ 0 };
}

/* Room for one more point; false, and the shape is marked, where there cannot be any. */
static bool
grow_points(mc_shape *shape)
{
    int room = shape->point_room == 0 ? FIRST_POINTS : shape->point_room * 2;
    mc_shape_point *points = room > MC_SHAPE_POINTS_MAX ? NULL : realloc(shape->points, sizeof(*points) * (size_t)room);
    if (points == NULL) {
        shape->failed = true;
        return false;
    }
    shape->points = points;
    shape->point_room = room;
    return true;
}

void
mc_shape_add(mc_shape *shape, int32_t x, int32_t y)
{
    if (shape->failed || (shape->point_count == shape->point_room && !grow_points(shape)))
        return;
    shape->points[shape->point_count++] = (mc_shape_point){ x, y };
}

bool
mc_shape_reserve(mc_shape *shape, int more)
{
    while (!shape->failed && shape->point_room - shape->point_count < more)
        (void)grow_points(shape);
    return !shape->failed;
}

static mc_shape_point
midpoint_of(mc_shape_point a, mc_shape_point b)
{
    return (mc_shape_point){ (a.x + b.x) >> 1, (a.y + b.y) >> 1 };
}

static inline bool
shares_cell(mc_shape_point a, mc_shape_point b, int cell_bits)
{
    return ((uint32_t)((a.x ^ b.x) | (a.y ^ b.y)) >> cell_bits) == 0;
}

/* The last point, so far the last vertex of its run, becomes what stands for the run. */
static void
end_vertex_run(mc_shape *shape, int begin)
{
    mc_shape_point *point = &shape->points[shape->point_count - 1];
    bool first = shape->point_count - 1 == begin;
    if (first)
        shape->first_run_last = *point;
    *point = first && shape->kind == MC_SHAPE_LINES ? shape->run_first : midpoint_of(shape->run_first, *point);
}

/* The last run of a part: a line ends where its last vertex is, a ring's last run may be the start of its first. */
static void
end_last_run(mc_shape *shape, int begin)
{
    int count = shape->point_count - begin;
    shape->running = false;
    if (count <= 0)
        return;
    mc_shape_point last = shape->points[shape->point_count - 1];
    if (shape->kind == MC_SHAPE_LINES && count == 1 && !mc_shape_same_point(shape->run_first, last)) {
        shape->points[begin] = shape->run_first;
        mc_shape_add(shape, last.x, last.y);
    } else if (shape->kind != MC_SHAPE_LINES && count > 1 &&
               shares_cell(last, shape->first_run_last, shape->run_bits)) {
        shape->points[begin] = midpoint_of(shape->run_first, shape->first_run_last);
        shape->point_count--;
    } else if (shape->kind != MC_SHAPE_LINES)
        shape->points[shape->point_count - 1] = midpoint_of(shape->run_first, last);
}

void
mc_shape_end_part(mc_shape *shape)
{
    static const int needed[] = { [MC_SHAPE_POINTS] = 1, [MC_SHAPE_LINES] = 2, [MC_SHAPE_POLYGONS] = 3 };
    int begin = mc_shape_part_begin(shape, shape->part_count);
    bool keep = shape->running && shape->keep_small && shape->kind == MC_SHAPE_POLYGONS;
    if (shape->running)
        end_last_run(shape, begin);
    if (shape->kind == MC_SHAPE_POLYGONS)
        while (shape->point_count - begin > 1 &&
               mc_shape_same_point(shape->points[begin], shape->points[shape->point_count - 1]))
            shape->point_count--;
    while (keep && shape->point_count - begin > 0 && shape->point_count - begin < 3 && !shape->failed) {
        mc_shape_point last = shape->points[shape->point_count - 1]; /* the next corner, as near as can be */
        mc_shape_add(shape, last.x + (shape->point_count - begin == 1), last.y + (shape->point_count - begin == 2));
    }
    if (shape->failed || shape->point_count - begin < needed[shape->kind]) {
        shape->point_count = begin;
        return;
    }
    if (shape->part_count == shape->part_room) {
        int room = shape->part_room == 0 ? FIRST_PARTS : shape->part_room * 2;
        int *ends = realloc(shape->ends, sizeof(*ends) * (size_t)room);
        if (ends == NULL) {
            shape->failed = true;
            shape->point_count = begin;
            return;
        }
        shape->ends = ends;
        shape->part_room = room;
    }
    shape->ends[shape->part_count++] = shape->point_count;
}

/* Whole numbers, which take half of the time: each step is below 2^57. */
static bool
runs_backward(const mc_shape_point *points, int count)
{
    enum { FEW = 64 };
    int64_t twice = 0;
    if (count >= FEW)
        return mc_shape_twice_area(points, count) < 0;
    for (int i = 1; i + 1 < count; i++)
        twice += ((int64_t)points[i].x - points[0].x) * ((int64_t)points[i + 1].y - points[0].y) -
                 ((int64_t)points[i + 1].x - points[0].x) * ((int64_t)points[i].y - points[0].y);
    return twice < 0;
}

void
mc_shape_end_ring(mc_shape *shape, bool hole)
{
    int parts = shape->part_count, begin = mc_shape_part_begin(shape, shape->part_count);
    mc_shape_end_part(shape);
    if (shape->part_count == parts)
        return;
    mc_shape_point *points = shape->points + begin;
    int count = shape->point_count - begin;
    if (runs_backward(points, count) == hole)
        return;
    for (int i = 0; i < count / 2; i++) {
        mc_shape_point swap = points[i];
        points[i] = points[count - 1 - i];
        points[count - 1 - i] = swap;
    }
}

#ifdef __SSE4_1__
/* Two points at once. */
bool
mc_shape_bounds(const mc_shape *shape, int32_t *minx, int32_t *miny, int32_t *maxx, int32_t *maxy)
{
    const mc_shape_point *points = shape->points;
    int count = shape->point_count;
    if (count == 0)
        return false;
    __m128i first = _mm_set1_epi64x((int64_t)((uint64_t)(uint32_t)points[0].y << 32 | (uint32_t)points[0].x));
    __m128i least = first, most = first;
    for (int i = count & 1; i < count; i += 2) {
        __m128i two = _mm_loadu_si128((const __m128i *)(const void *)(points + i));
        least = _mm_min_epi32(least, two);
        most = _mm_max_epi32(most, two);
    }
    least = _mm_min_epi32(least, _mm_srli_si128(least, 8));
    most = _mm_max_epi32(most, _mm_srli_si128(most, 8));
    *minx = _mm_extract_epi32(least, 0);
    *miny = _mm_extract_epi32(least, 1);
    *maxx = _mm_extract_epi32(most, 0);
    *maxy = _mm_extract_epi32(most, 1);
    return true;
}
#else
bool
mc_shape_bounds(const mc_shape *shape, int32_t *minx, int32_t *miny, int32_t *maxx, int32_t *maxy)
{
    if (shape->point_count == 0)
        return false;
    mc_shape_point low = shape->points[0], high = low;
    for (int i = 1; i < shape->point_count; i++) {
        mc_shape_point p = shape->points[i];
        low = (mc_shape_point){ p.x < low.x ? p.x : low.x, p.y < low.y ? p.y : low.y };
        high = (mc_shape_point){ p.x > high.x ? p.x : high.x, p.y > high.y ? p.y : high.y };
    }
    *minx = low.x;
    *miny = low.y;
    *maxx = high.x;
    *maxy = high.y;
    return true;
}
#endif

static int
shift_of(const mc_pixel_grid *pixel_grid)
{
    return pixel_grid->thinning <= 1 ? 0 : 31 - __builtin_clz((unsigned)pixel_grid->thinning);
}

/* A snapped vertex of a part that begins at `begin`. */
static inline void
add_snapped(mc_shape *shape, const mc_pixel_grid *pixel_grid, mc_shape_point p, int begin, int cell_bits)
{
    if (shape->point_count > begin) {
        mc_shape_point *last = &shape->points[shape->point_count - 1];
        if (shares_cell(*last, p, cell_bits)) {
            *last = p;
            return;
        }
        end_vertex_run(shape, begin);
    }
    mc_shape_add(shape, p.x, p.y);
    shape->run_first = p;
    shape->run_bits = cell_bits;
    shape->keep_small = pixel_grid->keep_small;
    shape->running = true;
}

/* ---- Far away ---- */

/* A square around the map, of which no more than this is missing to MC_SHAPE_REACH: its sides lie at multiples of this
 * on the endless pixel grid, so that neighbouring tiles have the same one. */
enum { NEAR = MC_SHAPE_REACH / 2 };

typedef struct shape_square {
    double low[2], high[2];
} shape_square;

static shape_square
square_around(const mc_pixel_grid *pixel_grid)
{
    const double corner[2] = { (double)pixel_grid->left * MC_SUBPIXELS, (double)pixel_grid->top * MC_SUBPIXELS };
    shape_square made;
    for (int i = 0; i < 2; i++) {
        made.low[i] = ceil((corner[i] - MC_SHAPE_REACH) / NEAR) * NEAR - corner[i];
        made.high[i] = floor((corner[i] + MC_SHAPE_REACH) / NEAR) * NEAR - corner[i];
    }
    return made;
}

static double
clamp_coordinate(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static mc_shape_point
nearest_in_square(const shape_square *s, const double at[2])
{
    return (mc_shape_point){ (int32_t)clamp_coordinate(at[0], s->low[0], s->high[0]),
                             (int32_t)clamp_coordinate(at[1], s->low[1], s->high[1]) };
}

/*
 * An edge that is moved into the square has a bend wherever it crosses one of the lines that the sides lie on. Reckoned
 * from its first end by differences only, which are the same in every tile.
 */
static void
add_bends(mc_shape *shape, const mc_pixel_grid *pixel_grid, const shape_square *s, const double from[2],
          const double to[2])
{
    double parts[4];
    int count = 0, begin = mc_shape_part_begin(shape, shape->part_count), cell_bits = shift_of(pixel_grid);
    for (int i = 0; i < 4; i++) {
        int axis = i / 2;
        double line = i % 2 == 0 ? s->low[axis] : s->high[axis];
        double part = (line - from[axis]) / (to[axis] - from[axis]);
        if (!(part > 0 && part < 1))
            continue;
        int at = count++;
        for (; at > 0 && parts[at - 1] > part; at--)
            parts[at] = parts[at - 1];
        parts[at] = part;
    }
    for (int i = 0; i < count; i++) {
        double at[2];
        for (int axis = 0; axis < 2; axis++)
            at[axis] = from[axis] + rint(parts[i] * (to[axis] - from[axis]));
        add_snapped(shape, pixel_grid, nearest_in_square(s, at), begin, cell_bits);
    }
}

static void
add_far(mc_shape *shape, const mc_pixel_grid *pixel_grid, const double at[2])
{
    const shape_square s = square_around(pixel_grid);
    const double from[2] = { shape->running ? shape->points[shape->point_count - 1].x : 0,
                             shape->running ? shape->points[shape->point_count - 1].y : 0 };
    const bool was_far = shape->running && shape->far;
    shape->far = at[0] < s.low[0] || at[0] > s.high[0] || at[1] < s.low[1] || at[1] > s.high[1];
    if (shape->running && (was_far || shape->far) && shape->kind != MC_SHAPE_POINTS)
        add_bends(shape, pixel_grid, &s, was_far ? shape->far_at : from, at);
    memcpy(shape->far_at, at, sizeof(shape->far_at));
    add_snapped(shape, pixel_grid, nearest_in_square(&s, at), mc_shape_part_begin(shape, shape->part_count),
                shift_of(pixel_grid));
}

bool
mc_shape_add_vertex(mc_shape *shape, const mc_pixel_grid *pixel_grid, double x, double y)
{
    const double most = 1e15; /* differences of these are exact */
    double px = rint((x - pixel_grid->x0) * pixel_grid->per_x * MC_SUBPIXELS);
    double py = rint((pixel_grid->y0 - y) * pixel_grid->per_y * MC_SUBPIXELS);
    if (!isfinite(px) || !isfinite(py))
        return false;
    const double at[2] = { clamp_coordinate(px - (double)pixel_grid->left * MC_SUBPIXELS, -most, most),
                           clamp_coordinate(py - (double)pixel_grid->top * MC_SUBPIXELS, -most, most) };
    const bool near = fabs(at[0]) <= NEAR && fabs(at[1]) <= NEAR;
    if (!near || (shape->running && shape->far)) {
        add_far(shape, pixel_grid, at);
        return true;
    }
    shape->far = false;
    const mc_shape_point p = { (int32_t)at[0], (int32_t)at[1] };
    add_snapped(shape, pixel_grid, p, mc_shape_part_begin(shape, shape->part_count), shift_of(pixel_grid));
    return true;
}

/* ---- Many ---- */

static bool
add_one_by_one(mc_shape *shape, const mc_pixel_grid *pixel_grid, const uint8_t *bytes, size_t stride, size_t count,
               bool swapped)
{
    bool finite = true;
    for (; count > 0; count--, bytes += stride) {
        uint64_t bits[2];
        double at[2];
        memcpy(bits, bytes, 16);
        for (int i = 0; swapped && i < 2; i++)
            bits[i] = __builtin_bswap64(bits[i]);
        memcpy(at, bits, 16);
        finite &= mc_shape_add_vertex(shape, pixel_grid, at[0], at[1]);
    }
    return finite;
}

#ifdef __SSE4_1__
/*
 * From units of the CRS to the pixel grid, both coordinates at once: the same arithmetic as above, since the factors
 * differ by powers of two and signs only. A number plus 1.5 * 2^52 is rounded as rint() does, and its lowest bits are
 * the whole number; where those do not fit, or it is none, the highest bits are not 0 in the end.
 */
typedef struct snapping {
    __m128d origin, scale;
    __m128i corner, far; /* far: what any vertex had in it, counted from -NEAR */
    bool swapped;
} snapping;

static const double SNAPPING_SHIFT = 0x1.8p52;

static snapping
begin_snapping(const mc_pixel_grid *pixel_grid, bool swapped)
{
    const __m128i shift = _mm_castpd_si128(_mm_set1_pd(SNAPPING_SHIFT));
    const __m128i corner = _mm_slli_epi64(_mm_set_epi64x(pixel_grid->top, pixel_grid->left), 8 /* MC_SUBPIXELS */);
    return (snapping){ .origin = _mm_set_pd(pixel_grid->y0, pixel_grid->x0),
                       .scale = _mm_set_pd(-pixel_grid->per_y * MC_SUBPIXELS, pixel_grid->per_x * MC_SUBPIXELS),
                       .corner = _mm_add_epi64(shift, corner),
                       .far = _mm_setzero_si128(),
                       .swapped = swapped };
}

static inline __m128i
snap_vertex(snapping *s, const uint8_t *bytes)
{
    const __m128i other = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    __m128i raw = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    __m128d at = _mm_castsi128_pd(s->swapped ? _mm_shuffle_epi8(raw, other) : raw);
    at = _mm_add_pd(_mm_mul_pd(_mm_sub_pd(at, s->origin), s->scale), _mm_set1_pd(SNAPPING_SHIFT));
    __m128i whole = _mm_sub_epi64(_mm_castpd_si128(at), s->corner);
    s->far = _mm_or_si128(s->far, _mm_add_epi64(whole, _mm_set1_epi64x(NEAR)));
    return _mm_shuffle_epi32(whole, _MM_SHUFFLE(3, 3, 2, 0));
}

/* Whether all vertices were near. */
static inline bool
have_been_near(const snapping *s)
{
    return _mm_testz_si128(s->far, _mm_set1_epi64x(-2 * (int64_t)NEAR));
}

/* As add_snapped for vertices behind the first run, without a branch: whether a run goes on cannot be foreseen. There
 * is room for all of them. */
static void
add_runs(mc_shape *shape, snapping *s, const uint8_t *bytes, size_t stride, size_t count, int cell_bits)
{
    mc_shape_point *out = &shape->points[shape->point_count - 1];
    const __m128i shifted = _mm_cvtsi32_si128(cell_bits);
    __m128i last = _mm_loadl_epi64((const __m128i *)(const void *)out);
    __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)&shape->run_first);
    for (; count > 0; count--, bytes += stride) {
        __m128i p = snap_vertex(s, bytes);
        __m128i same = _mm_cmpeq_epi64(_mm_srl_epi32(_mm_xor_si128(last, p), shifted), _mm_setzero_si128());
        /* What stands for the run, if it ends here; else it is written over. */
        _mm_storel_epi64((__m128i *)(void *)out, _mm_srai_epi32(_mm_add_epi32(first, last), 1));
        out += 1 + _mm_cvtsi128_si64(same);
        first = _mm_blendv_epi8(p, first, same);
        last = p;
    }
    _mm_storel_epi64((__m128i *)(void *)out, last);
    _mm_storel_epi64((__m128i *)(void *)&shape->run_first, first);
    shape->point_count = (int)(out - shape->points) + 1;
}

/* Adds all as if they were near; false where one is not, or there is no memory: then some of it is wrong. */
static bool
add_near_vertices(mc_shape *shape, const mc_pixel_grid *pixel_grid, const uint8_t *bytes, size_t stride, size_t count,
                  bool swapped)
{
    snapping s = begin_snapping(pixel_grid, swapped);
    int begin = mc_shape_part_begin(shape, shape->part_count), cell_bits = shift_of(pixel_grid);
    for (; count > 0 && (!shape->running || shape->point_count - begin < 2); count--, bytes += stride) {
        mc_shape_point p;
        _mm_storel_epi64((__m128i *)(void *)&p, snap_vertex(&s, bytes));
        if (!have_been_near(&s))
            return false;
        add_snapped(shape, pixel_grid, p, begin, cell_bits);
        if (shape->failed)
            return false;
    }
    while (count > 0) {
        size_t some = count < CHUNK ? count : CHUNK;
        if (!mc_shape_reserve(shape, (int)some))
            return false;
        add_runs(shape, &s, bytes, stride, some, cell_bits);
        count -= some;
        bytes += some * stride;
    }
    return have_been_near(&s);
}

bool
mc_shape_add_vertices(mc_shape *shape, const mc_pixel_grid *pixel_grid, const uint8_t *bytes, size_t stride,
                      size_t count, bool swapped)
{
    const mc_shape before = *shape;
    const mc_shape_point last = shape->running ? shape->points[shape->point_count - 1] : (mc_shape_point){ 0, 0 };
    const bool goes_on = shape->running && shape->far;
    shape->far = goes_on;
    if (!goes_on && (add_near_vertices(shape, pixel_grid, bytes, stride, count, swapped) || shape->failed))
        return true;
    mc_shape_point *points = shape->points; /* once more, from where it was */
    int room = shape->point_room;
    *shape = before;
    shape->points = points;
    shape->point_room = room;
    if (shape->running)
        shape->points[shape->point_count - 1] = last;
    return add_one_by_one(shape, pixel_grid, bytes, stride, count, swapped);
}
#else
bool
mc_shape_add_vertices(mc_shape *shape, const mc_pixel_grid *pixel_grid, const uint8_t *bytes, size_t stride,
                      size_t count, bool swapped)
{
    return add_one_by_one(shape, pixel_grid, bytes, stride, count, swapped);
}
#endif
