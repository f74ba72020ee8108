/* CRSs as clients name them (OGC 20-058, 8.2.2): addresses of OGC's register, safe CURIEs, and codes. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

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

bool
mc_ogcapi_crs_parse(mc_ogcapi_crs *crs, const char *text, apr_pool_t *pool)
{
    size_t size = strlen(text);
    bool xy_order = false;
    if (size > 2 && text[0] == '[' && text[size - 1] == ']')
        text = apr_pstrmemdup(pool, text + 1, size - 2);
    if (strncmp(text, "https://", 8) == 0)
        text = apr_pstrcat(pool, "http://", text + 8, NULL);
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

mc_error *
mc_ogcapi_crs_box(mc_extent *box, const mc_ogcapi_crs *from, const mc_grid *grid, const char *parameter,
                  apr_pool_t *pool)
{
    mc_projection *projection;
    if (from->yx)
        *box = (mc_extent){ box->miny, box->minx, box->maxy, box->maxx };
    if (is_crs_of_grid(from, grid))
        return MC_OK;
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
    return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, parameter, "there is no such box in the CRS of the map");
}
