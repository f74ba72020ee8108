/* Tiles that no cache holds: nothing at all, or one colour by a ruleset; and how tiles that are made here are encoded.
 */
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

mc_error *
mc_tile_encode_synthetic(mc_tile **tile, mc_pixels *pixels, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
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
    MC_TRY(mc_tile_encode_synthetic(tile, pixels, tileset, ctx, pool));
    (*tile)->blank = true;
    (*tile)->no_data = bgra[3] == 0;
    for (int i = 0; i < 4; i++)
        (*tile)->bgra[i] = bgra[i];
    return MC_OK;
}

/*
 * docs/reference/configuration.md 6.2: tile limits of each visible extent, grown by the link's tolerance and inclusive
 * at the top end, as MapCache computes them (one row and column more than a reader would expect: existing
 * configurations rely on what shows).
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
