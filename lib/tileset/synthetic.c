/* Tiles that no cache holds: nothing at all, one colour by a ruleset, or drawn from a coarser level. */
#include <apr_strings.h>
#include <math.h>

#include "mapcache/trace.h"
#include "tileset/tileset_private.h"

mc_error *
mc_tile_nothing(mc_tile **tile, const mc_grid *grid, apr_pool_t *pool)
{
    static const uint8_t transparent[4] = { 0, 0, 0, 0 };
    *tile = apr_pcalloc(pool, sizeof(**tile));
    (*tile)->coding = MC_CODING_PNG;
    (*tile)->no_data = true;
    (*tile)->blank = true;
    return mc_image_blank(&(*tile)->data, grid->tile_width, grid->tile_height, transparent, pool);
}

static mc_error *
encode_synthetic_tile(mc_tile **tile, mc_pixels *pixels, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_format *format = tileset->format;
    if (format == NULL || mc_tileset_keeps_bytes(tileset))
        format = tileset->synthetic_format;
    *tile = apr_pcalloc(pool, sizeof(**tile));
    MC_TRY(mc_format_encode(&(*tile)->data, format, pixels, MC_ON_THE_FLY, ctx, pool));
    (*tile)->coding = mc_image_sniff((*tile)->data->data, (*tile)->data->size);
    return MC_OK;
}

mc_error *
mc_tile_uniform(mc_tile **tile, const mc_tileset *tileset, const mc_grid *grid, const uint8_t bgra[4], mc_ctx *ctx,
                apr_pool_t *pool)
{
    mc_pixels *pixels;
    MC_TRY(mc_pixels_create(&pixels, grid->tile_width, grid->tile_height, false, pool));
    mc_pixels_attach(pixels, pool);
    mc_pixels_fill(pixels, bgra);
    MC_TRY(encode_synthetic_tile(tile, pixels, tileset, ctx, pool));
    (*tile)->blank = true;
    (*tile)->no_data = bgra[3] == 0;
    for (int i = 0; i < 4; i++)
        (*tile)->bgra[i] = bgra[i];
    return MC_OK;
}

/*
 * Spec 6.2: tile limits of each visible extent, grown by the link's tolerance and inclusive at the top end, as MapCache
 * computes them (one row and column more than a reader would expect: existing configurations rely on what shows).
 */
bool
mc_tile_hidden(const mc_grid_link *link, int z, int x, int y, uint8_t bgra[4])
{
    if (z >= link->ruleset->level_count || !link->ruleset->levels[z].present)
        return false;
    const mc_rule *rule = &link->ruleset->levels[z];
    const mc_grid *grid = link->grid;
    double width = grid->tile_width * grid->levels[z].resolution;
    double height = grid->tile_height * grid->levels[z].resolution;
    bool from_right = grid->origin == MC_TOP_RIGHT || grid->origin == MC_BOTTOM_RIGHT;
    bool from_top = grid->origin == MC_TOP_LEFT || grid->origin == MC_TOP_RIGHT;
    for (int i = 0; i < rule->extent_count; i++) {
        const mc_extent *seen = &rule->extents[i];
        double x0 = from_right ? grid->extent.maxx - seen->maxx : seen->minx - grid->extent.minx;
        double x1 = from_right ? grid->extent.maxx - seen->minx : seen->maxx - grid->extent.minx;
        double y0 = from_top ? grid->extent.maxy - seen->maxy : seen->miny - grid->extent.miny;
        double y1 = from_top ? grid->extent.maxy - seen->miny : seen->maxy - grid->extent.miny;
        if (x >= floor(x0 / width + 1e-7) - link->tolerance && x <= ceil(x1 / width - 1e-7) + link->tolerance &&
            y >= floor(y0 / height + 1e-7) - link->tolerance && y <= ceil(y1 / height - 1e-7) + link->tolerance)
            return false;
    }
    for (int i = 0; i < 4; i++)
        bgra[i] = rule->hidden_bgra[i];
    return true;
}

/* Draws the part of a coarser tile that lies in `box` into `canvas`. */
static mc_error *
draw_coarse(mc_pixels *canvas, const mc_extent *box, const mc_tile *coarse, const mc_extent *coarse_box, mc_ctx *ctx,
            apr_pool_t *pool)
{
    mc_pixels *pixels;
    MC_TRY(mc_image_decode(&pixels, coarse->data->data, coarse->data->size, ctx, pool));
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
    int drawn = 0;
    for (int y = range.miny; y < range.maxy; y++)
        for (int x = range.minx; x < range.maxx; x++) {
            mc_tile *coarse;
            mc_tile_request part = { wanted->tileset, link, link->max_cached_zoom, x, y, wanted->values };
            MC_TRY(mc_tileset_get(&coarse, &part, ctx, pool));
            if (coarse->no_data)
                continue;
            mc_extent coarse_box = mc_grid_tile_extent(grid, link->max_cached_zoom, x, y);
            MC_TRY(draw_coarse(canvas, &box, coarse, &coarse_box, ctx, pool));
            newest = coarse->mtime > newest ? coarse->mtime : newest;
            drawn++;
        }
    if (drawn == 0)
        return mc_tile_nothing(tile, grid, pool);
    MC_TRY(encode_synthetic_tile(tile, canvas, wanted->tileset, ctx, pool));
    (*tile)->mtime = newest;
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
                      .dimension_count = key.dimension_count,
                      .dimensions = key.dimensions };
    mc_tileset_ask_format(&map, tileset);
    mc_rendered rendered = { 0 };
    MC_TRY(mc_source_render(&rendered, tileset->source, &map, ctx, pool));
    if (rendered.pixels != NULL)
        return encode_synthetic_tile(tile, rendered.pixels, tileset, ctx, pool);
    *tile = apr_pcalloc(pool, sizeof(**tile));
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
