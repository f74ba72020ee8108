/* What can only be told by asking the data that a configuration names. */
#include <apr_hash.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "mapcache/server.h"
#include "mapcache/source.h"
#include "mapcache/tileset.h"
#include "mapcache/upkeep.h"

/* Microseconds for one source. */
#define INSPECTION_TIME (20 * APR_USEC_PER_SEC)

static void
inspect_source(mc_source *source, mc_diagnostics *diagnostics, mc_process *process, const mc_log *log, apr_pool_t *pool)
{
    apr_pool_t *scratch;
    apr_pool_create(&scratch, pool);
    mc_ctx ctx = { .pool = scratch, .process = process, .log = log, .deadline = mc_clock_now() + INSPECTION_TIME };
    source->ops->inspect(source, diagnostics, &ctx, scratch);
    apr_pool_destroy(scratch);
}

/* The parts of caches that have been asked. */
typedef struct store_inspection {
    const mc_tileset *tileset;
    apr_hash_t *seen;
    mc_diagnostics *diagnostics;
    mc_process *process;
    const mc_log *log;
    apr_pool_t *pool;
} store_inspection;

/* Asks a store that is far away for the first tile of the tileset: who cannot read it cannot serve. */
static void
inspect_store(void *baton, mc_cache *cache)
{
    store_inspection *inspection = baton;
    const mc_tileset *tileset = inspection->tileset;
    if (cache->ops->get_all == NULL || tileset->link_count == 0 ||
        apr_hash_get(inspection->seen, &cache, sizeof(cache)) != NULL)
        return;
    apr_hash_set(inspection->seen, apr_pmemdup(inspection->pool, &cache, sizeof(cache)), sizeof(cache), cache);
    apr_pool_t *scratch;
    apr_pool_create(&scratch, inspection->pool);
    mc_ctx ctx = { .pool = scratch,
                   .process = inspection->process,
                   .log = inspection->log,
                   .deadline = mc_clock_now() + INSPECTION_TIME };
    const mc_tile_key key = { .tileset = tileset->name,
                              .grid = tileset->links[0]->grid,
                              .extension = tileset->format == NULL ? "png" : tileset->format->extension,
                              .renderable = true };
    mc_tile *tile;
    mc_error *error = mc_cache_get(&tile, cache, &key, &ctx, scratch);
    if (error != MC_OK)
        mc_complain(inspection->diagnostics, MC_WARNING, NULL, "no tile can be read: %s",
                    mc_error_chain(error, scratch));
    apr_pool_destroy(scratch);
}

static void
inspect_stores(const mc_config *config, mc_diagnostics *diagnostics, mc_process *process, const mc_log *log,
               apr_pool_t *pool)
{
    store_inspection inspection = {
        .seen = apr_hash_make(pool), .diagnostics = diagnostics, .process = process, .log = log, .pool = pool
    };
    for (int i = 0; i < config->tilesets->nelts; i++) {
        inspection.tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        if (inspection.tileset->cache != NULL && inspection.tileset->not_built == NULL)
            mc_cache_parts(inspection.tileset->cache, inspect_store, &inspection);
    }
}

void
mc_config_inspect(const mc_config *config, int processes, mc_diagnostics *diagnostics, const mc_log *log,
                  apr_pool_t *pool)
{
    mc_runtime *runtime;
    apr_hash_t *seen = apr_hash_make(pool);
    mc_error *error = mc_runtime_create(&runtime, config, processes, false, log, pool);
    if (error != MC_OK) {
        mc_complain(diagnostics, MC_WARNING, NULL, "%s", mc_error_chain(error, pool));
        return;
    }
    for (int i = 0; i < config->tilesets->nelts; i++) {
        mc_source *source = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *)->source;
        if (source == NULL || source->ops->inspect == NULL || apr_hash_get(seen, &source, sizeof(source)) != NULL)
            continue;
        apr_hash_set(seen, apr_pmemdup(pool, &source, sizeof(source)), sizeof(source), source);
        inspect_source(source, diagnostics, mc_runtime_process(runtime), log, pool);
    }
    inspect_stores(config, diagnostics, mc_runtime_process(runtime), log, pool);
    mc_runtime_destroy(runtime);
}
