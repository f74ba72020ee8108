/* CRSs of maps that are drawn for each request: they need no grid (<srs> of the wms service). */
#include <apr_strings.h>
#include <string.h>

#include "service/wms/wms.h"

/* Boxes of maps are inside of it (wms_params.c). */
#define EVERYWHERE 1e12

static mc_grid_link *
link_of(const char *srs, int epsg, apr_pool_t *pool)
{
    mc_grid *grid = apr_pcalloc(pool, sizeof(*grid));
    mc_grid_link *link = apr_pcalloc(pool, sizeof(*link));
    const mc_extent everywhere = { -EVERYWHERE, -EVERYWHERE, EVERYWHERE, EVERYWHERE };
    *grid = (mc_grid){ .name = srs,
                       .srs = srs,
                       .extent = everywhere,
                       .metres_per_unit = mc_crs_metres_per_unit(epsg),
                       .tile_width = 256,
                       .tile_height = 256,
                       .epsg = epsg,
                       .axes_swapped = mc_crs_axes_swapped(epsg),
                       .metadata = mc_metadata_create(pool) };
    *link = (mc_grid_link){ .grid = grid, .extent = everywhere, .max_cached_zoom = -1 };
    return link;
}

bool
mc_wms_read_srs(mc_wms *wms, const mc_node *node, mc_build *build)
{
    wms->drawn = apr_array_make(build->pool, 4, sizeof(mc_grid_link *));
    if (wms->srs_list == NULL)
        return true;
    const mc_node *at = mc_node_child(node, "srs");
    char *rest = apr_pstrdup(build->pool, wms->srs_list);
    for (char *name = strsep(&rest, " \t\r\n"); name != NULL; name = strsep(&rest, " \t\r\n")) {
        int epsg = *name == '\0' ? 0 : mc_crs_epsg(name, NULL);
        if (*name != '\0' && epsg == 0) {
            mc_complain(build->diagnostics, MC_REFUSED, at, "%s is no CRS: EPSG:<number> or CRS:84 is expected",
                        mc_config_quote(name, build->pool));
            return false;
        }
        if (epsg != 0)
            APR_ARRAY_PUSH(wms->drawn, mc_grid_link *) = link_of(name, epsg, build->pool);
    }
    if (wms->full_wms != MC_WMS_FORWARD)
        mc_complain(build->diagnostics, MC_WARNING, at,
                    "<srs> needs <full_wms>forward</full_wms>: maps made of tiles have the CRSs of their grids");
    return true;
}

bool
mc_wms_draws_any(const mc_wms *wms, const mc_tileset *tileset)
{
    return wms->full_wms == MC_WMS_FORWARD && tileset->source != NULL && tileset->source->any_srs;
}

/* CRS:84 has its axes in another order than EPSG:4326; both are x, y here. */
static bool
is_asked_for(const mc_grid *grid, const mc_wms_view *view)
{
    bool xy_order = false, own_xy_order = false;
    int epsg = mc_crs_epsg(view->srs, &xy_order);
    return epsg != 0 && epsg == mc_crs_epsg(grid->srs, &own_xy_order) && xy_order == own_xy_order;
}

mc_error *
mc_wms_link(const mc_grid_link **link, const mc_call *call, const mc_wms_view *view, const mc_tileset *tileset,
            apr_pool_t *pool)
{
    const mc_wms *wms = mc_wms_of(call);
    *link = mc_wms_view_link(view, tileset);
    for (int i = 0; *link == NULL && mc_wms_draws_any(wms, tileset) && i < wms->drawn->nelts; i++) {
        const mc_grid_link *drawn = APR_ARRAY_IDX(wms->drawn, i, const mc_grid_link *);
        if (is_asked_for(drawn->grid, view))
            *link = drawn;
    }
    if (*link != NULL)
        return MC_OK;
    return mc_error_located(pool, MC_ERR_INVALID_CRS, view->v130 ? "crs" : "srs",
                            "layer %s is not offered in the CRS \"%s\"", tileset->name, view->srs);
}
