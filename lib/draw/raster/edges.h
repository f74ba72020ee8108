/*
 * The edges of polygons that are painted together. Neighbours in a coverage (parishes, parcels, land use) share their
 * borders: in the sum of all areas a border that is run through in both directions adds nothing, exactly, and an
 * outline that is there need not be painted again. What has been seen is remembered for a while, so that such an edge
 * costs a look instead of being painted four times.
 */
#ifndef MC_DRAW_RASTER_EDGES_H
#define MC_DRAW_RASTER_EDGES_H

#include "draw/raster/area.h"
#include "draw/raster/outline.h"

typedef struct mc_edges mc_edges;

mc_edges *mc_edges_create(apr_pool_t *pool);

/* As mc_area_add and mc_outline_add of a shape of polygons; both or one of the planes. All shapes between two flushes
 * go to the same planes, with the same pen. */
void mc_edges_add(mc_edges *edges, mc_area *area, mc_outline *outline, const mc_shape *shape, float pen);

/* Brings what is still missing into the area. */
void mc_edges_flush(mc_edges *edges, mc_area *area);

#endif
