/*
 * Looking after stores: what they take up, what compacting would give back, which of their tiles no configuration asks
 * for any more, and what writers that were cut off have left.
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
    int64_t free_bytes;       /* of these, what compacting gives back to the disk or to new tiles */
    int64_t tiles, blanks, tile_bytes;
    int64_t orphans, orphan_bytes;     /* of groups that are not known */
    int64_t leftovers, leftover_bytes; /* files that a writer did not come to rename: of caches of type disk */
} mc_store;

/* What is to be done; all of the functions but `known` may be NULL. Strings live until their return. */
typedef struct mc_upkeep {
    bool count;          /* read through the stores and count their tiles by groups */
    bool remove_orphans; /* with count: remove the tiles of groups that are not known, and leftovers */
    bool compact;
    const volatile int *stop; /* ends early once it is not 0; may be NULL */
    bool (*known)(void *baton, const mc_store_group *group);
    void (*orphan)(void *baton, const mc_store *store, const mc_store_group *group);
    void (*progress)(void *baton, const mc_store *store, const char *what, double done); /* done: 0..1 */
    /* `after` NULL: nothing was changed. With an error the other stores are gone on with. */
    void (*report)(void *baton, const mc_store *before, const mc_store *after, const mc_error *error);
    void *baton;
} mc_upkeep;

/* Does it for all stores of a cache, beside servers and seeders that use them. Caches that are made of others, and
 * those that cannot be looked after, have none. */
mc_error *mc_cache_upkeep(mc_cache *cache, const mc_upkeep *task, mc_ctx *ctx) MC_CHECKED;

/* Calls `visit` with the caches that have the tiles: the parts of one that is made of others, or the cache itself. */
void mc_cache_parts(mc_cache *cache, void (*visit)(void *baton, mc_cache *part), void *baton);

#endif
