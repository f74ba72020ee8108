/* See exporter.h. */
#include "telemetry/exporter.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/seldom.h"
#include "base/thread.h"
#include "http/http.h"
#include "telemetry/telemetry_counters.h"
#include "text/text.h"

/* Microseconds: that traces wait for others, that a request to the receiver may take, between attempts at first and at
 * most, and that a process sends what is left when it ends. */
static const apr_interval_time_t gathering = APR_USEC_PER_SEC, one_request = 10 * APR_USEC_PER_SEC,
                                 first_pause = APR_USEC_PER_SEC, longest_pause = 30 * APR_USEC_PER_SEC,
                                 ending_time = 2 * APR_USEC_PER_SEC;
enum { QUEUE_TRACES = 2048, QUEUE_BYTES = 8 << 20, BATCH_TRACES = 512, BATCH_BYTES = 2 << 20, ATTEMPTS = 5 };
enum { ANSWER_BYTES = 64 << 10, HEADERS_MAX = 32 };

struct mc_export_target {
    atomic_uint references;
    char *url, *service_name;
    char *names[HEADERS_MAX], *values[HEADERS_MAX];
    int headers;
};

typedef struct export_item {
    struct export_item *next;
    mc_export_target *target;
    mc_otlp_bytes spans;
} export_item;

typedef struct export_queue {
    export_item *first, *last;
    int count;
    size_t bytes;
} export_queue;

struct mc_exporter {
    mc_process *process;
    _Atomic int64_t second; /* of mc_clock_now(), to which `begun` belongs */
    atomic_int begun;       /* traces */
    pthread_mutex_t lock;   /* of the rest */
    pthread_cond_t changed; /* the queue, or the end */
    export_queue queue;
    bool running;
    pid_t owner; /* process of the thread */
    pthread_t thread;
    _Atomic apr_time_t end; /* when the thread has to be done; 0: not yet known */
    mc_seldom told;
};

/* --- targets ------------------------------------------------------------------------------------------------------ */

mc_export_target *
mc_export_target_create(const char *url, const apr_table_t *headers, const char *service_name)
{
    mc_export_target *target = calloc(1, sizeof(*target));
    MC_ASSERT(target != NULL);
    atomic_init(&target->references, 1);
    target->url = strdup(url);
    target->service_name = strdup(service_name);
    const apr_array_header_t *items = headers == NULL ? NULL : apr_table_elts(headers);
    for (int i = 0; items != NULL && i < items->nelts && i < HEADERS_MAX; i++) {
        const apr_table_entry_t *item = &APR_ARRAY_IDX(items, i, apr_table_entry_t);
        target->names[i] = strdup(item->key);
        target->values[i] = strdup(item->val);
        target->headers = i + 1;
    }
    return target;
}

void
mc_export_target_unref(mc_export_target *target)
{
    if (target == NULL || atomic_fetch_sub_explicit(&target->references, 1, memory_order_acq_rel) > 1)
        return;
    for (int i = 0; i < target->headers; i++) {
        free(target->names[i]);
        free(target->values[i]);
    }
    free(target->url);
    free(target->service_name);
    free(target);
}

/* --- the queue, with the lock held -------------------------------------------------------------------------------- */

static void
append_export_item(export_queue *queue, export_item *item)
{
    *(queue->last == NULL ? &queue->first : &queue->last->next) = item;
    queue->last = item;
    queue->count++;
    queue->bytes += item->spans.size;
}

static export_item *
take_first_item(export_queue *queue)
{
    export_item *item = queue->first;
    queue->first = item->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->count--;
    queue->bytes -= item->spans.size;
    item->next = NULL;
    return item;
}

static void
free_export_item(export_item *item)
{
    mc_export_target_unref(item->target);
    free(item->spans.data);
    free(item);
}

static void
free_export_queue(export_queue *queue)
{
    while (queue->first != NULL)
        free_export_item(take_first_item(queue));
}

/* The traces of one target that are sent together. */
static export_queue
take_batch(export_queue *queue)
{
    export_queue batch = { 0 };
    const mc_export_target *target = queue->first->target;
    while (queue->first != NULL && queue->first->target == target && batch.count < BATCH_TRACES &&
           (batch.count == 0 || batch.bytes + queue->first->spans.size <= BATCH_BYTES))
        append_export_item(&batch, take_first_item(queue));
    return batch;
}

/* --- sending, on the thread ----------------------------------------------------------------------------------------
 */

static bool
is_exporter_late(void *baton)
{
    const apr_time_t end = atomic_load(&((mc_exporter *)baton)->end);
    return end != 0 && mc_clock_now() >= end;
}

static const apr_table_t *
target_headers(const mc_export_target *target, apr_pool_t *pool)
{
    apr_table_t *headers = apr_table_make(pool, target->headers + 1);
    for (int i = 0; i < target->headers; i++)
        apr_table_setn(headers, target->names[i], target->values[i]);
    apr_table_setn(headers, "Content-Type", "application/x-protobuf");
    return headers;
}

/* Whether the receiver may take the same request later (OTLP, Failures: retryable status codes). */
static bool
is_worth_repeating(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Seconds that an answer asks to wait, as microseconds; 0: it does not. */
static apr_interval_time_t
asked_pause(const mc_http_reply *reply)
{
    int seconds;
    const char *after = reply->headers == NULL ? NULL : apr_table_get(reply->headers, "Retry-After");
    return after != NULL && mc_parse_int(&seconds, after, 1, 60) ? seconds * APR_USEC_PER_SEC : 0;
}

/* True: it is settled, whether the traces were taken (*error MC_OK) or never will be. *pause: before the next attempt.
 */
static bool
attempt_export(mc_error **error, apr_interval_time_t *pause, mc_exporter *exporter, const export_queue *batch,
               mc_ctx *ctx)
{
    mc_otlp_request request;
    mc_http_reply reply = { 0 };
    mc_otlp_request_begin(&request, batch->first->target->service_name);
    for (const export_item *item = batch->first; item != NULL; item = item->next)
        mc_otlp_request_append(&request, item->spans.data, item->spans.size);
    mc_otlp_request_end(&request);
    const mc_http_call call = {
        .method = "POST",
        .url = batch->first->target->url,
        .headers = target_headers(batch->first->target, ctx->pool),
        .body = request.bytes.data,
        .body_size = request.bytes.size,
        .connect_timeout = 5,
        .timeout = (double)one_request / APR_USEC_PER_SEC,
        .max_response = ANSWER_BYTES,
        .no_redirects = true,
        .apart = true,
    };
    *error = request.bytes.lost ? mc_error_create(ctx->pool, MC_ERR_LIMIT, "there is no memory for the traces")
                                : mc_http_send(&reply, exporter->process->http, &call, ctx, ctx->pool);
    free(request.bytes.data);
    if (*error != MC_OK)
        return request.bytes.lost;
    if (reply.status >= 200 && reply.status < 300)
        return true;
    *error =
        mc_error_create(ctx->pool, MC_ERR_UPSTREAM, "the receiver of traces answered with status %d", reply.status);
    *pause = asked_pause(&reply);
    return !is_worth_repeating(reply.status);
}

static void
tell_lost_traces(mc_exporter *exporter, int count, const mc_error *error, const mc_ctx *ctx)
{
    unsigned unsaid;
    mc_count(exporter->process->metrics, MC_COUNT_traces_dropped_total, (uint64_t)count);
    if (mc_seldom_due(&exporter->told, &unsaid))
        mc_log_write(ctx, MC_LOG_WARN, "%d traces are lost that could not be sent: %s", count,
                     mc_error_chain(error, ctx->pool));
}

/* With the lock held. Waits for the pause, or for the end. */
static void
wait_for_attempt(mc_exporter *exporter, apr_interval_time_t pause)
{
    const apr_time_t until = mc_clock_now() + pause;
    while (atomic_load(&exporter->end) == 0 && mc_clock_wait(&exporter->changed, &exporter->lock, until))
        continue;
}

/* With the lock held, which is given up meanwhile. */
static void
send_batch(mc_exporter *exporter, const export_queue *batch, mc_ctx *ctx)
{
    mc_error *error = MC_OK;
    bool settled = false;
    for (int attempt = 0; !settled && attempt < ATTEMPTS && !is_exporter_late(exporter); attempt++) {
        apr_interval_time_t pause = 0;
        bool ending = atomic_load(&exporter->end) != 0;
        pthread_mutex_unlock(&exporter->lock);
        apr_pool_clear(ctx->pool);
        ctx->deadline = mc_clock_now() + one_request;
        settled = attempt_export(&error, &pause, exporter, batch, ctx);
        pthread_mutex_lock(&exporter->lock);
        if (!settled && ending)
            break;
        if (!settled && attempt + 1 < ATTEMPTS)
            wait_for_attempt(exporter, pause != 0 ? pause : mc_backoff(attempt, first_pause, longest_pause));
    }
    if (error == MC_OK && settled)
        mc_count(exporter->process->metrics, MC_COUNT_traces_exported_total, (uint64_t)batch->count);
    else if (error == MC_OK)
        error = mc_error_create(ctx->pool, MC_ERR_UNAVAILABLE, "the process ends");
    if (error != MC_OK)
        tell_lost_traces(exporter, batch->count, error, ctx);
}

/* With the lock held: until there are enough for a batch, or the first one has waited long enough. */
static void
gather_traces(mc_exporter *exporter)
{
    const apr_time_t until = mc_clock_now() + gathering;
    while (atomic_load(&exporter->end) == 0 && exporter->queue.count < BATCH_TRACES &&
           mc_clock_wait(&exporter->changed, &exporter->lock, until))
        continue;
}

static void *
run_exporter(void *baton)
{
    mc_exporter *exporter = baton;
    mc_ctx ctx = {
        .process = exporter->process, .log = &mc_log_stderr, .abandoned = is_exporter_late, .abandoned_baton = exporter
    };
    pthread_setname_np(pthread_self(), "mapcache-traces");
    apr_pool_create_unmanaged_ex(&ctx.pool, mc_memory_exhausted, NULL);
    pthread_mutex_lock(&exporter->lock);
    for (;;) {
        while (exporter->queue.first == NULL && atomic_load(&exporter->end) == 0)
            pthread_cond_wait(&exporter->changed, &exporter->lock);
        if (exporter->queue.first == NULL)
            break;
        gather_traces(exporter);
        export_queue batch = take_batch(&exporter->queue);
        send_batch(exporter, &batch, &ctx);
        free_export_queue(&batch);
    }
    pthread_mutex_unlock(&exporter->lock);
    apr_pool_destroy(ctx.pool);
    return NULL;
}

/* With the lock held. */
static void
start_exporter(mc_exporter *exporter)
{
    exporter->running = mc_thread_start(&exporter->thread, NULL, run_exporter, exporter) == 0;
    exporter->owner = getpid();
}

mc_exporter *
mc_exporter_create(mc_process *process)
{
    mc_exporter *exporter = calloc(1, sizeof(*exporter));
    MC_ASSERT(exporter != NULL);
    exporter->process = process;
    pthread_mutex_init(&exporter->lock, NULL);
    mc_clock_condition(&exporter->changed);
    return exporter;
}

void
mc_exporter_destroy(mc_exporter *exporter)
{
    if (exporter == NULL)
        return;
    if (exporter->running && exporter->owner == getpid()) {
        pthread_mutex_lock(&exporter->lock);
        atomic_store(&exporter->end, mc_clock_now() + ending_time);
        pthread_cond_broadcast(&exporter->changed);
        pthread_mutex_unlock(&exporter->lock);
        pthread_join(exporter->thread, NULL);
    }
    free_export_queue(&exporter->queue);
    if (!exporter->running || exporter->owner == getpid()) {
        pthread_cond_destroy(&exporter->changed);
        pthread_mutex_destroy(&exporter->lock);
    }
    free(exporter);
}

bool
mc_exporter_lets_in(mc_exporter *exporter, int most)
{
    const int64_t now = apr_time_sec(mc_clock_now());
    int64_t second = atomic_load_explicit(&exporter->second, memory_order_relaxed);
    if (second != now && atomic_compare_exchange_strong(&exporter->second, &second, now))
        atomic_store(&exporter->begun, 0);
    return atomic_fetch_add(&exporter->begun, 1) < most || most == 0;
}

void
mc_exporter_push(mc_exporter *exporter, mc_export_target *target, mc_otlp_bytes spans)
{
    export_item *item = spans.lost ? NULL : malloc(sizeof(*item));
    pthread_mutex_lock(&exporter->lock);
    if (!exporter->running)
        start_exporter(exporter);
    const bool taken = item != NULL && exporter->running && exporter->queue.count < QUEUE_TRACES &&
                       exporter->queue.bytes + spans.size <= QUEUE_BYTES;
    if (taken) {
        atomic_fetch_add_explicit(&target->references, 1, memory_order_relaxed);
        *item = (export_item){ .target = target, .spans = spans };
        append_export_item(&exporter->queue, item);
        if (exporter->queue.count == 1 || exporter->queue.count == BATCH_TRACES)
            pthread_cond_broadcast(&exporter->changed);
    }
    pthread_mutex_unlock(&exporter->lock);
    if (taken)
        return;
    free(item);
    free(spans.data);
    mc_count(exporter->process->metrics, MC_COUNT_traces_dropped_total, 1);
}
