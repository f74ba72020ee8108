/* The elements of a path that name a tile: a layer, a level, a column, a row. */
#ifndef MC_SERVICE_TILES_TILE_PATH_H
#define MC_SERVICE_TILES_TILE_PATH_H

#include "service/param.h"
#include "service/service_base.h"

typedef struct mc_tile_path {
    const char *layer;
    mc_tile_stack stack;
    int z, x;
    mc_param_file row; /* counted as the protocol does */
    bool from_top;
} mc_tile_path;

/* <layer>/<z>/<x>/<y>.<extension> of TMS and gmaps. */
extern const mc_param_row mc_tile_path_params[];

/* Reads the four last elements of the path; a row counted from the top or the bottom. */
mc_error *mc_tile_path_parse(mc_request *request, const mc_call *call, const apr_array_header_t *path, bool from_top,
                             apr_pool_t *pool) MC_CHECKED;

#endif
