/* The statements of a cache of type postgresql. */
#include "cache/postgresql/postgresql_sql.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

#define OF_SERIES " WHERE tileset=$1 AND grid=$2 AND dim=$3"
#define OF_TILE OF_SERIES " AND z=$4 AND x=$5 AND y=$6"

/* Of tile after tile through the key: as a plain join, a young table of which the server knows nothing yet may be read
 * from end to end. */
#define OF_WANTED(level) OF_SERIES " AND t.z=" level " AND t.x=wanted.x AND t.y=wanted.y"

/*
 * Made by one at a time, whole. Keys compare by their bytes; tiles are compressed already, so that the server need not
 * try. The text is a literal of a DO statement: `table`, which is quoted, has its quotes doubled.
 */
static const char *
create_statement(const char *table, apr_pool_t *pool)
{
    const char *body = apr_psprintf(
        pool,
        "BEGIN PERFORM pg_advisory_xact_lock(hashtext('mapcache tiles'));"
        " CREATE TABLE IF NOT EXISTS %s(tileset text COLLATE \"C\" NOT NULL, grid text COLLATE \"C\" NOT NULL,"
        " dim text COLLATE \"C\" NOT NULL, z int4 NOT NULL, x int4 NOT NULL, y int4 NOT NULL,"
        " ctime timestamptz NOT NULL DEFAULT now(), data bytea NOT NULL, PRIMARY KEY(tileset, grid, dim, z, x, y));"
        " ALTER TABLE %s ALTER COLUMN data SET STORAGE EXTERNAL; END",
        table, table);
    return apr_pstrcat(pool, "DO '", mc_replace_all(body, "'", "''", pool), "'", NULL);
}

void
mc_postgresql_statements(mc_postgresql_sql *sql, const char *name, apr_pool_t *pool)
{
    const char *table = mc_sql_table(name, pool);
    sql->create = create_statement(table, pool);
    sql->get = apr_psprintf(pool, "SELECT data, ctime FROM %s" OF_TILE, table);
    sql->get_all = apr_psprintf(pool,
                                "SELECT x, y, data, ctime FROM unnest($5::int4[], $6::int4[]) AS wanted(x, y),"
                                " LATERAL (SELECT data, ctime FROM %s AS t" OF_WANTED("$4") " LIMIT 1) AS found",
                                table);
    sql->exists = apr_psprintf(pool, "SELECT 1 FROM %s" OF_TILE, table);
    sql->remove = apr_psprintf(pool, "DELETE FROM %s" OF_TILE, table);
    /* FOR UPDATE: rows are locked in the order of the arrays, as those of `put` are. */
    sql->remove_all =
        apr_psprintf(pool,
                     "DELETE FROM %s WHERE ctid = ANY(ARRAY(SELECT found.ctid"
                     " FROM unnest($4::int4[], $5::int4[], $6::int4[]) AS wanted(z, x, y),"
                     " LATERAL (SELECT ctid FROM %s AS t" OF_WANTED("wanted.z") " LIMIT 1 FOR UPDATE) AS found))",
                     table, table);
    sql->copy = apr_psprintf(pool, "COPY %s(tileset, grid, dim, z, x, y, data) FROM STDIN (FORMAT binary)", table);
    sql->sizes = apr_psprintf(pool,
                              "SELECT pg_total_relation_size(found), pg_stat_get_live_tuples(found),"
                              " pg_stat_get_dead_tuples(found) FROM to_regclass('%s') AS found",
                              mc_replace_all(table, "'", "''", pool));
    sql->groups = apr_psprintf(pool,
                               "SELECT tileset, grid, dim, z, count(*), sum(CASE octet_length(data) WHEN 5 THEN"
                               " (get_byte(data, 0) = 35)::int ELSE 0 END), sum(octet_length(data)) FROM %s"
                               " GROUP BY tileset, grid, dim, z ORDER BY tileset, grid, dim, z",
                               table);
    sql->remove_group = apr_psprintf(pool, "DELETE FROM %s" OF_SERIES " AND z=$4", table);
    sql->count = apr_psprintf(pool, "SELECT count(*) FROM %s" OF_SERIES, table);
    sql->vacuum = apr_psprintf(pool, "VACUUM (ANALYZE) %s", table);
    sql->list = apr_psprintf(pool,
                             "SELECT x, y FROM %s" OF_SERIES " AND z=$4 AND (x, y) > ($5, $6) AND x < $7 AND y >= $8"
                             " AND y < $9 ORDER BY x, y LIMIT 4096",
                             table);
    sql->put = apr_psprintf(pool,
                            "INSERT INTO %s(tileset, grid, dim, z, x, y, data, ctime) SELECT $1, $2, $3, t.*, now()"
                            " FROM unnest($4::int4[], $5::int4[], $6::int4[], $7::bytea[]) AS t"
                            " ON CONFLICT (tileset, grid, dim, z, x, y)"
                            " DO UPDATE SET data = excluded.data, ctime = excluded.ctime",
                            table);
}
