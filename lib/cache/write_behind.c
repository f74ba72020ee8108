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
#include "cache/cache_base.h"

/* Microseconds: that one attempt may take, between attempts at first and at most, and that a process drains its queues
 * when it ends. */
static const apr_interval_time_t one_attempt = 30 * APR_USEC_PER_SEC, first_pause = APR_USEC_PER_SEC / 10,
                                 longest_pause = 5 * APR_USEC_PER_SEC, drain_time = 5 * APR_USEC_PER_SEC;
enum { MOST_WAITING = 65536 };

/* The tiles of one put; those whose data are NULL are wanted no more. */
typedef struct waiting_put {
    apr_pool_t *pool; /* of this put alone, with an allocator of its own */
    mc_tile_write *tiles;
    int count;
    size_t bytes;
    apr_time_t made;  /* time of day */
    apr_time_t until; /* mc_clock_now() */
    struct waiting_put *next;
} waiting_put;

struct mc_write_behind {
    mc_write_behind_rules rules;
    pthread_mutex_t lock;   /* of all below; taken inside of that of the process's list */
    pthread_cond_t changed; /* a put came, a put was stored, or the end has come */
    waiting_put *first, **last;
    size_t bytes;
    int tiles;
    bool storing; /* the first put is being stored */
    bool running; /* there is a thread */
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
is_same_tile(const mc_tile_key *a, const mc_tile_key *b)
{
    if (a->x != b->x || a->y != b->y || a->z != b->z || a->dimension_count != b->dimension_count ||
        strcmp(a->grid->name, b->grid->name) != 0 || strcmp(a->tileset, b->tileset) != 0)
        return false;
    for (int i = 0; i < a->dimension_count; i++)
        if (strcmp(a->dimensions[i].value, b->dimensions[i].value) != 0)
            return false;
    return true;
}

static mc_tile_key
copy_waiting_key(const mc_tile_key *key, apr_pool_t *pool)
{
    mc_tile_key kept = *key;
    mc_dimension_value *values = apr_palloc(pool, sizeof(*values) * (size_t)(key->dimension_count + 1));
    kept.tileset = apr_pstrdup(pool, key->tileset);
    for (int i = 0; i < key->dimension_count; i++) {
        values[i] = key->dimensions[i];
        values[i].value = apr_pstrdup(pool, values[i].value);
    }
    kept.dimensions = values;
    return kept;
}

static waiting_put *
copy_put(const mc_tile_write *tiles, int count, double seconds)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&pool, NULL, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, pool);
    waiting_put *put = apr_pcalloc(pool, sizeof(*put));
    put->pool = pool;
    put->tiles = apr_palloc(pool, sizeof(*tiles) * (size_t)count);
    put->count = count;
    put->made = apr_time_now();
    put->until = mc_clock_now() + (apr_interval_time_t)(seconds * APR_USEC_PER_SEC);
    for (int i = 0; i < count; i++) {
        mc_tile_write *tile = &put->tiles[i];
        *tile = tiles[i];
        tile->key = copy_waiting_key(&tiles[i].key, pool);
        mc_buf_ref(tile->data);
        if (tile->key.client_named) /* its tileset lives as long as the request */
            tile->layers = NULL;
        put->bytes += tile->data->size;
    }
    return put;
}

/* With the lock held, as those below. */
static void
drop_waiting_tile(mc_write_behind *queue, waiting_put *put, int i)
{
    size_t size = put->tiles[i].data->size;
    mc_buf_unref(put->tiles[i].data);
    put->tiles[i].data = NULL;
    put->bytes -= size;
    queue->bytes -= size;
    queue->tiles--;
}

/* How many tiles of it were still wanted. */
static int
drop_first_put(mc_write_behind *queue)
{
    waiting_put *put = queue->first;
    int wanted = 0;
    for (int i = 0; i < put->count; i++)
        if (put->tiles[i].data != NULL) {
            drop_waiting_tile(queue, put, i);
            wanted++;
        }
    queue->first = put->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    apr_pool_destroy(put->pool);
    return wanted;
}

static mc_tile_write *
find_waiting_tile(waiting_put **in, mc_write_behind *queue, const mc_tile_key *key)
{
    for (waiting_put *put = queue->first; put != NULL; put = put->next)
        for (int i = 0; i < put->count; i++)
            if (put->tiles[i].data != NULL && is_same_tile(&put->tiles[i].key, key)) {
                *in = put;
                return &put->tiles[i];
            }
    return NULL;
}

/* Whether the put that is being stored has the tile, wanted or not. */
static bool
is_being_stored(const mc_write_behind *queue, const mc_tile_key *key)
{
    for (int i = 0; queue->storing && i < queue->first->count; i++)
        if (is_same_tile(&queue->first->tiles[i].key, key))
            return true;
    return false;
}

static void
drop_waiting_tiles(mc_write_behind *queue, const mc_tile_key *key)
{
    waiting_put *put;
    for (mc_tile_write *tile; (tile = find_waiting_tile(&put, queue, key)) != NULL;)
        drop_waiting_tile(queue, put, (int)(tile - put->tiles));
}

static bool
is_behind_late(void *baton)
{
    apr_time_t end = atomic_load(&((mc_write_behind *)baton)->end);
    return end != 0 && mc_clock_now() >= end;
}

/* Stores what is wanted of the first put; the lock is given up meanwhile. */
static mc_error *
store_first_put(mc_write_behind *queue, mc_ctx *ctx)
{
    const waiting_put *put = queue->first;
    mc_tile_write *tiles = apr_palloc(ctx->pool, sizeof(*tiles) * (size_t)put->count);
    int count = 0;
    for (int i = 0; i < put->count; i++)
        if (put->tiles[i].data != NULL) {
            tiles[count] = put->tiles[i];
            mc_buf_attach(mc_buf_ref(tiles[count++].data), ctx->pool);
        }
    apr_time_t attempt = mc_clock_now() + one_attempt, end = atomic_load(&queue->end);
    ctx->deadline = attempt < put->until ? attempt : put->until;
    if (end != 0 && end < ctx->deadline)
        ctx->deadline = end;
    queue->storing = true;
    pthread_mutex_unlock(&queue->lock);
    mc_error *error = count == 0 ? MC_OK : mc_cache_put(queue->rules.cache, tiles, count, ctx);
    pthread_mutex_lock(&queue->lock);
    queue->storing = false;
    pthread_cond_broadcast(&queue->changed);
    if (error == MC_OK)
        mc_count(queue->process->metrics, MC_COUNT_behind_stored_total, (uint64_t)count);
    return error;
}

static void
lose_first_put(mc_write_behind *queue, const mc_error *error, mc_ctx *ctx)
{
    int lost = drop_first_put(queue);
    mc_count(queue->process->metrics, MC_COUNT_behind_lost_total, (uint64_t)lost);
    mc_log_write(ctx, MC_LOG_ERROR, "cache \"%s\": %d tiles are lost that waited for cache \"%s\": %s",
                 queue->rules.name, lost, queue->rules.cache->name,
                 error == MC_OK ? "the process ends" : mc_error_chain(error, ctx->pool));
}

/* Whether the first put is to be tried again, after a pause. */
static bool
pause_after_failure(mc_write_behind *queue, const mc_error *error, int attempt)
{
    apr_time_t now = mc_clock_now(), until = queue->first->until, end = atomic_load(&queue->end);
    if (end != 0 && end < until)
        until = end;
    if (error->kind == MC_ERR_LIMIT || error->kind == MC_ERR_NOT_BUILT || now >= until)
        return false;
    apr_time_t resume = now + mc_backoff(attempt, first_pause, longest_pause);
    resume = resume < until ? resume : until;
    while (mc_clock_now() < resume && (end != 0 || atomic_load(&queue->end) == 0))
        if (!mc_clock_wait(&queue->changed, &queue->lock, resume))
            break;
    return true;
}

/* One put, for as long as it may wait. */
static void
settle_first_put(mc_write_behind *queue, mc_ctx *ctx)
{
    const waiting_put *put = queue->first;
    mc_error *error = MC_OK;
    for (int attempt = 0; queue->first == put; attempt++) {
        if (is_behind_late(queue)) {
            lose_first_put(queue, error, ctx);
            break;
        }
        apr_pool_clear(ctx->pool);
        error = store_first_put(queue, ctx);
        if (error == MC_OK)
            drop_first_put(queue);
        else if (!pause_after_failure(queue, error, attempt))
            lose_first_put(queue, error, ctx);
        else if (attempt == 0)
            mc_log_write(ctx, MC_LOG_WARN, "cache \"%s\": tiles wait for cache \"%s\": %s", queue->rules.name,
                         queue->rules.cache->name, mc_error_chain(error, ctx->pool));
    }
}

static void *
run_write_behind(void *data)
{
    mc_write_behind *queue = data;
    apr_allocator_t *allocator;
    mc_ctx ctx = {
        .process = queue->process, .log = &mc_log_stderr, .abandoned = is_behind_late, .abandoned_baton = queue
    };
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&ctx.pool, NULL, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, ctx.pool);
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (queue->first == NULL && atomic_load(&queue->end) == 0)
            pthread_cond_wait(&queue->changed, &queue->lock);
        if (queue->first == NULL)
            break;
        settle_first_put(queue, &ctx);
    }
    pthread_mutex_unlock(&queue->lock);
    apr_pool_destroy(ctx.pool);
    return NULL;
}

/* Drains and ends the thread; nobody puts any more. With the lock of the list held. */
static void
end_write_behind(mc_write_behind *queue, apr_time_t end)
{
    pthread_mutex_lock(&queue->lock);
    atomic_store(&queue->end, end);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    queue->running = false;
    queue->process = NULL;
}

/* Before the configuration goes, whose caches the thread uses. */
static apr_status_t
drain_on_cleanup(void *data)
{
    mc_write_behind *queue = data;
    pthread_mutex_lock(&queue->lock);
    mc_write_behinds *list = queue->process == NULL ? NULL : queue->process->write_behinds;
    pthread_mutex_unlock(&queue->lock);
    if (list != NULL) {
        pthread_mutex_lock(&list->lock);
        for (mc_write_behind **at = &list->first; *at != NULL; at = &(*at)->next)
            if (*at == queue) {
                *at = queue->next;
                break;
            }
        pthread_mutex_unlock(&list->lock);
        end_write_behind(queue, mc_clock_now() + drain_time);
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
    queue->last = &queue->first;
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
    waiting_put *put = copy_put(tiles, count, queue->rules.longest);
    pthread_mutex_lock(&queue->lock);
    bool fits = atomic_load(&queue->end) == 0 && queue->bytes + put->bytes <= (size_t)queue->rules.most_bytes &&
                queue->tiles + count <= MOST_WAITING;
    if (fits) {
        for (int i = 0; i < count; i++)
            drop_waiting_tiles(queue, &tiles[i].key);
        *queue->last = put;
        queue->last = &put->next;
        queue->bytes += put->bytes;
        queue->tiles += count;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!fits) {
        for (int i = 0; i < count; i++)
            mc_buf_unref(put->tiles[i].data);
        apr_pool_destroy(put->pool);
    }
    return fits;
}

bool
mc_write_behind_get(mc_tile **tile, mc_write_behind *queue, const mc_tile_key *key, apr_pool_t *pool)
{
    waiting_put *put;
    pthread_mutex_lock(&queue->lock);
    const mc_tile_write *found = find_waiting_tile(&put, queue, key);
    if (found != NULL && tile != NULL)
        *tile = mc_tile_create(mc_buf_attach(mc_buf_ref(found->data), pool), put->made, pool);
    pthread_mutex_unlock(&queue->lock);
    return found != NULL;
}

void
mc_write_behind_forget(mc_write_behind *queue, const mc_tile_key *keys, int count, mc_ctx *ctx)
{
    const apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, one_attempt);
    pthread_mutex_lock(&queue->lock);
    for (int i = 0; i < count; i++) {
        drop_waiting_tiles(queue, &keys[i]);
        while (is_being_stored(queue, &keys[i]) &&
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

uint64_t
mc_write_behinds_waiting(mc_write_behinds *queues)
{
    uint64_t bytes = 0;
    if (queues == NULL)
        return 0;
    pthread_mutex_lock(&queues->lock);
    for (mc_write_behind *queue = queues->first; queue != NULL; queue = queue->next) {
        pthread_mutex_lock(&queue->lock);
        bytes += queue->bytes;
        pthread_mutex_unlock(&queue->lock);
    }
    pthread_mutex_unlock(&queues->lock);
    return bytes;
}
