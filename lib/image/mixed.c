/* MIXED: one format for tiles with transparency, another for those without. RAW: bytes that are never pixels. */
#include <string.h>

#include "image/codec.h"

static bool
has_alpha_below(mc_pixels *pixels, int cutoff)
{
    if (cutoff <= 0 || mc_pixels_opacity(pixels) == MC_OPAQUE)
        return cutoff > 255;
    for (int y = 0; y < pixels->height; y++) {
        const uint8_t *alpha = pixels->data + (size_t)y * pixels->stride + 3;
        for (int x = 0; x < pixels->width; x++)
            if (alpha[(size_t)x * 4] < cutoff)
                return true;
    }
    return false;
}

static mc_error *
mixed_encode(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
             apr_pool_t *pool)
{
    const mc_format *chosen = has_alpha_below(pixels, format->alpha_cutoff) ? format->transparent : format->opaque;
    return chosen->ops->encode(bytes, chosen, pixels, purpose, ctx, pool);
}

static mc_error *
no_image(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)bytes, (void)pixels, (void)purpose, (void)ctx;
    return mc_error_create(pool, MC_ERR_INVALID_FORMAT, "format \"%s\" is %s: no image can be made in it", format->name,
                           format->type == MC_FORMAT_RAW ? "raw" : "of vector tiles");
}

const struct mc_format_ops mc_format_mixed_ops = { "MIXED", mixed_encode };
const struct mc_format_ops mc_format_raw_ops = { "RAW", no_image };
const struct mc_format_ops mc_format_mvt_ops = { "MVT", no_image };
