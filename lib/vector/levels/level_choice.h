/* Which level of an overview a map is read from, wherever the levels are kept. */
#ifndef MC_VECTOR_LEVELS_LEVEL_CHOICE_H
#define MC_VECTOR_LEVELS_LEVEL_CHOICE_H

#include "vector/feature/feature.h"

/* Most levels of an overview that are looked at. */
enum { MC_LEVELS_MAX = 32 };

/* The maps that a level serves: from a resolution to below another one, in units of the CRS for a pixel, of a grid with
 * a unit of so many metres. */
typedef struct mc_level_range {
    double resolution, until, metres_per_unit;
} mc_level_range;

/* Whether any level might serve the query, whose CRS is that of the data: its pixels are square, and the features are
 * wanted for a known style. */
bool mc_level_may_serve(const mc_feature_query *query);

/* Index of the coarsest level that is fine enough, where its features were looked at for maps as coarse as the query's;
 * -1: none. The finest level comes first. */
int mc_level_find(const mc_level_range *ranges, int count, const mc_feature_query *query);

#endif
