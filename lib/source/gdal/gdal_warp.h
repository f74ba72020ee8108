/*
 * The operations of the module with GDAL (mapcache-gdal.so). They are separate from gdal.c, so that GDAL is not needed
 * to build or start the core.
 */
#ifndef MC_SOURCE_GDAL_GDAL_WARP_H
#define MC_SOURCE_GDAL_GDAL_WARP_H

#include "config/opening.h"
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

enum { MC_GDAL_BANDS = 4, MC_GDAL_COLORS = 3, MC_GDAL_STOPS = 256 };

/* Which value of the raster means no data. */
typedef enum mc_gdal_no_data { MC_GDAL_NO_DATA_OF_RASTER, MC_GDAL_NO_DATA_IS, MC_GDAL_ALL_DATA } mc_gdal_no_data;

/* A value of a ramp and its colour, not premultiplied. */
typedef struct mc_gdal_stop {
    double value;
    uint8_t bgra[4];
} mc_gdal_stop;

typedef struct mc_gdal_raster {
    const char *source;  /* name, for messages */
    const char *data;    /* a name that GDAL opens */
    const char *drivers; /* of GDAL, with blanks between: others may not open it; NULL: any */
    bool pooled;
    mc_gdal_resample resample;
    mc_gdal_overviews overviews;
    int level;
    int bands[MC_GDAL_BANDS], band_count; /* from 1; 0 of them: as the raster has them */
    bool scaled;
    double scale[MC_GDAL_COLORS][2]; /* values of black and white of each colour, where `scaled` */
    mc_gdal_no_data no_data_kind;
    double no_data; /* may be NaN */
    const mc_gdal_stop *ramp;
    int ramp_count; /* 0: none */
} mc_gdal_raster;

typedef struct mc_gdal_ops {
    /*
     * Warps the raster to the map that is wanted. The result is premultiplied, transparent outside the raster, and
     * attached to `pool`. MC_ERR_CONFIG: cannot be opened, no CRS, bands that make no picture; MC_ERR_IO: GDAL failed;
     * MC_ERR_TIMEOUT, MC_ERR_UNAVAILABLE: deadline, client gone.
     */
    mc_error *(*render)(mc_pixels **pixels, const mc_gdal_raster *raster, const mc_render *wanted, mc_ctx *ctx,
                        apr_pool_t *pool);

    /* Registers GDAL's drivers, once in a process. */
    void (*start)(void);

    /* Where the raster lies. MC_ERR_CONFIG: it cannot be opened. */
    mc_error *(*place)(mc_place *place, const mc_gdal_raster *raster, apr_pool_t *pool);

    /* Looks at a raster (mc_gdal_raster) for what would keep maps from being drawn. */
    mc_opening_look *inspect;
} mc_gdal_ops;

/* The module's one symbol. */
#define MC_GDAL_SYMBOL "mc_gdal_warp_ops"
extern const mc_gdal_ops mc_gdal_warp_ops;

#endif
