/*
 * Ingestion: georeferenced images become tiles. This part reads the images; mc_ingest (below) makes pyramids of them.
 */
#ifndef MAPCACHE_INGEST_H
#define MAPCACHE_INGEST_H

#include "mapcache/tileset.h"

/* A georeferenced image file: PNG, JPEG (with a world file) or TIFF (with GeoTIFF tags or a world file). Of one thread
 * at a time. */
typedef struct mc_raster mc_raster;

/* Both bounds hold for what a file claims, before anything is allocated for it. */
enum { mc_raster_side_max = 1 << 20 };
#define MC_RASTER_PIXELS_MAX ((int64_t)1 << 36)

/* What a caller knows about files that do not say it themselves. */
typedef struct mc_raster_options {
    const char *srs;    /* of files without one; NULL: it stays unknown */
    bool has_no_data;   /* pixels of the colour `no_data` are transparent, whatever the file says */
    uint8_t no_data[3]; /* R, G, B */
} mc_raster_options;

typedef struct mc_raster_info {
    const char *path;
    const char *format; /* "PNG", "JPEG", "TIFF" */
    int width, height;  /* pixels */
    int bands;          /* as in the file: 1 grey or palette, 2 with alpha, 3 colours, 4 with alpha or CMYK */
    bool opaque;        /* no pixel is transparent, for certain */
    /*
     * x = affine[0] + column * affine[1] + row * affine[2], y = affine[3] + column * affine[4] + row * affine[5], in
     * units of the CRS, x (longitude) first; column and row are 0 at the outer corner of the first pixel.
     */
    double affine[6];
    bool georeferenced; /* affine is known; else it counts pixels */
    bool upright;       /* rows run along x and north is up: affine[2] and affine[4] are 0, [1] above and [5] below 0 */
    mc_extent extent;   /* around all of it, units of the CRS */
    const char *srs;    /* "EPSG:3857", or WKT of a .prj file; NULL: unknown */
    const char *origin; /* what the position comes from: "GeoTIFF tags" or the name of a file */
} mc_raster_info;

/*
 * Opens a file and reads what its header and its world file say; no pixel is decoded. It is closed with `pool` at the
 * latest. MC_ERR_NOT_FOUND for a file that is not there, MC_ERR_CORRUPT for one that is no such image, claims an
 * impossible size, or has a wrong world file or wrong tags, MC_ERR_UNAVAILABLE for a TIFF where that module is not
 * installed. Every message begins with the path.
 */
mc_error *mc_raster_open(mc_raster **raster, const char *path, const mc_raster_options *options,
                         apr_pool_t *pool) MC_CHECKED;
const mc_raster_info *mc_raster_about(const mc_raster *raster);
void mc_raster_close(mc_raster *raster);

/*
 * Decodes the next `count` rows (from the top, each once) into `bgra`: premultiplied B, G, R, A, `stride` bytes from
 * row to row. Memory beside that is some rows (a strip or a row of tiles of a TIFF; all of a progressive JPEG).
 * MC_ERR_CORRUPT for broken or truncated data.
 */
mc_error *mc_raster_rows(mc_raster *raster, uint8_t *bgra, size_t stride, int count, apr_pool_t *pool) MC_CHECKED;

/* How many rows have been decoded. */
int mc_raster_row(const mc_raster *raster);

/* Decodes all of it at once, of a raster of which no row has been read: one reference, the caller's. MC_ERR_LIMIT above
 * what mc_pixels_create allows. */
mc_error *mc_raster_read(mc_pixels **pixels, mc_raster *raster, apr_pool_t *pool) MC_CHECKED;

/* How images become the pixels of a grid. AUTO: each pixel of the grid is the mean of the image's pixels in it where
 * those are smaller, else bilinear between four of them. */
typedef enum mc_ingest_resample {
    MC_INGEST_AUTO,
    MC_INGEST_NEAREST,
    MC_INGEST_BILINEAR,
    MC_INGEST_AVERAGE
} mc_ingest_resample;

/* What became of it so far. */
typedef struct mc_ingest_counts {
    int inputs;           /* that are drawn */
    int done;             /* of them */
    int bad;              /* passed over */
    apr_int64_t tiles;    /* stored and committed */
    apr_int64_t bytes;    /* of them */
    apr_int64_t spooled;  /* times that a partial tile went to the scratch file */
    apr_int64_t peak;     /* bytes of partial tiles in memory at most */
    double decode, draw;  /* seconds of all threads: images, pixels of the grid */
    double encode, store; /* tiles with their overviews, commits */
} mc_ingest_counts;

typedef struct mc_ingest_plan {
    mc_tileset *tileset;
    const mc_grid_link *link;
    const char *const *values;       /* of the tileset's dimensions, in configuration order */
    const apr_array_header_t *paths; /* const char *: where images overlap, the later one is on top */
    int minzoom, maxzoom;            /* -1: the link's first level; the level nearest to the finest image */
    mc_raster_options raster;        /* srs NULL: files that do not say are in the grid's CRS */
    mc_ingest_resample resample;
    uint8_t background[3];    /* R, G, B of what no image covers, in formats without transparency */
    apr_int64_t cache_limit;  /* bytes of partial tiles in memory */
    const char *scratch;      /* folder of the scratch file for those beyond it; NULL: $TMPDIR or /tmp */
    int threads;              /* 1..: that draw and encode */
    bool skip_bad;            /* images that cannot be used are told of and passed over, else nothing is done */
    const volatile int *stop; /* set by an interrupt: what is final is stored, the rest left as it was; may be NULL */
    void (*progress)(void *baton, const mc_ingest_counts *counts); /* some times a second at most; may be NULL */
    void (*complain)(void *baton, const char *message);            /* of an image that is bad */
    void *baton;
} mc_ingest_plan;

typedef struct mc_ingest mc_ingest;

/* What would be done. */
typedef struct mc_ingest_outline {
    int minzoom, maxzoom;
    mc_extent extent;         /* of all images, in the grid's CRS */
    const apr_int64_t *tiles; /* by level: that images may touch, counted once for each image; 0 elsewhere */
    apr_int64_t pixels;       /* of all images */
} mc_ingest_outline;

/*
 * Reads the headers of all images and decides on levels; nothing is decoded or written. The plan and what it points at
 * must live as long as `pool`. MC_ERR_CONFIG for a tileset whose tiles hold no pixels, or levels that it has not;
 * MC_ERR_CORRUPT where images are bad (each one told by `complain`).
 */
mc_error *mc_ingest_prepare(mc_ingest **ingest, const mc_ingest_plan *plan, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
const mc_ingest_outline *mc_ingest_outlined(const mc_ingest *ingest);

/*
 * Makes and stores the tiles. A pixel of the finest level belongs to the last image that has data there, else it stays
 * what was stored; a pixel of a level above is the mean of the data in the four below it (NEAREST: the first of them
 * that has data, by rows), else it stays. Every tile is stored at most once, with its final content, not before all
 * tiles below it: a reader, and whoever comes after a crash, finds each tile as it was or as it is to be.
 * MC_ERR_UNAVAILABLE where another ingestion of the tileset runs.
 */
mc_error *mc_ingest_run(mc_ingest *ingest, mc_ctx *ctx) MC_CHECKED;
const mc_ingest_counts *mc_ingest_counted(const mc_ingest *ingest);

/* What the stores of the tileset take up, in bytes (of a directory: what is the tileset's and grid's); 0: there are
 * none yet; -1: not known, also of a directory that cannot be looked through in half a second. */
apr_int64_t mc_ingest_store_bytes(const mc_ingest *ingest, mc_ctx *ctx);

#endif
