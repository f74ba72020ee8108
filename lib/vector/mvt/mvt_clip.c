/*
 * Rings cut by a square, one side after the other. A side lies half a unit outside of the last row that is kept, so
 * that no vertex lies on it. What is left of a ring are chains, each from where it comes in to where it leaves; along
 * the side, the inside of areas runs from one crossing to the next, and those two are joined.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "vector/mvt/mvt_shape.h"

typedef struct mvt_clip_chain {
    int begin, end; /* in the clipper's points */
    int next;       /* the chain that begins where this one ends */
    bool used;
} mvt_clip_chain;

typedef struct crossing {
    double at; /* along the side */
    int chain;
    bool leaves;
} crossing;

struct mc_mvt_clipper {
    mc_shape points, other;
    mvt_clip_chain *chains;
    crossing *crossings; /* two for each chain */
    int *open;
    int chain_count, chain_room;
};

/* One side: what is kept has coordinates of at least (or, for the upper ones, at most) `limit`. */
typedef struct side {
    bool vertical, upper; /* vertical: of x */
    int32_t limit;
    int32_t mirror, kept_to; /* for comparing: kept is whose coordinate ^ mirror is at most kept_to */
} side;

static side
side_at(bool vertical, bool upper, int32_t limit)
{
    int32_t mirror = upper ? 0 : -1; /* ^ -1 turns the order round */
    return (side){ vertical, upper, limit, mirror, limit ^ mirror };
}

static apr_status_t
free_clipper(void *data)
{
    mc_mvt_clipper *clipper = data;
    mc_shape_free(&clipper->points);
    mc_shape_free(&clipper->other);
    free(clipper->chains);
    free(clipper->crossings);
    free(clipper->open);
    return APR_SUCCESS;
}

mc_mvt_clipper *
mc_mvt_clipper_create(apr_pool_t *pool)
{
    mc_mvt_clipper *made = apr_pcalloc(pool, sizeof(*made));
    apr_pool_cleanup_register(pool, made, free_clipper, apr_pool_cleanup_null);
    return made;
}

static inline bool
side_keeps_point(const side *s, mc_shape_point p)
{
    return ((s->vertical ? p.x : p.y) ^ s->mirror) <= s->kept_to;
}

/* How many vertices of a ring are kept; *outside: the last one that is not. */
static int
count_kept_points(int *outside, const side *s, const mc_shape_point *ring, int count)
{
    const int32_t *values = s->vertical ? &ring->x : &ring->y;
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool keeps = (values[2 * (ptrdiff_t)i] ^ s->mirror) <= s->kept_to;
        kept += keeps;
        *outside = keeps ? *outside : i;
    }
    return kept;
}

static inline void
append_ring_point(mc_shape *shape, mc_shape_point p)
{
    if (shape->point_count < shape->point_room || mc_shape_reserve(shape, 1))
        shape->points[shape->point_count++] = p;
}

static void
append_ring_points(mc_shape *shape, const mc_shape_point *points, int count)
{
    if (!mc_shape_reserve(shape, count))
        return;
    memcpy(shape->points + shape->point_count, points, sizeof(*points) * (size_t)count);
    shape->point_count += count;
}

/* Where a..b meets the side, along it. */
static double
cross_clip_side(const side *s, mc_shape_point a, mc_shape_point b)
{
    double line = s->limit + (s->upper ? 0.5 : -0.5);
    double t = s->vertical ? (line - a.x) / ((double)b.x - a.x) : (line - a.y) / ((double)b.y - a.y);
    return s->vertical ? a.y + t * ((double)b.y - a.y) : a.x + t * ((double)b.x - a.x);
}

static void
add_meeting(mc_shape *shape, const side *s, double at)
{
    int32_t value = (int32_t)lrint(at);
    append_ring_point(shape, (mc_shape_point){ s->vertical ? s->limit : value, s->vertical ? value : s->limit });
}

static bool
grow_chains(mc_mvt_clipper *c)
{
    if (c->chain_count < c->chain_room)
        return true;
    size_t room = c->chain_room == 0 ? 64 : (size_t)c->chain_room * 2;
    mvt_clip_chain *chains = realloc(c->chains, sizeof(*chains) * room);
    c->chains = chains != NULL ? chains : c->chains;
    crossing *crossings = realloc(c->crossings, sizeof(*crossings) * room * 2);
    c->crossings = crossings != NULL ? crossings : c->crossings;
    int *open = realloc(c->open, sizeof(*open) * room * 2);
    c->open = open != NULL ? open : c->open;
    if (chains == NULL || crossings == NULL || open == NULL) {
        c->points.failed = true;
        return false;
    }
    c->chain_room = (int)room;
    return true;
}

/* The chains of a ring that has vertices on both sides; `first`: one that is not kept. */
static void
cut_ring_chains(mc_mvt_clipper *c, const side *s, const mc_shape_point *ring, int count, int first)
{
    bool inside = false;
    mc_shape_point last = ring[first];
    for (int i = 1, at = first; i <= count; i++) {
        at = at + 1 == count ? 0 : at + 1;
        mc_shape_point p = ring[at];
        bool kept = side_keeps_point(s, p);
        if (kept != inside) {
            double meeting = cross_clip_side(s, last, p);
            if (!grow_chains(c))
                return;
            mvt_clip_chain *made = &c->chains[c->chain_count];
            c->crossings[c->chain_count * 2 + inside] = (crossing){ meeting, c->chain_count, inside };
            if (kept)
                made->begin = c->points.point_count;
            add_meeting(&c->points, s, meeting);
            if (!kept) {
                made->end = c->points.point_count;
                made->used = false;
                c->chain_count++;
            }
        }
        if (kept)
            append_ring_point(&c->points, p);
        inside = kept;
        last = p;
    }
}

static int
compare_crossings(const void *left, const void *right)
{
    const crossing *a = left, *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->leaves != b->leaves ? (a->leaves ? -1 : 1) : a->chain - b->chain;
}

/* Joins each crossing to its neighbour; where areas overlap, to the next one of the other kind that is free. */
static void
join_chains(mc_mvt_clipper *c)
{
    int depth = 0;
    qsort(c->crossings, (size_t)c->chain_count * 2, sizeof(*c->crossings), compare_crossings);
    for (int i = 0; i < c->chain_count * 2; i++) {
        const crossing *now = &c->crossings[i];
        const crossing *before = depth > 0 ? &c->crossings[c->open[depth - 1]] : NULL;
        if (before == NULL || before->leaves == now->leaves) {
            c->open[depth++] = i;
            continue;
        }
        depth--;
        if (now->leaves)
            c->chains[now->chain].next = before->chain;
        else
            c->chains[before->chain].next = now->chain;
    }
}

static void
emit_rings(mc_shape *out, mc_mvt_clipper *c)
{
    join_chains(c);
    for (int i = 0; i < c->chain_count; i++) {
        if (c->chains[i].used)
            continue;
        for (int at = i; !c->chains[at].used; at = c->chains[at].next) {
            c->chains[at].used = true;
            append_ring_points(out, c->points.points + c->chains[at].begin, c->chains[at].end - c->chains[at].begin);
        }
        mc_shape_end_part(out);
    }
}

static void
clip_side(mc_shape *out, const mc_shape *in, const side *s, mc_mvt_clipper *c)
{
    mc_shape_clear(out, MC_SHAPE_POLYGONS);
    mc_shape_clear(&c->points, MC_SHAPE_POLYGONS);
    c->chain_count = 0;
    for (int part = 0, begin = 0; part < in->part_count; begin = in->ends[part++]) {
        const mc_shape_point *ring = in->points + begin;
        int count = in->ends[part] - begin, outside = 0;
        int kept = count_kept_points(&outside, s, ring, count);
        if (kept > 0 && kept < count)
            cut_ring_chains(c, s, ring, count, outside);
        if (kept == count) {
            append_ring_points(out, ring, count);
            mc_shape_end_part(out);
        }
    }
    out->failed |= c->points.failed;
    if (c->chain_count > 0 && !out->failed)
        emit_rings(out, c);
}

/* The sides that lie across the rings: the others would leave them as they are. Returns their number. */
static int
choose_sides(side sides[4], const mc_shape *in, int low, int high)
{
    int32_t minx, miny, maxx, maxy;
    int count = 0;
    if (!mc_shape_bounds(in, &minx, &miny, &maxx, &maxy))
        return 0;
    if (minx < low)
        sides[count++] = side_at(true, false, low);
    if (maxx > high)
        sides[count++] = side_at(true, true, high);
    if (miny < low)
        sides[count++] = side_at(false, false, low);
    if (maxy > high)
        sides[count++] = side_at(false, true, high);
    return count;
}

void
mc_mvt_clip_rings(mc_shape *out, mc_shape *in, int low, int high, mc_mvt_clipper *clipper)
{
    side sides[4];
    mc_shape *from = in, *other = &clipper->other;
    int count = choose_sides(sides, in, low, high);
    mc_shape_clear(other, MC_SHAPE_POLYGONS);
    if (count == 0) /* a side that all vertices are on the right side of copies them */
        sides[count++] = side_at(true, true, INT32_MAX);
    for (int i = 0; i < count; i++) {
        mc_shape *to = i == count - 1 ? out : from == in ? other : in;
        clip_side(to, from, &sides[i], clipper);
        from = to;
    }
    out->failed |= in->failed || other->failed;
}
