/* See listener.h. */
#include "changes/listener.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "changes/follower.h"
#include "changes/unsettled.h"

/* Microseconds: from one read to the next at least; for a short answer; for reading a long log. */
#define READ_EACH (20 * 1000)
#define ANSWER_TIME (10 * APR_USEC_PER_SEC)
#define READ_TIME (120 * APR_USEC_PER_SEC)
/* How long names of tables keep their object ids without a look. */
#define NAMES_TIME (60 * APR_USEC_PER_SEC)
#define FIRST_PAUSE (APR_USEC_PER_SEC / 4)

struct mc_listener {
    mc_follower *follower;
    char *connection, *reader;
    apr_interval_time_t poll;
    mc_listener_client client;
    _Atomic bool begin_again;
    _Atomic apr_time_t read;
    _Atomic apr_time_t oldest; /* mc_listener_unsettled */
    /* Of the thread alone. */
    char *snapshot, *started; /* the cursor; NULL: it is not known */
    mc_unsettled unsettled;
};

/* One connection. */
typedef struct listening {
    mc_listener *listener;
    mc_follower *follower;
    mc_postgres_session *session;
    mc_ctx *ctx;
    apr_pool_t *names_pool;    /* of the next two */
    apr_array_header_t *found; /* mc_log_name */
    apr_hash_t *known;         /* object ids: watched, or known to be none of ours */
    unsigned number;           /* of the names */
    apr_time_t resolved;       /* mc_clock_now() */
} listening;

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
    if (batch->rows > 0 || batch->lost)
        mc_unsettled_add(&listener->unsettled, snapshot, time);
    mc_unsettled_settle(&listener->unsettled, batch->applied);
    atomic_store(&listener->oldest, mc_unsettled_oldest(&listener->unsettled));
}

/* Where the configuration has changed meanwhile, the names are looked up again. */
static mc_error *
hand_over_batch(apr_time_t *time, listening *at, const mc_log_batch *batch, apr_pool_t *pool)
{
    const mc_listener_client *client = &at->listener->client;
    do
        MC_TRY(settle_names(at, batch));
    while (!client->take(time, client->baton, at->listener->connection, batch, at->found, at->number, pool));
    return MC_OK;
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
    apr_time_t time = 0;
    if (error == MC_OK)
        error = hand_over_batch(&time, at, &batch, pool);
    if (error == MC_OK) {
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
        mc_follower_note_success(at->follower, at->ctx);
        at->ctx->deadline = mc_clock_now() + listener->poll;
        MC_TRY(mc_postgres_session_wait(&notified, at->session));
        apr_interval_time_t since = mc_clock_now() - begun;
        if (notified && since < READ_EACH && !mc_wait_pause(READ_EACH - since, at->ctx))
            return mc_error_create(at->ctx->pool, MC_ERR_UNAVAILABLE, "the process ends");
    }
}

static mc_error *
follow_log(void *baton, mc_follower *follower, mc_postgres_session *session, mc_ctx *ctx)
{
    listening at = { .listener = baton, .follower = follower, .session = session, .ctx = ctx };
    apr_pool_create(&at.names_pool, ctx->pool);
    return follow_connection(&at);
}

mc_listener *
mc_listener_start(const char *connection, const char *reader, apr_interval_time_t poll,
                  const mc_listener_client *client, mc_process *process, const mc_log *log)
{
    mc_listener *listener = calloc(1, sizeof(*listener));
    MC_ASSERT(listener != NULL);
    set_text(&listener->connection, connection);
    set_text(&listener->reader, reader);
    listener->poll = poll;
    listener->client = *client;
    const mc_follower_work work = { .follow = follow_log,
                                    .baton = listener,
                                    .application = "mapcache-changes",
                                    .first_pause = FIRST_PAUSE,
                                    .level = MC_LOG_WARN,
                                    .failure = "the change log of a database is not followed now (mapcache invalidate "
                                               "--sql makes one)",
                                    .again = "the change log of a database is followed again" };
    listener->follower = mc_follower_start(connection, &work, process, log);
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
    mc_follower_stop(listener->follower);
    mc_unsettled_clear(&listener->unsettled);
    free(listener->connection);
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
    return mc_follower_succeeds(listener->follower);
}

apr_time_t
mc_listener_last_read(const mc_listener *listener)
{
    return atomic_load(&listener->read);
}

apr_time_t
mc_listener_unsettled(const mc_listener *listener)
{
    return atomic_load(&listener->oldest);
}
