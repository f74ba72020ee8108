/* The place of an image on the tiles of a level. */
#ifndef MC_INGEST_PYRAMID_IMAGE_PLACEMENT_H
#define MC_INGEST_PYRAMID_IMAGE_PLACEMENT_H

#include "mapcache/ingest.h"
#include "vector/crs/projection.h"

/* An image and the grid on which the image is drawn. */
typedef struct mc_image_placement {
    const mc_raster_info *image;
    const mc_grid *grid;
    bool upright;      /* the same CRS, no rotation: pixels are found by a scale and an offset */
    double inverse[6]; /* of image->affine: column and row of a place in the image's CRS */
    mc_extent box;     /* around the image, in the grid's CRS */
} mc_image_placement;

/* MC_ERR_CONFIG where PROJ does not know a CRS, MC_ERR_CORRUPT where the image lies nowhere in the grid's CRS. */
mc_error *mc_image_placement_create(mc_image_placement *placement, const mc_raster_info *image, const mc_grid *grid,
                                    apr_pool_t *pool) MC_CHECKED;

/* Of an upright image: column and row of the outer corner of a tile, and columns and rows of a pixel of the level. */
typedef struct mc_image_placement_scale {
    double x0, y0, scale_x, scale_y;
} mc_image_placement_scale;
mc_image_placement_scale mc_image_placement_tile(const mc_image_placement *placement, int z, int x, int y);

/* Turns places of the grid's CRS into columns and rows (x and y in turn); HUGE_VAL for a place that cannot be
 * transformed. The projection goes from the grid's CRS to the image's CRS; NULL where both are the same. */
void mc_image_placement_points(const mc_image_placement *placement, const mc_projection *projection, double *xy,
                               size_t count);

/* The number of pixels of the image, a side, in one pixel of the level, approximately. */
double mc_image_placement_shrink(const mc_image_placement *placement, const mc_projection *projection, int z);

/* The rows of the image, first <= row < end, that a tile needs, with a margin for interpolation; first >= end: no row.
 */
void mc_image_placement_rows(int *first, int *end, const mc_image_placement *placement, const mc_projection *projection,
                             int z, int x, int y);

#endif
