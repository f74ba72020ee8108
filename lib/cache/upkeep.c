/* The front of upkeep: which caches have something to look after, and adding up what they find. */
#include "mapcache/upkeep.h"

#include "cache/cache_base.h"

mc_error *
mc_cache_upkeep(mc_cache *cache, const mc_upkeep *task, mc_ctx *ctx)
{
    return cache->ops->upkeep == NULL ? MC_OK : cache->ops->upkeep(cache, task, ctx);
}

bool
mc_cache_tells_groups(const mc_cache *cache)
{
    return cache->ops->upkeep != NULL && (cache->ops->tells_groups == NULL || cache->ops->tells_groups(cache));
}

void
mc_cache_parts(mc_cache *cache, void (*visit)(void *baton, mc_cache *part), void *baton)
{
    if (cache->ops->parts != NULL)
        cache->ops->parts(cache, visit, baton);
    else
        visit(baton, cache);
}

/* The parts of a cache, one after the other. */
typedef struct finishing {
    mc_ctx *ctx;
    mc_error *error; /* the first one */
} finishing;

static void
finish_part(void *baton, mc_cache *part)
{
    finishing *work = baton;
    if (part->ops->finish == NULL)
        return;
    mc_error *error = part->ops->finish(part, work->ctx);
    if (work->error == MC_OK)
        work->error = error;
    else if (error != MC_OK)
        mc_log_error(work->ctx, MC_LOG_ERROR, error); /* only one of them can be told */
}

mc_error *
mc_cache_finish(mc_cache *cache, mc_ctx *ctx)
{
    finishing work = { ctx, MC_OK };
    mc_cache_parts(cache, finish_part, &work);
    return work.error;
}

void
mc_store_add(mc_store *store, const mc_store_group *group, const mc_upkeep *task, apr_array_header_t *orphans)
{
    store->tiles += group->tiles;
    store->blanks += group->blanks;
    store->tile_bytes += group->bytes;
    if (task->known(task->baton, group))
        return;
    store->orphans += group->tiles;
    store->orphan_bytes += group->bytes;
    APR_ARRAY_PUSH(orphans, mc_store_group) = *group;
}

void
mc_store_tell_orphans(const mc_store *store, const mc_upkeep *task, const apr_array_header_t *orphans)
{
    for (int i = 0; i < orphans->nelts && task->orphan != NULL; i++)
        task->orphan(task->baton, store, &APR_ARRAY_IDX(orphans, i, mc_store_group));
}
