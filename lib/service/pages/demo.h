/* What the files of the demo service share. */
#ifndef MC_SERVICE_PAGES_DEMO_H
#define MC_SERVICE_PAGES_DEMO_H

#include "service/service_base.h"
#include "text/json_writer.h"

/* The services that can show maps, with their titles. Each has a page of its name. */
#define MC_DEMO_PAGES(X)                                                                                               \
    X("wms", "WMS")                                                                                                    \
    X("wmts", "WMTS")                                                                                                  \
    X("tms", "TMS")                                                                                                    \
    X("gmaps", "XYZ")                                                                                                  \
    X("kml", "KML")                                                                                                    \
    X("ve", "Virtual Earth")                                                                                           \
    X("mapguide", "MapGuide")

/* One of the files that pages load. MC_ERR_NOT_FOUND for other names, and for libraries that are not installed. */
mc_error *mc_demo_static(mc_document *document, const char *name, apr_pool_t *pool) MC_CHECKED;

/* JSON of all tilesets for the front page: names, titles, boxes, zooms, and the tiles of a small picture. Data are
 * asked where they lie, for at most three seconds. */
mc_error *mc_demo_layers(mc_buf **text, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* JSON of one tileset for the map: grids with all of their levels, values of dimensions, layers of vector tiles.
 * MC_ERR_NOT_FOUND for an unknown one. */
mc_error *mc_demo_layer(mc_buf **text, const char *name, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* A style of MapLibre for one layer ("name@grid"), whose tiles TileJSON names. MC_ERR_NOT_FOUND for an unknown one, and
 * where no service has TileJSON. */
mc_error *mc_demo_style(mc_buf **text, const char *layer, const mc_call *call, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* What is told of a grid of a tileset: its CRS, box, tiles and levels. */
void mc_demo_write_grid(mc_json_writer *json, const mc_tileset *tileset, const mc_grid_link *link);

/* "extent" and the like: four numbers. */
void mc_demo_write_extent(mc_json_writer *json, const char *key, const mc_extent *extent, int decimals);

/* The dimensions of a tileset as JSON: their back ends are asked for their values. */
const char *mc_demo_dimensions(const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool);

#endif
