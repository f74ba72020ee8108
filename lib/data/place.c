/* Where layers lie: boxes in degrees, and the levels at which they are worth a look. */
#include <math.h>

#include "data/data_private.h"
#include "grid/earth.h"
#include "vector/crs/projection.h"

/* Metres for a pixel of GoogleMapsCompatible's level 0, and its last level. */
#define WEB_PIXEL (2 * MC_WEB_MERCATOR_HALF / 256)
enum { LAST_LEVEL = 18, VECTOR_LEVELS = 14 };

/* A box of no size, as that of one point, gets one: about a hundred metres. */
static void
widen_box(mc_extent *degrees)
{
    double least = 0.001;
    if (degrees->maxx - degrees->minx < least) {
        degrees->minx -= least / 2;
        degrees->maxx += least / 2;
    }
    if (degrees->maxy - degrees->miny < least) {
        degrees->miny -= least / 2;
        degrees->maxy += least / 2;
    }
}

static mc_extent
box_on_earth(const mc_extent *degrees)
{
    return (mc_extent){ fmax(degrees->minx, -180), fmax(degrees->miny, -90), fmin(degrees->maxx, 180),
                        fmin(degrees->maxy, 90) };
}

/* The level on which the whole box is about as large as a screen. */
static int
level_of_box(const mc_extent *degrees)
{
    double wide = (degrees->maxx - degrees->minx) / 360, high = (degrees->maxy - degrees->miny) / 180;
    int level = (int)floor(log2(4 / fmax(fmax(wide, high), 1e-9)));
    return level < 2 ? 0 : level - 2 > LAST_LEVEL ? LAST_LEVEL : level - 2;
}

/* The first level whose pixels are not larger than those of the raster. */
static int
level_of_pixel(double pixel, const mc_data_layer *layer)
{
    double across = layer->extent.maxx - layer->extent.minx;
    if (!(across > 0) || !(pixel > 0))
        return -1;
    double metres = pixel / across * (layer->degrees.maxx - layer->degrees.minx) / 360 * 2 * MC_WEB_MERCATOR_HALF;
    int level = (int)ceil(log2(WEB_PIXEL / metres) - 0.2);
    return level < 0 ? 0 : level > 30 ? 30 : level;
}

/* A vector tile of these levels can be shown much larger. */
static int
level_of_vectors(int minzoom)
{
    return minzoom + 6 > VECTOR_LEVELS ? minzoom + 6 : VECTOR_LEVELS;
}

void
mc_data_place(mc_data_layer *layer, double pixel, apr_pool_t *pool)
{
    mc_projection *projection;
    if (!layer->has_extent || layer->srs == NULL)
        return;
    mc_extent box = layer->extent;
    mc_error *error = mc_projection_open(&projection, layer->srs, "CRS:84", pool);
    if (error != MC_OK || (projection != NULL && !mc_projection_box(&box, projection, false)))
        return;
    if (!isfinite(box.minx) || !isfinite(box.miny) || !isfinite(box.maxx) || !isfinite(box.maxy))
        return;
    box = box_on_earth(&box);
    if (box.maxx < box.minx || box.maxy < box.miny)
        return;
    widen_box(&box);
    layer->degrees = box;
    layer->has_degrees = true;
    if (layer->minzoom < 0)
        layer->minzoom = level_of_box(&box);
    if (layer->maxzoom < 0)
        layer->maxzoom = pixel > 0 ? level_of_pixel(pixel, layer) : level_of_vectors(layer->minzoom);
    if (layer->maxzoom < layer->minzoom)
        layer->minzoom = layer->maxzoom;
}
