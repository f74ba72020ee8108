/* The front of the codec: the head of a file (RFC 9649, 2), sizes and memory; the module does the rest. */
#include "image/webp/webp.h"

#include "base/bytes.h"
#include "base/module.h"
#include "image/codec.h"
#include "mapcache/trace.h"
#include "memory/scratch.h"

enum { SIDE_MAX = 16383, HEAD = 30, HEAD_OF_LOSSLESS = 25 };

static mc_error *
load_codec(const mc_webp_codec **codec, apr_pool_t *pool)
{
    void *symbol;
    MC_TRY(mc_module_symbol(&symbol, "webp", MC_WEBP_SYMBOL, pool));
    *codec = symbol;
    return MC_OK;
}

static uint32_t
read_little24(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
}

/* Width and height by the first chunk: VP8 (RFC 6386, 9.1), VP8L (3.4), VP8X (2.7). False for none of them. */
static bool
read_webp_head(uint32_t *width, uint32_t *height, const uint8_t *data, size_t size)
{
    if (size < HEAD_OF_LOSSLESS || mc_image_sniff(data, size) != MC_CODING_WEBP)
        return false;
    const uint8_t *chunk = data + 12, *body = chunk + 8;
    if (memcmp(chunk, "VP8L", 4) == 0 && body[0] == 0x2f) { /* of one colour it may have less bytes than other heads */
        uint32_t bits = mc_little32(body + 1);
        *width = (bits & 0x3fff) + 1;
        *height = (bits >> 14 & 0x3fff) + 1;
        return true;
    }
    if (size < HEAD)
        return false;
    if (memcmp(chunk, "VP8X", 4) == 0) {
        *width = read_little24(body + 4) + 1;
        *height = read_little24(body + 7) + 1;
        return true;
    }
    if (memcmp(chunk, "VP8 ", 4) == 0 && memcmp(body + 3, "\x9d\x01\x2a", 3) == 0) {
        *width = mc_little16(body + 6) & 0x3fff;
        *height = mc_little16(body + 8) & 0x3fff;
        return true;
    }
    return false;
}

mc_error *
mc_webp_size(int *width, int *height, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    uint32_t columns, rows;
    if (!read_webp_head(&columns, &rows, data, size))
        return mc_error_create(pool, MC_ERR_CORRUPT, "a WebP with a broken head");
    MC_TRY(mc_decode_check_size(columns, rows, pool));
    *width = (int)columns;
    *height = (int)rows;
    return MC_OK;
}

mc_error *
mc_webp_decode(mc_pixels **pixels, const uint8_t *data, size_t size, apr_pool_t *pool)
{
    const mc_webp_codec *codec;
    int width, height;
    MC_TRY(load_codec(&codec, pool));
    MC_TRY(mc_webp_size(&width, &height, data, size, pool));
    MC_TRY(mc_pixels_create(pixels, width, height, false, pool));
    mc_error *error = codec->decode(*pixels, data, size, pool);
    if (error != MC_OK)
        mc_pixels_unref(*pixels);
    return error;
}

/* Straight colours, rows without a gap. */
static void
write_straight_pixels(uint8_t *out, const mc_pixels *pixels)
{
    for (int y = 0; y < pixels->height; y++) {
        const uint8_t *row = pixels->data + (size_t)y * pixels->stride;
        for (int x = 0; x < pixels->width; x++, row += 4, out += 4) {
            for (int c = 0; c < 3; c++)
                out[c] = row[3] == 255 ? row[c] : mc_pixels_straight(row[c], row[3]);
            out[3] = row[3];
        }
    }
}

static mc_error *
webp_encode(mc_buf **bytes, const mc_format *format, mc_pixels *pixels, mc_purpose purpose, mc_ctx *ctx,
            apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_imageio_webp_encode");
    const mc_webp_codec *codec;
    size_t size = (size_t)pixels->width * (size_t)pixels->height * 4;
    if (pixels->width > SIDE_MAX || pixels->height > SIDE_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "WebP has at most %d pixels a side; %d x %d were asked for",
                               SIDE_MAX, pixels->width, pixels->height);
    MC_TRY(load_codec(&codec, pool));
    uint8_t *straight = mc_scratch_acquire(size);
    if (straight == NULL)
        return mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for an image of %d x %d pixels", pixels->width,
                               pixels->height);
    write_straight_pixels(straight, pixels);
    mc_buf *made = mc_buf_attach(mc_buf_create(0, INT32_MAX), pool);
    mc_error *error = codec->encode(made, straight, pixels->width, pixels->height,
                                    mc_pixels_opacity(pixels) == MC_OPAQUE, format, purpose, pool);
    mc_scratch_release(straight);
    if (error == MC_OK)
        *bytes = made;
    return error;
}

const struct mc_format_ops mc_format_webp_ops = { "WEBP", webp_encode };
