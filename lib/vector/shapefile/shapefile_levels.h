/* Overviews beside a shapefile (vector/levels/level_file.h), as maps find and read them. */
#ifndef MC_VECTOR_SHAPEFILE_SHAPEFILE_LEVELS_H
#define MC_VECTOR_SHAPEFILE_SHAPEFILE_LEVELS_H

#include "vector/levels/level_data.h"
#include "vector/levels/level_file.h"
#include "vector/shapefile/shp.h"

typedef struct mc_shapefile_levels mc_shapefile_levels;

/* Of the layer's shapefile `path`. Lives as long as `pool`; so do the texts. */
mc_shapefile_levels *mc_shapefile_levels_create(const char *path, const char *layer, apr_pool_t *pool);

/* Looks at the files of an open shapefile, for its overviews; `srs`: of the coordinates, or NULL. */
void mc_shapefile_origin_look(mc_level_data *origin, const mc_shp *shp, const char *srs);

/* `path` of a .shp without its ending. */
const char *mc_shapefile_base(const char *path, apr_pool_t *pool);

/*
 * Reads reading->map from a level, where there is one for it; `own` is the query in the CRS of the data. *used false:
 * nothing was visited, and the map is to be read from the shapefile: also where it is not known so far whether the
 * levels are of the shapefile's bytes. What does not fit any more is logged once. Only one map opens a file; it and
 * those that wait for it end with their deadlines (MC_ERR_UNAVAILABLE).
 */
mc_error *mc_shapefile_levels_read(bool *used, mc_shapefile_levels *levels, mc_feature_reading *reading,
                                   const mc_feature_query *own, mc_level_data *origin, apr_pool_t *pool) MC_CHECKED;

#endif
