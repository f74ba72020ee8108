/* Tables and queries of PostGIS as data of a layer. */
#ifndef MC_FEATURE_POSTGIS_H
#define MC_FEATURE_POSTGIS_H

#include "feature/feature.h"

/* How geometry travels. */
typedef enum mc_transfer { MC_TRANSFER_BINARY, MC_TRANSFER_HEX, MC_TRANSFER_TWKB } mc_transfer;

typedef struct mc_postgis_config {
    const char *connection; /* libpq's string or URI */
    const char *table;      /* "table" or "schema.table", unquoted; or NULL */
    const char *query;      /* a SELECT, with !BBOX! and its like; or NULL */
    const char *geometry;   /* column; NULL: found in geometry_columns */
    int srid;               /* 0: found there */
    const char *id;         /* column with the feature's number; NULL: none */
    int transfer;
} mc_postgis_config;

/* Nothing is asked before the first map. The configuration is copied. */
mc_feature_data *mc_postgis_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool);

/*
 * The statement that reads a layer for a query, and its parameters ($1 to $4: the box; then what a query's own
 * placeholders ask for). !BBOX! becomes the box as a geometry in the layer's SRID, !PIXEL! the size of a pixel in units
 * of the map, !SCALE! the scale denominator, !NAME! the value of the dimension NAME: all of them are bound, never
 * spliced. Placeholders in strings, quoted names and comments stay as they are. MC_ERR_CONFIG for an unknown one.
 */
typedef enum mc_postgis_bind { MC_BIND_PIXEL, MC_BIND_SCALE, MC_BIND_DIMENSION } mc_postgis_bind;

typedef struct mc_postgis_placeholder {
    mc_postgis_bind kind;
    const char *dimension; /* its name */
} mc_postgis_placeholder;

typedef struct mc_postgis_statement {
    const char *sql;
    mc_postgis_placeholder placeholders[32];
    int placeholder_count;
} mc_postgis_statement;

/* "schema"."table" of a table as configured. */
const char *mc_postgis_table(const char *table, apr_pool_t *pool);

/* The statement of one row that has the columns of the layer, all null, and after them the ids of types that are
 * geometry, as text with commas. The same parameters; nothing of the layer is read. */
mc_error *mc_postgis_build_fields(mc_postgis_statement *statement, const mc_postgis_config *config,
                                  apr_pool_t *pool) MC_CHECKED;

mc_error *mc_postgis_build(mc_postgis_statement *statement, const mc_postgis_config *config,
                           const mc_feature_query *query, int map_srid, apr_pool_t *pool) MC_CHECKED;

#endif
