/* See listener.h. */
#include "changes/listener.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/wait.h"

/* Microseconds: from one read to the next at least; for a connection and a short answer; for reading a long log. */
#define READ_EACH (20 * 1000)
#define ANSWER_TIME (10 * APR_USEC_PER_SEC)
#define READ_TIME (120 * APR_USEC_PER_SEC)
/* How long names of tables keep their object ids without a look. */
#define NAMES_TIME (60 * APR_USEC_PER_SEC)
#define FIRST_PAUSE (APR_USEC_PER_SEC / 4)
#define LONGEST_PAUSE (30 * APR_USEC_PER_SEC)

/* What was read and is not applied for good yet. */
typedef struct unsettled_batch {
    struct unsettled_batch *next;
    char *snapshot;  /* that sees all of it */
    apr_time_t time; /* of its marks */
} unsettled_batch;

struct mc_listener {
    char *connection, *named, *reader;
    apr_interval_time_t poll;
    mc_listener_client client;
    mc_process *process;
    const mc_log *log;
    pthread_t thread;
    bool running;
    _Atomic bool stopping, begin_again, connected;
    _Atomic apr_time_t read;
    _Atomic apr_time_t unsettled; /* mc_listener_unsettled */
    /* Of the thread alone. */
    char *snapshot, *started; /* the cursor; NULL: it is not known */
    unsettled_batch *oldest, *newest;
    uint64_t told; /* hash of the failure that was logged last; 0: it works */
};

/* One connection. */
typedef struct listening {
    mc_listener *listener;
    mc_postgres_session *session;
    mc_ctx *ctx;
    apr_pool_t *names_pool;    /* of the next two */
    apr_array_header_t *found; /* mc_log_name */
    apr_hash_t *known;         /* object ids: watched, or known to be none of ours */
    unsigned number;           /* of the names */
    apr_time_t resolved;       /* mc_clock_now() */
} listening;

static bool
is_listener_stopping(void *baton)
{
    return atomic_load_explicit(&((mc_listener *)baton)->stopping, memory_order_relaxed);
}

static void
set_text(char **text, const char *value)
{
    free(*text);
    *text = value == NULL ? NULL : strdup(value);
    MC_ASSERT((*text == NULL) == (value == NULL));
}

static void
know_relation(listening *at, uint32_t relation)
{
    uint32_t *key = apr_pmemdup(at->names_pool, &relation, sizeof(relation));
    apr_hash_set(at->known, key, sizeof(*key), key);
}

/* Asks again which tables the names mean. */
static mc_error *
resolve_names(listening *at)
{
    const mc_listener *listener = at->listener;
    apr_array_header_t *names;
    apr_pool_clear(at->names_pool);
    at->known = apr_hash_make(at->names_pool);
    at->number = listener->client.names(&names, listener->client.baton, listener->connection, at->names_pool);
    at->ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_change_log_resolve(&at->found, names, at->session, at->ctx, at->names_pool));
    for (int i = 0; i < at->found->nelts; i++)
        know_relation(at, APR_ARRAY_IDX(at->found, i, const mc_log_name).relation);
    at->resolved = mc_clock_now();
    return MC_OK;
}

/* A table that nobody knows may have been made, or renamed, a moment ago. */
static mc_error *
settle_names(listening *at, const mc_log_batch *batch)
{
    const mc_listener *listener = at->listener;
    bool again = mc_clock_now() - at->resolved > NAMES_TIME ||
                 listener->client.names_number(listener->client.baton) != at->number;
    for (int i = 0; i < batch->tables->nelts && !again; i++) {
        const mc_log_table *table = &APR_ARRAY_IDX(batch->tables, i, const mc_log_table);
        again = apr_hash_get(at->known, &table->relation, sizeof(table->relation)) == NULL;
    }
    if (!again)
        return MC_OK;
    MC_TRY(resolve_names(at));
    for (int i = 0; i < batch->tables->nelts; i++)
        know_relation(at, APR_ARRAY_IDX(batch->tables, i, const mc_log_table).relation);
    return MC_OK;
}

static mc_error *
find_beginning(listening *at, apr_pool_t *pool)
{
    mc_listener *listener = at->listener;
    const char *snapshot;
    bool again = atomic_exchange(&listener->begin_again, false);
    if (listener->snapshot != NULL && !again)
        return MC_OK;
    at->ctx->deadline = mc_clock_now() + ANSWER_TIME;
    mc_error *error = mc_change_log_find_reader(&snapshot, listener->reader, at->session, at->ctx, pool);
    if (error != MC_OK) {
        atomic_store(&listener->begin_again, again);
        return error;
    }
    set_text(&listener->snapshot, snapshot);
    return MC_OK;
}

/* The batch waits until the readers have applied it for good; those that they have, wait no more. */
static void
note_batch(mc_listener *listener, const mc_log_batch *batch, const char *snapshot, apr_time_t time)
{
    if (batch->rows > 0 || batch->lost) {
        unsettled_batch *added = calloc(1, sizeof(*added));
        MC_ASSERT(added != NULL);
        added->time = time;
        set_text(&added->snapshot, snapshot);
        if (listener->oldest == NULL)
            listener->oldest = added;
        else
            listener->newest->next = added;
        listener->newest = added;
    }
    while (listener->oldest != NULL && mc_log_covers(batch->applied, listener->oldest->snapshot)) {
        unsettled_batch *settled = listener->oldest;
        listener->oldest = settled->next;
        free(settled->snapshot);
        free(settled);
    }
    atomic_store(&listener->unsettled, listener->oldest == NULL ? 0 : listener->oldest->time);
}

/* Reads what is new, and hands it over. The cursor moves once that is done. */
static mc_error *
read_news(listening *at)
{
    mc_listener *listener = at->listener;
    apr_pool_t *pool;
    mc_log_batch batch;
    apr_pool_create(&pool, at->ctx->pool);
    mc_error *error = find_beginning(at, pool);
    mc_log_cursor cursor = { listener->snapshot, listener->started };
    at->ctx->deadline = mc_clock_now() + READ_TIME;
    if (error == MC_OK)
        error = mc_change_log_read(&batch, &cursor, listener->reader, at->session, at->ctx, pool);
    if (error == MC_OK)
        error = settle_names(at, &batch);
    if (error == MC_OK) {
        apr_time_t time = listener->client.take(listener->client.baton, listener->connection, &batch, at->found, pool);
        note_batch(listener, &batch, cursor.snapshot, time);
        set_text(&listener->snapshot, cursor.snapshot);
        set_text(&listener->started, cursor.started);
        atomic_store(&listener->read, mc_clock_now());
    }
    error = mc_error_copy(error, at->names_pool);
    apr_pool_destroy(pool);
    return error;
}

/* Until the connection ends. */
static mc_error *
follow_connection(listening *at)
{
    mc_listener *listener = at->listener;
    at->ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_change_log_run("LISTEN mapcache_changes", NULL, 0, at->session, at->ctx, at->ctx->pool));
    MC_TRY(resolve_names(at));
    for (;;) {
        bool notified;
        apr_time_t begun = mc_clock_now();
        MC_TRY(read_news(at));
        if (!atomic_exchange(&listener->connected, true) && listener->told != 0) {
            listener->told = 0;
            mc_log_write(at->ctx, MC_LOG_NOTICE, "the change log of a database is followed again");
        }
        at->ctx->deadline = mc_clock_now() + listener->poll;
        MC_TRY(mc_postgres_session_wait(&notified, at->session));
        apr_interval_time_t since = mc_clock_now() - begun;
        if (notified && since < READ_EACH && !mc_wait_pause(READ_EACH - since, at->ctx))
            return mc_error_create(at->ctx->pool, MC_ERR_UNAVAILABLE, "the process ends");
    }
}

static mc_error *
follow_log(mc_listener *listener, mc_ctx *ctx)
{
    listening at = { .listener = listener, .ctx = ctx };
    apr_pool_create(&at.names_pool, ctx->pool);
    ctx->deadline = mc_clock_now() + ANSWER_TIME;
    MC_TRY(mc_postgres_session_open(&at.session, listener->process->postgres, listener->named, ctx, ctx->pool));
    mc_error *error = follow_connection(&at);
    mc_postgres_session_close(at.session);
    return error;
}

/* The same failure is said once. */
static void
tell_listener_failure(mc_listener *listener, const mc_error *error, mc_ctx *ctx)
{
    const char *why = mc_error_chain(error, ctx->pool);
    const uint64_t hash = mc_hash64(why, strlen(why), 0) | 1;
    if (hash != listener->told && !is_listener_stopping(listener))
        mc_log_write(ctx, MC_LOG_WARN,
                     "the change log of a database is not followed now (mapcache invalidate --sql "
                     "makes one): %s",
                     why);
    listener->told = hash;
}

static void *
run_listener(void *baton)
{
    mc_listener *listener = baton;
    apr_allocator_t *allocator;
    apr_pool_t *pool;
    int attempt = 0;
    MC_ASSERT(apr_allocator_create(&allocator) == APR_SUCCESS);
    MC_ASSERT(apr_pool_create_ex(&pool, NULL, mc_memory_exhausted, allocator) == APR_SUCCESS);
    apr_allocator_owner_set(allocator, pool);
    mc_ctx ctx = { .pool = pool,
                   .process = listener->process,
                   .log = listener->log,
                   .abandoned = is_listener_stopping,
                   .abandoned_baton = listener };
    while (!is_listener_stopping(listener)) {
        mc_error *error = follow_log(listener, &ctx);
        if (atomic_exchange(&listener->connected, false))
            attempt = 0;
        if (error != MC_OK)
            tell_listener_failure(listener, error, &ctx);
        apr_pool_clear(pool);
        (void)mc_wait_pause(mc_backoff(attempt++, FIRST_PAUSE, LONGEST_PAUSE), &ctx);
    }
    apr_pool_destroy(pool);
    return NULL;
}

mc_listener *
mc_listener_start(const char *connection, const char *reader, apr_interval_time_t poll,
                  const mc_listener_client *client, mc_process *process, const mc_log *log)
{
    mc_listener *listener = calloc(1, sizeof(*listener));
    apr_pool_t *scratch;
    MC_ASSERT(listener != NULL);
    apr_pool_create(&scratch, NULL);
    set_text(&listener->connection, connection);
    set_text(&listener->named, mc_postgres_named(connection, "mapcache-changes", scratch));
    set_text(&listener->reader, reader);
    apr_pool_destroy(scratch);
    listener->poll = poll;
    listener->client = *client;
    listener->process = process;
    listener->log = log;
    sigset_t all, before; /* signals belong to the host's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    listener->running = pthread_create(&listener->thread, NULL, run_listener, listener) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return listener;
}

void
mc_listener_begin_again(mc_listener *listener)
{
    atomic_store(&listener->begin_again, true);
}

void
mc_listener_stop(mc_listener *listener)
{
    atomic_store(&listener->stopping, true);
    if (listener->running)
        pthread_join(listener->thread, NULL);
    while (listener->oldest != NULL) {
        unsettled_batch *next = listener->oldest->next;
        free(listener->oldest->snapshot);
        free(listener->oldest);
        listener->oldest = next;
    }
    free(listener->connection);
    free(listener->named);
    free(listener->reader);
    free(listener->snapshot);
    free(listener->started);
    free(listener);
}

const char *
mc_listener_connection(const mc_listener *listener)
{
    return listener->connection;
}

bool
mc_listener_connected(const mc_listener *listener)
{
    return atomic_load(&listener->connected);
}

apr_time_t
mc_listener_last_read(const mc_listener *listener)
{
    return atomic_load(&listener->read);
}

apr_time_t
mc_listener_unsettled(const mc_listener *listener)
{
    return atomic_load(&listener->unsettled);
}
