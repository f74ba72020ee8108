/* The plan of a map: the flat list of tiles that its layers need, where each lands, and what has been fetched. */
#ifndef MC_MAP_PLAN_H
#define MC_MAP_PLAN_H

#include "mapcache/map.h"
#include "tileset/assembly.h"

/* Tile bytes of one map must fit into memory several times over: the default of <max_pixels>. */
#define MC_MAX_PIXELS ((apr_int64_t)64 << 20)

typedef struct mc_plan_tile {
    mc_tile_request request;
    mc_tile tile;                  /* data holds a reference of the plan */
    bool fetched;                  /* false: a source has to render it */
    bool asked;                    /* the store was asked for it with the others of its layer */
    const mc_assembled *assembled; /* or NULL: then `tile` is what there is */
    int layer;
    int left, top; /* pixel offset in the layer's mosaic */
} mc_plan_tile;

typedef struct mc_plan_layer {
    const mc_map_layer *layer;
    const mc_grid_link *link; /* the layer's, or its intermediate one */
    mc_extent box;            /* of the map, seen from the layer's own place (mc_map_layer.shift) */
    int z;
    mc_tile_range range;
    int first, count;        /* of the plan's tiles */
    int width, height;       /* pixels of all tiles together: the mosaic */
    double x0, y0;           /* upper left corner of the map in mosaic pixels */
    double scale_x, scale_y; /* mosaic pixels per map pixel */
    mc_assembly *assembly;   /* the layer's tiles are assembled here; NULL: each is fetched as a whole */
    int frames;              /* of an animated layer; 0: none */
    bool exact;              /* scale 1 and whole offsets: tiles are copied, not resampled */
} mc_plan_layer;

typedef struct mc_plan {
    const mc_map_request *wanted;
    mc_plan_layer *layers;
    int layer_count;
    mc_plan_tile *tiles;
    int tile_count;
    int frames;    /* of the longest animation among the layers; 0: none */
    bool overlaps; /* the box touches the extent of at least one layer */
} mc_plan;

/* Chooses levels and lists tiles. MC_ERR_INVALID_PARAMETER (BBOX) where a layer needs more tiles than max_pixels
 * allows. */
mc_error *mc_plan_make(mc_plan *plan, const mc_map_request *wanted, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Fetches all tiles: stored ones first, then what sources have to render, on the I/O lane where there are several
 * metatiles. */
mc_error *mc_plan_fetch(mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Whether a fetched tile shows anything. */
static inline bool
mc_plan_tile_shows(const mc_plan_tile *tile)
{
    if (tile->assembled != NULL)
        return tile->assembled->found > 0;
    return tile->fetched && !tile->tile.no_data && !tile->tile.raw && tile->tile.data != NULL;
}

/* Draws the layers from `first` on, below `end`, over a canvas of the map's size. frame: of the animated layers (theirs
 * that are shorter keep their last one); -1 where none is. */
mc_error *mc_plan_draw_layers(mc_pixels *canvas, mc_plan *plan, int first, int end, int frame, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

/* Draws all frames and encodes them as an animated PNG. MC_ERR_LIMIT where they would take more than max_pixels. */
mc_error *mc_plan_animate(mc_buf **data, mc_plan *plan, mc_ctx *ctx, apr_pool_t *scratch, apr_pool_t *pool) MC_CHECKED;

/* A canvas of the map's size and background, attached to `pool`. */
mc_error *mc_map_canvas(mc_pixels **canvas, const mc_map_request *wanted, apr_pool_t *pool) MC_CHECKED;

/* Draws all tiles of the plan into a canvas of the map's size: one job for decode and copy of each tile, strips for
 * resampling. */
mc_error *mc_plan_draw(mc_pixels *canvas, mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Makes assemblies of the layers that need them; before mc_plan_fetch, which leaves their tiles alone. */
mc_error *mc_plan_assemble(mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* How many workers may help a batch of `jobs` (docs/reference/configuration.md 10). */
int mc_map_helpers(const struct mc_workers *workers, int threaded, int jobs);

#endif
