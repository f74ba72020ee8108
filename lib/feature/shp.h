/* Shapefiles (ESRI Shapefile Technical Description, July 1998): .shp, .dbf and .cpg. */
#ifndef MC_FEATURE_SHP_H
#define MC_FEATURE_SHP_H

#include "feature/dbf.h"
#include "feature/geometry.h"
#include "mapcache/grid.h"

typedef struct mc_shp {
    mc_mapped main, table, codepage;
    mc_dbf *attributes; /* NULL: there is no .dbf */
    int type;           /* of its shapes */
    mc_extent box;      /* of all of them, in the units of the file */
} mc_shp;

/* Maps `path` (of the .shp) and what lies beside it, until `pool` is cleared. MC_ERR_IO where it is not there,
 * MC_ERR_CORRUPT where it is something else. */
mc_error *mc_shp_open(mc_shp **shp, const char *path, apr_pool_t *pool) MC_CHECKED;

/* Goes through the records: *at is 0 at first. False at the end, or where the file ends inside of a record. */
typedef struct mc_shp_record {
    uint32_t number; /* from 0 on: its row in the table */
    const uint8_t *content;
    size_t size;
    mc_extent box; /* of points the point itself */
    bool has_box;  /* false: a null shape, or broken */
} mc_shp_record;

bool mc_shp_next(const mc_shp *shp, size_t *at, mc_shp_record *record);

/* Reads a record's shape; Z and M are passed over. MC_ERR_CORRUPT for counts that do not fit the record. */
mc_error *mc_shp_geometry(mc_geometry *geometry, const mc_shp_record *record, const mc_lattice *lattice,
                          apr_pool_t *pool) MC_CHECKED;

#endif
