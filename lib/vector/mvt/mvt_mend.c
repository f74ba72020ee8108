/*
 * See mvt_mend.h. Edges are parted where they meet (mvt_edges.c). A line that sweeps over them from left to right tells
 * how often the rings run around what lies above and below each edge; edges with an inside on one side only are the new
 * borders. Walks along them, which keep to the inside of one area, are cut where they come to a vertex again.
 */
#include "vector/mvt/mvt_mend.h"

#include <stdlib.h>
#include <string.h>

#include "vector/mvt/mvt_edges.h"

enum {
    PAIRED_RINGS = 512, /* of more rings it is not asked pair by pair whether they lie in each other */
    PAIRED_WORK = 64,   /* vertices that are looked at for that, for each vertex of the polygon */
};

/* An edge from left to right, a vertical one from below (y upwards). */
typedef struct sweep_edge {
    mc_shape_point a, b;
    int turns; /* so many more rings run around what lies above it than around what lies below it */
    int above; /* rings that run around what lies above it */
} sweep_edge;

/* A border, with the inside on its left. */
typedef struct border_edge {
    mc_shape_point a, b;
    int vertex, next_vertex; /* the first border that begins in a, in b */
    bool used;
} border_edge;

struct mc_mvt_mender {
    mc_mvt_edges edges;
    sweep_edge *sweep;
    int *ends, *active; /* edges of the sweep by their right ends; those that the line meets, from below */
    border_edge *borders;
    int *path, *place; /* borders of a walk; where in it the vertex of a border stands, from 1 on */
    int sweep_count, active_count, border_count, path_count;
    size_t sweep_room, ends_room, active_room, border_room, path_room, place_room;
    bool *chosen; /* rings that are mended */
    size_t chosen_room;
    bool overlap; /* somewhere rings run around the same place twice, or the wrong way round */
};

static apr_status_t
free_mender(void *data)
{
    mc_mvt_mender *m = data;
    mc_mvt_edges_free(&m->edges);
    free(m->sweep);
    free(m->ends);
    free(m->active);
    free(m->borders);
    free(m->path);
    free(m->place);
    free(m->chosen);
    return APR_SUCCESS;
}

mc_mvt_mender *
mc_mvt_mender_create(apr_pool_t *pool)
{
    mc_mvt_mender *made = apr_pcalloc(pool, sizeof(*made));
    apr_pool_cleanup_register(pool, made, free_mender, apr_pool_cleanup_null);
    return made;
}

static inline int
compare_points(mc_shape_point a, mc_shape_point b)
{
    if (a.x != b.x)
        return a.x < b.x ? -1 : 1;
    return (a.y > b.y) - (a.y < b.y);
}

/* --- the sweep ---------------------------------------------------------------------------------------------------- */

/* By their left ends, there from below. Edges that have been parted are equal where they are the same one. */
static int
compare_sweep_edges(const void *left, const void *right)
{
    const sweep_edge *s = left, *t = right;
    int order = compare_points(s->a, t->a);
    if (order != 0)
        return order;
    int64_t side = mc_mvt_side(s->a, s->b, t->b);
    return side != 0 ? (side > 0 ? -1 : 1) : compare_points(s->b, t->b);
}

static bool
sweep_has_room(mc_mvt_mender *m, size_t count)
{
    return mc_mvt_room((void **)&m->sweep, &m->sweep_room, count, sizeof(*m->sweep)) &&
           mc_mvt_room((void **)&m->ends, &m->ends_room, count, sizeof(*m->ends)) &&
           mc_mvt_room((void **)&m->active, &m->active_room, count, sizeof(*m->active)) &&
           mc_mvt_room((void **)&m->borders, &m->border_room, count, sizeof(*m->borders)) &&
           mc_mvt_room((void **)&m->path, &m->path_room, count + 1, sizeof(*m->path)) &&
           mc_mvt_room((void **)&m->place, &m->place_room, count, sizeof(*m->place));
}

/* Each edge once, with what all of the same place bring together; those that bring nothing are left out. */
static bool
take_sweep_edges(mc_mvt_mender *m)
{
    const mc_mvt_edges *e = &m->edges;
    int kept = 0;
    if (!sweep_has_room(m, (size_t)e->count))
        return false;
    for (int i = 0; i < e->count; i++) {
        bool ahead = compare_points(e->edges[i].a, e->edges[i].b) < 0;
        m->sweep[i] = (sweep_edge){ ahead ? e->edges[i].a : e->edges[i].b, ahead ? e->edges[i].b : e->edges[i].a,
                                    ahead ? 1 : -1, 0 };
    }
    qsort(m->sweep, (size_t)e->count, sizeof(*m->sweep), compare_sweep_edges);
    for (int i = 0; i < e->count;) {
        sweep_edge all = m->sweep[i++];
        for (; i < e->count && compare_sweep_edges(&all, &m->sweep[i]) == 0; i++) {
            all.turns += m->sweep[i].turns;
            m->overlap = true;
        }
        if (all.turns != 0)
            m->sweep[kept++] = all;
    }
    m->sweep_count = kept;
    return true;
}

/* The edge's right end, as a key that sorts; the edge's number makes the keys differ. */
typedef struct right_end {
    mc_shape_point at;
    int edge;
} right_end;

static int
compare_right_ends(const void *left, const void *right)
{
    const right_end *a = left, *b = right;
    int order = compare_points(a->at, b->at);
    return order != 0 ? order : a->edge - b->edge;
}

static bool
order_right_ends(mc_mvt_mender *m)
{
    right_end *keys = malloc(sizeof(*keys) * (size_t)(m->sweep_count + 1));
    if (keys == NULL)
        return false;
    for (int i = 0; i < m->sweep_count; i++)
        keys[i] = (right_end){ m->sweep[i].b, i };
    qsort(keys, (size_t)m->sweep_count, sizeof(*keys), compare_right_ends);
    for (int i = 0; i < m->sweep_count; i++)
        m->ends[i] = keys[i].edge;
    free(keys);
    return true;
}

/* How many of the edges that the line meets lie below the point. */
static int
count_below(const mc_mvt_mender *m, mc_shape_point p)
{
    int low = 0, high = m->active_count;
    while (low < high) {
        int middle = (low + high) / 2;
        const sweep_edge *edge = &m->sweep[m->active[middle]];
        if (mc_mvt_side(edge->a, edge->b, p) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
add_border(mc_mvt_mender *m, const sweep_edge *edge, int below)
{
    m->overlap = m->overlap || edge->above < 0 || edge->above > 1;
    if ((below != 0) == (edge->above != 0))
        return;
    m->borders[m->border_count++] =
        edge->above != 0 ? (border_edge){ .a = edge->a, .b = edge->b } : (border_edge){ .a = edge->b, .b = edge->a };
}

/* The line has come to a vertex: `ending` edges lead to it, those from `first` on, `starting` of them, begin there.
 * False where these are no edges that have been parted. */
static bool
pass_vertex(mc_mvt_mender *m, mc_shape_point at, int ending, int first, int starting)
{
    int place = count_below(m, at);
    int below = place > 0 ? m->sweep[m->active[place - 1]].above : 0;
    int behind = m->active_count - place - ending;
    if (behind < 0 || (size_t)(m->active_count - ending + starting) > m->active_room)
        return false;
    memmove(m->active + place + starting, m->active + place + ending, sizeof(*m->active) * (size_t)behind);
    m->active_count += starting - ending;
    for (int i = 0; i < starting; i++) {
        sweep_edge *edge = &m->sweep[first + i];
        edge->above = below + edge->turns;
        add_border(m, edge, below);
        m->active[place + i] = first + i;
        below = edge->above;
    }
    return true;
}

static bool
find_borders(mc_mvt_mender *m)
{
    m->active_count = m->border_count = 0;
    if (!take_sweep_edges(m) || !order_right_ends(m))
        return false;
    for (int next = 0, end = 0; end < m->sweep_count;) {
        mc_shape_point at = m->sweep[m->ends[end]].b;
        if (next < m->sweep_count && compare_points(m->sweep[next].a, at) < 0)
            at = m->sweep[next].a;
        int ending = 0, first = next;
        for (; end < m->sweep_count && mc_shape_same_point(m->sweep[m->ends[end]].b, at); end++)
            ending++;
        while (next < m->sweep_count && mc_shape_same_point(m->sweep[next].a, at))
            next++;
        if (!pass_vertex(m, at, ending, first, next - first))
            return false;
    }
    return true;
}

/* --- rings -------------------------------------------------------------------------------------------------------- */

static int
compare_borders(const void *left, const void *right)
{
    const border_edge *s = left, *t = right;
    int order = compare_points(s->a, t->a);
    return order != 0 ? order : compare_points(s->b, t->b);
}

/* The first border that begins in the point, which one does. */
static int
first_border(const mc_mvt_mender *m, mc_shape_point at)
{
    int low = 0, high = m->border_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (compare_points(m->borders[middle].a, at) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t
cross_directions(const border_edge *s, const border_edge *t)
{
    return ((int64_t)s->b.x - s->a.x) * ((int64_t)t->b.y - t->a.y) -
           ((int64_t)s->b.y - s->a.y) * ((int64_t)t->b.x - t->a.x);
}

/* In which third of a turn to the right from the way back a border lies: before half of a turn, there, behind it. */
static int
third_of_turn(const border_edge *from, const border_edge *to)
{
    int64_t cross = cross_directions(from, to);
    return cross > 0 ? 0 : cross == 0 ? 1 : 2;
}

/* The border that goes on along the same inside: the first one to the right from the way back. */
static int
next_border(const mc_mvt_mender *m, int from)
{
    const border_edge *last = &m->borders[from];
    int best = -1, best_third = 0;
    for (int i = last->next_vertex; i < m->border_count && mc_shape_same_point(m->borders[i].a, last->b); i++) {
        int third = third_of_turn(last, &m->borders[i]);
        if (best < 0 || third < best_third ||
            (third == best_third && cross_directions(&m->borders[best], &m->borders[i]) > 0)) {
            best = i;
            best_third = third;
        }
    }
    return best;
}

/* The end of the path, from `from` on, is a ring. */
static void
emit_border_ring(mc_shape *out, mc_mvt_mender *m, int from)
{
    for (int i = from; i < m->path_count; i++) {
        const border_edge *border = &m->borders[m->path[i]];
        mc_shape_add(out, border->a.x, border->a.y);
        m->place[border->vertex] = 0;
    }
    mc_shape_end_part(out);
    m->path_count = from;
}

static bool
walk_borders(mc_shape *out, mc_mvt_mender *m, int start)
{
    m->path_count = 0;
    for (int at = start; !m->borders[at].used;) {
        int vertex = m->borders[at].vertex;
        if (m->place[vertex] != 0)
            emit_border_ring(out, m, m->place[vertex] - 1);
        m->borders[at].used = true;
        m->path[m->path_count++] = at;
        m->place[vertex] = m->path_count;
        at = next_border(m, at);
        if (at < 0)
            return false;
    }
    if (m->path_count > 0)
        emit_border_ring(out, m, 0);
    return true;
}

static bool
emit_borders(mc_shape *out, mc_mvt_mender *m)
{
    qsort(m->borders, (size_t)m->border_count, sizeof(*m->borders), compare_borders);
    memset(m->place, 0, sizeof(*m->place) * (size_t)m->border_count);
    for (int i = 0; i < m->border_count; i++) {
        bool again = i > 0 && mc_shape_same_point(m->borders[i - 1].a, m->borders[i].a);
        m->borders[i].vertex = again ? m->borders[i - 1].vertex : i;
        m->borders[i].next_vertex = first_border(m, m->borders[i].b);
    }
    for (int i = 0; i < m->border_count; i++)
        if (!m->borders[i].used && !walk_borders(out, m, i))
            return false;
    return !out->failed;
}

/* --- rings in each other ------------------------------------------------------------------------------------------ */

typedef struct ring_box {
    int32_t minx, miny, maxx, maxy;
    bool outer;
} ring_box;

static ring_box
box_of_ring(const mc_shape *shape, int part)
{
    int begin = mc_shape_part_begin(shape, part), end = shape->ends[part];
    mc_shape_point first = shape->points[begin];
    ring_box box = { first.x, first.y, first.x, first.y, false };
    int64_t twice = 0;
    for (int i = begin; i < end; i++) {
        mc_shape_point p = shape->points[i], next = shape->points[i + 1 < end ? i + 1 : begin];
        twice += ((int64_t)p.x - first.x) * ((int64_t)next.y - first.y) -
                 ((int64_t)next.x - first.x) * ((int64_t)p.y - first.y);
        box.minx = p.x < box.minx ? p.x : box.minx;
        box.miny = p.y < box.miny ? p.y : box.miny;
        box.maxx = p.x > box.maxx ? p.x : box.maxx;
        box.maxy = p.y > box.maxy ? p.y : box.maxy;
    }
    box.outer = twice > 0;
    return box;
}

static bool
ring_runs_around(const mc_shape *shape, int part, mc_shape_point p)
{
    int begin = mc_shape_part_begin(shape, part), end = shape->ends[part];
    bool inside = false;
    for (int i = begin, j = end - 1; i < end; j = i++) {
        mc_shape_point a = shape->points[j], b = shape->points[i];
        if ((a.y > p.y) != (b.y > p.y) && (mc_mvt_side(a, b, p) > 0) == (b.y > a.y))
            inside = !inside;
    }
    return inside;
}

static bool
ring_box_holds(const ring_box *outer, const ring_box *inner)
{
    return inner->minx >= outer->minx && inner->maxx <= outer->maxx && inner->miny >= outer->miny &&
           inner->maxy <= outer->maxy;
}

/* Whether an outer ring lies in an outer ring or a hole in a hole, or that is too much to ask: then the sweep tells. Of
 * rings that do not meet. */
static bool
rings_may_nest(const mc_shape *shape, const ring_box *boxes)
{
    int64_t work = (int64_t)shape->point_count * PAIRED_WORK;
    for (int i = 0; i < shape->part_count; i++)
        for (int j = 0; j < shape->part_count; j++) {
            if (i == j || boxes[i].outer != boxes[j].outer || !ring_box_holds(&boxes[j], &boxes[i]))
                continue;
            work -= shape->ends[j] - mc_shape_part_begin(shape, j);
            if (work < 0 || ring_runs_around(shape, j, shape->points[mc_shape_part_begin(shape, i)]))
                return true;
        }
    return false;
}

/*
 * Which rings are to be mended: those that meet others, and those that may run around them, because how often rings run
 * around a place is counted. All others stay. False: none.
 */
static bool
choose_rings(mc_mvt_mender *m, const mc_shape *in, bool meet)
{
    ring_box boxes[PAIRED_RINGS];
    bool all = in->part_count > PAIRED_RINGS;
    if (in->part_count == 1) {
        m->chosen[0] = meet;
        return meet;
    }
    for (int i = 0; i < in->part_count && !all; i++)
        boxes[i] = box_of_ring(in, i);
    all = all || rings_may_nest(in, boxes);
    for (int i = 0; i < in->part_count; i++) {
        m->chosen[i] = all || m->edges.met[i];
        for (int j = 0; j < in->part_count && !m->chosen[i]; j++)
            m->chosen[i] = m->edges.met[j] && ring_box_holds(&boxes[i], &boxes[j]);
    }
    return all || meet;
}

/* Out of those that are chosen, and all others as they are. */
static bool
emit_mended(mc_shape *out, const mc_shape *in, mc_mvt_mender *m)
{
    mc_shape_clear(out, MC_SHAPE_POLYGONS);
    for (int part = 0; part < in->part_count; part++) {
        if (m->chosen[part])
            continue;
        for (int i = mc_shape_part_begin(in, part); i < in->ends[part]; i++)
            mc_shape_add(out, in->points[i].x, in->points[i].y);
        mc_shape_end_part(out);
    }
    return emit_borders(out, m);
}

mc_mvt_mending
mc_mvt_mend(mc_shape *out, const mc_shape *in, mc_mvt_mender *m)
{
    bool parted = false;
    if (in->point_count <= 3)
        return MC_MVT_SOUND;
    if (!mc_mvt_edges_take(&m->edges, in, NULL) ||
        !mc_mvt_room((void **)&m->chosen, &m->chosen_room, (size_t)in->part_count, sizeof(*m->chosen)))
        return MC_MVT_BEYOND;
    bool meet = mc_mvt_edges_meet(&m->edges);
    if (m->edges.failed)
        return MC_MVT_BEYOND;
    if (!choose_rings(m, in, meet))
        return MC_MVT_SOUND;
    m->overlap = false;
    if (!mc_mvt_edges_take(&m->edges, in, m->chosen) || (meet && !mc_mvt_edges_part(&m->edges, &parted)) ||
        !find_borders(m))
        return MC_MVT_BEYOND;
    if (!meet && !m->overlap)
        return MC_MVT_SOUND;
    return emit_mended(out, in, m) ? MC_MVT_MENDED : MC_MVT_BEYOND;
}

int64_t
mc_mvt_mender_take_work(mc_mvt_mender *mender)
{
    enum { PAIRS_OF_VERTEX = 64 };
    int64_t work = mender->edges.spent / PAIRS_OF_VERTEX;
    mender->edges.spent = 0;
    return work;
}
