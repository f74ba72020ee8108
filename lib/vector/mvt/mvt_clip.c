/*
 * Rings cut by a square, one side after the other. A side lies half a unit outside of the last row that is kept, so
 * that no vertex lies on it. What is left of a ring are chains, each from where it comes in to where it leaves; along
 * the side, the inside of areas runs from one crossing to the next, and those two are joined.
 */
#include <math.h>
#include <stdlib.h>

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
} side;

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

static bool
side_keeps_point(const side *s, mc_shape_point p)
{
    int32_t value = s->vertical ? p.x : p.y;
    return s->upper ? value <= s->limit : value >= s->limit;
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
    mc_shape_add(shape, s->vertical ? s->limit : value, s->vertical ? value : s->limit);
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
    for (int i = 1; i <= count; i++) {
        mc_shape_point p = ring[(first + i) % count];
        bool kept = side_keeps_point(s, p);
        if (kept != inside) {
            double at = cross_clip_side(s, last, p);
            if (!grow_chains(c))
                return;
            mvt_clip_chain *made = &c->chains[c->chain_count];
            c->crossings[c->chain_count * 2 + inside] = (crossing){ at, c->chain_count, inside };
            if (kept)
                made->begin = c->points.point_count;
            add_meeting(&c->points, s, at);
            if (!kept) {
                made->end = c->points.point_count;
                made->used = false;
                c->chain_count++;
            }
        }
        if (kept)
            mc_shape_add(&c->points, p.x, p.y);
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
            for (int p = c->chains[at].begin; p < c->chains[at].end; p++)
                mc_shape_add(out, c->points.points[p].x, c->points.points[p].y);
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
        int count = in->ends[part] - begin, kept = 0, outside = 0;
        for (int i = 0; i < count; i++) {
            if (side_keeps_point(s, ring[i]))
                kept++;
            else
                outside = i;
        }
        if (kept > 0 && kept < count)
            cut_ring_chains(c, s, ring, count, outside);
        for (int i = 0; kept == count && i < count; i++)
            mc_shape_add(out, ring[i].x, ring[i].y);
        if (kept == count)
            mc_shape_end_part(out);
    }
    out->failed |= c->points.failed;
    if (c->chain_count > 0 && !out->failed)
        emit_rings(out, c);
}

void
mc_mvt_clip_rings(mc_shape *out, mc_shape *in, int low, int high, mc_mvt_clipper *clipper)
{
    const side sides[4] = { { true, false, low }, { true, true, high }, { false, false, low }, { false, true, high } };
    mc_shape *other = &clipper->other;
    clip_side(other, in, &sides[0], clipper);
    clip_side(in, other, &sides[1], clipper);
    clip_side(other, in, &sides[2], clipper);
    clip_side(out, other, &sides[3], clipper);
    out->failed |= in->failed || other->failed;
}
