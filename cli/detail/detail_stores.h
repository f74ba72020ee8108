/* The part "stores" of `mapcache detail --stores`. */
#ifndef MC_CLI_DETAIL_STORES_H
#define MC_CLI_DETAIL_STORES_H

#include "mapcache/server.h"
#include "text/json_writer.h"

/* `cache`, or what it is made of. An error of a store is part of the report. `lines`: NULL, or gets a line for people
 * about each store (of const char *). */
mc_error *mc_detail_stores(mc_json_writer *json, apr_array_header_t *lines, const mc_config *config, mc_cache *cache,
                           mc_ctx *ctx) MC_CHECKED;

#endif
