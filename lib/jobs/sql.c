/* See sql.h. */
#include "jobs/sql.h"

#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "text/text.h"

/* SQLSTATE (PostgreSQL manual, appendix A). */
#define UNDEFINED_TABLE "42P01"

/* Microseconds for a statement where the caller has no deadline. */
#define STATEMENT_TIME (20 * APR_USEC_PER_SEC)

void
jobs_bind(jobs_statement *statement, const char *text)
{
    MC_ASSERT(statement->count < MC_POSTGRES_PARAMS);
    statement->params[statement->count++] = (mc_postgres_param){ .value = text };
}

void
jobs_bind_number(jobs_statement *statement, int64_t number, apr_pool_t *pool)
{
    jobs_bind(statement, apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)number));
}

void
jobs_bind_real(jobs_statement *statement, double number, apr_pool_t *pool)
{
    jobs_bind(statement, mc_double_text('g', 17, number, pool));
}

void
jobs_bind_list(jobs_statement *statement, const int *numbers, int count, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, (size_t)count * 12 + 3), *at = text;
    *at++ = '{';
    for (int i = 0; i < count; i++)
        at += snprintf(at, 13, i == 0 ? "%d" : ",%d", numbers[i]);
    strcpy(at, "}");
    jobs_bind(statement, text);
}

/* Of a row, at least: the statements of the queue ask for fewer. */
enum { JOBS_COLUMNS = 48 };

/* Bytes of the rows of a statement, but for its last one: the area of a job may be as large as a row may be. */
#define ROWS_MAX (32 << 20)

static const char *const *
copy_row(int64_t *size, const mc_postgres_row *row, apr_pool_t *pool)
{
    int count = row->columns < JOBS_COLUMNS ? JOBS_COLUMNS : row->columns; /* what the database did not send is null */
    const char **columns = apr_pcalloc(pool, sizeof(*columns) * (size_t)(count + 1));
    *size += (int64_t)sizeof(*columns) * count;
    for (int i = 0; i < row->columns; i++)
        if (row->fields[i].size >= 0) {
            columns[i] = apr_pstrmemdup(pool, row->fields[i].data, (size_t)row->fields[i].size);
            *size += row->fields[i].size;
        }
    return columns;
}

/* The database's failure in the words of the queue. */
static mc_error *
jobs_database_error(mc_error *error, apr_pool_t *pool)
{
    const char *words =
        error->kind == MC_ERR_UPSTREAM ? "the job queue's database refuses" : "the job queue cannot be reached";
    return mc_error_wrap(pool, error, error->kind, "%s", words);
}

mc_error *
jobs_run(apr_array_header_t **rows, mc_jobs *jobs, const jobs_statement *statement, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgres_query query = { .connection = jobs->connection,
                                .sql = mc_replace_all(statement->sql, "@", jobs->prefix, pool),
                                .params = statement->params,
                                .param_count = statement->count };
    mc_postgres_result *result;
    const mc_postgres_row *row = NULL;
    int64_t size = 0;
    mc_ctx own = *ctx;
    own.deadline = mc_clock_now() + mc_ctx_remaining(ctx, STATEMENT_TIME);
    *rows = apr_array_make(pool, 4, sizeof(jobs_row));
    mc_error *error =
        mc_postgres_start(&result, ctx->process == NULL ? NULL : ctx->process->postgres, &query, &own, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        if (size > ROWS_MAX)
            error = mc_error_create(pool, MC_ERR_UPSTREAM, "the database sends more rows than a queue can have");
        else
            APR_ARRAY_PUSH(*rows, jobs_row) = copy_row(&size, row, pool);
    bool no_table = error != MC_OK && strcmp(mc_postgres_sqlstate(result), UNDEFINED_TABLE) == 0;
    mc_postgres_end(result);
    return error == MC_OK || no_table ? MC_OK : jobs_database_error(error, pool);
}

int64_t
jobs_number(const char *column)
{
    int64_t number = 0;
    if (column != NULL)
        (void)mc_parse_int64(&number, column, INT64_MIN, INT64_MAX);
    return number;
}

int
jobs_int(const char *column)
{
    int64_t number = jobs_number(column);
    return number < INT32_MIN ? INT32_MIN : number > INT32_MAX ? INT32_MAX : (int)number;
}

double
jobs_real(const char *column)
{
    double number = 0;
    if (column != NULL)
        (void)mc_parse_double(&number, column);
    return number;
}

const int *
jobs_list_of(int *count, const char *column, apr_pool_t *pool)
{
    int most = 1;
    for (const char *at = column; at != NULL && *at != '\0'; at++)
        most += *at == ',';
    int *numbers = apr_palloc(pool, sizeof(int) * (size_t)most);
    *count = 0;
    const char *at = column == NULL || *column == '\0' ? "}" : column + 1;
    while (*at != '}' && *at != '\0' && *count < most) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at || number < INT32_MIN || number > INT32_MAX)
            break;
        numbers[(*count)++] = (int)number;
        at = *end == ',' ? end + 1 : end;
    }
    return numbers;
}
