/* What a builder says. */
#include <apr_strings.h>
#include <stdarg.h>

#include "overview/overview_private.h"

static void
tell_news(const mc_overview_job *job, mc_overview_news news, const char *format, va_list arguments)
{
    if (job->options->tell == NULL)
        return;
    apr_pool_t *pool;
    apr_pool_create(&pool, job->pool);
    news.kind = job->kind;
    news.name = job->name;
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
    tell_news(job, (mc_overview_news){ .passing = passing, .differs = -1 }, format, arguments);
    va_end(arguments);
}

void
mc_overview_tell_level(const mc_overview_job *job, const mc_overview_level *level, int64_t bytes, const char *format,
                       ...)
{
    va_list arguments;
    va_start(arguments, format);
    const double differs = level->painted == 0 ? -1 : (double)level->off / (double)level->painted;
    const mc_overview_news news = {
        .resolution = level->resolution, .features = level->kept, .bytes = bytes, .differs = differs
    };
    tell_news(job, news, format, arguments);
    va_end(arguments);
}

mc_error *
mc_overview_refuse(const mc_overview_job *job, const char *reason)
{
    return mc_error_create(job->pool, MC_ERR_CONFIG, "%s \"%s\" of layer \"%s\" cannot have overviews: %s", job->kind,
                           job->name, job->layer->name, reason);
}
