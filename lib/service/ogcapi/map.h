/* Maps of collections: parameters and answer. */
#ifndef MC_SERVICE_OGCAPI_MAP_H
#define MC_SERVICE_OGCAPI_MAP_H

#include "service/ogcapi/ogcapi.h"

extern const mc_param_row mc_ogcapi_map_params[];

mc_ogcapi_answer mc_ogcapi_answer_map;

/* The limits of maps: pixels of a side, and pixels of a map times its collections. */
int mc_ogcapi_map_side_limit(const mc_call *call);
int64_t mc_ogcapi_map_pixel_limit(const mc_call *call);

/* Where a map lies, in the CRS of its grid, x first. */
typedef struct mc_ogcapi_place {
    mc_extent box;   /* without `given`: all that the collections have */
    bool given;      /* by `bbox` or `subset` */
    bool across;     /* the box reaches over the antimeridian: maxx lies beyond the edge of the CRS */
    bool centered;   /* by `center` */
    double center_x; /* of the map, where its size and its scale say how far it reaches */
    double center_y;
} mc_ogcapi_place;

/* The CRS of a map, and a link with that CRS for each of its layers: the link of the lowest layer becomes that of the
 * request. MC_ERR_INVALID_PARAMETER where a layer has no grid of the CRS. */
mc_error *mc_ogcapi_map_crs(mc_ogcapi_crs *crs, mc_ogcapi_ask *ask) MC_CHECKED;

/* The place by `bbox`, `subset` or `center`, one of them at most (OGC 20-058, 13). MC_ERR_INVALID_PARAMETER. */
mc_error *mc_ogcapi_map_place(mc_ogcapi_place *place, mc_ogcapi_ask *ask) MC_CHECKED;

/* Width and height in pixels, at most maxsize each, and the box (OGC 20-058, 11 to 13): of a map around a point, size
 * and scale decide how far it reaches. MC_ERR_INVALID_PARAMETER. */
mc_error *mc_ogcapi_map_size(mc_map_request *wanted, const mc_ogcapi_place *place, const mc_ogcapi_ask *ask,
                             int maxsize) MC_CHECKED;

#endif
