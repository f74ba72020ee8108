/* See write_behind.h. */
#include "cache/write_behind.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "cache/behind_queue.h"
#include "cache/cache_base.h"
#include "cache/cache_counters.h"
#include "cache/layered.h"
#include "cache/marked.h"

/* Microseconds: that one attempt may take, between attempts at first and at most, that a process drains its queues when
 * it ends, and what the last attempt may take longer; after so long another process may have stored a newer tile;
 * between two looks at queues that drain. */
static const apr_interval_time_t one_attempt = 30 * APR_USEC_PER_SEC, first_pause = APR_USEC_PER_SEC / 10,
                                 longest_pause = 5 * APR_USEC_PER_SEC, drain_time = 5 * APR_USEC_PER_SEC,
                                 grace = APR_USEC_PER_SEC / 2, fresh = APR_USEC_PER_SEC,
                                 look_again = APR_USEC_PER_SEC / 50;
enum { APART_AFTER = 3 /* attempts */ };

struct mc_write_behind {
    mc_write_behind_rules rules;
    pthread_mutex_t lock;   /* of all below; taken inside of that of the process's list */
    pthread_cond_t changed; /* a put came, a put was stored, or the end has come */
    mc_behind_queue queue;
    mc_behind_put *storing; /* of the queue; NULL: none */
    int failures;           /* in a row, of whichever puts */
    apr_time_t rest;        /* nothing is tried before then */
    char reason[512];       /* of the last failure */
    bool running;           /* there is a thread */
    pthread_t thread;
    mc_process *process;    /* of the thread */
    _Atomic apr_time_t end; /* when the thread has to be done; 0: not yet known */
    mc_write_behind *next;  /* in the list of the process, by its lock */
};

struct mc_write_behinds {
    pthread_mutex_t lock;
    mc_write_behind *first;
};

static bool
is_behind_late(void *baton)
{
    apr_time_t end = atomic_load(&((mc_write_behind *)baton)->end);
    return end != 0 && mc_clock_now() >= end;
}

/* --- storing: on the thread, with the lock held where nothing else is said ---------------------------------------- */

/* A put on its way: copies of its tiles that are wanted still, with references of their own; and what became of them.
 */
typedef struct behind_batch {
    mc_tile_write *writes;
    mc_behind_tile **tiles; /* for telling the queue */
    bool *done;             /* need not be tried again */
    int count, stored, lost;
    mc_error *refusal; /* why the last lost one is */
} behind_batch;

static behind_batch
list_wanted_writes(mc_behind_put *put, apr_pool_t *pool)
{
    const size_t most = (size_t)put->count;
    behind_batch batch = { .writes = apr_palloc(pool, sizeof(*batch.writes) * most),
                           .tiles = apr_palloc(pool, sizeof(mc_behind_tile *) * most),
                           .done = apr_pcalloc(pool, sizeof(bool) * most) };
    for (int i = 0; i < put->count; i++)
        if (put->tiles[i].write.data != NULL) {
            batch.writes[batch.count] = put->tiles[i].write;
            mc_buf_attach(mc_buf_ref(put->tiles[i].write.data), pool);
            batch.tiles[batch.count++] = &put->tiles[i];
        }
    return batch;
}

/* Without the lock. What was stored after the put was made, by a seeder, another server, or the next configuration of
 * this one, stays. A cache that cannot say what it has is written to. */
static mc_error *
leave_newer_tiles(behind_batch *batch, mc_cache *cache, apr_time_t made, mc_ctx *ctx)
{
    mc_tile_key *keys = apr_palloc(ctx->pool, sizeof(*keys) * (size_t)(batch->count + 1));
    mc_tile **stored = apr_pcalloc(ctx->pool, sizeof(*stored) * (size_t)(batch->count + 1));
    for (int i = 0; i < batch->count; i++) {
        keys[i] = batch->writes[i].key;
        keys[i].renderable = true; /* no store is a store without the tile */
    }
    mc_error *error = mc_layered_get_all(stored, cache, keys, batch->count, ctx, ctx->pool);
    for (int i = 0; i < batch->count && error == MC_OK; i++)
        batch->done[i] = stored[i] != NULL &&
                         mc_is_made_later(stored[i]->mtime, batch->writes[i].made != 0 ? batch->writes[i].made : made);
    return error != MC_OK && error->kind == MC_ERR_UNAVAILABLE ? error : MC_OK;
}

/* What is so the next time, too: as of a tile that is too large for the cache. */
static bool
is_store_refusal(const mc_error *error)
{
    return error->kind == MC_ERR_NOT_BUILT || error->kind == MC_ERR_LIMIT;
}

/* Without the lock. The last tile first: the first one of a metatile tells whether the metatile is there. */
static mc_error *
store_tiles_apart(behind_batch *batch, mc_write_behind *queue, mc_ctx *ctx)
{
    mc_error *first = MC_OK;
    for (int i = batch->count - 1; i >= 0 && !is_behind_late(queue); i--) {
        if (batch->done[i])
            continue;
        mc_error *error = mc_cache_put(queue->rules.cache, &batch->writes[i], 1, ctx);
        batch->stored += error == MC_OK;
        batch->done[i] = error == MC_OK || is_store_refusal(error);
        if (error != MC_OK && batch->done[i]) {
            batch->lost++;
            batch->refusal = error;
        } else if (error != MC_OK) {
            first = first == MC_OK ? error : first;
            if (error->kind == MC_ERR_UNAVAILABLE)
                break;
        }
    }
    return first;
}

/* Without the lock. */
static mc_error *
store_batch(behind_batch *batch, mc_write_behind *queue, const mc_behind_put *put, mc_ctx *ctx)
{
    if (apr_time_now() - put->made > fresh || atomic_load(&queue->end) != 0)
        MC_TRY(leave_newer_tiles(batch, queue->rules.cache, put->made, ctx));
    if (put->apart || put->count == 1)
        return store_tiles_apart(batch, queue, ctx);
    mc_tile_write *writes = apr_palloc(ctx->pool, sizeof(*writes) * (size_t)(batch->count + 1));
    int count = 0;
    for (int i = 0; i < batch->count; i++)
        if (!batch->done[i])
            writes[count++] = batch->writes[i];
    MC_TRY(count == 0 ? MC_OK : mc_cache_put(queue->rules.cache, writes, count, ctx));
    batch->stored = count;
    for (int i = 0; i < batch->count; i++)
        batch->done[i] = true;
    return MC_OK;
}

static void
tell_lost_tiles(mc_write_behind *queue, int lost, mc_ctx *ctx)
{
    if (lost == 0)
        return;
    mc_count(queue->process->metrics, MC_COUNT_behind_lost_total, (uint64_t)lost);
    mc_log_write(ctx, MC_LOG_ERROR, "cache \"%s\": %d tiles are lost that waited for cache \"%s\": %s",
                 queue->rules.name, lost, queue->rules.cache->name,
                 *queue->reason == '\0' ? "the process ends" : queue->reason);
}

/*
 * The put is tried again later, behind those that have failed less often; all others wait a little, too, as it may be
 * the cache that fails. Where others were stored meanwhile, or after some attempts, it is a tile of this put that the
 * cache does not take: then they are stored one by one, and the others of the put are not lost with it.
 */
static void
put_off(mc_write_behind *queue, mc_behind_put *put, const mc_error *error, mc_ctx *ctx)
{
    const apr_time_t now = mc_clock_now();
    if (queue->failures == 0 && put->attempts == 0)
        mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\": tiles wait for cache \"%s\": %s", queue->rules.name,
                     queue->rules.cache->name, mc_error_chain(error, ctx->pool));
    put->apart = put->apart || put->attempts + 1 >= APART_AFTER || is_store_refusal(error) ||
                 (put->attempts > 0 && put->others < queue->queue.stored);
    put->others = queue->queue.stored;
    put->resume = now + mc_backoff(put->attempts++, first_pause, longest_pause);
    queue->rest = now + mc_backoff(queue->failures++, first_pause, longest_pause);
}

/* One attempt at what is wanted of a put; the lock is given up meanwhile. What is done is wanted no more. */
static mc_error *
attempt_put(mc_write_behind *queue, mc_behind_put *put, mc_ctx *ctx)
{
    behind_batch batch = list_wanted_writes(put, ctx->pool);
    apr_time_t attempt = mc_clock_now() + one_attempt, end = atomic_load(&queue->end);
    ctx->deadline = attempt < put->until ? attempt : put->until;
    if (end != 0 && end < ctx->deadline)
        ctx->deadline = end;
    queue->storing = put;
    pthread_mutex_unlock(&queue->lock);
    mc_error *error = batch.count == 0 ? MC_OK : store_batch(&batch, queue, put, ctx);
    pthread_mutex_lock(&queue->lock);
    for (int i = 0; i < batch.count; i++)
        if (batch.done[i])
            mc_behind_queue_drop(&queue->queue, batch.tiles[i]);
    queue->storing = NULL;
    pthread_cond_broadcast(&queue->changed);
    mc_count(queue->process->metrics, MC_COUNT_behind_stored_total, (uint64_t)batch.stored);
    if (batch.lost > 0)
        apr_cpystrn(queue->reason, mc_error_chain(batch.refusal, ctx->pool), sizeof(queue->reason));
    tell_lost_tiles(queue, batch.lost, ctx);
    return error;
}

static void
settle_put(mc_write_behind *queue, mc_behind_put *put, mc_ctx *ctx)
{
    apr_pool_clear(ctx->pool);
    mc_error *error = attempt_put(queue, put, ctx);
    if (error != MC_OK && put->wanted > 0) {
        apr_cpystrn(queue->reason, mc_error_chain(error, ctx->pool), sizeof(queue->reason));
        put_off(queue, put, error, ctx);
        return;
    }
    /* What the end has cut off is still wanted, and lost by the next look at what has no time left. */
    if (put->wanted > 0 && is_behind_late(queue))
        return;
    mc_behind_queue_remove(&queue->queue, put);
    queue->queue.stored++;
    queue->failures = 0;
    queue->rest = 0;
}

/* Sleeps until a put may be tried, or there is one, or the end comes. */
static void
wait_for_put(mc_write_behind *queue, apr_time_t until)
{
    const apr_time_t end = atomic_load(&queue->end);
    if (end != 0 && (until == 0 || end < until))
        until = end;
    if (until == 0)
        pthread_cond_wait(&queue->changed, &queue->lock);
    else
        mc_clock_wait(&queue->changed, &queue->lock, until);
}

/* False: nothing waits any more, and nothing will. */
static bool
run_behind_turn(mc_write_behind *queue, apr_time_t *known_end, mc_ctx *ctx)
{
    const apr_time_t now = mc_clock_now(), end = atomic_load(&queue->end);
    apr_time_t resume;
    if (end != *known_end) { /* everything once more, at once */
        *known_end = end;
        queue->rest = queue->failures = 0;
        for (mc_behind_put *put = queue->queue.first; put != NULL; put = put->next) {
            put->resume = 0;
            put->until = put->until < end ? put->until : end;
        }
    }
    if (queue->rest > now && (end == 0 || now < end)) { /* whoever puts meanwhile makes nobody look through the queue */
        wait_for_put(queue, queue->rest);
        return true;
    }
    tell_lost_tiles(queue, mc_behind_queue_expire(&queue->queue, now), ctx);
    if (queue->queue.first == NULL) {
        pthread_cond_broadcast(&queue->changed); /* who drains waits for that */
        if (end != 0)
            return false;
    }
    mc_behind_put *put = mc_behind_queue_next(&resume, &queue->queue, now);
    if (put != NULL)
        settle_put(queue, put, ctx);
    else
        wait_for_put(queue, resume);
    return true;
}

static void *
run_write_behind(void *data)
{
    mc_write_behind *queue = data;
    apr_time_t known_end = 0;
    apr_allocator_t *allocator;
    mc_ctx ctx = {
        .process = queue->process, .log = &mc_log_stderr, .abandoned = is_behind_late, .abandoned_baton = queue
    };
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&ctx.pool, NULL, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, ctx.pool);
    pthread_mutex_lock(&queue->lock);
    while (run_behind_turn(queue, &known_end, &ctx))
        apr_pool_clear(ctx.pool);
    pthread_mutex_unlock(&queue->lock);
    apr_pool_destroy(ctx.pool);
    return NULL;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Nobody puts any more. An end that was told before may be brought forward. */
static void
tell_behind_end(mc_write_behind *queue, apr_time_t end)
{
    pthread_mutex_lock(&queue->lock);
    if (atomic_load(&queue->end) == 0 || end < atomic_load(&queue->end))
        atomic_store(&queue->end, end);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void
end_write_behind(mc_write_behind *queue, apr_time_t end)
{
    tell_behind_end(queue, end);
    pthread_join(queue->thread, NULL);
    pthread_mutex_lock(&queue->lock); /* who counts what waits looks at it still */
    queue->running = false;
    queue->process = NULL;
    pthread_mutex_unlock(&queue->lock);
}

/* Before the configuration goes, whose caches the thread uses. The process goes on, so that tiles may wait as long as
 * ever; in the list of the process the queue stays meanwhile, as the process may end. */
static apr_status_t
drain_on_cleanup(void *data)
{
    mc_write_behind *queue = data;
    pthread_mutex_lock(&queue->lock);
    mc_write_behinds *list = queue->process == NULL ? NULL : queue->process->write_behinds;
    pthread_mutex_unlock(&queue->lock);
    if (list != NULL) {
        end_write_behind(queue, mc_clock_now() + (apr_interval_time_t)(queue->rules.longest * APR_USEC_PER_SEC));
        pthread_mutex_lock(&list->lock);
        for (mc_write_behind **at = &list->first; *at != NULL; at = &(*at)->next)
            if (*at == queue) {
                *at = queue->next;
                break;
            }
        pthread_mutex_unlock(&list->lock);
    }
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    return APR_SUCCESS;
}

mc_write_behind *
mc_write_behind_create(const mc_write_behind_rules *rules, apr_pool_t *pool)
{
    mc_write_behind *queue = apr_pcalloc(pool, sizeof(*queue));
    queue->rules = *rules;
    mc_behind_queue_init(&queue->queue);
    pthread_mutex_init(&queue->lock, NULL);
    mc_clock_condition(&queue->changed);
    apr_pool_pre_cleanup_register(pool, queue, drain_on_cleanup);
    return queue;
}

/* With the lock held: whether there is a thread. */
static bool
start_write_behind(mc_write_behind *queue, mc_ctx *ctx)
{
    if (queue->running)
        return true;
    if (atomic_load(&queue->end) != 0)
        return false;
    queue->process = ctx->process;
    queue->running = pthread_create(&queue->thread, NULL, run_write_behind, queue) == 0;
    return queue->running;
}

/* Starts the thread once, and puts the queue into the list of the process. */
static bool
is_behind_ready(mc_write_behind *queue, mc_ctx *ctx)
{
    mc_write_behinds *list = ctx->process == NULL ? NULL : ctx->process->write_behinds;
    if (list == NULL || !ctx->process->lasting)
        return false;
    pthread_mutex_lock(&list->lock);
    pthread_mutex_lock(&queue->lock);
    bool before = queue->running, ready = start_write_behind(queue, ctx);
    if (ready && !before) {
        queue->next = list->first;
        list->first = queue;
    }
    pthread_mutex_unlock(&queue->lock);
    pthread_mutex_unlock(&list->lock);
    return ready;
}

bool
mc_write_behind_put(mc_write_behind *queue, const mc_tile_write *tiles, int count, mc_ctx *ctx)
{
    if (count == 0 || !is_behind_ready(queue, ctx))
        return false;
    pthread_mutex_lock(&queue->lock);
    bool fits = atomic_load(&queue->end) == 0 &&
                mc_behind_queue_add(&queue->queue, tiles, count, queue->rules.longest, queue->rules.most_bytes) != NULL;
    if (fits)
        pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return fits;
}

bool
mc_write_behind_get(mc_tile **tile, mc_write_behind *queue, const mc_tile_key *key, apr_pool_t *pool)
{
    pthread_mutex_lock(&queue->lock);
    const mc_behind_tile *found = mc_behind_queue_find(&queue->queue, key);
    if (found != NULL && tile != NULL)
        *tile = mc_tile_create(mc_buf_attach(mc_buf_ref(found->write.data), pool),
                               found->write.made != 0 ? found->write.made : found->put->made, pool);
    pthread_mutex_unlock(&queue->lock);
    return found != NULL;
}

void
mc_write_behind_forget(mc_write_behind *queue, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, one_attempt);
    pthread_mutex_lock(&queue->lock);
    for (int i = 0; i < count; i++) {
        mc_behind_queue_drop(&queue->queue, mc_behind_queue_find(&queue->queue, &keys[i]));
        while (queue->storing != NULL && mc_behind_put_has(&queue->queue, queue->storing, &keys[i]) &&
               mc_wait_condition(&queue->changed, &queue->lock, until, ctx) == MC_WAIT_READY)
            continue;
    }
    pthread_mutex_unlock(&queue->lock);
}

mc_write_behinds *
mc_write_behinds_create(void)
{
    mc_write_behinds *queues = calloc(1, sizeof(*queues));
    MC_ASSERT(queues != NULL);
    pthread_mutex_init(&queues->lock, NULL);
    return queues;
}

void
mc_write_behinds_destroy(mc_write_behinds *queues)
{
    if (queues == NULL)
        return;
    const apr_time_t end = mc_clock_now() + drain_time;
    /* Without the lock: what a queue stores may go to another one, in a multitier of multitiers. */
    pthread_mutex_lock(&queues->lock);
    mc_write_behind *queue = queues->first;
    queues->first = NULL;
    pthread_mutex_unlock(&queues->lock);
    for (mc_write_behind *next; queue != NULL; queue = next) {
        next = queue->next;
        end_write_behind(queue, end);
    }
    pthread_mutex_destroy(&queues->lock);
    free(queues);
}

void
mc_write_behinds_drain(mc_write_behinds *queues)
{
    if (queues == NULL)
        return;
    const apr_time_t end = mc_clock_now() + drain_time;
    mc_ctx ctx = { .log = &mc_log_stderr };
    int left;
    apr_pool_create(&ctx.pool, NULL);
    do {
        const bool late = mc_clock_now() >= end + grace;
        left = 0;
        pthread_mutex_lock(&queues->lock);
        for (mc_write_behind *queue = queues->first; queue != NULL; queue = queue->next) {
            tell_behind_end(queue, end);
            pthread_mutex_lock(&queue->lock);
            left += queue->queue.tiles;
            if (late) /* its thread is held up */
                tell_lost_tiles(queue, queue->queue.tiles, &ctx);
            pthread_mutex_unlock(&queue->lock);
        }
        pthread_mutex_unlock(&queues->lock);
        if (late)
            break;
        if (left > 0)
            apr_sleep(look_again);
    } while (left > 0);
    apr_pool_destroy(ctx.pool);
}

uint64_t
mc_write_behinds_waiting(mc_write_behinds *queues)
{
    uint64_t bytes = 0;
    if (queues == NULL)
        return 0;
    pthread_mutex_lock(&queues->lock);
    for (mc_write_behind *queue = queues->first; queue != NULL; queue = queue->next) {
        pthread_mutex_lock(&queue->lock);
        bytes += queue->queue.bytes;
        pthread_mutex_unlock(&queue->lock);
    }
    pthread_mutex_unlock(&queues->lock);
    return bytes;
}
