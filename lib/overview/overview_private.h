/* What the files of this room share. */
#ifndef MC_OVERVIEW_OVERVIEW_PRIVATE_H
#define MC_OVERVIEW_OVERVIEW_PRIVATE_H

#include "overview/overview.h"
#include "source/vector/vector.h"
#include "vector/postgis/postgis_levels.h"

/* The name of a reader of the change log begins so; then come the object id of the table, " for ", a digest. */
#define MC_OVERVIEW_READER "overviews of "

/* A table whose overviews are built or dropped. */
typedef struct mc_overview_job {
    const mc_vector_layer *layer;
    mc_postgis_config config; /* of the layer, with the connection that is used */
    const mc_overview_options *options;
    const mc_grid *grid; /* of the tileset, in the CRS of the table */
    mc_postgres_session *session;
    mc_postgis_column column;
    /* What the database says of the table. */
    const char *relation; /* its object id */
    const char *columns, *filenode, *applied, *started, *triggers;
    bool points;        /* it has nothing but points */
    bool has_log;       /* there is a change log */
    const char *reader; /* in the change log; NULL: none */
    mc_extent bounds;   /* of all geometry */
    double rows, bytes;
    int64_t pages;
    double crowd; /* features that begin in a square unit, where any do, at most; 0: not known */
    int levels;   /* that were built */
    mc_ctx *ctx;
    apr_pool_t *pool;
} mc_overview_job;

/* A level, while it is made. */
typedef struct mc_overview_level {
    double resolution;
    double until;     /* it serves maps from its resolution to below this one */
    int fineness;     /* pixels of the plane of the sieve for one of a map */
    int digits;       /* of its geometry, behind the decimal point */
    const char *name; /* of its table, in the schema; NULL: it is given up */
    int64_t kept;     /* features */
    int64_t bytes;    /* of its blocks */
} mc_overview_level;

void mc_overview_tell(const mc_overview_job *job, bool passing, const char *format, ...) MC_PRINTF(3, 4);

/* Of a level, whose resolution the text need not say. `bytes`: of its table and index; 0: there is no level. */
void mc_overview_tell_level(const mc_overview_job *job, const mc_overview_level *level, int64_t bytes,
                            const char *format, ...) MC_PRINTF(4, 5);

/* One statement; its rows are passed over. */
mc_error *mc_overview_run(const mc_overview_job *job, const char *sql) MC_CHECKED;

/* The first row of a statement as texts, NULL for null; *values NULL: there is none. */
mc_error *mc_overview_ask(const char ***values, int columns, const mc_overview_job *job, const char *sql) MC_CHECKED;

/* A text of SQL. */
const char *mc_overview_quote(const char *text, apr_pool_t *pool);

/* Builds all levels of the table, in one transaction. */
mc_error *mc_overview_build_table(mc_overview_job *job, const mc_tileset *tileset) MC_CHECKED;

/* Reads the table from its end, and writes the features that each of the levels keeps. A level
 * that gets more than `worth` bytes is given up. */
mc_error *mc_overview_sift(mc_overview_level *levels, int count, double worth, const mc_overview_job *job) MC_CHECKED;

#endif
