/* Shapes in pixels: see shape.h. */
#include "feature/shape.h"

#include <math.h>
#include <stdlib.h>

enum { FIRST_POINTS = 256, FIRST_PARTS = 16 };

void
mc_shape_clear(mc_shape *shape, mc_shape_kind kind)
{
    shape->kind = kind;
    shape->point_count = 0;
    shape->part_count = 0;
    shape->failed = false;
}

void
mc_shape_free(mc_shape *shape)
{
    free(shape->points);
    free(shape->ends);
    *shape = (mc_shape){ 0 };
}

/* Room for one more point; false, and the shape is marked, where there cannot be any. */
static bool
grow_points(mc_shape *shape)
{
    int room = shape->point_room == 0 ? FIRST_POINTS : shape->point_room * 2;
    mc_shape_point *points = room > MC_SHAPE_POINTS_MAX ? NULL : realloc(shape->points, sizeof(*points) * (size_t)room);
    if (points == NULL) {
        shape->failed = true;
        return false;
    }
    shape->points = points;
    shape->point_room = room;
    return true;
}

void
mc_shape_add(mc_shape *shape, int32_t x, int32_t y)
{
    if (shape->failed || (shape->point_count == shape->point_room && !grow_points(shape)))
        return;
    shape->points[shape->point_count++] = (mc_shape_point){ x, y };
}

bool
mc_shape_reserve(mc_shape *shape, int more)
{
    while (!shape->failed && shape->point_room - shape->point_count < more)
        (void)grow_points(shape);
    return !shape->failed;
}

static int
part_begin(const mc_shape *shape)
{
    return shape->part_count == 0 ? 0 : shape->ends[shape->part_count - 1];
}

static bool
same(mc_shape_point a, mc_shape_point b)
{
    return a.x == b.x && a.y == b.y;
}

void
mc_shape_end_part(mc_shape *shape)
{
    static const int needed[] = { [MC_SHAPE_POINTS] = 1, [MC_SHAPE_LINES] = 2, [MC_SHAPE_POLYGONS] = 3 };
    int begin = part_begin(shape);
    if (shape->kind == MC_SHAPE_POLYGONS)
        while (shape->point_count - begin > 1 && same(shape->points[begin], shape->points[shape->point_count - 1]))
            shape->point_count--;
    if (shape->failed || shape->point_count - begin < needed[shape->kind]) {
        shape->point_count = begin;
        return;
    }
    if (shape->part_count == shape->part_room) {
        int room = shape->part_room == 0 ? FIRST_PARTS : shape->part_room * 2;
        int *ends = realloc(shape->ends, sizeof(*ends) * (size_t)room);
        if (ends == NULL) {
            shape->failed = true;
            shape->point_count = begin;
            return;
        }
        shape->ends = ends;
        shape->part_room = room;
    }
    shape->ends[shape->part_count++] = shape->point_count;
}

void
mc_shape_end_ring(mc_shape *shape, bool hole)
{
    int parts = shape->part_count, begin = part_begin(shape);
    mc_shape_end_part(shape);
    if (shape->part_count == parts)
        return;
    mc_shape_point *points = shape->points + begin;
    int count = shape->point_count - begin;
    double twice = 0; /* of the area: the sign is all that matters */
    for (int i = 1; i + 1 < count; i++)
        twice += (double)(points[i].x - points[0].x) * (points[i + 1].y - points[0].y) -
                 (double)(points[i + 1].x - points[0].x) * (points[i].y - points[0].y);
    if ((twice < 0) == hole)
        return;
    for (int i = 0; i < count / 2; i++) {
        mc_shape_point swap = points[i];
        points[i] = points[count - 1 - i];
        points[count - 1 - i] = swap;
    }
}

bool
mc_shape_bounds(const mc_shape *shape, int32_t *minx, int32_t *miny, int32_t *maxx, int32_t *maxy)
{
    if (shape->point_count == 0)
        return false;
    *minx = *maxx = shape->points[0].x;
    *miny = *maxy = shape->points[0].y;
    for (int i = 1; i < shape->point_count; i++) {
        mc_shape_point p = shape->points[i];
        *minx = p.x < *minx ? p.x : *minx;
        *maxx = p.x > *maxx ? p.x : *maxx;
        *miny = p.y < *miny ? p.y : *miny;
        *maxy = p.y > *maxy ? p.y : *maxy;
    }
    return true;
}

/* What lies far outside of any map is moved to the limit: what it paints inside comes out as near as can be. */
static int32_t
cut(double value)
{
    if (value >= MC_SHAPE_REACH)
        return MC_SHAPE_REACH;
    return value <= -MC_SHAPE_REACH ? -MC_SHAPE_REACH : (int32_t)value;
}

bool
mc_shape_add_vertex(mc_shape *shape, const mc_lattice *lattice, double x, double y)
{
    double px = rint((x - lattice->x0) * lattice->per_x * MC_SUBPIXELS);
    double py = rint((lattice->y0 - y) * lattice->per_y * MC_SUBPIXELS);
    if (!isfinite(px) || !isfinite(py))
        return false;
    mc_shape_point p = { cut(px - (double)lattice->left * MC_SUBPIXELS),
                         cut(py - (double)lattice->top * MC_SUBPIXELS) };
    if (shape->point_count > part_begin(shape)) {
        mc_shape_point last = shape->points[shape->point_count - 1];
        int64_t dx = p.x - last.x, dy = p.y - last.y;
        if (dx * dx + dy * dy < (int64_t)lattice->thinning * lattice->thinning || (dx == 0 && dy == 0))
            return true;
    }
    mc_shape_add(shape, p.x, p.y);
    return true;
}
