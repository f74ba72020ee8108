/* What operators are told of a cache with <max_size>. */
#include <apr_strings.h>

#include "cache/quota/quota_private.h"
#include "mapcache/upkeep.h"

typedef struct quota_look {
    mc_cache_quota *state;
    const mc_quota *quota;
    apr_pool_t *pool;
} quota_look;

/* A mc_handle_work. */
static mc_error *
read_quota_state(void *baton, mc_handle *books)
{
    const quota_look *look = baton;
    mc_cache_quota *state = look->state;
    const mc_quota *quota = look->quota;
    apr_pool_t *pool = look->pool;
    int64_t surveyed;
    int count;
    mc_book_block oldest;
    MC_TRY(mc_books_number(&state->bytes, books, quota->store->total == NULL ? MC_BOOKS_BYTES : MC_BOOKS_TOTAL, pool));
    MC_TRY(mc_books_number(&state->removed, books, MC_BOOKS_REMOVED, pool));
    MC_TRY(mc_books_number(&surveyed, books, MC_BOOKS_SURVEYED, pool));
    state->complete = surveyed != 0;
    const apr_int64_t now = apr_time_sec(apr_time_now());
    MC_TRY(mc_books_oldest(&oldest, &count, 1, now + MC_QUOTA_FRESH, books, pool));
    if (count > 0)
        state->oldest = oldest.used <= 1 ? -1 : oldest.used < now ? now - oldest.used : 0;
    return MC_OK;
}

mc_error *
mc_cache_quota_look(mc_cache_quota *state, const mc_cache *cache, mc_ctx *ctx)
{
    quota_look look = { state, cache->quota, ctx->pool };
    *state = (mc_cache_quota){ .limit = cache->max_size, .oldest = -1 };
    return cache->quota == NULL ? MC_OK : mc_books_read(&cache->quota->books, read_quota_state, &look, ctx);
}
