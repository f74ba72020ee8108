/* Tiles above max-cached-zoom (docs/reference/configuration.md 6.1): drawn from the tiles of that level, or asked of
 * the source each time. */
#include "mapcache/trace.h"
#include "tileset/tileset_private.h"

/* Draws the part of a coarser tile, which was got by `part`, that lies in `box` into `canvas`. */
static mc_error *
draw_coarse(mc_pixels *canvas, const mc_extent *box, const mc_tile *coarse, const mc_extent *coarse_box,
            const mc_tile_request *part, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_pixels *pixels;
    MC_TRY(mc_tileset_decode(&pixels, coarse, part, ctx, pool));
    double source_x = (coarse_box->maxx - coarse_box->minx) / pixels->width;
    double source_y = (coarse_box->maxy - coarse_box->miny) / pixels->height;
    double target_x = (box->maxx - box->minx) / canvas->width;
    double target_y = (box->maxy - box->miny) / canvas->height;
    mc_pixels_resample(canvas, pixels, (box->minx - coarse_box->minx) / source_x,
                       (coarse_box->maxy - box->maxy) / source_y, target_x / source_x, target_y / source_y,
                       MC_BILINEAR);
    mc_pixels_unref(pixels);
    return MC_OK;
}

static mc_error *
reassemble_tile(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_grid_link *link = wanted->link;
    const mc_grid *grid = link->grid;
    mc_extent box = mc_grid_tile_extent(grid, wanted->z, wanted->x, wanted->y);
    mc_tile_range range;
    if (!mc_grid_link_tiles(link, &box, link->max_cached_zoom, &range))
        return mc_tile_nothing(tile, grid, pool);
    mc_pixels *canvas;
    MC_TRY(mc_pixels_create(&canvas, grid->tile_width, grid->tile_height, true, pool));
    mc_pixels_attach(canvas, pool);
    apr_time_t newest = 0;
    double provisional = 0;
    int drawn = 0;
    for (int y = range.miny; y < range.maxy; y++)
        for (int x = range.minx; x < range.maxx; x++) {
            mc_tile *coarse;
            mc_tile_request part = {
                wanted->tileset, link, link->max_cached_zoom, x, y, wanted->values, wanted->style
            };
            MC_TRY(mc_tileset_get_cached(&coarse, &part, 0, ctx, pool));
            MC_TRY(mc_tile_restyle(coarse, &part, pool));
            mc_take_provisional(&provisional, coarse->provisional);
            if (coarse->no_data)
                continue;
            mc_extent coarse_box = mc_grid_tile_extent(grid, link->max_cached_zoom, x, y);
            MC_TRY(draw_coarse(canvas, &box, coarse, &coarse_box, &part, ctx, pool));
            newest = coarse->mtime > newest ? coarse->mtime : newest;
            drawn++;
        }
    MC_TRY(drawn == 0 ? mc_tile_nothing(tile, grid, pool)
                      : mc_tile_encode_synthetic(tile, canvas, wanted->tileset, ctx, pool));
    (*tile)->mtime = drawn == 0 ? (*tile)->mtime : newest;
    (*tile)->provisional = provisional;
    return MC_OK;
}

/* out-of-zoom-strategy proxy: asked of the source each time, never stored. */
static mc_error *
proxy_from_source(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tileset *tileset = wanted->tileset;
    const mc_grid *grid = wanted->link->grid;
    mc_tile_key key;
    if (tileset->source == NULL)
        return mc_tile_nothing(tile, grid, pool);
    MC_TRY(mc_tileset_key(&key, wanted, ctx, pool));
    mc_render map = { .tileset = tileset->name,
                      .grid = grid,
                      .box = mc_grid_tile_extent(grid, wanted->z, wanted->x, wanted->y),
                      .width = grid->tile_width,
                      .height = grid->tile_height,
                      .density = grid->density,
                      .dimension_count = key.dimension_count,
                      .dimensions = key.dimensions };
    mc_tileset_ask_format(&map, tileset);
    mc_rendered rendered = { 0 };
    MC_TRY(mc_source_render(&rendered, tileset->source, &map, ctx, pool));
    if (rendered.pixels != NULL) {
        MC_TRY(mc_tile_encode_synthetic(tile, rendered.pixels, tileset, ctx, pool));
        (*tile)->provisional = rendered.provisional;
        return MC_OK;
    }
    *tile = apr_pcalloc(pool, sizeof(**tile));
    (*tile)->provisional = rendered.provisional;
    (*tile)->data = rendered.data;
    (*tile)->coding = mc_image_sniff(rendered.data->data, rendered.data->size);
    return MC_OK;
}

mc_error *
mc_tile_overzoom(mc_tile **tile, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_tileset_tile_overzoom");
    if (wanted->link->strategy == MC_PROXY)
        return proxy_from_source(tile, wanted, ctx, pool);
    return reassemble_tile(tile, wanted, ctx, pool);
}
