/* Learning where products have tiles before a map asks for it. */
#include "footprint/footprint_private.h"

/* Products that are looked at together: between two of these the caller may end. */
enum { AHEAD_AT_ONCE = 256 };

static bool
is_time_over(mc_ctx *ctx)
{
    return mc_ctx_abandoned(ctx) || mc_ctx_remaining(ctx, 1) == 0;
}

static mc_error *
learn_some(mc_cache *cache, const mc_footprint_sift *sift, int first, int count, mc_ctx *ctx)
{
    mc_footprint_want *wants = apr_palloc(ctx->pool, sizeof(*wants) * (size_t)count);
    for (int i = 0; i < count; i++) {
        wants[i].key = sift->key;
        wants[i].key.dimensions = sift->dimensions[first + i];
    }
    mc_footprints *batch = mc_batch_create(cache, ctx->pool);
    mc_batch_take(batch, wants, count, ctx->pool);
    mc_footprints_sort(batch, ctx->pool);
    mc_batch_look(batch, ctx);
    mc_cache_reads_begin(ctx);
    for (int i = 0; i < batch->series_count && !is_time_over(ctx); i++)
        mc_batch_learn_coverage(batch, &batch->series[i], ctx);
    mc_cache_reads_end(ctx);
    return mc_ctx_check(ctx, ctx->pool);
}

/* In parts of about the same size, so that each is worth a look into the index of coverage. */
static mc_error *
learn_all(mc_cache *cache, const mc_footprint_sift *sift, mc_ctx *ctx)
{
    int parts = (sift->count + AHEAD_AT_ONCE - 1) / AHEAD_AT_ONCE;
    mc_error *error = MC_OK;
    for (int part = 0; part < parts && error == MC_OK; part++) {
        int first = (int)((int64_t)sift->count * part / parts), end = (int)((int64_t)sift->count * (part + 1) / parts);
        mc_ctx own = *ctx;
        apr_pool_create(&own.pool, ctx->pool);
        error = mc_error_copy(learn_some(cache, sift, first, end - first, &own), ctx->pool);
        apr_pool_destroy(own.pool);
    }
    return error;
}

mc_error *
mc_footprints_ahead(mc_cache *cache, const mc_footprint_sift *sift, mc_ctx *ctx)
{
    int kept_count, *kept = apr_palloc(ctx->pool, sizeof(int) * (size_t)(sift->count + 1));
    mc_footprints *batch;
    MC_TRY(learn_all(cache, sift, ctx));
    return mc_footprints_begin(&batch, kept, &kept_count, cache, sift, ctx, ctx->pool); /* makes the roster */
}
