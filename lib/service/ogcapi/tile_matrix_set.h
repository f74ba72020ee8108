/* Grids as tile matrix sets (OGC 17-083r4): which ones are registered, and their definitions. */
#ifndef MC_SERVICE_OGCAPI_TILE_MATRIX_SET_H
#define MC_SERVICE_OGCAPI_TILE_MATRIX_SET_H

#include "service/service_base.h"
#include "text/json_writer.h"

/* A tile matrix set of OGC's register whose levels are halved from one to the next (OGC 17-083r4, annex D). */
typedef struct mc_tile_matrix_set {
    const char *id, *title;
    const char *crs;           /* its URI */
    const char *axes[2];       /* as the register orders them */
    const char *scale_set;     /* the end of the URI of its well-known scale set, or NULL */
    int epsg;                  /* of grids that may equal it */
    bool yx;                   /* corners are written northing first */
    double left, top;          /* of all levels; units of the CRS */
    double cell;               /* of level 0 */
    double metres;             /* of a unit of the CRS */
    int columns, rows, levels; /* tiles of level 0; how many levels */
} mc_tile_matrix_set;

/* The registered set whose levels, from 0 on, are those of the grid; NULL: there is none. */
const mc_tile_matrix_set *mc_tile_matrix_set_of(const mc_grid *grid);

/* The identifier of a grid in addresses: that of the registered set, else the grid's name; a name that a registered set
 * has, but not its levels, gets "-grid" behind it. */
const char *mc_tile_matrix_set_id(const mc_grid *grid, apr_pool_t *pool);

/* The link of a tileset whose grid has an identifier, the first of several; NULL where there is none. Costs no
 * allocation: each tile's request asks. */
mc_grid_link *mc_tile_matrix_set_link(const mc_tileset *tileset, const char *id);

/* Whether a grid has the identifier. */
bool mc_tile_matrix_set_is(const mc_grid *grid, const char *id);

/* The URI of a registered set. */
const char *mc_tile_matrix_set_uri(const mc_tile_matrix_set *set, apr_pool_t *pool);

/* The URI of a grid's CRS. Grids of EPSG:4326 say CRS84, whose axes are in the order that grids have inside. A CRS
 * without a code is written as it is configured. */
const char *mc_grid_crs_uri(const mc_grid *grid, apr_pool_t *pool);

/* Whether coordinates in the CRS of that URI are written northing or latitude first. */
bool mc_grid_is_yx(const mc_grid *grid);

/* The definition as an open object's members: "id" to "tileMatrices" (OGC 17-083r4, table 5). */
void mc_tile_matrix_set_write(mc_json_writer *json, const mc_grid *grid, apr_pool_t *pool);

#endif
