/*
 * See mvt_mend.h. Rings that meet are parted where they do, into arcs (mvt_arcs.c). Arcs with an inside on one side
 * only are the new borders. Walks along them, which keep to the inside of one area, are cut where they come to a vertex
 * again.
 */
#include "vector/mvt/mvt_mend.h"

#include <stdlib.h>
#include <string.h>

#include "vector/mvt/mvt_arcs.h"

struct mc_mvt_mender {
    mc_mvt_edges edges;
    mc_mvt_arcs arcs;
    int *path; /* spokes of a walk */
    int path_count;
    size_t path_room, ring_room;
    signed char *rings; /* what becomes of each ring */
    bool changed;       /* rings are left out or turned around, or meet */
};

enum { RING_STAYS, RING_GOES, RING_TURNS, RING_MEETS };

static apr_status_t
free_mender(void *data)
{
    mc_mvt_mender *m = data;
    mc_mvt_edges_free(&m->edges);
    mc_mvt_arcs_free(&m->arcs);
    free(m->path);
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
    int outside = mc_mvt_rings_around(&m->edges, in->points[lowest]);
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

/* --- rings -------------------------------------------------------------------------------------------------------- */

static inline bool
is_border(const mc_mvt_spoke *spoke)
{
    return spoke->left != 0 && spoke->right == 0;
}

/* Adds the vertices of an arc from the spoke on, without the last one. There is room for them. */
static void
emit_arc(mc_shape *out, const mc_mvt_mender *m, const mc_mvt_spoke *spoke)
{
    const mc_mvt_vertex *v = m->edges.vertices;
    mc_shape_point *points = out->points;
    int begin = out->point_count, end = begin, at = m->arcs.arcs[spoke->arc].vertex;
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
        const mc_mvt_spoke *spoke = &m->arcs.spokes[m->path[i]];
        m->arcs.nodes[spoke->node].place = 0;
        emit_arc(out, m, spoke);
    }
    mc_shape_end_part(out);
    m->path_count = from;
}

/* The border that goes on along the same inside: the first one to the right from the way back. */
static int
next_border(const mc_mvt_mender *m, int from)
{
    int back = mc_mvt_other_spoke(&m->arcs, &m->arcs.spokes[from]), at = back;
    const mc_mvt_node *node = &m->arcs.nodes[m->arcs.spokes[back].node];
    do {
        at = at > node->first_spoke ? at - 1 : node->spoke_end - 1;
    } while (at != back && !is_border(&m->arcs.spokes[at]));
    return is_border(&m->arcs.spokes[at]) ? at : -1;
}

static bool
walk_borders(mc_shape *out, mc_mvt_mender *m, int start)
{
    m->path_count = 0;
    for (int at = start; !m->arcs.spokes[at].used;) {
        mc_mvt_node *node = &m->arcs.nodes[m->arcs.spokes[at].node];
        if (node->place != 0)
            emit_border_ring(out, m, node->place - 1);
        m->arcs.spokes[at].used = true;
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
    if (!mc_mvt_arcs_make(&m->arcs, &m->edges) ||
        !mc_mvt_room((void **)&m->path, &m->path_room, (size_t)m->arcs.spoke_count + 1, sizeof(*m->path)))
        return false;
    for (int i = 0; i < m->arcs.spoke_count; i++)
        if (is_border(&m->arcs.spokes[i]) && !m->arcs.spokes[i].used && !walk_borders(out, m, i))
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
