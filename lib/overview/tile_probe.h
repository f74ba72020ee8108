/* What vector tiles show of a feature: told by making them (vector/mvt/mvt.h). */
#ifndef MC_OVERVIEW_TILE_PROBE_H
#define MC_OVERVIEW_TILE_PROBE_H

#include "overview/overview_private.h"
#include "source/vector/vector_tile_rules.h"
#include "vector/mvt/mvt.h"

typedef struct mc_tile_probe mc_tile_probe;

enum { MC_PROBED_TILES = 4 };

typedef struct mc_tile_look {
    bool unreadable;
    bool shown; /* in some tile, or perhaps: what reaches into many tiles is not tried */
    int count;  /* tiles that were tried and show it; 0: it is not known which */
    struct {
        int64_t column, row;
    } tiles[MC_PROBED_TILES];
    uint32_t size; /* of the feature in units, as tiles compare it */
} mc_tile_look;

/* For the tiles of a level. */
mc_tile_probe *mc_tile_probe_create(const mc_mvt_options *options, const mc_vector_tile_lattice *lattice,
                                    apr_pool_t *pool);

mc_error *mc_tile_probe_look(mc_tile_look *look, mc_tile_probe *probe, const mc_overview_row *row,
                             mc_ctx *ctx) MC_CHECKED;

#endif
