/*
 * Surrogate keys: the names by which a cache in front finds all answers that show a tile, whatever their addresses are.
 *
 *     :all               every answer with keys            :maps   answers that have too many keys to name them
 *     roads              of a tileset                      roads:maps   maps of it that no tile is named for
 *     roads:g:12         of a level of its tiles on a grid
 *     roads:g:12:3:5:7   of a block of 8 x 8 tiles of it; also blocks of 64 and 512 tiles a side (6 and 9)
 *
 * An answer has the keys of all blocks around its tiles, of the levels and of the tilesets. A purge names the smallest
 * blocks of which few cover what has changed. Names are escaped, so that no two things have one key, and a key has no
 * byte that ends a key or a header.
 */
#ifndef MC_CDN_SURROGATE_KEYS_H
#define MC_CDN_SURROGATE_KEYS_H

#include "mapcache/grid.h"

/* Bytes of a key at most, and of all keys of an answer. */
enum { MC_SURROGATE_KEY_MAX = 200, MC_SURROGATES_MAX = 4000 };

/* The keys of one answer, with blanks between them. */
typedef struct mc_surrogates {
    size_t size;
    bool overflown; /* not all have room: the answer has others, which every purge names */
    char text[MC_SURROGATES_MAX];
} mc_surrogates;

/* Begins with ":all". */
void mc_surrogates_begin(mc_surrogates *keys);

/* The keys of a tile, grid x and y. */
void mc_surrogates_add_tile(mc_surrogates *keys, const char *tileset, const mc_grid *grid, int z, int x, int y);

/* Of all tiles of a range that is not empty; where these are too many blocks, those of a map without tiles. */
void mc_surrogates_add_range(mc_surrogates *keys, const char *tileset, const mc_grid *grid, int z,
                             const mc_tile_range *range);

/* Whether tiles of a level are made of those of the last stored one (max-cached-zoom), and have the keys of these. */
static inline bool
mc_surrogate_is_made(const mc_grid_link *link, int z)
{
    return link->max_cached_zoom >= 0 && z > link->max_cached_zoom && link->strategy == MC_REASSEMBLE;
}

/* Of a map that is drawn without tiles. */
void mc_surrogates_add_map(mc_surrogates *keys, const char *tileset);

/* The text, in `pool`. `separator`: stands between keys. */
const char *mc_surrogates_end(mc_surrogates *keys, char separator, apr_pool_t *pool);

/* Told of one key that is to be purged. */
typedef void mc_surrogate_visit(void *baton, const char *key);

/* The keys of all answers that show one of the tiles of the range, those of maps included; at most some 20. */
void mc_surrogates_of_changed(const char *tileset, const mc_grid *grid, int z, const mc_tile_range *range,
                              mc_surrogate_visit *visit, void *baton);

/* The key of the tileset in which a key lies, which has MC_SURROGATE_KEY_MAX bytes; false: it lies in none. */
bool mc_surrogate_tileset(char *tileset, const char *key);

#define MC_SURROGATE_ALL ":all"

#endif
