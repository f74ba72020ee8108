/* See wrap.h. */
#include "vector/feature/wrap.h"

#include <apr_strings.h>
#include <math.h>

#include "vector/crs/projection.h"

/* Pixels that a feature may stick out of its world, by rounding. */
#define STICKS_OUT 1.0

/* Bounds in the map's CRS; false where they are not known. */
static bool
bounds_on_map(mc_extent *bounds, double half, const char *map_srs, const char *data_srs, const mc_extent *given)
{
    double own = data_srs == NULL ? half : mc_projection_turn(data_srs) / 2;
    bool direct =
        data_srs == NULL || mc_projection_same(data_srs, map_srs) == 1 || mc_projection_is_formula(data_srs, map_srs);
    if (!direct || given == NULL || !(own > 0) || !(given->minx <= given->maxx) ||
        given->maxx - given->minx > 4 * own || fabs(given->minx) > 4 * own)
        return false;
    *bounds = *given;
    bounds->minx *= half / own;
    bounds->maxx *= half / own;
    return true;
}

void
mc_wrap_plan(mc_wrap *plan, const mc_feature_query *query, const char *data_srs, const mc_extent *bounds)
{
    *plan = (mc_wrap){ .half = query->wrap ? mc_projection_turn(query->srs) / 2 : 0 };
    if (plan->half == 0)
        return;
    double turn = 2 * plan->half;
    mc_extent all = { .minx = -plan->half, .maxx = plan->half };
    plan->cut = !bounds_on_map(&all, plan->half, query->srs, data_srs, bounds);
    plan->first = (int)fmin(0, fmax(-MC_WRAP_WORLDS, ceil((query->box.minx - all.maxx) / turn)));
    plan->last = (int)fmax(0, fmin(MC_WRAP_WORLDS, floor((query->box.maxx - all.minx) / turn)));
}

const mc_feature_query *
mc_wrap_query(const mc_wrap *plan, const mc_feature_query *query, int world, apr_pool_t *pool)
{
    double by = 2 * plan->half * world;
    if (world == 0)
        return query;
    mc_feature_query *moved = apr_pmemdup(pool, query, sizeof(*moved));
    moved->box.minx += query->wrap_margin - by;
    moved->box.maxx -= query->wrap_margin + by;
    moved->pixel_grid.x0 -= by;
    if (plan->cut) {
        moved->box.minx = fmax(moved->box.minx, -plan->half);
        moved->box.maxx = fmin(moved->box.maxx, plan->half);
    }
    return moved->box.minx <= moved->box.maxx ? moved : NULL;
}

bool
mc_wrap_holds(const mc_wrap *plan, const mc_feature_query *moved, int world, const mc_geometry *geometry)
{
    const mc_pixel_grid *pixel_grid = &moved->pixel_grid;
    int32_t minx, miny, maxx, maxy;
    if (world == 0 || !plan->cut || !mc_geometry_bounds(geometry, &minx, &miny, &maxx, &maxy))
        return true;
    double west = (-plan->half - pixel_grid->x0) * pixel_grid->per_x - (double)pixel_grid->left - STICKS_OUT;
    double east = (plan->half - pixel_grid->x0) * pixel_grid->per_x - (double)pixel_grid->left + STICKS_OUT;
    return minx >= west * MC_SUBPIXELS && maxx <= east * MC_SUBPIXELS;
}
