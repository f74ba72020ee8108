/* The worker threads: they sleep until a batch asks for helpers, then take its jobs by an atomic index. */
#include "base/workers.h"

#include <apr_allocator.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/slices.h"
#include "base/thread.h"
#include "mapcache/trace.h"

enum { WORKERS_MAX = 1024, SPARE_POOLS_MAX = 64, POOL_MEMORY_KEPT = 1 << 20 };

/* Lives on its caller's stack. A helper touches it only between `active++` and `active--`. */
typedef struct workers_batch {
    mc_task *task;
    void *baton;
    int count;
    const mc_ctx *ctx;
    unsigned inside;    /* the span that the caller has open */
    atomic_int next;    /* the first job that nobody has taken; at least `count` when none is left */
    mc_error *error;    /* the first one; workers->lock (or a lone caller) */
    apr_pool_t *holder; /* the job pool that `error` lives in */
    int wanted;         /* helpers that may still join; workers->lock, as all below */
    int active;         /* helpers that run jobs */
    bool queued;
    pthread_cond_t done; /* active has become 0 */
    struct workers_batch *behind;
} workers_batch;

struct mc_workers {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a batch was queued, or `stop` */
    workers_batch *first;
    workers_batch *last;
    bool stop;
    int count;
    atomic_int idle;
    atomic_int guests; /* request threads that compute */
    int processors;
    pthread_t threads[];
};

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER; /* of the two below */
static struct {
    apr_pool_t *pool;
    apr_allocator_t *allocator; /* the pool's own; here because leak checkers do not look into pools */
} spares[SPARE_POOLS_MAX];
static int spare_count;

int
mc_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > 256 ? 256 : count;
}

apr_pool_t *
mc_task_pool_acquire(void)
{
    apr_pool_t *pool = NULL;
    pthread_mutex_lock(&spare_lock);
    if (spare_count > 0)
        pool = spares[--spare_count].pool;
    pthread_mutex_unlock(&spare_lock);
    if (pool != NULL)
        return pool;
    apr_allocator_t *allocator;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    apr_allocator_max_free_set(allocator, POOL_MEMORY_KEPT);
    MC_ASSERT(apr_pool_create_unmanaged_ex(&pool, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, pool);
    return pool;
}

void
mc_task_pool_release(apr_pool_t *pool)
{
    if (pool == NULL)
        return;
    apr_pool_clear(pool);
    pthread_mutex_lock(&spare_lock);
    bool kept = spare_count < SPARE_POOLS_MAX;
    if (kept) {
        spares[spare_count].pool = pool;
        spares[spare_count++].allocator = apr_pool_allocator_get(pool);
    }
    pthread_mutex_unlock(&spare_lock);
    if (!kept)
        apr_pool_destroy(pool);
}

/* The first error of the batch wins; its pool stays until the caller has copied it. True if it is this one. */
static bool
report_batch_error(mc_workers *workers, workers_batch *b, mc_error *error, apr_pool_t *holder)
{
    atomic_store(&b->next, b->count);
    if (workers != NULL)
        pthread_mutex_lock(&workers->lock);
    bool first = b->error == MC_OK;
    if (first) {
        b->error = error;
        b->holder = holder;
    }
    if (workers != NULL)
        pthread_mutex_unlock(&workers->lock);
    return first;
}

/* Runs jobs until none is left or one fails; true if its error stays in `root`. */
static bool
run_jobs(mc_workers *workers, workers_batch *b, mc_ctx *task_ctx, apr_pool_t *root)
{
    for (;;) {
        /* Not a plain increment: after an error, `next` must not run away from `count`. */
        int index = atomic_load_explicit(&b->next, memory_order_relaxed);
        while (index < b->count && !atomic_compare_exchange_weak(&b->next, &index, index + 1))
            continue;
        if (index >= b->count)
            break;
        mc_error *error = b->task(b->baton, index, task_ctx);
        if (error != MC_OK)
            return report_batch_error(workers, b, error, root);
        apr_pool_clear(task_ctx->pool);
    }
    return false;
}

/* Runs jobs of the batch until none is left. `helper`: not on the caller's own thread. */
static void
take_part(mc_workers *workers, workers_batch *b, bool helper)
{
    apr_pool_t *root = mc_task_pool_acquire();
    mc_ctx task_ctx = *b->ctx;
    const mc_ctx untraced = { .trace = NULL };
    bool kept;
    if (helper)
        task_ctx.slow = NULL; /* the request's own thread is not concerned */
    apr_pool_create(&task_ctx.pool, root);
    if (helper && task_ctx.trace != NULL)
        task_ctx.trace = mc_trace_fork(b->ctx->trace, b->inside, root);
    {
        /* The root that log parsers group a pool thread's part of a request by. */
        MC_SPAN(helper ? &task_ctx : &untraced, "_thread_get_tile");
        kept = run_jobs(workers, b, &task_ctx, root);
    }
    if (kept && helper && task_ctx.trace != NULL)
        mc_trace_flush(task_ctx.trace);
    if (!kept)
        mc_task_pool_release(root);
}

/* With the lock held. */
static void
remove_queued_batch(mc_workers *workers, workers_batch *b)
{
    workers_batch *before = NULL;
    for (workers_batch *at = workers->first; at != b; at = at->behind)
        before = at;
    *(before == NULL ? &workers->first : &before->behind) = b->behind;
    if (workers->last == b)
        workers->last = before;
    b->queued = false;
}

static void *
run_worker_thread(void *baton)
{
    mc_workers *workers = baton;
    pthread_setname_np(pthread_self(), "mapcache-worker");
    mc_slices_restore(); /* whoever started it answers at once; batches are parts of what takes long */
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (workers->first == NULL && !workers->stop) {
            atomic_fetch_add(&workers->idle, 1);
            pthread_cond_wait(&workers->work, &workers->lock);
            atomic_fetch_sub(&workers->idle, 1);
        }
        if (workers->first == NULL)
            break;
        workers_batch *b = workers->first;
        b->active++;
        if (--b->wanted == 0)
            remove_queued_batch(workers, b);
        pthread_mutex_unlock(&workers->lock);
        take_part(workers, b, true);
        pthread_mutex_lock(&workers->lock);
        if (--b->active == 0)
            pthread_cond_signal(&b->done);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

mc_error *
mc_workers_create(mc_workers **workers, int count, apr_pool_t *pool)
{
    if (count < 0 || count > WORKERS_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "%d worker threads: 0 to %d are possible", count, WORKERS_MAX);
    mc_workers *created = calloc(1, sizeof(*created) + (size_t)count * sizeof(pthread_t));
    MC_ASSERT(created != NULL);
    created->processors = mc_processors();
    pthread_mutex_init(&created->lock, NULL);
    pthread_cond_init(&created->work, NULL);
    int status = 0;
    while (created->count < count && status == 0) {
        status = mc_thread_start(&created->threads[created->count], NULL, run_worker_thread, created);
        created->count += status == 0;
    }
    if (status != 0) {
        int started = created->count;
        mc_workers_destroy(created);
        return mc_error_create(pool, MC_ERR_LIMIT, "only %d of %d worker threads could be started", started, count);
    }
    *workers = created;
    return MC_OK;
}

void
mc_workers_destroy(mc_workers *workers)
{
    if (workers == NULL)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stop = true;
    pthread_cond_broadcast(&workers->work);
    pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->work);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

int
mc_workers_count(const mc_workers *workers)
{
    return workers == NULL ? 0 : workers->count;
}

int
mc_workers_idle(const mc_workers *workers)
{
    return workers == NULL ? 0 : atomic_load_explicit(&workers->idle, memory_order_relaxed);
}

int
mc_workers_spare(const mc_workers *workers)
{
    if (workers == NULL)
        return 0;
    int idle = atomic_load_explicit(&workers->idle, memory_order_relaxed);
    int guests = atomic_load_explicit(&workers->guests, memory_order_relaxed);
    int spare = workers->processors - (guests < 1 ? 1 : guests) - (workers->count - idle);
    return spare < 0 ? 0 : spare < idle ? spare : idle;
}

bool
mc_workers_crowded(const mc_workers *workers)
{
    int idle = atomic_load_explicit(&workers->idle, memory_order_relaxed);
    int guests = atomic_load_explicit(&workers->guests, memory_order_relaxed);
    return guests + workers->count - idle > workers->processors;
}

void
mc_workers_enter(mc_workers *workers)
{
    if (workers != NULL)
        atomic_fetch_add_explicit(&workers->guests, 1, memory_order_relaxed);
}

void
mc_workers_leave(mc_workers *workers)
{
    if (workers != NULL)
        atomic_fetch_sub_explicit(&workers->guests, 1, memory_order_relaxed);
}

static void
call_helpers(mc_workers *workers, workers_batch *b, int helpers)
{
    pthread_cond_init(&b->done, NULL);
    b->wanted = helpers;
    b->queued = true;
    b->behind = NULL; /* an errand may have been sent before, with another one behind it */
    pthread_mutex_lock(&workers->lock);
    *(workers->last == NULL ? &workers->first : &workers->last->behind) = b;
    workers->last = b;
    for (int i = 0; i < helpers; i++)
        pthread_cond_signal(&workers->work);
    pthread_mutex_unlock(&workers->lock);
}

/* Nobody joins any more; who has joined ends. */
static void
wait_for_helpers(mc_workers *workers, workers_batch *b)
{
    pthread_mutex_lock(&workers->lock);
    if (b->queued)
        remove_queued_batch(workers, b);
    while (b->active > 0)
        pthread_cond_wait(&b->done, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
    pthread_cond_destroy(&b->done);
}

mc_error *
mc_workers_run(mc_workers *workers, mc_task *task, void *baton, int count, int helpers, mc_ctx *ctx, apr_pool_t *pool)
{
    if (count <= 0)
        return MC_OK;
    workers_batch b = {
        .task = task, .baton = baton, .count = count, .ctx = ctx, .inside = mc_trace_innermost(ctx->trace)
    };
    int most = mc_workers_count(workers) < count - 1 ? mc_workers_count(workers) : count - 1;
    if (helpers > most)
        helpers = most;
    if (helpers > 0)
        call_helpers(workers, &b, helpers);
    take_part(helpers > 0 ? workers : NULL, &b, false);
    if (helpers > 0)
        wait_for_helpers(workers, &b);
    mc_error *error = mc_error_copy(b.error, pool);
    mc_task_pool_release(b.holder);
    return error;
}

struct mc_errand {
    mc_workers *workers;
    workers_batch batch;
    mc_ctx ctx; /* as it was when the errand was sent */
};

mc_errand *
mc_errand_create(mc_workers *workers, mc_task *task, void *baton, apr_pool_t *pool)
{
    mc_errand *made = apr_pcalloc(pool, sizeof(*made));
    made->workers = workers;
    made->batch = (workers_batch){ .task = task, .baton = baton, .count = 1, .ctx = &made->ctx };
    return made;
}

void
mc_errand_send(mc_errand *errand, const mc_ctx *ctx)
{
    errand->ctx = *ctx;
    errand->ctx.inside = NULL; /* the gate has been passed by the owner */
    errand->batch.inside = mc_trace_innermost(ctx->trace);
    atomic_store(&errand->batch.next, 0);
    call_helpers(errand->workers, &errand->batch, 1);
}

mc_error *
mc_errand_join(mc_errand *errand, apr_pool_t *pool)
{
    wait_for_helpers(errand->workers, &errand->batch);
    mc_error *error = mc_error_copy(errand->batch.error, pool);
    mc_task_pool_release(errand->batch.holder);
    errand->batch.error = NULL;
    errand->batch.holder = NULL;
    return error;
}
