/* Distances and crossings in whole numbers of 1/256 pixel, far below the range of a double. */
#include "vector/geometry/hit.h"

#include <math.h>

double
mc_shape_squared_from(mc_shape_point p, mc_shape_point a, mc_shape_point b)
{
    double dx = (double)b.x - a.x, dy = (double)b.y - a.y, px = (double)p.x - a.x, py = (double)p.y - a.y;
    double length2 = dx * dx + dy * dy;
    double t = length2 > 0 ? fmin(1, fmax(0, (px * dx + py * dy) / length2)) : 0;
    double ex = px - t * dx, ey = py - t * dy;
    return ex * ex + ey * ey;
}

bool
mc_shape_covers(const mc_shape *shape, mc_shape_point p)
{
    bool inside = false;
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        mc_shape_point a = shape->points[shape->ends[part] - 1];
        for (int i = begin; i < shape->ends[part]; i++) {
            mc_shape_point b = shape->points[i];
            if ((a.y <= p.y) != (b.y <= p.y) &&
                a.x + ((double)p.y - a.y) * ((double)b.x - a.x) / ((double)b.y - a.y) > p.x)
                inside = !inside;
            a = b;
        }
    }
    return inside;
}

static bool
is_shape_within_reach(const mc_shape *shape, mc_shape_point p, double reach2)
{
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
        for (int i = begin; i < shape->ends[part]; i++)
            if (mc_shape_squared_from(p, shape->points[i > begin ? i - 1 : i], shape->points[i]) <= reach2)
                return true;
    return false;
}

bool
mc_geometry_hit(const mc_geometry *geometry, mc_shape_point point, int32_t reach)
{
    double reach2 = (double)reach * reach;
    return mc_shape_covers(&geometry->shapes[MC_SHAPE_POLYGONS], point) ||
           is_shape_within_reach(&geometry->shapes[MC_SHAPE_LINES], point, reach2) ||
           is_shape_within_reach(&geometry->shapes[MC_SHAPE_POINTS], point, reach2);
}
