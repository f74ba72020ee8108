/* Clipping and cleaning shapes of vector tiles, see mvt_shape.h; rings are cut in mvt_clip.c. */
#include "vector/mvt/mvt_shape.h"

#include <math.h>
#include <string.h>

void
mc_mvt_clip_points(mc_shape *out, const mc_shape *in, int low, int high)
{
    mc_shape_clear(out, in->kind);
    for (int i = 0; i < in->point_count; i++) {
        mc_shape_point p = in->points[i];
        if (p.x < low || p.x > high || p.y < low || p.y > high)
            continue;
        mc_shape_add(out, p.x, p.y);
        mc_shape_end_part(out);
    }
}

/* Narrows from..to to where `at` + t * `step` is within the bounds (Liang and Barsky). */
static bool
narrow_clip_range(double at, double step, double low, double high, double *from, double *to)
{
    if (step == 0)
        return at >= low && at <= high;
    double a = (low - at) / step, b = (high - at) / step;
    *from = fmax(*from, fmin(a, b));
    *to = fmin(*to, fmax(a, b));
    return *from <= *to;
}

static mc_shape_point
point_along_segment(mc_shape_point a, mc_shape_point b, double t)
{
    return (mc_shape_point){ (int32_t)lrint(a.x + t * (b.x - a.x)), (int32_t)lrint(a.y + t * (b.y - a.y)) };
}

/* Adds a vertex to the part that begins at `begin`, unless it is there. */
static void
add_new(mc_shape *out, int begin, mc_shape_point p)
{
    if (out->point_count == begin || !mc_shape_same_point(out->points[out->point_count - 1], p))
        mc_shape_add(out, p.x, p.y);
}

static void
clip_line_part(mc_shape *out, const mc_shape_point *points, int count, int low, int high)
{
    int begin = out->point_count;
    for (int i = 1; i < count; i++) {
        mc_shape_point a = points[i - 1], b = points[i];
        double from = 0, to = 1;
        if (!narrow_clip_range(a.x, (double)b.x - a.x, low, high, &from, &to) ||
            !narrow_clip_range(a.y, (double)b.y - a.y, low, high, &from, &to))
            continue;
        add_new(out, begin, from > 0 ? point_along_segment(a, b, from) : a);
        add_new(out, begin, to < 1 ? point_along_segment(a, b, to) : b);
        if (to < 1) {
            mc_shape_end_part(out);
            begin = out->point_count;
        }
    }
    mc_shape_end_part(out);
}

void
mc_mvt_clip_lines(mc_shape *out, const mc_shape *in, int low, int high)
{
    mc_shape_clear(out, in->kind);
    for (int part = 0; part < in->part_count; part++) {
        int begin = mc_shape_part_begin(in, part);
        clip_line_part(out, in->points + begin, in->ends[part] - begin, low, high);
    }
}

static int64_t
turn_cross_product(mc_shape_point a, mc_shape_point b, mc_shape_point c)
{
    return ((int64_t)b.x - a.x) * ((int64_t)c.y - b.y) - ((int64_t)b.y - a.y) * ((int64_t)c.x - b.x);
}

/* Drops vertices from the end of the part from `begin` on that do not turn on the way to `next`. */
static void
pop_straight(mc_shape *out, int begin, mc_shape_point next)
{
    while (out->point_count > begin) {
        const mc_shape_point *top = out->points + out->point_count - 1;
        bool straight = out->point_count - begin >= 2 && turn_cross_product(top[-1], top[0], next) == 0;
        if (!straight && !mc_shape_same_point(*top, next))
            return;
        out->point_count--;
    }
}

/* The same where the ring closes. */
static void
close_straight(mc_shape *out, int *begin)
{
    int first = *begin;
    for (bool changed = true; changed && out->point_count - first >= 3;) {
        int before = out->point_count - first;
        pop_straight(out, first, out->points[first]);
        if (out->point_count - first >= 3 &&
            turn_cross_product(out->points[out->point_count - 1], out->points[first], out->points[first + 1]) == 0)
            first++;
        changed = out->point_count - first != before;
    }
    if (first > *begin) { /* moved to where the part begins */
        for (int i = first; i < out->point_count; i++)
            out->points[*begin + i - first] = out->points[i];
        out->point_count -= first - *begin;
    }
}

void
mc_mvt_clean_rings(mc_shape *out, const mc_shape *in)
{
    mc_shape_clear(out, MC_SHAPE_POLYGONS);
    if (!mc_shape_reserve(out, in->point_count))
        return;
    for (int part = 0; part < in->part_count; part++) {
        int begin = out->point_count;
        for (int i = mc_shape_part_begin(in, part); i < in->ends[part]; i++) {
            pop_straight(out, begin, in->points[i]);
            out->points[out->point_count++] = in->points[i];
        }
        close_straight(out, &begin);
        mc_shape_end_part(out);
    }
}

/* Twice the area of a ring, positive where it runs clockwise on the screen (y down). */
static int64_t
ring_area(const mc_shape *shape, int part)
{
    const mc_shape_point *points = shape->points + mc_shape_part_begin(shape, part);
    int count = shape->ends[part] - mc_shape_part_begin(shape, part);
    int64_t twice = 0;
    for (int i = 1; i + 1 < count; i++)
        twice += ((int64_t)points[i].x - points[0].x) * ((int64_t)points[i + 1].y - points[0].y) -
                 ((int64_t)points[i + 1].x - points[0].x) * ((int64_t)points[i].y - points[0].y);
    return twice;
}

enum { SEARCHED_MAX = 16384 }; /* rings of a feature among which a hole looks for its outer one */

typedef struct mvt_shape_ring {
    int64_t area;
    int32_t minx, miny, maxx, maxy;
    int first_hole, last_hole, next_hole; /* a list behind each outer ring; -1: none */
} mvt_shape_ring;

static mvt_shape_ring
describe_ring(const mc_shape *shape, int part)
{
    mc_shape_point p = shape->points[mc_shape_part_begin(shape, part)];
    mvt_shape_ring r = { ring_area(shape, part), p.x, p.y, p.x, p.y, -1, -1, -1 };
    for (int i = mc_shape_part_begin(shape, part); i < shape->ends[part]; i++) {
        p = shape->points[i];
        r.minx = p.x < r.minx ? p.x : r.minx;
        r.maxx = p.x > r.maxx ? p.x : r.maxx;
        r.miny = p.y < r.miny ? p.y : r.miny;
        r.maxy = p.y > r.maxy ? p.y : r.maxy;
    }
    return r;
}

enum { HEIGHTS = 32 }; /* edges that are passed over together where they are above or below */

typedef struct mvt_heights {
    int32_t low, high;
} mvt_heights;

/* From where to where each run of edges reaches, as if all vertices were of one ring. */
static mvt_heights *
measure_heights(const mc_shape *shape, apr_pool_t *pool)
{
    int runs = (shape->point_count + HEIGHTS - 1) / HEIGHTS;
    mvt_heights *made = apr_palloc(pool, sizeof(*made) * (size_t)runs);
    for (int run = 0, i = 0; run < runs; run++) {
        mvt_heights found = { shape->points[i].y, shape->points[i].y };
        for (; i < shape->point_count && i <= (run + 1) * HEIGHTS; i++) {
            int32_t y = shape->points[i].y;
            found.low = y < found.low ? y : found.low;
            found.high = y > found.high ? y : found.high;
        }
        made[run] = found;
        i = (run + 1) * HEIGHTS;
    }
    return made;
}

/* False on the edge. Turns *inside where the edge is to the right of the point. */
static inline bool
pass_edge(bool *inside, mc_shape_point a, mc_shape_point b, mc_shape_point p)
{
    if ((a.y > p.y && b.y > p.y) || (a.y < p.y && b.y < p.y))
        return true;
    int64_t side = turn_cross_product(a, b, p);
    if (side == 0 && p.x >= (a.x < b.x ? a.x : b.x) && p.x <= (a.x > b.x ? a.x : b.x))
        return false;
    *inside ^= (a.y > p.y) != (b.y > p.y) && (side > 0) == (b.y > a.y);
    return true;
}

/* 1: inside, -1: outside, 0: on the ring. */
static int
locate_in_ring(const mc_shape *shape, const mvt_heights *heights, int part, mc_shape_point p)
{
    const mc_shape_point *points = shape->points;
    int begin = mc_shape_part_begin(shape, part), last = shape->ends[part] - 1;
    bool inside = false;
    if (!pass_edge(&inside, points[last], points[begin], p))
        return 0;
    for (int i = begin; i < last;) {
        int run = i / HEIGHTS, end = (run + 1) * HEIGHTS < last ? (run + 1) * HEIGHTS : last;
        if (p.y < heights[run].low || p.y > heights[run].high)
            i = end;
        for (; i < end; i++)
            if (!pass_edge(&inside, points[i], points[i + 1], p))
                return 0;
    }
    return inside ? 1 : -1;
}

/* The rings of a shape, and its heights. */
typedef struct mvt_ring_table {
    mvt_shape_ring *rings;
    const mvt_heights *heights;
} mvt_ring_table;

static bool
ring_surrounds_hole(const mc_shape *shape, const mvt_ring_table *table, int outer, int hole)
{
    const mvt_shape_ring *o = &table->rings[outer], *h = &table->rings[hole];
    if (o->area <= 0 || o->area < -h->area || h->minx < o->minx || h->maxx > o->maxx || h->miny < o->miny ||
        h->maxy > o->maxy)
        return false;
    for (int i = mc_shape_part_begin(shape, hole); i < shape->ends[hole]; i++) {
        int where = locate_in_ring(shape, table->heights, outer, shape->points[i]);
        if (where != 0)
            return where > 0;
    }
    return true;
}

/* The ring before it as a rule; else the smallest one that surrounds it. */
static int
outer_of(const mc_shape *shape, const mvt_ring_table *table, int before, int hole)
{
    int best = -1;
    if (before >= 0 && ring_surrounds_hole(shape, table, before, hole))
        return before;
    for (int i = 0; i < shape->part_count && shape->part_count <= SEARCHED_MAX; i++)
        if ((best < 0 || table->rings[i].area < table->rings[best].area) && ring_surrounds_hole(shape, table, i, hole))
            best = i;
    return best;
}

static void
copy_shape_part(mc_shape *out, const mc_shape *in, int part)
{
    int begin = mc_shape_part_begin(in, part), count = in->ends[part] - begin;
    if (!mc_shape_reserve(out, count))
        return;
    memcpy(out->points + out->point_count, in->points + begin, sizeof(*out->points) * (size_t)count);
    out->point_count += count;
    mc_shape_end_part(out);
}

static void
add_hole(mvt_shape_ring *rings, int outer, int hole)
{
    if (outer < 0)
        return;
    mvt_shape_ring *o = &rings[outer];
    if (o->last_hole < 0)
        o->first_hole = hole;
    else
        rings[o->last_hole].next_hole = hole;
    o->last_hole = hole;
}

const mc_shape *
mc_mvt_order_rings(mc_shape *out, const mc_shape *in, bool mended, apr_pool_t *scratch)
{
    if (in->part_count <= 1)
        return in->part_count == 1 && ring_area(in, 0) > 0 ? in : NULL;
    mvt_ring_table table = { .rings = apr_palloc(scratch, sizeof(*table.rings) * (size_t)(in->part_count + 1)) };
    int before = -1;
    mc_shape_clear(out, MC_SHAPE_POLYGONS);
    for (int i = 0; i < in->part_count; i++)
        table.rings[i] = describe_ring(in, i);
    for (int i = 0; i < in->part_count; i++) {
        if (table.rings[i].area > 0)
            before = mended ? -1 : i;
        else if (table.rings[i].area < 0) {
            if (table.heights == NULL)
                table.heights = measure_heights(in, scratch);
            add_hole(table.rings, outer_of(in, &table, before, i), i);
        }
    }
    for (int i = 0; i < in->part_count; i++) {
        if (table.rings[i].area <= 0)
            continue;
        copy_shape_part(out, in, i);
        for (int hole = table.rings[i].first_hole; hole >= 0; hole = table.rings[hole].next_hole)
            copy_shape_part(out, in, hole);
    }
    return out->part_count > 0 ? out : NULL;
}
