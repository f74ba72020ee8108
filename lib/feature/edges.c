/*
 * Shared edges: see edges.h. A table of one place for each hash: a newer edge drives the older one out, which is then
 * painted. That finds nearly all neighbours, as tables and files keep them together. Where few are found (buildings;
 * areas of a few pixels, whose borders are thinned to nothing) the table is left alone for a while.
 */
#include "feature/edges.h"

#include <string.h>

#include "feature/plane.h"

enum {
    BITS = 15,
    PLACES = 1 << BITS,
    TRIED = 8192, /* edges after which is decided */
    LEFT = 131072 /* edges for which the table is left alone */
};

/* From the upper end to the lower one. */
typedef struct edge {
    mc_shape_point a, b;
} edge;

struct mc_edges {
    edge *places;
    int32_t *windings; /* how often each is run through downwards, less upwards */
    int tried, found;  /* edges since it was last decided whether that pays, and those that were there already */
    int left;          /* edges that go past the table */
    uint16_t *taken;   /* the places that are in use */
    int taken_count;
    bool dirty;
};

mc_edges *
mc_edges_create(apr_pool_t *pool)
{
    mc_edges *made = apr_pcalloc(pool, sizeof(*made));
    made->places = mc_plane_acquire(sizeof(edge) * PLACES, &made->dirty, pool);
    made->taken = apr_palloc(pool, sizeof(*made->taken) * PLACES);
    made->windings = mc_plane_acquire(sizeof(*made->windings) * PLACES, &made->dirty, pool);
    return made;
}

static inline unsigned
place_of(const edge *e)
{
    uint64_t a, b;
    memcpy(&a, &e->a, 8);
    memcpy(&b, &e->b, 8);
    return (unsigned)((a * UINT64_C(0x9e3779b97f4a7c15) + b * UINT64_C(0xc2b2ae3d27d4eb4f)) >> (64 - BITS));
}

/* No edge ends where it begins. */
static inline bool
is_free(const edge *e)
{
    return e->a.x == e->b.x && e->a.y == e->b.y;
}

static void
let_go(mc_edges *edges, unsigned place, mc_area *area)
{
    const edge *e = &edges->places[place];
    int32_t winding = edges->windings[place];
    for (; winding > 0; winding--)
        mc_area_add_edge(area, e->a, e->b);
    for (; winding < 0; winding++)
        mc_area_add_edge(area, e->b, e->a);
    edges->windings[place] = 0;
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
add_one(mc_edges *edges, mc_area *area, mc_outline *outline, mc_shape_point from, mc_shape_point to, float pen)
{
    if (from.x == to.x && from.y == to.y)
        return;
    bool down = from.y < to.y || (from.y == to.y && from.x < to.x);
    const edge e = down ? (edge){ from, to } : (edge){ to, from };
    unsigned place = place_of(&e);
    if (memcmp(&edges->places[place], &e, sizeof(e)) != 0) {
        if (is_free(&edges->places[place]))
            edges->taken[edges->taken_count++] = (uint16_t)place;
        else
            let_go(edges, place, area);
        edges->places[place] = e;
        if (outline != NULL)
            mc_outline_add_line(outline, e.a, e.b, pen);
    } else
        edges->found++;
    if (area != NULL)
        edges->windings[place] += down ? 1 : -1;
}

/* Decides after so many edges whether to go on: a look costs a fifth of painting an edge. */
static void
decide(mc_edges *edges)
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
        int end = shape->ends[part];
        mc_shape_point last = shape->points[end - 1];
        for (int i = begin; i < end; last = shape->points[i++])
            if (past)
                add_plain(area, outline, last, shape->points[i], pen);
            else
                add_one(edges, area, outline, last, shape->points[i], pen);
    }
    if (past) {
        edges->left -= shape->point_count;
        return;
    }
    edges->tried += shape->point_count;
    decide(edges);
}

void
mc_edges_flush(mc_edges *edges, mc_area *area)
{
    for (int i = 0; i < edges->taken_count; i++) {
        let_go(edges, edges->taken[i], area);
        edges->places[edges->taken[i]] = (edge){ 0 };
    }
    edges->taken_count = 0;
    edges->dirty = false;
}
