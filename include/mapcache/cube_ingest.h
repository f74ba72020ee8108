/*
 * Images into a data cube: each is decoded once, each chunk written once, with bounded memory.
 */
#ifndef MAPCACHE_CUBE_INGEST_H
#define MAPCACHE_CUBE_INGEST_H

#include "mapcache/cube.h"
#include "mapcache/ingest.h"

/* One image of one date. Several images of a date are a mosaic; where they overlap, the later one in the list is on
 * top. */
typedef struct mc_cube_input {
    const char *path;
    int64_t time_us;  /* microseconds since 1970, UTC */
    bool placed;      /* the place is `left` and `top`, pixels as large as the cube's; false: the file has the place */
    double left, top; /* of the outer corner of the first pixel, in units of the CRS */
} mc_cube_input;

typedef enum mc_cube_event_kind {
    MC_CUBE_IMAGE_LEFT_OUT, /* path, message */
    MC_CUBE_DATE_LEFT_OUT,  /* time; an image of the date is left out: the cube keeps its older content of that date */
    MC_CUBE_COMMITTED       /* images so far */
} mc_cube_event_kind;

typedef struct mc_cube_event {
    mc_cube_event_kind kind;
    const char *path, *message;
    int64_t time_us;
    int images, of; /* images that are done, all images */
} mc_cube_event;

typedef struct mc_cube_ingest_options {
    int64_t memory;      /* bytes for decoded images that wait to be written */
    int threads;         /* that decode; 0: one for each processor */
    const char *scratch; /* folder of a file for images beyond `memory` */
    mc_raster_options raster;
    volatile int *stop;                                    /* not 0: no further date is begun; may be NULL */
    void (*tell)(void *baton, const mc_cube_event *event); /* from the calling thread only; may be NULL */
    void *baton;
} mc_cube_ingest_options;

typedef struct mc_cube_report {
    int images, left_out;      /* stored; not stored */
    int dates, corrected;      /* new dates; dates that the cube had before */
    int64_t chunks, rewritten; /* written chunks; those of them that the cube had before */
    int64_t pixels;            /* of the images */
    int64_t bytes_before,
        bytes_after; /* of the store; -1: not known, because the store was not opened or not tidied up */
    bool spooled;    /* the scratch file was needed */
} mc_cube_report;

/*
 * Stores the images. Dates that the cube has are replaced where the images lie; new dates are added. An image that
 * cannot be read, does not fit the cube's pixels, lies outside, or has the date and place of another image is reported
 * and left out, and so are all images of its date. Readers see each date either complete or as before. If the ingestion
 * ends early, committed dates stay, and other dates are as before. Errors are those of the store (as of mc_cube_dates;
 * a full store is MC_ERR_IO) and of the scratch file. Images are decoded on threads of the ingestion.
 */
mc_error *mc_cube_ingest(mc_cube_report *report, const mc_cube *cube, const mc_cube_input *inputs, int count,
                         const mc_cube_ingest_options *options, struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/*
 * Makes the configured overviews of a cube that was stored with another number of overviews; the old overviews are
 * removed. Until the call succeeds the cube counts as having no overviews; after an interruption the next call begins
 * again. The options memory, scratch, stop and tell are used. The report has dates, chunks and bytes, and no dates
 * where there was nothing to do. Errors as of mc_cube_ingest.
 */
mc_error *mc_cube_make_overviews(mc_cube_report *report, const mc_cube *cube, const mc_cube_ingest_options *options,
                                 struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
