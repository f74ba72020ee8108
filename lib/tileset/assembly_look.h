/* Which sub-tiles an assembly wants, and what memory knows of them. */
#ifndef MC_TILESET_ASSEMBLY_LOOK_H
#define MC_TILESET_ASSEMBLY_LOOK_H

#include "footprint/footprint.h"
#include "tileset/assembly.h"
#include "tileset/combine.h"

/* The wants of some tiles: those of one tile stand together, front to back. */
typedef struct mc_assembly_wants {
    mc_footprints *batch;
    mc_footprint_want *list;
    int count;
    int *first; /* by tile, where its wants begin; one more at the end */
} mc_assembly_wants;

/*
 * The wants of `count` tiles with these combinations, looked at by mc_footprints_look. Where all tiles have the same
 * many combinations, those are left out that certainly have no tile: of thousands of products tens are in sight.
 * Everything is of `pool`.
 */
mc_error *mc_assembly_look(mc_assembly_wants *wants, const mc_assembly_order *order, const mc_assembled *tiles,
                           const mc_combinations *lists, int count, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
