/* What operators are told of a cache with <max_size>. */
#include <apr_strings.h>

#include "cache/quota/quota_private.h"
#include "mapcache/upkeep.h"

static mc_error *
read_quota_state(mc_cache_quota *state, const mc_quota *quota, mc_handle *books, apr_pool_t *pool)
{
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
    mc_handle *books;
    *state = (mc_cache_quota){ .limit = cache->max_size, .oldest = -1 };
    if (cache->quota == NULL)
        return MC_OK;
    MC_TRY(mc_books_open_reader(&books, &cache->quota->books, ctx));
    if (books == NULL)
        return MC_OK;
    mc_error *error = read_quota_state(state, cache->quota, books, ctx->pool);
    mc_handle_release(books, error == MC_OK);
    return error;
}
