/*
 * What caches share whose tiles stand in a database of keys and values that a library keeps in files: lmdb and bdb.
 * Keys and values are MapCache's (docs/reference/configuration.md 5.6, 5.7). Each library is reached through a module.
 */
#ifndef MC_CACHE_EMBEDDED_EMBEDDED_H
#define MC_CACHE_EMBEDDED_EMBEDDED_H

#include "cache/cache_base.h"

enum { MC_EMBEDDED_TIME = 8 }; /* bytes behind a tile: microseconds since 1970, little-endian */

/* Where a database is, and how it is opened. */
typedef struct mc_embedded_place {
    const char *base; /* folder */
    const char *name; /* of the cache: of the file of bdb */
    size_t map_size;  /* bytes that an lmdb may grow to */
    int readers;      /* of lmdb at a time; 0: what the library likes */
} mc_embedded_place;

/* A value to be stored: two parts, one behind the other. NULL data: the key is removed. `key` is the key with its zero
 * byte. */
typedef struct mc_embedded_value {
    const char *key;
    const void *data;
    size_t size;
    const uint8_t *time; /* MC_EMBEDDED_TIME bytes */
} mc_embedded_value;

/* Keys in their order; `keys` has room for `most`, and each is of the pool of the call. */
typedef struct mc_embedded_page {
    const char **keys;
    int count, most;
} mc_embedded_page;

/* What a module offers. Databases are opened by the process that uses them, once, and stay open until it ends. All
 * functions may be called from any thread. A database that is not there has no keys. */
typedef struct mc_embedded_engine {
    /* *data: all bytes of the value, attached to `pool`; NULL: there is none. */
    mc_error *(*get)(mc_buf **data, const mc_embedded_place *place, const char *key, mc_ctx *ctx, apr_pool_t *pool);
    /* All of them or none, where the library can. */
    mc_error *(*write)(const mc_embedded_place *place, const mc_embedded_value *values, int count, mc_ctx *ctx);
    /* How many keys there are, and bytes of the files. */
    mc_error *(*measure)(int64_t *keys, int64_t *bytes, const mc_embedded_place *place, mc_ctx *ctx);
    /* The next keys, at most page->most, that begin with `prefix` and stand behind `after` ("": the first ones). */
    mc_error *(*list)(mc_embedded_page *page, const mc_embedded_place *place, const char *prefix, const char *after,
                      mc_ctx *ctx, apr_pool_t *pool);
} mc_embedded_engine;

#define MC_LMDB_SYMBOL "mc_lmdb_engine"
#define MC_BDB_SYMBOL "mc_bdb_engine"
extern const mc_embedded_engine mc_lmdb_engine, mc_bdb_engine;

/* A tile's key by a template of MapCache (5.2): of each token the first one counts. */
const char *mc_embedded_key(const char *template, const mc_tile_key *key, apr_pool_t *pool);

/* The same with MC_TEMPLATE_MARK and the letter x, y, X or Y (inverted) in place of column and row. */
const char *mc_embedded_pattern(const char *template, const mc_tile_key *key, apr_pool_t *pool);

/* Whether the tiles of a level can be told from their keys. */
bool mc_embedded_tells_tiles(const char *template);

/* mc_cache_list by the pages of an engine. */
mc_error *mc_embedded_list(const mc_embedded_engine *engine, const mc_embedded_place *place, const char *template,
                           const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit, void *baton,
                           mc_ctx *ctx) MC_CHECKED;

#endif
