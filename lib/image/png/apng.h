/* The difference between two frames of an animation. */
#ifndef MC_IMAGE_PNG_APNG_H
#define MC_IMAGE_PNG_APNG_H

#include "mapcache/image.h"

typedef struct mc_changed {
    int left, top, width, height; /* width 0: nothing has changed */
} mc_changed;

/* The smallest rectangle that holds all pixels in which two images of one size differ. */
mc_changed mc_pixels_changed(const mc_pixels *before, const mc_pixels *after);

#endif
