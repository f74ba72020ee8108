/* A layer of PostGIS, shared by the files of this room. */
#ifndef MC_VECTOR_POSTGIS_POSTGIS_LAYER_H
#define MC_VECTOR_POSTGIS_POSTGIS_LAYER_H

#include <pthread.h>

#include "vector/postgis/postgis_levels.h"
#include "vector/postgis/shared_answer.h"

typedef struct mc_postgis_layer {
    mc_feature_data data;
    mc_postgis_config config;
    mc_levels *levels;         /* its overviews */
    mc_shared_answer declared; /* the SRID that the column declares, for maps that show nothing */
    pthread_mutex_t lock;      /* of all below */
    apr_time_t alone_until;    /* until then it is read over one connection; 0: never so far */
    apr_time_t found;          /* when the column was asked for; 0: it is not known */
    apr_time_t row_asked;      /* when a map that shows nothing last had a row asked for its SRID; 0: never */
    char name[64];
    mc_postgis_column column; /* its name is the one above */
    double density;           /* rows for a square unit of the CRS below, as the last map had them */
    double density_area;      /* of that map */
    char density_srs[64];
    apr_pool_t *fields_pool;    /* a root pool of its own; NULL: not asked so far */
    apr_array_header_t *fields; /* as asked at `fields_time` */
    apr_time_t fields_time;
} mc_postgis_layer;

/* What the layer's column is, asked for again after ten seconds. */
mc_error *mc_postgis_column_of(mc_postgis_column *column, mc_postgis_layer *layer, mc_ctx *ctx,
                               apr_pool_t *pool) MC_CHECKED;

/* Whether the SRID of the column is another one by now than it was found to be, or the column is gone, after a map that
 * shows nothing. */
mc_error *mc_postgis_srid_of_nothing(bool *changed, mc_postgis_layer *layer, const mc_postgis_column *column,
                                     mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The table may have changed: what is known of it is asked for again. */
void mc_postgis_forget(mc_postgis_layer *layer);

/* How many rows a map will probably have, by the last map's, or where there was none so large by the catalogue's of the
 * table (*guessed); 0: nothing is known. `map_srid` is that of the query's box. And how many rows it had. */
double mc_postgis_expected_rows(bool *guessed, mc_postgis_layer *layer, const mc_postgis_column *column,
                                const mc_feature_query *query, int map_srid);
void mc_postgis_remember_rows(mc_postgis_layer *layer, const mc_feature_query *query, int64_t rows);

/* Which attributes are whole numbers: eight bytes of them are less work for the database than their text is. NULL where
 * it does not say. */
const bool *mc_postgis_find_integers(mc_postgis_layer *layer, const mc_feature_query *query, mc_ctx *ctx,
                                     apr_pool_t *pool);

/* The operation `fields`, asked once a minute: tables gain and lose columns. */
mc_error *mc_postgis_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;

#endif
