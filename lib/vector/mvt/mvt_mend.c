/*
 * See mvt_mend.h. Rings that meet are parted where they do (mvt_meet.c): what is between two such vertices is an arc,
 * which meets nothing, so that rings run around what lies on one side of it equally often everywhere. Around a vertex
 * one arc tells that of the next; outside of all arcs that hang together the rings around them count. Arcs with an
 * inside on one side only are the new borders. Walks along them, which keep to the inside of one area, are cut where
 * they come to a vertex again.
 */
#include "vector/mvt/mvt_mend.h"

#include <stdlib.h>
#include <string.h>

#include "vector/mvt/mvt_edges.h"

/* An arc, from the vertex in which it begins to the next one in which rings meet. */
typedef struct mvt_arc {
    mc_shape_point at, after, before, to; /* its first two and its last two vertices, in order */
    mc_shape_point lowest;                /* the first one of them by x, then y */
    int64_t lowest_turn;       /* there: above 0 to the left, below to the right; 0: it is the first vertex */
    int vertex;                /* in which it begins */
    int last, next;            /* the arcs before and behind it in its ring */
    int node, leaving, coming; /* its first vertex; the spoke in which it leaves, and in which it comes */
} mvt_arc;

/* The arcs at a vertex that leave or come in the same direction; where that is more than one, they have one edge. */
typedef struct mvt_spoke {
    int64_t x, y;
    int node, arc;
    bool leaves; /* the arc does */
    bool used;
    int turns;       /* so many more rings run around what is to the left of it, seen from the vertex */
    int left, right; /* rings that run around what is there */
} mvt_spoke;

/* A vertex in which rings meet: its arcs, and its spokes counterclockwise, those to the right and straight up first. */
typedef struct mvt_node {
    int first_arc, arc_end, first_spoke, spoke_end;
    int place; /* in a walk, from 1 on */
    bool seen;
} mvt_node;

struct mc_mvt_mender {
    mc_mvt_edges edges;
    mvt_arc *arcs;
    mvt_spoke *spokes;
    mvt_node *nodes;
    int *path, *stack; /* spokes of a walk; nodes of arcs that hang together */
    int arc_count, spoke_count, node_count, path_count;
    size_t arc_room, spoke_room, node_room, path_room, stack_room, ring_room;
    signed char *rings; /* what becomes of each ring */
    bool changed;       /* rings are left out or turned around, or meet */
};

enum { RING_STAYS, RING_GOES, RING_TURNS, RING_MEETS };

static apr_status_t
free_mender(void *data)
{
    mc_mvt_mender *m = data;
    mc_mvt_edges_free(&m->edges);
    free(m->arcs);
    free(m->spokes);
    free(m->nodes);
    free(m->path);
    free(m->stack);
    free(m->rings);
    return APR_SUCCESS;
}

mc_mvt_mender *
mc_mvt_mender_create(apr_pool_t *pool)
{
    mc_mvt_mender *made = apr_pcalloc(pool, sizeof(*made));
    apr_pool_cleanup_register(pool, made, free_mender, apr_pool_cleanup_null);
    return made;
}

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

/* How many rings run around a vertex, of those that it is not part of; it is the first one, by x and y, of those that
 * hang together with it. */
static int
count_rings_around(mc_mvt_mender *m, mc_shape_point at)
{
    mvt_ray ray = { at, 0 };
    const mc_mvt_box below = { at.x, m->edges.around.miny, at.x, at.y };
    mc_mvt_edges_near(&m->edges, &below, count_edge_below, &ray);
    return ray.turns;
}

/* What becomes of a ring that meets none. */
static int
judge_ring(mc_mvt_mender *m, const mc_shape *in, int part)
{
    int begin = mc_shape_part_begin(in, part), end = in->ends[part], lowest = begin;
    int64_t least = INT64_MAX;
    for (int i = begin; i < end; i++) {
        int64_t key = (int64_t)((uint64_t)(uint32_t)in->points[i].x << 32) + in->points[i].y; /* by x, then y */
        lowest = key < least ? i : lowest;
        least = key < least ? key : least;
    }
    mc_shape_point before = in->points[lowest > begin ? lowest - 1 : end - 1];
    mc_shape_point after = in->points[lowest + 1 < end ? lowest + 1 : begin];
    bool outer = mc_mvt_side(before, in->points[lowest], after) > 0;
    int outside = count_rings_around(m, in->points[lowest]);
    int inside = outside + (outer ? 1 : -1);
    if (outside == 0 && !outer) /* a hole in nothing: nobody will miss it */
        return RING_STAYS;
    if ((outside == 0) == (inside == 0))
        return RING_GOES;
    return (inside != 0) == outer ? RING_STAYS : RING_TURNS;
}

/* The ring of a vertex of `in`. */
static int
ring_of_vertex(const mc_shape *in, int vertex)
{
    int low = 0, high = in->part_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (in->ends[middle] > vertex)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool
judge_rings(mc_mvt_mender *m, const mc_shape *in)
{
    const mc_mvt_edges *e = &m->edges;
    if (!mc_mvt_room((void **)&m->rings, &m->ring_room, (size_t)in->part_count, sizeof(*m->rings)))
        return false;
    memset(m->rings, RING_STAYS, (size_t)in->part_count);
    m->changed = e->contact_count > 0;
    for (int i = 0; i < e->contact_count; i++) {
        int vertex = e->contacts[i];
        m->rings[ring_of_vertex(in, vertex < e->own ? vertex : e->origins[vertex - e->own])] = RING_MEETS;
    }
    for (int part = 0; part < in->part_count && in->part_count > 1 && !e->failed; part++) {
        if (m->rings[part] == RING_MEETS)
            continue;
        m->rings[part] = (signed char)judge_ring(m, in, part);
        m->changed = m->changed || m->rings[part] != RING_STAYS;
    }
    return !e->failed;
}

/* --- arcs --------------------------------------------------------------------------------------------------------- */

static int
compare_arcs(const void *left, const void *right)
{
    const mvt_arc *a = left, *b = right;
    if (!mc_shape_same_point(a->at, b->at))
        return mc_mvt_point_before(a->at, b->at) ? -1 : 1;
    return a->vertex - b->vertex;
}

static void
follow_arc(mc_mvt_mender *m, mvt_arc *arc)
{
    const mc_mvt_vertex *v = m->edges.vertices;
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
arcs_have_room(mc_mvt_mender *m, size_t count)
{
    return mc_mvt_room((void **)&m->arcs, &m->arc_room, count, sizeof(*m->arcs)) &&
           mc_mvt_room((void **)&m->spokes, &m->spoke_room, count * 2, sizeof(*m->spokes)) &&
           mc_mvt_room((void **)&m->nodes, &m->node_room, count, sizeof(*m->nodes)) &&
           mc_mvt_room((void **)&m->path, &m->path_room, count * 2 + 1, sizeof(*m->path)) &&
           mc_mvt_room((void **)&m->stack, &m->stack_room, count, sizeof(*m->stack));
}

/* An arc begins in each vertex in which rings meet. */
static bool
make_arcs(mc_mvt_mender *m)
{
    mc_mvt_edges *e = &m->edges;
    if (!arcs_have_room(m, (size_t)e->contact_count))
        return false;
    m->arc_count = e->contact_count;
    m->node_count = 0;
    for (int i = 0; i < m->arc_count; i++)
        m->arcs[i] = (mvt_arc){ .at = e->vertices[e->contacts[i]].at, .vertex = e->contacts[i] };
    qsort(m->arcs, (size_t)m->arc_count, sizeof(*m->arcs), compare_arcs);
    for (int i = 0; i < m->arc_count; i++)
        e->vertices[m->arcs[i].vertex].contact = i;
    for (int i = 0; i < m->arc_count; i++) {
        if (i == 0 || !mc_shape_same_point(m->arcs[i].at, m->arcs[i - 1].at))
            m->nodes[m->node_count++] = (mvt_node){ .first_arc = i };
        m->arcs[i].node = m->node_count - 1;
        m->nodes[m->node_count - 1].arc_end = i + 1;
        follow_arc(m, &m->arcs[i]);
    }
    return true;
}

/* --- spokes ------------------------------------------------------------------------------------------------------- */

/* Which comes first counterclockwise, from straight down on. */
static int
compare_spokes(const mvt_spoke *s, const mvt_spoke *t)
{
    int half = s->x > 0 || (s->x == 0 && s->y > 0) ? 0 : 1, other = t->x > 0 || (t->x == 0 && t->y > 0) ? 0 : 1;
    int64_t cross = s->x * t->y - s->y * t->x;
    return half != other ? half - other : (cross < 0) - (cross > 0);
}

/* Both ends of arcs that lie in a vertex become its spokes. */
static void
make_spokes(mc_mvt_mender *m, mvt_node *node, int number)
{
    mvt_spoke *ends = m->spokes + m->spoke_count;
    int count = 0;
    for (int i = node->first_arc; i < node->arc_end; i++) {
        const mvt_arc *arc = &m->arcs[i], *last = &m->arcs[arc->last];
        const mvt_spoke both[2] = { { .x = (int64_t)arc->after.x - arc->at.x,
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

/* The other end of the arc, as a spoke there. */
static inline int
other_spoke(const mc_mvt_mender *m, const mvt_spoke *spoke)
{
    return spoke->leaves ? m->arcs[spoke->arc].coming : m->arcs[spoke->arc].leaving;
}

/* Adds to how many rings run around what is around the vertex. */
static void
raise_node(mc_mvt_mender *m, const mvt_node *node, int more)
{
    for (int i = node->first_spoke; i < node->spoke_end; i++) {
        m->spokes[i].left += more;
        m->spokes[i].right += more;
    }
}

/* Of a vertex for itself: to the left of straight down no ring runs. */
static void
count_around_node(mc_mvt_mender *m, const mvt_node *node)
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
spread_counts(mc_mvt_mender *m, const mvt_arc **lowest)
{
    int count = 1;
    *lowest = &m->arcs[m->nodes[m->stack[0]].first_arc];
    for (int i = 0; i < count; i++) {
        const mvt_node *node = &m->nodes[m->stack[i]];
        for (int arc = node->first_arc; arc < node->arc_end; arc++)
            if (mc_mvt_point_before(m->arcs[arc].lowest, (*lowest)->lowest))
                *lowest = &m->arcs[arc];
        for (int at = node->first_spoke; at < node->spoke_end; at++) {
            const mvt_spoke *other = &m->spokes[other_spoke(m, &m->spokes[at])];
            mvt_node *next = &m->nodes[other->node];
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
count_rings(mc_mvt_mender *m)
{
    m->spoke_count = 0;
    for (int i = 0; i < m->node_count; i++) {
        make_spokes(m, &m->nodes[i], i);
        count_around_node(m, &m->nodes[i]);
    }
    for (int i = 0; i < m->node_count; i++) {
        const mvt_arc *lowest;
        if (m->nodes[i].seen)
            continue;
        m->nodes[i].seen = true;
        m->stack[0] = i;
        int count = spread_counts(m, &lowest);
        const mvt_spoke *spoke = &m->spokes[lowest->leaving];
        int outside = lowest->lowest_turn > 0   ? spoke->right
                      : lowest->lowest_turn < 0 ? spoke->left
                                                : m->spokes[m->nodes[lowest->node].first_spoke].right;
        int more = count_rings_around(m, lowest->lowest) - outside;
        for (int k = 0; k < count && more != 0; k++)
            raise_node(m, &m->nodes[m->stack[k]], more);
    }
}

/* --- rings -------------------------------------------------------------------------------------------------------- */

static inline bool
is_border(const mvt_spoke *spoke)
{
    return spoke->left != 0 && spoke->right == 0;
}

/* Adds the vertices of an arc from the spoke on, without the last one. There is room for them. */
static void
emit_arc(mc_shape *out, const mc_mvt_mender *m, const mvt_spoke *spoke)
{
    const mc_mvt_vertex *v = m->edges.vertices;
    mc_shape_point *points = out->points;
    int begin = out->point_count, end = begin, at = m->arcs[spoke->arc].vertex;
    if (!spoke->leaves)
        at = v[at].next;
    for (points[end++] = v[at].at; v[spoke->leaves ? v[at].next : at].contact < 0;) {
        at = v[at].next;
        points[end++] = v[at].at;
    }
    for (int i = begin, k = end - 1; i < k && !spoke->leaves; i++, k--) {
        mc_shape_point swap = points[i];
        points[i] = points[k];
        points[k] = swap;
    }
    out->point_count = end;
}

/* The end of the path, from `from` on, is a ring. */
static void
emit_border_ring(mc_shape *out, mc_mvt_mender *m, int from)
{
    for (int i = from; i < m->path_count; i++) {
        const mvt_spoke *spoke = &m->spokes[m->path[i]];
        m->nodes[spoke->node].place = 0;
        emit_arc(out, m, spoke);
    }
    mc_shape_end_part(out);
    m->path_count = from;
}

/* The border that goes on along the same inside: the first one to the right from the way back. */
static int
next_border(const mc_mvt_mender *m, int from)
{
    int back = other_spoke(m, &m->spokes[from]), at = back;
    const mvt_node *node = &m->nodes[m->spokes[back].node];
    do {
        at = at > node->first_spoke ? at - 1 : node->spoke_end - 1;
    } while (at != back && !is_border(&m->spokes[at]));
    return is_border(&m->spokes[at]) ? at : -1;
}

static bool
walk_borders(mc_shape *out, mc_mvt_mender *m, int start)
{
    m->path_count = 0;
    for (int at = start; !m->spokes[at].used;) {
        mvt_node *node = &m->nodes[m->spokes[at].node];
        if (node->place != 0)
            emit_border_ring(out, m, node->place - 1);
        m->spokes[at].used = true;
        m->path[m->path_count++] = at;
        node->place = m->path_count;
        at = next_border(m, at);
        if (at < 0)
            return false;
    }
    if (m->path_count > 0)
        emit_border_ring(out, m, 0);
    return true;
}

/* Rings that meet none, as they are or the other way round. */
static void
emit_other_rings(mc_shape *out, const mc_shape *in, const mc_mvt_mender *m)
{
    for (int part = 0; part < in->part_count; part++) {
        int begin = mc_shape_part_begin(in, part), count = in->ends[part] - begin;
        if (m->rings[part] != RING_STAYS && m->rings[part] != RING_TURNS)
            continue;
        for (int i = 0; i < count; i++)
            out->points[out->point_count + i] =
                in->points[m->rings[part] == RING_STAYS ? begin + i : begin + count - 1 - i];
        out->point_count += count;
        mc_shape_end_part(out);
    }
}

static bool
emit_valid_rings(mc_shape *out, const mc_shape *in, mc_mvt_mender *m)
{
    mc_shape_clear(out, MC_SHAPE_POLYGONS);
    if (!mc_shape_reserve(out, m->edges.count))
        return false;
    emit_other_rings(out, in, m);
    if (m->edges.contact_count == 0)
        return !out->failed;
    if (!make_arcs(m))
        return false;
    count_rings(m);
    for (int i = 0; i < m->spoke_count; i++)
        if (is_border(&m->spokes[i]) && !m->spokes[i].used && !walk_borders(out, m, i))
            return false;
    return !out->failed;
}

mc_mvt_mending
mc_mvt_mend(mc_shape *out, const mc_shape *in, mc_mvt_mender *m)
{
    if (in->point_count <= 3)
        return MC_MVT_SOUND;
    if (!mc_mvt_edges_take(&m->edges, in) || !mc_mvt_edges_meet(&m->edges) || !judge_rings(m, in))
        return MC_MVT_BEYOND;
    if (!m->changed)
        return MC_MVT_SOUND;
    return emit_valid_rings(out, in, m) ? MC_MVT_MENDED : MC_MVT_BEYOND;
}

int64_t
mc_mvt_mender_take_work(mc_mvt_mender *mender)
{
    enum { PAIRS_OF_VERTEX = 64 };
    int64_t work = mender->edges.spent / PAIRS_OF_VERTEX;
    mender->edges.spent = 0;
    return work;
}
