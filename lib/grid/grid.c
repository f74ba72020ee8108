/* Tile arithmetic of a grid. Everything is computed in doubles and bounded before it becomes an int. */
#include <math.h>
#include <strings.h>

#include "grid/grid_private.h"

/* Whether x of tiles grows to the left, and y downwards. */
static bool
counts_from_right(const mc_grid *grid)
{
    return grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT;
}

static bool
counts_from_top(const mc_grid *grid)
{
    return grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT;
}

mc_grid_cells
mc_grid_cells_of(const mc_grid *grid, const mc_extent *box, int z)
{
    const mc_extent *whole = &grid->extent;
    double width = grid->tile_width * grid->levels[z].resolution;
    double height = grid->tile_height * grid->levels[z].resolution;
    mc_grid_cells cells;
    cells.minx = (counts_from_right(grid) ? whole->maxx - box->maxx : box->minx - whole->minx) / width;
    cells.maxx = (counts_from_right(grid) ? whole->maxx - box->minx : box->maxx - whole->minx) / width;
    cells.miny = (counts_from_top(grid) ? whole->maxy - box->maxy : box->miny - whole->miny) / height;
    cells.maxy = (counts_from_top(grid) ? whole->maxy - box->miny : box->maxy - whole->miny) / height;
    return cells;
}

/* The side `index` of tiles of a size, counted from the lower or the upper end of the grid. */
static inline void
place_tile_side(double *low, double *high, double least, double most, int index, double size, bool from_upper)
{
    if (from_upper) {
        *high = most - index * size;
        *low = most - (index + 1.0) * size;
    } else {
        *low = least + index * size;
        *high = least + (index + 1.0) * size;
    }
}

mc_extent
mc_grid_tile_extent(const mc_grid *grid, int z, int x, int y)
{
    MC_ASSERT(z >= 0 && z < grid->level_count);
    double width = grid->tile_width * grid->levels[z].resolution;
    double height = grid->tile_height * grid->levels[z].resolution;
    const mc_extent *all = &grid->extent;
    mc_extent extent;
    place_tile_side(&extent.minx, &extent.maxx, all->minx, all->maxx, x, width, counts_from_right(grid));
    place_tile_side(&extent.miny, &extent.maxy, all->miny, all->maxy, y, height, counts_from_top(grid));
    return extent;
}

mc_extent
mc_grid_range_extent(const mc_grid *grid, int z, const mc_tile_range *range)
{
    mc_extent first = mc_grid_tile_extent(grid, z, range->minx, range->miny);
    mc_extent last = mc_grid_tile_extent(grid, z, range->maxx - 1, range->maxy - 1);
    return mc_extent_union(&first, &last);
}

bool
mc_grid_has_srs(const mc_grid *grid, const char *srs)
{
    if (srs == NULL)
        return false;
    if (strcasecmp(grid->srs, srs) == 0)
        return true;
    for (int i = 0; i < grid->aliases->nelts; i++)
        if (strcasecmp(APR_ARRAY_IDX(grid->aliases, i, const char *), srs) == 0)
            return true;
    return false;
}

/* The level whose resolution is nearest to that of a map, or -1 when none is within a pixel over a tile's side. */
static int
matching_level(const mc_grid *grid, double resolution)
{
    int side = grid->tile_width > grid->tile_height ? grid->tile_width : grid->tile_height;
    int matching = -1;
    double least = 0;
    for (int z = 0; z < grid->level_count; z++) {
        double distance = fabs(grid->levels[z].resolution - resolution);
        if (distance < grid->levels[z].resolution / side && (matching < 0 || distance < least)) {
            matching = z;
            least = distance;
        }
    }
    return matching;
}

/* The cell whose lower end is within a pixel of `cell`; false if there is none in 0..count-1. */
static bool
matching_cell(double cell, int pixels, int count, int *index)
{
    double nearest = round(cell);
    if (!(fabs(cell - nearest) * pixels <= 1 && nearest >= 0 && nearest < count))
        return false;
    *index = (int)nearest;
    return true;
}

bool
mc_grid_find_tile(const mc_grid *grid, const mc_extent *box, int width, int height, int *z, int *x, int *y)
{
    if (width != grid->tile_width || height != grid->tile_height || !mc_extent_valid(box))
        return false;
    int level = matching_level(grid, fmax((box->maxx - box->minx) / width, (box->maxy - box->miny) / height));
    if (level < 0)
        return false;
    mc_grid_cells cells = mc_grid_cells_of(grid, box, level);
    int column, row;
    if (!matching_cell(cells.minx, width, grid->levels[level].columns, &column) ||
        !matching_cell(cells.miny, height, grid->levels[level].rows, &row))
        return false;
    *z = level;
    *x = column;
    *y = row;
    return true;
}

/* Counted from the other end. Requests call this before the tile is checked, so what lies outside must stay outside. */
static int
flip_tile_row(const mc_grid *grid, int z, int y)
{
    if (z < 0 || z >= grid->level_count || y < 0 || y >= grid->levels[z].rows)
        return y < 0 ? y : -1;
    return grid->levels[z].rows - 1 - y;
}

int
mc_grid_flip_y(const mc_grid *grid, int z, int y)
{
    return counts_from_top(grid) ? y : flip_tile_row(grid, z, y);
}

int
mc_grid_tms_y(const mc_grid *grid, int z, int y)
{
    return counts_from_top(grid) ? flip_tile_row(grid, z, y) : y;
}

int
mc_grid_from_west(const mc_grid *grid, int z, int x)
{
    return counts_from_right(grid) ? grid->levels[z].columns - 1 - x : x;
}
