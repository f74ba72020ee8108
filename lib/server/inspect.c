/* What can only be told by asking the data that a configuration names. */
#include <apr_hash.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "mapcache/lock.h"
#include "mapcache/server.h"
#include "mapcache/source.h"
#include "mapcache/tileset.h"
#include "mapcache/upkeep.h"

/* Microseconds for one source. */
#define INSPECTION_TIME (20 * APR_USEC_PER_SEC)

typedef struct source_inspection {
    mc_diagnostics *diagnostics;
    mc_process *process;
    const mc_log *log;
    apr_pool_t *pool;
    apr_hash_t *seen; /* sources */
} source_inspection;

/* The source and those that it draws from, each once. */
static void
inspect_source(void *baton, mc_source *source)
{
    const source_inspection *in = baton;
    if (apr_hash_get(in->seen, &source, sizeof(source)) != NULL)
        return;
    apr_hash_set(in->seen, apr_pmemdup(in->pool, &source, sizeof(source)), sizeof(source), source);
    apr_pool_t *scratch;
    apr_pool_create(&scratch, in->pool);
    mc_ctx ctx = {
        .pool = scratch, .process = in->process, .log = in->log, .deadline = mc_clock_now() + INSPECTION_TIME
    };
    if (source->ops->inspect != NULL)
        source->ops->inspect(source, in->diagnostics, &ctx, scratch);
    apr_pool_destroy(scratch);
    if (source->ops->parts != NULL)
        source->ops->parts(source, inspect_source, baton);
}

static void
inspect_sources(const mc_config *config, mc_diagnostics *diagnostics, mc_process *process, const mc_log *log,
                apr_pool_t *pool)
{
    source_inspection inspection = { diagnostics, process, log, pool, apr_hash_make(pool) };
    for (int i = 0; i < config->tilesets->nelts; i++) {
        mc_source *source = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *)->source;
        if (source != NULL)
            inspect_source(&inspection, source);
    }
}

typedef struct cache_inspection {
    mc_diagnostics *diagnostics;
    mc_process *process;
    const mc_log *log;
    apr_pool_t *pool;
    apr_hash_t *seen; /* caches */
} cache_inspection;

static void
inspect_cache_part(void *baton, mc_cache *part)
{
    const cache_inspection *in = baton;
    if (part->ops->reach == NULL || apr_hash_get(in->seen, &part, sizeof(part)) != NULL)
        return;
    apr_hash_set(in->seen, apr_pmemdup(in->pool, &part, sizeof(part)), sizeof(part), part);
    mc_ctx ctx = {
        .pool = in->pool, .process = in->process, .log = in->log, .deadline = mc_clock_now() + INSPECTION_TIME
    };
    mc_error *error = part->ops->reach(part, &ctx);
    if (error != MC_OK)
        mc_complain(in->diagnostics, MC_WARNING, NULL, "%s", mc_error_chain(error, in->pool));
}

/* Only those that a tileset uses, by themselves or through others. */
static void
inspect_caches(const mc_config *config, mc_diagnostics *diagnostics, mc_process *process, const mc_log *log,
               apr_pool_t *pool)
{
    cache_inspection inspection = { diagnostics, process, log, pool, apr_hash_make(pool) };
    for (int i = 0; i < config->tilesets->nelts; i++) {
        mc_cache *cache = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *)->cache;
        if (cache != NULL)
            mc_cache_parts(cache, inspect_cache_part, &inspection);
    }
}

static void
inspect_locker(const mc_config *config, mc_diagnostics *diagnostics, mc_process *process, const mc_log *log,
               apr_pool_t *pool)
{
    mc_ctx ctx = { .pool = pool, .process = process, .log = log, .deadline = mc_clock_now() + INSPECTION_TIME };
    mc_error *error = config->locker == NULL ? MC_OK : mc_locker_reach(config->locker, &ctx, pool);
    if (error != MC_OK)
        mc_complain(diagnostics, MC_WARNING, NULL, "the locker: %s", mc_error_chain(error, pool));
}

void
mc_config_inspect(const mc_config *config, int processes, mc_diagnostics *diagnostics, const mc_log *log,
                  apr_pool_t *pool)
{
    mc_runtime *runtime;
    mc_error *error = mc_runtime_create(&runtime, config, processes, false, log, pool);
    if (error != MC_OK) {
        mc_complain(diagnostics, MC_WARNING, NULL, "%s", mc_error_chain(error, pool));
        return;
    }
    inspect_sources(config, diagnostics, mc_runtime_process(runtime), log, pool);
    inspect_caches(config, diagnostics, mc_runtime_process(runtime), log, pool);
    inspect_locker(config, diagnostics, mc_runtime_process(runtime), log, pool);
    mc_runtime_destroy(runtime);
}
