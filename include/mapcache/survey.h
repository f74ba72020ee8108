/* What tile stores hold of an area, file by file, without reading tiles. */
#ifndef MAPCACHE_SURVEY_H
#define MAPCACHE_SURVEY_H

#include "mapcache/cache.h"

/* The part of an area that stands in one file. */
typedef struct mc_survey_file {
    const char *path; /* of a store without files of that kind: the name of the cache */
    bool present;
    int64_t bytes;
    mc_tile_range block;  /* tiles that the file is for, inside the grid */
    mc_tile_range wanted; /* those of them in the area; none is empty */
    int64_t stored,
        total; /* tiles in `wanted` that the file holds; all that it holds of the same series, of whatever level */
} mc_survey_file;

/* False ends the survey. `file` lives until the return. */
typedef bool mc_survey_visit(void *baton, const mc_survey_file *file);

/*
 * Visits the files of one level, columns from west to east, rows inside. `key` names tileset, grid, level and
 * dimensions. `query` counts the tiles of a range (:tileset :grid :dim :z :minx :maxx :miny :maxy, inclusive); NULL:
 * that of the cache's schema. any: stores of all kinds; those that are no SQLite files count as one file. Otherwise,
 * and where a store cannot be counted, MC_ERR_CONFIG if the tiles stand in no cache of type sqlite3.
 */
mc_error *mc_survey(mc_cache *cache, const mc_tile_key *key, const mc_tile_range *area, const char *query, bool any,
                    mc_survey_visit *visit, void *baton, mc_ctx *ctx) MC_CHECKED;

#endif
