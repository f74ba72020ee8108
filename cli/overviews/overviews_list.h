/* What `mapcache overviews list` prints. */
#ifndef MC_CLI_OVERVIEWS_LIST_H
#define MC_CLI_OVERVIEWS_LIST_H

#include "overview/overview.h"

typedef struct mc_cli_found_printer {
    const char *tileset;
    bool json, quiet;
    const char *source, *layer; /* of the last line; NULL: there was none of the tileset */
    apr_pool_t *pool;           /* of the strings of the tileset */
} mc_cli_found_printer;

/* A line for each level under a line for each source, or an object of JSON for each. `baton`: mc_cli_found_printer. */
void mc_cli_print_found(void *baton, const mc_overview_found *found);

#endif
