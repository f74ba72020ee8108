/* What the demo script has to know: layers, grids and dimensions as JSON. */
#include "service/pages/demo.h"
#include "service/wms/wms.h"
#include "text/json_writer.h"

/* As many values of a dimension are offered in a list. */
#define VALUES_MAX 500

static void
write_demo_texts(mc_json_writer *json, const char *key, const apr_array_header_t *texts)
{
    mc_json_open_array(json, key);
    for (int i = 0; texts != NULL && i < texts->nelts && i < VALUES_MAX; i++)
        mc_json_string(json, NULL, APR_ARRAY_IDX(texts, i, const char *));
    mc_json_close(json);
}

static void
write_demo_extent(mc_json_writer *json, const char *key, const mc_extent *extent)
{
    const double numbers[] = { extent->minx, extent->miny, extent->maxx, extent->maxy };
    mc_json_open_array(json, key);
    for (int i = 0; i < 4; i++)
        mc_json_decimals(json, NULL, numbers[i], 10);
    mc_json_close(json);
}

static void
write_demo_size(mc_json_writer *json, const char *key, int width, int height)
{
    mc_json_open_array(json, key);
    mc_json_integer(json, NULL, width);
    mc_json_integer(json, NULL, height);
    mc_json_close(json);
}

/* Levels up to the last one of the link: resolutions, upper left corners, sizes in tiles. */
static void
write_demo_levels(mc_json_writer *json, const mc_grid_link *link)
{
    const mc_grid *grid = link->grid;
    mc_json_open_array(json, "resolutions");
    for (int z = 0; z <= link->maxzoom; z++)
        mc_json_decimals(json, NULL, grid->levels[z].resolution, 20);
    mc_json_close(json);
    mc_json_open_array(json, "origins");
    for (int z = 0; z <= link->maxzoom; z++) {
        const mc_level *level = &grid->levels[z];
        double top = grid->origin == MC_TOP_LEFT
                         ? grid->extent.maxy
                         : grid->extent.miny + level->rows * level->resolution * grid->tile_height;
        mc_json_open_array(json, NULL);
        mc_json_decimals(json, NULL, grid->extent.minx, 10);
        mc_json_decimals(json, NULL, top, 10);
        mc_json_close(json);
    }
    mc_json_close(json);
    mc_json_open_array(json, "sizes");
    for (int z = 0; z <= link->maxzoom; z++)
        write_demo_size(json, NULL, grid->levels[z].columns, grid->levels[z].rows);
    mc_json_close(json);
}

/* The dimensions of a tile set as an array: their back ends are asked once, the text is used for each grid. */
static const char *
demo_dimensions(const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_json_writer *json = mc_json_create(MC_JSON_HTML, pool);
    mc_json_open_array(json, NULL);
    for (int i = 0; i < tileset->dimension_count; i++) {
        mc_dimension *dimension = tileset->dimensions[i];
        mc_json_open_object(json, NULL);
        mc_json_string(json, "name", dimension->name);
        mc_json_string(json, "default", dimension->default_value);
        write_demo_texts(json, "values", mc_dimension_values_known(dimension, tileset->name, ctx));
        mc_json_close(json);
    }
    mc_json_close(json);
    return mc_json_finish_text(json);
}

static void
write_demo_layer(mc_json_writer *json, const mc_tileset *tileset, const mc_grid_link *link, const char *dimensions)
{
    const mc_grid *grid = link->grid;
    mc_extent degrees;
    const char *units = grid->metres_per_unit == 1.0 ? "m" : grid->metres_per_unit < 1.0 ? "ft" : "degrees";
    mc_json_open_object(json, NULL);
    mc_json_string(json, "name", tileset->name);
    mc_json_string(json, "title", mc_tileset_title(tileset));
    mc_json_string(json, "grid", grid->name);
    mc_json_string(json, "srs", grid->srs);
    mc_json_string(json, "units", units);
    mc_json_boolean(json, "swapped", grid->axes_swapped);
    mc_json_boolean(json, "kml", mc_grid_degrees(&degrees, grid, &link->extent));
    write_demo_extent(json, "extent", &link->extent);
    write_demo_extent(json, "gridExtent", &grid->extent);
    write_demo_size(json, "tileSize", grid->tile_width, grid->tile_height);
    mc_json_integer(json, "minzoom", link->minzoom);
    mc_json_integer(json, "maxzoom", link->maxzoom);
    write_demo_levels(json, link);
    mc_json_string(json, "extension", mc_tileset_extension(tileset));
    mc_json_open_array(json, "densities");
    for (int density = 2; density <= 3; density++)
        if (mc_tileset_dense_link(tileset, link, density) != NULL)
            mc_json_integer(json, NULL, density);
    mc_json_close(json);
    mc_json_string(json, "mime", mc_tileset_mime(tileset));
    write_demo_texts(json, "infoFormats", mc_tileset_info_formats(tileset));
    mc_json_raw(json, "dimensions", dimensions);
    mc_json_close(json);
}

const char *
mc_demo_json(const char *service, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_config *config = call->config;
    const mc_wms *wms = (const mc_wms *)mc_call_service(call, "wms");
    mc_json_writer *json = mc_json_create(MC_JSON_HTML, pool);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "service", service);
    mc_json_string(json, "base", call->base);
    mc_json_string(json, "wms", mc_url_wms(call, pool));
    mc_json_string(json, "format", wms != NULL && wms->format->mime != NULL ? wms->format->mime : "image/png");
    mc_json_boolean(json, "assembles", wms != NULL && wms->full_wms != MC_WMS_ERROR);
    mc_json_open_array(json, "layers");
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        if (!mc_tileset_is_image(tileset))
            continue;
        const char *dimensions = demo_dimensions(tileset, ctx, pool);
        for (int j = 0; j < tileset->link_count; j++)
            write_demo_layer(json, tileset, tileset->links[j], dimensions);
    }
    mc_json_close(json);
    mc_json_close(json);
    return mc_json_finish_text(json);
}
