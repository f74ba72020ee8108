/* Statements to a database: in one read-only transaction, with a bound for each statement. */
#include <apr_strings.h>

#include "doctor/doctor_private.h"

enum { MOST_ROWS = 1000 };

static const char begin_sql[] = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";
static const char timeout_sql[] = "SET LOCAL statement_timeout = 5000";
static const char paths_sql[] = "SET LOCAL enable_seqscan = off";

static mc_error *
read_row_texts(apr_array_header_t *rows, mc_postgres_result *result, apr_pool_t *pool)
{
    for (;;) {
        const mc_postgres_row *row;
        MC_TRY(mc_postgres_next(&row, result));
        if (row == NULL)
            return MC_OK;
        if (rows->nelts == MOST_ROWS)
            continue;
        const char **texts = apr_pcalloc(pool, sizeof(*texts) * ((size_t)row->columns + 1));
        for (int i = 0; i < row->columns; i++)
            texts[i] = row->fields[i].size < 0 ? NULL : apr_pstrdup(pool, row->fields[i].data);
        APR_ARRAY_PUSH(rows, const char *const *) = texts;
    }
}

static mc_error *
run_statement(apr_array_header_t **rows, const mc_doctor_database *database, const char *sql, const char *const *values,
              int count, mc_doctor *doctor)
{
    mc_postgres_param params[4];
    for (int i = 0; i < count && i < 4; i++)
        params[i] = (mc_postgres_param){ .value = values[i], .type = MC_POSTGRES_TEXT };
    const mc_postgres_query query = {
        .session = database->session, .sql = sql, .params = params, .param_count = count < 4 ? count : 4
    };
    mc_postgres_result *result;
    *rows = apr_array_make(doctor->pool, 4, sizeof(const char *const *));
    MC_TRY(mc_postgres_start(&result, doctor->ctx->process->postgres, &query, doctor->ctx, doctor->pool));
    mc_error *error = read_row_texts(*rows, result, doctor->pool);
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_doctor_begin(const mc_doctor_database *database, mc_doctor *doctor)
{
    apr_array_header_t *none;
    MC_TRY(run_statement(&none, database, begin_sql, NULL, 0, doctor));
    MC_TRY(run_statement(&none, database, timeout_sql, NULL, 0, doctor));
    return run_statement(&none, database, paths_sql, NULL, 0, doctor);
}

mc_error *
mc_doctor_ask(apr_array_header_t **rows, const mc_doctor_database *database, const char *sql, const char *const *params,
              int count, mc_doctor *doctor)
{
    mc_error *error = run_statement(rows, database, sql, params, count, doctor);
    apr_array_header_t *none;
    if (error != MC_OK && run_statement(&none, database, "ROLLBACK", NULL, 0, doctor) == MC_OK)
        mc_error_ignore(mc_doctor_begin(database, doctor));
    return error;
}
