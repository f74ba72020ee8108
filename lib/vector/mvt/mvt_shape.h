/*
 * Shapes of vector tiles: clipped and cleaned. Here a shape's coordinates are whole units of the tile, x to
 * the right and y down from its upper left corner; tiles of a level differ by whole tiles only, so that what is done
 * before clipping comes out the same in each of them.
 */
#ifndef MC_VECTOR_MVT_MVT_SHAPE_H
#define MC_VECTOR_MVT_MVT_SHAPE_H

#include <apr_pools.h>

#include "vector/geometry/shape.h"

/* Lines and points inside of the square from `low` to `high` (both part of it). */
void mc_mvt_clip_lines(mc_shape *out, const mc_shape *in, int low, int high);
void mc_mvt_clip_points(mc_shape *out, const mc_shape *in, int low, int high);

/*
 * Rings cut by the same square: what is left are closed rings again, each along the square's sides where it was cut, of
 * the direction that they had. Rings of areas that do not overlap come out simple, whatever is cut in pieces. `in` is
 * used up.
 */
typedef struct mc_mvt_clipper mc_mvt_clipper;
mc_mvt_clipper *mc_mvt_clipper_create(apr_pool_t *pool);
void mc_mvt_clip_rings(mc_shape *out, mc_shape *in, int low, int high, mc_mvt_clipper *clipper);

/* Takes vertices out of rings that lie on a straight line between their neighbours, or at the end of a spike, and rings
 * without an inside. */
void mc_mvt_clean_rings(mc_shape *out, const mc_shape *in);

/*
 * Puts rings in the order of polygons: each outer one (of positive area, MVT 2.1, 4.3.4.4) with its holes behind it.
 * Holes that no outer one surrounds are left out. Returns `in` where that is in order, else `out`; NULL where no outer
 * one is left.
 */
const mc_shape *mc_mvt_order_rings(mc_shape *out, const mc_shape *in, apr_pool_t *scratch);

#endif
