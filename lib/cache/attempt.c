/* Operations of a store: repeated within the deadline, counted, and seen at once by who asks this process next. */
#include "cache/attempt.h"

#include <stdatomic.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "cache/cache_counters.h"
#include "cache/uses.h"
#include "mapcache/trace.h"

/* After a failed operation: whether it is to be made again; waits before. */
static bool
should_retry_cache(const mc_cache *cache, const mc_error *error, int attempt, mc_ctx *ctx)
{
    mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_cache_errors_total, 1);
    if (attempt >= cache->retries || error->kind == MC_ERR_LIMIT || error->kind == MC_ERR_NOT_BUILT)
        return false;
    const apr_interval_time_t first = (apr_interval_time_t)(cache->retry_delay * APR_USEC_PER_SEC);
    apr_interval_time_t delay = mc_backoff(attempt, first, first << attempt);
    if (mc_ctx_remaining(ctx, delay + 1) <= delay || mc_ctx_abandoned(ctx))
        return false;
    mc_log_write(ctx, MC_LOG_INFO, "cache \"%s\": repetition %d of %d after: %s", cache->name, attempt + 1,
                 cache->retries, mc_error_chain(error, ctx->pool));
    return mc_wait_pause(delay, ctx);
}

static mc_error *
call_store(mc_cache *cache, const mc_store_call *call, mc_ctx *ctx)
{
    const mc_cache_ops *ops = cache->ops;
    switch (call->operation) {
    case MC_STORE_GET:
        return ops->get(call->tiles, cache, call->keys, ctx, call->pool);
    case MC_STORE_GET_ALL:
        return ops->get_all(call->tiles, cache, call->keys, call->count, ctx, call->pool);
    case MC_STORE_EXISTS:
        return ops->exists(call->exists, cache, call->keys, ctx);
    case MC_STORE_EXIST_ALL:
        return ops->exist_all(call->exists, cache, call->keys, call->count, ctx);
    case MC_STORE_PUT:
        return ops->put(cache, call->writes, call->count, ctx);
    case MC_STORE_REMOVE:
        return ops->remove(cache, call->keys, ctx);
    case MC_STORE_REMOVE_ALL:
        break;
    }
    return ops->remove_all(cache, call->keys, call->count, ctx);
}

/* Of the store, not of one tile or one request. */
static bool
is_store_failure(const mc_error *error, const mc_ctx *ctx)
{
    switch (error->kind) {
    case MC_ERR_IO:
    case MC_ERR_UPSTREAM:
    case MC_ERR_UNAVAILABLE:
    case MC_ERR_TIMEOUT:
        return !mc_ctx_abandoned(ctx);
    default:
        return false;
    }
}

/* Reads before it writes: all threads share the state, and a store that works never changes it. */
static void
note_store_result(mc_store_state *state, const mc_error *error, const mc_ctx *ctx)
{
    const bool fails = error != MC_OK && is_store_failure(error, ctx);
    if (!atomic_load_explicit(&state->asked, memory_order_relaxed))
        atomic_store(&state->asked, true);
    if (fails) {
        atomic_store(&state->kind, (int)error->kind);
        atomic_store(&state->failed, mc_clock_now());
        atomic_fetch_add(&state->failures, 1);
    }
    if ((fails || error == MC_OK) && atomic_load_explicit(&state->fails, memory_order_relaxed) != fails)
        atomic_store(&state->fails, fails);
}

mc_error *
mc_cache_reach(mc_cache *cache, mc_ctx *ctx)
{
    mc_error *error = cache->ops->reach == NULL ? MC_OK : cache->ops->reach(cache, ctx);
    if (cache->ops->reach != NULL)
        note_store_result(&cache->state, error, ctx);
    return error;
}

bool
mc_cache_fails(const mc_cache *cache, apr_time_t since)
{
    return atomic_load(&cache->state.fails) && atomic_load(&cache->state.failed) >= since;
}

mc_error *
mc_cache_attempt(mc_cache *cache, const mc_store_call *call, mc_ctx *ctx)
{
    mc_error *error = call_store(cache, call, ctx);
    for (int attempt = 0; error != MC_OK && should_retry_cache(cache, error, attempt, ctx); attempt++)
        error = call_store(cache, call, ctx);
    note_store_result(&cache->state, error, ctx);
    return error;
}

/* What is written here is seen here at once. */
static void
tell_changed_tile(const mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    if (cache->uses != NULL)
        mc_uses_change(cache->uses, key, ctx);
    if (cache->remember_for <= 0)
        return;
    mc_memory_key memory_key;
    mc_memory_key_build(&memory_key, cache->serial, "", key);
    mc_memory_forget(&memory_key, ctx);
}

mc_error *
mc_cache_put_now(mc_cache *cache, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    MC_SPAN_ABOUT(ctx, "mapcache_cache_tile_set", cache->name);
    const mc_store_call call = { .operation = MC_STORE_PUT, .writes = tiles, .count = count };
    if (cache->uses != NULL)
        mc_uses_put(cache->uses, tiles, count, ctx);
    mc_error *error = mc_cache_attempt(cache, &call, ctx);
    for (int i = 0; i < count; i++)
        tell_changed_tile(cache, &tiles[i].key, ctx);
    return error;
}

static mc_error *
remove_tiles(mc_cache *cache, mc_store_operation operation, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const mc_store_call call = { .operation = operation, .keys = keys, .count = count };
    mc_error *error = mc_cache_attempt(cache, &call, ctx);
    for (int i = 0; i < count; i++)
        tell_changed_tile(cache, &keys[i], ctx);
    return error;
}

mc_error *
mc_cache_remove_now(mc_cache *cache, const mc_tile_key *key, mc_ctx *ctx)
{
    return remove_tiles(cache, MC_STORE_REMOVE, key, 1, ctx);
}

mc_error *
mc_cache_remove_all_now(mc_cache *cache, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    MC_SPAN_ABOUT(ctx, "mapcache_cache_tile_delete", cache->name);
    return remove_tiles(cache, MC_STORE_REMOVE_ALL, keys, count, ctx);
}
