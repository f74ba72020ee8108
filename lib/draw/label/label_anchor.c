/*
 * Where a label belongs on a geometry: only what is visible in the map counts, but for small areas across its edge,
 * which belong to that map where their middle is. For areas a point far from all edges, found by parting cells and
 * following the most promising one (the pole of inaccessibility, Garcia-Castellanos and Lombardo 2007); heights count
 * double, since labels are wider than high.
 */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include "draw/label/label_private.h"

enum {
    PROBES = 48,
    CELLS_MAX = PROBES * 4 + 64,
    WORK = 200000 /* distances to edges for one area */,
    PROBES_LEAST = 8,
    LANES = 4
};

#define STRETCH 2.0F
#define COMPACT 0.7F       /* of the largest circle that the bounds allow: then the middle is good enough */
#define SMALL 32.0F        /* pixels: a label covers such an area wherever it stands */
#define COMPACT_SMALL 0.3F /* for those */
#define BETTER 1.2F        /* how much farther from the edges than the middle a point must be to be taken */

typedef struct point {
    float x, y; /* y stretched */
} point;

typedef struct label_anchor_ring {
    point *points;
    int count;
    float minx, miny, maxx, maxy;
    float area; /* holes are below 0 */
} label_anchor_ring;

/* ---- Cutting rings (Sutherland and Hodgman, 1974) ---- */

/* How far inside of a side of the frame a point is: left, top, right, bottom. */
static double
inside_by(const double p[2], int side, const mc_label_frame *frame)
{
    switch (side) {
    case 0:
        return p[0];
    case 1:
        return p[1];
    case 2:
        return frame->width - p[0];
    default:
        return frame->height - p[1];
    }
}

/* Cuts the ring of `count` points in `from` by one side, into `into` (room for twice as many). */
static int
cut_side(double (*into)[2], double (*from)[2], int count, int side, const mc_label_frame *frame)
{
    int made = 0;
    for (int i = 0; i < count; i++) {
        const double *a = from[i == 0 ? count - 1 : i - 1], *b = from[i];
        double da = inside_by(a, side, frame), db = inside_by(b, side, frame);
        if ((da >= 0) != (db >= 0)) {
            double t = da / (da - db);
            into[made][0] = a[0] + t * (b[0] - a[0]);
            into[made++][1] = a[1] + t * (b[1] - a[1]);
        }
        if (db >= 0) {
            into[made][0] = b[0];
            into[made++][1] = b[1];
        }
    }
    return made;
}

static void
measure_ring(label_anchor_ring *made)
{
    double twice = 0;
    made->minx = made->miny = INFINITY;
    made->maxx = made->maxy = -INFINITY;
    for (int i = 0; i < made->count; i++) {
        point p = made->points[i], q = made->points[i + 1 == made->count ? 0 : i + 1];
        twice += (double)p.x * q.y - (double)q.x * p.y;
        made->minx = p.x < made->minx ? p.x : made->minx; /* fminf would be a call */
        made->maxx = p.x > made->maxx ? p.x : made->maxx;
        made->miny = p.y < made->miny ? p.y : made->miny;
        made->maxy = p.y > made->maxy ? p.y : made->maxy;
    }
    made->area = (float)(twice / 2 / STRETCH);
}

typedef struct bounds {
    int32_t minx, miny, maxx, maxy;
} bounds;

static bounds
bounds_of_points(const mc_shape_point *points, int count)
{
    bounds b = { points[0].x, points[0].y, points[0].x, points[0].y };
    for (int i = 1; i < count; i++) {
        b.minx = points[i].x < b.minx ? points[i].x : b.minx;
        b.maxx = points[i].x > b.maxx ? points[i].x : b.maxx;
        b.miny = points[i].y < b.miny ? points[i].y : b.miny;
        b.maxy = points[i].y > b.maxy ? points[i].y : b.maxy;
    }
    return b;
}

static void
take_ring(label_anchor_ring *made, const mc_shape_point *points, int count, apr_pool_t *scratch)
{
    const float unit = 1.0F / MC_SUBPIXELS;
    made->count = count;
    made->points = apr_palloc(scratch, sizeof(point) * (size_t)count);
    for (int i = 0; i < count; i++)
        made->points[i] = (point){ (float)points[i].x * unit, (float)points[i].y * unit * STRETCH };
    measure_ring(made);
}

/* The visible part of a ring, or all of it (frame NULL); false where there is none. */
static bool
clip_ring_to_frame(label_anchor_ring *made, const mc_shape_point *points, int count, const mc_label_frame *frame,
                   apr_pool_t *scratch)
{
    if (frame == NULL) {
        take_ring(made, points, count, scratch);
        return true;
    }
    bounds b = bounds_of_points(points, count);
    if (b.maxx < 0 || b.maxy < 0 || b.minx > frame->width * MC_SUBPIXELS || b.miny > frame->height * MC_SUBPIXELS)
        return false;
    bool cut =
        b.minx < 0 || b.miny < 0 || b.maxx > frame->width * MC_SUBPIXELS || b.maxy > frame->height * MC_SUBPIXELS;
    if (!cut) {
        take_ring(made, points, count, scratch);
        return true;
    }
    /* A side adds at most one point for each pair that crosses it. */
    double(*from)[2] = malloc(sizeof(*from) * ((size_t)count * 6 + 16)),
    (*into)[2] = malloc(sizeof(*into) * ((size_t)count * 6 + 16));
    int left = 0;
    if (from != NULL && into != NULL) {
        for (left = 0; left < count; left++) {
            from[left][0] = points[left].x / (double)MC_SUBPIXELS;
            from[left][1] = points[left].y / (double)MC_SUBPIXELS;
        }
        for (int side = 0; side < 4 && left > 0; side++) {
            left = cut_side(into, from, left, side, frame);
            double(*swap)[2] = from;
            from = into;
            into = swap;
        }
    }
    made->count = left;
    made->points = apr_palloc(scratch, sizeof(point) * (size_t)(left + 1));
    for (int i = 0; i < left; i++)
        made->points[i] = (point){ (float)from[i][0], (float)from[i][1] * STRETCH };
    free(from);
    free(into);
    if (left >= 3)
        measure_ring(made);
    return left >= 3;
}

/* ---- The pole ---- */

/* All edges of an area, member by member; filled up to a multiple of LANES with edges that are far away. */
typedef struct area {
    float *x, *y, *dx, *dy; /* from a point to the next one */
    float *per_length2;     /* 0 for a point */
    float *slope;           /* dx / dy; 0 where the edge is horizontal */
    int count;
} area;

static void
add_edges(area *in, const label_anchor_ring *r)
{
    point a = r->points[r->count - 1];
    for (int i = 0; i < r->count; i++) {
        point b = r->points[i];
        int at = in->count++;
        float dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
        in->x[at] = a.x;
        in->y[at] = a.y;
        in->dx[at] = dx;
        in->dy[at] = dy;
        in->per_length2[at] = length2 > 0 ? 1 / length2 : 0;
        in->slope[at] = dy != 0 ? dx / dy : 0;
        a = b;
    }
}

static void
make_area(area *in, const label_anchor_ring *rings, int count, apr_pool_t *scratch)
{
    size_t edges = LANES;
    for (int i = 0; i < count; i++)
        edges += (size_t)rings[i].count;
    float **const members[] = { &in->x, &in->y, &in->dx, &in->dy, &in->per_length2, &in->slope };
    for (int i = 0; i < 6; i++)
        *members[i] = apr_palloc(scratch, sizeof(float) * edges);
    in->count = 0;
    for (int i = 0; i < count; i++)
        add_edges(in, &rings[i]);
    for (; in->count % LANES != 0; in->count++) {
        in->x[in->count] = in->y[in->count] = 1e9F;
        in->dx[in->count] = in->dy[in->count] = in->per_length2[in->count] = in->slope[in->count] = 0;
    }
}

#ifdef __SSE4_1__
/* Distance from the nearest edge; below 0 outside: an odd number of edges crosses the ray to the right from inside. */
static float
depth_in_area(const area *in, float x, float y)
{
    const __m128 zero = _mm_setzero_ps(), one = _mm_set1_ps(1), vx = _mm_set1_ps(x), vy = _mm_set1_ps(y);
    __m128 nearest = _mm_set1_ps(INFINITY), crossed = zero;
    for (int i = 0; i < in->count; i += LANES) {
        __m128 dx = _mm_loadu_ps(in->dx + i), dy = _mm_loadu_ps(in->dy + i);
        __m128 px = _mm_sub_ps(vx, _mm_loadu_ps(in->x + i)), py = _mm_sub_ps(vy, _mm_loadu_ps(in->y + i));
        __m128 above = _mm_xor_ps(_mm_cmpgt_ps(zero, py), _mm_cmpgt_ps(dy, py));
        __m128 left = _mm_cmplt_ps(px, _mm_mul_ps(py, _mm_loadu_ps(in->slope + i)));
        crossed = _mm_xor_ps(crossed, _mm_and_ps(above, left));
        __m128 t = _mm_mul_ps(_mm_add_ps(_mm_mul_ps(px, dx), _mm_mul_ps(py, dy)), _mm_loadu_ps(in->per_length2 + i));
        t = _mm_min_ps(_mm_max_ps(t, zero), one);
        px = _mm_sub_ps(px, _mm_mul_ps(t, dx));
        py = _mm_sub_ps(py, _mm_mul_ps(t, dy));
        nearest = _mm_min_ps(nearest, _mm_add_ps(_mm_mul_ps(px, px), _mm_mul_ps(py, py)));
    }
    float distances[LANES];
    _mm_storeu_ps(distances, _mm_sqrt_ps(nearest));
    float least = fminf(fminf(distances[0], distances[1]), fminf(distances[2], distances[3]));
    return __builtin_parity((unsigned)_mm_movemask_ps(crossed)) != 0 ? least : -least;
}
#else
static float
depth_in_area(const area *in, float x, float y)
{
    float nearest = INFINITY;
    bool inside = false;
    for (int i = 0; i < in->count; i++) {
        float px = x - in->x[i], py = y - in->y[i], dx = in->dx[i], dy = in->dy[i];
        if ((0 > py) != (dy > py) && px < py * in->slope[i])
            inside = !inside;
        float t = fminf(fmaxf((px * dx + py * dy) * in->per_length2[i], 0), 1);
        px -= t * dx;
        py -= t * dy;
        nearest = fminf(nearest, px * px + py * py);
    }
    return inside ? sqrtf(nearest) : -sqrtf(nearest);
}
#endif

typedef struct label_anchor_cell {
    float x, y, half, depth, most; /* most: no point of it is deeper */
} label_anchor_cell;

static label_anchor_cell
probe_cell(const area *in, float x, float y, float half)
{
    float d = depth_in_area(in, x, y);
    return (label_anchor_cell){ x, y, half, d, d + half * (float)M_SQRT2 };
}

static label_anchor_cell
probe_centroid(const area *in, const label_anchor_ring *outer)
{
    double x = 0, y = 0, twice = 0;
    point o = outer->points[0];
    for (int i = 1; i + 1 < outer->count; i++) {
        double ax = outer->points[i].x - o.x, ay = outer->points[i].y - o.y;
        double bx = outer->points[i + 1].x - o.x, by = outer->points[i + 1].y - o.y;
        double cross = ax * by - bx * ay;
        twice += cross;
        x += (ax + bx) * cross;
        y += (ay + by) * cross;
    }
    if (fabs(twice) < 1e-6)
        return probe_cell(in, (outer->minx + outer->maxx) / 2, (outer->miny + outer->maxy) / 2, 0);
    return probe_cell(in, o.x + (float)(x / twice / 3), o.y + (float)(y / twice / 3), 0);
}

static label_anchor_cell
find_deepest_cell(const area *in, const label_anchor_ring *outer, label_anchor_cell best)
{
    label_anchor_cell cells[CELLS_MAX];
    int count = 0, probes = in->count > WORK / PROBES ? WORK / in->count : PROBES;
    probes = probes < PROBES_LEAST ? PROBES_LEAST : probes;
    float width = outer->maxx - outer->minx, height = outer->maxy - outer->miny;
    float size = fmaxf(fminf(width, height), fmaxf(width, height) / 4);
    for (float x = outer->minx; x < outer->maxx && count < 32; x += size)
        for (float y = outer->miny; y < outer->maxy && count < 32; y += size)
            cells[count++] = probe_cell(in, x + size / 2, y + size / 2, size / 2);
    for (int used = count; count > 0 && used < probes;) {
        int at = 0;
        for (int i = 0; i < count; i++) {
            best = cells[i].depth > best.depth ? cells[i] : best;
            at = cells[i].most > cells[at].most ? i : at;
        }
        label_anchor_cell split = cells[at];
        cells[at] = cells[--count];
        if (split.most <= best.depth + fmaxf(0.5F, best.depth / 10))
            break;
        float half = split.half / 2;
        for (int i = 0; i < 4; i++, used++)
            cells[count++] =
                probe_cell(in, split.x + (i % 2 == 0 ? -half : half), split.y + (i < 2 ? -half : half), half);
    }
    for (int i = 0; i < count; i++)
        best = cells[i].depth > best.depth ? cells[i] : best;
    return best;
}

/* Whether the largest part crosses the edge of the map and is small enough to have one label only. */
static bool
is_shared(const mc_shape *polygons, const mc_label_frame *frame)
{
    double most = 0;
    bounds of = { 0, 0, 0, 0 };
    for (int part = 0, begin = 0; part < polygons->part_count; begin = polygons->ends[part++]) {
        const mc_shape_point *points = polygons->points + begin;
        int count = polygons->ends[part] - begin;
        double twice = 0; /* holes run the other way round: below 0 */
        for (int i = 1; i + 1 < count; i++)
            twice += (double)(points[i].x - points[0].x) * (points[i + 1].y - points[0].y) -
                     (double)(points[i + 1].x - points[0].x) * (points[i].y - points[0].y);
        if (twice <= most)
            continue;
        most = twice;
        of = bounds_of_points(points, count);
    }
    bool crosses =
        of.minx < 0 || of.miny < 0 || of.maxx > frame->width * MC_SUBPIXELS || of.maxy > frame->height * MC_SUBPIXELS;
    return crosses && of.maxx - of.minx <= frame->width * MC_SUBPIXELS / 2 &&
           of.maxy - of.miny <= frame->height * MC_SUBPIXELS / 2;
}

bool
mc_label_inside(double at[2], double *extent, const mc_shape *polygons, const mc_label_frame *frame,
                apr_pool_t *scratch)
{
    label_anchor_ring *rings = apr_palloc(scratch, sizeof(label_anchor_ring) * (size_t)(polygons->part_count + 1));
    const mc_label_frame *cut_by = is_shared(polygons, frame) ? NULL : frame;
    int count = 0, largest = -1;
    for (int part = 0, begin = 0; part < polygons->part_count; begin = polygons->ends[part++])
        if (clip_ring_to_frame(&rings[count], polygons->points + begin, polygons->ends[part] - begin, cut_by,
                               scratch)) {
            if (rings[count].area > 0 && (largest < 0 || rings[count].area > rings[largest].area))
                largest = count;
            count++;
        }
    if (largest < 0)
        return false;
    const label_anchor_ring outer = rings[largest];
    int kept = 0;
    for (int i = 0; i < count; i++) { /* what has nothing to do with the largest part goes */
        const label_anchor_ring *r = &rings[i];
        if (r->maxx >= outer.minx && r->minx <= outer.maxx && r->maxy >= outer.miny && r->miny <= outer.maxy)
            rings[kept++] = *r;
    }
    area in;
    make_area(&in, rings, kept, scratch);
    label_anchor_cell middle = probe_centroid(&in, &outer), best = middle;
    float width = outer.maxx - outer.minx, height = outer.maxy - outer.miny;
    bool small = fmaxf(width, height) < SMALL;
    if (middle.depth < (small ? COMPACT_SMALL : COMPACT) * fminf(width, height) / 2) {
        best = find_deepest_cell(&in, &outer, middle);
        if (middle.depth > 0 && best.depth < middle.depth * BETTER)
            best = middle;
    }
    at[0] = best.x;
    at[1] = best.y / STRETCH;
    *extent = outer.area;
    return best.depth > 0 && at[0] >= 0 && at[1] >= 0 && at[0] <= frame->width && at[1] <= frame->height;
}

/* ---- Lines ---- */

/* The part of a segment inside the frame (Liang and Barsky, 1984), as shares of it; false: none. */
static bool
clip_segment_to_frame(double *from, double *to, const double a[2], const double b[2], const mc_label_frame *frame)
{
    *from = 0;
    *to = 1;
    for (int side = 0; side < 4; side++) {
        double da = inside_by(a, side, frame), db = inside_by(b, side, frame);
        if (da < 0 && db < 0)
            return false;
        if (da < 0)
            *from = fmax(*from, da / (da - db));
        else if (db < 0)
            *to = fmin(*to, da / (da - db));
    }
    return *from < *to;
}

typedef struct label_anchor_builder {
    mc_label_pieces *pieces;
    int points;
    bool open; /* the last point is where the next segment may go on */
} label_anchor_builder;

static void
add_clipped_segment(label_anchor_builder *to, const double a[2], const double b[2], const mc_label_frame *frame)
{
    double from, until;
    if (!clip_segment_to_frame(&from, &until, a, b, frame)) {
        to->open = false;
        return;
    }
    mc_label_pieces *pieces = to->pieces;
    if (!to->open || from > 0) {
        pieces->points[to->points * 2] = (float)(a[0] + from * (b[0] - a[0]));
        pieces->points[to->points * 2 + 1] = (float)(a[1] + from * (b[1] - a[1]));
        to->points++;
        pieces->count++;
    }
    pieces->points[to->points * 2] = (float)(a[0] + until * (b[0] - a[0]));
    pieces->points[to->points * 2 + 1] = (float)(a[1] + until * (b[1] - a[1]));
    pieces->ends[pieces->count - 1] = ++to->points;
    to->open = until == 1;
}

void
mc_label_visible(mc_label_pieces *pieces, const mc_shape *shape, const mc_label_frame *frame, apr_pool_t *pool)
{
    size_t most = (size_t)(shape->point_count + shape->part_count) + 1; /* segments */
    *pieces = (mc_label_pieces){ .points = apr_palloc(pool, sizeof(float) * 4 * most),
                                 .ends = apr_palloc(pool, sizeof(int) * most) };
    label_anchor_builder to = { .pieces = pieces };
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        int end = shape->ends[part];
        bool ring = shape->kind == MC_SHAPE_POLYGONS;
        to.open = false;
        for (int i = ring ? begin : begin + 1; i < end; i++) {
            mc_shape_point p = shape->points[i > begin ? i - 1 : end - 1], q = shape->points[i];
            const double a[2] = { p.x / (double)MC_SUBPIXELS, p.y / (double)MC_SUBPIXELS };
            const double b[2] = { q.x / (double)MC_SUBPIXELS, q.y / (double)MC_SUBPIXELS };
            add_clipped_segment(&to, a, b, frame);
        }
    }
}

int
mc_label_longest(const mc_label_pieces *pieces, double *length)
{
    int best = -1;
    *length = 0;
    for (int i = 0, begin = 0; i < pieces->count; begin = pieces->ends[i++]) {
        double sum = 0;
        for (int p = begin + 1; p < pieces->ends[i]; p++)
            sum += hypot(pieces->points[p * 2] - pieces->points[p * 2 - 2],
                         pieces->points[p * 2 + 1] - pieces->points[p * 2 - 1]);
        if (sum > *length) {
            *length = sum;
            best = i;
        }
    }
    return best;
}
