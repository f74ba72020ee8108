/* A tile as an image: whether it has a size that its grid allows; its validators, and what a format adds to them. */
#include "mapcache/tile.h"

#include "base/hash.h"

mc_error *
mc_tile_check(const mc_tile *tile, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    int width, height;
    MC_TRY(mc_ctx_check(ctx, pool));
    MC_TRY(mc_image_size(&width, &height, tile->data->data, tile->data->size, pool));
    if (width <= mc_tile_oversize * grid->tile_width && height <= mc_tile_oversize * grid->tile_height)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_CORRUPT, "a stored image of %d x %d pixels in a grid of tiles of %d x %d",
                           width, height, grid->tile_width, grid->tile_height);
}

mc_error *
mc_tile_decode(mc_pixels **pixels, const mc_tile *tile, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_tile_check(tile, grid, ctx, pool));
    return mc_image_decode(pixels, tile->data->data, tile->data->size, ctx, pool);
}

uint64_t
mc_tile_tag(mc_tile *tile)
{
    if (tile->tag == 0 && tile->data != NULL) {
        tile->tag = mc_hash64(tile->data->data, tile->data->size, 0);
        /* Zero means "not computed yet". */
        if (tile->tag == 0)
            tile->tag = 1;
    }
    return tile->tag;
}

uint64_t
mc_format_tag(const mc_format *format)
{
    const int numbers[] = { (int)format->type,    format->compression, format->colors,
                            format->quality,      format->photometric, format->optimize,
                            format->alpha_cutoff, format->lossless,    format->effort };
    uint64_t tag = mc_hash64(numbers, sizeof(numbers), 0);
    if (format->type == MC_FORMAT_MIXED) {
        uint64_t parts[2] = { mc_format_tag(format->transparent), mc_format_tag(format->opaque) };
        tag = mc_hash64(parts, sizeof(parts), tag);
    }
    return tag;
}
