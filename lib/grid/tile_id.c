/* See tile_id.h. */
#include "grid/tile_id.h"

#include <math.h>

#include "grid/earth.h"

uint64_t
mc_tile_first_id(int z)
{
    return (((uint64_t)1 << (2 * z)) - 1) / 3;
}

uint64_t
mc_tile_id(int z, uint32_t x, uint32_t y)
{
    uint64_t id = mc_tile_first_id(z);
    for (uint32_t side = z > 0 ? (uint32_t)1 << (z - 1) : 0; side > 0; side /= 2) {
        uint32_t right = (x & side) != 0, lower = (y & side) != 0;
        id += (uint64_t)side * side * ((3 * right) ^ lower);
        if (lower == 0) {
            if (right != 0) {
                x = side - 1 - (x & (side - 1));
                y = side - 1 - (y & (side - 1));
            }
            uint32_t turned = x;
            x = y;
            y = turned;
        }
    }
    return id;
}

bool
mc_tile_place(int *z, uint32_t *x, uint32_t *y, uint64_t id)
{
    int level = 0;
    while (level <= MC_TILE_ID_LEVEL_MAX && id >= mc_tile_first_id(level + 1))
        level++;
    if (level > MC_TILE_ID_LEVEL_MAX)
        return false;
    uint64_t rest = id - mc_tile_first_id(level);
    uint32_t column = 0, row = 0;
    for (uint32_t side = 1; side < (uint32_t)1 << level; side *= 2) {
        uint32_t right = 1 & (uint32_t)(rest / 2), lower = 1 & (uint32_t)(rest ^ right);
        if (lower == 0) {
            if (right != 0) {
                column = side - 1 - column;
                row = side - 1 - row;
            }
            uint32_t turned = column;
            column = row;
            row = turned;
        }
        column += side * right;
        row += side * lower;
        rest /= 4;
    }
    *z = level;
    *x = column;
    *y = row;
    return true;
}

bool
mc_grid_has_tile_ids(const mc_grid *grid, int z)
{
    const mc_level *level = &grid->levels[z];
    return z <= MC_TILE_ID_LEVEL_MAX && level->columns == 1 << z && level->rows == 1 << z;
}

bool
mc_grid_is_web_mercator(const mc_grid *grid)
{
    const double half = MC_WEB_MERCATOR_HALF;
    const mc_extent *e = &grid->extent;
    bool world =
        fabs(e->minx + half) < 1 && fabs(e->miny + half) < 1 && fabs(e->maxx - half) < 1 && fabs(e->maxy - half) < 1;
    for (int z = 0; z < grid->level_count && z <= MC_TILE_ID_LEVEL_MAX; z++)
        world = world && mc_grid_has_tile_ids(grid, z);
    return world && (grid->epsg == 3857 || grid->epsg == 900913);
}
