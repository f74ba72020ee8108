/* What all that read through libpng share. The functions that may end by a long jump are called below a setjmp. */
#ifndef MC_IMAGE_PNG_LIBPNG_H
#define MC_IMAGE_PNG_LIBPNG_H

#include <png.h>
#include <stdbool.h>

typedef struct mc_libpng {
    png_structp png;
    png_infop info;
    char message[120]; /* of the last long jump */
} mc_libpng;

/* False where libpng does not start. */
bool mc_libpng_create(mc_libpng *reader);
void mc_libpng_destroy(mc_libpng *reader);

/* Why reading ended. */
const char *mc_libpng_reason(const mc_libpng *reader);

/* May jump: reads all before the pixels, of an image of at most `side_max` pixels to each side. Nothing but pixels
 * matters here: other chunks of the file are neither kept nor inflated. */
void mc_libpng_read_head(mc_libpng *reader, png_uint_32 side_max);

/* May jump: makes libpng expand any form to rows of 8-bit R, G, B, A, of `row_size` bytes. */
void mc_libpng_expand(mc_libpng *reader, size_t row_size);

#endif
