/* A batch once more, at half the resolution: what its images become in the overview above them. */
#ifndef MC_INGEST_CUBE_CUBE_OVERVIEW_H
#define MC_INGEST_CUBE_CUBE_OVERVIEW_H

#include "ingest/cube/cube_plan.h"

typedef struct mc_cube_overview {
    const mc_cube_shape *fine, *shape; /* of the level below, and its own */
    mc_cube_batch batch;               /* with the images that are made; of the same dates, stack by stack */
    mc_spool spool;
    uint8_t *buffer; /* a block, where the spool is a file */
} mc_cube_overview;

/* Empty images above those of a batch. Their blocks wait in memory where they take at most `room` bytes, else in a file
 * in `scratch`: until mc_cube_overview_end, which may be called once *overview is zeros. */
mc_error *mc_cube_overview_begin(mc_cube_overview *overview, const mc_cube_batch *batch, const mc_cube_shape *fine,
                                 const mc_cube_shape *shape, size_t room, const char *scratch,
                                 apr_pool_t *pool) MC_CHECKED;
void mc_cube_overview_end(mc_cube_overview *overview);

/*
 * Chunk x, y of the level below, as it is now at the date of a stack, halved into an image of the stack (by its number)
 * that has something there. mask NULL: all of it is known. A pixel is the mean of those of the (up to) four below it
 * that are known, weighted by alpha where there is one; it is known itself where half of them are, and in cubes with
 * alpha, where any is. So what is known never becomes unknown by a correction below it.
 */
mc_error *mc_cube_overview_add(mc_cube_overview *overview, int stack, int image, int x, int y, const uint8_t *samples,
                               const uint8_t *mask, apr_pool_t *pool) MC_CHECKED;

#endif
