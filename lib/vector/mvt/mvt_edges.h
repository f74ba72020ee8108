/* Edges of rings, and which of them are near each other: boxes around them, eight to a comparison. */
#ifndef MC_VECTOR_MVT_MVT_EDGES_H
#define MC_VECTOR_MVT_MVT_EDGES_H

#include "vector/geometry/shape.h"

/* A vertex, and with the one that follows it in its ring an edge. Coordinates are below 2^20: products are exact. */
typedef struct mc_mvt_vertex {
    mc_shape_point at;
    int next;
    int contact; /* where rings meet: the number in `contacts`; else -1 */
} mc_mvt_vertex;

/* The box around a vertex or more, both ends included. */
typedef struct mc_mvt_box {
    int32_t minx, miny, maxx, maxy;
} mc_mvt_box;

/* An edge of the rings, by its two vertices. */
typedef struct mc_mvt_placed_edge {
    int from, to;
} mc_mvt_placed_edge;

enum { MC_MVT_LEVELS = 10 }; /* eight times as many edges in each: more than a shape has points */

/* Used again for the next feature: its memory only grows. */
typedef struct mc_mvt_edges {
    const mc_shape *rings;   /* as they were taken */
    mc_mvt_vertex *vertices; /* theirs in their order, then those that edges were parted in; made when rings meet */
    int count, own;          /* all; those of the rings, so many edges have a box */
    int *contacts;           /* vertices in which rings meet */
    int *pending;            /* edges that were bent since they were compared with all others */
    int *origins;            /* of each vertex that an edge was parted in: the edge, as it was at first */
    int contact_count, pending_count;
    /* Boxes of edges, eight to a group; then those of their groups, and so on, up to one group. */
    struct mc_mvt_boxes *boxes;
    struct mc_mvt_edge_group *groups;
    int levels[MC_MVT_LEVELS]; /* the first group of each level */
    int level_count;
    mc_mvt_box around;
    int shift; /* boxes are counted from the corner of `around`, and cut by `shift` bits */
    size_t vertex_room, contact_room, pending_room, origin_room, box_room, group_room;
    int64_t work;  /* that may still be done for this polygon: pairs of edges */
    int64_t spent; /* of all polygons */
    bool failed;   /* no memory, or too much work */
} mc_mvt_edges;

/* What is done with an edge of the rings, or with two of them. */
typedef void mc_mvt_edge_visitor(mc_mvt_edges *edges, mc_mvt_placed_edge edge, void *baton);
typedef void mc_mvt_pair_visitor(mc_mvt_edges *edges, int one, int other);

/* Room for `count` things of `size` bytes in *array, which holds *room of them. False where there is no memory. */
bool mc_mvt_room(void **array, size_t *room, size_t count, size_t size);

void mc_mvt_edges_free(mc_mvt_edges *edges);

/* Takes the edges of rings without equal neighbours and without spikes (mc_mvt_clean_rings). The rings are kept. */
bool mc_mvt_edges_take(mc_mvt_edges *edges, const mc_shape *rings);

/* All pairs of edges that may meet elsewhere than where one follows the other. There are vertices before the first. */
void mc_mvt_edges_pair(mc_mvt_edges *edges, mc_mvt_pair_visitor *visit);

/* All edges of the rings whose boxes, as they were taken, meet a box. */
void mc_mvt_edges_near(mc_mvt_edges *edges, const mc_mvt_box *box, mc_mvt_edge_visitor *visit, void *baton);

/* Parts all edges where they meet (mvt_meet.c), on whole coordinates, until none meets another one but at vertices that
 * are `contacts`. False where there is no memory, or it takes more work than a polygon may cost. */
bool mc_mvt_edges_meet(mc_mvt_edges *edges);

/* Takes work off what a polygon may cost; false, and the edges have failed, when there is none left. */
static inline bool
mc_mvt_edges_work(mc_mvt_edges *edges, int64_t work)
{
    edges->work -= work;
    edges->spent += work;
    edges->failed = edges->failed || edges->work < 0;
    return !edges->failed;
}

/* Above 0: p lies to the left of a..b, with y upwards. */
static inline int64_t
mc_mvt_side(mc_shape_point a, mc_shape_point b, mc_shape_point p)
{
    return ((int64_t)b.x - a.x) * ((int64_t)p.y - a.y) - ((int64_t)b.y - a.y) * ((int64_t)p.x - a.x);
}

/* By x, then by y. */
static inline bool
mc_mvt_point_before(mc_shape_point a, mc_shape_point b)
{
    return a.x != b.x ? a.x < b.x : a.y < b.y;
}

static inline mc_mvt_box
mc_mvt_box_of(mc_shape_point a, mc_shape_point b)
{
    return (mc_mvt_box){ a.x < b.x ? a.x : b.x, a.y < b.y ? a.y : b.y, a.x > b.x ? a.x : b.x, a.y > b.y ? a.y : b.y };
}

static inline void
mc_mvt_box_take(mc_mvt_box *box, mc_shape_point p)
{
    box->minx = p.x < box->minx ? p.x : box->minx;
    box->miny = p.y < box->miny ? p.y : box->miny;
    box->maxx = p.x > box->maxx ? p.x : box->maxx;
    box->maxy = p.y > box->maxy ? p.y : box->maxy;
}

static inline bool
mc_mvt_boxes_meet(const mc_mvt_box *a, const mc_mvt_box *b)
{
    return (a->minx <= b->maxx) & (b->minx <= a->maxx) & (a->miny <= b->maxy) & (b->miny <= a->maxy);
}

static inline bool
mc_mvt_box_holds(const mc_mvt_box *box, mc_shape_point p)
{
    return (p.x >= box->minx) & (p.x <= box->maxx) & (p.y >= box->miny) & (p.y <= box->maxy);
}

#endif
