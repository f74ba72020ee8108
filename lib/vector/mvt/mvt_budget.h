/* A tile in the making, and what is left of it within its budgets: the largest features. */
#ifndef MC_VECTOR_MVT_MVT_BUDGET_H
#define MC_VECTOR_MVT_MVT_BUDGET_H

#include "vector/mvt/mvt.h"
#include "vector/mvt/mvt_layer.h"
#include "vector/mvt/mvt_parts.h"

/* One of the tiles that are made together. */
typedef struct mc_mvt_tile {
    mc_mvt_layer_data *layers;
    mc_mvt_parts parts; /* what others have encoded */
    int64_t dropped;
    int count;     /* features that are kept so far */
    uint64_t cost; /* of them */
} mc_mvt_tile;

/* While features are added: keeps the tile, with so many layers, below twice its budgets. False without memory. */
bool mc_mvt_tile_prune(mc_mvt_tile *tile, int layers, const mc_mvt_options *options);

/* Once all features are there: within both budgets; *size: the tile's bytes. False without memory. */
bool mc_mvt_tile_fit(size_t *size, mc_mvt_tile *tile, int layers, const mc_mvt_options *options);

#endif
