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
    int64_t time_us; /* microseconds since 1970, UTC */
    bool placed; /* left and top say where it lies, and its pixels have the size of the cube's; else the file does */
    double left, top; /* of the outer corner of its first pixel, in units of the CRS */
} mc_cube_input;

typedef enum mc_cube_event_kind {
    MC_CUBE_IMAGE_LEFT_OUT, /* path, message */
    MC_CUBE_DATE_LEFT_OUT,  /* time; one of its images is: what the cube had at that date stays */
    MC_CUBE_COMMITTED       /* images so far */
} mc_cube_event_kind;

typedef struct mc_cube_event {
    mc_cube_event_kind kind;
    const char *path, *message;
    int64_t time_us;
    int images, of; /* images that are done, in all */
} mc_cube_event;

typedef struct mc_cube_ingest_options {
    int64_t memory;      /* bytes for decoded images that wait to be written */
    int threads;         /* that decode; 0: one for each processor */
    const char *scratch; /* folder for a file where that is not enough */
    mc_raster_options raster;
    volatile int *stop;                                    /* not 0: no further dates are begun; may be NULL */
    void (*tell)(void *baton, const mc_cube_event *event); /* from the calling thread only; may be NULL */
    void *baton;
} mc_cube_ingest_options;

typedef struct mc_cube_report {
    int images, left_out;              /* stored; not stored */
    int dates, corrected;              /* new ones; ones that were there before */
    int64_t chunks, rewritten;         /* written; of them, those that were there before */
    int64_t pixels;                    /* of the images */
    int64_t bytes_before, bytes_after; /* of the store; -1: not known, as it was not opened or not tidied up */
    bool spooled;                      /* the scratch file was needed */
} mc_cube_report;

/*
 * Stores the images. Dates that the cube has are replaced where the images lie, others follow behind its last one. What
 * cannot be read, does not fit the cube's pixels, lies outside, or has the date and place of another one is told and
 * left out with its date. Readers see each date wholly or as it was before; whatever ends this early, the dates that
 * were committed stay and the others are as before. Errors are those of the store (as of mc_cube_dates; one that is
 * full is MC_ERR_IO) and of the scratch file. Decodes on threads of its own.
 */
mc_error *mc_cube_ingest(mc_cube_report *report, const mc_cube *cube, const mc_cube_input *inputs, int count,
                         const mc_cube_ingest_options *options, struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/*
 * Makes the overviews that a cube is configured with, where it has been stored with another number of them; those that
 * it had are removed. What is cut off or interrupted leaves a cube without overviews, which can be read as one, and is
 * done again from the beginning. Of the options memory, scratch, stop and tell count; the report has dates, chunks and
 * bytes: no date where there was nothing to do. Errors as of mc_cube_ingest.
 */
mc_error *mc_cube_make_overviews(mc_cube_report *report, const mc_cube *cube, const mc_cube_ingest_options *options,
                                 struct mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
