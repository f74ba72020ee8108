/*
 * Maps that reach over the antimeridian. The world is drawn again to its east and to its west: what lies there is read
 * with the box and the pixel grid of the map moved by a whole turn, so that a pixel does not depend on the tile.
 */
#ifndef MC_VECTOR_FEATURE_WRAP_H
#define MC_VECTOR_FEATURE_WRAP_H

#include "vector/feature/feature.h"

enum { MC_WRAP_WORLDS = 4 /* that are drawn to either side of the one in the middle */ };

/* Which worlds a map shows. */
typedef struct mc_wrap {
    int first, last; /* from the western one to the eastern one; 0: the one in the middle, always one of them */
    double half;     /* of a turn, in units of the map's CRS; 0: it does not go round */
    bool cut;        /* where the data lies is not known: of other worlds only what is inside of them is drawn */
} mc_wrap;

/*
 * For a query whose `wrap` says so, and data of a CRS (NULL: that of the map) with these bounds (NULL, or such as
 * cannot be: not known). Of known bounds that reach over their world the part beyond is shown on the other side as
 * well. All worlds are to be read in their order, so that what overlaps does so alike in all tiles.
 */
void mc_wrap_plan(mc_wrap *plan, const mc_feature_query *query, const char *data_srs, const mc_extent *bounds);

/* What is to be read for one of the worlds, of `pool`: for that in the middle the query itself. NULL: nothing is. */
const mc_feature_query *mc_wrap_query(const mc_wrap *plan, const mc_feature_query *query, int world, apr_pool_t *pool);

/* Whether a feature belongs to the world that it was read for: one that should lie inside and does not is drawn in that
 * in the middle only, else a part of it would be seen in some tiles and not in others. */
bool mc_wrap_holds(const mc_wrap *plan, const mc_feature_query *moved, int world, const mc_geometry *geometry);

#endif
