/* Parts of a TIFF's tile that do not belong to the picture. */
#ifndef MC_CACHE_BLOCKS_TILE_MASK_H
#define MC_CACHE_BLOCKS_TILE_MASK_H

#include "cache/archive/tiff_index.h"

/* The mask of the image whose number is `image`; NULL: it has none. */
const mc_tiff_index *mc_tile_mask_of(const mc_tiff_levels *levels, int image);

/*
 * Takes out of a tile what its mask hides, and what lies beyond the edges of the image. `mask`: how masks are stored;
 * `stored`: the bytes of this one (NULL: it hides all of the tile); both NULL: the image has none. A tile of which all
 * is seen stays as it is, so does any tile for a tileset of JPEGs; *data NULL: nothing is seen; else *data becomes a
 * PNG with transparency.
 */
mc_error *mc_tile_mask_apply(mc_buf **data, const mc_tiff_index *index, int64_t number, const mc_tiff_index *mask,
                             const mc_buf *stored, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
