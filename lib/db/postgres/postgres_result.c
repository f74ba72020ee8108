/* One query on its way: sent, replaced by a new connection where the old one had ended, read, given back. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "db/postgres/postgres_counters.h"
#include "db/postgres/postgres_private.h"

/* Microseconds that a query may take where neither it nor the request says so. */
#define QUERY_TIME (600 * APR_USEC_PER_SEC)
/* Bytes of a row for which libpq's buffers, which never shrink, become so large that the connection is not kept. */
#define LARGE_ROW (16 << 20)
/* Rows of a table come in its own order by a plain or a bitmap scan, not by an index alone. For the statements of one
 * message only, which are one transaction: synchronized scans and parallel workers are off in all sessions
 * (postgres_connect.c). */
#define STORED_ORDER "SET LOCAL enable_indexscan=off;SET LOCAL enable_indexonlyscan=off;"
/* Results that may follow an error. */
enum { RESULTS_MAX = 64 };

typedef struct pg_result {
    mc_postgres_result base; /* first: what the front sees */
    mc_postgres_engine *engine;
    mc_pg_connection *connection; /* NULL once it has been given back */
    mc_postgres_query query;
    mc_pg_wait wait;
    bool received; /* something of the answer has arrived */
    bool replaced; /* the connection is the second one */
    bool ended;    /* the answer has been read to its end */
    PGresult *result;
    int next;     /* row of the result */
    char *copied; /* row of a COPY; the connection's */
    mc_postgres_row row;
    mc_postgres_field *fields;
    int fields_size;
} pg_result;

/* After a call of libpq that sends a statement. What an ended connection has not sent shows when the result is read. A
 * connection that stands sends nothing while it is at the statement before: what is read then is not this one's. */
static mc_error *
check_sent(pg_result *query_result, int sent)
{
    mc_pg_connection *connection = query_result->connection;
    if (mc_pg_sent(connection, sent) || PQstatus(connection->pg) != CONNECTION_OK)
        return MC_OK;
    connection->spoiled = true;
    return mc_error_create(query_result->wait.pool, MC_ERR_UNAVAILABLE,
                           "the connection to the database takes no statement: one before was not read to its end");
}

static mc_error *
send_query(pg_result *query_result)
{
    const mc_postgres_query *query = &query_result->query;
    mc_pg_connection *connection = query_result->connection;
    connection->copies = false;
    if (query->session == NULL)
        MC_TRY(mc_pg_plan(connection, query->by_key, &query_result->wait, query_result->base.sqlstate));
    connection->copies = query->copy;
    if (query->copy) {
        const char *sql = apr_pstrcat(query_result->wait.pool, query->stored_order ? STORED_ORDER : "", "COPY (",
                                      query->sql, "\n) TO STDOUT (FORMAT binary)", NULL);
        return check_sent(query_result, PQsendQuery(connection->pg, sql));
    }
    if (query->plain)
        return check_sent(query_result, PQsendQuery(connection->pg, query->sql));
    char name[MC_PG_NAME];
    MC_TRY(mc_pg_prepare(name, connection, query, &query_result->wait, query_result->base.sqlstate));
    const char *values[MC_POSTGRES_PARAMS];
    int sizes[MC_POSTGRES_PARAMS], formats[MC_POSTGRES_PARAMS];
    for (int i = 0; i < query->param_count; i++) {
        values[i] = query->params[i].value;
        sizes[i] = query->params[i].size;
        formats[i] = query->params[i].binary;
    }
    int sent = PQsendQueryPrepared(connection->pg, name, query->param_count, values, sizes, formats, query->binary);
    if (sent)
        PQsetSingleRowMode(connection->pg);
    return check_sent(query_result, sent);
}

/*
 * An ended connection from the pool is no news about the server. The same goes for one that remembers too much: a
 * statement that is no longer there (26000: a proxy gave us another backend) or whose tables have changed since
 * ("cached plan must not change result type", 0A000).
 */
static bool
is_worth_replacing(const pg_result *query_result)
{
    if (query_result->connection == NULL || query_result->query.session != NULL || !query_result->connection->reused ||
        query_result->received || query_result->replaced)
        return false;
    const char *state = query_result->base.sqlstate;
    return PQstatus(query_result->connection->pg) != CONNECTION_OK || strncmp(state, "57P", 3) == 0 ||
           strcmp(state, "26000") == 0 || strcmp(state, "0A000") == 0;
}

static mc_error *
replace_answer_connection(pg_result *query_result)
{
    query_result->replaced = true;
    query_result->base.sqlstate[0] = '\0';
    MC_TRY(mc_pg_replace(&query_result->connection, query_result->engine, &query_result->wait));
    return send_query(query_result);
}

static void
let_go_of_rows(pg_result *query_result)
{
    PQclear(query_result->result);
    query_result->result = NULL;
    query_result->copied = NULL;
}

static void
release_answer_connection(pg_result *query_result)
{
    mc_pg_connection *connection = query_result->connection;
    if (connection == NULL)
        return;
    query_result->connection = NULL;
    const mc_ctx *ctx = query_result->wait.ctx;
    mc_metrics *metrics = ctx->process == NULL ? NULL : ctx->process->metrics;
    mc_count(metrics, MC_COUNT_postgres_bytes_total, (uint64_t)query_result->base.traffic.bytes);
    if (query_result->query.session !=
        NULL) { /* its owner keeps it; what was not read to its end cannot be gone on with */
        if (!mc_pg_drain_arrived(connection)) {
            connection->interrupted = !connection->spoiled;
            connection->spoiled = true;
        }
        return;
    }
    if (connection->spoiled || mc_pg_is_at_rest(connection) || PQstatus(connection->pg) != CONNECTION_OK ||
        mc_pg_drain_arrived(connection)) {
        mc_pg_release(query_result->engine, connection);
        return;
    }
    mc_count(metrics, MC_COUNT_postgres_cancels_total, 1);
    mc_pg_cancel(query_result->engine, connection);
}

static apr_status_t
clean_up_pg_answer(void *data)
{
    pg_result *query_result = data;
    let_go_of_rows(query_result);
    release_answer_connection(query_result);
    return APR_SUCCESS;
}

mc_error *
mc_pg_start(mc_postgres_result **result, mc_postgres_engine *engine, const mc_postgres_query *query, mc_ctx *ctx,
            apr_pool_t *pool)
{
    pg_result *query_result = apr_pcalloc(pool, sizeof(*query_result));
    query_result->base.ops = engine->ops;
    query_result->base.ctx = ctx;
    query_result->engine = engine;
    query_result->query = *query;
    apr_interval_time_t time = mc_ctx_remaining(ctx, query->time > 0 ? query->time : QUERY_TIME);
    query_result->wait = (mc_pg_wait){ ctx, mc_clock_now() + time, pool, NULL, false };
    *result = &query_result->base;
    if (query->session != NULL)
        query_result->connection = mc_pg_session_connection(query->session);
    else
        MC_TRY(mc_pg_acquire(&query_result->connection, engine, query->connection, query->by_key, &query_result->wait));
    apr_pool_cleanup_register(pool, query_result, clean_up_pg_answer, apr_pool_cleanup_null);
    mc_error *error = send_query(query_result);
    if (error != MC_OK && is_worth_replacing(query_result))
        error = replace_answer_connection(query_result);
    if (error != MC_OK)
        release_answer_connection(query_result);
    else /* the server begins while the caller does other things; what does not go now goes when the answer is read */
        (void)mc_pg_flush(query_result->connection);
    query_result->wait.traffic = query->by_key ? NULL : &query_result->base.traffic; /* too little to tell of a line */
    return error;
}

static void
reserve_answer_fields(pg_result *query_result, int columns)
{
    columns = columns < MC_PG_FIELDS ? MC_PG_FIELDS : columns;
    if (columns <= query_result->fields_size)
        return;
    query_result->fields = apr_palloc(query_result->wait.pool, sizeof(*query_result->fields) * (size_t)columns);
    query_result->fields_size = columns;
}

/* `overhead`: bytes that are not of a field. */
static void
count_answer_row(pg_result *query_result, int64_t overhead)
{
    int64_t size = overhead;
    for (int i = 0; i < query_result->row.columns; i++)
        size += 4 + (query_result->row.fields[i].size > 0 ? query_result->row.fields[i].size : 0);
    query_result->base.traffic.bytes += size;
    if (size > LARGE_ROW)
        query_result->connection->spoiled = true;
}

/* The row has so many fields; a server that is none may send fewer than were asked for. */
static void
end_row(pg_result *query_result, int columns)
{
    for (int i = columns; i < query_result->fields_size; i++)
        query_result->fields[i] = (mc_postgres_field){ .data = "", .size = -1, .name = "" };
    query_result->row = (mc_postgres_row){ columns, query_result->fields };
}

static void
fill_row(pg_result *query_result)
{
    const PGresult *result = query_result->result;
    int columns = PQnfields(result);
    reserve_answer_fields(query_result, columns);
    for (int i = 0; i < columns; i++) {
        bool null = PQgetisnull(result, query_result->next, i);
        query_result->fields[i] = (mc_postgres_field){
            .data = PQgetvalue(result, query_result->next, i),
            .size = null ? -1 : PQgetlength(result, query_result->next, i),
            .type = PQftype(result, i),
            .name = PQfname(result, i),
        };
    }
    end_row(query_result, columns);
    query_result->next++;
    count_answer_row(query_result, 7); /* DataRow: its letter, its length, how many fields */
}

/* Behind the mark of the end there is nothing but the end (PostgreSQL's manual, COPY, "File Trailer"). */
static mc_error *
next_copied_end(pg_result *query_result)
{
    int size;
    MC_TRY(mc_pg_copied(&query_result->copied, &size, query_result->connection, &query_result->wait));
    if (query_result->copied == NULL)
        return MC_OK;
    query_result->connection->spoiled = true;
    return mc_error_create(query_result->wait.pool, MC_ERR_UPSTREAM, "the database sent rows behind the end of a COPY");
}

/* The next row of a COPY; *row NULL after the last. */
static mc_error *
next_copied(const mc_postgres_row **row, pg_result *query_result)
{
    int size, count = 0;
    MC_TRY(mc_pg_copied(&query_result->copied, &size, query_result->connection, &query_result->wait));
    if (query_result->copied == NULL)
        return MC_OK;
    MC_TRY(mc_pg_copy_fields(query_result->fields, &count, query_result->fields_size, query_result->copied, size,
                             query_result->next++ == 0, query_result->wait.pool));
    if (count < 0)
        return next_copied_end(query_result);
    end_row(query_result, count);
    count_answer_row(query_result, 7);
    *row = &query_result->row;
    return MC_OK;
}

/* Reads what follows an error, so that the connection can go back. */
static mc_error *
finish_with(pg_result *query_result, mc_error *error)
{
    PGresult *more = NULL;
    for (int i = 0;
         mc_pg_result(&more, MC_PG_WORDS_MAX, query_result->connection, &query_result->wait) == MC_OK && more != NULL;
         i++) {
        PQclear(more);
        if (i >= RESULTS_MAX) {
            query_result->connection->spoiled = true;
            break;
        }
    }
    return error;
}

/* The server is ready for the next statement and has answered neither with rows nor with an error: the next call of
 * libpq would say so again, for ever. */
static mc_error *
no_answer_error(pg_result *query_result)
{
    query_result->connection->spoiled = true;
    return mc_error_create(query_result->wait.pool, MC_ERR_UPSTREAM, "the database answered a statement with nothing");
}

/* The next result into answer->result; NULL at the end. */
static mc_error *
read_result(pg_result *query_result)
{
    let_go_of_rows(query_result);
    query_result->next = 0;
    MC_TRY(mc_pg_result(&query_result->result, MC_PG_ROW_MAX, query_result->connection, &query_result->wait));
    if (query_result->result == NULL)
        return query_result->received ? MC_OK : no_answer_error(query_result);
    switch (PQresultStatus(query_result->result)) {
    case PGRES_SINGLE_TUPLE:
    case PGRES_TUPLES_OK:
        query_result->received = true;
        return MC_OK;
    case PGRES_COMMAND_OK: /* before a COPY: of a setting for it */
        query_result->received = query_result->received || !query_result->query.copy;
        return MC_OK;
    case PGRES_COPY_OUT:
        query_result->received = true;
        query_result->connection->copying = true;
        mc_pg_rows_begin(&query_result->connection->rows);
        reserve_answer_fields(query_result, PQnfields(query_result->result));
        if (query_result->query.copy)
            return MC_OK;
        break;
    case PGRES_FATAL_ERROR:
        return finish_with(query_result, mc_pg_server_error(query_result->result, query_result->connection,
                                                            query_result->base.sqlstate, query_result->wait.pool));
    default:
        break;
    }
    query_result->connection->spoiled = true; /* COPY: libpq would give this result for ever */
    return mc_error_create(query_result->wait.pool, MC_ERR_UPSTREAM,
                           "a statement of another kind than one that returns rows was sent to the database");
}

mc_error *
mc_pg_next(const mc_postgres_row **row, mc_postgres_result *base)
{
    pg_result *query_result = (pg_result *)base;
    *row = NULL;
    while (query_result->connection != NULL) {
        if (query_result->result != NULL && query_result->next < PQntuples(query_result->result)) {
            fill_row(query_result);
            *row = &query_result->row;
            return MC_OK;
        }
        if (query_result->connection->copying) {
            mc_error *failed = next_copied(row, query_result);
            if (failed != MC_OK)
                release_answer_connection(query_result);
            if (failed != MC_OK || *row != NULL)
                return failed;
        }
        mc_error *error = read_result(query_result);
        bool asked_again = error != MC_OK && is_worth_replacing(query_result);
        if (asked_again)
            error = replace_answer_connection(query_result);
        query_result->ended = error == MC_OK && query_result->result == NULL && !asked_again;
        if (error != MC_OK || query_result->ended)
            release_answer_connection(query_result);
        MC_TRY(error);
    }
    /* Whoever asks on after an error is not told that there are no more rows. */
    return query_result->ended ? MC_OK
                               : mc_error_create(query_result->wait.pool, MC_ERR_UNAVAILABLE,
                                                 "the database's answer has broken off before its end");
}

void
mc_pg_end(mc_postgres_result *query_result)
{
    apr_pool_cleanup_run(((pg_result *)query_result)->wait.pool, query_result, clean_up_pg_answer);
}
