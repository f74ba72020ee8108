/* CRSs as clients name them (OGC 20-058, 8.2.2): addresses of OGC's register, safe CURIEs, and codes. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "grid/earth.h"
#include "service/ogcapi/ogcapi.h"
#include "vector/crs/projection.h"

/* Beyond these degrees the spherical Mercator ends. */
#define MERCATOR_END 85.05112877980659

static bool
names_crs84(const char *text)
{
    static const char *const names[] = { "http://www.opengis.net/def/crs/OGC/1.3/CRS84",
                                         "http://www.opengis.net/def/crs/OGC/0/CRS84",
                                         "urn:ogc:def:crs:OGC:1.3:CRS84",
                                         "urn:ogc:def:crs:OGC::CRS84",
                                         "OGC:CRS84",
                                         "CRS:84",
                                         "CRS84" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(text, names[i]) == 0)
            return true;
    return false;
}

/* Without the brackets of a safe CURIE, and an address as one of http. */
static const char *
bare_crs_name(const char *text, apr_pool_t *pool)
{
    size_t size = strlen(text);
    if (size > 2 && text[0] == '[' && text[size - 1] == ']')
        text = apr_pstrmemdup(pool, text + 1, size - 2);
    return strncmp(text, "https://", 8) == 0 ? apr_pstrcat(pool, "http://", text + 8, NULL) : text;
}

static bool
names_crs84_with_height(const char *text)
{
    static const char *const names[] = { "http://www.opengis.net/def/crs/OGC/1.3/CRS84h",
                                         "http://www.opengis.net/def/crs/OGC/0/CRS84h", "OGC:CRS84h", "CRS84h" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(text, names[i]) == 0)
            return true;
    return false;
}

bool
mc_ogcapi_place_crs_parse(mc_ogcapi_crs *crs, const char *text, apr_pool_t *pool)
{
    *crs = (mc_ogcapi_crs){ MC_OGCAPI_CRS84, 4326, false };
    return names_crs84_with_height(bare_crs_name(text, pool)) || mc_ogcapi_crs_parse(crs, text, pool);
}

bool
mc_ogcapi_crs_parse(mc_ogcapi_crs *crs, const char *text, apr_pool_t *pool)
{
    bool xy_order = false;
    text = bare_crs_name(text, pool);
    if (names_crs84(text)) {
        *crs = (mc_ogcapi_crs){ MC_OGCAPI_CRS84, 4326, false };
        return true;
    }
    int epsg = mc_crs_epsg(text, &xy_order);
    if (epsg <= 0 || xy_order)
        return false;
    *crs = (mc_ogcapi_crs){ apr_psprintf(pool, "http://www.opengis.net/def/crs/EPSG/0/%d", epsg), epsg,
                            mc_crs_axes_swapped(epsg) };
    return true;
}

static bool
is_crs_of_grid(const mc_ogcapi_crs *crs, const mc_grid *grid)
{
    return crs->epsg == grid->epsg || (crs->epsg == 3857 && mc_grid_is_mercator(grid));
}

const mc_grid_link *
mc_ogcapi_crs_link(const mc_ogcapi_crs *crs, const mc_tileset *tileset)
{
    for (int i = 0; i < tileset->link_count; i++)
        if (is_crs_of_grid(crs, tileset->links[i]->grid))
            return tileset->links[i];
    return NULL;
}

const mc_grid_link *
mc_ogcapi_storage_link(const mc_tileset *tileset)
{
    const mc_ogcapi_crs degrees = { MC_OGCAPI_CRS84, 4326, false };
    const mc_grid_link *found = mc_ogcapi_crs_link(&degrees, tileset);
    return found != NULL || tileset->link_count == 0 ? found : tileset->links[0];
}

mc_ogcapi_crs
mc_ogcapi_crs_of(const mc_grid *grid, apr_pool_t *pool)
{
    return (mc_ogcapi_crs){ mc_grid_crs_uri(grid, pool), mc_grid_is_mercator(grid) ? 3857 : grid->epsg,
                            mc_grid_is_yx(grid) };
}

/* --- boxes ------------------------------------------------------------------------------------------------------ */

static bool
is_degree_grid(const mc_grid *grid)
{
    return fabs(grid->metres_per_unit / MC_METRES_PER_DEGREE - 1) < 1e-6;
}

double
mc_ogcapi_half_round(const mc_grid *grid)
{
    return mc_grid_is_mercator(grid) ? MC_WEB_MERCATOR_HALF : is_degree_grid(grid) ? 180 : 0;
}

/* The same of a CRS of the request: half of the way around the earth, 0 where its axis does not lead around. */
static double
half_round_of(const mc_ogcapi_crs *crs, const mc_grid *grid)
{
    if (crs->epsg == 4326)
        return 180;
    if (crs->epsg == 3857)
        return MC_WEB_MERCATOR_HALF;
    return is_crs_of_grid(crs, grid) ? mc_ogcapi_half_round(grid) : 0;
}

/* A box whose west edge lies east of its east edge goes on behind the antimeridian: its east edge is counted on. */
static bool
unroll_box(mc_extent *box, const mc_ogcapi_crs *from, const mc_grid *grid)
{
    double half = half_round_of(from, grid);
    if (!(box->minx > box->maxx) || box->minx > half || box->maxx < -half)
        return false;
    if (box->minx < half)
        box->maxx += 2 * half;
    else
        box->minx -= 2 * half;
    return box->maxx > half;
}

static mc_error *
refuse_box(const char *parameter, apr_pool_t *pool)
{
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, parameter, "%s: there is no such box in the CRS of the map",
                            parameter);
}

/* A box that does not reach over the antimeridian, or that PROJ may wrap as it likes. */
static mc_error *
project_box(mc_extent *box, const mc_ogcapi_crs *from, const mc_grid *grid, const char *parameter, apr_pool_t *pool)
{
    mc_projection *projection;
    if (from->epsg == 4326) {
        double end = mc_grid_is_mercator(grid) ? MERCATOR_END : 90;
        box->miny = fmin(fmax(box->miny, -end), end);
        box->maxy = fmin(fmax(box->maxy, -end), end);
    }
    const char *name = from->epsg == 4326 ? "CRS:84" : apr_psprintf(pool, "EPSG:%d", from->epsg);
    MC_TRY(mc_projection_open(&projection, name, grid->srs, pool));
    if (mc_extent_valid(box) && (projection == NULL || mc_projection_box(box, projection, false)) &&
        mc_extent_valid(box))
        return MC_OK;
    return refuse_box(parameter, pool);
}

/* Its parts on both sides, put together again. */
static mc_error *
project_over_antimeridian(mc_extent *box, const mc_ogcapi_crs *from, const mc_grid *grid, const char *parameter,
                          apr_pool_t *pool)
{
    double half = half_round_of(from, grid), round = 2 * mc_ogcapi_half_round(grid);
    mc_extent west = *box, east = *box;
    west.maxx = half;
    east.minx = -half;
    east.maxx -= 2 * half;
    MC_TRY(project_box(&west, from, grid, parameter, pool));
    MC_TRY(project_box(&east, from, grid, parameter, pool));
    *box = (mc_extent){ west.minx, fmin(west.miny, east.miny), east.maxx + round, fmax(west.maxy, east.maxy) };
    return MC_OK;
}

mc_error *
mc_ogcapi_crs_box(mc_extent *box, bool *across, const mc_ogcapi_crs *from, const mc_grid *grid, const char *parameter,
                  apr_pool_t *pool)
{
    if (from->yx)
        *box = (mc_extent){ box->miny, box->minx, box->maxy, box->maxx };
    *across = unroll_box(box, from, grid);
    if (!mc_extent_valid(box))
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, parameter,
                                "%s: the minimum must be below the maximum; only the longitudes of an area across the "
                                "antimeridian stand the other way round",
                                parameter);
    if (is_crs_of_grid(from, grid))
        return MC_OK;
    if (!*across)
        return project_box(box, from, grid, parameter, pool);
    if (mc_ogcapi_half_round(grid) > 0)
        return project_over_antimeridian(box, from, grid, parameter, pool);
    *across = false; /* the CRS of the map knows no such edge, or has no such box */
    return from->epsg == 4326 ? project_box(box, from, grid, parameter, pool) : refuse_box(parameter, pool);
}
