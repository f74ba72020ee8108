/* The part "stores" of `mapcache detail --stores`. */
#ifndef MC_CLI_DETAIL_STORES_H
#define MC_CLI_DETAIL_STORES_H

#include <stdio.h>

#include "mapcache/server.h"

/* `cache`, or what it is made of. An error of a store is part of the report. */
mc_error *mc_detail_stores(FILE *out, const mc_config *config, mc_cache *cache, mc_ctx *ctx) MC_CHECKED;

#endif
