/* Copies of features in one block of memory, in the order in which they came: handed from the thread that reads a layer
 * to those that paint it. */
#ifndef MC_DRAW_PAINT_FEATURE_BATCH_H
#define MC_DRAW_PAINT_FEATURE_BATCH_H

#include "vector/feature/feature.h"

typedef struct mc_feature_batch {
    uint8_t *block; /* aligned to 8 */
    size_t room, used;
} mc_feature_batch;

/* What is kept of one feature; its values and points follow it. */
typedef struct mc_batch_feature {
    int64_t id;
    const void *note; /* of whoever adds it */
    const char *const *values;
    mc_shape_point *points; /* of all shapes */
    int *ends;
    int point_counts[3], part_counts[3]; /* by mc_shape_kind */
} mc_batch_feature;

/* Copies a feature, whose query is known. NULL: there is no room for it, nothing is added. */
mc_batch_feature *mc_feature_batch_add(mc_feature_batch *batch, const mc_feature *feature);

/* The feature again, without its query, in `geometry`, which does not own what it points to: it begins as zeros, and is
 * used for any number of features. `points`: in place of the copy's own ones. */
mc_feature mc_batch_feature_restore(mc_geometry *geometry, const mc_batch_feature *copy, mc_shape_point *points);

static inline int
mc_batch_feature_points(const mc_batch_feature *copy)
{
    return copy->point_counts[0] + copy->point_counts[1] + copy->point_counts[2];
}

#endif
