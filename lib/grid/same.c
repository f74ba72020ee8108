/* Whether two grids have the same tiles, and the numbers of a tile in both. */
#include <apr_strings.h>
#include <math.h>

#include "grid/same.h"

/* Edges may differ by so many pixels, as those of maps and tiles may (docs/reference/configuration.md 2). */
#define PIXELS_APART 0.02

static bool
have_same_crs(const mc_grid *one, const mc_grid *other)
{
    return (one->epsg != 0 && one->epsg == other->epsg) || mc_grid_has_srs(one, other->srs) ||
           mc_grid_has_srs(other, one->srs);
}

/* Around all tiles of a level. */
static mc_extent
extent_of_level(const mc_grid *grid, int z)
{
    const mc_tile_range all = { 0, 0, grid->levels[z].columns, grid->levels[z].rows };
    return mc_grid_range_extent(grid, z, &all);
}

static bool
is_edge_same(double one, double other, double resolution)
{
    return fabs(one - other) <= PIXELS_APART * resolution;
}

/* NULL, or how the level differs. */
static const char *
compare_levels(const mc_grid *one, const mc_grid *other, int z, apr_pool_t *pool)
{
    const mc_level *a = &one->levels[z], *b = &other->levels[z];
    if (fabs(a->resolution - b->resolution) * one->tile_width > PIXELS_APART * a->resolution)
        return apr_psprintf(pool, "a pixel of level %d is %.12g units wide in grid \"%s\", %.12g in grid \"%s\"", z,
                            a->resolution, one->name, b->resolution, other->name);
    if (a->columns != b->columns || a->rows != b->rows)
        return apr_psprintf(pool, "level %d has %d x %d tiles in grid \"%s\", %d x %d in grid \"%s\"", z, a->columns,
                            a->rows, one->name, b->columns, b->rows, other->name);
    mc_extent first = extent_of_level(one, z), second = extent_of_level(other, z);
    if (is_edge_same(first.minx, second.minx, a->resolution) && is_edge_same(first.miny, second.miny, a->resolution) &&
        is_edge_same(first.maxx, second.maxx, a->resolution) && is_edge_same(first.maxy, second.maxy, a->resolution))
        return NULL;
    return apr_psprintf(pool,
                        "the tiles of level %d lie in %.12g %.12g %.12g %.12g in grid \"%s\", in %.12g %.12g %.12g "
                        "%.12g in grid \"%s\"",
                        z, first.minx, first.miny, first.maxx, first.maxy, one->name, second.minx, second.miny,
                        second.maxx, second.maxy, other->name);
}

const char *
mc_grid_difference(const mc_grid *one, const mc_grid *other, int minzoom, int maxzoom, apr_pool_t *pool)
{
    if (!have_same_crs(one, other))
        return apr_psprintf(pool, "grid \"%s\" is in %s, grid \"%s\" in %s", one->name, one->srs, other->name,
                            other->srs);
    if (one->tile_width != other->tile_width || one->tile_height != other->tile_height)
        return apr_psprintf(pool, "tiles of grid \"%s\" have %d x %d pixels, those of grid \"%s\" %d x %d", one->name,
                            one->tile_width, one->tile_height, other->name, other->tile_width, other->tile_height);
    if (maxzoom >= other->level_count)
        return apr_psprintf(pool, "grid \"%s\" ends with level %d, before level %d of grid \"%s\"", other->name,
                            other->level_count - 1, maxzoom, one->name);
    const char *difference = NULL;
    for (int z = minzoom; z <= maxzoom && difference == NULL; z++)
        difference = compare_levels(one, other, z, pool);
    return difference;
}

void
mc_grid_renumber(int *x, int *y, const mc_grid *from, const mc_grid *to, int z)
{
    *x = mc_grid_from_west(to, z, mc_grid_from_west(from, z, *x));
    *y = mc_grid_tms_y(to, z, mc_grid_tms_y(from, z, *y));
}
