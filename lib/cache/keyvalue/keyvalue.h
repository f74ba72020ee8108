/* What caches share whose servers keep values by keys: MapCache's keys and values, and the operations of a cache. */
#ifndef MC_CACHE_KEYVALUE_KEYVALUE_H
#define MC_CACHE_KEYVALUE_KEYVALUE_H

#include "cache/cache_base.h"
#include "remote/values.h"

/* What the servers of a kind take for a key. */
typedef struct mc_keyvalue_rules {
    size_t longest; /* bytes of a key */
    bool blanks;    /* blanks and control characters may stand in it */
} mc_keyvalue_rules;

/*
 * The key of a tile. MapCache's (tileset/grid/dimensions/z/y/x/extension) where that can be read in one way only and
 * the servers take it; else one that begins with '%', as none of MapCache's does: "%/" and the parts, escaped, or "%#"
 * and the SHA-256 of that where it is too long.
 */
const char *mc_keyvalue_key(const mc_tile_key *tile, const mc_keyvalue_rules *rules, apr_pool_t *pool);

/* A value as it is stored: the tile or '#' and its colour, and behind it when it was made, 8 bytes, microseconds since
 * 1970, little-endian. */
enum { MC_KEYVALUE_TIME = 8 };

/* Makes the tile of a value that was found. MC_ERR_CORRUPT where it is none that a tile cache has stored. */
mc_error *mc_keyvalue_tile(mc_tile **tile, mc_buf *value, const char *cache, apr_pool_t *pool) MC_CHECKED;

struct mc_keyvalue_cache;

/* Told of a key; false ends the scan. */
typedef bool mc_keyvalue_key_visit(void *baton, const char *key, size_t size);

/* One request to the servers of a cache: all values together. */
typedef mc_error *mc_keyvalue_do(struct mc_keyvalue_cache *cache, mc_remote_value *values, int count,
                                 const mc_remote_call *call);

/* How a kind talks to its servers. `has`: value->found is set, to whatever, where there is one. */
typedef struct mc_keyvalue_kind {
    mc_keyvalue_rules rules;
    const char *span; /* of a get */
    mc_keyvalue_do *get, *set, *has, *remove;
    mc_keyvalue_do *reach; /* asks each server for the value */
    /* Tells all keys that begin so, each at least once; NULL: the servers tell no keys. */
    mc_error *(*scan)(struct mc_keyvalue_cache *cache, const char *prefix, mc_keyvalue_key_visit *visit, void *baton,
                      const mc_remote_call *call);
} mc_keyvalue_kind;

/* Beginning of the struct of a kind. */
typedef struct mc_keyvalue_cache {
    mc_cache_base base;
    const mc_keyvalue_kind *kind;
    bool detect_blank;
    int expires;    /* seconds that tiles stay whose tileset says nothing; 0: as long as the server keeps them */
    double timeout; /* seconds that a server may say nothing */
} mc_keyvalue_cache;

mc_remote_call mc_keyvalue_call(const mc_keyvalue_cache *cache, mc_ctx *ctx, apr_pool_t *pool);

/* A failure in the words of the cache: whatever is wrong with its servers, only time or somebody else can mend it. */
mc_error *mc_keyvalue_failure(mc_error *error, const mc_keyvalue_cache *cache, apr_pool_t *pool) MC_CHECKED;

/* Rows of the tables of these kinds, whose structs begin with mc_keyvalue_cache; `expires_`: its default. */
#define MC_KEYVALUE_KEYS(expires_)                                                                                     \
    MC_KEY_INT("expires", offsetof(mc_keyvalue_cache, expires),                                                        \
               "Seconds that a tile is kept where its tileset has no auto_expire; 0: as long as the server likes.",    \
               .max = 1e9, .flags = MC_KEY_OURS, .fallback = (expires_)),                                              \
        MC_KEY_NUMBER("timeout", offsetof(mc_keyvalue_cache, timeout),                                                 \
                      "Seconds that a server may say nothing before it is taken for away.", .min = 0.01, .max = 3600,  \
                      .flags = MC_KEY_OURS, .fallback = "2")

/* Entries of mc_cache_ops. */
mc_error *mc_keyvalue_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
mc_error *mc_keyvalue_get_all(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                              apr_pool_t *pool);
mc_error *mc_keyvalue_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_keyvalue_exist_all(bool *exists, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
mc_error *mc_keyvalue_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
mc_error *mc_keyvalue_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_keyvalue_remove_all(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
bool mc_keyvalue_tells_grids(const mc_cache *cache);
bool mc_keyvalue_keeps_time(const mc_cache *cache);
mc_error *mc_keyvalue_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_keyvalue_reach(mc_cache *cache, mc_ctx *ctx);
bool mc_keyvalue_lists(const mc_cache *cache, const mc_tile_key *key);
mc_error *mc_keyvalue_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                           void *baton, mc_ctx *ctx);

#define MC_KEYVALUE_OPS                                                                                                \
    .get = mc_keyvalue_get, .get_all = mc_keyvalue_get_all, .exists = mc_keyvalue_exists,                              \
    .exist_all = mc_keyvalue_exist_all, .put = mc_keyvalue_put, .remove = mc_keyvalue_remove,                          \
    .remove_all = mc_keyvalue_remove_all, .tells_grids = mc_keyvalue_tells_grids, .measure = mc_keyvalue_measure,      \
    .reach = mc_keyvalue_reach, .lists = mc_keyvalue_lists, .list = mc_keyvalue_list,                                  \
    .keeps_time = mc_keyvalue_keeps_time

#endif
