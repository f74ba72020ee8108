/* The tiles of each level of a grid that an extent touches. */
#include <math.h>

#include "mapcache/seed.h"

/* Of a tile: what the extent reaches beyond an edge by rounding alone. */
static const double EDGE = 1e-7;

static int
clamp_metatile_index(double tile, int most)
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
        limits[z] = (mc_tile_range){ clamp_metatile_index(floor(left / width + EDGE), level->columns),
                                     clamp_metatile_index(floor(bottom / height + EDGE), level->rows),
                                     clamp_metatile_index(ceil(right / width - EDGE), level->columns),
                                     clamp_metatile_index(ceil(top / height - EDGE), level->rows) };
    }
    return limits;
}
