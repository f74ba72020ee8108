/* Points for graphics: see places.h. All is computed relative to a vertex, so that it moves with the tile. */
#include "vector/geometry/places.h"

#include <math.h>
#include <stdlib.h>

typedef struct places_span {
    const mc_shape_point *points;
    int count;
} places_span;

static places_span
shape_part_span(const mc_shape *shape, int part)
{
    int begin = part == 0 ? 0 : shape->ends[part - 1];
    return (places_span){ shape->points + begin, shape->ends[part] - begin };
}

/* The coordinate of a shape next to a value: the centroid of a ring that crosses itself can be anywhere. */
static int32_t
reach_coordinate(double value)
{
    return (int32_t)lrint(fmin(fmax(value, -MC_SHAPE_REACH), MC_SHAPE_REACH));
}

static void
add_relative(mc_shape *places, mc_shape_point from, double dx, double dy)
{
    mc_shape_add(places, reach_coordinate(from.x + rint(dx)), reach_coordinate(from.y + rint(dy)));
    mc_shape_end_part(places);
}

static double
measure_span_length(places_span line)
{
    double length = 0;
    for (int i = 1; i < line.count; i++)
        length +=
            hypot((double)line.points[i].x - line.points[i - 1].x, (double)line.points[i].y - line.points[i - 1].y);
    return length;
}

static void
add_half_way(mc_shape *places, places_span line)
{
    double left = measure_span_length(line) / 2;
    for (int i = 1; i < line.count; i++) {
        mc_shape_point a = line.points[i - 1];
        double dx = (double)line.points[i].x - a.x, dy = (double)line.points[i].y - a.y, length = hypot(dx, dy);
        if (length >= left && length > 0) {
            add_relative(places, a, dx * left / length, dy * left / length);
            return;
        }
        left -= length;
    }
    add_relative(places, line.points[line.count / 2], 0, 0);
}

static void
add_longest_line(mc_shape *places, const mc_shape *lines)
{
    places_span longest = { NULL, 0 };
    double most = -1;
    for (int part = 0; part < lines->part_count; part++) {
        places_span line = shape_part_span(lines, part);
        double length = measure_span_length(line);
        if (length > most) {
            most = length;
            longest = line;
        }
    }
    if (longest.count > 0)
        add_half_way(places, longest);
}

static void
add_mean_of_lines(mc_shape *places, const mc_shape *lines)
{
    mc_shape_point from = lines->points[0];
    double x = 0, y = 0, sum = 0;
    for (int part = 0; part < lines->part_count; part++) {
        places_span line = shape_part_span(lines, part);
        for (int i = 1; i < line.count; i++) {
            mc_shape_point a = line.points[i - 1], b = line.points[i];
            double length = hypot((double)b.x - a.x, (double)b.y - a.y);
            x += (((double)a.x + b.x) / 2 - from.x) * length;
            y += (((double)a.y + b.y) / 2 - from.y) * length;
            sum += length;
        }
    }
    add_relative(places, from, sum > 0 ? x / sum : 0, sum > 0 ? y / sum : 0);
}

/* The centroid relative to the first vertex. Holes run against their rings and count negative. False without an area.
 */
static bool
find_area_centroid(double *dx, double *dy, const mc_shape *areas)
{
    mc_shape_point from = areas->points[0];
    double x = 0, y = 0, twice = 0;
    for (int part = 0; part < areas->part_count; part++) {
        places_span ring = shape_part_span(areas, part);
        for (int i = 0; i < ring.count; i++) {
            mc_shape_point a = ring.points[i], b = ring.points[(i + 1) % ring.count];
            double ax = (double)a.x - from.x, ay = (double)a.y - from.y, bx = (double)b.x - from.x,
                   by = (double)b.y - from.y, cross = ax * by - bx * ay;
            x += (ax + bx) * cross;
            y += (ay + by) * cross;
            twice += cross;
        }
    }
    *dx = twice == 0 ? 0 : x / (3 * twice);
    *dy = twice == 0 ? 0 : y / (3 * twice);
    return twice != 0;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where edges cross the height `y` above the vertex `from`, in order. NULL without memory; the caller frees it. */
static double *
crossings_at(int *count, const mc_shape *areas, mc_shape_point from, double y)
{
    double *found = malloc(sizeof(double) * (size_t)(areas->point_count + 1));
    *count = 0;
    for (int part = 0; found != NULL && part < areas->part_count; part++) {
        places_span ring = shape_part_span(areas, part);
        for (int i = 0; i < ring.count; i++) {
            mc_shape_point a = ring.points[i], b = ring.points[(i + 1) % ring.count];
            double ay = (double)a.y - from.y, by = (double)b.y - from.y;
            if ((ay <= y) != (by <= y))
                found[(*count)++] = (double)a.x - from.x + (y - ay) * ((double)b.x - (double)a.x) / (by - ay);
        }
    }
    if (found != NULL)
        qsort(found, (size_t)*count, sizeof(double), by_value);
    return found;
}

/* Keeps (*dx, y) where it is inside; else moves it to the middle of the widest stretch of that height. */
static void
move_inside(double *dx, const double *crossings, int count)
{
    double widest = -1, middle = *dx;
    for (int i = 0; i + 1 < count; i += 2) {
        if (*dx >= crossings[i] && *dx <= crossings[i + 1])
            return;
        if (crossings[i + 1] - crossings[i] > widest) {
            widest = crossings[i + 1] - crossings[i];
            middle = (crossings[i] + crossings[i + 1]) / 2;
        }
    }
    *dx = middle;
}

static void
add_middle_of_area(mc_shape *places, const mc_shape *areas, bool inside)
{
    double dx, dy;
    int count;
    bool has_area = find_area_centroid(&dx, &dy, areas);
    if (inside && has_area) {
        double *crossings = crossings_at(&count, areas, areas->points[0], dy + 0.5);
        if (crossings != NULL)
            move_inside(&dx, crossings, count);
        free(crossings);
    }
    add_relative(places, areas->points[0], dx, dy);
}

static void
add_ends(mc_shape *places, const mc_shape *shape, mc_geometry_part part)
{
    for (int i = 0; i < shape->part_count; i++) {
        places_span line = shape_part_span(shape, i);
        int first = part == MC_PART_END ? line.count - 1 : 0, last = part == MC_PART_START ? 0 : line.count - 1;
        if (part == MC_PART_END && shape->kind == MC_SHAPE_POLYGONS)
            first = last = 0; /* a ring ends where it began */
        for (int at = first; at <= last; at++)
            add_relative(places, line.points[at], 0, 0);
    }
}

static void
add_for_lines(mc_shape *places, const mc_shape *lines, mc_geometry_part part)
{
    if (part == MC_PART_CENTROID)
        add_mean_of_lines(places, lines);
    else if (part == MC_PART_START || part == MC_PART_END || part == MC_PART_VERTICES)
        add_ends(places, lines, part);
    else
        add_longest_line(places, lines);
}

void
mc_places_find(mc_shape *places, const mc_geometry *geometry, mc_geometry_part part)
{
    const mc_shape *points = &geometry->shapes[MC_SHAPE_POINTS], *lines = &geometry->shapes[MC_SHAPE_LINES];
    const mc_shape *areas = &geometry->shapes[MC_SHAPE_POLYGONS];
    mc_shape_clear(places, MC_SHAPE_POINTS);
    for (int i = 0; i < points->point_count; i++)
        add_relative(places, points->points[i], 0, 0);
    if (part == MC_PART_POINTS)
        return;
    if (lines->part_count > 0)
        add_for_lines(places, lines, part);
    if (areas->part_count == 0)
        return;
    if (part == MC_PART_START || part == MC_PART_END || part == MC_PART_VERTICES)
        add_ends(places, areas, part);
    else
        add_middle_of_area(places, areas, part != MC_PART_CENTROID);
}
