/*
 * Where edges of rings meet (mvt_edges.h). Edges that touch get a vertex there and stay what they are. Edges that cross
 * are bent to the nearest whole coordinates, and so are compared with all others again. Each piece of an edge lies in
 * the box of the edge as it was taken: boxes stay as they are. An edge's pieces together are as wide and high as the
 * edge, so that parting ends.
 */
#include <math.h>

#include "vector/mvt/mvt_edges.h"

enum {
    PARTING = 64, /* work: what a new vertex costs */
    COMPARING = 4 /* work: what comparing two pieces costs */
};

static void
mark_contact(mc_mvt_edges *e, int vertex)
{
    if (e->vertices[vertex].contact >= 0)
        return;
    if (!mc_mvt_room((void **)&e->contacts, &e->contact_room, (size_t)e->contact_count + 1, sizeof(*e->contacts))) {
        e->failed = true;
        return;
    }
    e->vertices[vertex].contact = e->contact_count;
    e->contacts[e->contact_count++] = vertex;
}

/* The edge is to be compared with all others again. */
static void
note_pending_edge(mc_mvt_edges *e, int edge)
{
    if (!mc_mvt_room((void **)&e->pending, &e->pending_room, (size_t)e->pending_count + 1, sizeof(*e->pending)))
        e->failed = true;
    else
        e->pending[e->pending_count++] = edge;
}

/* A new vertex in the edge, which becomes the first one of two; false where there is no memory, or too much was done.
 */
static bool
part_edge(mc_mvt_edges *e, int edge, mc_shape_point at)
{
    int made = e->count, number = made - e->own;
    if (!mc_mvt_edges_work(e, PARTING) ||
        !mc_mvt_room((void **)&e->vertices, &e->vertex_room, (size_t)made + 1, sizeof(*e->vertices)) ||
        !mc_mvt_room((void **)&e->origins, &e->origin_room, (size_t)number + 1, sizeof(*e->origins))) {
        e->failed = true;
        return false;
    }
    e->origins[number] = edge < e->own ? edge : e->origins[edge - e->own];
    e->vertices[made] = (mc_mvt_vertex){ at, e->vertices[edge].next, -1 };
    e->vertices[edge].next = made;
    e->count++;
    mark_contact(e, made);
    return true;
}

/* The vertex lies on the edge, which ended in `end` before it was parted. */
static void
touch_edge(mc_mvt_edges *e, int edge, int end, int vertex)
{
    mc_shape_point at = e->vertices[vertex].at;
    mark_contact(e, vertex);
    for (; edge != end && !e->failed; edge = e->vertices[edge].next) {
        mc_shape_point a = e->vertices[edge].at, b = e->vertices[e->vertices[edge].next].at;
        mc_mvt_box box = mc_mvt_box_of(a, b);
        if (mc_shape_same_point(a, at)) {
            mark_contact(e, edge);
            return;
        }
        if (!mc_shape_same_point(b, at) && mc_mvt_box_holds(&box, at)) {
            if (part_edge(e, edge, at) && e->pending_count > 0) /* the edge may be among them */
                note_pending_edge(e, e->count - 1);
            return;
        }
    }
    if (!e->failed && mc_shape_same_point(e->vertices[end].at, at))
        mark_contact(e, end);
}

/* The edge now runs through a point near it: both pieces are to be compared with all others again. */
static void
bend_edge(mc_mvt_edges *e, int edge, mc_shape_point at)
{
    int end = e->vertices[edge].next;
    if (mc_shape_same_point(e->vertices[edge].at, at)) {
        mark_contact(e, edge);
    } else if (mc_shape_same_point(e->vertices[end].at, at)) {
        mark_contact(e, end);
    } else if (part_edge(e, edge, at)) {
        note_pending_edge(e, e->count - 1);
        note_pending_edge(e, edge);
    }
}

static inline bool
are_on_both_sides(int64_t one, int64_t other)
{
    return ((one > 0) & (other < 0)) | ((one < 0) & (other > 0));
}

/* Whether an edge runs back along the one before it. */
static bool
edges_fold(mc_shape_point a, mc_shape_point b, mc_shape_point c)
{
    return mc_mvt_side(a, b, c) == 0 &&
           ((int64_t)b.x - a.x) * ((int64_t)c.x - b.x) + ((int64_t)b.y - a.y) * ((int64_t)c.y - b.y) < 0;
}

/* Two pieces of edges. */
static void
compare_pieces(mc_mvt_edges *e, int one, int other)
{
    const mc_mvt_vertex *v = e->vertices;
    int one_end = v[one].next, other_end = v[other].next;
    mc_shape_point a = v[one].at, b = v[one_end].at, c = v[other].at, d = v[other_end].at;
    mc_mvt_box box = mc_mvt_box_of(a, b), other_box = mc_mvt_box_of(c, d);
    if (!mc_mvt_edges_work(e, COMPARING) || one == other || !mc_mvt_boxes_meet(&box, &other_box))
        return;
    if ((one_end == other && !edges_fold(a, b, d)) || (other_end == one && !edges_fold(c, d, b)))
        return;
    int64_t of_c = mc_mvt_side(a, b, c), of_d = mc_mvt_side(a, b, d);
    int64_t of_a = mc_mvt_side(c, d, a), of_b = mc_mvt_side(c, d, b);
    if (are_on_both_sides(of_a, of_b) && are_on_both_sides(of_c, of_d)) {
        double share = (double)of_a / ((double)of_a - (double)of_b);
        mc_shape_point at = { (int32_t)lrint(a.x + share * ((double)b.x - a.x)),
                              (int32_t)lrint(a.y + share * ((double)b.y - a.y)) };
        bend_edge(e, one, at);
        bend_edge(e, other, at);
        return;
    }
    if (of_c == 0 && mc_mvt_box_holds(&box, c))
        touch_edge(e, one, one_end, other);
    if (of_d == 0 && mc_mvt_box_holds(&box, d))
        touch_edge(e, one, one_end, other_end);
    if (of_a == 0 && mc_mvt_box_holds(&other_box, a))
        touch_edge(e, other, other_end, one);
    if (of_b == 0 && mc_mvt_box_holds(&other_box, b))
        touch_edge(e, other, other_end, one_end);
}

/* A piece with those of an edge of the rings: they end where the next vertex of the rings is. */
static void
compare_with_edge(mc_mvt_edges *e, int piece, int edge)
{
    do {
        compare_pieces(e, piece, edge);
        edge = e->vertices[edge].next;
    } while (edge >= e->own && !e->failed);
}

/* Edges that were bent, with all that are near them. */
typedef struct bent_pieces {
    int from, end;
} bent_pieces;

static void
compare_bent_pieces(mc_mvt_edges *e, mc_mvt_placed_edge edge, void *baton)
{
    const bent_pieces *bent = baton;
    for (int piece = bent->from; piece != bent->end && !e->failed; piece = e->vertices[piece].next)
        compare_with_edge(e, piece, edge.from);
}

/* Two edges of the rings, and what else that leads to. */
static void
compare_edges(mc_mvt_edges *e, int one, int other)
{
    do {
        compare_with_edge(e, one, other);
        one = e->vertices[one].next;
    } while (one >= e->own && !e->failed);
    while (e->pending_count > 0 && !e->failed) {
        int from = e->pending[--e->pending_count];
        bent_pieces bent = { from, e->vertices[from].next };
        mc_mvt_box box = mc_mvt_box_of(e->vertices[from].at, e->vertices[bent.end].at);
        if (e->pending_count > 0 && e->pending[e->pending_count - 1] == bent.end) { /* the piece behind it as well */
            bent.end = e->vertices[e->pending[--e->pending_count]].next;
            mc_mvt_box_take(&box, e->vertices[bent.end].at);
        }
        mc_mvt_edges_near(e, &box, compare_bent_pieces, &bent);
    }
}

bool
mc_mvt_edges_meet(mc_mvt_edges *e)
{
    mc_mvt_edges_pair(e, compare_edges);
    return !e->failed;
}
