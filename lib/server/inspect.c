/* What can only be told by asking the data that a configuration names. */
#include <apr_hash.h>
#include <apr_strings.h>

#include "base/clock.h"
#include "mapcache/server.h"
#include "mapcache/source.h"
#include "mapcache/tileset.h"

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
    mc_runtime_destroy(runtime);
}
