/* Whether the tiles of a GeoTIFF are those of a grid, and which. */
#ifndef MC_CACHE_BLOCKS_COG_FIT_H
#define MC_CACHE_BLOCKS_COG_FIT_H

#include "cache/archive/tiff_index.h"

/*
 * The image that has the tiles of a level of the grid. *image: its number; -1: the level is finer or coarser than all
 * images of the file, others fit. MC_ERR_CONFIG where the file does not fit, or has other tiles at that scale, in words
 * that say by how much; `name` is that of the cache.
 */
mc_error *mc_cog_find_image(int *image, const mc_tiff_levels *levels, const mc_grid *grid, int z, const char *name,
                            apr_pool_t *pool) MC_CHECKED;

/* The number of a tile of that image; -1: the tile lies outside of the image. MC_ERR_CONFIG where the image begins
 * beside the corner of a tile. */
mc_error *mc_cog_number_tile(int64_t *number, const mc_tiff_levels *levels, int image, const mc_tile_key *key,
                             const char *name, apr_pool_t *pool) MC_CHECKED;

/* The tiles of the key's level that the file has, none where it has no such level. Errors as above. */
mc_error *mc_cog_cover(mc_tile_range *range, const mc_tiff_levels *levels, const mc_tile_key *key, const char *name,
                       apr_pool_t *pool) MC_CHECKED;

/* Whether the file has tiles of the grid at all, and its first picture begins at the corner of one; MC_ERR_CONFIG says
 * what does not fit. */
mc_error *mc_cog_check(const mc_tiff_levels *levels, const mc_grid *grid, const char *name,
                       apr_pool_t *pool) MC_CHECKED;

#endif
