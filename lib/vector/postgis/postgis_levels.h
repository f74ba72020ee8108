/*
 * Overviews of a table: plain tables in the schema mapcache_overviews with those of its features that can be seen at a
 * resolution (docs/internals/overviews.md). Built by lib/overview; found here when a map is read.
 */
#ifndef MC_VECTOR_POSTGIS_POSTGIS_LEVELS_H
#define MC_VECTOR_POSTGIS_POSTGIS_LEVELS_H

#include "vector/feature/reading.h"
#include "vector/postgis/postgis.h"

/* What the overviews hold, as a number: those that another version has built in another way are not used. */
#define MC_LEVELS_FORMAT 3

#define MC_LEVELS_SCHEMA "mapcache_overviews"

/*
 * The table of all levels:
 *   name               of the level's table in the same schema
 *   source, relation   the table that it was made of: as it is called, and its object id
 *   geometry, srid     column and SRID of its geometry
 *   style, format      digest of the style or of the rules of vector tiles, MC_LEVELS_FORMAT
 *   resolution, until  units of the SRID for a pixel: for maps from the first to below the second
 *   metres_per_unit    of the grid whose scales the style was read for
 *   columns, filenode  what the source looked like
 *   applied, started   the snapshot that was read, and when the server was started
 *   reader, triggers   of the change log (lib/changes/install.sql); null: the operator says that the table is static
 *   rows, built        its features now; when it was built
 *   rows_built         as many were there when the level was built
 *   build_seconds      that building all levels of the style took; null: by an older version
 *   crowded, places    from which resolution on features were taken for crowded; places of a window of blocks
 */
#define MC_LEVELS_CREATE_SCHEMA "CREATE SCHEMA IF NOT EXISTS " MC_LEVELS_SCHEMA
#define MC_LEVELS_CREATE_TABLE                                                                                         \
    "CREATE TABLE IF NOT EXISTS " MC_LEVELS_SCHEMA ".levels (name text PRIMARY KEY, source text NOT NULL, "            \
    "relation oid NOT NULL, geometry name NOT NULL, srid integer NOT NULL, style bigint NOT NULL, "                    \
    "format integer NOT NULL, resolution float8 NOT NULL, until float8 NOT NULL, metres_per_unit float8 NOT NULL, "    \
    "columns text NOT NULL, "                                                                                          \
    "filenode oid NOT NULL, applied pg_snapshot NOT NULL, started text NOT NULL, reader text, triggers text, "         \
    "rows bigint NOT NULL, built timestamptz NOT NULL DEFAULT clock_timestamp())"
/* What an older version has not made. */
#define MC_LEVELS_ADD_COLUMNS                                                                                          \
    "ALTER TABLE " MC_LEVELS_SCHEMA ".levels ADD COLUMN IF NOT EXISTS rows_built bigint, ADD COLUMN IF NOT EXISTS "    \
    "crowded float8, ADD COLUMN IF NOT EXISTS places bigint, ADD COLUMN IF NOT EXISTS build_seconds float8"
/* What updates remember of features that have gone from a level: for its owner alone, as whoever may read the table of
 * levels need not be one who may read the source. */
#define MC_LEVELS_CREATE_GONE                                                                                          \
    "CREATE TABLE IF NOT EXISTS " MC_LEVELS_SCHEMA ".gone (name text PRIMARY KEY REFERENCES " MC_LEVELS_SCHEMA         \
    ".levels ON DELETE CASCADE, features bytea NOT NULL)"
#define MC_LEVELS_CREATE_NUMBERS "CREATE SEQUENCE IF NOT EXISTS " MC_LEVELS_SCHEMA ".numbers"

/* A number of a block (level_blocks.h) at a byte of it, and where the next one begins. */
#define MC_LEVELS_CREATE_TAKE                                                                                          \
    "CREATE OR REPLACE FUNCTION " MC_LEVELS_SCHEMA ".take_number(block bytea, INOUT at integer, OUT number bigint) "   \
    "LANGUAGE plpgsql IMMUTABLE AS $body$ DECLARE byte integer; shift integer := 0; BEGIN number := 0; LOOP byte := "  \
    "get_byte(block, at); at := at + 1; number := number | ((byte & 127)::bigint << shift); EXIT WHEN byte < 128; "    \
    "shift := shift + 7; END LOOP; END $body$"
/* The features of a level for other programs, in drawing order within each part: attributes in the order in which the
 * style names them. */
#define MC_LEVELS_CREATE_FEATURES                                                                                      \
    "CREATE OR REPLACE FUNCTION " MC_LEVELS_SCHEMA ".features(level text, OUT part integer, OUT place bigint, OUT "    \
    "attributes text[], OUT shape geometry) RETURNS SETOF record LANGUAGE plpgsql STABLE AS $body$ DECLARE b bytea; "  \
    "at integer; n bigint; count bigint; tuples bigint; many bigint; size bigint; texts text[]; srid integer; BEGIN "  \
    "SELECT l.srid INTO srid FROM " MC_LEVELS_SCHEMA ".levels l WHERE l.name = level; "                                \
    "FOR part, b IN EXECUTE format('SELECT part, features || %L::bytea FROM " MC_LEVELS_SCHEMA ".%I', '', level) "     \
    "LOOP at := 0; place := 0; texts := '{}'; SELECT * INTO at, many FROM " MC_LEVELS_SCHEMA ".take_number(b, at); "   \
    "SELECT * INTO at, tuples FROM " MC_LEVELS_SCHEMA ".take_number(b, at); FOR i IN 1..many * tuples LOOP "           \
    "SELECT * INTO at, n FROM " MC_LEVELS_SCHEMA ".take_number(b, at); IF n = 0 THEN texts := texts || NULL::text; "   \
    "ELSE texts := texts || convert_from(substring(b FROM at + 1 FOR n::integer - 1), 'UTF8'); at := at + n - 1; "     \
    "END IF; END LOOP; WHILE at < length(b) LOOP SELECT * INTO at, n FROM " MC_LEVELS_SCHEMA ".take_number(b, at); "   \
    "place := place + n; SELECT * INTO at, count FROM " MC_LEVELS_SCHEMA ".take_number(b, at); SELECT * INTO at, "     \
    "size FROM " MC_LEVELS_SCHEMA ".take_number(b, at); attributes := texts[count * many + 1:(count + 1) * many]; "    \
    "shape := ST_SetSRID(CASE WHEN size % 2 = 1 THEN ST_GeomFromTWKB(substring(b FROM at + 1 FOR (size / "             \
    "2)::integer)) "                                                                                                   \
    "ELSE ST_GeomFromWKB(substring(b FROM at + 1 FOR (size / 2)::integer)) END, srid); at := at + size / 2; "          \
    "RETURN NEXT; END LOOP; END LOOP; END $body$"

/* What a table looks like now, by its object id: its columns; the triggers of the change log, null unless all four of
 * them stand and fire. */
#define MC_LEVELS_COLUMNS(relation_)                                                                                   \
    "(SELECT md5(string_agg(a.attname || ' ' || a.atttypid || ' ' || a.atttypmod, ',' ORDER BY a.attnum)) "            \
    "FROM pg_attribute a WHERE a.attrelid = " relation_ " AND a.attnum > 0 AND NOT a.attisdropped)"
#define MC_LEVELS_TRIGGERS(relation_)                                                                                  \
    "(SELECT CASE WHEN count(*) = 4 THEN string_agg(t.oid::text, ',' ORDER BY t.tgname) END FROM pg_trigger t "        \
    "WHERE t.tgrelid = " relation_                                                                                     \
    " AND starts_with(t.tgname::text, 'mapcache_changes_') AND t.tgenabled IN ('O', 'A') "                             \
    "AND t.tgfoid = to_regproc('mapcache_changes.log_change')::oid)"

/* Why a level l (a row of the table of levels) does not fit its table any more, as branches of a CASE; `source_`: the
 * name by which the table is known, in SQL. */
#define MC_LEVELS_UNFIT(source_)                                                                                       \
    "WHEN to_regclass(" source_ ") IS DISTINCT FROM l.relation::regclass OR pg_relation_filenode(l.relation) IS "      \
    "DISTINCT FROM l.filenode THEN 'the table was rewritten or replaced since they were built' WHEN l.columns IS "     \
    "DISTINCT FROM " MC_LEVELS_COLUMNS("l.relation") " THEN 'the columns of the table have changed since' "
/* The same of a level whose changes are logged. */
#define MC_LEVELS_UNLOGGED                                                                                             \
    "WHEN l.triggers IS DISTINCT FROM " MC_LEVELS_TRIGGERS(                                                            \
        "l.relation") " THEN 'the triggers of the change log do not watch the table as they did' "                     \
                      "WHEN pg_snapshot_xmax(l.applied) > pg_snapshot_xmax(pg_current_snapshot()) "                    \
                      "THEN 'they were built in another database cluster' "                                            \
                      "WHEN NOT EXISTS (SELECT FROM mapcache_changes.readers r WHERE r.name = l.reader) "              \
                      "OR EXISTS (SELECT FROM mapcache_changes.lost o WHERE NOT pg_visible_in_snapshot(o.xid, "        \
                      "l.applied)) "                                                                                   \
                      "THEN 'they are older than what the change log holds: build them again' "
/* Rows c of the change log that a level l does not know. */
#define MC_LEVELS_UNKNOWN_CHANGES                                                                                      \
    "mapcache_changes.log c WHERE c.relation = l.relation "                                                            \
    "AND ((c.xid >= pg_snapshot_xmin(l.applied) AND NOT pg_visible_in_snapshot(c.xid, l.applied)) "                    \
    "OR (l.started <> pg_postmaster_start_time()::text AND c.at >= pg_postmaster_start_time())) "

/* What is known of the overviews of one layer's table. */
typedef struct mc_levels mc_levels;

/* Lives as long as `pool`; so does the configuration. Nothing is asked before the first map. */
mc_levels *mc_levels_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool);

/* The level that a map is read from. */
typedef struct mc_level_use {
    const char *name;      /* of its table, in the schema; NULL: the map is read from the table itself */
    int srid;              /* of its boxes */
    struct level_set *set; /* holds the name */
} mc_level_use;

/*
 * The level for a map whose box, in units of `column`, is that of the query. A level is used where the map's CRS is the
 * table's, the style or the vector tiles are those that the level was built for, and nothing in the map's box has
 * changed since. Whatever the database says to the contrary, or cannot say, is logged once, and the table itself is
 * read. mc_levels_give ends the use.
 */
mc_level_use mc_levels_take(mc_levels *levels, const mc_postgis_column *column, const mc_feature_query *query,
                            mc_ctx *ctx, apr_pool_t *pool);
void mc_levels_give(mc_level_use *use);

/* The overviews are asked for again before the next map. */
void mc_levels_forget(mc_levels *levels);

/*
 * Visits the features of a level for reading->map, in drawing order; *features: how many were visited. `ids`: the level
 * has the features' numbers, behind the attributes. `session`: instead of a connection. Errors of the database as of
 * mc_postgres_start, MC_ERR_CORRUPT for what is no block.
 */
mc_error *mc_levels_read(int64_t *features, mc_feature_reading *reading, const mc_level_use *use, bool ids,
                         const char *connection, mc_postgres_session *session, apr_pool_t *pool) MC_CHECKED;

#endif
