/* What the files of the WMTS service share. */
#ifndef MC_SERVICE_WMTS_WMTS_H
#define MC_SERVICE_WMTS_WMTS_H

#include "service/param.h"
#include "service/service_base.h"
#include "service/xml_writer.h"

#define MC_WMTS_VERSION "1.0.0"

/* Whether the request came as key-value pairs (else: as a path). */
bool mc_wmts_is_kvp(const mc_call *call);

/* Media types of a tileset's tiles, as advertised. */
const apr_array_header_t *mc_wmts_formats(const mc_tileset *tileset, apr_pool_t *pool);

/* The format in which tiles of that media type are made: the tileset's own, else the first that is configured or
 * builtin. NULL where tiles are no images. */
const mc_format *mc_wmts_format(const mc_tileset *tileset, const char *mime, const mc_call *call);

/* The extension of addresses of tiles of that media type. */
const char *mc_wmts_extension(const mc_tileset *tileset, const char *mime);

/* The capabilities document, without query parameters too; of a client that has the current one only its version and
 * update sequence (OWS 1.1.0 table 7). */
mc_error *mc_wmts_capabilities(mc_request *request, mc_capabilities_params *params, const char *mime,
                               const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The box of an extent in the CRS of a grid, in the order of its axes; and the tile matrix sets of all grids that
 * tilesets have. */
void mc_wmts_write_bounding_box(mc_xml *xml, const mc_grid *grid, const mc_extent *extent, apr_pool_t *pool);
void mc_wmts_write_matrix_sets(mc_xml *xml, const mc_config *config, apr_pool_t *pool);

/* Requests as key-value pairs and as paths; the tables of both. */
mc_error *mc_wmts_parse_kvp(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_wmts_parse_path(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
extern const mc_param_row mc_wmts_kvp_request_params[], mc_wmts_kvp_tile_params[], mc_wmts_kvp_info_params[],
    mc_wmts_kvp_capabilities_params[];
extern const mc_param_row mc_wmts_path_version_params[], mc_wmts_path_tile_params[], mc_wmts_path_info_params[];

/* Finds the style that reader->text names in tile->tileset; refuses a name that is none. */
mc_error *mc_wmts_find_style(mc_tile_request *tile, mc_param_reader *reader) MC_CHECKED;

/* The value of a dimension that a client asks for: the configured default for "default" and for nothing. */
const char *mc_wmts_dimension_value(const mc_dimension *dimension, const char *text);

/* An error of that kind for a level that the layer's grid does not offer. */
mc_error *mc_wmts_check_level(const mc_tile_request *tile, int z, mc_error_kind kind, apr_pool_t *pool) MC_CHECKED;

/* Makes `request` a question for the pixel i, j of a tile. MC_ERR_POINT_OUT_OF_RANGE beside the tile. */
mc_error *mc_wmts_info_request(mc_request *request, const mc_tile_request *tile, int i, int j, const char *format,
                               apr_pool_t *pool) MC_CHECKED;

void mc_wmts_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool);

#endif
