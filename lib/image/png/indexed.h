/* Images of at most 256 indexed colours: a quarter of the memory of pixels, and encoded without a search for a palette.
 */
#ifndef MC_IMAGE_PNG_INDEXED_H
#define MC_IMAGE_PNG_INDEXED_H

#include "image/png/png.h"

typedef struct mc_indexed {
    int width, height;
    size_t stride; /* bytes from row to row: a filter type of PNG, which is 0, and the indices */
    uint8_t *rows;
    int count;              /* of colours */
    uint8_t colors[256][4]; /* premultiplied B, G, R, A */
} mc_indexed;

/* A transparent image, of one colour. The image lives as long as `pool`. MC_ERR_LIMIT as mc_pixels_create. */
mc_error *mc_indexed_create(mc_indexed **image, int width, int height, apr_pool_t *pool) MC_CHECKED;

static inline uint8_t *
mc_indexed_row(const mc_indexed *image, int y)
{
    return image->rows + (size_t)y * image->stride + 1;
}

/* The index of a colour, which is added where it is new; -1 where there are 256 other colours. */
int mc_indexed_number(mc_indexed *image, const uint8_t bgra[4]);

/* Removes the colours that do not occur: fewer colours may need fewer bits for a pixel. */
void mc_indexed_trim(mc_indexed *image);

/* Lays the whole image over a colour. */
void mc_indexed_over(mc_indexed *image, const uint8_t bgra[4]);

/* The image as pixels; the caller has their only reference. */
mc_error *mc_indexed_pixels(mc_pixels **pixels, const mc_indexed *image, apr_pool_t *pool) MC_CHECKED;

/* Whether images of a format are palette PNGs whenever that is without loss; encodes an image as such a PNG. `bytes` as
 * of mc_format_encode. */
bool mc_indexed_suits(const mc_format *format);
mc_error *mc_indexed_encode(mc_buf **bytes, const mc_format *format, const mc_indexed *image, mc_purpose purpose,
                            mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
