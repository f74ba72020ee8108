/* Ingestion: georeferenced images (mapcache/raster.h) become pyramids of tiles. */
#ifndef MAPCACHE_INGEST_H
#define MAPCACHE_INGEST_H

#include "mapcache/raster.h"
#include "mapcache/tileset.h"

/* How images become the pixels of a grid. AUTO: a pixel of the grid is the mean of the image's pixels inside of it
 * where the image's pixels are smaller, else bilinear between four pixels of the image. */
typedef enum mc_ingest_resample {
    MC_INGEST_AUTO,
    MC_INGEST_NEAREST,
    MC_INGEST_BILINEAR,
    MC_INGEST_AVERAGE
} mc_ingest_resample;

/* The progress of an ingestion. */
typedef struct mc_ingest_counts {
    int inputs;           /* images to be drawn */
    int done;             /* images that are drawn */
    int bad;              /* images that are left out */
    apr_int64_t tiles;    /* stored and committed */
    apr_int64_t bytes;    /* of these tiles */
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
    mc_raster_options raster;        /* srs NULL: files that do not say their CRS are bad */
    mc_ingest_resample resample;
    uint8_t background[3];    /* R, G, B of what no image covers, in formats without transparency */
    apr_int64_t cache_limit;  /* bytes of partial tiles in memory */
    const char *scratch;      /* folder of the scratch file for further partial tiles; NULL: $TMPDIR or /tmp */
    int threads;              /* 1 or more, to draw and encode */
    bool skip_bad;            /* bad images are reported and left out; false: one bad image ends the ingestion */
    const volatile int *stop; /* set by an interrupt: final tiles are stored, others stay as they were; may be NULL */
    void (*progress)(void *baton, const mc_ingest_counts *counts); /* some times a second at most; may be NULL */
    void (*complain)(void *baton, const char *message);            /* of an image that is bad */
    void *baton;
} mc_ingest_plan;

typedef struct mc_ingest mc_ingest;

/* The extent of an ingestion before it runs. */
typedef struct mc_ingest_outline {
    int minzoom, maxzoom;
    mc_extent extent;         /* of all images, in the grid's CRS */
    const apr_int64_t *tiles; /* by level: tiles that images may touch, each once; 0 elsewhere */
    apr_int64_t pixels;       /* of all images */
    int told;                 /* images that do not say their CRS: it is the plan's raster.srs */
} mc_ingest_outline;

/*
 * Reads the headers of all images and decides on levels; nothing is decoded or written. The plan and what it points at
 * must live as long as `pool`. MC_ERR_CONFIG for a tileset whose tiles hold no pixels, or levels that the tileset
 * lacks; MC_ERR_CORRUPT where images are bad (each one is reported by `complain`).
 */
mc_error *mc_ingest_prepare(mc_ingest **ingest, const mc_ingest_plan *plan, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
const mc_ingest_outline *mc_ingest_outlined(const mc_ingest *ingest);

/*
 * Makes and stores the tiles. A pixel of the finest level comes from the last image that has data there; without such
 * an image the stored pixel stays. A pixel of a level above is the mean of the data in the four pixels below (NEAREST:
 * the first of the four that has data, by rows); without data the stored pixel stays. Every tile is stored at most
 * once, with its final content, and not before all tiles below the tile: readers, also after a crash, find each tile
 * either as it was or in its final state. MC_ERR_UNAVAILABLE where another ingestion of the tileset runs.
 */
mc_error *mc_ingest_run(mc_ingest *ingest, mc_ctx *ctx) MC_CHECKED;
const mc_ingest_counts *mc_ingest_counted(const mc_ingest *ingest);

/* Bytes of the tileset's stores (in a directory: of the tileset and grid). 0: there are no stores yet; -1: not known,
 * also for a directory that takes more than half a second to list. */
apr_int64_t mc_ingest_store_bytes(const mc_ingest *ingest, mc_ctx *ctx);

#endif
