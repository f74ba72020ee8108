/* Measuring: what changed in a store that cannot tell its size itself. */
#include "cache/quota/quota_private.h"

enum { BLOCKS_AT_ONCE = 32, TILES_MOST = 1 << (2 * MC_QUOTA_SHIFT) /* of a block */ };

/* Some blocks. Between looking into the store and writing down what was there nobody waits: what was stored meanwhile
 * was said to be before, so that the block is measured again. */
typedef struct quota_measuring {
    mc_quota *quota;
    mc_book_block blocks[BLOCKS_AT_ONCE];
    mc_quota_amount found[BLOCKS_AT_ONCE];
    int count;
    apr_int64_t before;
} quota_measuring;

static mc_error *
list_unmeasured(mc_handle *books, void *baton, mc_ctx *ctx)
{
    quota_measuring *some = baton;
    some->before = apr_time_sec(apr_time_now()) - MC_QUOTA_FRESH;
    return mc_books_unmeasured(some->blocks, &some->count, BLOCKS_AT_ONCE, some->before, books, ctx->pool);
}

static mc_error *
write_measured(mc_handle *books, void *baton, mc_ctx *ctx)
{
    const quota_measuring *some = baton;
    for (int i = 0; i < some->count; i++)
        MC_TRY(mc_books_measured(books, &some->blocks[i], &some->found[i], some->before, ctx->pool));
    return MC_OK;
}

static mc_error *
measure_some(quota_measuring *some, mc_ctx *ctx)
{
    mc_tile_key keys[TILES_MOST];
    const mc_quota *quota = some->quota;
    MC_TRY(mc_books_do(&quota->books, list_unmeasured, some, ctx));
    for (int i = 0; i < some->count; i++) {
        mc_tile_key first;
        some->found[i] = (mc_quota_amount){ 0, 0 };
        if (!mc_quota_block_key(&first, quota, &some->blocks[i], ctx->pool))
            continue;
        const int tiles = mc_quota_tile_keys(keys, &first, mc_uses_shift(quota->cache->uses));
        MC_TRY(quota->store->measure(&some->found[i], quota->cache, keys, tiles, ctx));
    }
    return some->count == 0 ? MC_OK : mc_books_do(&quota->books, write_measured, some, ctx);
}

static mc_error *
settle_books(mc_handle *books, void *baton, mc_ctx *ctx)
{
    (void)baton;
    return mc_books_settle(books, ctx->pool);
}

/* Now and then what is too much is removed meanwhile: somebody may be storing faster than this measures. */
mc_error *
mc_quota_measure(mc_quota *quota, mc_ctx *ctx)
{
    enum { EVICT_AFTER = 64 };
    mc_ctx own = *ctx;
    mc_error *error = MC_OK;
    bool mine = true;
    if (quota->store->measure == NULL)
        return mc_books_do(&quota->books, settle_books, NULL, ctx);
    quota_measuring *some = apr_pcalloc(ctx->pool, sizeof(*some));
    some->quota = quota;
    some->count = BLOCKS_AT_ONCE;
    apr_pool_create(&own.pool, ctx->pool);
    for (int i = 1; error == MC_OK && mine && some->count == BLOCKS_AT_ONCE; i++) {
        apr_pool_clear(own.pool);
        error = mc_ctx_check(&own, own.pool);
        if (error == MC_OK)
            error = measure_some(some, &own);
        if (error == MC_OK && i % EVICT_AFTER == 0)
            error = mc_quota_renew(&mine, quota, &own);
        if (error == MC_OK && i % EVICT_AFTER == 0 && mine)
            error = mc_quota_evict(quota, &own);
    }
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    return error;
}
