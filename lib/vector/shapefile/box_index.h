/*
 * Which of many boxes meet a window: the boxes in the order of a curve that fills the plane (Morton's), 32 of them
 * under one common box. 20 bytes for each; made in some milliseconds for 200,000.
 */
#ifndef MC_VECTOR_SHAPEFILE_BOX_INDEX_H
#define MC_VECTOR_SHAPEFILE_BOX_INDEX_H

#include <stdint.h>

#include "mapcache/grid.h"

typedef struct mc_box_index mc_box_index;

/* A box in single precision, never smaller than the one that it stands for. */
typedef struct mc_small_box {
    float minx, miny, maxx, maxy;
} mc_small_box;

mc_small_box mc_small_box_of(const mc_extent *box);

/* An index of `count` boxes, which live in `pool` and are put into another order. Boxes that are not finite or have a
 * minimum above their maximum (null shapes) are never found. */
mc_box_index *mc_box_index_create(mc_small_box *boxes, uint32_t count, apr_pool_t *pool);

/* Sets the bit of each box that may meet the window: `bits` has one for each box, zeroed. */
void mc_box_index_search(uint64_t *bits, const mc_box_index *index, const mc_extent *window);

#endif
