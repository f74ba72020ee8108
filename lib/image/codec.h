/* The codecs behind mc_image_decode, mc_image_size and the format operations. */
#ifndef MC_IMAGE_CODEC_H
#define MC_IMAGE_CODEC_H

#include "mapcache/image.h"

/* Decoded images hold at most so many pixels, which bounds the memory that one input can take. */
#define MC_DECODE_MAX ((int64_t)1 << 26)

/* MC_ERR_CORRUPT unless both sides are 1..mc_pixels_max and the whole is within MC_DECODE_MAX. */
mc_error *mc_decode_check_size(uint32_t width, uint32_t height, apr_pool_t *pool) MC_CHECKED;

/* The first bytes of every PNG file (ISO/IEC 15948, 5.2). */
extern const uint8_t mc_png_signature[8];

mc_error *mc_png_decode(mc_pixels **pixels, const uint8_t *data, size_t size, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_png_size(int *width, int *height, const uint8_t *data, size_t size, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_jpeg_decode(mc_pixels **pixels, const uint8_t *data, size_t size, apr_pool_t *pool) MC_CHECKED;
/* As mc_image_draw. */
mc_error *mc_jpeg_draw(mc_pixels *target, int x, int y, const uint8_t *data, size_t size, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_jpeg_size(int *width, int *height, const uint8_t *data, size_t size, apr_pool_t *pool) MC_CHECKED;

mc_error *mc_webp_decode(mc_pixels **pixels, const uint8_t *data, size_t size, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_webp_size(int *width, int *height, const uint8_t *data, size_t size, apr_pool_t *pool) MC_CHECKED;

/* 255 * colour / alpha, rounded, of one premultiplied channel. */
static inline uint8_t
mc_pixels_straight(unsigned channel, unsigned alpha)
{
    if (channel >= alpha)
        return alpha == 0 ? 0 : 255;
    return (uint8_t)((channel * 255 + alpha / 2) / alpha);
}

/* What a <format> of each type does; the struct behind each is mc_format itself. */
extern const struct mc_format_ops mc_format_png_ops, mc_format_jpeg_ops, mc_format_mixed_ops, mc_format_raw_ops,
    mc_format_mvt_ops, mc_format_webp_ops;

#endif
