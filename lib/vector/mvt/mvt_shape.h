/*
 * Shapes of vector tiles: clipped and cleaned. Here a shape's coordinates are whole units of the tile, x to
 * the right and y down from its upper left corner; tiles of a level differ by whole tiles only, so that every step
 * before clipping has the same result in each tile.
 */
#ifndef MC_VECTOR_MVT_MVT_SHAPE_H
#define MC_VECTOR_MVT_MVT_SHAPE_H

#include <apr_pools.h>

#include "vector/geometry/shape.h"

/* Lines and points inside of the square from `low` to `high` (both part of it). */
void mc_mvt_clip_lines(mc_shape *out, const mc_shape *in, int low, int high);
void mc_mvt_clip_points(mc_shape *out, const mc_shape *in, int low, int high);

/*
 * Cuts rings by the same square. The results are closed rings of the same direction, which run along the square's sides
 * where a ring was cut. Rings of areas that do not overlap become simple rings, however many pieces they are cut into.
 * The contents of `in` are lost.
 */
typedef struct mc_mvt_clipper mc_mvt_clipper;
mc_mvt_clipper *mc_mvt_clipper_create(apr_pool_t *pool);
void mc_mvt_clip_rings(mc_shape *out, mc_shape *in, int low, int high, mc_mvt_clipper *clipper);

/* Removes vertices that lie on a straight line between their neighbours or at the end of a spike, and removes rings
 * without an inside. */
void mc_mvt_clean_rings(mc_shape *out, const mc_shape *in);

/*
 * Puts rings in the order of polygons: each outer ring (of positive area, MVT 2.1, 4.3.4.4) with the ring's holes
 * behind it. Holes that no outer ring surrounds are left out. mended: the rings come in any order (mvt_mend.h). Returns
 * `in` where the rings are in order already, else `out`; NULL where there is no outer ring.
 */
const mc_shape *mc_mvt_order_rings(mc_shape *out, const mc_shape *in, bool mended, apr_pool_t *scratch);

#endif
