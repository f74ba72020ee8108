/* Prepared statements of one connection, and the types of their parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/postgres_private.h"

static bool
statement_matches_query(const mc_pg_statement *statement, const mc_postgres_query *query)
{
    if (statement->param_count != query->param_count || strcmp(statement->sql, query->sql) != 0)
        return false;
    for (int i = 0; i < query->param_count; i++)
        if (statement->types[i] != query->params[i].type || statement->natural[i] != query->params[i].natural)
            return false;
    return true;
}

static void
format_statement_name(char name[MC_PG_NAME], unsigned serial)
{
    snprintf(name, MC_PG_NAME, "mapcache_%u", serial);
}

/* Waits for everything that a command answers: the first result goes to *first (the caller clears it), an error of any
 * of them is the error. */
static mc_error *
finish_command(PGresult **first, int sent, mc_pg_connection *connection, const mc_pg_wait *wait,
               char state[MC_PG_STATE])
{
    *first = NULL;
    mc_error *error = MC_OK;
    (void)mc_pg_sent(connection, sent);
    for (;;) {
        PGresult *result = NULL;
        /* What could not be sent shows as an ended connection here. */
        mc_error *failed =
            sent ? mc_pg_result(&result, MC_PG_WORDS_MAX, connection, wait)
                 : mc_error_create(wait->pool, MC_ERR_UNAVAILABLE, "the connection to the database has ended");
        if (failed != MC_OK) {
            PQclear(*first);
            *first = NULL;
            return failed;
        }
        if (result == NULL)
            break;
        if (error == MC_OK && PQresultStatus(result) == PGRES_FATAL_ERROR)
            error = mc_pg_server_error(result, connection, state, wait->pool);
        if (*first == NULL)
            *first = result;
        else
            PQclear(result);
    }
    if (error != MC_OK) {
        PQclear(*first);
        *first = NULL;
    }
    return error;
}

static mc_error *
run_command(int sent, mc_pg_connection *connection, const mc_pg_wait *wait, char state[MC_PG_STATE])
{
    PGresult *result;
    MC_TRY(finish_command(&result, sent, connection, wait, state));
    PQclear(result);
    return MC_OK;
}

mc_error *
mc_pg_plan(mc_pg_connection *connection, bool by_key, const mc_pg_wait *wait, char state[MC_PG_STATE])
{
    if (connection->by_key == by_key)
        return MC_OK;
    mc_error *error = run_command(PQsendQuery(connection->pg, mc_pg_plan_settings(by_key)), connection, wait, state);
    if (error != MC_OK && *state == '\0')
        return error;
    state[0] = '\0'; /* a server that does not know one of the settings does without */
    connection->by_key = by_key;
    return MC_OK;
}

static mc_error *
deallocate_statement(mc_pg_connection *connection, const char *name, const mc_pg_wait *wait, char state[MC_PG_STATE])
{
    char command[MC_PG_NAME + sizeof("DEALLOCATE ")];
    snprintf(command, sizeof(command), "DEALLOCATE %s", name);
    return run_command(PQsendQuery(connection->pg, command), connection, wait, state);
}

/* Room for one more: the statement that was not used for longest goes. */
static mc_error *
make_statement_room(mc_pg_connection *connection, const mc_pg_wait *wait, char state[MC_PG_STATE])
{
    if (connection->statement_count < MC_PG_STATEMENTS)
        return MC_OK;
    mc_pg_statement *oldest = &connection->statements[0];
    for (int i = 1; i < MC_PG_STATEMENTS; i++)
        if (connection->statements[i].used < oldest->used)
            oldest = &connection->statements[i];
    char name[MC_PG_NAME];
    format_statement_name(name, oldest->serial);
    MC_TRY(deallocate_statement(connection, name, wait, state));
    mc_pg_clear_statement(oldest);
    *oldest = connection->statements[--connection->statement_count];
    connection->statements[connection->statement_count] = (mc_pg_statement){ 0 };
    return MC_OK;
}

static void
remember_statement(mc_pg_connection *connection, const mc_postgres_query *query, unsigned serial)
{
    mc_pg_statement *statement = &connection->statements[connection->statement_count++];
    size_t count = query->param_count == 0 ? 1 : (size_t)query->param_count;
    statement->sql = strdup(query->sql);
    statement->types = calloc(count, sizeof(*statement->types));
    statement->natural = calloc(count, sizeof(*statement->natural));
    MC_ASSERT(statement->sql != NULL && statement->types != NULL && statement->natural != NULL);
    for (int i = 0; i < query->param_count; i++) {
        statement->types[i] = query->params[i].type;
        statement->natural[i] = query->params[i].natural;
    }
    statement->param_count = query->param_count;
    statement->serial = serial;
    statement->used = ++connection->clock;
}

/* A number type that cannot hold what `natural` can: text such as "180.000000" or DBL_MAX fails in it. */
static bool
is_narrower(Oid inferred, unsigned natural)
{
    bool whole = inferred == MC_POSTGRES_INT2 || inferred == MC_POSTGRES_INT4;
    if (natural == MC_POSTGRES_INT8)
        return whole;
    return natural == MC_POSTGRES_FLOAT8 && (whole || inferred == MC_POSTGRES_INT8 || inferred == MC_POSTGRES_FLOAT4);
}

/* What the server made of the parameters; types[i] becomes the natural one where it is too narrow. */
static mc_error *
widen_param_types(bool *changed, Oid *types, const char *name, const mc_postgres_query *query,
                  mc_pg_connection *connection, const mc_pg_wait *wait, char state[MC_PG_STATE])
{
    *changed = false;
    PGresult *described;
    MC_TRY(finish_command(&described, PQsendDescribePrepared(connection->pg, name), connection, wait, state));
    for (int i = 0; i < query->param_count && i < PQnparams(described); i++)
        if (types[i] == MC_POSTGRES_INFERRED && is_narrower(PQparamtype(described, i), query->params[i].natural)) {
            types[i] = query->params[i].natural;
            *changed = true;
        }
    PQclear(described);
    return MC_OK;
}

/* The statement itself is right, but the server does not know a parameter's type (appendix A: indeterminate_datatype,
 * ambiguous_function, ambiguous_parameter). */
static bool
lacks_types(const char *state)
{
    return strcmp(state, "42P18") == 0 || strcmp(state, "42725") == 0 || strcmp(state, "42P08") == 0;
}

static mc_error *
prepare_with(const char *name, const Oid *types, const mc_postgres_query *query, mc_pg_connection *connection,
             const mc_pg_wait *wait, char state[MC_PG_STATE])
{
    int sent = PQsendPrepare(connection->pg, name, query->sql, query->param_count, types);
    return run_command(sent, connection, wait, state);
}

static mc_error *
prepare_typed(const char *name, const mc_postgres_query *query, mc_pg_connection *connection, const mc_pg_wait *wait,
              char state[MC_PG_STATE])
{
    Oid types[MC_POSTGRES_PARAMS] = { 0 };
    bool natural = false;
    for (int i = 0; i < query->param_count; i++) {
        types[i] = query->params[i].type;
        natural = natural || (types[i] == MC_POSTGRES_INFERRED && query->params[i].natural != MC_POSTGRES_INFERRED);
    }
    mc_error *error = prepare_with(name, types, query, connection, wait, state);
    if (!natural)
        return error;
    bool again = error != MC_OK && lacks_types(state);
    if (again) {
        for (int i = 0; i < query->param_count; i++)
            if (types[i] == MC_POSTGRES_INFERRED)
                types[i] = query->params[i].natural;
    } else {
        MC_TRY(error);
        MC_TRY(widen_param_types(&again, types, name, query, connection, wait, state));
        if (!again)
            return MC_OK;
        MC_TRY(deallocate_statement(connection, name, wait, state));
    }
    state[0] = '\0';
    return prepare_with(name, types, query, connection, wait, state);
}

mc_error *
mc_pg_prepare(char name[MC_PG_NAME], mc_pg_connection *connection, const mc_postgres_query *query,
              const mc_pg_wait *wait, char state[MC_PG_STATE])
{
    for (int i = 0; i < connection->statement_count; i++) {
        mc_pg_statement *statement = &connection->statements[i];
        if (statement_matches_query(statement, query)) {
            statement->used = ++connection->clock;
            format_statement_name(name, statement->serial);
            return MC_OK;
        }
    }
    MC_TRY(make_statement_room(connection, wait, state));
    unsigned serial = connection->serial++;
    format_statement_name(name, serial);
    MC_TRY(prepare_typed(name, query, connection, wait, state));
    remember_statement(connection, query, serial);
    return MC_OK;
}
