/* Queries for data in another CRS than the map's. */
#include <math.h>

#include "vector/feature/feature.h"
#include "vector/geometry/warp.h"

const char mc_value_is_whole[] = "";

mc_error *
mc_feature_query_project(mc_feature_query *own, const mc_feature_query *query, const char *data_srs, const char *layer,
                         apr_pool_t *pool)
{
    mc_projection *projection;
    *own = *query;
    mc_error *error = mc_projection_open(&projection, data_srs != NULL ? data_srs : query->srs, query->srs, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be transformed into %s", layer, query->srs);
    if (projection == NULL)
        return MC_OK;
    double turn = mc_projection_turn(query->srs);
    own->pixel_grid.warp = mc_warp_create(projection, &query->pixel_grid, turn, pool);
    if (turn > 0 && own->box.maxx - own->box.minx >= turn) { /* more than all around: PROJ would see the rest only */
        own->box.minx = -turn / 2;
        own->box.maxx = turn / 2;
    }
    if (!mc_projection_box(&own->box, projection, true))
        own->box = (mc_extent){ -HUGE_VAL, -HUGE_VAL, HUGE_VAL, HUGE_VAL };
    double width = (own->box.maxx - own->box.minx) / (query->box.maxx - query->box.minx);
    double height = (own->box.maxy - own->box.miny) / (query->box.maxy - query->box.miny);
    own->resolution = query->resolution * (isfinite(width) && isfinite(height) ? fmin(width, height) : 0);
    return MC_OK;
}
