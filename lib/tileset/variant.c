/* Further formats of a tileset: how they are found, named, encoded and forgotten. */
#include "tileset/variant.h"

#include <string.h>

mc_tileset *
mc_tileset_variant(const mc_tileset *tileset, const char *extension)
{
    for (int i = 0; i < tileset->variant_count; i++)
        if (strcmp(tileset->variants[i]->format->extension, extension) == 0)
            return tileset->variants[i];
    return NULL;
}

mc_tileset *
mc_tileset_variant_of_type(const mc_tileset *tileset, const char *mime)
{
    for (int i = 0; i < tileset->variant_count; i++)
        if (strcmp(mc_coding_mime(mc_format_coding(tileset->variants[i]->format)), mime) == 0)
            return tileset->variants[i];
    return NULL;
}

mc_tile_key
mc_variant_key(const mc_tileset *variant, const mc_tile_key *key)
{
    mc_tile_key own = *key;
    own.tileset = variant->name;
    own.extension = mc_tileset_extension(variant);
    own.mime = variant->format->mime;
    return own;
}

int
mc_variants_rendered(const mc_tileset *tileset)
{
    return tileset->variant_count > 0 && tileset->variants[0]->keeping == MC_KEEP_RENDERED ? tileset->variant_count : 0;
}

mc_error *
mc_variant_encode(mc_buf **data, const mc_tileset *variant, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
                  apr_pool_t *pool)
{
    static const uint8_t white[4] = { 255, 255, 255, 255 };
    mc_pixels *canvas;
    if (variant->format->type != MC_FORMAT_JPEG || mc_pixels_opacity(pixels) == MC_OPAQUE)
        return mc_format_encode(data, variant->format, pixels, purpose, ctx, pool);
    MC_TRY(mc_pixels_create(&canvas, pixels->width, pixels->height, false, pool));
    mc_pixels_attach(canvas, pool);
    mc_pixels_fill(canvas, white);
    mc_pixels_over(canvas, 0, 0, pixels);
    return mc_format_encode(data, variant->format, canvas, purpose, ctx, pool);
}

mc_error *
mc_variants_forget(const mc_tileset *tileset, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    if (tileset->variant_count == 0 || count == 0)
        return MC_OK;
    mc_tile_key *own = apr_palloc(ctx->pool, sizeof(*own) * (size_t)count);
    for (int i = 0; i < tileset->variant_count; i++) {
        const mc_tileset *variant = tileset->variants[i];
        if (variant->keeping == MC_KEEP_NEVER)
            continue;
        for (int j = 0; j < count; j++) {
            own[j] = mc_variant_key(variant, &keys[j]);
            own[j].renderable = true; /* a store that is not there yet has no tiles */
        }
        MC_TRY(mc_cache_remove_all(variant->cache, own, count, ctx));
    }
    return MC_OK;
}

mc_error *
mc_tileset_forget_formats(const mc_tileset *tileset, const mc_tile_write *writes, int count, mc_ctx *ctx)
{
    if (tileset->variant_count == 0)
        return MC_OK;
    mc_tile_key *keys = apr_palloc(ctx->pool, sizeof(*keys) * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        keys[i] = writes[i].key;
    return mc_variants_forget(tileset, keys, count, ctx);
}
