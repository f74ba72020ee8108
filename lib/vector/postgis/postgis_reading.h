/* One reading of a layer of PostGIS: its rows as features, over one connection or over several. */
#ifndef MC_VECTOR_POSTGIS_POSTGIS_READING_H
#define MC_VECTOR_POSTGIS_POSTGIS_READING_H

#include "text/text.h"
#include "vector/feature/packet.h"
#include "vector/postgis/postgis_layer.h"

/* What one thread reads at a time. */
typedef struct mc_postgis_reading {
    mc_feature_reading base;
    mc_postgis_layer *layer;
    const mc_postgis_column *column;
    const mc_postgis_request *request;
    int first;                 /* column of the first attribute */
    mc_postgres_field *fields; /* of a feature among many in one value; NULL: each has a row of its own */
    const char **values;       /* of the attributes */
    mc_whole_text *texts;      /* what whole numbers among them are written to */
    int64_t *wholes;           /* or what they are */
    int64_t rows;
    int64_t visited; /* features of all worlds so far */
    int64_t beside;  /* of the rows: what is not in the box */
    int64_t worth;   /* bytes that the rows had as plain ones */
} mc_postgis_reading;

/* ---- postgis_rows.c */

/* The query in the layer's CRS, to be transformed here; a CRS that only the database knows (its spatial_ref_sys may
 * have rows of its own) is transformed there. Returns the SRID of the query's box. */
int mc_postgis_own_query(mc_feature_query *own, int srid, const mc_feature_query *query, const char *layer,
                         apr_pool_t *pool);

/* Gives a reading, all of whose other members are set, places for the fields and values of a row. `gathered`: many
 * features come in one value. */
void mc_postgis_reserve_row(mc_postgis_reading *r, bool gathered, apr_pool_t *pool);

/* Visits the features of the next `most` rows of an answer, or of all that are left. */
mc_error *mc_postgis_read_rows(mc_postgis_reading *r, mc_postgres_result *result, int64_t most,
                               apr_pool_t *pool) MC_CHECKED;

/* ---- postgis_ranges.c */

/*
 * Reads a gathered statement over several connections: ranges of the table's pages, which are handed over as packets in
 * the order of the table, all of one exported snapshot. For large tables, where somebody takes packets, a worker is
 * idle and a connection is spare; else, and where the database does not let several sessions see one snapshot, *done is
 * false and nothing has been visited. r->rows and r->beside are added to; *bytes: of the answers.
 */
mc_error *mc_postgis_read_spread(bool *done, int64_t *bytes, mc_postgis_reading *r,
                                 const mc_postgis_statement *statement, apr_pool_t *pool) MC_CHECKED;

#endif
