/*
 * A worker of the seeder, a thread or a process: takes an order, acts, gathers what is to be stored, commits, and
 * tells.
 */
#include <apr_strings.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/workers.h"
#include "seed/worker_pool_private.h"

/* What has begun when nothing more is wanted is given so long to end by itself; and so long until what has been drawn
 * is stored, for which a worker may have to wait for others. */
static const apr_interval_time_t GRACE = APR_USEC_PER_SEC, GRACE_OF_COMMITS = APR_USEC_PER_SEC * 9 / 5;

bool
mc_seed_read_record(int fd, void *record, size_t size)
{
    ssize_t got;
    do
        got = read(fd, record, size);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

bool
mc_seed_write_record(int fd, const void *record, size_t size)
{
    ssize_t put;
    do
        put = write(fd, record, size);
    while (put < 0 && errno == EINTR);
    return put == (ssize_t)size;
}

/* ---- sleep */

static struct timespec
timespec_of(apr_interval_time_t microseconds)
{
    return (struct timespec){ microseconds / 1000000, microseconds % 1000000 * 1000 };
}

/* `limit`: how long to sleep; NULL: until somebody wakes us. */
static void
call_futex(atomic_int *word, int operation, int value, const struct timespec *limit)
{
    syscall(SYS_futex, word, operation, value, limit, NULL, 0);
}

void
mc_seed_wake(mc_seed_shared *shared, int awake)
{
    int before = atomic_load(&shared->awake);
    while (before != MC_SEED_ALL_WORKERS && !atomic_compare_exchange_weak(&shared->awake, &before, awake))
        ;
    call_futex(&shared->awake, FUTEX_WAKE, INT32_MAX, NULL);
}

/* ---- work */

/* A worker, and its results that wait for a commit: nobody is told of a tile that could still be lost. */
typedef struct seed_worker {
    const mc_seed_worker_pool *worker_pool;
    int number;
    mc_ctx ctx;
    mc_seed_result *waiting;
    int count;
    apr_time_t since; /* when the first of them began to wait */
    apr_time_t idle;  /* microseconds of waiting that no result has told yet */
} seed_worker;

static bool
worker_is_recalled(const seed_worker *me, apr_interval_time_t ago)
{
    apr_time_t since = atomic_load(&me->worker_pool->shared->cancelled);
    return since != 0 && mc_clock_now() - since >= ago;
}

/* mc_ctx.abandoned */
static bool
given_up(void *baton)
{
    return worker_is_recalled(baton, GRACE);
}

static bool
commit_given_up(void *baton)
{
    return worker_is_recalled(baton, GRACE_OF_COMMITS);
}

static void
pause_idly(seed_worker *me, apr_interval_time_t microseconds)
{
    struct timespec left = timespec_of(microseconds);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    me->idle += microseconds;
}

/* Threads begin one after the other, the first at once; those whose turn has not come when all is done are sent home.
 */
static void
await_turn(seed_worker *me)
{
    const mc_seed_plan *plan = &me->worker_pool->plan;
    atomic_int *word = &me->worker_pool->shared->awake;
    apr_time_t begin = mc_clock_now(), now = begin;
    apr_interval_time_t delay = plan->processes ? 0 : (apr_interval_time_t)(plan->thread_delay * 1e6 * me->number);
    for (int awake; now - begin < delay && (awake = atomic_load(word)) != MC_SEED_ALL_WORKERS; now = mc_clock_now()) {
        struct timespec left = timespec_of(delay - (now - begin));
        call_futex(word, FUTEX_WAIT, awake, &left);
    }
    me->idle += now - begin;
}

static void
fail_seed_result(mc_seed_result *result, const mc_error *error, apr_pool_t *pool)
{
    result->outcome = MC_SEED_FAILED;
    apr_cpystrn(result->message, mc_error_chain(error, pool), sizeof(result->message));
}

/* Commits what waits and tells. False when nobody listens any more. */
static bool
commit_waiting_results(seed_worker *me)
{
    if (me->count == 0)
        return true;
    me->ctx.abandoned = commit_given_up;
    mc_error *error = mc_cache_writes_flush(&me->ctx);
    me->ctx.abandoned = given_up;
    bool heard = true, unwanted = error != MC_OK && commit_given_up(me);
    mc_seed_parts_take(me->waiting[me->count - 1].seconds, me->ctx.trace);
    for (int i = 0; i < me->count && heard; i++) {
        if (unwanted && me->waiting[i].outcome == MC_SEED_DONE)
            me->waiting[i].number = MC_SEED_GIVEN_UP;
        else if (error != MC_OK && me->waiting[i].outcome == MC_SEED_DONE)
            fail_seed_result(&me->waiting[i], error, me->ctx.pool);
        heard = mc_seed_write_record(me->worker_pool->results[1], &me->waiting[i], sizeof(me->waiting[i]));
    }
    me->count = 0;
    apr_pool_clear(me->ctx.pool);
    return heard;
}

/* Sleeps as long as the origin is to be let alone. False when nobody listens any more. */
static bool
stay_awake(seed_worker *me)
{
    mc_seed_shared *shared = me->worker_pool->shared;
    int awake = atomic_load(&shared->awake);
    if (me->number < awake)
        return true;
    if (!commit_waiting_results(me))
        return false;
    apr_time_t begin = mc_clock_now();
    for (; me->number >= awake; awake = atomic_load(&shared->awake))
        call_futex(&shared->awake, FUTEX_WAIT, awake, NULL);
    me->idle += mc_clock_now() - begin;
    return true;
}

static bool
is_the_origins(const mc_error *error)
{
    return error->kind == MC_ERR_UNAVAILABLE || error->kind == MC_ERR_TIMEOUT || error->kind == MC_ERR_UPSTREAM;
}

/* How an origin behind HTTP took it, or any that failed. What is drawn here takes as long as there is much to draw,
 * which says nothing of who has the data. */
static void
tell_throttle(seed_worker *me, float seconds, const mc_error *error)
{
    mc_seed_shared *shared = me->worker_pool->shared;
    bool failed = error != MC_OK && is_the_origins(error);
    if (!me->worker_pool->plan.backoff || (!failed && seconds <= 0) || worker_is_recalled(me, 0))
        return;
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&shared->lock);
    if (mc_throttle_take(&shared->throttle, (double)seconds, failed))
        mc_seed_wake(shared, shared->throttle.limit);
    pthread_mutex_unlock(&shared->lock);
}

static mc_error *
attempt_once(mc_seed_result *result, seed_worker *me)
{
    mc_error *error;
    {
        MC_SPAN(&me->ctx, "mc_seed_act");
        error = mc_seed_act(result, &me->worker_pool->plan.task, &me->ctx);
    }
    tell_throttle(me, mc_seed_parts_take(result->seconds, me->ctx.trace), error);
    return error;
}

/* What another try may mend: the origin or the store were away or slow. Pauses grow from a tenth of a second to one, so
 * that an origin in trouble is left alone, and an interrupt ends soon. */
static mc_error *
attempt_with_retries(mc_seed_result *result, seed_worker *me)
{
    for (int attempt = 0;; attempt++) {
        mc_error *error = attempt_once(result, me);
        if (error == MC_OK || attempt >= me->worker_pool->plan.retries || worker_is_recalled(me, 0) ||
            !(is_the_origins(error) || error->kind == MC_ERR_IO))
            return error;
        pause_idly(me, attempt < 4 ? (apr_interval_time_t)100000 << attempt : APR_USEC_PER_SEC);
    }
}

static void
carry_out(seed_worker *me, const mc_seed_call *order)
{
    mc_seed_result *result = &me->waiting[me->count];
    if (me->count++ == 0)
        me->since = mc_clock_now();
    *result = (mc_seed_result){ .number = order->number, .z = order->z, .x = order->x, .y = order->y };
    result->seconds[MC_SEED_WAIT] = (float)me->idle * 1e-6F;
    me->idle = 0;
    mc_error *error = attempt_with_retries(result, me);
    result->seconds[MC_SEED_WAIT] += (float)me->idle * 1e-6F;
    me->idle = 0;
    if (error != MC_OK && given_up(me))
        result->number = MC_SEED_GIVEN_UP;
    if (error != MC_OK)
        fail_seed_result(result, error, me->ctx.pool);
    apr_pool_clear(me->ctx.pool); /* the map's pixels: the tiles that wait for the commit are held by themselves */
}

static bool
must_settle(const seed_worker *me)
{
    int gathered = mc_cache_writes_count(me->ctx.writes);
    return me->count == MC_SEED_TILES_AT_ONCE || gathered >= MC_SEED_TILES_AT_ONCE || gathered == 0 ||
           mc_clock_now() - me->since >= MC_SEED_COMMIT_EVERY;
}

/* The next order, once there is one; what waits is settled before. False at the end. */
static bool
next_order(mc_seed_call *order, seed_worker *me)
{
    for (;;) {
        if (!stay_awake(me))
            return false;
        ssize_t got = read(me->worker_pool->orders[0], order, sizeof(*order));
        if (got == (ssize_t)sizeof(*order))
            return true;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || !commit_waiting_results(me))
            return false;
        struct pollfd orders = { .fd = me->worker_pool->orders[0], .events = POLLIN };
        apr_time_t begin = mc_clock_now();
        poll(&orders, 1, -1);
        me->idle += mc_clock_now() - begin;
    }
}

void
mc_seed_work(const mc_seed_worker_pool *worker_pool, int number, mc_process *process)
{
    apr_pool_t *pool = mc_task_pool_acquire(), *scratch;
    apr_pool_create(&scratch, pool);
    seed_worker me = { .worker_pool = worker_pool,
                       .number = number,
                       .ctx = { .pool = scratch,
                                .process = process,
                                .log = worker_pool->plan.log,
                                .trace = mc_trace_create(NULL, NULL, NULL, NULL, pool),
                                .headers = worker_pool->plan.task.headers,
                                .abandoned = given_up,
                                .writes = mc_cache_writes_create(pool) },
                       .waiting = apr_palloc(pool, sizeof(mc_seed_result) * MC_SEED_TILES_AT_ONCE) };
    me.ctx.abandoned_baton = &me;
    mc_seed_call order;
    bool heard = true;
    await_turn(&me);
    while (heard && next_order(&order, &me)) {
        carry_out(&me, &order);
        if (must_settle(&me))
            heard = commit_waiting_results(&me);
    }
    commit_waiting_results(&me);
    mc_task_pool_release(pool);
}
