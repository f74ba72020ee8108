/* See mvt_edges.h: edges in the order of their left ends; each is compared with those that begin before it ends. */
#include "vector/mvt/mvt_edges.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    LANES = 8,      /* boxes of one comparison */
    BLOCK = 4,      /* times so many are passed over together */
    FEW_EDGES = 48, /* so many are not ordered */
    BUCKETS_MAX = 1 << 13,
};

/* Work for one polygon: some tenths of a second. */
#define WORK_MAX INT64_C(100000000)

typedef int16_t box_lanes __attribute__((vector_size(LANES * sizeof(int16_t))));

/* Eight boxes, and the lowest bits of the numbers of their edges' vertices. */
typedef struct mc_mvt_boxes {
    box_lanes minx, miny, maxx, maxy, from, to;
} edge_boxes;

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
mc_mvt_edges_free(mc_mvt_edges *e)
{
    free(e->vertices);
    free(e->contacts);
    free(e->pending);
    free(e->origins);
    free(e->boxes);
    free(e->edges);
    free(e->reach);
    free(e->starts);
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

static bool
edges_have_room(mc_mvt_edges *e, size_t count)
{
    return mc_mvt_room((void **)&e->boxes, &e->box_room, count / LANES + 1, sizeof(*e->boxes)) &&
           mc_mvt_room((void **)&e->edges, &e->edge_room, count, sizeof(*e->edges)) &&
           mc_mvt_room((void **)&e->reach, &e->reach_room, count / (BLOCK * LANES) + 1, sizeof(*e->reach)) &&
           mc_mvt_room((void **)&e->starts, &e->start_room, BUCKETS_MAX + 2, sizeof(*e->starts));
}

static inline int16_t
cut_box_side(const mc_mvt_edges *e, int32_t value, int32_t least)
{
    return (int16_t)((value - least) >> e->shift);
}

/* The same of a box that may reach beyond all edges. */
static inline int16_t
clamp_box_side(const mc_mvt_edges *e, int64_t value, int32_t least)
{
    int64_t cut = (value - least) >> e->shift;
    return (int16_t)(cut < INT16_MIN ? INT16_MIN : cut > INT16_MAX - 1 ? INT16_MAX - 1 : cut);
}

static inline void
put_edge_box(mc_mvt_edges *e, int place, int from, int to)
{
    const mc_mvt_box box = mc_mvt_box_of(e->rings->points[from], e->rings->points[to]);
    edge_boxes *boxes = &e->boxes[place / LANES];
    int lane = place % LANES;
    boxes->minx[lane] = cut_box_side(e, box.minx, e->around.minx);
    boxes->miny[lane] = cut_box_side(e, box.miny, e->around.miny);
    boxes->maxx[lane] = cut_box_side(e, box.maxx, e->around.minx);
    boxes->maxy[lane] = cut_box_side(e, box.maxy, e->around.miny);
    boxes->from[lane] = (int16_t)from;
    boxes->to[lane] = (int16_t)to;
    e->edges[place] = (mc_mvt_placed_edge){ from, to };
}

static void
put_edge_boxes(mc_mvt_edges *e)
{
    for (int part = 0, begin = 0; part < e->rings->part_count; begin = e->rings->ends[part++]) {
        int last = e->rings->ends[part] - 1;
        for (int i = begin; i < last; i++)
            put_edge_box(e, i, i, i + 1);
        put_edge_box(e, last, last, begin);
    }
}

static inline int
bucket_of_edge(const mc_mvt_edges *e, mc_shape_point a, mc_shape_point b)
{
    return cut_box_side(e, a.x < b.x ? a.x : b.x, e->around.minx) >> e->bucket_bits;
}

static void
count_buckets(mc_mvt_edges *e, int buckets)
{
    const mc_shape_point *points = e->rings->points;
    memset(e->starts, 0, sizeof(*e->starts) * (size_t)(buckets + 1));
    for (int part = 0, begin = 0; part < e->rings->part_count; begin = e->rings->ends[part++]) {
        int last = e->rings->ends[part] - 1;
        for (int i = begin; i < last; i++)
            e->starts[bucket_of_edge(e, points[i], points[i + 1]) + 1]++;
        e->starts[bucket_of_edge(e, points[last], points[begin]) + 1]++;
    }
    for (int i = 0; i < buckets; i++)
        e->starts[i + 1] += e->starts[i];
}

/* Puts the boxes in the order of their left ends. */
static void
order_edge_boxes(mc_mvt_edges *e)
{
    const mc_shape_point *points = e->rings->points;
    int width = cut_box_side(e, e->around.maxx, e->around.minx);
    for (e->bucket_bits = 0; width >> e->bucket_bits >= BUCKETS_MAX || width >> e->bucket_bits > e->own * 2;)
        e->bucket_bits++;
    count_buckets(e, (width >> e->bucket_bits) + 1);
    for (int part = 0, begin = 0; part < e->rings->part_count; begin = e->rings->ends[part++]) {
        int last = e->rings->ends[part] - 1;
        for (int i = begin; i < last; i++)
            put_edge_box(e, e->starts[bucket_of_edge(e, points[i], points[i + 1])]++, i, i + 1);
        put_edge_box(e, e->starts[bucket_of_edge(e, points[last], points[begin])]++, last, begin);
    }
}

/* Behind the last edge there are boxes that meet none. */
static void
end_edge_boxes(mc_mvt_edges *e)
{
    int groups = e->own / LANES + 1;
    for (int i = e->own; i < groups * LANES; i++) {
        edge_boxes *boxes = &e->boxes[i / LANES];
        boxes->minx[i % LANES] = boxes->miny[i % LANES] = INT16_MAX;
        boxes->maxx[i % LANES] = boxes->maxy[i % LANES] = INT16_MIN;
        boxes->from[i % LANES] = boxes->to[i % LANES] = 0;
    }
    for (int block = 0; block * BLOCK < groups; block++) {
        box_lanes most = e->boxes[block * BLOCK].maxx;
        for (int i = block * BLOCK + 1; i < (block + 1) * BLOCK && i < groups; i++) {
            box_lanes more = e->boxes[i].maxx > most;
            most = (e->boxes[i].maxx & more) | (most & ~more);
        }
        e->reach[block] = most[0];
        for (int i = 1; i < LANES; i++)
            e->reach[block] = most[i] > e->reach[block] ? most[i] : e->reach[block];
    }
}

static void
make_edge_vertices(mc_mvt_edges *e)
{
    if (!mc_mvt_room((void **)&e->vertices, &e->vertex_room, (size_t)e->own, sizeof(*e->vertices))) {
        e->failed = true;
        return;
    }
    for (int part = 0, begin = 0; part < e->rings->part_count; begin = e->rings->ends[part++]) {
        int end = e->rings->ends[part];
        for (int i = begin; i < end; i++)
            e->vertices[i] = (mc_mvt_vertex){ e->rings->points[i], i + 1, -1 };
        e->vertices[end - 1].next = begin;
    }
}

bool
mc_mvt_edges_take(mc_mvt_edges *e, const mc_shape *rings)
{
    e->rings = rings;
    e->count = e->own = rings->point_count;
    e->contact_count = e->pending_count = 0;
    e->work = WORK_MAX;
    e->failed = !edges_have_room(e, (size_t)e->own) ||
                !mc_shape_bounds(rings, &e->around.minx, &e->around.miny, &e->around.maxx, &e->around.maxy);
    if (e->failed)
        return false;
    int32_t width = e->around.maxx - e->around.minx, height = e->around.maxy - e->around.miny;
    for (e->shift = 0; (width > height ? width : height) >> e->shift >= INT16_MAX;)
        e->shift++;
    e->ordered = e->own > FEW_EDGES;
    if (e->ordered)
        order_edge_boxes(e);
    else
        put_edge_boxes(e);
    end_edge_boxes(e);
    return true;
}

/* --- searching ---------------------------------------------------------------------------------------------------- */

static inline box_lanes
fill_box_lanes(int16_t value)
{
    return (box_lanes){ value, value, value, value, value, value, value, value };
}

/* Two bits for each lane, both 1 where the lane is not 0. */
static inline uint32_t
bits_of_lanes(box_lanes lanes)
{
#ifdef __SSE2__
    return (uint32_t)_mm_movemask_epi8((__m128i)lanes);
#else
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++)
        bits |= (lanes[i] != 0 ? 3U : 0U) << (2 * i);
    return bits;
#endif
}

/* Which lanes' boxes meet those of the same lanes. */
static inline box_lanes
lanes_that_meet(const edge_boxes *boxes, const edge_boxes *box)
{
    return ~((boxes->minx > box->maxx) | (boxes->maxx < box->minx) | (boxes->miny > box->maxy) |
             (boxes->maxy < box->miny));
}

/* Boxes that meet one of this maxx have a minx below. */
static inline int
limit_of_order(const mc_mvt_edges *e, int16_t maxx)
{
    return e->ordered ? ((maxx >> e->bucket_bits) + 1) << e->bucket_bits : INT16_MAX + 1;
}

/* Whether two edges that are as they were taken lie on the two sides of each other, or touch; not if one follows the
 * other. Edges that have been parted may. */
static inline bool
edges_may_meet(const mc_mvt_edges *e, mc_mvt_placed_edge one, mc_mvt_placed_edge other)
{
    const mc_mvt_vertex *v = e->vertices;
    const mc_shape_point *points = e->rings->points;
    if (one.to == other.from || other.to == one.from)
        return false;
    if (e->count > e->own && (v[one.from].next != one.to || v[other.from].next != other.to))
        return true;
    mc_shape_point a = points[one.from], b = points[one.to], c = points[other.from], d = points[other.to];
    int64_t from = mc_mvt_side(a, b, c), to = mc_mvt_side(a, b, d);
    if (((from > 0) & (to > 0)) | ((from < 0) & (to < 0)))
        return false;
    from = mc_mvt_side(c, d, a);
    to = mc_mvt_side(c, d, b);
    return !(((from > 0) & (to > 0)) | ((from < 0) & (to < 0)));
}

static void
pair_edges(mc_mvt_edges *e, mc_mvt_placed_edge edge, int group, uint32_t bits, mc_mvt_pair_visitor *visit)
{
    for (; bits != 0; bits &= bits - 1, bits &= bits - 1) {
        mc_mvt_placed_edge other = e->edges[group * LANES + __builtin_ctz(bits) / 2];
        if (!edges_may_meet(e, edge, other))
            continue;
        if (e->contact_count == 0)
            make_edge_vertices(e);
        if (!e->failed)
            visit(e, edge.from, other.from);
    }
}

/* One of the numbers in all lanes. */
static inline box_lanes
spread_box_lane(box_lanes numbers, int lane)
{
#ifdef __clang__
    return fill_box_lanes(numbers[lane]);
#else
    return __builtin_shuffle(numbers, fill_box_lanes((int16_t)lane));
#endif
}

/* An edge with those behind it in the order; returns how many were looked at. `numbered`: the lowest bits of a vertex
 * tell which one it is, so that neighbours need no other look. */
static inline int
pair_edge(mc_mvt_edges *e, int place, box_lanes numbered, mc_mvt_pair_visitor *visit)
{
    const edge_boxes *boxes = e->boxes;
    int first = place / LANES, lane = place % LANES, group = first, groups = e->own / LANES + 1;
    int limit = limit_of_order(e, boxes[first].maxx[lane]);
    const edge_boxes box = {
        spread_box_lane(boxes[first].minx, lane), spread_box_lane(boxes[first].miny, lane),
        spread_box_lane(boxes[first].maxx, lane), spread_box_lane(boxes[first].maxy, lane),
        spread_box_lane(boxes[first].from, lane), spread_box_lane(boxes[first].to, lane),
    };
    for (uint32_t behind = ~3U << 2 * lane; group < groups && boxes[group].minx[0] < limit; group++, behind = ~0U) {
        box_lanes next = ((boxes[group].from == box.to) | (boxes[group].to == box.from)) & numbered;
        uint32_t bits = bits_of_lanes(lanes_that_meet(&boxes[group], &box) & ~next) & behind;
        if (__builtin_expect(bits != 0, 0))
            pair_edges(e, e->edges[place], group, bits, visit);
    }
    return (group - first) * LANES;
}

void
mc_mvt_edges_pair(mc_mvt_edges *e, mc_mvt_pair_visitor *visit)
{
    const box_lanes numbered = fill_box_lanes(e->own <= 1 << 16 ? -1 : 0);
    for (int i = 0; i + 1 < e->own && !e->failed; i++)
        mc_mvt_edges_work(e, pair_edge(e, i, numbered, visit));
}

void
mc_mvt_edges_near(mc_mvt_edges *e, const mc_mvt_box *box, mc_mvt_edge_visitor *visit, void *baton)
{
    int16_t minx = clamp_box_side(e, box->minx, e->around.minx), maxx = clamp_box_side(e, box->maxx, e->around.minx);
    const edge_boxes lanes = { .minx = fill_box_lanes(minx),
                               .miny = fill_box_lanes(clamp_box_side(e, box->miny, e->around.miny)),
                               .maxx = fill_box_lanes(maxx),
                               .maxy = fill_box_lanes(clamp_box_side(e, box->maxy, e->around.miny)) };
    int limit = limit_of_order(e, maxx), groups = e->own / LANES + 1, work = 0;
    for (int block = 0; block * BLOCK < groups && e->boxes[block * BLOCK].minx[0] < limit; block++) {
        work++;
        if (e->reach[block] < minx)
            continue;
        work += BLOCK * LANES;
        for (int at = block * BLOCK; at < (block + 1) * BLOCK && at < groups; at++)
            for (uint32_t bits = bits_of_lanes(lanes_that_meet(&e->boxes[at], &lanes)); bits != 0;
                 bits &= bits - 1, bits &= bits - 1)
                visit(e, e->edges[at * LANES + __builtin_ctz(bits) / 2], baton);
    }
    mc_mvt_edges_work(e, work);
}
