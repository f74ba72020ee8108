/* Statements of a builder, and what the builder says. */
#include <apr_strings.h>
#include <stdarg.h>

#include "overview/overview_private.h"
#include "text/text.h"

static void
tell_news(const mc_overview_job *job, mc_overview_news news, const char *format, va_list arguments)
{
    if (job->options->tell == NULL)
        return;
    apr_pool_t *pool;
    apr_pool_create(&pool, job->pool);
    news.table = job->config.table;
    news.text = apr_pvsprintf(pool, format, arguments);
    if (news.resolution > 0)
        news.text = apr_psprintf(pool, "%g a pixel: %s", news.resolution, news.text);
    job->options->tell(job->options->baton, &news);
    apr_pool_destroy(pool);
}

void
mc_overview_tell(const mc_overview_job *job, bool passing, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell_news(job, (mc_overview_news){ .passing = passing }, format, arguments);
    va_end(arguments);
}

void
mc_overview_tell_level(const mc_overview_job *job, const mc_overview_level *level, int64_t bytes, const char *format,
                       ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell_news(job, (mc_overview_news){ .resolution = level->resolution, .features = level->kept, .bytes = bytes },
              format, arguments);
    va_end(arguments);
}

const char *
mc_overview_quote(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "'", mc_replace_all(text, "'", "''", pool), "'", NULL);
}

mc_error *
mc_overview_ask(const char ***values, int columns, const mc_overview_job *job, const char *sql)
{
    const mc_postgres_query query = { .session = job->session, .sql = sql };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    *values = NULL;
    mc_error *error = mc_postgres_start(&result, job->ctx->process->postgres, &query, job->ctx, job->pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    if (error == MC_OK && row != NULL && row->columns >= columns) {
        *values = apr_pcalloc(job->pool, sizeof(**values) * (size_t)(columns + 1));
        for (int i = 0; i < columns; i++)
            (*values)[i] = row->fields[i].size < 0 ? NULL : apr_pstrdup(job->pool, row->fields[i].data);
    }
    while (error == MC_OK && row != NULL)
        error = mc_postgres_next(&row, result);
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_overview_run(const mc_overview_job *job, const char *sql)
{
    const char **values;
    return mc_overview_ask(&values, 0, job, sql);
}
