/* What maps and merged tiles share. */
#ifndef MC_MAP_MAP_PRIVATE_H
#define MC_MAP_MAP_PRIVATE_H

#include "mapcache/map.h"

/* How many layers from `first` on are drawn in one go, so that labels of one keep off those of the others. */
int mc_map_stack(const mc_map_request *wanted, int first);

/* Asks the sources of `count` layers from `first` on, as many as mc_map_stack says, for the whole map.
 * MC_ERR_NOT_FOUND for a layer without source. */
mc_error *mc_map_ask_sources(mc_rendered *rendered, const mc_map_request *wanted, int first, int count, mc_ctx *ctx,
                             apr_pool_t *pool) MC_CHECKED;

/* The opaque ground of a map: BGCOLOR, or white. False where the map is transparent, which a JPEG never is. */
bool mc_map_ground(uint8_t bgra[4], const mc_map_request *wanted);

/* Gives what lies beyond the valid area of the map's CRS its colour, or none: pixels whose middles are there. Nothing
 * where the request says nothing of it. */
void mc_map_mark_beyond(mc_pixels *canvas, const mc_map_request *wanted);

/* Makes of the answer with one tile (by_latitude or within_poles of the stack) that of its picture. */
mc_error *mc_map_by_latitude(mc_result *result, const mc_tile *tile, const mc_tile_stack *wanted, uint64_t if_tag,
                             mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Takes the lifetime of a tile that contributes into that of an answer: the shortest counts, and the age of what has
 * expired. */
void mc_result_take_lifetime(mc_result *result, const mc_tileset *tileset, const mc_tile *tile, apr_time_t now);

#endif
