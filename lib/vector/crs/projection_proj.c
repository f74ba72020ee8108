/* Transformations by PROJ: the module mapcache-proj.so. */
#include <apr_strings.h>
#include <math.h>
#include <proj.h>
#include <proj_experimental.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "grid/earth.h"
#include "vector/crs/projection_engine.h"

enum { PAIRS = 8, EDGE_POINTS = 21 };

#define WIDE_MARGIN 0.1 /* more than what lies between two of the points of an edge */

struct mc_proj_pair {
    char *from, *to;
    PJ *transformation; /* NULL: both are the same */
    PJ *degrees, *back; /* from `to` to degrees and on to `from`: for boxes; NULL where `from` is in degrees itself */
    PJ_CONTEXT *context;
    double ratio; /* of their units */
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
    proj_destroy(pair->transformation); /* NULL is no harm */
    proj_destroy(pair->degrees);
    proj_destroy(pair->back);
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
projection_error(mc_proj_context *context, const char *what, apr_pool_t *pool)
{
    int code = proj_context_errno(context->proj);
    const char *reason = code == 0 ? NULL : proj_context_errno_string(context->proj, code);
    return mc_error_create(pool, MC_ERR_CONFIG, "%s%s%s", what, reason == NULL ? "" : ": ",
                           reason == NULL ? "" : reason);
}

/* AUTHORITY:CODE, of an authority that the database has. */
static bool
is_code(mc_proj_context *context, const char *text)
{
    const char *colon = strchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    if (length == 4 && strncasecmp(text, "EPSG", length) == 0)
        return true;
    PROJ_STRING_LIST all = length == 0 ? NULL : proj_get_authorities_from_database(context->proj);
    bool found = false;
    for (int i = 0; all != NULL && all[i] != NULL && !found; i++)
        found = strlen(all[i]) == length && strncasecmp(text, all[i], length) == 0;
    proj_string_list_destroy(all);
    return found;
}

/* WKT, PROJJSON, a string of PROJ, a URN or URL. */
static bool
is_definition(const char *text)
{
    return strpbrk(text, "[{=") != NULL || strncasecmp(text, "urn:", 4) == 0 || strncasecmp(text, "http", 4) == 0;
}

/* The CRS of exactly this name. proj_create() guesses ("wgs" is WGS 72 to it), and not the same each time. */
static PJ *
crs_of_name(mc_proj_context *context, const char *text)
{
    PJ_TYPE type = PJ_TYPE_CRS;
    PJ_OBJ_LIST *found = proj_create_from_name(context->proj, NULL, text, &type, 1, 0, 1, NULL);
    PJ *crs = found != NULL && proj_list_get_count(found) > 0 ? proj_list_get(context->proj, found, 0) : NULL;
    proj_list_destroy(found);
    return crs;
}

/* A CRS whose first axis is x or longitude; NULL where PROJ cannot read it. */
static PJ *
parse_crs_text(mc_proj_context *context, const char *text)
{
    bool exact = is_definition(text) || is_code(context, text);
    PJ *crs = exact ? proj_create(context->proj, text) : crs_of_name(context, text);
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
        return projection_error(context, "the two CRSs cannot be connected", pool);
    *transformation = proj_normalize_for_visualization(context->proj, made);
    proj_destroy(made);
    return *transformation != NULL ? MC_OK : projection_error(context, "the order of the axes cannot be changed", pool);
}

static bool
is_in_degrees(const PJ *crs)
{
    PJ_TYPE type = proj_get_type(crs);
    return type == PJ_TYPE_GEOGRAPHIC_2D_CRS || type == PJ_TYPE_GEOGRAPHIC_3D_CRS;
}

/*
 * A box that a pole lies in, or the antimeridian runs through, reaches farther in a projected CRS than its edges do.
 * PROJ knows both where the result is in degrees, so boxes go that way.
 */
static mc_error *
join_by_degrees(mc_proj_pair *pair, mc_proj_context *context, PJ *from, PJ *to, apr_pool_t *pool)
{
    PJ *degrees = pair->transformation == NULL || is_in_degrees(from) || is_in_degrees(to)
                      ? NULL
                      : proj_crs_get_geodetic_crs(context->proj, to);
    if (degrees == NULL)
        return MC_OK;
    mc_error *error = join_crs(&pair->degrees, context, to, degrees, pool);
    if (error == MC_OK)
        error = join_crs(&pair->back, context, degrees, from, pool);
    proj_destroy(degrees);
    return error;
}

/* Metres for a unit of a CRS, of angles on the equator; 1 where it does not say. */
static double
metres_per_unit(PJ_CONTEXT *context, const PJ *crs)
{
    double factor = 0;
    /* of one that is bound to another datum */
    PJ *part = proj_get_type(crs) == PJ_TYPE_BOUND_CRS ? proj_get_source_crs(context, crs) : NULL;
    const PJ *plain = part == NULL ? crs : part;
    PJ *horizontal = proj_get_type(plain) == PJ_TYPE_COMPOUND_CRS ? proj_crs_get_sub_crs(context, plain, 0) : NULL;
    plain = horizontal == NULL ? plain : horizontal;
    PJ_TYPE type = proj_get_type(plain);
    bool angles = type == PJ_TYPE_GEOGRAPHIC_2D_CRS || type == PJ_TYPE_GEOGRAPHIC_3D_CRS;
    PJ *axes = proj_crs_get_coordinate_system(context, plain);
    if (axes == NULL || !proj_cs_get_axis_info(context, axes, 0, NULL, NULL, NULL, &factor, NULL, NULL, NULL))
        factor = 0;
    proj_destroy(axes);
    proj_destroy(horizontal);
    proj_destroy(part);
    return factor > 0 ? factor * (angles ? MC_EARTH_RADIUS /* metres for a radian */ : 1) : 1;
}

static double
ratio_of(const mc_proj_pair *pair)
{
    return pair->ratio;
}

static mc_error *
make_pair(mc_proj_pair *pair, mc_proj_context *context, const char *from, const char *to, apr_pool_t *pool)
{
    PJ *source = parse_crs_text(context, from), *target = parse_crs_text(context, to);
    mc_error *error = MC_OK;
    if (source == NULL || target == NULL)
        error = projection_error(
            context, apr_psprintf(pool, "\"%.60s\" is no CRS that PROJ knows", source == NULL ? from : to), pool);
    else
        error = join_crs(&pair->transformation, context, source, target, pool);
    if (source != NULL && target != NULL)
        pair->ratio = metres_per_unit(context->proj, source) / metres_per_unit(context->proj, target);
    if (error == MC_OK)
        error = join_by_degrees(pair, context, source, target, pool);
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
        mc_proj_pair made = { .from = strdup(from), .to = strdup(to), .context = context->proj };
        mc_error *error = made.from == NULL || made.to == NULL
                              ? mc_error_create(pool, MC_ERR_LIMIT, "there is no memory for a transformation")
                              : make_pair(&made, context, from, to, pool);
        if (error != MC_OK) {
            drop_pair(&made);
            return error;
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
transform_bounds(mc_extent *box, const mc_proj_pair *pair, PJ *transformation, PJ_DIRECTION direction)
{
    mc_extent made;
    if (!proj_trans_bounds(pair->context, transformation, direction, box->minx, box->miny, box->maxx, box->maxy,
                           &made.minx, &made.miny, &made.maxx, &made.maxy, EDGE_POINTS))
        return false;
    *box = made;
    return isfinite(made.minx) && isfinite(made.miny) && isfinite(made.maxx) && isfinite(made.maxy);
}

static bool
transform_box(const mc_proj_pair *pair, mc_extent *box, bool inverse)
{
    if (!inverse || pair->degrees == NULL)
        return transform_bounds(box, pair, pair->transformation, inverse ? PJ_INV : PJ_FWD);
    if (!transform_bounds(box, pair, pair->degrees, PJ_FWD) || box->miny <= -90 || box->maxy >= 90)
        return false;          /* a pole has no one place in most CRSs */
    if (box->minx > box->maxx) /* over the antimeridian */
        box->maxx += 360;
    bool wide = box->maxx - box->minx > 180;
    if (!transform_bounds(box, pair, pair->back, PJ_FWD))
        return false;
    if (wide) { /* it may have an edge between two of the points that are looked at */
        double more_x = (box->maxx - box->minx) * WIDE_MARGIN, more_y = (box->maxy - box->miny) * WIDE_MARGIN;
        *box = (mc_extent){ box->minx - more_x, box->miny - more_y, box->maxx + more_x, box->maxy + more_y };
    }
    return true;
}

static const char *
describe_crs(mc_proj_context *context, const char *srs, apr_pool_t *pool)
{
    PJ *crs = parse_crs_text(context, srs);
    if (crs == NULL)
        return NULL;
    PJ *bound = proj_crs_create_bound_crs_to_WGS84(context->proj, crs, NULL);
    const char *text = proj_as_proj_string(context->proj, bound != NULL ? bound : crs, PJ_PROJ_4, NULL);
    const char *copy = text != NULL ? apr_pstrdup(pool, text) : NULL;
    proj_destroy(bound);
    proj_destroy(crs);
    return copy;
}

const mc_projection_engine mc_projection_engine_proj = {
    open_context, close_context, get_pair, transform_points, ratio_of, transform_box, describe_crs,
};
