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
    int64_t most;         /* how many of those are wanted: all, or what the region has of them */
    int64_t stored,
        total; /* of the wanted tiles that the file holds; all that it holds of the same series, of whatever level */
} mc_survey_file;

/* False ends the survey. `file` lives until the return. */
typedef bool mc_survey_visit(void *baton, const mc_survey_file *file);

/* How much of a range of tiles belongs to a region. */
typedef enum mc_survey_share { MC_SURVEY_NONE, MC_SURVEY_SOME, MC_SURVEY_ALL } mc_survey_share;

typedef struct mc_survey_task {
    mc_tile_range area;
    /* NULL: all tiles of the area. Otherwise a single tile belongs to the region unless the share is NONE; what holds
     * of a range, if not SOME, holds of each part of it. */
    mc_survey_share (*share)(void *baton, const mc_tile_range *tiles);
    /* Counts the tiles of a range (:tileset :grid :dim :z :minx :maxx :miny :maxy, inclusive); NULL: that of the
     * cache's schema. */
    const char *query;
    bool any; /* stores of all kinds; those that are no SQLite files count as one file */
    mc_survey_visit *visit;
    void *baton; /* of `share` and `visit` */
} mc_survey_task;

/*
 * Visits the files of one level, columns from west to east, rows inside; not those without any wanted tile. `key` names
 * tileset, grid, level and dimensions. MC_ERR_CONFIG where a store cannot be counted and, unless `any`, where the tiles
 * stand in no cache of type sqlite3.
 */
mc_error *mc_survey(mc_cache *cache, const mc_tile_key *key, const mc_survey_task *task, mc_ctx *ctx) MC_CHECKED;

#endif
