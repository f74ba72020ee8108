/* <jobs>: where the queue is. */
#include <apr_strings.h>
#include <ctype.h>
#include <string.h>

#include "jobs/sql.h"

enum { LEASE = 60, LONGEST_NAME = 63 /* bytes of a name in PostgreSQL */ };

typedef struct jobs_config {
    const char *connection, *schema;
    int lease;
} jobs_config;

const mc_key mc_jobs_keys[] = {
    MC_KEY_TEXT("connection", offsetof(jobs_config, connection),
                "Connection string or URI of libpq, e.g. `host=db.example dbname=tiles user=maps`.",
                .flags = MC_KEY_OURS | MC_KEY_REQUIRED),
    MC_KEY_TEXT(
        "schema", offsetof(jobs_config, schema),
        "Schema of the queue's tables, made at first use; without it the first of the connection's search path.",
        .flags = MC_KEY_OURS),
    MC_KEY_INT("lease", offsetof(jobs_config, lease),
               "Seconds after which what a silent worker holds is given to another; workers speak every two seconds.",
               .flags = MC_KEY_OURS, .min = 5, .max = 86400, .fallback = "60"),
    MC_KEY_END,
};

/* The same database under a name of its own, which operators see, and which has connections of its own. */
static const char *
own_connection(const char *connection, apr_pool_t *pool)
{
    bool uri = strncmp(connection, "postgres://", 11) == 0 || strncmp(connection, "postgresql://", 13) == 0;
    if (!uri)
        return apr_pstrcat(pool, connection, " application_name=mapcache-jobs", NULL);
    return apr_pstrcat(pool, connection, strchr(connection, '?') == NULL ? "?" : "&", "application_name=mapcache-jobs",
                       NULL);
}

mc_jobs *
mc_jobs_create(const char *connection, const mc_jobs *like, apr_pool_t *pool)
{
    mc_jobs *jobs = apr_pcalloc(pool, sizeof(*jobs));
    jobs->connection = own_connection(connection, pool);
    jobs->prefix = like == NULL ? "" : like->prefix;
    jobs->schema = like == NULL ? NULL : like->schema;
    jobs->lease = like == NULL ? LEASE : like->lease;
    return jobs;
}

/* A plain name: it goes into statements. */
static bool
is_name(const char *text)
{
    size_t size = strlen(text);
    if (size == 0 || size > LONGEST_NAME || isdigit((unsigned char)*text))
        return false;
    for (const char *at = text; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return false;
    return true;
}

mc_jobs *
mc_jobs_from_config(const mc_node *node, mc_build *build)
{
    jobs_config config = { 0 };
    if (!mc_config_read(&config, node, mc_jobs_keys, build->diagnostics))
        return NULL;
    if (config.schema != NULL && !is_name(config.schema)) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "<schema>: %s should be a name of letters, digits and '_' of at most %d characters",
                    mc_config_quote(config.schema, build->pool), LONGEST_NAME);
        return NULL;
    }
    mc_postgres_configure(config.connection, node, build);
    mc_jobs *jobs = mc_jobs_create(config.connection, NULL, build->pool);
    jobs->lease = config.lease;
    jobs->schema = config.schema;
    if (config.schema != NULL)
        jobs->prefix = apr_pstrcat(build->pool, "\"", config.schema, "\".", NULL);
    return jobs;
}
