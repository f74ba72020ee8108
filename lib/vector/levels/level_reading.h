/* Visiting the features of a level for a map, window by window. */
#ifndef MC_VECTOR_LEVELS_LEVEL_READING_H
#define MC_VECTOR_LEVELS_LEVEL_READING_H

#include "vector/feature/reading.h"
#include "vector/levels/level_blocks.h"

typedef struct mc_level_reading {
    mc_feature_reading *base;
    mc_level_window *window;
    double box[4];    /* of the map with its margin, in 1/256 pixel: left, top, right, bottom */
    int64_t features; /* that were visited */
    bool ids;         /* the value behind the attributes is the feature's number */
    apr_pool_t *scratch;
} mc_level_reading;

/* Begins to read a level for base->map, whose CRS is that of the level; until mc_level_reading_end. */
void mc_level_reading_begin(mc_level_reading *r, mc_feature_reading *base, bool ids, apr_pool_t *pool);
void mc_level_reading_end(mc_level_reading *r);

/* Visits the features of the window's blocks that the map shows, in drawing order, and clears the window. Errors are
 * the visitor's. */
mc_error *mc_level_reading_visit(mc_level_reading *r) MC_CHECKED;

#endif
