/*
 * The edges of polygons that are painted together. Neighbours in a coverage (parishes, parcels, land use) share their
 * borders: in the sum of all areas a border that is added in both directions adds exactly nothing, and the outline of a
 * border need not be painted twice. Edges that were added lately are remembered, so that the second side of a border
 * costs a look-up instead of four paintings.
 */
#ifndef MC_DRAW_RASTER_EDGES_H
#define MC_DRAW_RASTER_EDGES_H

#include "draw/raster/area.h"
#include "draw/raster/outline.h"

typedef struct mc_edges mc_edges;

mc_edges *mc_edges_create(apr_pool_t *pool);

/* As mc_area_add and mc_outline_add of a shape of polygons; one of the planes may be NULL. All shapes between two
 * flushes go to the same planes, with the same pen. */
void mc_edges_add(mc_edges *edges, mc_area *area, mc_outline *outline, const mc_shape *shape, float pen);

/* Adds the edges that are still missing to the area. */
void mc_edges_flush(mc_edges *edges, mc_area *area);

#endif
