/* A series of gets (mc_cache_reads_begin) of one file: what they share. */
#ifndef MC_CACHE_SQLITE_SQLITE_READS_H
#define MC_CACHE_SQLITE_SQLITE_READS_H

#include "cache/sqlite/bare_tiles.h"
#include "cache/sqlite/sqlite_base.h"

/* Where a tile would be, and what stood there. */
typedef struct sqlite_file {
    char path[MC_PATH_MAX];
    int missing;      /* errno of the look; 0: the file is there */
    apr_time_t taken; /* before the stamp */
    mc_stamp stamp;
} sqlite_file;

struct mc_cache_reads {
    const mc_ctx *owner; /* copies of it, as jobs have, are not part of the series */
    const sqlite_cache *cache;
    sqlite_file place;   /* where `cache` is set */
    mc_handle *handle;   /* in a transaction; NULL until something had to be read */
    mc_bare_tiles *bare; /* in a transaction of its own; NULL: not open */
    bool not_bare;       /* the file has to be read by SQLite */
};

/* NULL: the caller is in no series. */
mc_cache_reads *mc_reads_of(const mc_ctx *ctx);

/*
 * A tile without SQLite's machine, where the file is one of many, small and plain, and no handle of it is open: such a
 * file is opened in a tenth of the time. False: it has to be read by SQLite. The file is in rollback mode where true.
 */
bool mc_reads_get_bare(mc_tile **tile, sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key, mc_ctx *ctx,
                       apr_pool_t *pool);

/* The same for the coverage of the file. */
bool mc_reads_cover_bare(mc_coverage **coverage, sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key,
                         mc_ctx *ctx, apr_pool_t *pool);

#endif
