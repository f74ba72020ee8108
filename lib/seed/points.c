/* See points.h. */
#include "seed/points.h"

#include <stdlib.h>

#include "mapcache/error.h"

enum { FIRST_ROOM = 256 };

void
mc_points_add(mc_points *points, double x, double y)
{
    if (points->count == points->room) {
        points->room = points->room == 0 ? FIRST_ROOM : points->room * 2;
        points->xy = realloc(points->xy, points->room * 2 * sizeof(double));
        MC_ASSERT(points->xy != NULL);
    }
    points->xy[2 * points->count] = x;
    points->xy[2 * points->count++ + 1] = y;
}
