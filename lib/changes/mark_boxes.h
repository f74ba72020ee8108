/* From changed boxes of a table to marks of the tiles that show them. */
#ifndef MC_CHANGES_MARK_BOXES_H
#define MC_CHANGES_MARK_BOXES_H

#include "changes/box_set.h"
#include "changes/watch.h"

/* Told of ranges of tiles of a level that may have changed, some of many; an error ends the visits. */
typedef mc_error *mc_range_visit(void *baton, const mc_watch_link *link, int z, const mc_tile_range *ranges, int count);

/*
 * Visits all ranges of tiles of a tileset, on all of its grids and levels, that show something of the boxes. `srid`: of
 * the boxes; 0: they are in the CRS of each grid. Of boxes that cannot be placed on a grid, all of its tiles; of boxes
 * beside a grid, none.
 */
mc_error *mc_visit_ranges(const mc_watch *watch, const mc_watch_table *table, int srid, const mc_box_set *boxes,
                          mc_range_visit *visit, void *baton, apr_pool_t *pool) MC_CHECKED;

/* Marks these tiles, at `time`, on the links that have marks. Returns how many ranges were marked. */
int64_t mc_mark_boxes(const mc_watch *watch, const mc_watch_table *table, int srid, const mc_box_set *boxes,
                      apr_time_t time, apr_pool_t *pool);

/* The tiles of a level that show something of a box, which is in the CRS of the grid: at most three ranges, because of
 * the other side of the antimeridian. `reach`: mc_watch_reach. Returns how many there are. */
int mc_ranges_of_box(mc_tile_range ranges[3], const mc_grid_link *link, const mc_extent *box, double turn, double reach,
                     int z);

/* Places a box on a grid: *box is turned into its CRS, cut off where the grid ends. False: it lies beside the grid.
 * *whole: it cannot be placed, so that all of the grid counts. `projection`: NULL where both CRSs are the same. */
struct mc_projection;
bool mc_place_box(mc_extent *box, bool *whole, const struct mc_projection *projection, const mc_grid *grid);

#endif
