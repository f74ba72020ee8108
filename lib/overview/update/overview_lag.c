/* Whether the overviews of a table are behind what has changed: one look, which costs little where they are not. */
#include <apr_strings.h>
#include <string.h>

#include "overview/overview_table.h"
#include "text/text.h"

/* Readers of the change log that are not heard of are forgotten after some days, and what all have applied is removed:
 * levels of a table that does not change say each hour that they know all. */
#define SIGN_OF_LIFE "interval '1 hour'"

static const char *
lag_sql(const char *table, apr_pool_t *pool)
{
    const char *source = mc_overview_quote(mc_sql_table(table, pool), pool);
    return apr_pstrcat(pool, "SELECT count(*)::text, bool_or(CASE ", apr_psprintf(pool, MC_LEVELS_UNFIT("%s"), source),
                       MC_LEVELS_UNLOGGED,
                       "ELSE '' END <> '' OR coalesce(o.at < clock_timestamp() - " SIGN_OF_LIFE
                       ", true) OR EXISTS (SELECT FROM " MC_LEVELS_UNKNOWN_CHANGES
                       "))::text, bool_and(pg_has_role(t.relowner, 'USAGE'))::text FROM " MC_LEVELS_SCHEMA
                       ".levels l LEFT JOIN mapcache_changes.readers o ON o.name = l.reader LEFT JOIN pg_class t ON "
                       "t.relname = l.name "
                       "AND t.relnamespace = '" MC_LEVELS_SCHEMA
                       "'::regnamespace WHERE l.reader IS NOT NULL AND (l.relation = "
                       "to_regclass(",
                       source, ")::oid OR l.source = ", source, ")", NULL);
}

mc_error *
mc_overview_find_lag(mc_overview_lag *lag, const char *table, mc_postgres_session *session, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    const mc_overview_table asked = { .job = { .ctx = ctx, .pool = pool }, .session = session };
    const char **values;
    *lag = (mc_overview_lag){ 0 };
    MC_TRY(mc_overview_ask(&values, 1, &asked,
                           "SELECT (to_regclass('" MC_LEVELS_SCHEMA ".levels') IS NOT NULL AND "
                           "to_regclass('mapcache_changes.readers') IS NOT NULL)::text"));
    if (values == NULL || strcmp(values[0], "true") != 0)
        return MC_OK;
    MC_TRY(mc_overview_ask(&values, 3, &asked, lag_sql(table, pool)));
    if (values == NULL || !mc_parse_int64(&lag->levels, values[0], 0, INT64_MAX) || lag->levels == 0)
        return MC_OK;
    lag->behind = values[1] != NULL && strcmp(values[1], "true") == 0;
    lag->owned = values[2] == NULL || strcmp(values[2], "true") == 0;
    return MC_OK;
}
