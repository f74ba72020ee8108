/*
 * Shared edges: see edges.h. A table of one place for each hash: a newer edge drives the older one out, which is then
 * painted. That finds nearly all neighbours, as tables and files keep them together. Where few are found (buildings;
 * areas of a few pixels, whose borders are thinned to nothing) the table is left alone for a while.
 */
#include "draw/raster/edges.h"

#include <string.h>

#include "draw/raster/plane.h"

enum {
    BITS = 15,
    PLACES = 1 << BITS,
    TRIED = 8192,  /* edges after which is decided */
    LEFT = 131072, /* edges for which the table is left alone */
    BATCH = 32,
};

/* From the upper end, and how far down and across it goes; the table has as many as fit into few lines of cache. */
typedef struct plane_edge {
    mc_shape_point a;
    int16_t dx, dy;
    int32_t winding; /* how often it is run through downwards, less upwards */
} plane_edge;

struct mc_edges {
    plane_edge *places;
    int tried, found; /* edges since it was last decided whether that pays, and those that were there already */
    int left;         /* edges that go past the table */
    uint16_t *taken;  /* the places that are in use */
    int taken_count;
    bool dirty;
};

mc_edges *
mc_edges_create(apr_pool_t *pool)
{
    mc_edges *made = apr_pcalloc(pool, sizeof(*made));
    made->places = mc_plane_acquire(sizeof(plane_edge) * PLACES, &made->dirty, pool);
    made->taken = apr_palloc(pool, sizeof(*made->taken) * PLACES);
    return made;
}

static inline unsigned
hash_edge(const plane_edge *e)
{
    uint64_t a, b = (uint32_t)e->dx << 16 | (uint16_t)e->dy;
    memcpy(&a, &e->a, 8);
    return (unsigned)((a * UINT64_C(0x9e3779b97f4a7c15) + b * UINT64_C(0xc2b2ae3d27d4eb4f)) >> (64 - BITS));
}

/* No edge ends where it begins. */
static inline bool
is_free(const plane_edge *e)
{
    return e->dx == 0 && e->dy == 0;
}

static void
flush_edge(const plane_edge *e, mc_area *area)
{
    mc_shape_point b = { e->a.x + e->dx, e->a.y + e->dy };
    for (int32_t winding = e->winding; winding > 0; winding--)
        mc_area_add_edge(area, e->a, b);
    for (int32_t winding = e->winding; winding < 0; winding++)
        mc_area_add_edge(area, b, e->a);
}

/* Past the table. */
static inline void
add_plain(mc_area *area, mc_outline *outline, mc_shape_point from, mc_shape_point to, float pen)
{
    if (area != NULL)
        mc_area_add_edge(area, from, to);
    if (outline != NULL)
        mc_outline_add_line(outline, from, to, pen);
}

static inline void
add_one(mc_edges *edges, unsigned place, const plane_edge *e, mc_area *area, mc_outline *outline, float pen)
{
    plane_edge *there = &edges->places[place];
    if (there->a.x == e->a.x && there->a.y == e->a.y && there->dx == e->dx && there->dy == e->dy) {
        edges->found++;
        there->winding += e->winding;
        return;
    }
    if (is_free(there))
        edges->taken[edges->taken_count++] = (uint16_t)place;
    else if (area != NULL)
        flush_edge(there, area);
    *there = *e;
    if (outline != NULL)
        mc_outline_add_line(outline, e->a, (mc_shape_point){ e->a.x + e->dx, e->a.y + e->dy }, pen);
}

/* The edge of a ring from one corner to the next one; false where it is none, or too long for the table. */
static inline bool
make_edge(plane_edge *e, mc_shape_point from, mc_shape_point to)
{
    bool down = from.y < to.y || (from.y == to.y && from.x < to.x);
    int32_t dx = down ? to.x - from.x : from.x - to.x, dy = down ? to.y - from.y : from.y - to.y;
    *e = (plane_edge){ down ? from : to, (int16_t)dx, (int16_t)dy, down ? 1 : -1 };
    return e->dx == dx && e->dy == dy && (dx | dy) != 0;
}

/* A ring, some edges at a time: their places are on the way from memory before the first one is looked at. */
static void
add_ring_edges(mc_edges *edges, mc_area *area, mc_outline *outline, const mc_shape_point *points, int count, float pen)
{
    plane_edge batch[BATCH];
    unsigned places[BATCH];
    mc_shape_point last = points[count - 1];
    for (int done = 0; done < count;) {
        int made = 0;
        for (; done < count && made < BATCH; last = points[done++]) {
            if (make_edge(&batch[made], last, points[done])) {
                places[made] = hash_edge(&batch[made]);
                __builtin_prefetch(&edges->places[places[made++]], 1);
            } else if (last.x != points[done].x || last.y != points[done].y)
                add_plain(area, outline, last, points[done], pen);
        }
        for (int i = 0; i < made; i++)
            add_one(edges, places[i], &batch[i], area, outline, pen);
    }
}

/* Decides after so many edges whether to go on: a look costs a fifth of painting an edge. */
static void
review_match_rate(mc_edges *edges)
{
    if (edges->tried < TRIED)
        return;
    if (edges->found < edges->tried / 4)
        edges->left = LEFT;
    edges->tried = edges->found = 0;
}

void
mc_edges_add(mc_edges *edges, mc_area *area, mc_outline *outline, const mc_shape *shape, float pen)
{
    bool past = edges->left > 0;
    edges->dirty |= !past;
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        const mc_shape_point *points = shape->points + begin;
        int count = shape->ends[part] - begin;
        mc_shape_point last = points[count - 1];
        if (!past)
            add_ring_edges(edges, area, outline, points, count, pen);
        for (int i = 0; past && i < count; last = points[i++])
            add_plain(area, outline, last, points[i], pen);
    }
    if (past) {
        edges->left -= shape->point_count;
        return;
    }
    edges->tried += shape->point_count;
    review_match_rate(edges);
}

void
mc_edges_flush(mc_edges *edges, mc_area *area)
{
    for (int i = 0; i < edges->taken_count; i++) {
        if (area != NULL)
            flush_edge(&edges->places[edges->taken[i]], area);
        edges->places[edges->taken[i]] = (plane_edge){ 0 };
    }
    edges->taken_count = 0;
    edges->dirty = false;
}
