/* The module: libwebp's simple and advanced interfaces, with our memory on both sides. */
#include <webp/decode.h>
#include <webp/encode.h>

#include "image/webp/webp.h"

static mc_error *
decode_webp(mc_pixels *pixels, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return mc_error_create(pool, MC_ERR_NOT_BUILT, "libwebp is another version than at build time");
    VP8StatusCode status = WebPGetFeatures(data, size, &config.input);
    if (status == VP8_STATUS_OK && config.input.has_animation)
        return mc_error_create(pool, MC_ERR_CORRUPT, "an animated WebP");
    if (status != VP8_STATUS_OK || config.input.width != pixels->width || config.input.height != pixels->height)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a broken WebP (%d)", (int)status);
    config.output.colorspace = MODE_bgrA; /* premultiplied */
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels->data;
    config.output.u.RGBA.stride = (int)pixels->stride;
    config.output.u.RGBA.size = pixels->stride * (size_t)pixels->height;
    status = WebPDecode(data, size, &config);
    WebPFreeDecBuffer(&config.output);
    if (status == VP8_STATUS_OUT_OF_MEMORY)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory to decode a WebP");
    if (status != VP8_STATUS_OK)
        return mc_error_create(pool, MC_ERR_CORRUPT, "a broken or truncated WebP (%d)", (int)status);
    if (!config.input.has_alpha)
        pixels->opacity = MC_OPAQUE;
    return MC_OK;
}

typedef struct webp_output {
    mc_buf *bytes;
    mc_error *error;
    apr_pool_t *pool;
} webp_output;

static int
append_webp(const uint8_t *data, size_t size, const WebPPicture *picture)
{
    webp_output *output = picture->custom_ptr;
    if (output->error == MC_OK)
        output->error = mc_buf_append(output->bytes, data, size, output->pool);
    return output->error == MC_OK;
}

/* On the fly somebody waits: the fastest methods. What is stored is compressed once, and read many times. */
static bool
set_webp_config(WebPConfig *config, const mc_format *format, mc_purpose purpose)
{
    enum { QUICK = 1, QUICK_LOSSLESS = 0, GOOD = 4 };
    if (!WebPConfigInit(config))
        return false;
    config->lossless = format->lossless;
    config->quality = format->lossless ? (purpose == MC_FOR_STORE ? 75 : 20) : (float)format->quality;
    config->method = format->effort >= 0       ? format->effort
                     : purpose == MC_FOR_STORE ? GOOD
                     : format->lossless        ? QUICK_LOSSLESS
                                               : QUICK;
    return WebPValidateConfig(config);
}

static mc_error *
webp_encode_error(const WebPPicture *picture, const webp_output *output)
{
    if (output->error != MC_OK)
        return output->error;
    if (picture->error_code == VP8_ENC_ERROR_OUT_OF_MEMORY)
        return mc_error_create(output->pool, MC_ERR_NO_MEMORY, "no memory to write a WebP");
    return mc_error_create(output->pool, MC_ERR_IO, "libwebp does not write a picture of %d x %d (%d)", picture->width,
                           picture->height, (int)picture->error_code);
}

static mc_error *
encode_webp(mc_buf *bytes, const uint8_t *bgra, int width, int height, bool opaque, const mc_format *format,
            mc_purpose purpose, apr_pool_t *pool)
{
    WebPConfig config;
    WebPPicture picture;
    webp_output output = { bytes, MC_OK, pool };
    if (!set_webp_config(&config, format, purpose) || !WebPPictureInit(&picture))
        return mc_error_create(pool, MC_ERR_IO, "libwebp refuses its settings");
    picture.use_argb = config.lossless;
    picture.width = width;
    picture.height = height;
    picture.writer = append_webp;
    picture.custom_ptr = &output;
    bool done = (opaque ? WebPPictureImportBGRX : WebPPictureImportBGRA)(&picture, bgra, width * 4) &&
                WebPEncode(&config, &picture);
    mc_error *error = done ? MC_OK : webp_encode_error(&picture, &output);
    WebPPictureFree(&picture);
    return error;
}

const mc_webp_codec mc_webp_libwebp = { decode_webp, encode_webp };
