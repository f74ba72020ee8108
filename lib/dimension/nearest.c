/* The listed value that is nearest to a requested one: nearestValue of WMS 1.3.0, annex C. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "dimension/dimension_base.h"
#include "text/text.h"
#include "text/time.h"

/* Where a value lies on the axis of its dimension: a number, or the second at which a time begins. */
static bool
find_position(double *position, bool time, const char *value)
{
    mc_time_span span;
    if (!time)
        return mc_parse_double(position, value) && isfinite(*position);
    if (mc_time_parse(&span, value, strlen(value), apr_time_now()) != NULL)
        return false;
    *position = (double)span.start_us / APR_USEC_PER_SEC;
    return true;
}

mc_error *
mc_dimension_nearest(const char **value, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    apr_array_header_t *found, *listed;
    double wanted, position, distance = HUGE_VAL;
    *value = query->value;
    if (!dimension->nearest)
        return MC_OK;
    mc_error *error = mc_dimension_resolve(&found, dimension, query, ctx, pool);
    if (error == MC_OK && found->nelts > 0)
        return MC_OK;
    if (error != MC_OK && error->kind != MC_ERR_INVALID_DIMENSION)
        return error;
    bool time = dimension->time || strcasecmp(dimension->name, "TIME") == 0;
    if (!find_position(&wanted, time, query->value))
        return MC_OK; /* who asks for the value then says what is wrong with it */
    MC_TRY(mc_dimension_list(&listed, dimension, query->tileset, ctx, pool));
    for (int i = 0; i < listed->nelts; i++) {
        const char *text = APR_ARRAY_IDX(listed, i, const char *);
        if (!find_position(&position, time, text) || fabs(position - wanted) >= distance)
            continue;
        distance = fabs(position - wanted);
        *value = text;
    }
    return MC_OK;
}
