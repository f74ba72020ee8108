/* Bands of a canvas, for painting on several threads. */
#include <apr_strings.h>

#include "draw/raster/blocks.h"
#include "draw/raster/canvas.h"

mc_canvas *
mc_canvas_band(const mc_canvas *canvas, int top, int height, apr_pool_t *pool)
{
    MC_ASSERT(canvas->palette != NULL || canvas->pixels != NULL);
    MC_ASSERT(top >= 0 && height > 0 && top + height <= canvas->height);
    mc_canvas *band = apr_pmemdup(pool, canvas, sizeof(*band));
    band->height = height;
    band->pool = pool;
    band->mask = apr_palloc(pool, (size_t)canvas->width + MC_MASK_MARGIN);
    if (canvas->indexed != NULL) {
        band->indexed = apr_pmemdup(pool, canvas->indexed, sizeof(*band->indexed));
        band->indexed->height = height;
        band->indexed->rows += (size_t)top * canvas->indexed->stride;
    } else {
        band->pixels = apr_palloc(pool, sizeof(*band->pixels));
        MC_ASSERT(mc_pixels_part(band->pixels, canvas->pixels, 0, top, canvas->width, height));
    }
    return band;
}
