/* Styles of MapLibre for layers that have none of their own. */
#ifndef MC_SERVICE_LAYER_STYLE_H
#define MC_SERVICE_LAYER_STYLE_H

#include "service/service_base.h"
#include "text/json_writer.h"

/* A style of MapLibre (version 8 of its specification) for the tiles of one layer, whose TileJSON is at `url`. Of
 * `tile`, the tileset and the link are read. */
mc_error *mc_layer_style(mc_buf **text, const mc_tile_request *tile, const char *url, const mc_call *call, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;

/* Colours of the layers of vector tiles, which have no style of their own: a tileset begins at a place of the list that
 * its name gives, or at the next one that no tileset before it in the configuration has, as long as there is one.
 * `taken`: 0 for the first tileset of the configuration, then what the call before has made of it. */
int mc_layer_colour_next(unsigned *taken, const mc_tileset *tileset);

/* "colours": the list from the tileset's place on, for the scripts of the pages. Nothing for images. */
void mc_layer_write_colours(mc_json_writer *json, const mc_tileset *tileset, int first);

/* The place of one tileset. */
int mc_layer_colour_first(const mc_call *call, const mc_tileset *tileset);

#endif
