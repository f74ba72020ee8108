/* What the readers of areas share. */
#ifndef MC_SEED_AREA_PRIVATE_H
#define MC_SEED_AREA_PRIVATE_H

#include "seed/area.h"
#include "seed/points.h"

/* A text that is read from its start to its end, and the vertices of the geometry that is being read. */
typedef struct mc_areas_text {
    const char *path, *begin, *at, *end;
    mc_region_builder *builder; /* NULL: only `srs` is looked for, and the syntax */
    char srs[128];              /* that the text names; "": none */
    mc_points points;           /* scratch */
    apr_pool_t *pool;
} mc_areas_text;

/* MC_ERR_CORRUPT with file and line. */
mc_error *mc_areas_fail(const mc_areas_text *text, const char *format, ...) MC_PRINTF(2, 3) MC_CHECKED;

/* Passes over blanks. */
void mc_areas_skip(mc_areas_text *text);

/* Passes over blanks; whether `wanted` followed, which is then passed over, too. */
bool mc_areas_take(mc_areas_text *text, char wanted);

/* A number that a blank or one of ",)]}" ends. */
mc_error *mc_areas_number(double *number, mc_areas_text *text) MC_CHECKED;

/* Adds vertices from `first` on to the region, if there is one. */
mc_error *mc_areas_add(mc_areas_text *text, mc_region_kind kind, size_t first, size_t count) MC_CHECKED;

mc_error *mc_areas_wkt(mc_areas_text *text) MC_CHECKED;
mc_error *mc_areas_json(mc_areas_text *text) MC_CHECKED;

/* What the module mapcache-gdal.so offers. */
typedef struct mc_areas_ogr_ops {
    mc_error *(*read)(mc_region_builder *builder, int64_t *features, int64_t *invalid, const mc_seed_ogr *wanted,
                      apr_pool_t *pool);
    mc_error *(*cut)(const char **json, mc_extent *bounds, const mc_seed_shape *shape, const mc_extent *box,
                     apr_pool_t *pool);
} mc_areas_ogr_ops;

#define MC_AREAS_OGR_SYMBOL "mc_areas_ogr_ops_gdal"
extern const mc_areas_ogr_ops mc_areas_ogr_ops_gdal;

#endif
