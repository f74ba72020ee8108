/* The statements of a cube. */
#include "cube/sql.h"

#include <apr_strings.h>
#include <string.h>

#include "text/text.h"

typedef struct sql_names {
    const char *chunks, *dates, *info;
} sql_names;

#define COLUMNS "t, y, x, cover, data"

/*
 * PostgreSQL: bytes are not compressed, so that a part of them can be read alone; and what fits into a page stays in
 * it, instead of being cut into pieces of 2000 bytes (PostgreSQL manual, 73.2: TOAST; 8160 is the most that a page
 * takes). The text is a literal of a DO statement: names, which are quoted, have their quotes doubled.
 */
static const char *
create_tables(const sql_names *n, mc_cube_dialect dialect, apr_pool_t *pool)
{
    bool sqlite = dialect == MC_CUBE_IN_SQLITE;
    const char *blob = sqlite ? "BLOB" : "bytea";
    const char *tables = apr_psprintf(
        pool,
        "CREATE TABLE IF NOT EXISTS %s(signature text NOT NULL);"
        " CREATE TABLE IF NOT EXISTS %s(time int8 NOT NULL PRIMARY KEY, t int4 NOT NULL, slot int4 NOT NULL,"
        " revision int4 NOT NULL DEFAULT 0, UNIQUE(t, slot));"
        " CREATE TABLE IF NOT EXISTS %s(t int4 NOT NULL, y int4 NOT NULL, x int4 NOT NULL, cover %s, data %s NOT NULL,"
        " PRIMARY KEY(t, y, x));",
        n->info, n->dates, n->chunks, blob, blob);
    if (sqlite)
        return tables;
    const char *body =
        apr_psprintf(pool,
                     "BEGIN IF to_regclass('%s') IS NULL THEN %s"
                     " ALTER TABLE %s ALTER COLUMN data SET STORAGE EXTERNAL, SET (toast_tuple_target = 8160);"
                     " END IF; END",
                     mc_replace_all(n->chunks, "'", "''", pool), tables, n->chunks);
    return apr_pstrcat(pool, "DO '", mc_replace_all(body, "'", "''", pool), "'", NULL);
}

/* The pixels of chunk c that are asked for begin in its row `from` and end before `to`; it has `w` columns and `h`
 * rows. */
static const char *
read_statement(const mc_cube_shape *s, const sql_names *n, apr_pool_t *pool)
{
    const char *y = s->first_row == 0 ? "c.y" : apr_psprintf(pool, "(c.y - %d)", s->first_row);
    const char *h = apr_psprintf(pool, "least(%d, %d - %s * %d)", s->chunk_height, s->height, y, s->chunk_height);
    const char *w = apr_psprintf(pool, "least(%d, %d - c.x * %d)", s->chunk_width, s->width, s->chunk_width);
    const char *from = apr_psprintf(pool, "greatest($9 - %s * %d, 0)", y, s->chunk_height);
    const char *to = apr_psprintf(pool, "least($10 - %s * %d, %s)", y, s->chunk_height, h);
    return apr_psprintf(
        pool,
        "SELECT (SELECT signature FROM %s) = $1, d.time, d.slot, %s, c.x, c.cover,"
        " substr(c.data, 1 + (d.slot * %s + %s) * %s * %d, (%s - %s) * %s * %d)"
        " FROM (SELECT time, t, slot FROM %s WHERE time >= $2 AND time < $3 ORDER BY time DESC LIMIT $4) d"
        " LEFT JOIN %s c ON c.t = d.t AND c.y >= $5 + %d AND c.y < $6 + %d AND c.x >= $7 AND c.x < $8",
        n->info, y, h, from, w, s->bands, to, from, w, s->bands, n->dates, n->chunks, s->first_row, s->first_row);
}

/* SQLite's names of the same things. */
static const char *
in_dialect(const char *sql, mc_cube_dialect dialect, apr_pool_t *pool)
{
    if (dialect == MC_CUBE_IN_POSTGRESQL)
        return sql;
    sql = mc_replace_all(sql, "$", "?", pool);
    sql = mc_replace_all(sql, "least(", "min(", pool);
    return mc_replace_all(sql, "greatest(", "max(", pool);
}

static void
add_reading(mc_cube_sql *sql, const mc_cube *cube, const sql_names *n, mc_cube_dialect dialect, apr_pool_t *pool)
{
    sql->dates = apr_psprintf(pool,
                              "SELECT (SELECT signature FROM %s) = $1, time, t, slot, revision FROM %s"
                              " WHERE time >= $2 AND time < $3 ORDER BY time DESC LIMIT $4",
                              n->info, n->dates);
    sql->dates = in_dialect(sql->dates, dialect, pool);
    for (int level = 0; level <= cube->overview_count; level++)
        sql->read[level] = in_dialect(read_statement(mc_cube_level(cube, level), n, pool), dialect, pool);
}

static void
add_writing(mc_cube_sql *sql, const sql_names *n, mc_cube_dialect dialect, apr_pool_t *pool)
{
    sql->signature = apr_psprintf(pool, "SELECT signature FROM %s", n->info);
    sql->sign =
        in_dialect(apr_psprintf(pool, "INSERT INTO %s SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM %s)", n->info, n->info),
                   dialect, pool);
    sql->resign = in_dialect(apr_psprintf(pool, "UPDATE %s SET signature = $1", n->info), dialect, pool);
    sql->look = in_dialect(
        apr_psprintf(pool, "SELECT x, cover, data FROM %s WHERE t = $1 AND y = $2 AND x >= $3 AND x < $4", n->chunks),
        dialect, pool);
    sql->clear = in_dialect(apr_psprintf(pool, "DELETE FROM %s WHERE y >= $1", n->chunks), dialect, pool);
    sql->take_out = in_dialect(
        apr_psprintf(pool, "DELETE FROM %s WHERE t = $1 AND y = $2 AND x >= $3 AND x < $4 RETURNING x, cover, data",
                     n->chunks),
        dialect, pool);
    sql->put = in_dialect(apr_psprintf(pool, "INSERT INTO %s(" COLUMNS ") VALUES ($1, $2, $3, $4, $5)", n->chunks),
                          dialect, pool);
    sql->put_date = in_dialect(apr_psprintf(pool,
                                            "INSERT INTO %s AS d (time, t, slot) VALUES ($1, $2, $3)"
                                            " ON CONFLICT (time) DO UPDATE SET t = excluded.t, slot = excluded.slot,"
                                            " revision = d.revision + 1",
                                            n->dates),
                               dialect, pool);
    if (dialect == MC_CUBE_IN_SQLITE) {
        sql->tidy = "PRAGMA wal_checkpoint(TRUNCATE)";
        sql->size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        return;
    }
    sql->copy = apr_psprintf(pool, "COPY %s(" COLUMNS ") FROM STDIN (FORMAT binary)", n->chunks);
    sql->tidy = apr_psprintf(pool, "VACUUM %s", n->chunks);
    sql->size = apr_psprintf(
        pool,
        "SELECT sum(pg_total_relation_size(n.name::regclass))::int8 FROM unnest(ARRAY['%s', '%s', '%s']) AS n(name)",
        mc_replace_all(n->chunks, "'", "''", pool), mc_replace_all(n->dates, "'", "''", pool),
        mc_replace_all(n->info, "'", "''", pool));
    sql->lock = apr_psprintf(pool, "SELECT pg_advisory_lock(hashtext('mapcache cube'), hashtext('%s'))",
                             mc_replace_all(n->chunks, "'", "''", pool));
}

mc_cube_sql *
mc_cube_statements(const mc_cube *cube, const char *table, mc_cube_dialect dialect, apr_pool_t *pool)
{
    mc_cube_sql *sql = apr_pcalloc(pool, sizeof(*sql));
    sql_names n = { mc_sql_table(table, pool), mc_sql_table(apr_pstrcat(pool, table, "_dates", NULL), pool),
                    mc_sql_table(apr_pstrcat(pool, table, "_info", NULL), pool) };
    sql->create = create_tables(&n, dialect, pool);
    add_reading(sql, cube, &n, dialect, pool);
    add_writing(sql, &n, dialect, pool);
    return sql;
}
