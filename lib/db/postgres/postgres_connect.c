/* Connecting to PostgreSQL, up to a session that is set up, without ever blocking in libpq. */
#include <apr_strings.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/semaphore.h"
#include "db/postgres/postgres_private.h"
#include "mapcache/trace.h"
#include "text/text.h"

/* Microseconds without an answer that say something about the server; less may be the request's own hurry. */
#define TELLING_TIME (1 * APR_USEC_PER_SEC)
/* Bytes that a server may send before the connection stands. */
#define GREETING_MAX (INT64_C(64) << 10)
/* Milliseconds that sent bytes may stay unacknowledged: a host that has gone silent ends its connections then. */
#define SILENCE_MS "10000"
/* The least memory of a sort, or of a map of the rows that an index has found: 250,000 pages of a table, 2 GB. The
 * database takes no more of it than it needs. */
#define WORK_MEMORY "16MB"

static void
ignore_notice(void *baton, const char *message)
{
    (void)baton;
    (void)message;
}

static mc_error *
no_connection(const mc_pg_target *target, const char *reason, apr_pool_t *pool)
{
    mc_error *cause = mc_error_create(pool, MC_ERR_UNAVAILABLE, "PostgreSQL (%s): %s", target->label, reason);
    return mc_error_wrap(pool, cause, MC_ERR_UNAVAILABLE, "the database cannot be reached");
}

/* The same wait, no longer than connecting may take. */
static mc_pg_wait
bound_wait(const mc_pg_wait *wait, const mc_pg_target *target)
{
    mc_pg_wait bounded = *wait;
    apr_time_t bound = mc_clock_now() + apr_time_from_sec(target->connect_seconds);
    if (bound < bounded.end)
        bounded.end = bound;
    return bounded;
}

/* Says nothing about the server. */
static mc_error *
no_time_left(apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_UNAVAILABLE, "no time was left to reach the database");
}

/* What the server has sent goes to libpq, unless libpq has not read yet what it got before. */
static mc_error *
hand_greeting(int64_t *arrived, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    if (mc_pg_pump_waiting(connection->pg) > 0)
        return MC_OK;
    MC_TRY(mc_pg_wait_socket(connection, POLLIN, wait));
    *arrived += (int64_t)mc_pg_pump_in(&connection->pump, connection->pg);
    mc_error *error = mc_pg_check_arrived(connection, *arrived, GREETING_MAX, wait);
    return error == MC_OK ? MC_OK : no_connection(connection->target, error->cause->message, wait->pool);
}

/* One turn of the connection's state machine, once the server is ready for it. */
static mc_error *
take_handshake_turn(PostgresPollingStatusType *state, int64_t *arrived, mc_pg_connection *connection,
                    const mc_pg_wait *wait)
{
    if (*state != PGRES_POLLING_READING)
        MC_TRY(mc_pg_wait_socket(connection, POLLOUT, wait));
    else if (!mc_pg_pump_join(&connection->pump, connection->pg))
        return no_connection(connection->target, strerror(errno), wait->pool);
    else
        MC_TRY(hand_greeting(arrived, connection, wait));
    *state = PQconnectPoll(connection->pg);
    mc_pg_pump_follow(&connection->pump, connection->pg);
    while (mc_pg_pump_out(&connection->pump) == MC_PG_OUT_LEFT)
        MC_TRY(mc_pg_wait_socket(connection, POLLOUT, wait));
    return MC_OK;
}

/* Runs the connection's state machine until it stands. An error with a cause says something about the server. */
static mc_error *
shake_hands(mc_pg_connection *connection, const mc_pg_wait *wait, bool *crowded)
{
    PGconn *pg = connection->pg;
    mc_pg_target *target = connection->target;
    apr_time_t begin = mc_clock_now();
    mc_pg_wait bounded = bound_wait(wait, target);
    int64_t arrived = 0;
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (PQstatus(pg) != CONNECTION_BAD && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        mc_error *error = take_handshake_turn(&state, &arrived, connection, &bounded);
        if (error != MC_OK && error->kind == MC_ERR_TIMEOUT && mc_clock_now() - begin < TELLING_TIME)
            return no_time_left(wait->pool);
        if (error != MC_OK && error->kind == MC_ERR_TIMEOUT)
            return no_connection(target, "no answer in time to the attempt to connect", wait->pool);
        MC_TRY(error);
    }
    if (state == PGRES_POLLING_OK)
        return MC_OK;
    const char *words = mc_pg_words(pg, PQerrorMessage(pg), wait->pool);
    /* The only word on a refused connection is this text; in its verbose form it has the SQLSTATE in any language:
     * 53300, too_many_connections. */
    *crowded = strstr(words, " 53300: ") != NULL;
    return no_connection(target, words, wait->pool);
}

const char *
mc_pg_plan_settings(bool by_key)
{
    return by_key ? "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"
                  : "SET plan_cache_mode = force_custom_plan; RESET enable_seqscan";
}

/*
 * What makes rows come in the order of their table: a plan for each box of a map (for any box that could come, the
 * planner expects one row, and takes them from the index one by one), and reading that begins at the beginning, by one
 * process: the rows of several come as they find them. No plan is compiled: of a large table it would be each time, for
 * longer than the query takes. Pages that a statement names are read without the others. The rows that an index finds
 * are noted one by one: where memory does not suffice, whole pages are, and each row of these is compared again. A
 * server that does not know all of these does without. And how many connections it has room for.
 */
static mc_error *
set_up_session(mc_pg_connection *connection, const mc_pg_wait *wait)
{
    PGresult *result = NULL;
    const char *sql =
        apr_pstrcat(wait->pool, "SET synchronize_seqscans = off; ", mc_pg_plan_settings(connection->by_key),
                    "; SET max_parallel_workers_per_gather = 0; SET jit = off; SET enable_tidscan = on; "
                    "SELECT set_config('work_mem', '" WORK_MEMORY "', false) WHERE "
                    "pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('" WORK_MEMORY "'); SELECT "
                    "current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int "
                    "- coalesce(current_setting('reserved_connections', true)::int, 0)",
                    NULL);
    (void)mc_pg_sent(connection, PQsendQuery(connection->pg, sql)); /* what cannot be sent shows when it is read */
    for (;;) {
        MC_TRY(mc_pg_result(&result, MC_PG_WORDS_MAX, connection, wait));
        if (result == NULL)
            return MC_OK;
        if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
            !mc_parse_int(&connection->places, PQgetvalue(result, 0, 0), 1, 1 << 20))
            connection->places = 0;
        PQclear(result);
    }
}

/* Until the connection is ready to be polled; the names of hosts have their addresses by then. */
static mc_error *
start_connecting(PGconn **pg, const mc_pg_target *target, const mc_pg_wait *wait)
{
    const char *const *places;
    const char *const *place_values;
    mc_pg_wait bounded = bound_wait(wait, target);
    apr_time_t begin = mc_clock_now();
    mc_semaphore *semaphore = mc_semaphore_yield(wait->ctx); /* others draw meanwhile */
    mc_error *error = mc_pg_find_places(&places, &place_values, target, &bounded);
    mc_semaphore_resume(semaphore, wait->ctx);
    if (error != MC_OK && error->kind == MC_ERR_TIMEOUT && mc_clock_now() - begin < TELLING_TIME)
        return no_time_left(wait->pool);
    if (error != MC_OK)
        return error->kind == MC_ERR_UNAVAILABLE ? error : no_connection(target, error->message, wait->pool);
    /* The string may overrule what stands before it, and not what stands behind it. */
    const char *const names[] = { "tcp_user_timeout", "client_encoding", "dbname",  "fallback_application_name",
                                  places[0],          places[1],         places[2], NULL };
    const char *const values[] = { SILENCE_MS,      "UTF8",          target->connection, "mapcache",
                                   place_values[0], place_values[1], place_values[2],    NULL };
    *pg = PQconnectStartParams(names, values, 1);
    MC_ASSERT(*pg != NULL);
    return MC_OK;
}

mc_error *
mc_pg_connect(mc_pg_connection **connection, mc_pg_target *target, bool by_key, const mc_pg_wait *wait, bool *crowded)
{
    MC_SPAN(wait->ctx, "mc_postgres_connect");
    *crowded = false;
    if (target->label == NULL) /* libpq's complaint quotes the string, and with it perhaps a password */
        return mc_error_create(wait->pool, MC_ERR_UNAVAILABLE, "a connection string of PostgreSQL cannot be parsed");
    PGconn *pg = NULL;
    MC_TRY(start_connecting(&pg, target, wait));
    PQsetErrorVerbosity(pg, PQERRORS_VERBOSE);
    PQsetNoticeProcessor(pg, ignore_notice, NULL);
    (void)PQsetnonblocking(pg, 1); /* from now on, or libpq tries for ever to send amid a handshake of TLS 1.2 */
    mc_pg_connection *made = calloc(1, sizeof(*made));
    MC_ASSERT(made != NULL);
    made->target = target;
    made->pg = pg;
    made->by_key = by_key;
    mc_error *error = shake_hands(made, wait, crowded);
    if (error == MC_OK) {
        PQsetErrorVerbosity(pg, PQERRORS_DEFAULT);
        made->backend = PQbackendPID(pg);
        error = set_up_session(made, wait);
    }
    if (error == MC_OK)
        *connection = made;
    else
        mc_pg_close(made);
    return error;
}
