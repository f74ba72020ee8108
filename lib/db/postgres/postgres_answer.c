/* One query on its way: sent, replaced by a new connection where the old one had ended, read, given back. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "db/postgres/postgres_private.h"

/* Microseconds that a query may take where neither it nor the request says so. */
#define QUERY_TIME (600 * APR_USEC_PER_SEC)
/* Bytes of a row for which libpq's buffers, which never shrink, become so large that the connection is not kept. */
#define LARGE_ROW (16 << 20)

typedef struct pg_answer {
    mc_postgres_answer base; /* first: what the front sees */
    mc_postgres_engine *engine;
    mc_pg_connection *connection; /* NULL once it has been given back */
    mc_postgres_query query;
    mc_pg_wait wait;
    bool received; /* something of the answer has arrived */
    bool replaced; /* the connection is the second one */
    PGresult *result;
    int next;     /* row of the result */
    char *copied; /* row of a COPY */
    mc_postgres_row row;
    mc_postgres_field *fields;
    int fields_size;
} pg_answer;

static mc_error *
send_query(pg_answer *answer)
{
    const mc_postgres_query *query = &answer->query;
    mc_pg_connection *connection = answer->connection;
    if (query->copy) { /* what cannot be sent shows when the result is read */
        PQsendQuery(connection->pg,
                    apr_pstrcat(answer->wait.pool, "COPY (", query->sql, "\n) TO STDOUT (FORMAT binary)", NULL));
        return MC_OK;
    }
    char name[MC_PG_NAME];
    MC_TRY(mc_pg_prepare(name, connection, query, &answer->wait, answer->base.sqlstate));
    const char *values[MC_POSTGRES_PARAMS];
    int sizes[MC_POSTGRES_PARAMS], formats[MC_POSTGRES_PARAMS];
    for (int i = 0; i < query->param_count; i++) {
        values[i] = query->params[i].value;
        sizes[i] = query->params[i].size;
        formats[i] = query->params[i].binary;
    }
    /* What cannot be sent shows when the result is read. */
    if (PQsendQueryPrepared(connection->pg, name, query->param_count, values, sizes, formats, query->binary) &&
        query->single_row)
        PQsetSingleRowMode(connection->pg);
    return MC_OK;
}

/*
 * An ended connection from the pool is no news about the server. The same goes for one that remembers too much: a
 * statement that is no longer there (26000: a proxy gave us another backend) or whose tables have changed since
 * ("cached plan must not change result type", 0A000).
 */
static bool
is_worth_replacing(const pg_answer *answer)
{
    if (answer->connection == NULL || answer->query.session != NULL || !answer->connection->reused ||
        answer->received || answer->replaced)
        return false;
    const char *state = answer->base.sqlstate;
    return PQstatus(answer->connection->pg) != CONNECTION_OK || strncmp(state, "57P", 3) == 0 ||
           strcmp(state, "26000") == 0 || strcmp(state, "0A000") == 0;
}

static mc_error *
replace_answer_connection(pg_answer *answer)
{
    answer->replaced = true;
    answer->base.sqlstate[0] = '\0';
    MC_TRY(mc_pg_replace(&answer->connection, answer->engine, &answer->wait));
    return send_query(answer);
}

static void
let_go_of_rows(pg_answer *answer)
{
    PQclear(answer->result);
    answer->result = NULL;
    PQfreemem(answer->copied);
    answer->copied = NULL;
}

static void
release_answer_connection(pg_answer *answer)
{
    mc_pg_connection *connection = answer->connection;
    if (connection == NULL)
        return;
    answer->connection = NULL;
    const mc_ctx *ctx = answer->wait.ctx;
    mc_metrics *metrics = ctx->process == NULL ? NULL : ctx->process->metrics;
    mc_count(metrics, MC_COUNT_postgres_bytes_total, (uint64_t)answer->base.traffic.bytes);
    if (answer->query.session != NULL) { /* its owner keeps it; what was not read to its end cannot be gone on with */
        if (!mc_pg_drain_arrived(connection))
            connection->spoiled = true;
        return;
    }
    if (connection->spoiled || mc_pg_is_at_rest(connection) || PQstatus(connection->pg) != CONNECTION_OK ||
        mc_pg_drain_arrived(connection)) {
        mc_pg_release(answer->engine, connection);
        return;
    }
    mc_count(metrics, MC_COUNT_postgres_cancels_total, 1);
    mc_pg_cancel(answer->engine, connection);
}

static apr_status_t
clean_up_pg_answer(void *data)
{
    pg_answer *answer = data;
    let_go_of_rows(answer);
    release_answer_connection(answer);
    return APR_SUCCESS;
}

mc_error *
mc_pg_start(mc_postgres_answer **result, mc_postgres_engine *engine, const mc_postgres_query *query, mc_ctx *ctx,
            apr_pool_t *pool)
{
    pg_answer *answer = apr_pcalloc(pool, sizeof(*answer));
    answer->base.ops = &mc_postgres_libpq_ops;
    answer->base.ctx = ctx;
    answer->engine = engine;
    answer->query = *query;
    apr_interval_time_t time = mc_ctx_remaining(ctx, query->time > 0 ? query->time : QUERY_TIME);
    answer->wait = (mc_pg_wait){ ctx, mc_clock_now() + time, pool, NULL };
    *result = &answer->base;
    if (query->session != NULL)
        answer->connection = mc_pg_session_connection(query->session);
    else
        MC_TRY(mc_pg_acquire(&answer->connection, engine, query->connection, &answer->wait));
    apr_pool_cleanup_register(pool, answer, clean_up_pg_answer, apr_pool_cleanup_null);
    mc_error *error = send_query(answer);
    if (error != MC_OK && is_worth_replacing(answer))
        error = replace_answer_connection(answer);
    if (error != MC_OK)
        release_answer_connection(answer);
    answer->wait.traffic = &answer->base.traffic;
    return error;
}

static void
reserve_answer_fields(pg_answer *answer, int columns)
{
    if (columns <= answer->fields_size)
        return;
    answer->fields = apr_palloc(answer->wait.pool, sizeof(*answer->fields) * (size_t)columns);
    answer->fields_size = columns;
}

/* `overhead`: bytes that are not of a field. */
static void
count_answer_row(pg_answer *answer, int64_t overhead)
{
    int64_t size = overhead;
    for (int i = 0; i < answer->row.columns; i++)
        size += 4 + (answer->row.fields[i].size > 0 ? answer->row.fields[i].size : 0);
    answer->base.traffic.bytes += size;
    if (size > LARGE_ROW)
        answer->connection->spoiled = true;
}

static void
fill_row(pg_answer *answer)
{
    const PGresult *result = answer->result;
    int columns = PQnfields(result);
    reserve_answer_fields(answer, columns);
    for (int i = 0; i < columns; i++) {
        bool null = PQgetisnull(result, answer->next, i);
        answer->fields[i] = (mc_postgres_field){
            .data = PQgetvalue(result, answer->next, i),
            .size = null ? -1 : PQgetlength(result, answer->next, i),
            .type = PQftype(result, i),
            .name = PQfname(result, i),
        };
    }
    answer->row = (mc_postgres_row){ columns, answer->fields };
    answer->next++;
    count_answer_row(answer, 7); /* DataRow: its letter, its length, how many fields */
}

/* The next row of a COPY; *row NULL after the last. */
static mc_error *
next_copied(const mc_postgres_row **row, pg_answer *answer)
{
    int size, count = 0;
    PQfreemem(answer->copied);
    answer->copied = NULL;
    MC_TRY(mc_pg_copied(&answer->copied, &size, answer->connection, &answer->wait));
    if (answer->copied == NULL)
        return MC_OK;
    MC_TRY(mc_pg_copy_fields(answer->fields, &count, answer->fields_size, answer->copied, size, answer->next++ == 0,
                             answer->wait.pool));
    answer->row = (mc_postgres_row){ count, answer->fields };
    if (count < 0)
        return next_copied(row, answer);
    count_answer_row(answer, 7);
    *row = &answer->row;
    return MC_OK;
}

/* Reads what follows an error, so that the connection can go back. */
static mc_error *
finish_with(pg_answer *answer, mc_error *error)
{
    PGresult *more = NULL;
    while (mc_pg_result(&more, answer->connection, &answer->wait) == MC_OK && more != NULL)
        PQclear(more);
    return error;
}

/* The next result into answer->result; NULL at the end. */
static mc_error *
read_result(pg_answer *answer)
{
    let_go_of_rows(answer);
    answer->next = 0;
    MC_TRY(mc_pg_result(&answer->result, answer->connection, &answer->wait));
    if (answer->result == NULL)
        return MC_OK;
    switch (PQresultStatus(answer->result)) {
    case PGRES_SINGLE_TUPLE:
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
        answer->received = true;
        return MC_OK;
    case PGRES_COPY_OUT:
        answer->received = true;
        answer->connection->copying = true;
        reserve_answer_fields(answer, PQnfields(answer->result));
        if (answer->query.copy)
            return MC_OK;
        break;
    case PGRES_FATAL_ERROR:
        return finish_with(
            answer, mc_pg_server_error(answer->result, answer->connection, answer->base.sqlstate, answer->wait.pool));
    default:
        break;
    }
    answer->connection->spoiled = true; /* COPY: libpq would give this result for ever */
    return mc_error_create(answer->wait.pool, MC_ERR_UPSTREAM,
                           "a statement of another kind than one that returns rows was sent to the database");
}

mc_error *
mc_pg_next(const mc_postgres_row **row, mc_postgres_answer *base)
{
    pg_answer *answer = (pg_answer *)base;
    *row = NULL;
    while (answer->connection != NULL) {
        if (answer->result != NULL && answer->next < PQntuples(answer->result)) {
            fill_row(answer);
            *row = &answer->row;
            return MC_OK;
        }
        if (answer->connection->copying) {
            mc_error *failed = next_copied(row, answer);
            if (failed != MC_OK)
                release_answer_connection(answer);
            if (failed != MC_OK || *row != NULL)
                return failed;
        }
        mc_error *error = read_result(answer);
        if (error != MC_OK && is_worth_replacing(answer))
            error = replace_answer_connection(answer);
        if (error != MC_OK || (answer->result == NULL && answer->received))
            release_answer_connection(answer);
        MC_TRY(error);
    }
    return MC_OK;
}

void
mc_pg_end(mc_postgres_answer *answer)
{
    apr_pool_cleanup_run(((pg_answer *)answer)->wait.pool, answer, clean_up_pg_answer);
}
