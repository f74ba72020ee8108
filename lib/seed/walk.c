/*
 * The order in which a seeder visits the metatiles of an area (spec services 9.2).
 */
#include <apr_pools.h>
#include <math.h>
#include <stdint.h>

#include "mapcache/seed.h"

/* Metatile numbers of a level that an area covers, half-open: metatile m holds the tiles from m * columns on. */
typedef struct span {
    int first, last;
} span;

static span
columns_of(const mc_seed_area *area, int z)
{
    const mc_tile_range *limits = &area->limits[z];
    if (limits->minx >= limits->maxx || limits->miny >= limits->maxy)
        return (span){ 0, 0 };
    return (span){ limits->minx / area->columns, (limits->maxx - 1) / area->columns + 1 };
}

static span
rows_of(const mc_seed_area *area, int z)
{
    const mc_tile_range *limits = &area->limits[z];
    if (limits->minx >= limits->maxx || limits->miny >= limits->maxy)
        return (span){ 0, 0 };
    return (span){ limits->miny / area->rows, (limits->maxy - 1) / area->rows + 1 };
}

bool
mc_seed_walk_levels(const mc_seed_area *area, mc_seed_visit *visit, void *baton)
{
    for (int z = area->minzoom; z <= area->maxzoom; z++) {
        span columns = columns_of(area, z), rows = rows_of(area, z);
        for (int row = rows.first; row < rows.last; row++)
            for (int column = columns.first; column < columns.last; column++)
                if (!visit(baton, z, column * area->columns, row * area->rows))
                    return false;
    }
    return true;
}

int64_t
mc_seed_count(const mc_seed_area *area)
{
    int64_t count = 0;
    for (int z = area->minzoom; z <= area->maxzoom; z++) {
        span columns = columns_of(area, z), rows = rows_of(area, z);
        int64_t level = (int64_t)(columns.last - columns.first) * (rows.last - rows.first);
        if (__builtin_add_overflow(count, level, &count))
            return INT64_MAX;
    }
    return count;
}

/*
 * The metatile of the level above, along one axis, that a metatile is visited after: the one that holds the centre of
 * its first tile. Where that one lies outside of the area, the nearest inside. It never falls as `child` grows.
 */
static int
parent_of(int child, int tiles, double ratio, span parents)
{
    double tile = floor(((double)child * tiles + 0.5) * ratio);
    int parent = (int)(tile / tiles);
    if (parent < parents.first)
        return parents.first;
    return parent >= parents.last ? parents.last - 1 : parent;
}

/* The metatiles of `children` that are visited after `parent`. */
static span
children_of(int parent, int tiles, double ratio, span parents, span children)
{
    span found;
    for (int end = 0; end < 2; end++) {
        int low = children.first, high = children.last; /* the first child whose parent is at least parent + end */
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (parent_of(middle, tiles, ratio, parents) >= parent + end)
                high = middle;
            else
                low = middle + 1;
        }
        *(end == 0 ? &found.first : &found.last) = low;
    }
    return found;
}

typedef struct descent {
    const mc_seed_area *area;
    mc_seed_visit *visit;
    void *baton;
} descent;

/* Depth is bounded by the number of levels of a grid. */
static bool
visit_down(const descent *descent, int z, int column, int row)
{
    const mc_seed_area *area = descent->area;
    if (!descent->visit(descent->baton, z, column * area->columns, row * area->rows))
        return false;
    if (z == area->maxzoom)
        return true;
    const mc_level *levels = area->grid->levels;
    double ratio = levels[z + 1].resolution / levels[z].resolution;
    span columns = children_of(column, area->columns, ratio, columns_of(area, z), columns_of(area, z + 1));
    span rows = children_of(row, area->rows, ratio, rows_of(area, z), rows_of(area, z + 1));
    for (int y = rows.first; y < rows.last; y++)
        for (int x = columns.first; x < columns.last; x++)
            if (!visit_down(descent, z + 1, x, y))
                return false;
    return true;
}

bool
mc_seed_walk_down(const mc_seed_area *area, mc_seed_visit *visit, void *baton)
{
    descent descent = { area, visit, baton };
    int first = area->minzoom;
    /* A level without any metatile has no children either: the walk begins at the first that has some. */
    while (first < area->maxzoom && columns_of(area, first).first == columns_of(area, first).last)
        first++;
    span columns = columns_of(area, first), rows = rows_of(area, first);
    for (int row = rows.first; row < rows.last; row++)
        for (int column = columns.first; column < columns.last; column++)
            if (!visit_down(&descent, first, column, row))
                return false;
    return true;
}

/* An edge this close to a tile border (in tiles) lies on it: the rule of restricted extents. */
static const double EDGE = 1e-7;

static int
clamp(double tile, int most)
{
    return tile < 0 ? 0 : tile > most ? most : (int)tile;
}

const mc_tile_range *
mc_seed_limits(const mc_grid *grid, const mc_extent *extent, apr_pool_t *pool)
{
    mc_tile_range *limits = apr_pcalloc(pool, sizeof(*limits) * (size_t)grid->level_count);
    const mc_extent *whole = &grid->extent;
    bool from_right = grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT;
    bool from_top = grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT;
    double left = from_right ? whole->maxx - extent->maxx : extent->minx - whole->minx;
    double bottom = from_top ? whole->maxy - extent->maxy : extent->miny - whole->miny;
    double right = left + extent->maxx - extent->minx, top = bottom + extent->maxy - extent->miny;
    for (int z = 0; z < grid->level_count; z++) {
        const mc_level *level = &grid->levels[z];
        double width = level->resolution * grid->tile_width, height = level->resolution * grid->tile_height;
        limits[z] = (mc_tile_range){ clamp(floor(left / width + EDGE), level->columns),
                                     clamp(floor(bottom / height + EDGE), level->rows),
                                     clamp(ceil(right / width - EDGE), level->columns),
                                     clamp(ceil(top / height - EDGE), level->rows) };
    }
    return limits;
}
