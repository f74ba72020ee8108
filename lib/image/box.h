/* The rectangle of an image in which something shows. */
#ifndef MC_IMAGE_BOX_H
#define MC_IMAGE_BOX_H

#include "mapcache/image.h"

typedef struct mc_box {
    int left, top, width, height; /* pixels; all 0 where nothing shows */
    mc_opacity opacity;           /* of what is inside: MC_OPAQUE, MC_TRANSLUCENT, MC_EMPTY */
} mc_box;

/* The smallest box around all pixels with an alpha above 0. */
mc_box mc_pixels_box(const mc_pixels *pixels);

/* The size of an image and the box of what shows in it. */
typedef struct mc_box_image {
    int width, height; /* pixels */
    mc_box box;
} mc_box_image;

/* Memory for the pixels of the box: rows of width * 4 bytes without gaps. NULL without memory. */
typedef uint8_t *mc_box_room(void *baton, const mc_box_image *image);

/*
 * Decodes a PNG or JPEG of any form right into its box: premultiplied pixels are written to what room() gives, which is
 * called once, and not at all when nothing shows; after an error it stays the caller's and holds anything. Of sparse
 * tiles only the box is ever converted. Errors as of mc_image_decode; MC_ERR_LIMIT when there is no room.
 */
mc_error *mc_image_decode_box(mc_box_image *image, mc_box_room *room, void *baton, const void *data, size_t size,
                              mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
