/*
 * The source "tileset": maps from the tiles of another tileset, which are stored, or rendered by their own source: in
 * another grid or CRS, with another format, metatile or life.
 */
#include <apr_strings.h>
#include <string.h>

#include "mapcache/trace.h"
#include "source/source_base.h"
#include "source/tiles/mosaic.h"
#include "tileset/tileset_private.h"

typedef struct tileset_source {
    mc_source_base base;
    const char *tileset_name, *grid_name;
    mc_tileset *tileset; /* by connect_tileset */
    const mc_grid_link *link;
    mc_mosaic_supply supply;
} tileset_source;

/* What fails is repeated by the other tileset's own source. */
static const mc_key tileset_source_keys[] = {
    MC_SOURCE_KEYS(tileset_source, "0"),
    MC_KEY_TEXT("tileset", offsetof(tileset_source, tileset_name), "Name of the tileset whose tiles are drawn.",
                .flags = MC_KEY_REQUIRED | MC_KEY_OURS),
    MC_KEY_TEXT("grid", offsetof(tileset_source, grid_name),
                "Name of the grid of that tileset whose tiles are drawn; its first one by default.",
                .flags = MC_KEY_OURS),
    MC_KEY_END,
};

static mc_source *
tileset_source_from_config(const mc_node *node, mc_build *build)
{
    tileset_source *source = apr_pcalloc(build->pool, sizeof(*source));
    if (!mc_source_read(&source->base, &mc_source_tileset, node, build))
        return NULL;
    source->base.source.needs_format = true;
    source->base.source.no_vector_tiles = "it draws the tiles of a tileset";
    return &source->base.source;
}

static void
describe_tileset_supply(tileset_source *source)
{
    const mc_grid_link *link = source->link;
    bool reassembled = link->max_cached_zoom >= 0 && link->strategy == MC_REASSEMBLE;
    source->supply = (mc_mosaic_supply){
        .source = source->base.source.name,
        .grid = link->grid,
        .tile_width = link->grid->tile_width,
        .tile_height = link->grid->tile_height,
        .first = link->minzoom,
        .last = reassembled && link->max_cached_zoom < link->maxzoom ? link->max_cached_zoom : link->maxzoom,
        .limit = &link->extent,
    };
}

static void
connect_tileset(mc_source *base, const mc_node *node, mc_build *build)
{
    tileset_source *source = (tileset_source *)base;
    mc_tileset *tileset = mc_config_find(build->tilesets, "tileset", source->tileset_name,
                                         mc_node_child(node, "tileset"), build->diagnostics);
    if (tileset == NULL)
        return;
    source->link = mc_tileset_link(tileset, source->grid_name);
    if (source->link == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "grid"),
                    "source \"%s\": tileset \"%s\" has no grid \"%s\"", base->name, tileset->name,
                    source->grid_name == NULL ? "" : source->grid_name);
        return;
    }
    if (mc_tileset_keeps_bytes(tileset)) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "source \"%s\": the tiles of tileset \"%s\" are no images",
                    base->name, tileset->name);
        return;
    }
    source->tileset = tileset;
    base->cascades = tileset->source != NULL && tileset->source->cascades;
    describe_tileset_supply(source);
}

static void
visit_tileset_source(mc_source *base, void (*visit)(void *baton, mc_source *part), void *baton)
{
    const tileset_source *source = (const tileset_source *)base;
    if (source->tileset != NULL && source->tileset->source != NULL)
        visit(baton, source->tileset->source);
}

/* Values for the dimensions of the other tileset: those of dimensions of the same names, else the defaults. */
static const char **
values_for_tileset(const mc_tileset *tileset, const mc_render *wanted, apr_pool_t *pool)
{
    const char **values = mc_tileset_defaults(tileset, pool);
    for (int i = 0; i < wanted->dimension_count; i++) {
        int index = mc_tileset_dimension(tileset, wanted->dimensions[i].name, true);
        if (index >= 0 && wanted->dimensions[i].value != NULL)
            values[index] = wanted->dimensions[i].value;
    }
    return values;
}

/* What is stored, by one round trip where the store can; the others are had one by one, and rendered. */
static mc_error *
get_all_tiles(mc_tile **tiles, const mc_tile_request *requests, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    if (count > 1 && mc_tileset_gets_all(requests[0].tileset, requests[0].link, requests[0].z))
        MC_TRY(mc_tileset_get_stored_all(tiles, requests, count, ctx, pool));
    mc_error *error = MC_OK;
    int descended = mc_flight_descend(); /* no circle: the other tileset is never drawn from this one */
    for (int i = 0; i < count && error == MC_OK; i++)
        if (tiles[i] == NULL)
            error = mc_tileset_get(&tiles[i], &requests[i], ctx, pool);
    mc_flight_ascend(descended);
    return error;
}

static mc_error *
draw_tileset_mosaic(mc_rendered *map, mc_pixels **pixels, const tileset_source *source, const mc_mosaic *mosaic,
                    const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    int columns = mosaic->range.maxx - mosaic->range.minx;
    int count = columns * (mosaic->range.maxy - mosaic->range.miny);
    const char **values = values_for_tileset(source->tileset, wanted, pool);
    mc_tile_request *requests = apr_palloc(pool, sizeof(*requests) * (size_t)count);
    mc_tile **tiles = apr_pcalloc(pool, sizeof(mc_tile *) * (size_t)count);
    for (int i = 0; i < count; i++)
        requests[i] = (mc_tile_request){ source->tileset,
                                         source->link,
                                         mosaic->z,
                                         mc_mosaic_column(mosaic, mosaic->range.minx + i % columns),
                                         mosaic->range.miny + i / columns,
                                         values,
                                         NULL };
    MC_TRY(get_all_tiles(tiles, requests, count, ctx, pool));
    MC_TRY(mc_pixels_create(pixels, mosaic->width, mosaic->height, true, pool));
    mc_pixels_attach(*pixels, pool);
    for (int i = 0; i < count; i++) {
        double life = tiles[i]->provisional;
        if (life > 0 && (map->provisional <= 0 || life < map->provisional))
            map->provisional = life;
        if (tiles[i]->no_data)
            continue;
        double shift = mc_mosaic_shift(mosaic, requests[i].x, requests[i].y);
        mc_extent extent = mc_grid_tile_extent(source->link->grid, mosaic->z, requests[i].x, requests[i].y);
        extent.minx += shift;
        extent.maxx += shift;
        MC_TRY(mc_mosaic_draw(*pixels, mosaic, tiles[i]->data, &extent, &extent, ctx, pool));
    }
    return MC_OK;
}

static mc_error *
render_from_tileset(mc_rendered *map, mc_source *base, const mc_render *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const tileset_source *source = (const tileset_source *)base;
    mc_mosaic mosaic;
    mc_pixels *pixels = NULL;
    MC_TRY(mc_mosaic_plan(&mosaic, &source->supply, wanted, pool));
    if (mosaic.range.minx < mosaic.range.maxx)
        MC_TRY(draw_tileset_mosaic(map, &pixels, source, &mosaic, wanted, ctx, pool));
    return mc_mosaic_finish(&map->pixels, pixels, &mosaic, wanted, ctx, pool);
}

const mc_source_ops mc_source_tileset = {
    MC_KIND("tileset", tileset_source_keys, tileset_source_from_config,
            "The tiles of another tileset: in another grid or CRS, in another format."),
    .connect = connect_tileset,
    .parts = visit_tileset_source,
    .render = render_from_tileset,
};
