/*
 * What the parts of the cache "pmtiles" share. A store is an archive, which is never changed, and a draft beside it: a
 * SQLite file with what has been stored and removed since. A get looks into the draft first. mc_pmtiles_finish makes a
 * new archive of both.
 */
#ifndef MC_CACHE_PMTILES_PMTILES_BASE_H
#define MC_CACHE_PMTILES_PMTILES_BASE_H

#include "cache/archive/place.h"
#include "cache/pmtiles/archive.h"
#include "cache/sqlite/sqlite_base.h"

#define MC_PMTILES_DRAFT ".draft" /* behind the path of the archive */

typedef struct pmtiles_cache {
    mc_cache_base base;
    mc_archive_place place;
    mc_template *template;    /* made of it */
    const mc_tile_key *first; /* the first tile of a tileset that uses the cache; NULL: none does */
    sqlite_cache *draft;      /* NULL behind HTTP, where nothing is stored */
} pmtiles_cache;

/* The drafts of a cache whose element is `node`; NULL after a complaint. */
sqlite_cache *mc_pmtiles_make_draft(const pmtiles_cache *cache, const mc_node *node, mc_build *build);

/* What stands in a draft in place of a tile that was removed. */
extern const uint8_t mc_pmtiles_removed[16];
bool mc_pmtiles_is_removed(const void *data, size_t size);

/* Paths of a tile's archive and draft, of MC_PATH_MAX bytes. *present: the draft has rows. */
mc_error *mc_pmtiles_archive_path(char *path, const pmtiles_cache *cache, const mc_tile_key *key,
                                  apr_pool_t *pool) MC_CHECKED;
mc_error *mc_pmtiles_draft_path(char *path, bool *present, const pmtiles_cache *cache, const mc_tile_key *key,
                                mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The rows of a draft with first <= id < end, in the order of their ids, while `handle` is held. */
typedef struct mc_draft_cursor {
    mc_handle *handle;
    sqlite3_stmt *statement; /* NULL: there are no rows */
    bool present;            /* a row is there: */
    uint64_t id;
    const void *data; /* NULL: the tile was removed; valid until the next step */
    size_t size;
} mc_draft_cursor;

/* On the first row. mc_draft_end must follow, also after an error. */
mc_error *mc_draft_begin(mc_draft_cursor *cursor, mc_handle *handle, uint64_t first, uint64_t end,
                         apr_pool_t *pool) MC_CHECKED;
mc_error *mc_draft_step(mc_draft_cursor *cursor, apr_pool_t *pool) MC_CHECKED;
void mc_draft_end(mc_draft_cursor *cursor);

/* mc_cache_ops of this kind */
mc_error *mc_pmtiles_list(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, mc_tile_visit *visit,
                          void *baton, mc_ctx *ctx);
mc_error *mc_pmtiles_measure(int64_t *bytes, int64_t *tiles, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx);
mc_error *mc_pmtiles_metadata(mc_buf **json, mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool);
mc_error *mc_pmtiles_upkeep(mc_cache *cache, const struct mc_upkeep *task, mc_ctx *ctx);
mc_error *mc_pmtiles_finish(mc_cache *cache, mc_ctx *ctx);

#endif
