/*
 * An index that finds the boxes that meet a window: the boxes are in the order of Morton's curve, 32 boxes under one
 * common box. The index has 20 bytes for each box; an index of 200,000 boxes is made in some milliseconds.
 */
#ifndef MC_VECTOR_SHAPEFILE_BOX_INDEX_H
#define MC_VECTOR_SHAPEFILE_BOX_INDEX_H

#include <stdint.h>

#include "mapcache/grid.h"

typedef struct mc_box_index mc_box_index;

/* A box in single precision, never smaller than the box in double precision. */
typedef struct mc_small_box {
    float minx, miny, maxx, maxy;
} mc_small_box;

mc_small_box mc_small_box_of(const mc_extent *box);

/* An index of `count` boxes, which live in `pool` and are put into another order. Boxes that are not finite or have a
 * minimum above their maximum (null shapes) are never found. */
mc_box_index *mc_box_index_create(mc_small_box *boxes, uint32_t count, apr_pool_t *pool);

/* Sets the bit of each box that may meet the window. `bits` has a bit for each box, all zero before. */
void mc_box_index_search(uint64_t *bits, const mc_box_index *index, const mc_extent *window);

#endif
