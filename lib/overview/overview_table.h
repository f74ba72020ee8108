/* Overviews of a table of PostGIS, in tables beside it (vector/postgis/postgis_levels.h). */
#ifndef MC_OVERVIEW_OVERVIEW_TABLE_H
#define MC_OVERVIEW_OVERVIEW_TABLE_H

#include "overview/overview_private.h"
#include "vector/postgis/postgis_levels.h"

/* The name of a reader of the change log begins so; then come the object id of the table, " for ", a digest. */
#define MC_OVERVIEW_READER "overviews of "

/* A table whose overviews are built, updated or dropped. */
typedef struct mc_overview_table {
    mc_overview_job job;
    mc_postgis_config config; /* of the layer, with the connection that is used */
    mc_postgres_session *session;
    mc_postgis_column column;
    /* What the database says of the table. */
    const char *relation; /* its object id */
    const char *columns, *filenode, *applied, *started, *triggers;
    const char *reader; /* in the change log; NULL: none */
} mc_overview_table;

extern const mc_overview_source_ops mc_overview_table_source;
extern const mc_overview_store_ops mc_overview_table_store;

/* Builds all levels of the table of a layer, in one transaction, or drops them. Errors as of mc_overview_build. */
mc_error *mc_overview_build_table(mc_overview_table *table, const mc_tileset *tileset) MC_CHECKED;
mc_error *mc_overview_drop_table(mc_overview_table *table, const mc_tileset *tileset) MC_CHECKED;

/* Asks for the facts of the table, in the transaction that reads it. MC_ERR_CONFIG where it cannot have overviews. */
mc_error *mc_overview_ask_facts(mc_overview_table *table) MC_CHECKED;

/* Asks for the bounds and the number of its rows, which reads all of it. */
mc_error *mc_overview_find_bounds(mc_overview_table *table) MC_CHECKED;

/* The rows with geometry that a condition of SQL holds for: mc_overview_row, whose ordinals are pages and places. */
mc_error *mc_overview_read_rows(apr_array_header_t **rows, const mc_overview_table *table, const char *condition,
                                apr_pool_t *pool) MC_CHECKED;

/* Visits one row, valid during the call; an error ends the reading and comes back from it. */
typedef mc_error *mc_overview_row_visitor(void *baton, const mc_overview_row *row);

/* The same rows, while they arrive, in the order of the table; for the rest of the transaction no index alone is used
 * (stored_order of mc_postgres_query). */
mc_error *mc_overview_visit_rows(const mc_overview_table *table, const char *condition, mc_overview_row_visitor *visit,
                                 void *baton, apr_pool_t *pool) MC_CHECKED;

/* Visits the features of a map of a table, or of one of its levels, in the transaction that builds them (as
 * mc_feature_ops.read). `level`: the name of the level's table; NULL: the table itself. */
mc_error *mc_overview_draw_table(const mc_overview_table *table, const char *level, const mc_feature_query *query,
                                 mc_feature_visitor *visit, void *baton, int64_t *skipped, apr_pool_t *pool) MC_CHECKED;

/* The levels of the style of the job, as a condition of SQL on rows l of the table of levels. */
const char *mc_overview_levels_sql(const mc_overview_table *table);

/* The ordinal of a row from its ctid in the wire form; 0: it has none. */
int64_t mc_overview_ordinal(const mc_overview_table *table, const mc_postgres_field *ctid);

/* A level that there is, to have further blocks. Sets level->target. */
void mc_overview_open_level(mc_overview_level *level, const char *name, apr_pool_t *pool);

/* Parts of building that updating has as well: the lock, and the transaction that makes all levels anew. */
mc_error *mc_overview_make_schema(const mc_overview_table *table) MC_CHECKED;
mc_error *mc_overview_lock_table(mc_overview_table *table) MC_CHECKED;
mc_error *mc_overview_build_anew(mc_overview_table *table) MC_CHECKED;
void mc_overview_name_reader(mc_overview_table *table);
mc_error *mc_overview_move_reader(const mc_overview_table *table) MC_CHECKED;
mc_error *mc_overview_find_schema(bool *has, const mc_overview_table *table) MC_CHECKED;

/* Brings the levels of a table up to date with what the change log says, in one transaction; builds them anew where
 * that is not enough. */
mc_error *mc_overview_update_table(mc_overview_table *table, const mc_tileset *tileset) MC_CHECKED;

/* Builds all levels of the style anew in an update, within the bounds of the options; and notes what an update did. */
mc_error *mc_overview_update_anew(mc_overview_table *table, const char *reason) MC_CHECKED;
void mc_overview_note_update(const mc_overview_table *table, int64_t boxes, int64_t rows);

/* How the overviews of a table stand to what has changed. */
typedef struct mc_overview_lag {
    int64_t levels; /* of any style, whose changes are logged */
    bool behind;    /* something has changed since they were made, or they have not been heard of for an hour */
    bool owned;     /* the role of the session may change them */
} mc_overview_lag;

/* Asks for that, for a table as configured. Errors as of mc_postgres_start. */
mc_error *mc_overview_find_lag(mc_overview_lag *lag, const char *table, mc_postgres_session *session, mc_ctx *ctx,
                               apr_pool_t *pool) MC_CHECKED;

/* One statement; its rows are passed over. */
mc_error *mc_overview_run(const mc_overview_table *table, const char *sql) MC_CHECKED;

/* The first row of a statement as texts, NULL for null; *values NULL: there is none. */
mc_error *mc_overview_ask(const char ***values, int columns, const mc_overview_table *table,
                          const char *sql) MC_CHECKED;

/* A text of SQL. */
const char *mc_overview_quote(const char *text, apr_pool_t *pool);

#endif
