/* The rectangle of an image that holds all visible pixels. */
#ifndef MC_IMAGE_BOX_H
#define MC_IMAGE_BOX_H

#include "mapcache/image.h"

typedef struct mc_box {
    int left, top, width, height; /* pixels; all 0 where no pixel is visible */
    mc_opacity opacity;           /* of the pixels inside: MC_OPAQUE, MC_TRANSLUCENT, MC_EMPTY */
} mc_box;

/* The smallest box around all pixels with an alpha above 0. */
mc_box mc_pixels_box(const mc_pixels *pixels);

/* The size of an image and the box of its visible pixels. */
typedef struct mc_box_image {
    int width, height; /* pixels */
    mc_box box;
} mc_box_image;

/* Memory for the pixels of the box: rows of width * 4 bytes without gaps. NULL without memory. */
typedef uint8_t *mc_box_room(void *baton, const mc_box_image *image);

/*
 * Decodes a PNG or JPEG of any form right into its box. Premultiplied pixels are written to the memory that room()
 * gives; room() is called once, or never when no pixel is visible. After an error the memory stays the caller's and
 * holds anything. Of sparse tiles only the box is converted. Errors as of mc_image_decode; MC_ERR_LIMIT when there is
 * no memory.
 */
mc_error *mc_image_decode_box(mc_box_image *image, mc_box_room *room, void *baton, const void *data, size_t size,
                              mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
