/* The layers of vector tiles as other programs tell them. */
#ifndef MC_SOURCE_TILEJSON_LAYERS_H
#define MC_SOURCE_TILEJSON_LAYERS_H

#include "mapcache/source.h"

/*
 * Reads `vector_layers` of a TileJSON document (3.0.0, 3.3) or of what archives have like it. *layers: of
 * mc_vector_layer_info, those that have a name that no other one has, with levels from 0 to `levels` where nothing else
 * is said; empty where there are none. MC_ERR_BAD_REQUEST: no JSON object; MC_ERR_LIMIT: more than 500 layers.
 */
mc_error *mc_tilejson_layers(apr_array_header_t **layers, const char *json, size_t size, int levels,
                             apr_pool_t *pool) MC_CHECKED;

#endif
