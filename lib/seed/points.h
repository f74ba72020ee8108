/* Vertices in a list that grows, from malloc(). */
#ifndef MC_SEED_POINTS_H
#define MC_SEED_POINTS_H

#include <stddef.h>

typedef struct mc_points {
    double *xy; /* x and y in turn; free() it in the end */
    size_t count, room;
} mc_points;

void mc_points_add(mc_points *points, double x, double y);

#endif
