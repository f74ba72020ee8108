/* WebP (RFC 9649) by libwebp, which is in a module of its own. */
#ifndef MC_IMAGE_WEBP_WEBP_H
#define MC_IMAGE_WEBP_WEBP_H

#include "mapcache/image.h"

/* What the module does; sizes have been checked by the head of the file. */
typedef struct mc_webp_codec {
    /* Into pixels of the picture's size, premultiplied. MC_ERR_CORRUPT for broken bytes. */
    mc_error *(*decode)(mc_pixels *pixels, const uint8_t *data, size_t size, apr_pool_t *pool);
    /* Straight B, G, R, A, rows without a gap, `opaque` where all alphas are 255; appended to *bytes. */
    mc_error *(*encode)(mc_buf *bytes, const uint8_t *bgra, int width, int height, bool opaque, const mc_format *format,
                        mc_purpose purpose, apr_pool_t *pool);
} mc_webp_codec;

#define MC_WEBP_SYMBOL "mc_webp_libwebp"
extern const mc_webp_codec mc_webp_libwebp;

#endif
