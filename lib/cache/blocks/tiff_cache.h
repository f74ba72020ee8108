/* What the parts of the cache "tiff" share. */
#ifndef MC_CACHE_BLOCKS_TIFF_CACHE_H
#define MC_CACHE_BLOCKS_TIFF_CACHE_H

#include "cache/archive/tiff_index.h"
#include "cache/blocks/blocks.h"
#include "mapcache/lock.h"

typedef struct tiff_cache {
    mc_block_cache block;
    const mc_node *named; /* <template> */
    int columns, rows;    /* tiles in a file */
    const char *format;
    const mc_node *storage, *locking;
    mc_ranges_remote remote; /* of <storage>: files are behind HTTP, and only read */
    mc_tile_key *first;      /* the first tile of a tileset that uses the cache; NULL: none does */
    mc_template *template;
    mc_locker *locker;
    apr_hash_t *places; /* of mc_cache_note_place */
} tiff_cache;

/* The tiles of the file that has a tile: MapCache's layout (docs/reference/configuration.md 5.10). */
typedef struct mc_tiff_block {
    int columns, rows; /* of the file */
    int x, y;          /* the grid's numbers of its first tile */
    uint64_t number;   /* of the tile in the file */
} mc_tiff_block;

mc_tiff_block mc_tiff_block_of(const tiff_cache *cache, const mc_tile_key *key);

/* Whether a file has the tiles of that block, as the grid has them. */
bool mc_tiff_block_fits(const mc_tiff_index *index, const mc_tiff_block *block, const mc_grid *grid);

/* <storage>, and what is made of it and of the template's text: *url is the address. False after a complaint. */
extern const mc_key mc_tiff_storage_keys[];
bool mc_tiff_storage_read(tiff_cache *cache, const char **url, mc_build *build);

/* Puts tiles of one file, or removes those without data. All or none. */
mc_error *mc_tiff_write(tiff_cache *cache, const char *path, const mc_tile_write *const *tiles, int count,
                        mc_ctx *ctx) MC_CHECKED;

#endif
