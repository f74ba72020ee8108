/* Pieces of the report of `mapcache detail`: JSON with tabs (docs/reference/services.md 10). */
#ifndef MC_CLI_DETAIL_JSON_H
#define MC_CLI_DETAIL_JSON_H

#include "mapcache/survey.h"
#include "text/json_writer.h"

/* Tiles: in the area, and those of them that are stored. */
typedef struct mc_detail_tiles {
    int64_t stored, most;
} mc_detail_tiles;

/* An object `name` with the bounds of a region and its geometry: an object of GeoJSON, or NULL for the rectangle of the
 * bounds. */
void mc_detail_region(mc_json_writer *json, const char *name, const mc_extent *box, const char *geometry);

/* "nb_tiles_in_region" with its keys ending in `where`: file, level or cache. */
void mc_detail_counts(mc_json_writer *json, const char *where, const mc_detail_tiles *tiles);

/* One of the files of a level. */
void mc_detail_file(mc_json_writer *json, const mc_survey_file *file, const mc_extent *box, const mc_extent *region,
                    const char *geometry);

#endif
