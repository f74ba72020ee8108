/*
 * Stores of tiles. One const table of operations for each kind; what all need (retries, blank tiles, traces, memory)
 * stands once in front.
 */
#ifndef MAPCACHE_CACHE_H
#define MAPCACHE_CACHE_H

#include "mapcache/tile.h"

typedef struct mc_cache mc_cache;
struct mc_store_location; /* lib/cache/cache_base.h */
struct mc_upkeep;         /* mapcache/upkeep.h */

/* *json: the layers of a vector tile's tileset as TileJSON lists them (3.0.0, vector_layers); NULL where that is not
 * known. In `pool`. */
typedef mc_error *mc_layers_writer(const char **json, const void *baton, const mc_tile_key *key, mc_ctx *ctx,
                                   apr_pool_t *pool);

/* A tile to be stored. `uniform`: all of its pixels are known to be `bgra` (premultiplied), which some stores write
 * instead of the bytes. */
typedef struct mc_tile_write {
    mc_tile_key key;
    mc_buf *data;
    bool uniform;
    uint8_t bgra[4];
    mc_layers_writer *layers; /* for stores that tell it; NULL: it has none */
    const void *layers_baton;
} mc_tile_write;

/* A tileset that stores its tiles of a grid in a cache. */
typedef struct mc_cache_use {
    const char *tileset;
    const mc_grid *grid;
    bool dimensions; /* it has some */
} mc_cache_use;

/* Told of a stored tile; false ends the list. */
typedef bool mc_tile_visit(void *baton, int x, int y);

/*
 * get: *tile is NULL on a miss. put: all of the tiles or none where the store can; they may be of any metatiles.
 * exists and delete: of one tile; deleting what is not there is no error.
 */
typedef struct mc_cache_ops {
    const char *type;
    const mc_key *keys;
    const char *help;
    bool pictures_only; /* its files are for programs that take every tile for a PNG or JPEG */
    mc_cache *(*from_config)(const mc_node *node, mc_build *build); /* NULL after a complaint */
    mc_error *(*get)(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
    /* Of one tileset, grid, level and dimensions at once, for stores that are far away; NULL for others. What is
     * missing stays as it is in `tiles`. */
    mc_error *(*get_all)(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                         apr_pool_t *pool);
    mc_error *(*exists)(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
    mc_error *(*put)(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
    mc_error *(*remove)(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
    /* Of one tileset, grid and dimensions, in one transaction; NULL: one by one. */
    mc_error *(*remove_all)(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
    /* mc_cache_list, and whether this cache can do it for the tiles of `key`; NULL: it cannot. */
    mc_error *(*list)(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                      void *baton, mc_ctx *ctx);
    bool (*lists)(const mc_cache *cache, const mc_tile_key *key);
    /* NULL where any tilesets may share a store. */
    void (*used_by)(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build);
    /* mc_cache_upkeep; NULL: there is nothing to look after. */
    mc_error *(*upkeep)(mc_cache *cache, const struct mc_upkeep *task, mc_ctx *ctx);
    /* Of stores that are no SQLite files: their bytes (of folders: those of the key's tileset and grid; -1: not known),
     * and how many tiles of the key's series they have. Folders are looked through until the context's deadline. */
    mc_error *(*measure)(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
    /* mc_cache_parts; NULL: it has its tiles itself. */
    void (*parts)(mc_cache *cache, void (*visit)(void *baton, mc_cache *part), void *baton);
    /* The SQLite file that a tile stands in, for footprints; NULL where there are none. */
    mc_error *(*location)(struct mc_store_location *location, mc_cache *cache, const mc_tile_key *key,
                          apr_pool_t *pool);
} mc_cache_ops;

/* First member of every back end's own struct. */
struct mc_cache {
    const mc_cache_ops *ops;
    const char *name;
    int retries;
    double retry_delay;  /* seconds, doubles with each retry */
    bool remember;       /* <memory>: what is read may stay in memory */
    double remember_for; /* seconds, for stores without a stamp; 0: as long as the stamp holds */
    uint64_t serial;     /* of this cache in the process: what is remembered without a stamp is its own */
};

/* Every kind that this build has; NULL at the end. A new back end is one line in lib/cache/registry.c. */
extern const mc_cache_ops *const mc_cache_kinds[];

mc_cache *mc_cache_from_config(const mc_node *node, mc_build *build);

/* Tells the cache, while the configuration is read, who uses it. Complains at `node` where tiles could not be told from
 * others. */
void mc_cache_used_by(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build);

/* Reads a tile; *tile is NULL on a miss. A blank ('#' B G R A) becomes a palette PNG with tile->blank set. The tile's
 * data lives in `pool`. */
mc_error *mc_cache_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx,
                       apr_pool_t *pool) MC_CHECKED;

/* Whether mc_cache_get_all is one round trip. */
bool mc_cache_gets_all(const mc_cache *cache);

/* As mc_cache_get, for keys of one tileset, grid, level and dimensions; tiles[i] is NULL where that one is missing.
 * Only where mc_cache_gets_all. */
mc_error *mc_cache_get_all(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;
mc_error *mc_cache_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx) MC_CHECKED;

/* Several of one tileset, grid and dimensions: all or none where the store can. */
mc_error *mc_cache_remove_all(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx) MC_CHECKED;

/*
 * Visits the stored tiles of an area of one level (tileset, grid, level and dimensions of `key`) in an order of the
 * store's, in constant memory, whatever the size of the area. The store may change meanwhile, also by the visits: what
 * was there all the time is visited once. Only where mc_cache_lists says so.
 */
bool mc_cache_lists(const mc_cache *cache, const mc_tile_key *key);
mc_error *mc_cache_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                        void *baton, mc_ctx *ctx) MC_CHECKED;

/*
 * A series of gets by one thread, as for a map: until its end, gets with this very ctx from one SQLite file share one
 * look at the file, one handle and one read transaction; another file takes its place. Nothing may wait for other
 * threads meanwhile (the handle is held). Whoever begins a series ends it, on every path.
 */
typedef struct mc_cache_reads mc_cache_reads;

void mc_cache_reads_begin(mc_ctx *ctx);
void mc_cache_reads_end(mc_ctx *ctx);

/*
 * A series of puts by one thread, as of a seeder: while ctx->writes is set, what is put or removed waits for the flush,
 * which stores all of it at once, in one transaction where the store can (puts in one, removals in one). A get or
 * exists of a tile that waits flushes first. What waits is bounded by 64 MB, then it flushes as well. What still waits
 * when `pool` ends is lost.
 */
typedef struct mc_cache_writes mc_cache_writes;

mc_cache_writes *mc_cache_writes_create(apr_pool_t *pool);
int mc_cache_writes_count(const mc_cache_writes *writes); /* tiles that wait to be stored or removed */

/* MC_OK: all that was put since the last flush is stored. An error: some of it may be lost, also what had to be stored
 * before. Nothing waits any more. */
mc_error *mc_cache_writes_flush(mc_ctx *ctx) MC_CHECKED;

/* The memory of a process (lib/cache/memory.c): stored tiles by store stamp, at most `bytes`. NULL when bytes is 0. */
struct mc_memory *mc_memory_create(apr_int64_t bytes);
void mc_memory_destroy(struct mc_memory *memory);

/* How full it is (lib/base/clock_cache.h); unchanged for NULL. */
struct mc_clock_cache_statistics;
void mc_memory_stat(struct mc_memory *memory, struct mc_clock_cache_statistics *statistics);

#endif
