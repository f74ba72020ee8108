/* Which features lie under a point of the map. */
#ifndef MC_FEATURE_HIT_H
#define MC_FEATURE_HIT_H

#include "feature/geometry.h"

/* Whether an area of the geometry covers the point, or a line or a point of it is at most `reach` away (1/256 pixel).
 */
bool mc_geometry_hit(const mc_geometry *geometry, mc_shape_point point, int32_t reach);

#endif
