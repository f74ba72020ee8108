/* The plan of an ingestion into a cube: images, their dates, and the batches that are written together. */
#ifndef MC_INGEST_CUBE_CUBE_PLAN_H
#define MC_INGEST_CUBE_CUBE_PLAN_H

#include "cube/chunk.h"
#include "cube/store.h"
#include "ingest/cube/cube_spool.h"
#include "mapcache/cube_ingest.h"

/* An image. */
typedef struct mc_cube_image {
    const mc_cube_input *input;
    int width, height;     /* pixels */
    int left, top;         /* of the image's first pixel, in pixels of the cube; may be negative */
    mc_cube_window window; /* the pixels of the cube that the image covers */
    mc_cube_window chunks; /* the chunks of these pixels */
    mc_error *failure;     /* why the image is left out; MC_OK: it is used */
    size_t offset;         /* of the image's chunks in the spool */
    uint8_t *covers;       /* by chunk: how much is covered (mc_cover), after decoding; of malloc */
} mc_cube_image;

/* A date and its images, in the order in which they lie over each other. */
typedef struct mc_cube_stack {
    mc_cube_date date;
    mc_cube_image *images;
    int count;
    bool known;  /* the cube has the date already */
    bool failed; /* an image is left out, so all images of the date are */
} mc_cube_stack;

/* Dates that are decoded, written and committed together: whole chunks in time, unless these are too large. */
typedef struct mc_cube_batch {
    mc_cube_stack *stacks;
    int count;
    int first_t, end_t;
    bool patch;   /* the store has chunks with these numbers */
    size_t bytes; /* of the spool */
} mc_cube_batch;

/*
 * In the spool an image has a block for each chunk that the image touches, by rows. A block holds the samples of one
 * date, and behind them the mask of known samples, which counts where the chunk is MC_COVER_SOME.
 */
static inline size_t
mc_block_size(size_t pixels, int bands)
{
    return pixels * (size_t)bands + mc_mask_size(pixels);
}

typedef struct mc_cube_plan {
    const mc_cube *cube;
    mc_cube_image *images;
    int image_count;
    mc_cube_stack *stacks; /* by t and slot; behind them those that have failed */
    int stack_count, failed_count;
    apr_array_header_t *batches; /* of mc_cube_batch */
    size_t largest;              /* bytes of a batch */
} mc_cube_plan;

/* Reads each file's header; images that do not fit get a failure. `dates`: of the cube, latest first. `bytes`: the
 * limit of a batch. Once options->stop is set, nothing is planned. */
void mc_cube_plan_make(mc_cube_plan *plan, const mc_cube *cube, const mc_cube_input *inputs, int count,
                       const apr_array_header_t *dates, size_t bytes, const mc_cube_ingest_options *options,
                       apr_pool_t *pool);

/* The offset of the block of chunk x, y. */
size_t mc_cube_image_offset(const mc_cube_image *image, const mc_cube_shape *shape, int x, int y);

/* Sets the images' offsets, one behind the other, and the batch's bytes. */
void mc_cube_batch_arrange(mc_cube_batch *batch, const mc_cube_shape *shape);

/* Index of chunk x, y among the image's. */
static inline size_t
mc_cube_image_chunk(const mc_cube_image *image, int x, int y)
{
    return (size_t)(y - image->chunks.y0) * (size_t)(image->chunks.x1 - image->chunks.x0) +
           (size_t)(x - image->chunks.x0);
}

/* Whether the image has pixels in chunk x, y. */
static inline bool
mc_cube_image_shows(const mc_cube_image *image, int x, int y)
{
    return y >= image->chunks.y0 && y < image->chunks.y1 && x >= image->chunks.x0 && x < image->chunks.x1 &&
           image->covers[mc_cube_image_chunk(image, x, y)] != MC_COVER_NONE;
}

/* Decodes the image into its blocks. Of any thread. MC_ERR_LIMIT: there is no memory for the image's chunks. */
mc_error *mc_cube_image_decode(mc_cube_image *image, const mc_cube_shape *shape, mc_spool *spool,
                               const mc_raster_options *options, apr_pool_t *pool) MC_CHECKED;
void mc_cube_image_forget(mc_cube_image *image);

/*
 * Writes the chunks of a batch whose images are decoded, those of the overviews above them, and its dates; does not
 * commit. Blocks of an overview wait in memory where they take at most `room` bytes, else in a file in `scratch`.
 */
mc_error *mc_cube_batch_write(mc_cube_writer *writer, const mc_cube_batch *batch, mc_spool *spool, size_t room,
                              const char *scratch, mc_cube_report *report, apr_pool_t *pool) MC_CHECKED;

/*
 * Makes the overviews of dates that are in the store: `cube` has them, the writer's cube is without. Each stack of the
 * batch has one image, with the chunks of the whole cube; all are of one chunk number. MC_ERR_UNAVAILABLE once
 * options->stop is set; what has been written is not to be committed then.
 */
mc_error *mc_cube_batch_lift(mc_cube_writer *writer, const mc_cube *cube, const mc_cube_batch *batch,
                             const mc_cube_ingest_options *options, mc_cube_report *report,
                             apr_pool_t *pool) MC_CHECKED;

#endif
