/*
 * Which stored tiles a change has made old, and when: marks of the metatiles of tilesets, in the memory of a process,
 * bounded. Where there is no room, neighbours become one mark: what is marked may be more than has changed, never less.
 * One thread at a time marks; any number of threads look, and none of them waits for a lock.
 */
#ifndef MC_CHANGES_MARKS_H
#define MC_CHANGES_MARKS_H

#include <apr_time.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mapcache/grid.h"

typedef struct mc_marks mc_marks;
typedef struct mc_mark_set mc_mark_set; /* the marks of a tileset on one grid */

/* `capacity`: marks of single metatiles at least, of all tilesets together; a power of two. `sets`: that at most tell
 * their tiles apart. */
mc_marks *mc_marks_create(int capacity, int sets);
void mc_marks_destroy(mc_marks *marks); /* NULL is ignored */

/*
 * The set of a tileset on a grid whose metatiles have so many columns and rows; made at the first call, lives as long
 * as `marks`. Where the metatiles of the tileset had another size before, or the grid was another, all of the new set
 * has the newest mark of the old one. `kept_in`: a set of the same metatiles whose marks count for this one, too; NULL:
 * it has marks of its own. Where there is no room for another set, or the grid has more than 64 levels, the answer is
 * one set for all these, the rest: each mark in it makes all tiles of all of them old.
 */
mc_mark_set *mc_marks_set(mc_marks *marks, const char *tileset, const mc_grid *grid, int columns, int rows,
                          mc_mark_set *kept_in);

/* Whether that is the set of the rest. */
bool mc_marks_is_rest(const mc_mark_set *set);

/* Whether a set has marks of its own: the others are not marked. */
bool mc_marks_kept_apart(const mc_mark_set *set);

/* Marks all metatiles that have a tile in one of the ranges (half-open, tiles of level z), at `time`. Many ranges at
 * once cost less than one by one. */
void mc_marks_add(mc_mark_set *set, int z, const mc_tile_range *ranges, int count, apr_time_t time);

/* Forgets all marks that are not later than `time`: no stored tile is older than they are. */
void mc_marks_forget(mc_marks *marks, apr_time_t time);

/* The time of the newest mark of a tile; 0: it has none. */
apr_time_t mc_marks_find(const mc_mark_set *set, int z, int x, int y);

/* Remembers that the process itself has drawn and stored the metatile of a tile, beginning at `time`; of the last some
 * thousand metatiles. And that time; 0: it has not, or it is forgotten. */
void mc_marks_note_drawn(mc_mark_set *set, int z, int x, int y, apr_time_t time);
apr_time_t mc_marks_drawn(const mc_mark_set *set, int z, int x, int y);

/* Tells how far the clock of marks is ahead of apr_time_now(), in microseconds; 0 before. */
void mc_marks_set_clock(mc_marks *marks, apr_interval_time_t offset);

enum { MC_MARKS_HOLD = 10 /* seconds */ };

/* Whether `mark`, of a tile, lies in the future, as the clock was set back, and the process itself has drawn the
 * metatile in the last MC_MARKS_HOLD seconds: nobody can tell which of both came later, but it is not drawn for each
 * request. */
bool mc_marks_hold(const mc_mark_set *set, int z, int x, int y, apr_time_t mark);

typedef struct mc_marks_statistics {
    int entries;    /* marks of single metatiles, or of squares of metatiles */
    int rectangles; /* marks of larger areas */
    int coarsened;  /* how many times neighbours became one */
} mc_marks_statistics;

mc_marks_statistics mc_marks_stat(mc_marks *marks);

#endif
