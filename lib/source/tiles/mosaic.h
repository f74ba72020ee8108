/*
 * Maps from the tiles of a grid: which level and which tiles a map needs, and how their mosaic becomes the map: as it
 * is, moved by whole pixels, resampled, or warped from another CRS.
 */
#ifndef MC_SOURCE_TILES_MOSAIC_H
#define MC_SOURCE_TILES_MOSAIC_H

#include "mapcache/source.h"

/* Tiles of one map, and pixels of their mosaic, at most. */
enum { MC_MOSAIC_TILES = 1024, MC_MOSAIC_PIXELS = 1 << 26 };

/* The tiles that there are. */
typedef struct mc_mosaic_supply {
    const char *source; /* its name, for errors */
    const mc_grid *grid;
    int tile_width, tile_height; /* pixels of an image of a tile */
    int first, last;             /* levels */
    const mc_extent *limit;      /* in the grid's CRS: beyond, there are no tiles; NULL: the grid's extent */
} mc_mosaic_supply;

/* The tiles of one map. */
typedef struct mc_mosaic {
    const mc_mosaic_supply *supply;
    int z;
    /* Empty: the map lies beyond all tiles. On the other side of the antimeridian numbers of columns go on beyond the
     * last one: mc_mosaic_column. */
    mc_tile_range range;
    mc_extent extent;        /* of the range */
    double scale_x, scale_y; /* CRS units of the grid for a pixel of a tile */
    int width, height;       /* pixels of the mosaic */
    bool exact;              /* the map is a part of the mosaic, pixel for pixel; else the mosaic is resampled */
    int left, top;           /* exact: the map's upper left pixel in the mosaic */
    bool beyond;             /* the map shows more than the last level has */
    bool coarser;            /* the map is coarser than the first level: it shows all of its tiles smaller */
    struct mc_projection *projection; /* from the map's CRS to that of the grid; NULL: they are the same */
    double
        turn; /* units of the grid's CRS around the globe, of maps that may lie over the antimeridian; 0: of others */
} mc_mosaic;

/* Units of the grid's CRS for a pixel of a tile's image of a level. */
double mc_mosaic_resolution(const mc_mosaic_supply *supply, int z);

/* Chooses level and tiles: where the level of the map's resolution has too many, a coarser one, which happens around
 * poles. MC_ERR_LIMIT where even the first level has too many, `coarser` says whether that is why; what
 * mc_projection_open says where the CRSs differ. `supply` lives as long as the mosaic. */
mc_error *mc_mosaic_plan(mc_mosaic *mosaic, const mc_mosaic_supply *supply, const mc_render *wanted,
                         apr_pool_t *pool) MC_CHECKED;

/* Tiles of another level that a box of the grid touches, within the supply's limits. False: none. */
bool mc_mosaic_tiles_of(mc_tile_range *range, const mc_mosaic_supply *supply, const mc_extent *box, int z,
                        apr_pool_t *pool);

/* Whether the map is exactly the one tile of the mosaic. */
bool mc_mosaic_is_one_tile(const mc_mosaic *mosaic, const mc_render *wanted);

/* The grid's number of a column of the range. */
int mc_mosaic_column(const mc_mosaic *mosaic, int x);

/* How far east of its own place in the grid a tile of the mosaic is drawn: a turn beyond the antimeridian, else 0.
 * `x`: the grid's number. */
double mc_mosaic_shift(const mc_mosaic *mosaic, int x, int y);

/* The upper left pixel of a tile in the mosaic. */
void mc_mosaic_slot(int *left, int *top, const mc_mosaic *mosaic, int x, int y);

/*
 * Draws the encoded image of the tile of `extent` into that part of the mosaic which is `clip` (both in the grid's CRS;
 * a tile of a coarser level may be clipped to one that is missing). MC_ERR_UPSTREAM for an image that cannot be read or
 * is far larger than a tile.
 */
mc_error *mc_mosaic_draw(mc_pixels *pixels, const mc_mosaic *mosaic, const mc_buf *image, const mc_extent *extent,
                         const mc_extent *clip, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The map made of the mosaic's pixels (NULL: there are none, the map is transparent); attached to `pool`. */
mc_error *mc_mosaic_finish(mc_pixels **map, mc_pixels *pixels, const mc_mosaic *mosaic, const mc_render *wanted,
                           mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Draws the mosaic into a map of another CRS. */
mc_error *mc_mosaic_warp(mc_pixels *map, const mc_pixels *pixels, const mc_mosaic *mosaic, const mc_render *wanted,
                         mc_ctx *ctx) MC_CHECKED;

#endif
