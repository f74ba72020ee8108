/*
 * What rings are parted into where they meet (mvt_meet.c): arcs from one such vertex to the next, each of which meets
 * nothing, so that rings run around what lies on one side of it equally often everywhere; and how often they do.
 */
#ifndef MC_VECTOR_MVT_MVT_ARCS_H
#define MC_VECTOR_MVT_MVT_ARCS_H

#include "vector/mvt/mvt_edges.h"

/* An arc, from the vertex in which it begins to the next one in which rings meet. */
typedef struct mc_mvt_arc {
    mc_shape_point at, after, before, to; /* its first two and its last two vertices, in order */
    mc_shape_point lowest;                /* the first one of them by x, then y */
    int64_t lowest_turn;       /* there: above 0 to the left, below to the right; 0: it is the first vertex */
    int vertex;                /* in which it begins */
    int last, next;            /* the arcs before and behind it in its ring */
    int node, leaving, coming; /* its first vertex; the spoke in which it leaves, and in which it comes */
} mc_mvt_arc;

/* The arcs at a vertex that leave or come in the same direction; where that is more than one, they have one edge. */
typedef struct mc_mvt_spoke {
    int64_t x, y;
    int node, arc;
    bool leaves; /* the arc does */
    bool used;
    int turns;       /* so many more rings run around what is to the left of it, seen from the vertex */
    int left, right; /* rings that run around what is there */
} mc_mvt_spoke;

/* A vertex in which rings meet: its arcs, and its spokes counterclockwise, those to the right and straight up first. */
typedef struct mc_mvt_node {
    int first_arc, arc_end, first_spoke, spoke_end;
    int place; /* in a walk, from 1 on */
    bool seen;
} mc_mvt_node;

/* All 0 at first. */
typedef struct mc_mvt_arcs {
    mc_mvt_edges *edges;
    mc_mvt_arc *arcs;
    mc_mvt_spoke *spokes;
    mc_mvt_node *nodes;
    int *stack; /* nodes of arcs that hang together */
    int arc_count, spoke_count, node_count;
    size_t arc_room, spoke_room, node_room, stack_room;
} mc_mvt_arcs;

/* How many rings run around a vertex, of those that it is not part of; it is the first one, by x and y, of those that
 * hang together with it. */
int mc_mvt_rings_around(mc_mvt_edges *edges, mc_shape_point at);

/* Arcs of edges that have contacts, their spokes, and how many rings run around what is on both sides of each. False
 * without memory. */
bool mc_mvt_arcs_make(mc_mvt_arcs *arcs, mc_mvt_edges *edges);
void mc_mvt_arcs_free(mc_mvt_arcs *arcs);

/* The other end of the arc, as a spoke there. */
static inline int
mc_mvt_other_spoke(const mc_mvt_arcs *m, const mc_mvt_spoke *spoke)
{
    return spoke->leaves ? m->arcs[spoke->arc].coming : m->arcs[spoke->arc].leaving;
}

#endif
