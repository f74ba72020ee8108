/* The report of `mapcache detail` as people read it. */
#ifndef MC_CLI_DETAIL_TABLE_H
#define MC_CLI_DETAIL_TABLE_H

#include <apr_tables.h>

#include "detail_json.h"

typedef struct mc_detail_level {
    int z;
    mc_detail_tiles tiles;
    int64_t files, missing_files;
} mc_detail_level;

typedef struct mc_detail_summary {
    const char *tileset, *grid;
    apr_array_header_t *levels; /* of mc_detail_level */
    mc_detail_tiles tiles;      /* of all levels */
    int64_t bytes, file_tiles;  /* of the files that were looked into: their size, and all tiles in them */
    apr_array_header_t *stores; /* of const char *: a line about each store */
    int left_out;               /* first level that was not counted, to the last one of the grid; -1: none */
    int last;
} mc_detail_summary;

/* A line for each level; on a screen with colours and bars, elsewhere plain. */
void mc_detail_print_table(FILE *out, const mc_detail_summary *summary, apr_pool_t *pool);

#endif
