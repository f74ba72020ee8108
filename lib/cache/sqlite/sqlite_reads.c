/* Series of gets, and reading small files of many without a handle. */
#include "cache/sqlite/sqlite_reads.h"

#include "base/metrics.h"
#include "db/sqlite/sqlite_counters.h"

mc_cache_reads *
mc_reads_of(const mc_ctx *ctx)
{
    return ctx->reads != NULL && ctx->reads->owner == ctx ? ctx->reads : NULL;
}

void
mc_cache_reads_begin(mc_ctx *ctx)
{
    if (ctx->reads == NULL || ctx->reads->owner != ctx)
        ctx->reads = apr_palloc(ctx->pool, sizeof(*ctx->reads));
    ctx->reads->owner = ctx;
    ctx->reads->cache = NULL;
    ctx->reads->handle = NULL;
    ctx->reads->bare = NULL;
    ctx->reads->not_bare = false;
}

void
mc_cache_reads_drop(mc_ctx *ctx)
{
    mc_cache_reads *reads = mc_reads_of(ctx);
    if (reads == NULL)
        return;
    if (reads->handle != NULL)
        mc_handle_release(reads->handle, true);
    mc_bare_tiles_close(reads->bare);
    reads->handle = NULL;
    reads->bare = NULL;
    reads->not_bare = false;
    reads->cache = NULL;
}

void
mc_cache_reads_end(mc_ctx *ctx)
{
    mc_cache_reads_drop(ctx);
    ctx->reads = NULL;
}

/* The caller's series, or nothing; the file is closed with it, or by give_bare. */
static mc_bare_tiles *
take_bare(sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_cache_reads *reads = mc_reads_of(ctx);
    mc_handles *handles = ctx->process == NULL ? NULL : ctx->process->handles;
    if (!cache->bare || at->stamp.wal_size >= 0 || (reads != NULL && (reads->not_bare || reads->handle != NULL)))
        return NULL;
    if (reads != NULL && reads->bare != NULL && mc_bare_tiles_serve(reads->bare, key))
        return reads->bare;
    if (reads != NULL) {
        mc_bare_tiles_close(reads->bare);
        reads->bare = NULL;
    }
    if (mc_handles_have_idle(handles, at->path, &at->stamp, &cache->reading, pool))
        return NULL;
    mc_bare_tiles *opened = mc_bare_tiles_open(at->path, &cache->plain, key, pool);
    if (reads != NULL) {
        reads->bare = opened;
        reads->not_bare = opened == NULL;
    }
    if (opened != NULL)
        mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_bare_opens_total, 1);
    return opened;
}

/* known: what was wanted of it was there. */
static void
give_bare(mc_bare_tiles *bare, bool known, mc_ctx *ctx)
{
    mc_cache_reads *reads = mc_reads_of(ctx);
    if (reads != NULL && known)
        return;
    mc_bare_tiles_close(bare);
    if (reads != NULL) {
        reads->bare = NULL;
        reads->not_bare = true;
    }
}

bool
mc_reads_get_bare(mc_tile **tile, sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key, mc_ctx *ctx,
                  apr_pool_t *pool)
{
    mc_bare_tiles *bare = take_bare(cache, at, key, ctx, pool);
    if (bare == NULL)
        return false;
    bool known = mc_bare_tiles_get(tile, bare, key, pool);
    give_bare(bare, known, ctx);
    return known;
}

bool
mc_reads_cover_bare(mc_coverage **coverage, sqlite_cache *cache, const sqlite_file *at, const mc_tile_key *key,
                    mc_ctx *ctx, apr_pool_t *pool)
{
    mc_bare_tiles *bare = take_bare(cache, at, key, ctx, pool);
    if (bare == NULL)
        return false;
    *coverage = mc_bare_tiles_coverage(bare);
    give_bare(bare, *coverage != NULL, ctx);
    return *coverage != NULL;
}
