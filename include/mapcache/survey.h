/* Counts the tiles that stores hold of an area, file by file, without reading the tiles. */
#ifndef MAPCACHE_SURVEY_H
#define MAPCACHE_SURVEY_H

#include "mapcache/cache.h"

/* The part of an area that stands in one file. */
typedef struct mc_survey_file {
    const char *path; /* the name of the cache where the store has no such files */
    bool present;
    int64_t bytes;
    mc_tile_range block;  /* tiles that the file is for, inside the grid */
    mc_tile_range wanted; /* the tiles of the block that are in the area; never empty */
    int64_t most;         /* the number of wanted tiles: all of `wanted`, or those that belong to the region */
    int64_t stored;       /* wanted tiles that the file holds */
    int64_t total;        /* all tiles of the same series in the file, of all levels */
} mc_survey_file;

/* False ends the survey. `file` lives until the return. */
typedef bool mc_survey_visit(void *baton, const mc_survey_file *file);

/* How much of a range of tiles belongs to a region. */
typedef enum mc_survey_share { MC_SURVEY_NONE, MC_SURVEY_SOME, MC_SURVEY_ALL } mc_survey_share;

typedef struct mc_survey_task {
    mc_tile_range area;
    /* NULL: all tiles of the area. Otherwise `share` tells how much of a range belongs to the region. ALL and NONE hold
     * for each part of the range, too. A single tile with the share SOME belongs to the region. */
    mc_survey_share (*share)(void *baton, const mc_tile_range *tiles);
    /* Counts the tiles of a range (:tileset :grid :dim :z :minx :maxx :miny :maxy, inclusive); NULL: the statement of
     * the cache's schema. */
    const char *query;
    bool any; /* visits stores of all kinds; a store that is no SQLite file counts as one file */
    mc_survey_visit *visit;
    void *baton; /* of `share` and `visit` */
} mc_survey_task;

/*
 * Visits the files of one level, columns from west to east, rows inside. Files without a wanted tile are left out.
 * `key` names tileset, grid, level and dimensions. MC_ERR_CONFIG where a store cannot be counted and, unless `any`,
 * where the tiles stand in no cache of type sqlite3.
 */
mc_error *mc_survey(mc_cache *cache, const mc_tile_key *key, const mc_survey_task *task, mc_ctx *ctx) MC_CHECKED;

#endif
