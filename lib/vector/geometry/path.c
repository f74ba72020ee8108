/* See path.h. */
#include "vector/geometry/path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vector/geometry/warp.h"

enum { STEPS_MAX = 4096, LEAST_STEPS = 4 };

/* Vertices that there is room for at first, and at most. */
#define FIRST_ROOM ((size_t)256)
#define MOST_ROOM ((size_t)MC_SHAPE_POINTS_MAX)
/* Pixels that a chord may be off. */
#define TOLERANCE 0.125

void
mc_path_free(mc_path *path)
{
    free(path->xy);
    *path = (mc_path){ 0 };
}

void
mc_path_add(mc_path *path, double x, double y)
{
    if (path->count == path->room && !path->failed) {
        size_t room = path->room == 0 ? FIRST_ROOM : path->room * 2;
        double *xy = room > MOST_ROOM ? NULL : realloc(path->xy, sizeof(*xy) * 2 * room);
        path->failed = xy == NULL;
        path->xy = xy == NULL ? path->xy : xy;
        path->room = xy == NULL ? path->room : room;
    }
    if (path->failed)
        return;
    path->xy[2 * path->count] = x;
    path->xy[2 * path->count + 1] = y;
    path->count++;
}

/* The centre of the circle through three points; false where they lie in a line. */
static bool
find_circle_centre(double centre[2], const double a[2], const double b[2], const double c[2])
{
    if (a[0] == c[0] && a[1] == c[1]) {
        centre[0] = (a[0] + b[0]) / 2;
        centre[1] = (a[1] + b[1]) / 2;
        return a[0] != b[0] || a[1] != b[1];
    }
    double bx = b[0] - a[0], by = b[1] - a[1], cx = c[0] - a[0], cy = c[1] - a[1];
    double twice = 2 * (bx * cy - by * cx), bb = bx * bx + by * by, cc = cx * cx + cy * cy;
    if (fabs(twice) < 1e-12 * (bb + cc))
        return false;
    centre[0] = a[0] + (cy * bb - by * cc) / twice;
    centre[1] = a[1] + (bx * cc - cx * bb) / twice;
    return true;
}

/* How far the arc turns, positive against the clock. */
static double
sweep_of(const double centre[2], const double a[2], const double b[2], const double c[2])
{
    const double full = 2 * M_PI;
    double begin = atan2(a[1] - centre[1], a[0] - centre[0]);
    double middle = fmod(atan2(b[1] - centre[1], b[0] - centre[0]) - begin + 2 * full, full);
    double end = fmod(atan2(c[1] - centre[1], c[0] - centre[0]) - begin + 2 * full, full);
    if (a[0] == c[0] && a[1] == c[1])
        return full;
    return middle < end ? end : end - full;
}

static double
pixel_around(const mc_pixel_grid *pixel_grid, const double centre[2], double radius)
{
    const mc_extent box = { centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius };
    return mc_pixel_grid_pixel_size(pixel_grid, &box);
}

static int
count_arc_steps(double pixels, double sweep)
{
    if (!(pixels > TOLERANCE))
        return LEAST_STEPS;
    double steps = ceil(fabs(sweep) / (2 * acos(1 - TOLERANCE / pixels)));
    return steps < LEAST_STEPS ? LEAST_STEPS : steps < STEPS_MAX ? (int)steps : STEPS_MAX;
}

void
mc_path_arc(mc_path *path, const mc_pixel_grid *pixel_grid, const double a[2], const double b[2], const double c[2])
{
    double centre[2] = { 0, 0 };
    if (path->failed)
        return;
    bool round = find_circle_centre(centre, a, b, c);
    double radius = hypot(a[0] - centre[0], a[1] - centre[1]);
    if (!round || !isfinite(radius)) {
        mc_path_add(path, b[0], b[1]);
        mc_path_add(path, c[0], c[1]);
        return;
    }
    double begin = atan2(a[1] - centre[1], a[0] - centre[0]), sweep = sweep_of(centre, a, b, c);
    int steps = count_arc_steps(radius / pixel_around(pixel_grid, centre, radius), sweep);
    for (int i = 1; i < steps; i++) {
        double angle = begin + sweep * i / steps;
        mc_path_add(path, centre[0] + radius * cos(angle), centre[1] + radius * sin(angle));
    }
    mc_path_add(path, c[0], c[1]);
}

bool
mc_path_move(mc_path *path, mc_shape *shape, const mc_pixel_grid *pixel_grid, bool hole)
{
    bool finite = true;
    size_t count = path->count;
    double *xy = pixel_grid->warp == NULL ? NULL : mc_warp_vertices(pixel_grid->warp, count);
    path->count = 0;
    shape->failed |= path->failed || (pixel_grid->warp != NULL && xy == NULL);
    if (shape->failed || count == 0)
        return true;
    if (xy != NULL) {
        memcpy(xy, path->xy, sizeof(*xy) * 2 * count);
        return mc_warp_add(shape, pixel_grid, count, hole ? MC_WARP_HOLE : MC_WARP_OUTER);
    }
    for (size_t i = 0; i < count; i++)
        finite &= mc_shape_add_vertex(shape, pixel_grid, path->xy[2 * i], path->xy[2 * i + 1]);
    return finite;
}
