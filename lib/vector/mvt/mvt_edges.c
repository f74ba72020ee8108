/* See mvt_edges.h. */
#include "vector/mvt/mvt_edges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAF = 8,    /* edges of one run */
    ROUNDS = 16, /* of parting: what is rounded may meet something else */
    SPLIT = 64,  /* of work: what keeping and sorting a split costs */
};

/* Pairs of runs or edges that are looked at for one polygon: some tenths of a second. */
#define WORK_MAX INT64_C(100000000)

struct mc_mvt_edge_box {
    int32_t minx, miny, maxx, maxy;
};
typedef struct mc_mvt_edge_box edge_box;

/* What is done with two edges whose boxes meet; true ends the search. */
typedef bool meeting_edges(mc_mvt_edges *edges, int i, int j);

bool
mc_mvt_room(void **array, size_t *room, size_t count, size_t size)
{
    if (count <= *room)
        return true;
    size_t more = count + count / 2 + 64;
    void *grown = realloc(*array, more * size);
    if (grown == NULL)
        return false;
    *array = grown;
    *room = more;
    return true;
}

void
mc_mvt_edges_free(mc_mvt_edges *edges)
{
    free(edges->edges);
    free(edges->parted);
    free(edges->boxes);
    free(edges->splits);
    free(edges->rings);
    free(edges->met);
}

bool
mc_mvt_edges_take(mc_mvt_edges *e, const mc_shape *rings, const bool *only)
{
    size_t count = (size_t)rings->point_count;
    e->count = 0;
    e->ring_count = rings->part_count;
    e->work = WORK_MAX;
    e->failed = !mc_mvt_room((void **)&e->edges, &e->edge_room, count, sizeof(*e->edges)) ||
                !mc_mvt_room((void **)&e->rings, &e->rings_room, count, sizeof(*e->rings));
    if (e->failed)
        return false;
    for (int part = 0, begin = 0; part < rings->part_count; begin = rings->ends[part++])
        for (int i = begin; (only == NULL || only[part]) && i < rings->ends[part]; i++) {
            mc_mvt_edge edge = { rings->points[i], rings->points[i + 1 < rings->ends[part] ? i + 1 : begin] };
            e->edges[e->count] = edge;
            e->rings[e->count] = part;
            e->count += !mc_shape_same_point(edge.a, edge.b);
        }
    return true;
}

/* --- searching ---------------------------------------------------------------------------------------------------- */

static inline int32_t
lower_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static inline int32_t
upper_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline edge_box
box_of_edge(const mc_mvt_edge *edge)
{
    return (edge_box){ lower_of(edge->a.x, edge->b.x), lower_of(edge->a.y, edge->b.y), upper_of(edge->a.x, edge->b.x),
                       upper_of(edge->a.y, edge->b.y) };
}

static inline edge_box
join_edge_boxes(edge_box a, edge_box b)
{
    return (edge_box){ lower_of(a.minx, b.minx), lower_of(a.miny, b.miny), upper_of(a.maxx, b.maxx),
                       upper_of(a.maxy, b.maxy) };
}

static inline bool
edge_boxes_meet(const edge_box *a, const edge_box *b)
{
    return (a->minx <= b->maxx) & (b->minx <= a->maxx) & (a->miny <= b->maxy) & (b->miny <= a->maxy);
}

static bool
build_edge_boxes(mc_mvt_edges *e)
{
    static const edge_box none = { INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN };
    int runs = (e->count + LEAF - 1) / LEAF;
    for (e->leaves = 1; e->leaves < runs;)
        e->leaves *= 2;
    if (!mc_mvt_room((void **)&e->boxes, &e->box_room, 2 * (size_t)e->leaves, sizeof(*e->boxes)))
        return false;
    for (int run = 0; run < e->leaves; run++) {
        edge_box around = none;
        for (int i = run * LEAF; i < (run + 1) * LEAF && i < e->count; i++)
            around = join_edge_boxes(around, box_of_edge(&e->edges[i]));
        e->boxes[e->leaves + run] = around;
    }
    for (int i = e->leaves - 1; i > 0; i--)
        e->boxes[i] = join_edge_boxes(e->boxes[2 * i], e->boxes[2 * i + 1]);
    return true;
}

/* Pairs of edges of one run. */
static bool
search_run(mc_mvt_edges *e, int run, meeting_edges *found)
{
    edge_box boxes[LEAF];
    int begin = run * LEAF, count = lower_of(LEAF, e->count - begin);
    e->work -= LEAF * LEAF;
    for (int i = 0; i < count; i++)
        boxes[i] = box_of_edge(&e->edges[begin + i]);
    for (int i = 0; i + 1 < count; i++)
        for (int j = i + 1; j < count; j++)
            if (edge_boxes_meet(&boxes[i], &boxes[j]) && found(e, begin + i, begin + j))
                return true;
    return false;
}

/* The edges of a run whose boxes meet that of the other run. */
static int
edges_towards(int *found, edge_box *boxes, const mc_mvt_edges *e, int run, int other)
{
    int count = 0;
    for (int i = run * LEAF; i < (run + 1) * LEAF && i < e->count; i++) {
        boxes[count] = box_of_edge(&e->edges[i]);
        found[count] = i;
        count += edge_boxes_meet(&boxes[count], &e->boxes[e->leaves + other]);
    }
    return count;
}

/* Pairs of edges of two runs. */
static bool
search_runs(mc_mvt_edges *e, int left, int right, meeting_edges *found)
{
    int of_left[LEAF + 1], of_right[LEAF + 1];
    edge_box left_boxes[LEAF + 1], right_boxes[LEAF + 1];
    int left_count = edges_towards(of_left, left_boxes, e, left, right);
    int right_count = left_count == 0 ? 0 : edges_towards(of_right, right_boxes, e, right, left);
    e->work -= LEAF * LEAF;
    for (int i = 0; i < left_count; i++)
        for (int j = 0; j < right_count; j++)
            if (edge_boxes_meet(&left_boxes[i], &right_boxes[j]) && found(e, of_left[i], of_right[j]))
                return true;
    return false;
}

static bool
search_pair(mc_mvt_edges *e, int left, int right, meeting_edges *found)
{
    if (--e->work < 0 || !edge_boxes_meet(&e->boxes[left], &e->boxes[right]))
        return e->work < 0;
    if (left >= e->leaves) /* both: they are of the same level */
        return search_runs(e, left - e->leaves, right - e->leaves, found);
    return search_pair(e, 2 * left, 2 * right, found) || search_pair(e, 2 * left, 2 * right + 1, found) ||
           search_pair(e, 2 * left + 1, 2 * right, found) || search_pair(e, 2 * left + 1, 2 * right + 1, found);
}

static bool
search_below(mc_mvt_edges *e, int at, meeting_edges *found)
{
    if (at >= e->leaves)
        return search_run(e, at - e->leaves, found);
    return search_below(e, 2 * at, found) || search_below(e, 2 * at + 1, found) ||
           search_pair(e, 2 * at, 2 * at + 1, found);
}

/* All pairs of edges whose boxes meet, until one is found to end the search. */
static bool
search_edges(mc_mvt_edges *e, meeting_edges *found)
{
    int64_t before = e->work;
    e->failed = e->failed || !build_edge_boxes(e);
    bool ended = !e->failed && search_below(e, 1, found);
    e->spent += before - e->work;
    e->failed = e->failed || e->work < 0;
    return ended && !e->failed;
}

/* --- meeting ------------------------------------------------------------------------------------------------------ */

static bool
lies_on_edge(const mc_mvt_edge *edge, mc_shape_point p)
{
    edge_box box = box_of_edge(edge);
    return p.x >= box.minx && p.x <= box.maxx && p.y >= box.miny && p.y <= box.maxy;
}

/* Of two edges whose boxes meet. One that follows the other meets it where it turns back only. */
static bool
edges_meet(const mc_mvt_edge *s, const mc_mvt_edge *t)
{
    if (mc_shape_same_point(s->b, t->a) || mc_shape_same_point(s->a, t->b)) {
        int64_t turn = ((int64_t)s->b.x - s->a.x) * ((int64_t)t->b.y - t->a.y) -
                       ((int64_t)s->b.y - s->a.y) * ((int64_t)t->b.x - t->a.x);
        int64_t along = ((int64_t)s->b.x - s->a.x) * ((int64_t)t->b.x - t->a.x) +
                        ((int64_t)s->b.y - s->a.y) * ((int64_t)t->b.y - t->a.y);
        return turn == 0 && along < 0;
    }
    int64_t a = mc_mvt_side(s->a, s->b, t->a), b = mc_mvt_side(s->a, s->b, t->b);
    if ((a > 0 && b > 0) || (a < 0 && b < 0))
        return false;
    int64_t c = mc_mvt_side(t->a, t->b, s->a), d = mc_mvt_side(t->a, t->b, s->b);
    if ((c > 0 && d > 0) || (c < 0 && d < 0))
        return false;
    if (a != 0 || b != 0)
        return true;
    return lies_on_edge(s, t->a) || lies_on_edge(s, t->b) || lies_on_edge(t, s->a);
}

static bool
mark_meeting_rings(mc_mvt_edges *e, int i, int j)
{
    if (edges_meet(&e->edges[i], &e->edges[j]))
        e->met[e->rings[i]] = e->met[e->rings[j]] = true;
    return false;
}

bool
mc_mvt_edges_meet(mc_mvt_edges *e)
{
    bool any = false;
    if (!mc_mvt_room((void **)&e->met, &e->met_room, (size_t)e->ring_count, sizeof(*e->met))) {
        e->failed = true;
        return true;
    }
    memset(e->met, 0, sizeof(*e->met) * (size_t)e->ring_count);
    search_edges(e, mark_meeting_rings);
    for (int i = 0; i < e->ring_count; i++)
        any = any || e->met[i];
    return any || e->failed;
}

/* --- parting ------------------------------------------------------------------------------------------------------ */

static void
split_edge(mc_mvt_edges *e, int edge, mc_shape_point at)
{
    const mc_mvt_edge *s = &e->edges[edge];
    if (mc_shape_same_point(at, s->a) || mc_shape_same_point(at, s->b))
        return;
    e->work -= SPLIT;
    if (e->work < 0 ||
        !mc_mvt_room((void **)&e->splits, &e->split_room, (size_t)e->split_count + 1, sizeof(*e->splits))) {
        e->failed = true;
        return;
    }
    e->splits[e->split_count++] = (mc_mvt_split){ edge, at };
}

static bool
split_where_they_meet(mc_mvt_edges *e, int i, int j)
{
    const mc_mvt_edge *s = &e->edges[i], *t = &e->edges[j];
    int64_t a = mc_mvt_side(s->a, s->b, t->a), b = mc_mvt_side(s->a, s->b, t->b);
    int64_t c = mc_mvt_side(t->a, t->b, s->a), d = mc_mvt_side(t->a, t->b, s->b);
    if (((a > 0) & (b < 0)) | ((a < 0) & (b > 0)) && ((c > 0) & (d < 0)) | ((c < 0) & (d > 0))) {
        double share = (double)c / ((double)c - (double)d);
        mc_shape_point at = { (int32_t)lrint(s->a.x + share * ((double)s->b.x - s->a.x)),
                              (int32_t)lrint(s->a.y + share * ((double)s->b.y - s->a.y)) };
        split_edge(e, i, at);
        split_edge(e, j, at);
        return e->failed;
    }
    if (a == 0 && lies_on_edge(s, t->a))
        split_edge(e, i, t->a);
    if (b == 0 && lies_on_edge(s, t->b))
        split_edge(e, i, t->b);
    if (c == 0 && lies_on_edge(t, s->a))
        split_edge(e, j, s->a);
    if (d == 0 && lies_on_edge(t, s->b))
        split_edge(e, j, s->b);
    return e->failed;
}

static int
compare_splits(const void *left, const void *right)
{
    const mc_mvt_split *a = left, *b = right;
    if (a->edge != b->edge)
        return a->edge < b->edge ? -1 : 1;
    return a->at.x != b->at.x ? (a->at.x < b->at.x ? -1 : 1) : (a->at.y > b->at.y) - (a->at.y < b->at.y);
}

/* How far along the edge a point lies: a rounded one may lie beside it. */
static int64_t
along_edge(const mc_mvt_edge *edge, mc_shape_point p)
{
    return ((int64_t)edge->b.x - edge->a.x) * ((int64_t)p.x - edge->a.x) +
           ((int64_t)edge->b.y - edge->a.y) * ((int64_t)p.y - edge->a.y);
}

/* The splits of one edge in their order along it; there are few of them. */
static void
order_along_edge(const mc_mvt_edge *edge, mc_mvt_split *splits, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && along_edge(edge, splits[j - 1].at) > along_edge(edge, splits[j].at); j--) {
            mc_mvt_split moved = splits[j];
            splits[j] = splits[j - 1];
            splits[j - 1] = moved;
        }
}

static void
add_parted(mc_mvt_edges *e, int *made, mc_shape_point a, mc_shape_point b)
{
    if (!mc_shape_same_point(a, b))
        e->parted[(*made)++] = (mc_mvt_edge){ a, b };
}

/* Puts the splits into the edges. */
static void
apply_splits(mc_mvt_edges *e)
{
    int made = 0;
    qsort(e->splits, (size_t)e->split_count, sizeof(*e->splits), compare_splits);
    for (int i = 0, next = 0; i < e->count; i++) {
        int first = next;
        while (next < e->split_count && e->splits[next].edge == i)
            next++;
        e->work -= (int64_t)(next - first) * (next - first);
        if (e->work < 0) {
            e->failed = true;
            return;
        }
        order_along_edge(&e->edges[i], e->splits + first, next - first);
        mc_shape_point last = e->edges[i].a;
        for (int k = first; k < next; last = e->splits[k++].at)
            add_parted(e, &made, last, e->splits[k].at);
        add_parted(e, &made, last, e->edges[i].b);
    }
    mc_mvt_edge *edges = e->edges;
    size_t room = e->edge_room;
    e->edges = e->parted;
    e->edge_room = e->parted_room;
    e->parted = edges;
    e->parted_room = room;
    e->count = made;
}

bool
mc_mvt_edges_part(mc_mvt_edges *e, bool *parted)
{
    *parted = false;
    e->work = WORK_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        e->split_count = 0;
        search_edges(e, split_where_they_meet);
        if (e->failed || e->split_count == 0)
            return !e->failed;
        *parted = true;
        if (!mc_mvt_room((void **)&e->parted, &e->parted_room, (size_t)e->count + (size_t)e->split_count,
                         sizeof(*e->parted)))
            return false;
        apply_splits(e);
        if (e->failed)
            return false;
    }
    return false;
}
