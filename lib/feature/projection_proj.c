/* Transformations by PROJ: the module mapcache-proj.so. */
#include <apr_strings.h>
#include <math.h>
#include <proj.h>
#include <stdlib.h>
#include <string.h>

#include "feature/projection_engine.h"

enum { PAIRS = 8, EDGE_POINTS = 21 };

struct mc_proj_pair {
    char *from, *to;
    PJ *transformation; /* NULL: both are the same */
    PJ_CONTEXT *context;
};

struct mc_proj_context {
    PJ_CONTEXT *proj;
    mc_proj_pair pairs[PAIRS];
    int next; /* the oldest of them */
};

static void
say_nothing(void *data, int level, const char *text)
{
    (void)data, (void)level, (void)text;
}

static mc_proj_context *
open_context(void)
{
    mc_proj_context *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->proj = proj_context_create()) == NULL) {
        free(made);
        return NULL;
    }
    proj_context_set_enable_network(made->proj, 0);
    proj_log_func(made->proj, NULL, say_nothing);
    return made;
}

static void
drop_pair(mc_proj_pair *pair)
{
    free(pair->from);
    free(pair->to);
    if (pair->transformation != NULL)
        proj_destroy(pair->transformation);
    *pair = (mc_proj_pair){ 0 };
}

static void
close_context(mc_proj_context *context)
{
    for (int i = 0; i < PAIRS; i++)
        drop_pair(&context->pairs[i]);
    proj_context_destroy(context->proj);
    free(context);
}

static mc_error *
refused(mc_proj_context *context, const char *what, apr_pool_t *pool)
{
    int code = proj_context_errno(context->proj);
    const char *reason = code == 0 ? NULL : proj_context_errno_string(context->proj, code);
    return mc_error_create(pool, MC_ERR_CONFIG, "%s%s%s", what, reason == NULL ? "" : ": ",
                           reason == NULL ? "" : reason);
}

/* A CRS whose first axis is x or longitude; NULL where PROJ cannot read it. */
static PJ *
read_crs(mc_proj_context *context, const char *text)
{
    PJ *crs = proj_create(context->proj, text);
    if (crs != NULL && !proj_is_crs(crs)) {
        proj_destroy(crs);
        return NULL;
    }
    return crs;
}

static mc_error *
join_crs(PJ **transformation, mc_proj_context *context, PJ *from, PJ *to, apr_pool_t *pool)
{
    static const char *const options[] = { "ALLOW_BALLPARK=YES", NULL };
    *transformation = NULL;
    if (proj_is_equivalent_to_with_ctx(context->proj, from, to, PJ_COMP_EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS))
        return MC_OK;
    PJ *made = proj_create_crs_to_crs_from_pj(context->proj, from, to, NULL, options);
    if (made == NULL)
        return refused(context, "the two CRSs cannot be connected", pool);
    *transformation = proj_normalize_for_visualization(context->proj, made);
    proj_destroy(made);
    return *transformation != NULL ? MC_OK : refused(context, "the order of the axes cannot be changed", pool);
}

static mc_error *
make_pair(mc_proj_pair *pair, mc_proj_context *context, const char *from, const char *to, apr_pool_t *pool)
{
    PJ *source = read_crs(context, from), *target = read_crs(context, to);
    mc_error *error = MC_OK;
    if (source == NULL || target == NULL)
        error = refused(context, apr_psprintf(pool, "\"%.60s\" is no CRS that PROJ knows", source == NULL ? from : to),
                        pool);
    else
        error = join_crs(&pair->transformation, context, source, target, pool);
    proj_destroy(source);
    proj_destroy(target);
    return error;
}

static mc_error *
get_pair(const mc_proj_pair **pair, mc_proj_context *context, const char *from, const char *to, apr_pool_t *pool)
{
    mc_proj_pair *found = NULL;
    for (int i = 0; i < PAIRS && found == NULL; i++)
        if (context->pairs[i].from != NULL && strcmp(context->pairs[i].from, from) == 0 &&
            strcmp(context->pairs[i].to, to) == 0)
            found = &context->pairs[i];
    if (found == NULL) {
        mc_proj_pair made = { .context = context->proj };
        MC_TRY(make_pair(&made, context, from, to, pool));
        made.from = strdup(from);
        made.to = strdup(to);
        if (made.from == NULL || made.to == NULL) {
            drop_pair(&made);
            return mc_error_create(pool, MC_ERR_LIMIT, "there is no memory for a transformation");
        }
        found = &context->pairs[context->next];
        context->next = (context->next + 1) % PAIRS;
        drop_pair(found);
        *found = made;
    }
    *pair = found->transformation == NULL ? NULL : found;
    return MC_OK;
}

static void
transform_points(const mc_proj_pair *pair, double *xy, size_t count)
{
    size_t stride = 2 * sizeof(*xy);
    /* what PROJ cannot do it marks itself, and goes on */
    proj_trans_generic(pair->transformation, PJ_FWD, xy, stride, count, xy + 1, stride, count, NULL, 0, 0, NULL, 0, 0);
}

static bool
transform_box(const mc_proj_pair *pair, mc_extent *box, bool inverse)
{
    mc_extent made;
    if (!proj_trans_bounds(pair->context, pair->transformation, inverse ? PJ_INV : PJ_FWD, box->minx, box->miny,
                           box->maxx, box->maxy, &made.minx, &made.miny, &made.maxx, &made.maxy, EDGE_POINTS))
        return false;
    *box = made;
    return isfinite(made.minx) && isfinite(made.miny) && isfinite(made.maxx) && isfinite(made.maxy);
}

const mc_projection_engine mc_projection_engine_proj = {
    open_context, close_context, get_pair, transform_points, transform_box,
};
