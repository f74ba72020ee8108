/* Areas that limit seeding, read from files and from sources of GDAL's OGR. */
#ifndef MC_SEED_AREA_H
#define MC_SEED_AREA_H

#include "seed/region.h"

/*
 * Reads polygons, lines and points from a file of GeoJSON (RFC 7946) or of WKT (OGC 06-103r4, 7.2; EWKT's "SRID=n;"
 * may stand before), one or many. `srs`: their CRS, x first; NULL: what the file names, otherwise degrees for GeoJSON
 * and the grid's CRS for WKT. `finest`: the last level that it is for. *region is NULL where the file has none.
 * MC_ERR_IO, MC_ERR_CORRUPT with file and line, MC_ERR_LIMIT beyond 256 MB; errors of mc_region_begin.
 */
mc_error *mc_seed_area_read(mc_seed_region **region, const char *path, const char *srs, const mc_grid *grid, int finest,
                            apr_pool_t *pool) MC_CHECKED;

/* A file of either as a text, not looked into. MC_ERR_IO, MC_ERR_CORRUPT where it is no text, MC_ERR_LIMIT as above. */
mc_error *mc_seed_area_text(const char **text, const char *path, apr_pool_t *pool) MC_CHECKED;

/* The same from a text; `name` stands for the file in errors. */
mc_error *mc_seed_area_parse(mc_seed_region **region, const char *bytes, size_t size, const char *name, const char *srs,
                             const mc_grid *grid, int finest, apr_pool_t *pool) MC_CHECKED;

/* The geometry of an area as OGR read it; lives as long as the pool that it was read with. */
typedef struct mc_seed_shape mc_seed_shape;

/* What of an OGR data source is taken; all but the source may be NULL. */
typedef struct mc_seed_ogr {
    const char *source, *layer, *where, *sql;
    const char *srs;       /* of its coordinates, x first; NULL: the grid's */
    mc_seed_shape **shape; /* where to put the geometry itself, in the source's coordinates; NULL: nobody wants it */
    bool united;           /* the shape's polygons become one without overlaps */
} mc_seed_ogr;

/*
 * The same from a vector source, in the module mapcache-gdal.so. A source of several layers needs `layer` or `sql`.
 * Invalid geometries are passed over and counted in *invalid. *features: how many were read. MC_ERR_CONFIG where the
 * source, the layer or the query is wrong; MC_ERR_UNAVAILABLE without the module.
 */
mc_error *mc_seed_area_ogr(mc_seed_region **region, int64_t *features, int64_t *invalid, const mc_seed_ogr *wanted,
                           const mc_grid *grid, int finest, apr_pool_t *pool) MC_CHECKED;

/*
 * The part of a shape in `box` (NULL: all of it) as an object of GeoJSON (RFC 7946, 3.1), and its bounds. *json is NULL
 * where there is none. MC_ERR_CORRUPT where GEOS cannot cut it.
 */
mc_error *mc_seed_shape_cut(const char **json, mc_extent *bounds, const mc_seed_shape *shape, const mc_extent *box,
                            apr_pool_t *pool) MC_CHECKED;

#endif
