/* Removing: the blocks that were used least recently. Each step holds the books for writing, so that nobody begins to
 * store in a block of which tiles are being removed. */
#include <apr_strings.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "cache/quota/quota_counters.h"
#include "cache/quota/quota_private.h"

enum {
    BLOCKS_AT_ONCE = 8, /* of one step */
    LOW_WATER = 90,     /* per cent of <max_size> */
    YOUNG = 3600,       /* seconds: where tiles go that were used so short a time ago, the limit is too small */
    TILES_MOST = 1 << (2 * MC_QUOTA_SHIFT), /* of a block */
};

#define WARN_AGAIN (3600 * APR_USEC_PER_SEC)
#define RENEW_AFTER (5 * APR_USEC_PER_SEC)

typedef struct quota_total {
    const mc_quota *quota;
    int64_t bytes;
} quota_total;

static mc_error *
read_total(mc_handle *books, void *baton, mc_ctx *ctx)
{
    quota_total *total = baton;
    if (total->quota->store->total == NULL)
        return mc_books_number(&total->bytes, books, MC_BOOKS_BYTES, ctx->pool);
    return mc_books_set_number(books, MC_BOOKS_TOTAL, total->bytes, ctx->pool);
}

mc_error *
mc_quota_total(int64_t *bytes, mc_quota *quota, mc_ctx *ctx)
{
    quota_total total = { .quota = quota };
    if (quota->store->total != NULL)
        MC_TRY(quota->store->total(&total.bytes, quota->cache, ctx));
    MC_TRY(mc_books_do(&quota->books, read_total, &total, ctx));
    *bytes = total.bytes;
    return MC_OK;
}

typedef struct quota_lease {
    const mc_quota *quota;
    bool mine;
} quota_lease;

static mc_error *
take_lease(mc_handle *books, void *baton, mc_ctx *ctx)
{
    quota_lease *lease = baton;
    return mc_books_lease(&lease->mine, books, lease->quota->holder, apr_time_sec(apr_time_now()), ctx->pool);
}

mc_error *
mc_quota_renew(bool *mine, mc_quota *quota, mc_ctx *ctx)
{
    quota_lease lease = { quota, false };
    MC_TRY(mc_books_do(&quota->books, take_lease, &lease, ctx));
    *mine = lease.mine;
    return MC_OK;
}

/* Once an hour: what was removed was in use not long ago. */
static void
warn_of_young(mc_quota *quota, apr_int64_t age, mc_ctx *ctx)
{
    if (age >= YOUNG || (quota->warned != 0 && mc_clock_now() - quota->warned < WARN_AGAIN))
        return;
    quota->warned = mc_clock_now();
    mc_log_write(ctx, MC_LOG_WARN,
                 "cache \"%s\": tiles are removed that were used %" APR_INT64_T_FMT
                 " seconds ago: <max_size> is too small for what is asked or seeded",
                 quota->cache->name, age < 0 ? 0 : age);
}

/* One step. */
typedef struct quota_eviction {
    mc_quota *quota;
    int64_t may, must; /* bytes down to the low water mark; bytes down to the limit */
    mc_quota_amount gone;
    int64_t relief;       /* bytes by which the total went down: where the books have it, those that they had */
    bool left;            /* there was something old enough */
    mc_quota_amount rest; /* of the last block, where a tile more would have been too much; else no tile */
} quota_eviction;

/* Of a block whose tiles a killed keeper has removed the books still have the bytes: without these a second one would
 * remove as many again. */
static void
add_relief(quota_eviction *step, int64_t bytes)
{
    step->relief += bytes < 0 ? 0 : bytes > INT64_MAX - step->relief ? INT64_MAX - step->relief : bytes;
}

/* The tiles of one block, as many as may go. */
static mc_error *
evict_block(quota_eviction *step, const mc_book_block *block, mc_tile_key *keys, mc_ctx *ctx)
{
    const mc_quota *quota = step->quota;
    const bool by_books = quota->store->total == NULL;
    mc_quota_amount there = { 0, 0 };
    mc_tile_key first;
    if (!mc_quota_block_key(&first, quota, block, ctx->pool)) {
        add_relief(step, by_books ? block->bytes : 0);
        return MC_OK;
    }
    const int tiles = mc_quota_tile_keys(keys, &first, mc_uses_shift(quota->cache->uses));
    if (by_books) {
        MC_TRY(quota->store->measure(&there, quota->cache, keys, tiles, ctx));
        add_relief(step, block->bytes - there.bytes); /* what has gone before */
    }
    mc_quota_removal some = { .may = step->may - step->relief, .must = step->must - step->relief };
    mc_error *error = quota->store->evict(&some, quota->cache, keys, tiles, ctx);
    step->gone.tiles += some.gone.tiles;
    step->gone.bytes += some.gone.bytes;
    step->rest = some.left;
    add_relief(step, some.gone.bytes);
    return error;
}

/* As many of the blocks as are needed, or until the process ends; *count: how many these were. A block whose grid is no
 * longer configured, and whose tiles cannot be named without, is given up. */
static mc_error *
evict_blocks(quota_eviction *step, const mc_book_block *blocks, int *count, mc_ctx *ctx)
{
    mc_tile_key *keys = apr_palloc(ctx->pool, sizeof(*keys) * TILES_MOST);
    const int most = *count;
    for (*count = 0; *count < most && step->relief < step->may && step->rest.tiles == 0 && !mc_ctx_abandoned(ctx);
         (*count)++)
        MC_TRY(evict_block(step, &blocks[*count], keys, ctx));
    return MC_OK;
}

static mc_error *
write_evicted(mc_handle *books, const mc_book_block *blocks, int count, const quota_eviction *step, mc_ctx *ctx)
{
    int64_t removed;
    for (int i = 0; i < count; i++)
        MC_TRY(i == count - 1 && step->rest.tiles > 0
                   ? mc_books_set_bytes(books, &blocks[i], step->rest.bytes, ctx->pool)
                   : mc_books_remove(books, &blocks[i], ctx->pool));
    MC_TRY(mc_books_number(&removed, books, MC_BOOKS_REMOVED, ctx->pool));
    return mc_books_set_number(books, MC_BOOKS_REMOVED, removed + step->gone.tiles, ctx->pool);
}

static mc_error *
evict_some(mc_handle *books, void *baton, mc_ctx *ctx)
{
    quota_eviction *step = baton;
    mc_quota *quota = step->quota;
    mc_book_block blocks[BLOCKS_AT_ONCE];
    int count;
    const apr_int64_t now = apr_time_sec(apr_time_now());
    mc_metrics *metrics = ctx->process == NULL ? NULL : ctx->process->metrics;
    step->gone = (mc_quota_amount){ 0, 0 };
    step->rest = (mc_quota_amount){ 0, 0 };
    step->relief = 0;
    MC_TRY(mc_books_oldest(blocks, &count, BLOCKS_AT_ONCE, now - MC_QUOTA_FRESH, books, ctx->pool));
    step->left = count > 0;
    mc_error *error = evict_blocks(step, blocks, &count, ctx);
    mc_count(metrics, MC_COUNT_quota_tiles_total, (uint64_t)step->gone.tiles);
    mc_count(metrics, MC_COUNT_quota_bytes_total, (uint64_t)step->gone.bytes);
    MC_TRY(error);
    MC_TRY(write_evicted(books, blocks, count, step, ctx));
    if (step->gone.tiles > 0 && count > 0 && blocks[count - 1].used > 1)
        warn_of_young(quota, now - blocks[count - 1].used, ctx);
    return MC_OK;
}

/* As long as a step took, others have the books and the store. */
static mc_error *
evict_step(quota_eviction *step, mc_ctx *ctx)
{
    const apr_interval_time_t least = 1000, most = APR_USEC_PER_SEC;
    const apr_time_t began = mc_clock_now();
    MC_TRY(mc_books_do(&step->quota->books, evict_some, step, ctx));
    const apr_interval_time_t took = mc_clock_now() - began;
    (void)mc_wait_pause(took < least ? least : took > most ? most : took, ctx);
    return mc_ctx_check(ctx, ctx->pool);
}

static void
tell_stuck(mc_quota *quota, bool stuck, int64_t total, mc_ctx *ctx)
{
    if (stuck && !quota->stuck)
        mc_log_write(ctx, MC_LOG_WARN,
                     "cache \"%s\" has %" APR_INT64_T_FMT " bytes, more than its <max_size>, and all of its tiles were "
                     "used less than %d seconds ago: they are removed a little later",
                     quota->cache->name, (apr_int64_t)total, MC_QUOTA_FRESH);
    quota->stuck = stuck;
}

/* *settled: it is as near to the goal as whole tiles come, and not below. */
static mc_error *
evict_down(bool *settled, mc_quota *quota, int64_t total, int64_t goal, mc_ctx *ctx)
{
    mc_ctx own = *ctx;
    mc_error *error = MC_OK;
    quota_eviction step = { .quota = quota, .left = true };
    bool mine = true;
    apr_time_t renewed = mc_clock_now();
    apr_pool_create(&own.pool, ctx->pool);
    while (total > goal && step.left && step.rest.tiles == 0 && mine && error == MC_OK) {
        apr_pool_clear(own.pool);
        step.may = total - goal;
        step.must = total - quota->cache->max_size;
        error = evict_step(&step, &own);
        total -= step.relief;
        if (error == MC_OK && mc_clock_now() - renewed > RENEW_AFTER) {
            renewed = mc_clock_now();
            error = mc_quota_renew(&mine, quota, &own);
        }
    }
    *settled = error == MC_OK && step.rest.tiles > 0;
    if (error == MC_OK)
        tell_stuck(quota, !step.left, total, &own);
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    return error;
}

mc_error *
mc_quota_evict(mc_quota *quota, mc_ctx *ctx)
{
    const int64_t most = quota->cache->max_size, goal = most / 100 * LOW_WATER;
    int64_t total;
    MC_TRY(mc_quota_total(&total, quota, ctx));
    quota->removing = total > most || (quota->removing && total > goal);
    if (!quota->removing)
        return MC_OK;
    bool settled;
    MC_TRY(evict_down(&settled, quota, total, goal, ctx));
    MC_TRY(mc_quota_total(&total, quota, ctx));
    quota->removing = total > (settled ? most : goal);
    return MC_OK;
}
