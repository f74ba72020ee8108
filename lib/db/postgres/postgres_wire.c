/* What goes over one connection to PostgreSQL: read, sent and judged without ever blocking in libpq. */
#include <apr_strings.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/semaphore.h"
#include "base/wait.h"
#include "db/postgres/postgres_private.h"
#include "text/text.h"

/* Reads from the socket, and results, before a caller that only tidies up gives up. */
#define DRAIN_READS 16
#define DRAIN_RESULTS 64
/* Bytes that libpq takes from a socket at once, at least, where so many wait. */
#define READ_LEAST 8192
/* Reads after which libpq has all that TLS or GSSAPI has taken from the socket: a record has twice the least. */
#define RECORD_READS 2

/* What has come first: some bytes of it are in our hands, all of it unless they were as many as there is room for. */
static void
add_first_arrival(mc_postgres_traffic *traffic, int socket, size_t handed)
{
    int waiting = 0;
    if (handed == MC_PG_PUMP_BYTES && ioctl(socket, FIONREAD, &waiting) != 0)
        waiting = 0;
    traffic->first = (int64_t)handed + waiting;
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
    /* The first wait is for the database to have a row, no matter how far away it is, the others are for what is on its
     * way. */
    if (wait->traffic != NULL && wait->traffic->first > 0)
        wait->traffic->waited += mc_clock_now() - begin;
    return MC_OK;
}

mc_error *
mc_pg_wait_socket(const mc_pg_connection *connection, short events, const mc_pg_wait *wait)
{
    struct pollfd polled = { .fd = mc_pg_pump_socket(&connection->pump, connection->pg), .events = events };
    bool inside = wait->ctx->inside != NULL, there = inside && !connection->pump.asked && poll(&polled, 1, 0) > 0;
    if (there && mc_clock_now() < wait->end)
        return MC_OK;
    bool yields = inside && !there;
    mc_semaphore *semaphore = yields ? mc_semaphore_yield(wait->ctx) : NULL; /* others draw meanwhile */
    mc_error *error = wait_for_postgres_socket(&polled, wait);
    if (yields)
        mc_semaphore_resume(semaphore, wait->ctx);
    return error;
}

const char *
mc_pg_words(const PGconn *pg, const char *message, apr_pool_t *pool)
{
    const char *password = PQpass(pg);
    const char *location = strstr(message, "\nLOCATION:");
    size_t size = location == NULL ? strlen(message) : (size_t)(location - message);
    while (size > 0 && (message[size - 1] == '\n' || message[size - 1] == ' '))
        size--;
    const char *words = apr_pstrmemdup(pool, message, size);
    if (password != NULL && *password != '\0')
        words = mc_replace_all(words, password, "***", pool);
    const char *host = PQhost(pg);
    const char *shown = host == NULL ? NULL : mc_pg_behind_password(host);
    return shown == host ? words : mc_replace_all(words, host, shown, pool);
}

static mc_error *
broken_connection_error(const mc_pg_connection *connection, apr_pool_t *pool)
{
    const char *words = mc_pg_words(connection->pg, PQerrorMessage(connection->pg), pool);
    if (connection->pump.failure != 0)
        words = apr_pstrcat(pool, words, " (", strerror(connection->pump.failure), ")", NULL);
    mc_error *cause =
        mc_error_create(pool, MC_ERR_UNAVAILABLE, "PostgreSQL (%s): %s", connection->target->label, words);
    return mc_error_wrap(pool, cause, MC_ERR_UNAVAILABLE, "the connection to the database has ended");
}

mc_error *
mc_pg_check_arrived(mc_pg_connection *connection, int64_t arrived, int64_t most, const mc_pg_wait *wait)
{
    const char *complaint = connection->pump.complaint;
    if (complaint == NULL && arrived <= most)
        return MC_OK;
    connection->spoiled = true;
    mc_error *cause = mc_error_create(wait->pool, MC_ERR_UPSTREAM, "PostgreSQL (%s): %s", connection->target->label,
                                      complaint == NULL ? "it sends more than there is room for" : complaint);
    return mc_error_wrap(wait->pool, cause, MC_ERR_UPSTREAM, "the database sends what is no answer to a query");
}

/* Lets libpq read all that it was handed, so that there is nothing to wait for but the server. Encrypted, libpq takes
 * one record at once, however small the record is. */
static bool
let_libpq_read(PGconn *pg, size_t handed)
{
    bool encrypted = PQsslInUse(pg) || PQgssEncInUse(pg);
    do {
        if (!PQconsumeInput(pg))
            return false;
    } while ((encrypted || handed > READ_LEAST) && mc_pg_pump_waiting(pg) > 0);
    for (int i = 0; i < RECORD_READS && encrypted; i++)
        if (!PQconsumeInput(pg))
            return false;
    return true;
}

/* Takes some of what has come. *past: none of it is for libpq. */
static size_t
take_arrived(bool *past, mc_pg_connection *connection)
{
    mc_pg_rows *rows = &connection->rows;
    bool own = connection->copying && mc_pg_rows_go_past(rows, &connection->pump, connection->pg);
    size_t size = own ? mc_pg_rows_in(rows, &connection->pump) : mc_pg_pump_in(&connection->pump, connection->pg);
    rows->libpq_asked = rows->libpq_asked || !own;
    *past = own && !rows->libpq_asked;
    return size;
}

mc_error *
mc_pg_take_input(int64_t *arrived, int64_t most, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    bool past;
    size_t handed = take_arrived(&past, connection);
    *arrived += (int64_t)handed;
    if (wait->traffic != NULL && wait->traffic->first == 0)
        add_first_arrival(wait->traffic, mc_pg_pump_socket(&connection->pump, connection->pg), handed);
    MC_TRY(mc_pg_check_arrived(connection, *arrived, most, wait));
    if (!past && !let_libpq_read(connection->pg, handed))
        return broken_connection_error(connection, wait->pool);
    connection->sending = connection->sending || PQsslInUse(connection->pg);
    return MC_OK;
}

int
mc_pg_sent(mc_pg_connection *connection, int sent)
{
    connection->sending = true;
    return sent;
}

int
mc_pg_flush(mc_pg_connection *connection)
{
    while (connection->sending) {
        int left = PQflush(connection->pg);
        if (left < 0)
            return -1;
        mc_pg_out out = mc_pg_pump_out(&connection->pump);
        if (out == MC_PG_OUT_LEFT)
            return POLLIN | POLLOUT;
        if (left > 0 && out == MC_PG_OUT_NOTHING) /* TLS 1.2 keeps it back until the server has shaken hands again */
            return POLLIN;
        connection->sending = left > 0;
    }
    return 0;
}

void
mc_pg_clear_statement(mc_pg_statement *statement)
{
    free(statement->sql);
    free(statement->types);
    free(statement->natural);
    *statement = (mc_pg_statement){ 0 };
}

void
mc_pg_close(mc_pg_connection *connection)
{
    if (connection == NULL)
        return;
    for (int i = 0; i < connection->statement_count; i++)
        mc_pg_clear_statement(&connection->statements[i]);
    mc_pg_rows_free(&connection->rows);
    PQfinish(connection->pg);
    mc_pg_pump_close(&connection->pump);
    free(connection);
}

bool
mc_pg_is_alive(const mc_pg_connection *connection)
{
    /* An idle connection has nothing to read but its end (or a changed setting, which is as good a reason). */
    struct pollfd polled = { .fd = mc_pg_pump_socket(&connection->pump, connection->pg), .events = POLLIN };
    return PQstatus(connection->pg) == CONNECTION_OK && poll(&polled, 1, 0) == 0;
}

bool
mc_pg_is_at_rest(const mc_pg_connection *connection)
{
    return !connection->spoiled && !connection->interrupted && connection->pump.frames.settings < MC_PG_SETTINGS_MANY &&
           PQstatus(connection->pg) == CONNECTION_OK && PQtransactionStatus(connection->pg) == PQTRANS_IDLE &&
           PQbackendPID(connection->pg) == connection->backend;
}

void
mc_pg_take_notifications(mc_pg_connection *connection)
{
    for (PGnotify *notification; (notification = PQnotifies(connection->pg)) != NULL; connection->notified = true)
        PQfreemem(notification);
}

/* libpq gives the result of a COPY again and again until its rows have been read. */
static bool
is_copy_result(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COPY_OUT || status == PGRES_COPY_IN || status == PGRES_COPY_BOTH;
}

/* What comes next, or room for what is to be sent; `left`: what mc_pg_flush says. */
static mc_error *
wait_for_more(int64_t *arrived, int64_t most, int left, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    if (left < 0)
        return broken_connection_error(connection, wait->pool);
    MC_TRY(mc_pg_wait_socket(connection, (short)(left == 0 ? POLLIN : left), wait));
    return mc_pg_take_input(arrived, most, connection, wait);
}

mc_error *
mc_pg_result(PGresult **result, int64_t most, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    PGconn *pg = connection->pg;
    int64_t arrived = 0;
    *result = NULL;
    for (int left; (left = mc_pg_flush(connection)) != 0 || PQisBusy(pg);) {
        MC_TRY(wait_for_more(&arrived, most, left, connection, wait));
        mc_pg_take_notifications(connection);
    }
    *result = PQgetResult(pg);
    if (*result == NULL && PQstatus(pg) != CONNECTION_OK)
        return broken_connection_error(connection, wait->pool);
    connection->errors = *result == NULL ? 0 : connection->errors + (PQresultStatus(*result) == PGRES_FATAL_ERROR);
    const char *complaint = connection->errors > MC_PG_ERRORS_MAX ? "the database answers with errors without end"
                            : is_copy_result(*result) && !connection->copies
                                ? "the database begins a COPY that was not asked for"
                                : NULL;
    if (complaint == NULL)
        return MC_OK;
    PQclear(*result);
    *result = NULL;
    connection->spoiled = true;
    return mc_error_create(wait->pool, MC_ERR_UPSTREAM, "%s", complaint);
}

/* More of a COPY. What the last reading left behind is there without a look. */
static mc_error *
wait_for_copied(int64_t *arrived, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    const mc_pg_rows *rows = &connection->rows;
    int left = mc_pg_flush(connection);
    MC_TRY(mc_pg_check_arrived(connection, *arrived, MC_PG_ROW_MAX, wait));
    if (left != 0 || !rows->past || rows->short_read || mc_clock_now() >= wait->end || mc_ctx_abandoned(wait->ctx))
        return wait_for_more(arrived, MC_PG_ROW_MAX, left, connection, wait);
    return mc_pg_take_input(arrived, MC_PG_ROW_MAX, connection, wait);
}

mc_error *
mc_pg_copied(char **row, int *size, mc_pg_connection *connection, const mc_pg_wait *wait)
{
    int64_t arrived = 0;
    while ((*size = mc_pg_rows_next(row, &connection->rows, &connection->pump, connection->pg)) == 0) {
        MC_TRY(wait_for_copied(&arrived, connection, wait));
        mc_pg_take_notifications(connection);
    }
    connection->copying = *size > 0;
    if (!connection->copying)
        mc_pg_rows_end(&connection->rows);
    return *size == -2 ? broken_connection_error(connection, wait->pool) : MC_OK;
}

/* Takes the rows of a COPY that have arrived. False: there will be more. */
static bool
drain_copy(mc_pg_connection *connection)
{
    char *row;
    int size = 0;
    while (connection->copying &&
           (size = mc_pg_rows_next(&row, &connection->rows, &connection->pump, connection->pg)) > 0)
        continue;
    if (connection->copying && size < 0)
        mc_pg_rows_end(&connection->rows);
    connection->copying = connection->copying && size == 0;
    return !connection->copying;
}

bool
mc_pg_drain_arrived(mc_pg_connection *connection)
{
    PGconn *pg = connection->pg;
    int results = 0;
    if (connection->spoiled || mc_pg_flush(connection) < 0)
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
        bool past;
        size_t handed = take_arrived(&past, connection);
        connection->drained += (int64_t)handed;
        connection->spoiled = connection->drained > MC_PG_ROW_MAX || connection->pump.complaint != NULL;
        if (connection->spoiled || (!past && !let_libpq_read(pg, handed)) || handed == 0)
            return false;
    }
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
                                      state, mc_pg_words(connection->pg, PQresultErrorMessage(result), pool));
    mc_error_kind kind = sqlstate_error_kind(state);
    return mc_error_wrap(pool, cause, kind, "%s",
                         kind == MC_ERR_TIMEOUT       ? "the database took too long for a query"
                         : kind == MC_ERR_UNAVAILABLE ? "the database cannot answer now"
                                                      : "the database refused a query");
}
