/*
 * Upkeep of stores: their size, the room that compacting would free, tiles that no configuration asks for any more
 * (orphans), and files that interrupted writers have left (leftovers).
 */
#ifndef MAPCACHE_UPKEEP_H
#define MAPCACHE_UPKEEP_H

#include "mapcache/cache.h"

/* Tiles of a store that belong together. */
typedef struct mc_store_group {
    const char *tileset, *grid, *dim; /* as stored; NULL: the store does not tell */
    int z;
    int64_t tiles, blanks, bytes; /* blanks: those of one colour that are stored as such */
} mc_store_group;

/* One file, folder or table. -1: not known, or not asked for. */
typedef struct mc_store {
    const char *kind, *cache; /* type and name of the cache */
    const char *name;         /* path, or the table's name */
    int64_t bytes;            /* that it takes up, with logs, journals and indexes */
    int64_t free_bytes;       /* of these, the bytes that compacting frees for the disk or for new tiles */
    int64_t tiles, blanks, tile_bytes;
    int64_t orphans, orphan_bytes; /* of groups that are not known */
    int64_t leftovers,
        leftover_bytes; /* files that a writer did not rename before it ended; caches of type disk only */
} mc_store;

/* A task of upkeep. All functions but `known` may be NULL. Strings are valid during the call. */
typedef struct mc_upkeep {
    bool count;          /* read through the stores and count their tiles by groups */
    bool remove_orphans; /* with count: remove the tiles of groups that are not known, and leftovers */
    bool compact;
    const volatile int *stop; /* the task ends early once *stop is not 0; may be NULL */
    bool (*known)(void *baton, const mc_store_group *group);
    void (*orphan)(void *baton, const mc_store *store, const mc_store_group *group);
    void (*progress)(void *baton, const mc_store *store, const char *what, double done); /* done: 0..1 */
    /* `after` is NULL where nothing was changed. After an error the task continues with the other stores. */
    void (*report)(void *baton, const mc_store *before, const mc_store *after, const mc_error *error);
    void *baton;
} mc_upkeep;

/* Runs the task on all stores of a cache; servers and seeders may use the stores meanwhile. A cache that is made of
 * other caches, or that has no upkeep, has no stores here. */
mc_error *mc_cache_upkeep(mc_cache *cache, const mc_upkeep *task, mc_ctx *ctx) MC_CHECKED;

/* Whether upkeep goes through the tiles of the cache at all: not where it has no list of them, and the layout of its
 * files tells nothing of what they are. */
bool mc_cache_tells_groups(const mc_cache *cache);

/* Calls `visit` with the caches that hold the tiles: the parts of a cache that is made of other caches, or else the
 * cache itself. */
void mc_cache_parts(mc_cache *cache, void (*visit)(void *baton, mc_cache *part), void *baton);

/* How a cache keeps to its <max_size>, as its books say. */
typedef struct mc_cache_quota {
    apr_int64_t limit; /* bytes; 0: the cache has none, and nothing else is known */
    int64_t bytes;     /* that its tiles take up */
    int64_t removed;   /* tiles, since the books were made */
    int64_t oldest; /* seconds since the block was used that would be removed first; -1: not known, or there is none */
    bool complete;  /* what the cache had before its books has been looked through */
} mc_cache_quota;

/* Reads the books, which may be away or of no use: MC_ERR_IO, MC_ERR_CORRUPT, MC_ERR_UNAVAILABLE past the deadline. */
mc_error *mc_cache_quota_look(mc_cache_quota *state, const mc_cache *cache, mc_ctx *ctx) MC_CHECKED;

/* What of a store in files this process may not write, though storing a tile of a tileset would write there. */
typedef struct mc_cache_denial {
    const char *path;   /* a file, or a folder that is there or would have to be made; NULL: all can be written */
    const char *folder; /* where `path` is one of many folders: the one that all files of the cache are below */
    bool missing;       /* `folder` is not there, and cannot be made */
} mc_cache_denial;

/* Looks by access(2), at a few folders and none of the tiles. Texts live in `pool`. */
mc_cache_denial mc_cache_denied(const mc_cache *cache, const char *tileset, apr_pool_t *pool);

#endif
