/* Boxes that have changed, bounded in number: where there are too many, those whose least corners lie in
 * one cell of a lattice are joined, the lattice being as coarse as it has to be. */
#ifndef MC_CHANGES_BOX_SET_H
#define MC_CHANGES_BOX_SET_H

#include "mapcache/grid.h"

enum { MC_BOX_SET_MAX = 4096 };

typedef struct mc_box_set {
    mc_extent *boxes; /* `count` of them, in no order */
    int count;
    bool whole; /* everything has changed: the boxes say nothing */
    struct mc_box_lattice *lattice;
} mc_box_set;

/* Lives in `pool`, with a fixed size. */
mc_box_set *mc_box_set_create(apr_pool_t *pool);

/* A small one of which everything has changed. */
mc_box_set *mc_box_set_create_whole(apr_pool_t *pool);

/* A box that is not finite, or not a box, or farther away than 1e15, stands for everything. Points and lines along an
 * axis are boxes. */
void mc_box_set_add(mc_box_set *set, const mc_extent *box);

#endif
