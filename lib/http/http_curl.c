/*
 * The module mapcache-curl.so: HTTP by libcurl. Calls run on a line: a multi handle, which keeps its connections. Idle
 * lines are kept by origin, so that connections live on; names and TLS sessions are shared. Connections are not shared
 * between lines: libcurl does not allow that between threads. Several calls together run on a wide line, which has a
 * connection for each of them, as far as there are enough.
 */
#include <apr_strings.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/http_engine.h"
#include "http/http_transfer.h"

enum {
    POLL_MS = 200,            /* so late at most does a request notice that its client has gone */
    LINE_CONNECTIONS = 2,     /* the origin and one that it redirects to */
    IDLE_IN_WIDE_LINES = 16,  /* connections that are kept in them, for each line that may be idle */
    BUSY_IN_WIDE_LINES = 256, /* connections of all threads; one that comes late gets few */
    FEW_CONNECTIONS = 4,
    ORIGIN_LENGTH = 256,
};

typedef struct header_line {
    CURLM *multi;
    int width;                  /* connections that it may have */
    char origin[ORIGIN_LENGTH]; /* "https://host:port", cut */
    struct header_line *next;
} header_line;

struct mc_http_engine {
    int max_idle;
    char *ca_bundle;          /* CURL_CA_BUNDLE when the engine was made, or NULL */
    pthread_mutex_t lock;     /* of the next five */
    header_line *idle;        /* latest first */
    int idle_count;           /* narrow ones */
    int idle_wide, busy_wide; /* connections of wide ones */
    CURLSH *share;
    pthread_mutex_t share_locks[CURL_LOCK_DATA_LAST];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void
init_curl(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void
lock_share(CURL *easy, curl_lock_data data, curl_lock_access access, void *baton)
{
    (void)easy;
    (void)access;
    mc_http_engine *engine = baton;
    pthread_mutex_lock(&engine->share_locks[data]);
}

static void
unlock_share(CURL *easy, curl_lock_data data, void *baton)
{
    (void)easy;
    mc_http_engine *engine = baton;
    pthread_mutex_unlock(&engine->share_locks[data]);
}

static void
close_line(header_line *l)
{
    curl_multi_cleanup(l->multi);
    free(l);
}

static header_line *
open_line(void)
{
    header_line *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->multi = curl_multi_init();
    if (l->multi == NULL) {
        free(l);
        return NULL;
    }
    return l;
}

static void
destroy_curl_engine(mc_http_engine *engine)
{
    while (engine->idle != NULL) {
        header_line *next = engine->idle->next;
        close_line(engine->idle);
        engine->idle = next;
    }
    curl_share_cleanup(engine->share);
    for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
        pthread_mutex_destroy(&engine->share_locks[i]);
    pthread_mutex_destroy(&engine->lock);
    free(engine->ca_bundle);
    free(engine);
}

static mc_http_engine *
create_curl_engine(int max_idle)
{
    pthread_once(&curl_once, init_curl);
    CURLSH *share = curl_ready == CURLE_OK ? curl_share_init() : NULL;
    mc_http_engine *engine = share != NULL ? calloc(1, sizeof(*engine)) : NULL;
    if (engine == NULL) {
        if (share != NULL)
            curl_share_cleanup(share);
        return NULL;
    }
    engine->max_idle = max_idle;
    engine->share = share;
    const char *bundle = getenv("CURL_CA_BUNDLE");
    engine->ca_bundle = bundle == NULL || *bundle == '\0' ? NULL : strdup(bundle);
    pthread_mutex_init(&engine->lock, NULL);
    for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
        pthread_mutex_init(&engine->share_locks[i], NULL);
    curl_share_setopt(share, CURLSHOPT_LOCKFUNC, lock_share);
    curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, unlock_share);
    curl_share_setopt(share, CURLSHOPT_USERDATA, engine);
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    return engine;
}

/* Scheme, host and port of a URL. */
static void
origin_of(char origin[ORIGIN_LENGTH], const char *url)
{
    const char *host = strstr(url, "://");
    size_t length = host == NULL ? 0 : (size_t)(host - url) + 3;
    length += strcspn(url + length, "/?#");
    apr_cpystrn(origin, url, length < ORIGIN_LENGTH ? length + 1 : ORIGIN_LENGTH);
}

static bool
is_wide(const header_line *l)
{
    return l->width > LINE_CONNECTIONS;
}

/* Adds the line to the idle ones, or takes it out (sign -1). */
static void
count_idle_line(mc_http_engine *engine, const header_line *l, int sign)
{
    if (is_wide(l))
        engine->idle_wide += sign * l->width;
    else
        engine->idle_count += sign;
}

/* Where the idle line to that origin stands that is best for so many connections: of the same sort, else any. *last:
 * where the narrow one stands that has been idle longest. */
static header_line **
find_idle_line(header_line ***last, mc_http_engine *engine, const char *origin, bool wide)
{
    header_line **other = NULL;
    *last = NULL;
    for (header_line **at = &engine->idle; *at != NULL; at = &(*at)->next) {
        if (!is_wide(*at))
            *last = at;
        if (strcmp((*at)->origin, origin) != 0)
            continue;
        if (is_wide(*at) == wide)
            return at;
        other = other == NULL ? at : other;
    }
    return other;
}

/* How many connections a line gets that has so many calls, at most `most` at a time. */
static int
width_of_line(const mc_http_engine *engine, int calls, int most)
{
    int room = (BUSY_IN_WIDE_LINES - engine->busy_wide) / 2;
    int width = calls < most || most <= 0 ? calls : most;
    width = width < room || width <= FEW_CONNECTIONS ? width : room > FEW_CONNECTIONS ? room : FEW_CONNECTIONS;
    return width > LINE_CONNECTIONS ? width : LINE_CONNECTIONS;
}

/* An idle line to that origin; else, once the bound is reached, the one that has been idle longest; else a new one. */
static header_line *
acquire_idle_line(mc_http_engine *engine, const char *origin, int calls, int most)
{
    pthread_mutex_lock(&engine->lock);
    int width = width_of_line(engine, calls, most);
    header_line **last;
    header_line **found = find_idle_line(&last, engine, origin, width > LINE_CONNECTIONS);
    if (found == NULL && engine->idle_count >= engine->max_idle)
        found = last;
    header_line *taken = NULL;
    if (found != NULL) {
        taken = *found;
        *found = taken->next;
        count_idle_line(engine, taken, -1);
        width = width > taken->width ? width : taken->width; /* what is open stays open */
    }
    if (width > LINE_CONNECTIONS)
        engine->busy_wide += width;
    pthread_mutex_unlock(&engine->lock);
    if (taken == NULL)
        taken = open_line();
    if (taken == NULL) {
        pthread_mutex_lock(&engine->lock);
        engine->busy_wide -= width > LINE_CONNECTIONS ? width : 0;
        pthread_mutex_unlock(&engine->lock);
        return NULL;
    }
    taken->width = width;
    curl_multi_setopt(taken->multi, CURLMOPT_MAXCONNECTS, (long)width);
    curl_multi_setopt(taken->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)width);
    apr_cpystrn(taken->origin, origin, ORIGIN_LENGTH);
    return taken;
}

static void
give_line(mc_http_engine *engine, header_line *l, bool usable)
{
    pthread_mutex_lock(&engine->lock);
    bool room = is_wide(l) ? engine->idle_wide + l->width <= engine->max_idle * IDLE_IN_WIDE_LINES
                           : engine->idle_count < engine->max_idle;
    if (is_wide(l))
        engine->busy_wide -= l->width;
    if (usable && room) {
        l->next = engine->idle;
        engine->idle = l;
        count_idle_line(engine, l, 1);
    }
    pthread_mutex_unlock(&engine->lock);
    if (!usable || !room)
        close_line(l);
}

/* Calls under way on one line. */
typedef struct line_batch {
    header_line *line;
    mc_http_settings settings;
    mc_http_exchange *exchanges;
    mc_http_transfer *transfers;
    int count, left;
    mc_ctx *ctx;
    apr_pool_t *pool;
} line_batch;

/* Sends the next request of a call; a call that cannot be sent has ended. */
static void
start_transfer(line_batch *batch, mc_http_transfer *t)
{
    mc_error **error = &batch->exchanges[t - batch->transfers].error;
    *error = mc_http_transfer_prepare(t, &batch->settings);
    if (*error == MC_OK && curl_multi_add_handle(batch->line->multi, t->easy) != CURLM_OK)
        (void)mc_http_transfer_ended(error, t, CURLE_FAILED_INIT);
    if (*error != MC_OK)
        batch->left--;
}

static void
finish_transfer(line_batch *batch, mc_http_transfer *t, CURLcode code)
{
    curl_multi_remove_handle(batch->line->multi, t->easy);
    if (mc_http_transfer_ended(&batch->exchanges[t - batch->transfers].error, t, code))
        start_transfer(batch, t);
    else
        batch->left--;
}

/* Ends what is still under way. */
static void
stop_transfers(line_batch *batch, CURLcode code, bool gone)
{
    for (int i = 0; i < batch->count; i++) {
        mc_http_transfer *t = &batch->transfers[i];
        if (t->easy == NULL)
            continue;
        if (gone)
            t->error = mc_error_create(batch->pool, MC_ERR_UNAVAILABLE, "the client has gone");
        finish_transfer(batch, t, code);
    }
}

static void
take_ended_transfers(line_batch *batch)
{
    int more;
    for (CURLMsg *message; (message = curl_multi_info_read(batch->line->multi, &more)) != NULL;) {
        mc_http_transfer *t = NULL;
        CURLcode code = message->data.result;
        if (message->msg == CURLMSG_DONE &&
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t) == CURLE_OK && t != NULL)
            finish_transfer(batch, t, code);
    }
}

/* Waits until all have ended, the time is over or the client has gone. */
static void
drive_line(line_batch *batch)
{
    apr_time_t end = 0;
    for (int i = 0; i < batch->count; i++)
        end = batch->transfers[i].end > end ? batch->transfers[i].end : end;
    int running;
    while (batch->left > 0 && curl_multi_perform(batch->line->multi, &running) == CURLM_OK) {
        int before = batch->left;
        take_ended_transfers(batch);
        apr_time_t left = end - mc_clock_now();
        if (batch->left == 0)
            return;
        if (left <= 0)
            return stop_transfers(batch, CURLE_OPERATION_TIMEDOUT, false);
        if (mc_ctx_abandoned(batch->ctx))
            return stop_transfers(batch, CURLE_ABORTED_BY_CALLBACK, true);
        if (batch->left != before || running < batch->left)
            continue; /* there may be room for others, or a redirect to follow */
        int wait_ms = left / 1000 < POLL_MS ? (int)(left / 1000) + 1 : POLL_MS;
        curl_multi_poll(batch->line->multi, NULL, 0, wait_ms, NULL);
    }
    stop_transfers(batch, CURLE_RECV_ERROR, false);
}

static void
engine_send_all(mc_http_engine *engine, mc_http_exchange *exchanges, int count, int connections, mc_ctx *ctx,
                apr_pool_t *pool)
{
    char origin[ORIGIN_LENGTH];
    origin_of(origin, exchanges[0].call.url);
    line_batch batch = {
        .line = acquire_idle_line(engine, origin, count, connections),
        .settings = { engine->share, engine->ca_bundle, count > 1 },
        .exchanges = exchanges,
        .transfers = apr_pcalloc(pool, sizeof(mc_http_transfer) * (size_t)count),
        .count = count,
        .left = count,
        .ctx = ctx,
        .pool = pool,
    };
    bool usable = false;
    for (int i = 0; i < count && batch.line == NULL; i++)
        exchanges[i].error = mc_error_create(pool, MC_ERR_NO_MEMORY, "no memory for a request to an origin");
    if (batch.line == NULL)
        return;
    for (int i = 0; i < count; i++) {
        batch.transfers[i] = mc_http_transfer_begin(&exchanges[i].call, &exchanges[i].reply, ctx, pool);
        start_transfer(&batch, &batch.transfers[i]);
    }
    drive_line(&batch);
    for (int i = 0; i < count; i++)
        usable = usable || exchanges[i].error == MC_OK;
    give_line(engine, batch.line, usable);
}

const mc_http_engine_ops mc_http_curl_ops = { create_curl_engine, destroy_curl_engine, engine_send_all };
