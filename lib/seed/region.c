/*
 * A quadtree over the edges. Its leaves know the edges that touch them and how often the rings wind around their
 * centre; for any other point of a leaf, the edges between it and the centre tell. Built once, then only read.
 */
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "seed/region_private.h"

enum { LEAF = 24, DEPTH = 30, ALWAYS_DIVIDED = 6 };

/* Small, as there are about as many as edges. */
typedef struct region_node {
    uint32_t first;      /* of a leaf: its edges in `lists`; else the first of four children */
    uint32_t split : 1;  /* it is no leaf */
    uint32_t count : 31; /* edges that touch it */
    int winding;         /* at its centre */
} region_node;

/* A directed line from one vertex to the next. */
typedef struct region_edge {
    double ax, ay, bx, by;
} region_edge;

struct mc_seed_region {
    const double *xy; /* as of mc_region_create; an edge has the number of its first vertex */
    size_t areal, count, edges;
    mc_extent bounds; /* of the edges */
    mc_extent root;   /* of the tree: larger */
    region_node *nodes;
    size_t node_count, node_room;
    uint32_t *lists;
    size_t list_size, list_room;
};

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 wide;
#else
typedef long double wide;
#endif

static region_edge
edge_at(const mc_seed_region *region, size_t number)
{
    const double *from = &region->xy[2 * number];
    return (region_edge){ from[0], from[1], from[2], from[3] };
}

static bool
is_edge(const mc_seed_region *region, size_t number)
{
    const double *from = &region->xy[2 * number];
    return number + 1 < region->count && !mc_region_is_gap(from) && !mc_region_is_gap(from + 2);
}

/*
 * On which side of an edge a point lies: 1 left, -1 right. A point on the line counts as moved right by a trifle, and
 * up by a trifle of that, so that there are no points on lines and each way between two points crosses the same edges.
 */
static int
side_of_edge(const region_edge *e, double x, double y)
{
    double left = (e->bx - e->ax) * (y - e->ay), right = (e->by - e->ay) * (x - e->ax), bound = 4e-16;
    if (fabs(left - right) > bound * (fabs(left) + fabs(right)))
        return left > right ? 1 : -1;
    wide exact = ((wide)e->bx - e->ax) * ((wide)y - e->ay) - ((wide)e->by - e->ay) * ((wide)x - e->ax);
    if (exact != 0)
        return exact > 0 ? 1 : -1;
    if (e->by != e->ay)
        return e->by > e->ay ? -1 : 1;
    return e->bx > e->ax ? 1 : -1;
}

/* What an edge adds to the winding number of a point, by the ray to the right. */
static int
right_of(const region_edge *e, double x, double y)
{
    if ((e->ay <= y) == (e->by <= y))
        return 0;
    int side = side_of_edge(e, x, y);
    return e->by > e->ay ? side > 0 : -(side < 0);
}

/* The same by the ray upwards. */
static int
above_of(const region_edge *e, double x, double y)
{
    if ((e->ax <= x) == (e->bx <= x))
        return 0;
    int side = side_of_edge(e, x, y);
    return e->bx < e->ax ? side > 0 : -(side < 0);
}

/* How the winding number changes from one point to another, along y first at the second's x; `list` has all edges that
 * are between. */
static int
winding_change(const mc_seed_region *region, const uint32_t *list, size_t count, const double from[2],
               const double to[2])
{
    int sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i] >= region->areal)
            continue;
        region_edge e = edge_at(region, list[i]);
        sum += right_of(&e, to[0], from[1]) - right_of(&e, from[0], from[1]);
        sum += above_of(&e, to[0], to[1]) - above_of(&e, to[0], from[1]);
    }
    return sum;
}

/* Whether a part of the edge lies in the closed box. */
static bool
edge_touches_box(const region_edge *e, const mc_extent *box)
{
    if (fmax(e->ax, e->bx) < box->minx || fmin(e->ax, e->bx) > box->maxx || fmax(e->ay, e->by) < box->miny ||
        fmin(e->ay, e->by) > box->maxy)
        return false;
    double dx = e->bx - e->ax, dy = e->by - e->ay;
    bool rising = (dx >= 0) == (dy >= 0);
    double one = dx * ((rising ? box->maxy : box->miny) - e->ay) - dy * (box->minx - e->ax);
    double other = dx * ((rising ? box->miny : box->maxy) - e->ay) - dy * (box->maxx - e->ax);
    return !(one > 0 && other > 0) && !(one < 0 && other < 0);
}

static mc_extent
grow_region_box(const mc_extent *box, double by)
{
    return (mc_extent){ box->minx - by, box->miny - by, box->maxx + by, box->maxy + by };
}

static mc_extent
region_box_quarter(const mc_extent *box, int which)
{
    double x = (box->minx + box->maxx) / 2, y = (box->miny + box->maxy) / 2;
    bool right = (which & 1) != 0, upper = (which & 2) != 0;
    return (mc_extent){ right ? x : box->minx, upper ? y : box->miny, right ? box->maxx : x, upper ? box->maxy : y };
}

static void
region_box_centre(double xy[2], const mc_extent *box)
{
    xy[0] = (box->minx + box->maxx) / 2;
    xy[1] = (box->miny + box->maxy) / 2;
}

/* ---- building */

/* Straight from the system, which moves it without copying: the old place would stay with the process. */
static void *
grow_mapped_array(void *items, size_t *room, size_t wanted, size_t size)
{
    if (wanted <= *room)
        return items;
    size_t before = *room * size;
    *room = wanted + wanted / 2 + 256;
    items = items == NULL ? mmap(NULL, *room * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                          : mremap(items, before, *room * size, MREMAP_MAYMOVE);
    MC_ASSERT(items != MAP_FAILED);
    return items;
}

static void
keep_list(mc_seed_region *region, region_node *leaf, const uint32_t *list, size_t count)
{
    region->lists = grow_mapped_array(region->lists, &region->list_room, region->list_size + count, sizeof(uint32_t));
    leaf->first = (uint32_t)region->list_size;
    if (count > 0)
        memcpy(region->lists + region->list_size, list, sizeof(*list) * count);
    region->list_size += count;
}

/* A little more than the box is looked at: an edge at its border must not be lost by rounding. */
static size_t
choose_box_edges(uint32_t *chosen, const mc_seed_region *region, const uint32_t *list, size_t count,
                 const mc_extent *box)
{
    size_t size = 0;
    mc_extent reach = grow_region_box(box, (box->maxx - box->minx + box->maxy - box->miny) * 1e-9);
    for (size_t i = 0; i < count; i++) {
        region_edge e = edge_at(region, list[i]);
        if (edge_touches_box(&e, &reach))
            chosen[size++] = list[i];
    }
    return size;
}

static void
build_region_node(mc_seed_region *region, uint32_t at, const mc_extent *box, const uint32_t *list, size_t count,
                  int depth)
{
    uint32_t *lists[4] = { 0 };
    size_t counts[4], sum = 0;
    region->nodes[at].count = (uint32_t)count & INT32_MAX;
    bool divided = count > LEAF && depth < DEPTH && region->list_size < 16 * region->edges + 4096;
    for (int i = 0; i < 4 && divided; i++) {
        mc_extent part = region_box_quarter(box, i);
        lists[i] = malloc(sizeof(**lists) * count);
        MC_ASSERT(lists[i] != NULL);
        counts[i] = choose_box_edges(lists[i], region, list, count, &part);
        sum += counts[i];
    }
    /* Where edges lie one over the other, parting them gains nothing. */
    if (!divided || (depth >= ALWAYS_DIVIDED && sum > 2 * count)) {
        keep_list(region, &region->nodes[at], list, count);
    } else {
        uint32_t children = (uint32_t)region->node_count;
        double from[2], to[2];
        region_box_centre(from, box);
        region->nodes =
            grow_mapped_array(region->nodes, &region->node_room, region->node_count + 4, sizeof(region_node));
        region->node_count += 4;
        region->nodes[at].split = 1;
        region->nodes[at].first = children;
        for (uint32_t i = 0; i < 4; i++) {
            mc_extent part = region_box_quarter(box, (int)i);
            region_box_centre(to, &part);
            region->nodes[children + i] =
                (region_node){ .winding = region->nodes[at].winding + winding_change(region, list, count, from, to) };
            build_region_node(region, children + i, &part, lists[i], counts[i], depth + 1);
            free(lists[i]);
            lists[i] = NULL;
        }
    }
    for (int i = 0; i < 4; i++)
        free(lists[i]);
}

static apr_status_t
free_region(void *data)
{
    mc_seed_region *region = data;
    munmap(region->nodes, region->node_room * sizeof(*region->nodes));
    if (region->lists != NULL)
        munmap(region->lists, region->list_room * sizeof(*region->lists));
    return APR_SUCCESS;
}

mc_seed_region *
mc_region_create(const double *xy, size_t areal, size_t count, apr_pool_t *pool)
{
    MC_ASSERT(count > 0 && count < UINT32_MAX / 32);
    mc_seed_region *region = apr_pcalloc(pool, sizeof(*region));
    region->xy = xy;
    region->areal = areal;
    region->count = count;
    apr_pool_cleanup_register(pool, region, free_region, apr_pool_cleanup_null);
    mc_extent b = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    uint32_t *all = malloc(sizeof(*all) * count);
    MC_ASSERT(all != NULL);
    for (size_t i = 0; i < count; i++) {
        if (!mc_region_is_gap(&xy[2 * i]))
            b = (mc_extent){ fmin(b.minx, xy[2 * i]), fmin(b.miny, xy[2 * i + 1]), fmax(b.maxx, xy[2 * i]),
                             fmax(b.maxy, xy[2 * i + 1]) };
        if (is_edge(region, i))
            all[region->edges++] = (uint32_t)i;
    }
    count = region->edges;
    region->bounds = b;
    double side = fmax(fmax(b.maxx - b.minx, b.maxy - b.miny), 1e-6 * fmax(fabs(b.minx), fabs(b.miny)));
    region->root = grow_region_box(&b, side > 0 ? side * 0.01 : 1);
    double outside[2] = { region->root.minx, region->root.miny }, centre[2];
    region_box_centre(centre, &region->root);
    region->nodes = grow_mapped_array(NULL, &region->node_room, 1, sizeof(region_node));
    region->nodes[region->node_count++] =
        (region_node){ .winding = winding_change(region, all, count, outside, centre) };
    build_region_node(region, 0, &region->root, all, count, 0);
    free(all);
    return region;
}

/* ---- asking */

typedef struct question {
    const mc_seed_region *region;
    mc_extent areal, linear; /* the boxes that edges of areas, and lines and points must not touch */
} question;

static bool
region_box_contains(const mc_extent *outer, const mc_extent *box)
{
    return outer->minx <= box->minx && outer->miny <= box->miny && outer->maxx >= box->maxx && outer->maxy >= box->maxy;
}

static bool
node_is_crossed(const question *q, const region_node *n, const mc_extent *box)
{
    const mc_seed_region *region = q->region;
    double reach = (box->maxx - box->minx + box->maxy - box->miny) * 1e-9;
    mc_extent around = grow_region_box(box, reach);
    if (n->count == 0 || around.minx > q->linear.maxx || around.maxx < q->linear.minx || around.miny > q->linear.maxy ||
        around.maxy < q->linear.miny)
        return false;
    if (region_box_contains(&q->areal, &around))
        return true;
    if (n->split == 0) {
        for (uint32_t i = 0; i < n->count; i++) {
            uint32_t number = region->lists[n->first + i];
            region_edge e = edge_at(region, number);
            if (edge_touches_box(&e, number < region->areal ? &q->areal : &q->linear))
                return true;
        }
        return false;
    }
    for (uint32_t i = 0; i < 4; i++) {
        mc_extent part = region_box_quarter(box, (int)i);
        if (node_is_crossed(q, &region->nodes[n->first + i], &part))
            return true;
    }
    return false;
}

static int
winding_at(const mc_seed_region *region, const double xy[2])
{
    mc_extent box = region->root;
    const region_node *n = &region->nodes[0];
    double centre[2];
    if (!(xy[0] >= box.minx && xy[0] <= box.maxx && xy[1] >= box.miny && xy[1] <= box.maxy))
        return 0;
    for (region_box_centre(centre, &box); n->split != 0; region_box_centre(centre, &box)) {
        int which = (xy[0] >= centre[0]) + 2 * (xy[1] >= centre[1]);
        n = &region->nodes[n->first + (uint32_t)which];
        box = region_box_quarter(&box, which);
    }
    return n->winding + winding_change(region, region->lists + n->first, n->count, centre, xy);
}

mc_region_relation
mc_region_relate(const mc_seed_region *region, const mc_extent *box, double inner, double outer)
{
    question q = { region, grow_region_box(box, -inner), grow_region_box(box, outer) };
    if (node_is_crossed(&q, &region->nodes[0], &region->root))
        return MC_REGION_CROSSED;
    double centre[2];
    region_box_centre(centre, box);
    return winding_at(region, centre) == 0 ? MC_REGION_OUTSIDE : MC_REGION_INSIDE;
}

mc_extent
mc_region_bounds(const mc_seed_region *region)
{
    return region->bounds;
}

uint64_t
mc_region_hash(const mc_seed_region *region)
{
    return mc_hash64(region->xy, 2 * sizeof(*region->xy) * region->count, region->areal);
}

size_t
mc_region_size(const mc_seed_region *region)
{
    return region->edges;
}
