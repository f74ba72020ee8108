/* What the demo script has to know: layers, grids and dimensions as JSON. */
#include <apr_strings.h>
#include <string.h>

#include "service/pages/demo.h"
#include "service/wms/wms.h"
#include "text/text.h"

/* As many values of a dimension are offered in a list. */
#define VALUES_MAX 500

/* A JSON string. '<' and '&' are written as escapes, so that no text can end the script element. */
static const char *
json_text(const char *text, apr_pool_t *pool)
{
    const char *escaped = mc_json_escape(text, pool);
    escaped = mc_replace_all(escaped, "<", "\\u003c", pool);
    escaped = mc_replace_all(escaped, ">", "\\u003e", pool);
    escaped = mc_replace_all(escaped, "&", "\\u0026", pool);
    return apr_pstrcat(pool, "\"", escaped, "\"", NULL);
}

static const char *
json_texts(const apr_array_header_t *texts, apr_pool_t *pool)
{
    int count = texts == NULL ? 0 : texts->nelts < VALUES_MAX ? texts->nelts : VALUES_MAX;
    apr_array_header_t *items = apr_array_make(pool, count + 1, sizeof(const char *));
    for (int i = 0; i < count; i++)
        APR_ARRAY_PUSH(items, const char *) = json_text(APR_ARRAY_IDX(texts, i, const char *), pool);
    return apr_pstrcat(pool, "[", count > 0 ? apr_array_pstrcat(pool, items, ',') : "", "]", NULL);
}

static const char *
json_extent(const mc_extent *extent, apr_pool_t *pool)
{
    return apr_psprintf(pool, "[%.10f,%.10f,%.10f,%.10f]", extent->minx, extent->miny, extent->maxx, extent->maxy);
}

/* Levels up to the last one of the link: resolutions, upper left corners, sizes in tiles. */
static const char *
json_levels(const mc_grid_link *link, apr_pool_t *pool)
{
    const mc_grid *grid = link->grid;
    int count = link->maxzoom + 1;
    apr_array_header_t *resolutions = apr_array_make(pool, count, sizeof(const char *));
    apr_array_header_t *origins = apr_array_make(pool, count, sizeof(const char *));
    apr_array_header_t *sizes = apr_array_make(pool, count, sizeof(const char *));
    for (int z = 0; z < count; z++) {
        const mc_level *level = &grid->levels[z];
        double top = grid->origin == MC_TOP_LEFT
                         ? grid->extent.maxy
                         : grid->extent.miny + level->rows * level->resolution * grid->tile_height;
        APR_ARRAY_PUSH(resolutions, const char *) = apr_psprintf(pool, "%.20f", level->resolution);
        APR_ARRAY_PUSH(origins, const char *) = apr_psprintf(pool, "[%.10f,%.10f]", grid->extent.minx, top);
        APR_ARRAY_PUSH(sizes, const char *) = apr_psprintf(pool, "[%d,%d]", level->columns, level->rows);
    }
    return apr_psprintf(pool, "\"resolutions\":[%s],\"origins\":[%s],\"sizes\":[%s]",
                        apr_array_pstrcat(pool, resolutions, ','), apr_array_pstrcat(pool, origins, ','),
                        apr_array_pstrcat(pool, sizes, ','));
}

static const char *
json_dimensions(const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    const char *items = "";
    for (int i = 0; i < tileset->dimension_count; i++) {
        mc_dimension *dimension = tileset->dimensions[i];
        items =
            apr_pstrcat(pool, items, i > 0 ? "," : "", "{\"name\":", json_text(dimension->name, pool),
                        ",\"default\":", json_text(dimension->default_value, pool), ",\"values\":",
                        json_texts(mc_dimension_values_known(dimension, tileset->name, ctx, pool), pool), "}", NULL);
    }
    return items;
}

static const char *
json_layer(const mc_tileset *tileset, const mc_grid_link *link, const char *dimensions, apr_pool_t *pool)
{
    const mc_grid *grid = link->grid;
    const char *units = grid->metres_per_unit == 1.0 ? "m" : grid->metres_per_unit < 1.0 ? "ft" : "degrees";
    return apr_psprintf(
        pool,
        "{\"name\":%s,\"title\":%s,\"grid\":%s,\"srs\":%s,\"units\":\"%s\",\"swapped\":%s,\"extent\":%s,"
        "\"gridExtent\":%s,\"tileSize\":[%d,%d],\"minzoom\":%d,\"maxzoom\":%d,%s,\"extension\":%s,\"mime\":%s,"
        "\"infoFormats\":%s,\"dimensions\":[%s]}",
        json_text(tileset->name, pool), json_text(mc_tileset_title(tileset), pool), json_text(grid->name, pool),
        json_text(grid->srs, pool), units, grid->axes_swapped ? "true" : "false", json_extent(&link->extent, pool),
        json_extent(&grid->extent, pool), grid->tile_width, grid->tile_height, link->minzoom, link->maxzoom,
        json_levels(link, pool), json_text(mc_tileset_extension(tileset), pool),
        json_text(mc_tileset_mime(tileset), pool), json_texts(mc_tileset_info_formats(tileset), pool), dimensions);
}

const char *
mc_demo_json(const char *service, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_config *config = call->config;
    const mc_wms *wms = (const mc_wms *)mc_call_service(call, "wms");
    const char *format = wms != NULL && wms->format->mime != NULL ? wms->format->mime : "image/png";
    apr_array_header_t *layers = apr_array_make(pool, 16, sizeof(const char *));
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        if (!mc_tileset_is_image(tileset))
            continue;
        const char *dimensions = json_dimensions(tileset, ctx, pool);
        for (int j = 0; j < tileset->link_count; j++)
            APR_ARRAY_PUSH(layers, const char *) = json_layer(tileset, tileset->links[j], dimensions, pool);
    }
    return apr_psprintf(pool, "{\"service\":%s,\"base\":%s,\"wms\":%s,\"format\":%s,\"assembles\":%s,\"layers\":[%s]}",
                        json_text(service, pool), json_text(call->base, pool), json_text(mc_url_wms(call, pool), pool),
                        json_text(format, pool), wms != NULL && wms->full_wms != MC_WMS_ERROR ? "true" : "false",
                        layers->nelts > 0 ? apr_array_pstrcat(pool, layers, ',') : "");
}
