/* See level_choice.h. */
#include "vector/levels/level_choice.h"

#include <math.h>

#include "grid/earth.h"

/* Two resolutions, or two lengths of a unit, that differ by less are the same. */
#define SAME 1e-6

bool
mc_level_may_serve(const mc_feature_query *query)
{
    const mc_pixel_grid *pixels = &query->pixel_grid;
    return query->style != 0 && mc_query_density(query) == 1 && pixels->warp == NULL &&
           fabs(pixels->per_x / pixels->per_y - 1) < SAME;
}

int
mc_level_find(const mc_level_range *ranges, int count, const mc_feature_query *query)
{
    double metres = query->scale / mc_query_density(query) * MC_PIXEL_METRES / query->resolution;
    for (int i = count - 1; i >= 0; i--)
        if (query->resolution >= ranges[i].resolution * (1 - SAME))
            return query->resolution < ranges[i].until * (1 - SAME) &&
                           fabs(metres / ranges[i].metres_per_unit - 1) < SAME
                       ? i
                       : -1;
    return -1;
}
