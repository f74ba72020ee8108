/* The resources of the API: the addresses, the parameters and the answers (params.c, operations.c). */
#ifndef MC_SERVICE_OGCAPI_OPERATIONS_H
#define MC_SERVICE_OGCAPI_OPERATIONS_H

#include "service/ogcapi/ogcapi.h"

/* To the one without a name. */
extern const mc_operation mc_ogcapi_operations[];

/* How each is answered, in the same order. */
extern const mc_ogcapi_resource mc_ogcapi_resources[];

/* Elements of paths, in their order. Those of a dataset's tiles find their tile matrix set by the query. */
extern const mc_param_row mc_ogcapi_collection_path[], mc_ogcapi_set_path[], mc_ogcapi_tileset_path[],
    mc_ogcapi_tile_path[], mc_ogcapi_dataset_tileset_path[], mc_ogcapi_dataset_tile_path[], mc_ogcapi_style_path[],
    mc_ogcapi_styled_tileset_path[], mc_ogcapi_styled_tile_path[], mc_ogcapi_global_style_path[], mc_ogcapi_file_path[];

/* Parameters of queries. */
extern const mc_param_row mc_ogcapi_form_params[], mc_ogcapi_tileset_form_params[], mc_ogcapi_style_form_params[],
    mc_ogcapi_image_params[], mc_ogcapi_vector_params[], mc_ogcapi_value_params[], mc_ogcapi_dataset_params[],
    mc_ogcapi_dataset_set_params[];

#endif
