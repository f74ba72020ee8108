/* See mvt_edges.h: eight edges that follow each other have a box, eight such boxes have one, and so on. */
#include "vector/mvt/mvt_edges.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

enum { LANES = 8 }; /* boxes of one comparison */

/* Work for one polygon: some tenths of a second. */
#define WORK_MAX INT64_C(100000000)

typedef int16_t box_lanes __attribute__((vector_size(LANES * sizeof(int16_t))));

/* Eight boxes. */
typedef struct mc_mvt_boxes {
    box_lanes minx, miny, maxx, maxy;
} edge_boxes;

/* Up to eight edges of one ring: the first one, and of the ring the first and the last. */
typedef struct mc_mvt_edge_group {
    int first, begin, last;
} edge_group;

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
    free(e->groups);
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

static inline box_lanes
fill_box_lanes(int16_t value)
{
    return (box_lanes){ value, value, value, value, value, value, value, value };
}

/* A number of a box that may reach beyond all edges. */
static inline int16_t
clamp_box_side(const mc_mvt_edges *e, int64_t value, int32_t least)
{
    int64_t cut = (value - least) >> e->shift;
    return (int16_t)(cut < INT16_MIN ? INT16_MIN : cut > INT16_MAX - 1 ? INT16_MAX - 1 : cut);
}

/* Eight vertices, counted from the corner and cut. */
static inline void
cut_vertices(box_lanes *x, box_lanes *y, const mc_mvt_edges *e, const mc_shape_point *points)
{
#ifdef __SSE4_1__
    const __m128i left = _mm_set1_epi32(e->around.minx), top = _mm_set1_epi32(e->around.miny);
    const __m128i shift = _mm_cvtsi32_si128(e->shift);
    __m128i xs[2], ys[2];
    for (int i = 0; i < 2; i++, points += LANES / 2) {
        __m128 one = _mm_loadu_ps((const float *)(const void *)points);
        __m128 other = _mm_loadu_ps((const float *)(const void *)(points + 2));
        xs[i] = _mm_castps_si128(_mm_shuffle_ps(one, other, _MM_SHUFFLE(2, 0, 2, 0)));
        ys[i] = _mm_castps_si128(_mm_shuffle_ps(one, other, _MM_SHUFFLE(3, 1, 3, 1)));
        xs[i] = _mm_sra_epi32(_mm_sub_epi32(xs[i], left), shift);
        ys[i] = _mm_sra_epi32(_mm_sub_epi32(ys[i], top), shift);
    }
    *x = (box_lanes)_mm_packs_epi32(xs[0], xs[1]);
    *y = (box_lanes)_mm_packs_epi32(ys[0], ys[1]);
#else
    for (int i = 0; i < LANES; i++) {
        (*x)[i] = (int16_t)((points[i].x - e->around.minx) >> e->shift);
        (*y)[i] = (int16_t)((points[i].y - e->around.miny) >> e->shift);
    }
#endif
}

static inline box_lanes
choose_lanes(box_lanes which, box_lanes yes, box_lanes no)
{
    return (yes & which) | (no & ~which);
}

static inline box_lanes
lower_lanes(box_lanes a, box_lanes b)
{
#ifdef __SSE4_1__
    return (box_lanes)_mm_min_epi16((__m128i)a, (__m128i)b);
#else
    return choose_lanes(a < b, a, b);
#endif
}

static inline box_lanes
upper_lanes(box_lanes a, box_lanes b)
{
#ifdef __SSE4_1__
    return (box_lanes)_mm_max_epi16((__m128i)a, (__m128i)b);
#else
    return choose_lanes(a > b, a, b);
#endif
}

/* The boxes of the edges between nine vertices. */
static inline edge_boxes
boxes_of_edges(const mc_mvt_edges *e, const mc_shape_point *points)
{
    box_lanes x, y, next_x, next_y;
    cut_vertices(&x, &y, e, points);
    cut_vertices(&next_x, &next_y, e, points + 1);
    return (edge_boxes){ lower_lanes(x, next_x), lower_lanes(y, next_y), upper_lanes(x, next_x),
                         upper_lanes(y, next_y) };
}

/* Only the first `count` boxes stay: the others meet none. */
static inline edge_boxes
cut_off_boxes(edge_boxes boxes, int count)
{
    box_lanes kept = (box_lanes){ 0, 1, 2, 3, 4, 5, 6, 7 } < fill_box_lanes((int16_t)count);
    boxes.minx = choose_lanes(kept, boxes.minx, fill_box_lanes(INT16_MAX));
    boxes.miny = choose_lanes(kept, boxes.miny, fill_box_lanes(INT16_MAX));
    boxes.maxx = choose_lanes(kept, boxes.maxx, fill_box_lanes(INT16_MIN));
    boxes.maxy = choose_lanes(kept, boxes.maxy, fill_box_lanes(INT16_MIN));
    return boxes;
}

static edge_boxes
boxes_of_last_edges(const mc_mvt_edges *e, int first, int begin, int end)
{
    mc_shape_point points[LANES + 1];
    for (int i = 0; i <= LANES; i++)
        points[i] = e->rings->points[first + i < end ? first + i : begin];
    return cut_off_boxes(boxes_of_edges(e, points), end - first);
}

/* The groups of all rings; returns their number. */
static int
make_edge_groups(mc_mvt_edges *e)
{
    int made = 0;
    for (int part = 0, begin = 0; part < e->rings->part_count; begin = e->rings->ends[part++]) {
        int end = e->rings->ends[part];
        for (int first = begin; first < end; first += LANES, made++) {
            e->groups[made] = (edge_group){ first, begin, end - 1 };
            e->boxes[made] = first + LANES < end ? boxes_of_edges(e, e->rings->points + first)
                                                 : boxes_of_last_edges(e, first, begin, end);
        }
    }
    return made;
}

/* None of the numbers is below 0, but for lanes that are to be left out here. */
static inline int16_t
least_lane(box_lanes lanes)
{
#ifdef __SSE4_1__
    return (int16_t)_mm_cvtsi128_si32(_mm_minpos_epu16((__m128i)lanes));
#else
    uint16_t least = UINT16_MAX;
    for (int i = 0; i < LANES; i++)
        least = (uint16_t)lanes[i] < least ? (uint16_t)lanes[i] : least;
    return (int16_t)least;
#endif
}

/* The box around each of `count` groups of boxes. */
static edge_boxes
boxes_around_groups(const edge_boxes *groups, int count)
{
    const box_lanes top = fill_box_lanes(INT16_MAX);
    int16_t found[4][LANES];
    for (int i = 0; i < LANES; i++) {
        found[0][i] = i < count ? least_lane(groups[i].minx) : INT16_MAX;
        found[1][i] = i < count ? least_lane(groups[i].miny) : INT16_MAX;
        found[2][i] = i < count ? (int16_t)(INT16_MAX - least_lane(top ^ groups[i].maxx)) : INT16_MIN;
        found[3][i] = i < count ? (int16_t)(INT16_MAX - least_lane(top ^ groups[i].maxy)) : INT16_MIN;
    }
    edge_boxes boxes;
    memcpy(&boxes, found, sizeof(boxes));
    return boxes;
}

/* The levels above the groups, up to one that is one group. */
static void
make_edge_levels(mc_mvt_edges *e, int groups)
{
    e->levels[0] = 0;
    for (e->level_count = 1; groups > 1; e->level_count++) {
        const edge_boxes *below = e->boxes + e->levels[e->level_count - 1];
        int count = (groups + LANES - 1) / LANES, above = e->levels[e->level_count - 1] + groups;
        e->levels[e->level_count] = above;
        for (int i = 0; i < count; i++)
            e->boxes[above + i] =
                boxes_around_groups(below + i * LANES, groups - i * LANES < LANES ? groups - i * LANES : LANES);
        groups = count;
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
    size_t groups = (size_t)rings->point_count / LANES + (size_t)rings->part_count;
    e->rings = rings;
    e->count = e->own = rings->point_count;
    e->contact_count = e->pending_count = 0;
    e->work = WORK_MAX;
    e->failed =
        !mc_mvt_room((void **)&e->groups, &e->group_room, groups, sizeof(*e->groups)) ||
        !mc_mvt_room((void **)&e->boxes, &e->box_room, groups + groups / 4 + MC_MVT_LEVELS, sizeof(*e->boxes)) ||
        !mc_shape_bounds(rings, &e->around.minx, &e->around.miny, &e->around.maxx, &e->around.maxy);
    if (e->failed)
        return false;
    int32_t width = e->around.maxx - e->around.minx, height = e->around.maxy - e->around.miny;
    for (e->shift = 0; (width > height ? width : height) >> e->shift >= INT16_MAX;)
        e->shift++;
    make_edge_levels(e, make_edge_groups(e));
    return true;
}

/* --- searching ---------------------------------------------------------------------------------------------------- */

/* Two bits for each lane, both 1 where the lane is not 0. */
static inline uint32_t
bits_of_lanes(box_lanes lanes)
{
#ifdef __SSE4_1__
    return (uint32_t)_mm_movemask_epi8((__m128i)lanes);
#else
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++)
        bits |= (lanes[i] != 0 ? 3U : 0U) << (2 * i);
    return bits;
#endif
}

/* Two bits of each lane whose box meets that of the same lane. */
static inline uint32_t
lanes_that_meet(const edge_boxes *boxes, const edge_boxes *box)
{
    return bits_of_lanes((boxes->minx > box->maxx) | (boxes->maxx < box->minx) | (boxes->miny > box->maxy) |
                         (boxes->maxy < box->miny)) ^
           0xFFFFU;
}

/* The first lane of the bits; `bits` goes on to the next one. */
static inline int
take_lane(uint32_t *bits)
{
    int lane = __builtin_ctz(*bits) / 2;
    *bits &= *bits - 1;
    *bits &= *bits - 1;
    return lane;
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

static inline edge_boxes
spread_box(const edge_boxes *boxes, int lane)
{
    return (edge_boxes){ spread_box_lane(boxes->minx, lane), spread_box_lane(boxes->miny, lane),
                         spread_box_lane(boxes->maxx, lane), spread_box_lane(boxes->maxy, lane) };
}

static inline mc_mvt_placed_edge
edge_of_lane(const mc_mvt_edges *e, int group, int lane)
{
    const edge_group *g = &e->groups[group];
    int from = g->first + lane;
    return (mc_mvt_placed_edge){ from, from == g->last ? g->begin : from + 1 };
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

/* An edge, by its group and lane, with those of a group. */
static void
pair_edge(mc_mvt_edges *e, mc_mvt_placed_edge edge, int group, uint32_t bits, mc_mvt_pair_visitor *visit)
{
    while (bits != 0) {
        mc_mvt_placed_edge other = edge_of_lane(e, group, take_lane(&bits));
        if (!edges_may_meet(e, edge, other))
            continue;
        if (e->contact_count == 0)
            make_edge_vertices(e);
        if (!e->failed)
            visit(e, edge.from, other.from);
    }
}

/* All below one node of a level with all below another one, around which there is `box`. */
static void
pair_two_nodes(mc_mvt_edges *e, int level, int one, int other, const edge_boxes *box, mc_mvt_pair_visitor *visit)
{
    const edge_boxes *boxes = &e->boxes[e->levels[level] + one], *others = &e->boxes[e->levels[level] + other];
    for (uint32_t lanes = lanes_that_meet(boxes, box); lanes != 0 && mc_mvt_edges_work(e, LANES);) {
        int lane = take_lane(&lanes);
        const edge_boxes part = spread_box(boxes, lane);
        uint32_t bits = lanes_that_meet(others, &part);
        if (level == 0) {
            if (bits != 0)
                pair_edge(e, edge_of_lane(e, one, lane), other, bits, visit);
            continue;
        }
        while (bits != 0 && !e->failed) {
            int with = take_lane(&bits);
            const edge_boxes around = spread_box(others, with);
            pair_two_nodes(e, level - 1, one * LANES + lane, other * LANES + with, &around, visit);
        }
    }
}

/* The edges of a group with each other, but with those that follow them. */
static void
pair_group(mc_mvt_edges *e, int group, mc_mvt_pair_visitor *visit)
{
    const edge_boxes *boxes = &e->boxes[group];
    int count = e->groups[group].last + 1 - e->groups[group].first;
    for (int lane = 0; lane + 2 < LANES && lane + 2 < count; lane++) {
        const edge_boxes box = spread_box(boxes, lane);
        uint32_t bits = lanes_that_meet(boxes, &box) & (0xFFFFU << 2 * (lane + 2));
        if (bits != 0)
            pair_edge(e, edge_of_lane(e, group, lane), group, bits, visit);
    }
    mc_mvt_edges_work(e, LANES * LANES / 2);
}

/* All below a node of a level with each other. */
static void
pair_node(mc_mvt_edges *e, int level, int node, mc_mvt_pair_visitor *visit)
{
    if (level == 0) {
        pair_group(e, node, visit);
        return;
    }
    const edge_boxes *boxes = &e->boxes[e->levels[level] + node];
    for (int lane = 0; lane < LANES && boxes->minx[lane] != INT16_MAX && mc_mvt_edges_work(e, LANES); lane++) {
        const edge_boxes box = spread_box(boxes, lane);
        pair_node(e, level - 1, node * LANES + lane, visit);
        for (uint32_t bits = lanes_that_meet(boxes, &box) & (0xFFFFU << 2 * (lane + 1)); bits != 0 && !e->failed;) {
            int other = take_lane(&bits);
            const edge_boxes around = spread_box(boxes, other);
            pair_two_nodes(e, level - 1, node * LANES + lane, node * LANES + other, &around, visit);
        }
    }
}

void
mc_mvt_edges_pair(mc_mvt_edges *e, mc_mvt_pair_visitor *visit)
{
    pair_node(e, e->level_count - 1, 0, visit);
}

/* What is searched for. */
typedef struct near_search {
    edge_boxes box;
    mc_mvt_edge_visitor *visit;
    void *baton;
} near_search;

static void
search_near_node(mc_mvt_edges *e, int level, int node, const near_search *search)
{
    mc_mvt_edges_work(e, LANES);
    for (uint32_t bits = lanes_that_meet(&e->boxes[e->levels[level] + node], &search->box); bits != 0;) {
        int lane = take_lane(&bits);
        if (level > 0)
            search_near_node(e, level - 1, node * LANES + lane, search);
        else
            search->visit(e, edge_of_lane(e, node, lane), search->baton);
    }
}

void
mc_mvt_edges_near(mc_mvt_edges *e, const mc_mvt_box *box, mc_mvt_edge_visitor *visit, void *baton)
{
    const near_search search = { .box = { fill_box_lanes(clamp_box_side(e, box->minx, e->around.minx)),
                                          fill_box_lanes(clamp_box_side(e, box->miny, e->around.miny)),
                                          fill_box_lanes(clamp_box_side(e, box->maxx, e->around.minx)),
                                          fill_box_lanes(clamp_box_side(e, box->maxy, e->around.miny)) },
                                 .visit = visit,
                                 .baton = baton };
    search_near_node(e, e->level_count - 1, 0, &search);
}
