/*
 * Maps that reach over the antimeridian. The world is drawn again to its east and to its west: the features of another
 * world are read with the box and the pixel grid of the map moved by a whole turn, so that a pixel does not depend on
 * the tile.
 */
#ifndef MC_VECTOR_FEATURE_WRAP_H
#define MC_VECTOR_FEATURE_WRAP_H

#include "vector/feature/feature.h"

enum { MC_WRAP_WORLDS = 4 /* that are drawn to either side of the one in the middle */ };

/* Which worlds a map shows. */
typedef struct mc_wrap {
    int first, last; /* from the western world to the eastern world; 0, the world in the middle, is always among them */
    double half;     /* half of a turn, in units of the map's CRS; 0: the CRS does not go round the earth */
    bool cut; /* the bounds of the data are not known: of other worlds only features inside of these worlds are drawn */
} mc_wrap;

/*
 * Plans the worlds of a query with `wrap`, for data of a CRS (NULL: that of the map) with known bounds (NULL or
 * impossible bounds: not known). Where known bounds reach over the edge of their world, the part beyond is shown on the
 * other side as well. The caller reads all worlds in their order, so that features overlap alike in all tiles.
 */
void mc_wrap_plan(mc_wrap *plan, const mc_feature_query *query, const char *data_srs, const mc_extent *bounds);

/* The query for one of the worlds, in `pool`; for the world in the middle `query` itself. NULL: nothing is to be read.
 */
const mc_feature_query *mc_wrap_query(const mc_wrap *plan, const mc_feature_query *query, int world, apr_pool_t *pool);

/* Whether a feature is drawn in the world for which it was read. With `cut`, a feature that does not lie inside of its
 * world is drawn in the world in the middle only; else a part of the feature would show in some tiles and not in
 * others. */
bool mc_wrap_holds(const mc_wrap *plan, const mc_feature_query *moved, int world, const mc_geometry *geometry);

#endif
