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

#endif
