/* What decides what vector tiles hold of a layer. */
#ifndef MC_SOURCE_VECTOR_VECTOR_TILE_RULES_H
#define MC_SOURCE_VECTOR_VECTOR_TILE_RULES_H

#include "source/vector/vector.h"

typedef struct mc_vector_tile_rules {
    apr_array_header_t *fields; /* of mc_field: the attributes */
    const char **names;         /* of them */
    int id;                     /* which of them is the feature's number; -1: none */
    bool ids;                   /* numbers are wanted besides the attributes */
    uint64_t digest; /* of all of it, of the grid's places and the format's rules; 0: there is none. What differs in
                        nothing but <max_bytes>, <max_time> and the packing has the same one. */
} mc_vector_tile_rules;

/* In `pool`. Errors of the layer's data, which is asked for its attributes. */
mc_error *mc_vector_tile_rules_of(mc_vector_tile_rules *rules, const mc_vector_layer *layer,
                                  const mc_mvt_options *options, const mc_grid *grid, mc_ctx *ctx,
                                  apr_pool_t *pool) MC_CHECKED;

/* Where the tiles of a level lie: the upper left corner of the tile from which columns and rows of blocks are counted
 * to the right and down (vector/mvt/mvt.h), and the sides of a tile, in units of the CRS. */
typedef struct mc_vector_tile_lattice {
    double x0, y0, width, height;
} mc_vector_tile_lattice;

mc_vector_tile_lattice mc_vector_tile_lattice_of(const mc_grid *grid, int z);

#endif
