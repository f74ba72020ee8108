/*
 * Assemblies: tiles that are made of sub-tiles, one for each combination of dimension values
 * (docs/reference/configuration.md 7.7). All tiles that a map needs of one tileset are gathered together: one look at
 * what memory knows, then one batch after the other of fetch-and-decode jobs, from the front to the back, until nothing
 * behind could be seen.
 */
#ifndef MC_TILESET_ASSEMBLY_H
#define MC_TILESET_ASSEMBLY_H

#include "footprint/footprint.h"
#include "mapcache/tileset.h"

/* Milliseconds that a frame stays. */
#define MC_FRAME_DELAY 500

/* Pixels of all frames of an animated tile together. */
#define MC_FRAMES_PIXELS (16 << 20)

/* What is wanted: a rectangle of tiles of one level. */
typedef struct mc_assembly_order {
    mc_tileset *tileset;
    const mc_grid_link *link;
    int z;
    mc_tile_range range;       /* row after row from miny on */
    const char *const *values; /* as requested */
    const mc_extent *map;      /* box of the WMS map, for dimensions that are asked once for it; NULL for a tile */
    int threaded;              /* -1: the server decides, 0: this thread alone, 1: all workers */
} mc_assembly_order;

/* A sub-tile that shows. */
typedef struct mc_assembly_part {
    mc_footprint *footprint;              /* a reference of the assembly */
    const mc_dimension_value *dimensions; /* of its key */
    int place;                            /* of its combination: 0 is at the bottom, or the first frame */
} mc_assembly_part;

/* One tile, gathered. */
typedef struct mc_assembled {
    int x, y;
    int found;                      /* sub-tiles that are there, as far as was looked: 0 is "no data" */
    const mc_dimension_value *only; /* of the sub-tile whose stored bytes are the tile; NULL: it must be drawn */
    bool only_is_requested;         /* and that has just the requested values */
    mc_assembly_part *parts;        /* front to back; what something opaque hides is left out */
    int count;
    int frames;                /* of an animation: combinations, also those without a part */
    mc_pixels *drawn;          /* instead of `parts`, where those would have taken too much memory; or NULL */
    uint64_t tag;              /* of all that shows; of `only`, that of its bytes */
    apr_time_t newest, oldest; /* of what shows; 0: unknown */
    double provisional;        /* seconds, of the sub-tiles that were looked at: as mc_tile has it */
} mc_assembled;

typedef struct mc_assembly {
    mc_tileset *tileset;
    const mc_grid_link *link;
    int z, count;
    mc_assembled *tiles; /* in the order of the range */
} mc_assembly;

/*
 * Asks the dimensions and gathers what shows of all tiles; renders missing sub-tiles where the tileset may. References
 * are dropped with `pool`. Errors: of dimensions, of stores and sources as far as they are needed for what shows.
 */
mc_error *mc_assembly_gather(mc_assembly **assembly, const mc_assembly_order *order, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* Draws a gathered tile over `target`, its corner at left, top (may be negative; clipped). frame: of an animation, else
 * -1. */
void mc_assembled_draw(mc_pixels *target, int left, int top, const mc_assembled *tile, int frame, mc_ctx *ctx);

/* A footprint as pixels: read-only, as long as the footprint is there. */
mc_pixels mc_footprint_view(const mc_footprint *footprint);

/* About how long that takes, in microseconds. */
int mc_assembled_cost(const mc_assembled *tile);

/* The key of a sub-tile, or with the requested values that of the assembled tile. */
mc_tile_key mc_assembly_key(const mc_tileset *tileset, const mc_grid *grid, int z, int x, int y,
                            const mc_dimension_value *dimensions);

#endif
