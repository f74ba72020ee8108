/* The report of `mapcache detail`: JSON with tabs, written as the survey goes (docs/reference/services.md 10). */
#ifndef MC_CLI_DETAIL_JSON_H
#define MC_CLI_DETAIL_JSON_H

#include <stdio.h>

#include "mapcache/survey.h"

/* Tiles: in the area, and those of them that are stored. */
typedef struct mc_detail_tiles {
    int64_t stored, most;
} mc_detail_tiles;

void mc_detail_text(FILE *out, const char *text);    /* as a string of JSON */
void mc_detail_box(FILE *out, const mc_extent *box); /* [minx, miny, maxx, maxy] */
/* A rectangle, or an object of GeoJSON with these bounds. */
void mc_detail_region(FILE *out, int depth, const char *name, const mc_extent *box, const char *geometry);

/* "nb_tiles_in_region" with its keys ending in `where`: file, level or cache. */
void mc_detail_counts(FILE *out, int depth, const char *where, const mc_detail_tiles *tiles);

/* One of the files of a level. */
void mc_detail_file(FILE *out, const mc_survey_file *file, const mc_extent *box, const mc_extent *region,
                    const char *geometry);

#endif
