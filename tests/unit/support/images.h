/* Images that end with the test. */
#ifndef IMAGES_H
#define IMAGES_H

#include "mapcache/image.h"

/* Transparent everywhere. */
mc_pixels *clear_image(int width, int height);
mc_pixels *decoded_image(const mc_buf *bytes);

#endif
