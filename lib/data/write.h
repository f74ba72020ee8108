/* The elements of a configuration that serve a layer, as text. */
#ifndef MC_DATA_WRITE_H
#define MC_DATA_WRITE_H

#include "data/data.h"

/* Names of elements, and what a tileset is given. */
typedef struct mc_data_elements {
    const char *tileset;            /* its name */
    const char *source;             /* of the source, or of the cache of a file of tiles */
    const char *none;               /* of the cache that keeps nothing */
    const char *mvt;                /* of the format of vector tiles */
    const char *style, *style_name; /* of a vector layer, or NULL */
} mc_data_elements;

/* <source>, or <cache> of a file of tiles. `out`: of const char *, lines and parts of lines. */
void mc_data_write_store(apr_array_header_t *out, const mc_data_layer *layer, const mc_data_elements *elements);

/* <tileset>; `vector_tiles`: that of the vector tiles of a layer, whose title says so. */
void mc_data_write_tileset(apr_array_header_t *out, const mc_data_layer *layer, const mc_data_elements *elements,
                           bool vector_tiles);

/* The title of the vector tiles of a layer; NULL of none. */
const char *mc_data_vector_tiles_title(const char *title, apr_pool_t *pool);

/* The services that such a configuration offers. */
void mc_data_write_services(apr_array_header_t *out, const char *crs);

/* CRSs, by blanks, that whole maps of these layers can have beside those of the grids. */
const char *mc_data_crs_list(const apr_array_header_t *layers, apr_pool_t *pool);

#endif
