/* Which layers a map file has: names, groups, and which of them are on. */
#ifndef MC_SOURCE_MAPSERVER_MAPFILE_LAYERS_H
#define MC_SOURCE_MAPSERVER_MAPFILE_LAYERS_H

#include <apr_tables.h>
#include <stdbool.h>

#include "mapcache/error.h"

enum {
    MC_MAPFILE_BYTES_MAX = 16 << 20, /* of a file */
    MC_MAPFILE_FILES_MAX = 200,      /* that INCLUDE names */
    MC_MAPFILE_DEPTH_MAX = 64,       /* of blocks */
    MC_MAPFILE_INCLUDE_MAX = 5       /* of files that include each other, as MapServer has it */
};

typedef struct mc_mapfile_layer {
    const char *name, *group; /* "": none */
    bool on;                  /* STATUS is ON or DEFAULT */
} mc_mapfile_layer;

/*
 * The layers in the order of the map file, with those of the files that INCLUDE names, which are seen from the folder
 * of the map file. *layers: of mc_mapfile_layer. MC_ERR_CONFIG: a file cannot be read or is too large, there are too
 * many, or blocks nest too deeply.
 */
mc_error *mc_mapfile_layers(apr_array_header_t **layers, const char *file, apr_pool_t *pool) MC_CHECKED;

#endif
