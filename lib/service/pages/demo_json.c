/* Grids and dimensions of a layer as JSON, for the scripts of the pages. */
#include "service/pages/demo.h"

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

void
mc_demo_write_extent(mc_json_writer *json, const char *key, const mc_extent *extent, int decimals)
{
    const double numbers[] = { extent->minx, extent->miny, extent->maxx, extent->maxy };
    mc_json_open_array(json, key);
    for (int i = 0; i < 4; i++)
        mc_json_decimals(json, NULL, numbers[i], decimals);
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

const char *
mc_demo_dimensions(const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_array(json, NULL);
    for (int i = 0; i < tileset->dimension_count; i++) {
        mc_dimension *dimension = tileset->dimensions[i];
        mc_json_open_object(json, NULL);
        mc_json_string(json, "name", dimension->name);
        mc_json_string(json, "default", dimension->default_value);
        write_demo_texts(json, "values", mc_dimension_values_known(dimension, tileset->name, ctx));
        if (dimension->periods)
            write_demo_texts(json, "periods", mc_dimension_values_published(dimension, tileset->name, ctx));
        mc_json_close(json);
    }
    mc_json_close(json);
    return mc_json_finish_text(json);
}

void
mc_demo_write_grid(mc_json_writer *json, const mc_tileset *tileset, const mc_grid_link *link)
{
    const mc_grid *grid = link->grid;
    const char *units = grid->metres_per_unit == 1.0 ? "m" : grid->metres_per_unit < 1.0 ? "ft" : "degrees";
    mc_json_string(json, "grid", grid->name);
    mc_json_string(json, "srs", grid->srs);
    mc_json_string(json, "units", units);
    mc_json_boolean(json, "swapped", grid->axes_swapped);
    mc_demo_write_extent(json, "extent", &link->extent, 10);
    mc_demo_write_extent(json, "gridExtent", &grid->extent, 10);
    write_demo_size(json, "tileSize", grid->tile_width, grid->tile_height);
    mc_json_integer(json, "minzoom", link->minzoom);
    mc_json_integer(json, "maxzoom", link->maxzoom);
    write_demo_levels(json, link);
    mc_json_open_array(json, "densities");
    for (int density = 2; density <= 3; density++)
        if (mc_tileset_dense_link(tileset, link, density) != NULL)
            mc_json_integer(json, NULL, density);
    mc_json_close(json);
}
