/* Maps of collections: parameters and answer. */
#ifndef MC_SERVICE_OGCAPI_MAP_H
#define MC_SERVICE_OGCAPI_MAP_H

#include "service/ogcapi/ogcapi.h"

extern const mc_param_row mc_ogcapi_map_params[];

mc_ogcapi_answer mc_ogcapi_answer_map;

#endif
