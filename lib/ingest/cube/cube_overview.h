/* A batch at half the resolution: the images of a batch as they are in the overview above. */
#ifndef MC_INGEST_CUBE_CUBE_OVERVIEW_H
#define MC_INGEST_CUBE_CUBE_OVERVIEW_H

#include "ingest/cube/cube_plan.h"

typedef struct mc_cube_overview {
    const mc_cube_shape *fine, *shape; /* of the level below, and of the overview */
    mc_cube_batch batch;               /* the halved images; of the same dates, stack by stack */
    mc_spool spool;
    uint8_t *buffer; /* a block, where the spool is a file */
} mc_cube_overview;

/* Begins with empty images above those of a batch. Their blocks are in memory where the blocks take at most `room`
 * bytes, else in a file in `scratch`, until mc_cube_overview_end, which may be called once *overview is all zeros. */
mc_error *mc_cube_overview_begin(mc_cube_overview *overview, const mc_cube_batch *batch, const mc_cube_shape *fine,
                                 const mc_cube_shape *shape, size_t room, const char *scratch,
                                 apr_pool_t *pool) MC_CHECKED;
void mc_cube_overview_end(mc_cube_overview *overview);

/*
 * Chunk x, y of the level below, as it is now at the date of a stack, halved into an image of the stack (by its number)
 * that has pixels in the chunk. `mask` NULL: all pixels are known. A pixel is the mean of the known ones of the (up to)
 * four pixels below, weighted by alpha in cubes with alpha. The pixel is known where half of the four are known; in
 * cubes with alpha, where any of them is. So a correction below never makes a known pixel unknown.
 */
mc_error *mc_cube_overview_add(mc_cube_overview *overview, int stack, int image, int x, int y, const uint8_t *samples,
                               const uint8_t *mask, apr_pool_t *pool) MC_CHECKED;

#endif
