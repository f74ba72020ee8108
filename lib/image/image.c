/* What bytes are, and the way to the codec that reads them. */
#include "mapcache/image.h"

#include <string.h>

#include "compress/gzip.h"
#include "image/codec.h"
#include "mapcache/trace.h"

const uint8_t mc_png_signature[8] = { 137, 'P', 'N', 'G', 13, 10, 26, 10 };

mc_coding
mc_image_sniff(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    if (size >= 8 && memcmp(bytes, mc_png_signature, 8) == 0)
        return MC_CODING_PNG;
    if (size >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
        return MC_CODING_JPEG;
    if (size == 5 && bytes[0] == '#')
        return MC_CODING_BLANK;
    if (size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
        return MC_CODING_WEBP;
    if (mc_is_gzip(data, size))
        return MC_CODING_GZIP;
    return MC_CODING_UNKNOWN;
}

const char *
mc_coding_mime(mc_coding coding)
{
    switch (coding) {
    case MC_CODING_PNG:
    case MC_CODING_BLANK: /* served as the PNG that stands for it */
        return "image/png";
    case MC_CODING_JPEG:
        return "image/jpeg";
    case MC_CODING_WEBP:
        return "image/webp";
    case MC_CODING_GZIP:
    case MC_CODING_UNKNOWN:
        break;
    }
    return NULL;
}

const char *
mc_coding_format(mc_coding coding)
{
    return coding == MC_CODING_PNG    ? "PNG"
           : coding == MC_CODING_JPEG ? "JPEG"
           : coding == MC_CODING_WEBP ? "WEBP"
                                      : NULL;
}

mc_error *
mc_decode_check_size(uint32_t width, uint32_t height, apr_pool_t *pool)
{
    uint32_t limit = (uint32_t)mc_pixels_max;
    if (width < 1 || height < 1 || width > limit || height > limit || (int64_t)width * height > MC_DECODE_MAX)
        return mc_error_create(pool, MC_ERR_CORRUPT, "an image that claims %u x %u pixels", width, height);
    return MC_OK;
}

static mc_error *
unknown_image_error(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "neither a PNG nor a JPEG nor a WebP image");
}

mc_error *
mc_image_decode(mc_pixels **pixels, const void *data, size_t size, mc_ctx *ctx, apr_pool_t *pool)
{
    switch (mc_image_sniff(data, size)) {
    case MC_CODING_PNG: {
        MC_SPAN(ctx, "_mapcache_imageio_png_decode");
        return mc_png_decode(pixels, data, size, pool);
    }
    case MC_CODING_JPEG: {
        MC_SPAN(ctx, "_mapcache_imageio_jpeg_decode");
        return mc_jpeg_decode(pixels, data, size, pool);
    }
    case MC_CODING_WEBP: {
        MC_SPAN(ctx, "mapcache_imageio_webp_decode");
        return mc_webp_decode(pixels, data, size, pool);
    }
    default:
        return unknown_image_error(pool);
    }
}

mc_error *
mc_image_draw(mc_pixels *target, int x, int y, const void *data, size_t size, mc_ctx *ctx, apr_pool_t *pool)
{
    if (mc_image_sniff(data, size) == MC_CODING_JPEG) {
        MC_SPAN(ctx, "_mapcache_imageio_jpeg_decode");
        return mc_jpeg_draw(target, x, y, data, size, pool);
    }
    mc_pixels *pixels;
    MC_TRY(mc_image_decode(&pixels, data, size, ctx, pool));
    mc_pixels_over(target, x, y, pixels);
    mc_pixels_unref(pixels);
    return MC_OK;
}

mc_error *
mc_image_size(int *width, int *height, const void *data, size_t size, apr_pool_t *pool)
{
    switch (mc_image_sniff(data, size)) {
    case MC_CODING_PNG:
        return mc_png_size(width, height, data, size, pool);
    case MC_CODING_JPEG:
        return mc_jpeg_size(width, height, data, size, pool);
    case MC_CODING_WEBP:
        return mc_webp_size(width, height, data, size, pool);
    default:
        return unknown_image_error(pool);
    }
}
