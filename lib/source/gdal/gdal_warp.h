/*
 * The operations of the module with GDAL (mapcache-gdal.so). They are separate from gdal.c, so that GDAL is not needed
 * to build or start the core.
 */
#ifndef MC_SOURCE_GDAL_GDAL_WARP_H
#define MC_SOURCE_GDAL_GDAL_WARP_H

#include "mapcache/source.h"

typedef enum mc_gdal_resample {
    MC_GDAL_NEAREST,
    MC_GDAL_BILINEAR,
    MC_GDAL_CUBIC,
    MC_GDAL_CUBICSPLINE,
    MC_GDAL_LANCZOS,
    MC_GDAL_AVERAGE
} mc_gdal_resample;

/* The overview to read. AUTO: the coarsest overview that is fine enough, or an overview `level` steps finer. NONE: the
 * raster itself. LEVEL: overview `level`. */
typedef enum mc_gdal_overviews { MC_GDAL_AUTO, MC_GDAL_NONE, MC_GDAL_LEVEL } mc_gdal_overviews;

typedef struct mc_gdal_raster {
    const char *source; /* name, for messages */
    const char *data;   /* a name that GDAL opens */
    bool pooled;
    mc_gdal_resample resample;
    mc_gdal_overviews overviews;
    int level;
} mc_gdal_raster;

typedef struct mc_gdal_ops {
    /*
     * Warps the raster to the map that is wanted. The result is premultiplied, transparent outside the raster, and
     * attached to `pool`. MC_ERR_CONFIG: cannot be opened, no CRS, bands of another kind than 8-bit gray, palette, RGB
     * or RGBA; MC_ERR_IO: GDAL failed; MC_ERR_TIMEOUT, MC_ERR_UNAVAILABLE: deadline, client gone.
     */
    mc_error *(*render)(mc_pixels **pixels, const mc_gdal_raster *raster, const mc_render *wanted, mc_ctx *ctx,
                        apr_pool_t *pool);
} mc_gdal_ops;

/* The module's one symbol. */
#define MC_GDAL_SYMBOL "mc_gdal_warp_ops"
extern const mc_gdal_ops mc_gdal_warp_ops;

#endif
