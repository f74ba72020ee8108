/* Statements of a builder. */
#include <apr_strings.h>

#include "overview/overview_table.h"
#include "text/text.h"

const char *
mc_overview_quote(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "'", mc_replace_all(text, "'", "''", pool), "'", NULL);
}

mc_error *
mc_overview_ask(const char ***values, int columns, const mc_overview_table *table, const char *sql)
{
    const mc_postgres_query query = { .session = table->session, .sql = sql };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    *values = NULL;
    mc_error *error =
        mc_postgres_start(&result, table->job.ctx->process->postgres, &query, table->job.ctx, table->job.pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    if (error == MC_OK && row != NULL && row->columns >= columns) {
        *values = apr_pcalloc(table->job.pool, sizeof(**values) * (size_t)(columns + 1));
        for (int i = 0; i < columns; i++)
            (*values)[i] = row->fields[i].size < 0 ? NULL : apr_pstrdup(table->job.pool, row->fields[i].data);
    }
    while (error == MC_OK && row != NULL)
        error = mc_postgres_next(&row, result);
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_overview_run(const mc_overview_table *table, const char *sql)
{
    const char **values;
    return mc_overview_ask(&values, 0, table, sql);
}
