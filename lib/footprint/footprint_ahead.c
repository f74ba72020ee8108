/* Learning where products have tiles before a map asks for it. */
#include "footprint/footprint_private.h"

/* Files that are read with one pool. */
enum { AHEAD_AT_ONCE = 64 };

static bool
is_known_to_batch(const mc_footprints *batch, const mc_batch_series *series)
{
    const mc_file_facts *facts = series->first;
    return series->file < 0 || batch->files[series->file].missing != 0 || (facts != NULL && facts->asked);
}

static void
learn_some(mc_footprints *batch, int first, int end, const mc_ctx *ctx)
{
    mc_ctx own = *ctx;
    apr_pool_create(&own.pool, ctx->pool);
    mc_cache_reads_begin(&own);
    for (int i = first; i < end; i++)
        if (!is_known_to_batch(batch, &batch->series[i]))
            mc_batch_learn_coverage(batch, &batch->series[i], &own);
    mc_cache_reads_end(&own);
    apr_pool_destroy(own.pool);
}

/* *unknown: whether there were any whose files had to be asked. */
static mc_error *
learn_unknown(bool *unknown, mc_footprints *batch, mc_ctx *ctx)
{
    *unknown = false;
    for (int first = 0; first < batch->series_count; first += AHEAD_AT_ONCE) {
        int end = first + AHEAD_AT_ONCE < batch->series_count ? first + AHEAD_AT_ONCE : batch->series_count;
        bool some = false;
        for (int i = first; i < end; i++)
            some = some || !is_known_to_batch(batch, &batch->series[i]);
        *unknown = *unknown || some;
        MC_TRY(mc_ctx_check(ctx, ctx->pool));
        if (some)
            learn_some(batch, first, end, ctx);
    }
    return MC_OK;
}

/* A look at all files makes the roster where most of them are known, else after they have been asked. */
mc_error *
mc_footprints_ahead(mc_cache *cache, const mc_footprint_sift *sift, mc_ctx *ctx)
{
    int kept_count, *kept = apr_palloc(ctx->pool, sizeof(int) * (size_t)(sift->count + 1));
    mc_footprints *batch;
    bool unknown;
    MC_TRY(mc_footprints_begin(&batch, kept, &kept_count, cache, sift, ctx, ctx->pool));
    if (batch == NULL)
        return MC_OK;
    MC_TRY(learn_unknown(&unknown, batch, ctx));
    return unknown ? mc_footprints_begin(&batch, kept, &kept_count, cache, sift, ctx, ctx->pool) : MC_OK;
}
