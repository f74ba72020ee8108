/* One connection to PostgreSQL: made, read and judged without ever blocking in libpq. */
#include <apr_strings.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/semaphore.h"
#include "base/wait.h"
#include "db/postgres/postgres_private.h"
#include "mapcache/trace.h"
#include "text/text.h"

/* Microseconds without an answer that say something about the server; less may be the request's own hurry. */
#define TELLING_TIME (1 * APR_USEC_PER_SEC)
/* Reads from the socket, and results, before a caller that only tidies up gives up. */
#define DRAIN_READS 16
#define DRAIN_RESULTS 64
/* Bytes that libpq takes from a socket at once, at least, where so many wait. */
#define READ_LEAST 8192
/* Bytes that a server may send before the connection stands. */
#define GREETING_MAX (INT64_C(1) << 20)
/* Bytes for one result, or one row where they are read one by one: libpq keeps all of them in memory. */
#define RESULT_MAX (INT64_C(64) << 20)
/* Milliseconds that sent bytes may stay unacknowledged: a host that has gone silent ends its connections then. */
#define SILENCE_MS "10000"

/* Something has come, after a wait since `begin`. The first wait is for the database to have a row, no matter how far
 * away it is, the others are for what is on its way. */
static void
add_arrival(mc_postgres_traffic *traffic, int socket, apr_time_t begin)
{
    int waiting = 0;
    if (traffic->first > 0)
        traffic->waited += mc_clock_now() - begin;
    else if (ioctl(socket, FIONREAD, &waiting) == 0)
        traffic->first = waiting;
}

static mc_error *
wait_for_postgres_socket(struct pollfd *polled, const mc_pg_wait *wait)
{
    apr_time_t begin = mc_clock_now();
    switch (mc_wait_socket(polled, wait->end, wait->ctx)) {
    case MC_WAIT_LATE:
        return mc_error_create(wait->pool, MC_ERR_TIMEOUT, "the database did not answer before the deadline");
    case MC_WAIT_GONE:
        return mc_error_create(wait->pool, MC_ERR_UNAVAILABLE, "the client has gone");
    case MC_WAIT_READY: /* also in error: libpq says what is the matter with the socket */
        break;
    }
    if (wait->traffic != NULL)
        add_arrival(wait->traffic, polled->fd, begin);
    return MC_OK;
}

mc_error *
mc_pg_wait_socket(PGconn *pg, short events, const mc_pg_wait *wait)
{
    struct pollfd polled = { .fd = PQsocket(pg), .events = events };
    bool ready = poll(&polled, 1, 0) > 0;
    mc_semaphore *semaphore = ready ? NULL : mc_semaphore_yield(wait->ctx); /* others draw meanwhile */
    mc_error *error = wait_for_postgres_socket(&polled, wait);
    if (!ready)
        mc_semaphore_resume(semaphore, wait->ctx);
    return error;
}

/* libpq's message as one line, without its note on PostgreSQL's source code, and without the password in any case. */
static const char *
words_of(const PGconn *pg, const char *message, apr_pool_t *pool)
{
    const char *password = PQpass(pg);
    const char *location = strstr(message, "\nLOCATION:");
    size_t size = location == NULL ? strlen(message) : (size_t)(location - message);
    while (size > 0 && (message[size - 1] == '\n' || message[size - 1] == ' '))
        size--;
    const char *words = apr_pstrmemdup(pool, message, size);
    if (password != NULL && *password != '\0')
        words = mc_replace_all(words, password, "***", pool);
    return words;
}

static mc_error *
broken_connection_error(const mc_pg_connection *connection, apr_pool_t *pool)
{
    mc_error *cause = mc_error_create(pool, MC_ERR_UNAVAILABLE, "PostgreSQL (%s): %s", connection->target->label,
                                      words_of(connection->pg, PQerrorMessage(connection->pg), pool));
    return mc_error_wrap(pool, cause, MC_ERR_UNAVAILABLE, "the connection to the database has ended");
}

/* Bytes that wait in the socket; 0 where nobody tells. */
static int
count_waiting(PGconn *pg)
{
    int waiting = 0;
    return ioctl(PQsocket(pg), FIONREAD, &waiting) == 0 ? waiting : 0;
}

/* After a read that found `before` bytes waiting: no more than it has taken. What comes meanwhile hides some of that,
 * but libpq reads so much at least. */
static int
count_taken(PGconn *pg, int before)
{
    int gone = before - count_waiting(pg);
    int least = before < READ_LEAST ? before : READ_LEAST;
    return gone > least ? gone : least;
}

static mc_error *
check_arrived(int64_t arrived, int64_t most, const mc_pg_wait *wait)
{
    return arrived <= most
               ? MC_OK
               : mc_error_create(wait->pool, MC_ERR_UPSTREAM,
                                 "the database sends more than %" APR_INT64_T_FMT " MB at once", most >> 20);
}

mc_error *
mc_pg_take_input(int64_t *arrived, int64_t most, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    int before = count_waiting(connection->pg);
    if (!PQconsumeInput(connection->pg))
        return broken_connection_error(connection, wait->pool);
    *arrived += count_taken(connection->pg, before);
    mc_error *error = check_arrived(*arrived, most, wait);
    connection->spoiled = connection->spoiled || error != MC_OK;
    return error;
}

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

/* Runs the connection's state machine until it stands. An error with a cause says something about the server. */
static mc_error *
shake_hands(PGconn *pg, const mc_pg_target *target, const mc_pg_wait *wait, bool *crowded)
{
    apr_time_t begin = mc_clock_now();
    mc_pg_wait bounded = bound_wait(wait, target);
    int64_t arrived = 0;
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (PQstatus(pg) != CONNECTION_BAD && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        mc_error *error = mc_pg_wait_socket(pg, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, &bounded);
        if (error != MC_OK && error->kind == MC_ERR_TIMEOUT && mc_clock_now() - begin < TELLING_TIME)
            return no_time_left(wait->pool);
        if (error != MC_OK && error->kind == MC_ERR_TIMEOUT)
            return no_connection(target, "no answer in time to the attempt to connect", wait->pool);
        MC_TRY(error);
        int before = count_waiting(pg);
        state = PQconnectPoll(pg);
        arrived += count_taken(pg, before);
        if ((error = check_arrived(arrived, GREETING_MAX, wait)) != MC_OK)
            return no_connection(target, error->message, wait->pool);
    }
    if (state == PGRES_POLLING_OK)
        return MC_OK;
    const char *words = words_of(pg, PQerrorMessage(pg), wait->pool);
    /* The only word on a refused connection is this text; in its verbose form it has the SQLSTATE in any language:
     * 53300, too_many_connections. */
    *crowded = strstr(words, " 53300: ") != NULL;
    return no_connection(target, words, wait->pool);
}

/*
 * What makes rows come in the order of their table: a plan for each box of a map (for any box that could come, the
 * planner expects one row, and takes them from the index one by one), and reading that begins at the beginning, by one
 * process: the rows of several come as they find them. No plan is compiled: of a large table it would be each time, for
 * longer than the query takes. Pages that a statement names are read without the others. A server that does not know
 * all of these does without. And how many connections it has room for.
 */
static mc_error *
set_up_session(mc_pg_connection *connection, const mc_pg_wait *wait)
{
    PGresult *result = NULL;
    (void)PQsendQuery(
        connection->pg,
        "SET synchronize_seqscans = off; SET plan_cache_mode = force_custom_plan; "
        "SET max_parallel_workers_per_gather = 0; SET jit = off; SET enable_tidscan = on; SELECT "
        "current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int "
        "- coalesce(current_setting('reserved_connections', true)::int, 0)");
    for (;;) {
        MC_TRY(mc_pg_result(&result, connection, wait));
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
mc_pg_connect(mc_pg_connection **connection, mc_pg_target *target, const mc_pg_wait *wait, bool *crowded)
{
    MC_SPAN(wait->ctx, "mc_postgres_connect");
    *crowded = false;
    if (target->label == NULL) /* libpq's complaint quotes the string, and with it perhaps a password */
        return mc_error_create(wait->pool, MC_ERR_UNAVAILABLE, "a connection string of PostgreSQL cannot be parsed");
    PGconn *pg = NULL;
    MC_TRY(start_connecting(&pg, target, wait));
    PQsetErrorVerbosity(pg, PQERRORS_VERBOSE);
    PQsetNoticeProcessor(pg, ignore_notice, NULL);
    mc_error *error = shake_hands(pg, target, wait, crowded);
    if (error != MC_OK) {
        PQfinish(pg);
        return error;
    }
    PQsetErrorVerbosity(pg, PQERRORS_DEFAULT);
    PQsetnonblocking(pg, 1);
    mc_pg_connection *made = calloc(1, sizeof(*made));
    MC_ASSERT(made != NULL);
    made->target = target;
    made->pg = pg;
    made->backend = PQbackendPID(pg);
    error = set_up_session(made, wait);
    if (error == MC_OK)
        *connection = made;
    else
        mc_pg_close(made);
    return error;
}

void
mc_pg_clear_statement(mc_pg_statement *statement)
{
    free(statement->sql);
    free(statement->types);
    free(statement->natural);
    *statement = (mc_pg_statement){ 0 };
}

static void
forget_statements(mc_pg_connection *connection)
{
    for (int i = 0; i < connection->statement_count; i++)
        mc_pg_clear_statement(&connection->statements[i]);
    connection->statement_count = 0;
}

void
mc_pg_close(mc_pg_connection *connection)
{
    if (connection == NULL)
        return;
    forget_statements(connection);
    PQfinish(connection->pg);
    free(connection);
}

bool
mc_pg_is_alive(const mc_pg_connection *connection)
{
    /* An idle connection has nothing to read but its end (or a changed setting, which is as good a reason). */
    struct pollfd polled = { .fd = PQsocket(connection->pg), .events = POLLIN };
    return PQstatus(connection->pg) == CONNECTION_OK && poll(&polled, 1, 0) == 0;
}

bool
mc_pg_is_at_rest(const mc_pg_connection *connection)
{
    return !connection->spoiled && PQstatus(connection->pg) == CONNECTION_OK &&
           PQtransactionStatus(connection->pg) == PQTRANS_IDLE && PQbackendPID(connection->pg) == connection->backend;
}

/* What nobody listens for. */
static void
forget_notifications(PGconn *pg)
{
    for (PGnotify *notification; (notification = PQnotifies(pg)) != NULL;)
        PQfreemem(notification);
}

/* libpq gives the result of a COPY again and again until its rows have been read. */
static bool
is_copy_result(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COPY_OUT || status == PGRES_COPY_IN || status == PGRES_COPY_BOTH;
}

mc_error *
mc_pg_result(PGresult **result, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    PGconn *pg = connection->pg;
    int64_t arrived = 0;
    *result = NULL;
    for (;;) {
        int left = PQflush(pg);
        if (left < 0)
            return broken_connection_error(connection, wait->pool);
        if (left == 0 && !PQisBusy(pg))
            break;
        MC_TRY(mc_pg_wait_socket(pg, (short)(left == 0 ? POLLIN : POLLIN | POLLOUT), wait));
        MC_TRY(mc_pg_take_input(&arrived, RESULT_MAX, connection, wait));
        forget_notifications(pg);
    }
    *result = PQgetResult(pg);
    if (*result == NULL && PQstatus(pg) != CONNECTION_OK)
        return broken_connection_error(connection, wait->pool);
    if (!is_copy_result(*result) || connection->copies)
        return MC_OK;
    PQclear(*result);
    *result = NULL;
    connection->spoiled = true;
    return mc_error_create(wait->pool, MC_ERR_UPSTREAM, "the database begins a COPY that was not asked for");
}

mc_error *
mc_pg_copied(char **row, int *size, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    PGconn *pg = connection->pg;
    int64_t arrived = 0;
    *row = NULL;
    while ((*size = PQgetCopyData(pg, row, 1)) == 0) {
        MC_TRY(mc_pg_wait_socket(pg, POLLIN, wait));
        MC_TRY(mc_pg_take_input(&arrived, RESULT_MAX, connection, wait));
    }
    connection->copying = *size > 0;
    return *size == -2 ? broken_connection_error(connection, wait->pool) : MC_OK;
}

/* Takes the rows of a COPY that have arrived. False: there will be more. */
static bool
drain_copy(mc_pg_connection *connection)
{
    char *row = NULL;
    int size = 0;
    while (connection->copying && (size = PQgetCopyData(connection->pg, &row, 1)) > 0)
        PQfreemem(row);
    connection->copying = connection->copying && size == 0;
    return !connection->copying;
}

bool
mc_pg_drain_arrived(mc_pg_connection *connection)
{
    PGconn *pg = connection->pg;
    struct pollfd polled = { .fd = PQsocket(pg), .events = POLLIN };
    int results = 0;
    if (connection->spoiled || PQflush(pg) != 0)
        return false;
    for (int reads = 0; reads < DRAIN_READS; reads++) {
        while (drain_copy(connection) && !PQisBusy(pg)) {
            PGresult *result = PQgetResult(pg);
            bool copy = is_copy_result(result);
            if (result == NULL)
                return true;
            PQclear(result);
            if (copy || ++results > DRAIN_RESULTS) {
                connection->spoiled = true;
                return false;
            }
        }
        /* Not before everything that is there has been taken: libpq moves the rest of its buffer at each read. */
        int before = count_waiting(pg);
        if (poll(&polled, 1, 0) <= 0 || !PQconsumeInput(pg))
            return false;
        connection->drained += count_taken(pg, before);
    }
    connection->spoiled = connection->drained > RESULT_MAX;
    return false;
}

/* By the class of the SQLSTATE, PostgreSQL's appendix A. */
static mc_error_kind
sqlstate_error_kind(const char *state)
{
    if (strcmp(state, "57014") == 0) /* query_canceled: the server's own statement_timeout */
        return MC_ERR_TIMEOUT;
    if (strncmp(state, "08", 2) == 0 || strncmp(state, "53", 2) == 0 || strncmp(state, "57", 2) == 0)
        return MC_ERR_UNAVAILABLE;
    return MC_ERR_UPSTREAM;
}

mc_error *
mc_pg_server_error(const PGresult *result, mc_pg_connection *connection, char state[MC_PG_STATE], apr_pool_t *pool)
{
    const char *said = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    apr_cpystrn(state, said == NULL ? "" : said, MC_PG_STATE);
    if (said == NULL && PQstatus(connection->pg) != CONNECTION_OK)
        return broken_connection_error(connection, pool);
    mc_error *cause = mc_error_create(pool, MC_ERR_UPSTREAM, "PostgreSQL (%s) says %s: %s", connection->target->label,
                                      state, words_of(connection->pg, PQresultErrorMessage(result), pool));
    mc_error_kind kind = sqlstate_error_kind(state);
    return mc_error_wrap(pool, cause, kind, "%s",
                         kind == MC_ERR_TIMEOUT       ? "the database took too long for a query"
                         : kind == MC_ERR_UNAVAILABLE ? "the database cannot answer now"
                                                      : "the database refused a query");
}
