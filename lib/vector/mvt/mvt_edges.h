/* Edges of rings, and where they meet: whether rings touch or cross, themselves or each other. */
#ifndef MC_VECTOR_MVT_MVT_EDGES_H
#define MC_VECTOR_MVT_MVT_EDGES_H

#include "vector/geometry/shape.h"

/* From one vertex to the next one. Coordinates are below 2^20, so that products are exact. */
typedef struct mc_mvt_edge {
    mc_shape_point a, b;
} mc_mvt_edge;

/* A point in which an edge has to be parted. */
typedef struct mc_mvt_split {
    int edge;
    mc_shape_point at;
} mc_mvt_split;

/* Edges in the order of their rings, boxes around runs of them, and what a search found. Used again for the next
 * feature: its memory only grows. */
typedef struct mc_mvt_edges {
    mc_mvt_edge *edges, *parted;
    struct mc_mvt_edge_box *boxes; /* a complete binary tree: 1 is the root, those below n are 2n and 2n + 1 */
    mc_mvt_split *splits;
    int *rings; /* the ring of each edge, as they were taken */
    bool *met;  /* of each ring: whether one of its edges meets another one */
    int ring_count;
    int count, leaves, split_count;
    size_t edge_room, parted_room, box_room, split_room, rings_room, met_room;
    int64_t work;  /* pairs that may still be looked at */
    int64_t spent; /* pairs that have been looked at, of all polygons */
    bool failed;   /* no memory, or too much work */
} mc_mvt_edges;

/* Room for `count` things of `size` bytes in *array, which holds *room of them. False where there is no memory. */
bool mc_mvt_room(void **array, size_t *room, size_t count, size_t size);

void mc_mvt_edges_free(mc_mvt_edges *edges);

/* Takes the edges of all rings, or of those for which `only` is true (NULL: all). */
bool mc_mvt_edges_take(mc_mvt_edges *edges, const mc_shape *rings, const bool *only);

/* Whether an edge meets another one elsewhere than where they follow each other; marks the rings of such edges in
 * `met`.
 */
bool mc_mvt_edges_meet(mc_mvt_edges *edges);

/*
 * Parts edges where they meet, on whole coordinates, until none meets another one but at its ends. *parted: whether any
 * was. False where that takes more work than a polygon may cost.
 */
bool mc_mvt_edges_part(mc_mvt_edges *edges, bool *parted);

/* Above 0: p lies to the left of a..b, with y upwards. */
static inline int64_t
mc_mvt_side(mc_shape_point a, mc_shape_point b, mc_shape_point p)
{
    return ((int64_t)b.x - a.x) * ((int64_t)p.y - a.y) - ((int64_t)b.y - a.y) * ((int64_t)p.x - a.x);
}

#endif
