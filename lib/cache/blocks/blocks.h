/*
 * Caches whose files hold blocks of tiles with an index of ranges: TIFF as MapCache has them, bundles, MRF, slabs. A
 * kind says which file has a tile, and reads the tile out of the file; the rest is the same for all.
 */
#ifndef MC_CACHE_BLOCKS_BLOCKS_H
#define MC_CACHE_BLOCKS_BLOCKS_H

#include "cache/archive/tiff_index.h"

struct mc_block_cache;

/* Tiles in a file that is a TIFF. */
typedef struct mc_block_spots {
    mc_tiff_index index; /* the image that has them */
    mc_tiff_index mask;  /* that of the image */
    bool masked;         /* there is one */
    bool cut;            /* what the mask hides, or lies beyond the edges of the image, is no part of a tile */
    int64_t *numbers;    /* of the tiles, in the image; below 0: the file has no such tile */
} mc_block_spots;

/* How the tiles of a level stand in files of many. */
typedef struct mc_block_shape {
    int columns, rows;           /* tiles in a file; 0: one file has all levels */
    bool north_west;             /* files are counted from the upper left corner, else from the grid's origin */
    bool inverted_x, inverted_y; /* of these: from the other side */
} mc_block_shape;

typedef struct mc_block_kind {
    /* The file of a tile, of MC_PATH_MAX bytes. */
    mc_error *(*path)(char *path, const struct mc_block_cache *cache, const mc_tile_key *key, apr_pool_t *pool);
    /* Reads a tile out of a file that is there; *data NULL: the tile is not there. */
    mc_error *(*read)(mc_buf **data, mc_ranged_file *file, const struct mc_block_cache *cache, const mc_tile_key *key,
                      mc_ctx *ctx, apr_pool_t *pool);
    /* Of files that are TIFFs: where the tiles of these keys stand, which are of one level and file. NULL: the files
     * are none. */
    mc_error *(*locate)(mc_block_spots *spots, mc_ranged_file *file, const struct mc_block_cache *cache,
                        const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool);
    mc_block_shape (*shape)(const struct mc_block_cache *cache, const mc_tile_key *key);
    /* Of a shape with columns: a pattern for glob(3), of MC_PATH_MAX bytes, of all files of the key's level; and a tile
     * of the file of that name in the key's level, by its grid's numbers: false where the name is none. */
    mc_error *(*pattern)(char *pattern, const struct mc_block_cache *cache, const mc_tile_key *key, apr_pool_t *pool);
    bool (*tell)(mc_tile_key *key, const struct mc_block_cache *cache, const char *path, apr_pool_t *pool);
    /* Of other shapes: the tiles of the key's level that the file may have. */
    mc_error *(*range)(mc_tile_range *range, mc_ranged_file *file, const struct mc_block_cache *cache,
                       const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
    /* Which of these tiles a file has, which are of one level. */
    mc_error *(*present)(bool *present, mc_ranged_file *file, const struct mc_block_cache *cache,
                         const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool);
} mc_block_kind;

/* Beginning of the struct of each kind. */
typedef struct mc_block_cache {
    mc_cache_base base;
    const mc_block_kind *kind;
    uint64_t identity;              /* of how files are read, for what is remembered */
    const mc_ranges_remote *remote; /* files are behind HTTP; NULL: on disk */
    bool whole;                     /* one file is all of the store: an error where it is missing */
    const char *place;              /* for mc_block_reach: path of the file or folder, may be a template */
} mc_block_cache;

/* mc_cache_ops.get and exists. */
mc_error *mc_block_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
mc_error *mc_block_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);

/* mc_cache_ops.reach of kinds that are only read: MC_ERR_IO where the file or folder of the cache (of a template: the
 * folder before its first placeholder) cannot be read. */
mc_error *mc_block_reach(mc_cache *cache, mc_ctx *ctx);

/* mc_cache_ops.used_by of such kinds. */
void mc_block_used_by(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build);

/* mc_block_kind.read of a kind that locates. */
mc_error *mc_block_read_located(mc_buf **data, mc_ranged_file *file, const mc_block_cache *cache,
                                const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);

/* mc_cache_ops.get_all and gets_all of files that are TIFFs. */
mc_error *mc_block_get_all(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                           apr_pool_t *pool);
bool mc_block_gets_all(const mc_cache *cache);

/* mc_block_kind.present of a kind that locates. */
mc_error *mc_block_located_present(bool *present, mc_ranged_file *file, const mc_block_cache *cache,
                                   const mc_tile_key *keys, int count, mc_ctx *ctx, apr_pool_t *pool);

/* mc_cache_ops.list, lists and measure. */
mc_error *mc_block_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                        void *baton, mc_ctx *ctx);
bool mc_block_lists(const mc_cache *cache, const mc_tile_key *key);
mc_error *mc_block_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);

#define MC_BLOCK_LISTING_OPS .list = mc_block_list, .lists = mc_block_lists, .measure = mc_block_measure

/* Tiles counted from the upper left corner as the grid counts them. */
mc_tile_range mc_block_range(const mc_tile_key *key, int column, int row, int columns, int rows);

/* Puts a path into a pattern for glob(3): what means something there is escaped. */
void mc_block_put_plain(mc_text_out *out, const char *path);

/* Looks at a file (mc_ranges_look, mc_ranges_ask). */
mc_error *mc_block_look(mc_ranged_file *file, const mc_block_cache *cache, const char *path, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* What a file that is missing (file->missing) means for a tile: MC_OK where it only says that the tile is not there. */
mc_error *mc_block_judge_missing(const mc_ranged_file *file, const mc_block_cache *cache, const mc_tile_key *key,
                                 apr_pool_t *pool) MC_CHECKED;

/* mc_cache_ops.put and remove of kinds that are only read: MC_ERR_CONFIG. */
mc_error *mc_block_refuse_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
mc_error *mc_block_refuse_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);

/* MC_ERR_CONFIG where a tile is none of the pictures that are served (mc_coding_format): nothing else is shown of what
 * a file says to be one. */
mc_error *mc_block_check_picture(const mc_buf *data, const struct mc_block_cache *cache, apr_pool_t *pool) MC_CHECKED;

/* Counted from the upper left corner of the grid. */
int mc_block_column(const mc_tile_key *key);
int mc_block_row(const mc_tile_key *key);

#endif
