/*
 * See mvt_arcs.h. Around a vertex one arc tells how many rings run around what is beside the next; outside of all arcs
 * that hang together a ray tells it.
 */
#include "vector/mvt/mvt_arcs.h"

#include <stdlib.h>

/* --- rings around a point ----------------------------------------------------------------------------------------- */

typedef struct mvt_ray {
    mc_shape_point from;
    int turns;
} mvt_ray;

static inline void
count_below(mvt_ray *ray, mc_shape_point a, mc_shape_point b)
{
    bool before = a.x <= ray->from.x, behind = b.x <= ray->from.x;
    if (before && !behind)
        ray->turns += mc_mvt_side(a, b, ray->from) > 0;
    else if (behind && !before)
        ray->turns -= mc_mvt_side(b, a, ray->from) > 0;
}

/* An edge that may lie below the point. */
static void
count_edge_below(mc_mvt_edges *e, mc_mvt_placed_edge edge, void *baton)
{
    int at = edge.from;
    if (e->count == e->own) {
        count_below(baton, e->rings->points[edge.from], e->rings->points[edge.to]);
        return;
    }
    do {
        const mc_mvt_vertex *v = &e->vertices[at];
        count_below(baton, v->at, e->vertices[v->next].at);
        at = v->next;
    } while (at >= e->own);
}

int
mc_mvt_rings_around(mc_mvt_edges *edges, mc_shape_point at)
{
    mvt_ray ray = { at, 0 };
    const mc_mvt_box below = { at.x, edges->around.miny, at.x, at.y };
    mc_mvt_edges_near(edges, &below, count_edge_below, &ray);
    return ray.turns;
}

/* --- arcs --------------------------------------------------------------------------------------------------------- */

static int
compare_arcs(const void *left, const void *right)
{
    const mc_mvt_arc *a = left, *b = right;
    if (!mc_shape_same_point(a->at, b->at))
        return mc_mvt_point_before(a->at, b->at) ? -1 : 1;
    return a->vertex - b->vertex;
}

static void
follow_arc(mc_mvt_arcs *m, mc_mvt_arc *arc)
{
    const mc_mvt_vertex *v = m->edges->vertices;
    int last = arc->vertex, at = v[last].next;
    arc->lowest = arc->at;
    arc->lowest_turn = 0;
    arc->after = v[at].at;
    for (; v[at].contact < 0; last = at, at = v[at].next)
        if (mc_mvt_point_before(v[at].at, arc->lowest)) {
            arc->lowest = v[at].at;
            arc->lowest_turn = mc_mvt_side(v[last].at, v[at].at, v[v[at].next].at);
        }
    arc->before = v[last].at;
    arc->to = v[at].at;
    arc->next = v[at].contact;
    m->arcs[arc->next].last = (int)(arc - m->arcs);
}

static bool
arcs_have_room(mc_mvt_arcs *m, size_t count)
{
    return mc_mvt_room((void **)&m->arcs, &m->arc_room, count, sizeof(*m->arcs)) &&
           mc_mvt_room((void **)&m->spokes, &m->spoke_room, count * 2, sizeof(*m->spokes)) &&
           mc_mvt_room((void **)&m->nodes, &m->node_room, count, sizeof(*m->nodes)) &&
           mc_mvt_room((void **)&m->stack, &m->stack_room, count, sizeof(*m->stack));
}

/* An arc begins in each vertex in which rings meet. */
static bool
make_arcs(mc_mvt_arcs *m)
{
    mc_mvt_edges *e = m->edges;
    if (!arcs_have_room(m, (size_t)e->contact_count))
        return false;
    m->arc_count = e->contact_count;
    m->node_count = 0;
    for (int i = 0; i < m->arc_count; i++)
        m->arcs[i] = (mc_mvt_arc){ .at = e->vertices[e->contacts[i]].at, .vertex = e->contacts[i] };
    qsort(m->arcs, (size_t)m->arc_count, sizeof(*m->arcs), compare_arcs);
    for (int i = 0; i < m->arc_count; i++)
        e->vertices[m->arcs[i].vertex].contact = i;
    for (int i = 0; i < m->arc_count; i++) {
        if (i == 0 || !mc_shape_same_point(m->arcs[i].at, m->arcs[i - 1].at))
            m->nodes[m->node_count++] = (mc_mvt_node){ .first_arc = i };
        m->arcs[i].node = m->node_count - 1;
        m->nodes[m->node_count - 1].arc_end = i + 1;
        follow_arc(m, &m->arcs[i]);
    }
    return true;
}

/* --- spokes ------------------------------------------------------------------------------------------------------- */

/* Which comes first counterclockwise, from straight down on. */
static int
compare_spokes(const mc_mvt_spoke *s, const mc_mvt_spoke *t)
{
    int half = s->x > 0 || (s->x == 0 && s->y > 0) ? 0 : 1, other = t->x > 0 || (t->x == 0 && t->y > 0) ? 0 : 1;
    int64_t cross = s->x * t->y - s->y * t->x;
    return half != other ? half - other : (cross < 0) - (cross > 0);
}

/* Both ends of arcs that lie in a vertex become its spokes. */
static void
make_spokes(mc_mvt_arcs *m, mc_mvt_node *node, int number)
{
    mc_mvt_spoke *ends = m->spokes + m->spoke_count;
    int count = 0;
    for (int i = node->first_arc; i < node->arc_end; i++) {
        const mc_mvt_arc *arc = &m->arcs[i], *last = &m->arcs[arc->last];
        const mc_mvt_spoke both[2] = { { .x = (int64_t)arc->after.x - arc->at.x,
                                         .y = (int64_t)arc->after.y - arc->at.y,
                                         .node = number,
                                         .arc = i,
                                         .leaves = true,
                                         .turns = 1 },
                                       { .x = (int64_t)last->before.x - arc->at.x,
                                         .y = (int64_t)last->before.y - arc->at.y,
                                         .node = number,
                                         .arc = arc->last,
                                         .turns = -1 } };
        for (int k = 0; k < 2; k++) {
            int place = count++;
            for (; place > 0 && compare_spokes(&both[k], &ends[place - 1]) < 0; place--)
                ends[place] = ends[place - 1];
            ends[place] = both[k];
        }
    }
    node->first_spoke = m->spoke_count;
    for (int i = 0; i < count; i++) {
        bool same = i > 0 && compare_spokes(&ends[i], &m->spokes[m->spoke_count - 1]) == 0;
        int *of_arc = ends[i].leaves ? &m->arcs[ends[i].arc].leaving : &m->arcs[ends[i].arc].coming;
        if (same)
            m->spokes[m->spoke_count - 1].turns += ends[i].turns;
        else
            m->spokes[m->spoke_count++] = ends[i];
        *of_arc = m->spoke_count - 1;
    }
    node->spoke_end = m->spoke_count;
}

/* Adds to how many rings run around what is around the vertex. */
static void
raise_node(mc_mvt_arcs *m, const mc_mvt_node *node, int more)
{
    for (int i = node->first_spoke; i < node->spoke_end; i++) {
        m->spokes[i].left += more;
        m->spokes[i].right += more;
    }
}

/* Of a vertex for itself: to the left of straight down no ring runs. */
static void
count_around_node(mc_mvt_arcs *m, const mc_mvt_node *node)
{
    for (int i = node->first_spoke, rings = 0; i < node->spoke_end; i++) {
        m->spokes[i].right = rings;
        rings += m->spokes[i].turns;
        m->spokes[i].left = rings;
    }
}

/* The nodes that hang together with the first one in the stack, which tell each other how many rings run around what is
 * around them; returns their number. *lowest: the arc with the first point of all. */
static int
spread_counts(mc_mvt_arcs *m, const mc_mvt_arc **lowest)
{
    int count = 1;
    *lowest = &m->arcs[m->nodes[m->stack[0]].first_arc];
    for (int i = 0; i < count; i++) {
        const mc_mvt_node *node = &m->nodes[m->stack[i]];
        for (int arc = node->first_arc; arc < node->arc_end; arc++)
            if (mc_mvt_point_before(m->arcs[arc].lowest, (*lowest)->lowest))
                *lowest = &m->arcs[arc];
        for (int at = node->first_spoke; at < node->spoke_end; at++) {
            const mc_mvt_spoke *other = &m->spokes[mc_mvt_other_spoke(m, &m->spokes[at])];
            mc_mvt_node *next = &m->nodes[other->node];
            if (next->seen)
                continue;
            next->seen = true;
            raise_node(m, next, m->spokes[at].left - other->right);
            m->stack[count++] = other->node;
        }
    }
    return count;
}

/* How many rings run around what is on both sides of each arc. */
static void
count_rings(mc_mvt_arcs *m)
{
    m->spoke_count = 0;
    for (int i = 0; i < m->node_count; i++) {
        make_spokes(m, &m->nodes[i], i);
        count_around_node(m, &m->nodes[i]);
    }
    for (int i = 0; i < m->node_count; i++) {
        const mc_mvt_arc *lowest;
        if (m->nodes[i].seen)
            continue;
        m->nodes[i].seen = true;
        m->stack[0] = i;
        int count = spread_counts(m, &lowest);
        const mc_mvt_spoke *spoke = &m->spokes[lowest->leaving];
        int outside = lowest->lowest_turn > 0   ? spoke->right
                      : lowest->lowest_turn < 0 ? spoke->left
                                                : m->spokes[m->nodes[lowest->node].first_spoke].right;
        int more = mc_mvt_rings_around(m->edges, lowest->lowest) - outside;
        for (int k = 0; k < count && more != 0; k++)
            raise_node(m, &m->nodes[m->stack[k]], more);
    }
}

bool
mc_mvt_arcs_make(mc_mvt_arcs *arcs, mc_mvt_edges *edges)
{
    arcs->edges = edges;
    if (!make_arcs(arcs))
        return false;
    count_rings(arcs);
    return true;
}

void
mc_mvt_arcs_free(mc_mvt_arcs *arcs)
{
    free(arcs->arcs);
    free(arcs->spokes);
    free(arcs->nodes);
    free(arcs->stack);
    *arcs = (mc_mvt_arcs){ 0 };
}
