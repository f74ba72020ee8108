/* Readers of georeferenced images: PNG, JPEG and TIFF files with a position. */
#ifndef MAPCACHE_RASTER_H
#define MAPCACHE_RASTER_H

#include "mapcache/grid.h"
#include "mapcache/image.h"

/* A georeferenced image file: PNG, JPEG (with a world file) or TIFF (with GeoTIFF tags or a world file). Of one thread
 * at a time. */
typedef struct mc_raster mc_raster;

/* Bounds of the size that a file claims, checked before anything is allocated for the image. */
enum { mc_raster_side_max = 1 << 20 };
#define MC_RASTER_PIXELS_MAX ((int64_t)1 << 36)

/* Facts that the caller adds where a file lacks them. */
typedef struct mc_raster_options {
    const char *srs;    /* of files without a CRS; NULL: the CRS stays unknown */
    bool has_no_data;   /* pixels of the colour `no_data` are transparent, whatever the file says */
    uint8_t no_data[3]; /* R, G, B */
} mc_raster_options;

typedef struct mc_raster_info {
    const char *path;
    const char *format; /* "PNG", "JPEG", "TIFF" */
    int width, height;  /* pixels */
    int bands;          /* as in the file: 1 grey or palette, 2 with alpha, 3 colours, 4 with alpha or CMYK */
    bool opaque;        /* certainly no pixel is transparent */
    /*
     * x = affine[0] + column * affine[1] + row * affine[2], y = affine[3] + column * affine[4] + row * affine[5], in
     * units of the CRS, x (longitude) first; column and row are 0 at the outer corner of the first pixel.
     */
    double affine[6];
    bool georeferenced; /* `affine` is known; else `affine` counts pixels */
    bool upright;       /* rows run along x and north is up: affine[2] and affine[4] are 0, [1] above and [5] below 0 */
    mc_extent extent;   /* around the image, units of the CRS */
    const char *srs;    /* "EPSG:3857", or WKT of a .prj file; NULL: unknown */
    bool srs_told;      /* by the options: the file does not say it */
    const char *origin; /* of the position: "GeoTIFF tags" or the name of a file */
} mc_raster_info;

/*
 * Opens a file and reads the header and the world file; no pixel is decoded. The file is closed with `pool` at the
 * latest. MC_ERR_NOT_FOUND for a missing file, MC_ERR_CORRUPT for a file that is no such image, claims an impossible
 * size, or has a wrong world file or wrong tags, MC_ERR_UNAVAILABLE for a TIFF where that module is not installed.
 * Every message begins with the path.
 */
mc_error *mc_raster_open(mc_raster **raster, const char *path, const mc_raster_options *options,
                         apr_pool_t *pool) MC_CHECKED;
const mc_raster_info *mc_raster_about(const mc_raster *raster);
void mc_raster_close(mc_raster *raster);

/*
 * Decodes the next `count` rows (from the top, each once) into `bgra`: premultiplied B, G, R, A, `stride` bytes from
 * row to row. The decoder holds some further rows in memory (a strip or a row of tiles of a TIFF; all rows of a
 * progressive JPEG). MC_ERR_CORRUPT for broken or truncated data.
 */
mc_error *mc_raster_rows(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool) MC_CHECKED;

/* The number of rows that have been decoded. */
int mc_raster_row(const mc_raster *raster);

/* Decodes all rows of a raster of which no row has been read. *pixels has one reference, the caller's. MC_ERR_LIMIT for
 * sizes that mc_pixels_create refuses. */
mc_error *mc_raster_read(mc_pixels **pixels, mc_raster *raster, apr_pool_t *pool) MC_CHECKED;

#endif
