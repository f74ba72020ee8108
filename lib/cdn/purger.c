/* See purger.h. */
#include "cdn/purger.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/references.h"
#include "base/seldom.h"
#include "base/thread.h"
#include "base/wait.h"
#include "base/workers.h"
#include "cdn/cdn_counters.h"
#include "cdn/purge_queue.h"
#include "cdn/purge_request.h"
#include "http/http_address.h"

/* Microseconds between two attempts, at first and at most; that a thread sleeps at most. */
#define FIRST_PAUSE (APR_USEC_PER_SEC / 2)
#define LONGEST_PAUSE (30 * APR_USEC_PER_SEC)
#define LONGEST_SLEEP (60 * APR_USEC_PER_SEC)

/* Connections to a cache that is told addresses. */
enum { CONNECTIONS = 4 };

struct mc_purger {
    _Atomic unsigned references;
    apr_pool_t *pool; /* a root pool, of the copies */
    mc_cdn cdn;
    const char *url, *server;
    mc_process *process;
    const mc_log *log;
    pthread_t thread;
    bool running;
    _Atomic bool stopping;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed, purged;
    mc_purge_queue queue;
    uint64_t sending;       /* serial of the earliest change that is being sent; UINT64_MAX: none is */
    apr_time_t pause_until; /* after a failure */
    apr_time_t failing;     /* since when; 0: it works */
    int attempt;
    mc_seldom lost;
};

/* ---- sending, on the thread */

static bool
is_purger_stopping(void *baton)
{
    return atomic_load_explicit(&((mc_purger *)baton)->stopping, memory_order_relaxed);
}

static void
tell_purge_failure(mc_purger *purger, const mc_error *error, mc_ctx *ctx)
{
    if (purger->failing != 0 || is_purger_stopping(purger))
        return;
    mc_log_write(ctx, MC_LOG_WARN, "cdn \"%s\" (%s) does not take purges now, and may show old tiles until it does: %s",
                 purger->cdn.name, purger->server, mc_error_chain(error, ctx->pool));
}

/* Sends a batch, without the lock. What has failed stays in *batch. Returns the first failure. */
static mc_error *
send_purges(mc_purger *purger, mc_purge_item **batch, mc_ctx *ctx)
{
    int count, taken = 0;
    mc_error *first = MC_OK;
    mc_purge_item *left = NULL, *next;
    const bool keys = mc_cdn_purges_keys(purger->cdn.type);
    mc_http_exchange *exchanges = mc_purge_requests(&count, &purger->cdn, purger->url, *batch, ctx->pool);
    ctx->deadline = mc_clock_now() + (apr_interval_time_t)(2 * purger->cdn.timeout * APR_USEC_PER_SEC);
    mc_http_send_all(exchanges, count, CONNECTIONS, purger->process->http, ctx, ctx->pool);
    for (int i = 0; *batch != NULL; *batch = next, i += keys ? 0 : 1) {
        mc_error *error = mc_purge_answer(&exchanges[i], &purger->cdn, ctx->pool);
        next = (*batch)->next;
        if (error == MC_OK) {
            taken++;
            free(*batch);
            continue;
        }
        first = first == MC_OK ? error : first;
        (*batch)->next = left;
        left = *batch;
    }
    *batch = left;
    const uint64_t failed = first == MC_OK ? 0 : 1;
    mc_count(purger->process->metrics, MC_COUNT_cdn_purged_keys_total, (uint64_t)taken);
    mc_count(purger->process->metrics, MC_COUNT_cdn_purges_total, 1 - failed);
    mc_count(purger->process->metrics, MC_COUNT_cdn_purge_failures_total, failed);
    return first;
}

/* With the lock held. */
static void
note_purge_result(mc_purger *purger, const mc_error *error, mc_ctx *ctx)
{
    if (error != MC_OK) {
        tell_purge_failure(purger, error, ctx);
        purger->failing = purger->failing == 0 ? mc_clock_now() : purger->failing;
        purger->pause_until = mc_clock_now() + mc_backoff(purger->attempt++, FIRST_PAUSE, LONGEST_PAUSE);
        return;
    }
    if (purger->failing != 0)
        mc_log_write(ctx, MC_LOG_NOTICE, "cdn \"%s\" (%s) takes purges again", purger->cdn.name, purger->server);
    purger->failing = purger->pause_until = 0;
    purger->attempt = 0;
}

static uint64_t
oldest_of(const mc_purge_item *batch)
{
    uint64_t oldest = UINT64_MAX;
    for (; batch != NULL; batch = batch->next)
        oldest = batch->serial < oldest ? batch->serial : oldest;
    return oldest;
}

/* With the lock held, which is given up meanwhile. Returns when to look again; 0: once something is added. */
static apr_time_t
purge_once(mc_purger *purger, mc_ctx *ctx)
{
    apr_time_t next, now = mc_clock_now();
    if (now < purger->pause_until)
        return purger->pause_until;
    mc_purge_item *batch = mc_purge_queue_take(&purger->queue, now, purger->cdn.batch, MC_PURGE_REQUEST_BYTES, &next);
    if (batch == NULL)
        return next;
    purger->sending = oldest_of(batch);
    pthread_mutex_unlock(&purger->lock);
    mc_error *error = send_purges(purger, &batch, ctx);
    pthread_mutex_lock(&purger->lock);
    for (mc_purge_item *item = batch, *after; item != NULL; item = after) {
        after = item->next;
        mc_purge_queue_put_back(&purger->queue, item, mc_cdn_purges_keys(purger->cdn.type));
    }
    purger->sending = UINT64_MAX;
    note_purge_result(purger, error, ctx);
    pthread_cond_broadcast(&purger->purged);
    return now;
}

static void *
run_purger(void *baton)
{
    mc_purger *purger = baton;
    apr_pool_t *pool = mc_task_pool_acquire();
    mc_ctx ctx = { .pool = pool,
                   .process = purger->process,
                   .log = purger->log,
                   .abandoned = is_purger_stopping,
                   .abandoned_baton = purger };
    pthread_mutex_lock(&purger->lock);
    while (!is_purger_stopping(purger)) {
        const apr_time_t next = purge_once(purger, &ctx), now = mc_clock_now();
        apr_pool_clear(pool);
        if (next == 0 || next > now)
            (void)mc_clock_wait(&purger->changed, &purger->lock,
                                next == 0 || next > now + LONGEST_SLEEP ? now + LONGEST_SLEEP : next);
    }
    pthread_mutex_unlock(&purger->lock);
    mc_task_pool_release(pool);
    return NULL;
}

/* ---- from other threads */

static void
copy_cdn(mc_purger *purger, const mc_cdn *cdn, const char *url)
{
    purger->cdn = *cdn;
    purger->cdn.name = apr_pstrdup(purger->pool, cdn->name);
    purger->cdn.method = apr_pstrdup(purger->pool, cdn->method);
    purger->cdn.headers = apr_table_clone(purger->pool, cdn->headers);
    purger->cdn.urls = NULL;
    purger->url = apr_pstrdup(purger->pool, url);
    purger->server = mc_http_server_of(purger->url, purger->pool);
}

mc_purger *
mc_purger_start(const mc_cdn *cdn, const char *url, mc_process *process, const mc_log *log)
{
    mc_purger *purger = calloc(1, sizeof(*purger));
    MC_ASSERT(purger != NULL);
    purger->pool = mc_task_pool_acquire();
    atomic_init(&purger->references, 1);
    copy_cdn(purger, cdn, url);
    purger->process = process;
    purger->log = log;
    purger->sending = UINT64_MAX;
    pthread_mutex_init(&purger->lock, NULL);
    mc_clock_condition(&purger->changed);
    mc_clock_condition(&purger->purged);
    return purger;
}

mc_purger *
mc_purger_ref(mc_purger *purger)
{
    mc_references_take(&purger->references);
    return purger;
}

void
mc_purger_unref(mc_purger *purger)
{
    if (!mc_references_drop(&purger->references))
        return;
    mc_purge_queue_clear(&purger->queue);
    pthread_cond_destroy(&purger->changed);
    pthread_cond_destroy(&purger->purged);
    pthread_mutex_destroy(&purger->lock);
    mc_task_pool_release(purger->pool);
    free(purger);
}

void
mc_purger_stop(mc_purger *purger)
{
    mc_purger_lock(purger);
    atomic_store(&purger->stopping, true);
    pthread_cond_broadcast(&purger->changed);
    pthread_cond_broadcast(&purger->purged);
    mc_purger_unlock(purger);
    if (purger->running)
        pthread_join(purger->thread, NULL);
    mc_purger_unref(purger);
}

bool
mc_purger_serves(const mc_purger *purger, const mc_cdn *cdn, const char *url)
{
    return purger->cdn.definition == cdn->definition && strcmp(purger->url, url) == 0;
}

void
mc_purger_lock(mc_purger *purger)
{
    pthread_mutex_lock(&purger->lock);
}

void
mc_purger_unlock(mc_purger *purger)
{
    pthread_mutex_unlock(&purger->lock);
}

void
mc_purger_add(mc_purger *purger, const char *text, bool delayed)
{
    const apr_time_t now = mc_clock_now();
    const apr_time_t due = delayed ? now + (apr_interval_time_t)(purger->cdn.delay * APR_USEC_PER_SEC) : now;
    switch (mc_purge_queue_add(&purger->queue, text, due, mc_cdn_purges_keys(purger->cdn.type))) {
    case MC_PURGE_COARSENED:
        mc_count(purger->process->metrics, MC_COUNT_cdn_purges_coarsened_total, 1);
        break;
    case MC_PURGE_FULL:
        mc_purger_lose(purger, 1);
        break;
    case MC_PURGE_WAITS:
        break;
    }
    if (!purger->running) /* or the system had no thread: tried again */
        purger->running = mc_thread_start(&purger->thread, NULL, run_purger, purger) == 0;
    pthread_cond_signal(&purger->changed);
}

void
mc_purger_lose(mc_purger *purger, int64_t count)
{
    unsigned unsaid;
    mc_count(purger->process->metrics, MC_COUNT_cdn_purges_lost_total, (uint64_t)count);
    if (!mc_seldom_due(&purger->lost, &unsaid))
        return;
    apr_pool_t *scratch;
    apr_pool_create(&scratch, NULL);
    const mc_ctx ctx = { .pool = scratch, .log = purger->log };
    mc_log_write(&ctx, MC_LOG_WARN,
                 "cdn \"%s\" (%s) shows old tiles until it has kept them for their time: too many have changed to name "
                 "each by its address",
                 purger->cdn.name, purger->server);
    apr_pool_destroy(scratch);
}

uint64_t
mc_purger_serial(mc_purger *purger)
{
    mc_purger_lock(purger);
    const uint64_t serial = purger->queue.serial;
    mc_purger_unlock(purger);
    return serial;
}

bool
mc_purger_await(mc_purger *purger, uint64_t serial, mc_ctx *ctx)
{
    bool late = false, done = false;
    mc_purger_lock(purger);
    while (!done && !late && !is_purger_stopping(purger)) {
        done = purger->sending > serial && mc_purge_queue_oldest(&purger->queue) > serial;
        late = !done && mc_wait_condition(&purger->purged, &purger->lock, ctx->deadline, ctx) != MC_WAIT_READY;
    }
    mc_purger_unlock(purger);
    return done;
}

mc_purger_state
mc_purger_look(mc_purger *purger)
{
    mc_purger_lock(purger);
    const mc_purger_state state = { purger->cdn.name, purger->queue.count, purger->failing };
    mc_purger_unlock(purger);
    return state;
}
