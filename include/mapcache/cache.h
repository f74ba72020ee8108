/*
 * Stores of tiles. Each kind has one const table of operations. Retries, blank tiles, traces and memory are the same
 * for all kinds: the front does them.
 */
#ifndef MAPCACHE_CACHE_H
#define MAPCACHE_CACHE_H

#include "mapcache/tile.h"

typedef struct mc_cache mc_cache;
struct mc_store_location; /* lib/cache/cache_base.h */
struct mc_upkeep;         /* mapcache/upkeep.h */
struct mc_uses;           /* lib/cache/uses.h */
struct mc_quota;          /* lib/cache/quota/quota.h */

/* *json: the layers of a vector tile's tileset as TileJSON lists them (3.0.0, vector_layers); NULL where the layers are
 * not known. Allocated in `pool`. */
typedef mc_error *mc_layers_writer(const char **json, const void *baton, const mc_tile_key *key, mc_ctx *ctx,
                                   apr_pool_t *pool);

/* A tile to be stored. `uniform`: all of its pixels are known to be `bgra` (premultiplied), which some stores write
 * instead of the bytes. */
typedef struct mc_tile_write {
    mc_tile_key key;
    mc_buf *data;
    bool uniform;
    uint8_t bgra[4];
    int lifetime;    /* seconds after which the tile is of no use (auto_expire): a store may forget it then; 0: never */
    apr_time_t made; /* the time that the tile is stored with, where the store can (mc_cache_keeps_time); 0: now */
    apr_time_t *read_as; /* of a store that tells_time: the time that whoever reads the tile finds it with, if `data` is
                            what is found; as it was otherwise. NULL: nobody asks */
    mc_layers_writer *layers; /* for stores that list the layers of their tiles; NULL: the tileset has none */
    const void *layers_baton;
} mc_tile_write;

/* A tileset that stores its tiles of a grid in a cache. */
typedef struct mc_cache_use {
    const char *tileset;
    const mc_grid *grid;
    bool dimensions;       /* the tileset has dimensions */
    const char *extension; /* of its tiles */
    bool further;          /* a further format of a tileset: it must not overwrite tiles of another one */
} mc_cache_use;

/* How bad it is that tiles of this use take the places of others: what further formats overwrite would be served as
 * another format. */
static inline mc_severity
mc_cache_use_severity(const mc_cache_use *use)
{
    return use->further ? MC_REFUSED : MC_WARNING;
}

/* Told of a stored tile; false ends the list. */
typedef bool mc_tile_visit(void *baton, int x, int y);

/*
 * get: *tile is NULL on a miss. put: all of the tiles or none where the store can; they may be of any metatiles.
 * exists and remove: of one tile. Removing a tile that is not there is no error.
 */
typedef struct mc_cache_ops {
    const char *type;
    const mc_key *keys;
    const char *help;
    const char *sample; /* what stands in <cache> at least, {folder} for a folder of its own: every such kind is run
                           through the common tests; NULL: it needs a server or other caches */
    bool keeps_nothing; /* what is put is gone: who renders a tile hands it on, and nobody waits for another one's */
    bool pictures_only; /* other programs read its files, and they take every tile for a PNG or JPEG */
    mc_cache *(*from_config)(const mc_node *node, mc_build *build); /* NULL after a complaint */
    mc_error *(*get)(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
    /* Of one tileset, grid, level and dimensions at once, for stores that are far away; NULL for others. Entries of
     * `tiles` for missing tiles stay as they are. */
    mc_error *(*get_all)(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                         apr_pool_t *pool);
    bool (*gets_all)(const mc_cache *cache); /* whether get_all pays, where that depends on more than on the type */
    mc_error *(*exists)(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
    /* As get_all: exists[i] of keys[i]; NULL for stores that are asked one by one. */
    mc_error *(*exist_all)(bool *exists, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
    mc_error *(*put)(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx);
    mc_error *(*remove)(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
    /* Of one tileset, grid and dimensions, in one transaction; NULL: one by one. */
    mc_error *(*remove_all)(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx);
    /* mc_cache_list, and whether this cache can do it for the tiles of `key`; NULL: it cannot. */
    mc_error *(*list)(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                      void *baton, mc_ctx *ctx);
    bool (*lists)(const mc_cache *cache, const mc_tile_key *key);
    /* mc_cache_whole, one step of it; NULL, or NULL from it: the cache itself. */
    mc_cache *(*whole)(mc_cache *cache, const mc_tile_key *key);
    /* NULL where any tilesets may share a store. */
    void (*used_by)(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build);
    /* Whether tiles of grids of different names never take each other's places; NULL: perhaps they do. */
    bool (*tells_grids)(const mc_cache *cache);
    /* mc_cache_upkeep; NULL: there is nothing to look after. */
    mc_error *(*upkeep)(mc_cache *cache, const struct mc_upkeep *task, mc_ctx *ctx);
    /* mc_cache_tells_groups, where that depends on more than on the type; NULL: it tells. */
    bool (*tells_groups)(const mc_cache *cache);
    /* mc_cache_finish; NULL: what is put stands where it belongs. */
    mc_error *(*finish)(mc_cache *cache, mc_ctx *ctx);
    /* Of stores that are no SQLite files: their bytes (of folders: those of the key's tileset and grid; -1: not known),
     * and how many tiles of the key's series they have. Folders are looked through until the context's deadline. */
    mc_error *(*measure)(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
    /* Whether all servers of the store answer, for who looks before anybody needs them; NULL: it has none, or
     * mapcache check --connect finds out otherwise. */
    mc_error *(*reach)(mc_cache *cache, mc_ctx *ctx);
    /* mc_cache_parts; NULL: the cache holds its tiles itself. */
    void (*parts)(mc_cache *cache, void (*visit)(void *baton, mc_cache *part), void *baton);
    /* mc_cache_redirect; NULL: clients cannot get the tile themselves. */
    mc_error *(*redirect)(const char **url, mc_cache *cache, const mc_tile_key *key, apr_pool_t *pool);
    /* The SQLite file that a tile stands in, for footprints; NULL where there are none. */
    mc_error *(*location)(struct mc_store_location *location, mc_cache *cache, const mc_tile_key *key,
                          apr_pool_t *pool);
    /* What the store says of its tiles as a JSON object with a member "vector_layers" (TileJSON 3.0.0), in `pool`;
     * NULL: it says nothing. NULL for stores that cannot. */
    mc_error *(*metadata)(mc_buf **json, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
    /* The same as lists and list of stores that are folders of files: going over an area costs a look at each of its
     * folders that is there, in place of a look for each tile that could be. NULL: the store has no such folders. */
    bool (*lists_folders)(const mc_cache *cache);
    mc_error *(*list_folders)(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                              void *baton, mc_ctx *ctx);
    /* Whether tiles are stored with mc_tile_write.made as their time; NULL: they are not. */
    bool (*keeps_time)(const mc_cache *cache);
    bool tells_time; /* by mc_tile_write.read_as */
    /* Of stores in files: the folder that all files are below, or the only file (*file is true then); NULL: there is no
     * such place. */
    const char *(*place)(bool *file, const mc_cache *cache, apr_pool_t *pool);
} mc_cache_ops;

/*
 * How a store has answered this process: of its last operation that reached the store. Any thread may read and write
 * the fields. A store that works costs one read for each operation.
 */
typedef struct mc_store_state {
    _Atomic bool asked;        /* by any operation since the configuration was loaded */
    _Atomic bool fails;        /* the last operation found the store away: see mc_cache_fails */
    _Atomic uint64_t failures; /* operations that found the store away */
    _Atomic apr_time_t failed; /* microseconds of mc_clock_now(): the last failure */
    _Atomic int kind;          /* mc_error_kind of the last failure */
} mc_store_state;

/* First member of every back end's own struct. */
struct mc_cache {
    const mc_cache_ops *ops;
    const char *name;
    mc_position position;
    int retries;
    double retry_delay;  /* seconds, doubles with each retry */
    bool used;           /* a tileset or another cache names it */
    bool remember;       /* <memory>: tiles that were read may stay in memory */
    double remember_for; /* seconds, for stores without a stamp; 0: as long as the stamp holds */
    uint64_t serial; /* of this cache in the process: part of the key of tiles that are remembered without a stamp */
    uint64_t definition; /* hash of its element: part of the key of tiles that the element says how to find in a file */
    mc_store_state state;
    apr_int64_t max_size;   /* <max_size>: bytes; 0: no limit */
    struct mc_uses *uses;   /* when which tiles were used last; NULL without <max_size> */
    struct mc_quota *quota; /* who keeps to <max_size>; NULL without it */
};

/* All kinds of this build; NULL at the end. A new kind is one line in lib/cache/registry.c. */
extern const mc_cache_ops *const mc_cache_kinds[];

mc_cache *mc_cache_from_config(const mc_node *node, mc_build *build);

/* Whether the last operation on the store failed because of the store, at `since` (microseconds of mc_clock_now()) or
 * later: the store was away, late, or could not be read or written. A damaged tile, a refused value and a request that
 * its client has given up do not count. */
bool mc_cache_fails(const mc_cache *cache, apr_time_t since);

/* Asks a store that is far away whether it answers, which counts as an operation on it. MC_OK also where the kind of
 * cache cannot tell. Errors as of a get. */
mc_error *mc_cache_reach(mc_cache *cache, mc_ctx *ctx) MC_CHECKED;

/* Tells the cache about a tileset that uses the cache, while the configuration is read. Complains at `node` where tiles
 * of two tilesets would overwrite each other. */
void mc_cache_used_by(mc_cache *cache, const mc_cache_use *use, const mc_node *node, mc_build *build);

/* Whether a tile that is got again has the time that it was put with (to the second at least). */
bool mc_cache_keeps_time(mc_cache *cache);

/* Whether tiles of grids of different names never take each other's places in the cache. */
bool mc_cache_tells_grids(const mc_cache *cache);

/* Reads a tile; *tile is NULL on a miss. A blank ('#' B G R A) becomes a palette PNG with tile->blank set. The tile's
 * data lives in `pool`. */
mc_error *mc_cache_get(mc_tile **tile, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx,
                       apr_pool_t *pool) MC_CHECKED;

/* Whether mc_cache_get_all is one round trip, or a few. */
bool mc_cache_gets_all(const mc_cache *cache);

/* As mc_cache_get, for keys of one tileset, grid, level and dimensions; tiles[i] is NULL where the tile is missing.
 * Only for caches for which mc_cache_gets_all is true. */
mc_error *mc_cache_get_all(mc_tile **tiles, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;

/* Where a client finds the tile itself, whether it is there or not, by <use_redirects>; *url is NULL where it does not.
 */
mc_error *mc_cache_redirect(const char **url, mc_cache *cache, const mc_tile_key *key, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_cache_exists(bool *exists, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx) MC_CHECKED;

/* The same for keys as those of mc_cache_get_all, of any cache: together where the store can be asked so, else in one
 * series of gets. */
mc_error *mc_cache_exist_all(bool *exists, mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_put(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_cache_remove(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx) MC_CHECKED;

/* Several of one tileset, grid and dimensions: all or none where the store can. */
mc_error *mc_cache_remove_all(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx) MC_CHECKED;

/*
 * Visits the stored tiles of an area of one level (tileset, grid, level and dimensions of `key`). The store chooses the
 * order. The memory is constant for areas of all sizes. The store may change meanwhile, also by the visits: a tile that
 * was stored all the time is visited once. Only where mc_cache_lists is true.
 */
bool mc_cache_lists(const mc_cache *cache, const mc_tile_key *key);
mc_error *mc_cache_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                        void *baton, mc_ctx *ctx) MC_CHECKED;

/* The part of a cache that has all tiles of a key's series by itself, and tells how many there are: the last child of a
 * multitier, the first one of a fallback; the cache itself where it is made of no others. */
mc_cache *mc_cache_whole(mc_cache *cache, const mc_tile_key *key);

/*
 * After a seed, an ingest or a copy: makes of what was stored what other programs read, where a kind keeps that apart
 * meanwhile, for the cache and those that it is made of. What this process and others read by the cache is the same
 * before and after. Nobody calls it for what single requests store: `mapcache compact` does it for these.
 */
mc_error *mc_cache_finish(mc_cache *cache, mc_ctx *ctx) MC_CHECKED;

/*
 * A series of gets by one thread, as for a map: until its end, gets with this very ctx from one SQLite file share one
 * look at the file, one handle and one read transaction; another file takes its place. The caller must not wait for
 * other threads meanwhile, as the series holds the handle. The caller ends the series on every path.
 */
typedef struct mc_cache_reads mc_cache_reads;

void mc_cache_reads_begin(mc_ctx *ctx);
void mc_cache_reads_end(mc_ctx *ctx);

/*
 * A series of puts by one thread, as of a seeder: while ctx->writes is set, puts and removals wait for the flush. The
 * flush stores all of them, in one transaction for the puts and one for the removals where the store can. A get or
 * exists of a waiting tile flushes first. More than 64 MB of waiting tiles flush, too. Tiles that still wait when
 * `pool` ends are lost.
 */
typedef struct mc_cache_writes mc_cache_writes;

mc_cache_writes *mc_cache_writes_create(apr_pool_t *pool);
int mc_cache_writes_count(const mc_cache_writes *writes); /* tiles that wait to be stored or removed */

/* MC_OK: all tiles since the last flush are stored. After an error some of these tiles may be lost, also those that
 * were stored before this call. No tile waits any more. */
mc_error *mc_cache_writes_flush(mc_ctx *ctx) MC_CHECKED;

/* The memory of a process (lib/cache/memory.c): stored tiles by store stamp, at most `bytes`. NULL when bytes is 0. */
struct mc_memory *mc_memory_create(apr_int64_t bytes);
void mc_memory_destroy(struct mc_memory *memory);

/* How full the memory is (lib/memory/clock_cache.h). `statistics` is unchanged where `memory` is NULL. */
struct mc_clock_cache_statistics;
void mc_memory_stat(struct mc_memory *memory, struct mc_clock_cache_statistics *statistics);

#endif
