/* The thread of a cache with <max_size>, and its rounds: uses go into the books, what changed is measured, what the
 * cache had before is looked through, what is too much goes. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/wait.h"
#include "cache/quota/quota_private.h"

enum {
    TICK = 8,        /* seconds between two looks at what was used */
    STEP_LEAST = 16, /* seconds of a step of time: a hundredth or so of the age of what goes first */
    STEP_MOST = 3600,
    STEPS_OF_AGE = 64,
    USES_AT_ONCE = 256, /* of one transaction */
    ROUND_MOST = 60,    /* seconds for one thing of a round */
};

#define GIVING_BACK (APR_USEC_PER_SEC / 2) /* of the lease, at most, where a round was cut off */

/* --- uses --------------------------------------------------------------------------------------------------------- */

typedef struct quota_uses {
    const mc_quota *quota;
    const mc_use *uses;
    int count;
} quota_uses;

static mc_error *
write_uses(mc_handle *books, void *baton, mc_ctx *ctx)
{
    const quota_uses *taken = baton;
    const mc_quota *quota = taken->quota;
    const apr_int64_t now = apr_time_sec(apr_time_now());
    for (int i = 0; i < taken->count; i++) {
        const mc_use *use = &taken->uses[i];
        const mc_quota_name name = quota->store->name(quota->cache, &use->block, ctx->pool);
        if (use->time > 0)
            MC_TRY(mc_books_note(books, &name, &use->block, use->time, MC_BOOK_USED, ctx->pool));
        if (use->changed)
            MC_TRY(mc_books_note(books, &name, &use->block, now, MC_BOOK_CHANGED, ctx->pool));
    }
    return MC_OK;
}

/* *count: how many there were; fewer than USES_AT_ONCE: that was all. */
static mc_error *
flush_some(int *count, mc_quota *quota, mc_ctx *ctx)
{
    mc_use *uses = apr_palloc(ctx->pool, sizeof(*uses) * USES_AT_ONCE);
    *count = mc_uses_take(quota->cache->uses, uses, USES_AT_ONCE, ctx->pool);
    if (*count == 0)
        return MC_OK;
    quota_uses taken = { quota, uses, *count };
    mc_error *error = mc_books_do(&quota->books, write_uses, &taken, ctx);
    for (int i = 0; i < *count; i++)
        if (uses[i].changed)
            atomic_store(&quota->work, true);
    if (error != MC_OK)
        mc_uses_give_back(quota->cache->uses, uses, *count);
    return error;
}

mc_error *
mc_quota_flush(mc_quota *quota, mc_ctx *ctx)
{
    mc_ctx own = *ctx;
    int count;
    mc_error *error;
    apr_pool_create(&own.pool, ctx->pool);
    do {
        apr_pool_clear(own.pool);
        error = flush_some(&count, quota, &own);
    } while (error == MC_OK && count == USES_AT_ONCE);
    error = mc_error_copy(error, ctx->pool);
    apr_pool_destroy(own.pool);
    return error;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

/* What a round begins with. */
typedef struct quota_start {
    mc_quota *quota;
    bool mine, surveyed;
    const char *from; /* of the survey */
} quota_start;

/* Books of blocks of another size say nothing of ours. */
static mc_error *
check_shift(const mc_quota *quota, mc_handle *books, apr_pool_t *pool)
{
    int64_t shift;
    const int64_t ours = mc_uses_shift(quota->cache->uses) + 1;
    MC_TRY(mc_books_number(&shift, books, MC_BOOKS_SHIFT, pool));
    if (shift == ours)
        return MC_OK;
    if (shift != 0)
        MC_TRY(mc_books_empty(books, pool));
    return mc_books_set_number(books, MC_BOOKS_SHIFT, ours, pool);
}

static mc_error *
start_round(mc_handle *books, void *baton, mc_ctx *ctx)
{
    quota_start *start = baton;
    mc_quota *quota = start->quota;
    const apr_int64_t now = apr_time_sec(apr_time_now());
    int64_t surveyed;
    MC_TRY(mc_books_lease(&start->mine, books, quota->holder, now, ctx->pool));
    if (!start->mine)
        return MC_OK;
    MC_TRY(mc_books_correct_clock(books, now, ctx->pool));
    MC_TRY(check_shift(quota, books, ctx->pool));
    MC_TRY(mc_books_number(&surveyed, books, MC_BOOKS_SURVEYED, ctx->pool));
    start->surveyed = surveyed != 0;
    return mc_books_text(&start->from, books, MC_BOOKS_SURVEY, ctx->pool);
}

/* Time goes in steps that are short beside the age of what goes first. */
static mc_error *
end_round(mc_handle *books, void *baton, mc_ctx *ctx)
{
    mc_quota *quota = baton;
    mc_book_block oldest;
    int count;
    bool left;
    const apr_int64_t now = apr_time_sec(apr_time_now());
    MC_TRY(mc_books_oldest(&oldest, &count, 1, now, books, ctx->pool));
    const apr_int64_t step = (count > 0 && oldest.used > 1 ? now - oldest.used : 0) / STEPS_OF_AGE;
    quota->step = step < STEP_LEAST ? STEP_LEAST : step > STEP_MOST ? STEP_MOST : step;
    MC_TRY(mc_books_unsettled(&left, books, ctx->pool));
    if (left || quota->removing)
        atomic_store(&quota->work, true);
    return mc_books_end_lease(books, quota->holder, ctx->pool);
}

static mc_error *
end_quota_lease(mc_handle *books, void *baton, mc_ctx *ctx)
{
    return mc_books_end_lease(books, baton, ctx->pool);
}

/* A round that was cut off, as by the end of the process, leaves the rest to whoever comes next, who need not wait
 * until the lease runs out. */
static void
give_lease_back(mc_quota *quota, mc_ctx *ctx)
{
    mc_ctx own = *ctx;
    own.abandoned = NULL;
    own.deadline = mc_clock_now() + GIVING_BACK;
    mc_error *error = mc_books_do(&quota->books, end_quota_lease, quota->holder, &own);
    if (error != MC_OK)
        mc_log_error(&own, MC_LOG_INFO, error);
}

static mc_error *
keep_quota(bool *mine, mc_quota *quota, mc_ctx *ctx)
{
    quota_start start = { .quota = quota, .from = "" };
    *mine = false;
    MC_TRY(mc_books_do(&quota->books, start_round, &start, ctx));
    *mine = start.mine;
    if (*mine && !start.surveyed)
        MC_TRY(mc_quota_survey_store(mine, quota, start.from, ctx));
    if (!*mine)
        return MC_OK;
    MC_TRY(mc_quota_measure(quota, ctx));
    MC_TRY(mc_quota_evict(quota, ctx));
    return mc_books_do(&quota->books, end_round, quota, ctx);
}

mc_error *
mc_quota_round(mc_quota *quota, mc_ctx *ctx)
{
    bool mine;
    atomic_store(&quota->work, false);
    mc_error *error = keep_quota(&mine, quota, ctx);
    if (error != MC_OK && mine)
        give_lease_back(quota, ctx);
    if (error != MC_OK || !mine)
        atomic_store(&quota->work, true); /* another one is at it: whether it has seen everything shows then */
    return error;
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

static bool
is_quota_ending(void *baton)
{
    return atomic_load(&((mc_quota *)baton)->end);
}

/* The same failure is said once. */
static void
tell_quota_failure(mc_quota *quota, const mc_error *error, mc_ctx *ctx)
{
    if (error == MC_OK) {
        quota->failure = 0;
        return;
    }
    const char *why = mc_error_chain(error, ctx->pool);
    const uint64_t hash = mc_hash64(why, strlen(why), 0) | 1;
    if (hash != quota->failure && !atomic_load(&quota->end))
        mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\" is not kept to its <max_size>: %s", quota->cache->name, why);
    quota->failure = hash;
}

/* Waits for a tick, or, where there is something to do, a second. */
static void
wait_for_work(mc_quota *quota)
{
    const bool work = atomic_load(&quota->work);
    const apr_interval_time_t pause = (work ? 1 : TICK) * APR_USEC_PER_SEC;
    const apr_time_t until = mc_clock_now() + pause;
    pthread_mutex_lock(&quota->lock);
    while (!atomic_load(&quota->end) && (work || !atomic_load(&quota->work)) &&
           mc_clock_wait(&quota->changed, &quota->lock, until))
        continue;
    pthread_mutex_unlock(&quota->lock);
}

static void
set_quota_time(mc_quota *quota)
{
    const apr_int64_t now = apr_time_sec(apr_time_now());
    if (now < quota->step_began || now - quota->step_began >= quota->step) {
        quota->step_began = now;
        mc_uses_set_time(quota->cache->uses, now);
    }
}

static void
run_quota_turn(mc_quota *quota, apr_time_t *flushed, mc_ctx *ctx)
{
    mc_error *error = MC_OK;
    ctx->deadline = mc_clock_now() + ROUND_MOST * APR_USEC_PER_SEC;
    if (mc_uses_waiting(quota->cache->uses) && mc_clock_now() - *flushed >= TICK * APR_USEC_PER_SEC) {
        *flushed = mc_clock_now();
        error = mc_quota_flush(quota, ctx);
    }
    set_quota_time(quota);
    if (error == MC_OK && atomic_load(&quota->work))
        error = mc_quota_round(quota, ctx);
    tell_quota_failure(quota, error, ctx);
}

/* A program that ends after its work, as the seeder does, removes what is too much, as soon as it is old enough. */
static mc_error *
end_above_limit(mc_quota *quota, mc_ctx *ctx)
{
    mc_error *error = mc_quota_round(quota, ctx);
    while (error == MC_OK && quota->removing && mc_ctx_remaining(ctx, 1) > 0) {
        (void)mc_wait_pause(APR_USEC_PER_SEC, ctx);
        apr_pool_clear(ctx->pool);
        error = mc_quota_round(quota, ctx);
    }
    return error;
}

/* What is known is written down. */
static void
end_quota_turns(mc_quota *quota, mc_ctx *ctx)
{
    enum { END_MOST = MC_QUOTA_FRESH + 10 /* seconds */ };
    const bool lasting = quota->process->lasting;
    ctx->abandoned = NULL;
    ctx->deadline = mc_clock_now() + (lasting ? 1 : END_MOST) * APR_USEC_PER_SEC;
    mc_error *error = mc_quota_flush(quota, ctx);
    if (error == MC_OK && !lasting)
        error = end_above_limit(quota, ctx);
    if (error != MC_OK)
        mc_log_error(ctx, MC_LOG_INFO, error);
}

void *
mc_quota_keep(void *data)
{
    mc_quota *quota = data;
    apr_time_t flushed = mc_clock_now();
    apr_allocator_t *allocator;
    mc_ctx ctx = {
        .process = quota->process, .log = &mc_log_stderr, .abandoned = is_quota_ending, .abandoned_baton = quota
    };
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&ctx.pool, NULL, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, ctx.pool);
    quota->step = STEP_LEAST;
    while (!atomic_load(&quota->end)) {
        run_quota_turn(quota, &flushed, &ctx);
        apr_pool_clear(ctx.pool);
        wait_for_work(quota);
    }
    end_quota_turns(quota, &ctx);
    apr_pool_destroy(ctx.pool);
    return NULL;
}
