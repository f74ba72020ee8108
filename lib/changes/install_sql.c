/* See install_sql.h. The statements that have no names in them stand in install.sql. */
#include "changes/install_sql.h"

#include <apr_strings.h>

#include "text/text.h"

/* A text of SQL, for standard_conforming_strings. */
static const char *
quote_sql_text(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "'", mc_replace_all(text, "'", "''", pool), "'", NULL);
}

/* Where the log is there: without it there are no triggers. */
static const char *
drop_triggers(const char *table, apr_pool_t *pool)
{
    const char *call = apr_pstrcat(pool, "BEGIN IF to_regproc('mapcache_changes.unwatch') IS NOT NULL THEN PERFORM ",
                                   "mapcache_changes.unwatch(", quote_sql_text(mc_sql_table(table, pool), pool),
                                   "); END IF; END", NULL);
    return apr_pstrcat(pool, "DO ", quote_sql_text(call, pool), ";\n", NULL);
}

static const char *
watch_table(const char *table, const char *column, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "SELECT mapcache_changes.watch(", quote_sql_text(mc_sql_table(table, pool), pool),
                       column == NULL ? "" : ", ", column == NULL ? "" : quote_sql_text(column, pool), ");\n", NULL);
}

static const char *
grant_to_role(const char *role, apr_pool_t *pool)
{
    const char *name = mc_sql_name(role, pool);
    return apr_pstrcat(pool, "GRANT USAGE ON SCHEMA mapcache_changes TO ", name,
                       ";\nGRANT SELECT ON mapcache_changes.log, mapcache_changes.lost TO ", name,
                       ";\nGRANT SELECT, INSERT, UPDATE ON mapcache_changes.readers TO ", name,
                       ";\nGRANT EXECUTE ON FUNCTION mapcache_changes.trim_changes(interval, bigint) TO ", name, ";\n",
                       NULL);
}

const char *
mc_changes_write_script(const mc_changes_script *script, apr_pool_t *pool)
{
    const char *sql =
        "-- Where a statement fails, nothing is changed. psql tells so by its status only with -v ON_ERROR_STOP=1.\n"
        "BEGIN;\nSET LOCAL client_min_messages = warning;\nSET LOCAL standard_conforming_strings = on;\n";
    if (script->drop && script->tables->nelts == 0)
        sql = apr_pstrcat(pool, sql, "DROP SCHEMA IF EXISTS mapcache_changes CASCADE;\n", NULL);
    else if (!script->drop)
        sql = apr_pstrcat(pool, sql, mc_changes_install_sql, NULL);
    for (int i = 0; i < script->tables->nelts; i++) {
        const char *table = APR_ARRAY_IDX(script->tables, i, const char *);
        sql = apr_pstrcat(pool, sql,
                          script->drop ? drop_triggers(table, pool) : watch_table(table, script->column, pool), NULL);
    }
    if (!script->drop && script->role != NULL)
        sql = apr_pstrcat(pool, sql, grant_to_role(script->role, pool), NULL);
    return apr_pstrcat(pool, sql, "COMMIT;\n", NULL);
}
