/* See reading.h. */
#include "vector/feature/reading.h"

mc_error *
mc_reading_worlds(mc_feature_reading *r, const mc_feature_query *query, const char *data_srs, const mc_extent *bounds,
                  mc_error *(*read)(mc_feature_reading *r, apr_pool_t *pool), apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    mc_wrap_plan(&r->plan, query, data_srs, bounds);
    for (r->world = r->plan.first; r->world <= r->plan.last && error == MC_OK; r->world++) {
        r->map = mc_wrap_query(&r->plan, query, r->world, pool);
        if (r->map != NULL)
            error = read(r, pool);
    }
    r->map = NULL; /* it may end here */
    mc_geometry_free(&r->geometry);
    return error;
}

bool
mc_reading_draws(mc_feature_reading *r, mc_error *error, apr_pool_t *scratch)
{
    if (error == MC_OK)
        return !mc_geometry_is_empty(&r->geometry) && mc_wrap_holds(&r->plan, r->map, r->world, &r->geometry);
    if (r->skipped++ == 0)
        mc_log_error(r->ctx, MC_LOG_WARN,
                     mc_error_wrap(scratch, error, error->kind, "layer \"%s\": a feature is left out", r->layer));
    return false;
}

mc_error *
mc_reading_visit(mc_feature_reading *r, int64_t id, const char *const *values)
{
    const mc_feature feature = {
        .id = id, .geometry = &r->geometry, .values = values, .wholes = r->wholes, .query = r->map
    };
    return r->visit(r->baton, &feature, r->ctx);
}
