/* The marks of larger areas of one level of a tileset: some rectangles, joined where there are more. */
#ifndef MC_CHANGES_MARK_AREAS_H
#define MC_CHANGES_MARK_AREAS_H

#include <apr_time.h>
#include <stdatomic.h>

#include "mapcache/grid.h"

enum { MC_MARK_AREAS = 8 };

/* All zero: none. In metatiles; half-open. Who looks does so under the sequence of mc_marks: all is stored
 * with release, and loaded with acquire. */
typedef struct mc_mark_areas {
    _Atomic int count;
    struct mc_mark_area {
        _Atomic int minx, miny, maxx, maxy;
        _Atomic apr_time_t time;
    } areas[MC_MARK_AREAS];
} mc_mark_areas;

/* The newest time of the areas that a metatile lies in; 0: it lies in none. */
apr_time_t mc_mark_areas_find(const mc_mark_areas *areas, int x, int y);

/* Marks an area. One thread at a time, as the next one. */
void mc_mark_areas_add(mc_mark_areas *areas, const mc_tile_range *range, apr_time_t time);

/* Keeps those that are later than `time`; returns how many there are. */
int mc_mark_areas_keep(mc_mark_areas *areas, apr_time_t time);

#endif
