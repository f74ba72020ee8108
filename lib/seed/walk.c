/*
 * The order in which a seeder visits the metatiles of an area (docs/reference/services.md 9.2). Blocks of metatiles
 * that lie wholly inside or outside of a region are known as such at once; only those at its border are divided.
 */
#include <apr_pools.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mapcache/seed.h"
#include "seed/hilbert.h"
#include "seed/region.h"

/* An edge this close to a tile border (in tiles) lies on it: the rule of restricted extents. */
static const double EDGE = 1e-7;

/* Metatile numbers of a level that an area covers, half-open: metatile m holds the tiles from m * columns on. */
typedef struct walk_span {
    int first, last;
} walk_span;

/* Metatiles of `size` tiles that hold the tiles from `first` to before `end`; none where the limits are empty. */
static walk_span
walk_span_of(const mc_tile_range *limits, int first, int end, int size)
{
    bool empty = limits->minx >= limits->maxx || limits->miny >= limits->maxy;
    return empty ? (walk_span){ 0, 0 } : (walk_span){ first / size, (end - 1) / size + 1 };
}

static walk_span
walk_level_columns(const mc_seed_area *area, int z)
{
    const mc_tile_range *limits = &area->limits[z];
    return walk_span_of(limits, limits->minx, limits->maxx, area->columns);
}

static walk_span
walk_level_rows(const mc_seed_area *area, int z)
{
    const mc_tile_range *limits = &area->limits[z];
    return walk_span_of(limits, limits->miny, limits->maxy, area->rows);
}

/* A block of metatiles of one level. */
typedef struct walk_block {
    walk_span columns, rows;
} walk_block;

static walk_block
level_block(const mc_seed_area *area, int z)
{
    return (walk_block){ walk_level_columns(area, z), walk_level_rows(area, z) };
}

static bool
block_is_empty(const walk_block *b)
{
    return b->columns.first >= b->columns.last || b->rows.first >= b->rows.last;
}

/* Which metatiles of a block are wanted. */
typedef enum share { NONE, SOME, ALL } share;

/* The box of a block, metatiles cut off at the end of the grid. */
static mc_extent
block_extent(const mc_seed_area *area, int z, const walk_block *b)
{
    const mc_level *level = &area->grid->levels[z];
    int64_t x = (int64_t)b->columns.last * area->columns, y = (int64_t)b->rows.last * area->rows;
    mc_extent one = mc_grid_tile_extent(area->grid, z, b->columns.first * area->columns, b->rows.first * area->rows);
    mc_extent other = mc_grid_tile_extent(area->grid, z, (int)(x < level->columns ? x : level->columns) - 1,
                                          (int)(y < level->rows ? y : level->rows) - 1);
    return mc_extent_union(&one, &other);
}

static double
slack_of(const mc_seed_area *area, int z)
{
    const mc_grid *grid = area->grid;
    int side = grid->tile_width < grid->tile_height ? grid->tile_width : grid->tile_height;
    return grid->levels[z].resolution * side * EDGE;
}

static share
share_of_box(const mc_seed_area *area, const mc_extent *box, double inner, double outer)
{
    switch (mc_region_relate(area->region, box, inner, outer)) {
    case MC_REGION_OUTSIDE:
        return area->outside ? ALL : NONE;
    case MC_REGION_INSIDE:
        return area->outside ? NONE : ALL;
    default:
        return SOME;
    }
}

static share
block_share(const mc_seed_area *area, int z, const walk_block *b)
{
    mc_extent box = block_extent(area, z, b);
    double slack = slack_of(area, z);
    return share_of_box(area, &box, slack, slack);
}

/* What is known of the metatiles of an area before any box is looked at. */
static share
share_at_first(const mc_seed_area *area)
{
    return area->region == NULL ? ALL : SOME;
}

/* A single metatile of which SOME is wanted lies at the border of the region: it meets it. */
static bool
accepts_single_share(const mc_seed_area *area, share single)
{
    return single == ALL || (single == SOME && !area->outside);
}

typedef struct seed_walk {
    const mc_seed_area *area;
    mc_seed_visit *visit;
    void *baton;
} seed_walk;

static bool
visit_one(const seed_walk *w, int z, int column, int row)
{
    return w->visit(w->baton, z, column * w->area->columns, row * w->area->rows);
}

/* ---- level after level */

static bool
visit_block(const seed_walk *w, int z, const walk_block *b)
{
    for (int row = b->rows.first; row < b->rows.last; row++)
        for (int column = b->columns.first; column < b->columns.last; column++)
            if (!visit_one(w, z, column, row))
                return false;
    return true;
}

static int
half_of(walk_span s)
{
    return s.first + (s.last - s.first) / 2;
}

/* Row after row: what is not all or nothing is first divided into rows, then each of these. */
static bool
scan_block_rows(const seed_walk *w, int z, const walk_block *b, share known)
{
    share wanted = known == SOME ? block_share(w->area, z, b) : known;
    if (wanted != SOME)
        return wanted == NONE || visit_block(w, z, b);
    walk_block one = *b, other = *b;
    if (b->rows.last - b->rows.first > 1)
        one.rows.last = other.rows.first = half_of(b->rows);
    else if (b->columns.last - b->columns.first > 1)
        one.columns.last = other.columns.first = half_of(b->columns);
    else
        return !accepts_single_share(w->area, SOME) || visit_block(w, z, b);
    return scan_block_rows(w, z, &one, SOME) && scan_block_rows(w, z, &other, SOME);
}

/* ---- along Hilbert's curve */

static walk_span
clip_walk_span(walk_span a, int first, int64_t last)
{
    return (walk_span){ a.first > first ? a.first : first, a.last < last ? a.last : (int)last };
}

/* The square of 2^power metatiles a side that begins at column, row; `within` is what the level has. */
static bool
follow_hilbert_square(const seed_walk *w, int z, const walk_block *within, int column, int row, int power, int way,
                      share known)
{
    int64_t side = INT64_C(1) << power;
    walk_block square = { clip_walk_span(within->columns, column, column + side),
                          clip_walk_span(within->rows, row, row + side) };
    if (block_is_empty(&square))
        return true;
    share wanted = known == SOME ? block_share(w->area, z, &square) : known;
    if (wanted == NONE)
        return true;
    if (power == 0)
        return !accepts_single_share(w->area, wanted) || visit_one(w, z, column, row);
    int half = 1 << (power - 1);
    for (int i = 0; i < 4; i++) {
        int quarter = mc_hilbert[way].quarter[i];
        if (!follow_hilbert_square(w, z, within, column + (quarter & 1) * half, row + (quarter >> 1) * half, power - 1,
                                   mc_hilbert[way].way[i], wanted))
            return false;
    }
    return true;
}

static bool
walk_curve(const seed_walk *w, int z, const walk_block *b)
{
    int power = 0, most = b->columns.last > b->rows.last ? b->columns.last : b->rows.last;
    while (INT64_C(1) << power < most)
        power++;
    return follow_hilbert_square(w, z, b, 0, 0, power, 0, share_at_first(w->area));
}

/* ---- downwards */

/*
 * The metatile of the level above, along one axis, that a metatile is visited after: the one that holds the centre of
 * its first tile. Where that one lies outside of the area, the nearest inside. It never falls as `child` grows.
 */
static int
parent_of(int child, int tiles, double ratio, walk_span parents)
{
    double tile = floor(((double)child * tiles + 0.5) * ratio);
    int parent = (int)(tile / tiles);
    if (parent < parents.first)
        return parents.first;
    return parent >= parents.last ? parents.last - 1 : parent;
}

/* The first of the metatiles of `children` whose parent is at least `parent`: guessed, then mended. */
static int
first_child(int parent, int tiles, double ratio, walk_span parents, walk_span children)
{
    if (parent <= parents.first)
        return children.first;
    if (parent >= parents.last)
        return children.last;
    double guess = ceil(((double)parent * tiles / ratio - 0.5) / tiles);
    int child = guess <= children.first ? children.first : guess >= children.last ? children.last : (int)guess;
    while (child > children.first && parent_of(child - 1, tiles, ratio, parents) >= parent)
        child--;
    while (child < children.last && parent_of(child, tiles, ratio, parents) < parent)
        child++;
    return child;
}

/* The metatiles of the next level that are visited after those of a block. */
static walk_block
child_block(const mc_seed_area *area, int z, const walk_block *b)
{
    double ratio = area->grid->levels[z + 1].resolution / area->grid->levels[z].resolution;
    walk_block parents = level_block(area, z), children = level_block(area, z + 1);
    return (walk_block){
        { first_child(b->columns.first, area->columns, ratio, parents.columns, children.columns),
          first_child(b->columns.last, area->columns, ratio, parents.columns, children.columns) },
        { first_child(b->rows.first, area->rows, ratio, parents.rows, children.rows),
          first_child(b->rows.last, area->rows, ratio, parents.rows, children.rows) },
    };
}

/* Which metatiles are wanted of a block and of all that is visited after it. */
static share
share_below(const mc_seed_area *area, int z, const walk_block *b)
{
    mc_extent box = block_extent(area, z, b);
    walk_block deeper = *b;
    for (int level = z; level < area->maxzoom && !block_is_empty(&deeper); level++) {
        deeper = child_block(area, level, &deeper);
        if (block_is_empty(&deeper))
            break;
        mc_extent more = block_extent(area, level + 1, &deeper);
        box = mc_extent_union(&box, &more);
    }
    return share_of_box(area, &box, slack_of(area, area->maxzoom), slack_of(area, z));
}

/* Depth is bounded by the number of levels of a grid. */
static bool
descend_levels(const seed_walk *w, int z, int column, int row, share known)
{
    const mc_seed_area *area = w->area;
    const walk_block one = { { column, column + 1 }, { row, row + 1 } };
    share wanted = known == SOME ? share_below(area, z, &one) : known;
    if (wanted == NONE)
        return true;
    if ((wanted == ALL || accepts_single_share(area, block_share(area, z, &one))) && !visit_one(w, z, column, row))
        return false;
    if (z == area->maxzoom)
        return true;
    walk_block children = child_block(area, z, &one);
    for (int y = children.rows.first; y < children.rows.last; y++)
        for (int x = children.columns.first; x < children.columns.last; x++)
            if (!descend_levels(w, z + 1, x, y, wanted))
                return false;
    return true;
}

static bool
walk_down(const seed_walk *w)
{
    int first = w->area->minzoom;
    walk_block b = level_block(w->area, first);
    /* A level without any metatile has no children either: the walk begins at the first that has some. */
    while (first < w->area->maxzoom && block_is_empty(&b))
        b = level_block(w->area, ++first);
    for (int row = b.rows.first; row < b.rows.last; row++)
        for (int column = b.columns.first; column < b.columns.last; column++)
            if (!descend_levels(w, first, column, row, share_at_first(w->area)))
                return false;
    return true;
}

/* ---- what others see */

bool
mc_seed_walk(const mc_seed_area *area, mc_seed_order order, mc_seed_visit *visit, void *baton)
{
    const seed_walk w = { area, visit, baton };
    if (order == MC_SEED_DOWN)
        return walk_down(&w);
    for (int z = area->minzoom; z <= area->maxzoom; z++) {
        walk_block b = level_block(area, z);
        if (block_is_empty(&b))
            continue;
        if (!(order == MC_SEED_HILBERT ? walk_curve(&w, z, &b) : scan_block_rows(&w, z, &b, share_at_first(area))))
            return false;
    }
    return true;
}

static int64_t
count_block(const mc_seed_area *area, int z, const walk_block *b, share known)
{
    int64_t columns = b->columns.last - b->columns.first, rows = b->rows.last - b->rows.first;
    share wanted = known == SOME ? block_share(area, z, b) : known;
    if (wanted == ALL)
        return columns * rows;
    if (wanted == NONE || columns * rows == 1)
        return accepts_single_share(area, wanted);
    walk_block one = *b, other = *b;
    if (columns >= rows)
        one.columns.last = other.columns.first = half_of(b->columns);
    else
        one.rows.last = other.rows.first = half_of(b->rows);
    return count_block(area, z, &one, SOME) + count_block(area, z, &other, SOME);
}

int64_t
mc_seed_count(const mc_seed_area *area)
{
    int64_t count = 0;
    for (int z = area->minzoom; z <= area->maxzoom; z++) {
        walk_block b = level_block(area, z);
        if (!block_is_empty(&b) &&
            __builtin_add_overflow(count, count_block(area, z, &b, share_at_first(area)), &count))
            return INT64_MAX;
    }
    return count;
}

/* ---- estimating */

/* Blocks of a level that the region's border crosses, all about equally large; they are halved round by round. */
typedef struct frontier {
    const mc_seed_area *area;
    int z;
    int64_t looks, sum; /* looks that are left; metatiles that are known to be wanted */
    walk_block *blocks; /* malloc'ed */
    size_t count;
    double all, none; /* halves of which all, and nothing, is wanted: those of the last rounds count most */
} frontier;

static int64_t
block_metatile_count(const walk_block *b)
{
    return (int64_t)(b->columns.last - b->columns.first) * (b->rows.last - b->rows.first);
}

/* Counts what is known, and appends what is crossed to `next`. */
static void
classify_block(frontier *f, const walk_block *b, walk_block *next, size_t *count)
{
    share wanted = block_share(f->area, f->z, b);
    f->looks--;
    f->all += wanted == ALL;
    f->none += wanted == NONE;
    if (wanted == SOME && block_metatile_count(b) > 1)
        next[(*count)++] = *b;
    else if (accepts_single_share(f->area, wanted))
        f->sum += block_metatile_count(b);
}

static void
halve_all(frontier *f)
{
    size_t count = 0;
    walk_block *next = malloc(sizeof(walk_block) * 2 * f->count);
    MC_ASSERT(next != NULL);
    f->all /= 4, f->none /= 4;
    for (size_t i = 0; i < f->count; i++) {
        walk_block one = f->blocks[i], other = one;
        if (one.columns.last - one.columns.first >= one.rows.last - one.rows.first)
            one.columns.last = other.columns.first = half_of(one.columns);
        else
            one.rows.last = other.rows.first = half_of(one.rows);
        classify_block(f, &one, next, &count);
        classify_block(f, &other, next, &count);
    }
    free(f->blocks);
    f->blocks = next;
    f->count = count;
}

/* What is wanted of the blocks if halving them goes on as in the rounds before. */
static double
estimate_wanted_count(const frontier *f, double growth)
{
    double size = 0, found = 0, crossed = (double)f->count;
    double within = f->all == 0 ? 0 : f->all / (f->all + f->none);
    for (size_t i = 0; i < f->count; i++)
        size += (double)block_metatile_count(&f->blocks[i]) / (double)f->count;
    while (size > 1.5) {
        size /= 2;
        found += crossed * (2 - growth) * within * size;
        crossed *= growth;
    }
    return found + (accepts_single_share(f->area, SOME) ? crossed : 0);
}

static double
estimate_level(const mc_seed_area *area, int z, int64_t *looks)
{
    enum { ENOUGH = 512 }; /* blocks to guess from */
    walk_block all = level_block(area, z);
    frontier f = { .area = area, .z = z, .looks = *looks };
    double before[4] = { 1, 1, 1, 1 }; /* counts of the last rounds: both axes have been halved twice */
    if (block_is_empty(&all) || area->region == NULL)
        return block_is_empty(&all) ? 0 : (double)block_metatile_count(&all);
    f.blocks = malloc(sizeof(walk_block));
    MC_ASSERT(f.blocks != NULL);
    classify_block(&f, &all, f.blocks, &f.count);
    while (f.count > 0 && (f.looks > 0 || f.count < ENOUGH)) {
        memmove(before, before + 1, sizeof(before) - sizeof(*before));
        before[3] = (double)f.count;
        halve_all(&f);
    }
    *looks = f.looks;
    double found =
        (double)f.sum +
        (f.count > 0 ? estimate_wanted_count(&f, fmin(fmax(sqrt(sqrt((double)f.count / before[0])), 1), 2)) : 0);
    free(f.blocks);
    return found;
}

int64_t
mc_seed_estimate(const mc_seed_area *area, int64_t looks)
{
    double count = 0;
    for (int z = area->minzoom; z <= area->maxzoom; z++)
        count += estimate_level(area, z, &looks);
    return count < 9e18 ? (int64_t)count : INT64_MAX;
}

bool
mc_seed_wanted(const mc_seed_area *area, int z, int x, int y)
{
    int column = x / area->columns, row = y / area->rows;
    if (z < area->minzoom || z > area->maxzoom)
        return false;
    walk_block within = level_block(area, z), one = { { column, column + 1 }, { row, row + 1 } };
    if (column < within.columns.first || column >= within.columns.last || row < within.rows.first ||
        row >= within.rows.last)
        return false;
    return area->region == NULL || accepts_single_share(area, block_share(area, z, &one));
}

mc_region_relation
mc_region_relate_tiles(const mc_seed_region *region, const mc_grid *grid, int z, const mc_tile_range *tiles)
{
    const mc_seed_area area = { .grid = grid, .columns = 1, .rows = 1 };
    const walk_block b = { { tiles->minx, tiles->maxx }, { tiles->miny, tiles->maxy } };
    mc_extent box = block_extent(&area, z, &b);
    double slack = slack_of(&area, z);
    return mc_region_relate(region, &box, slack, slack);
}
