/* See arc.h. */
#include "feature/arc.h"

#include <math.h>

enum { STEPS_MAX = 4096 };

/* Pixels that a chord may be off. */
#define TOLERANCE 0.125

/* The centre of the circle through three points; false where they lie in a line. */
static bool
centre_of(double centre[2], const double a[2], const double b[2], const double c[2])
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

static int
steps_of(double radius, double sweep, const mc_lattice *lattice)
{
    double pixels = radius * fmax(lattice->per_x, lattice->per_y);
    if (pixels <= TOLERANCE)
        return 4;
    double steps = ceil(fabs(sweep) / (2 * acos(1 - TOLERANCE / pixels)));
    return steps < 4 ? 4 : steps < STEPS_MAX ? (int)steps : STEPS_MAX;
}

bool
mc_shape_add_arc(mc_shape *shape, const mc_lattice *lattice, const double a[2], const double b[2], const double c[2])
{
    double centre[2];
    if (!centre_of(centre, a, b, c))
        return mc_shape_add_vertex(shape, lattice, b[0], b[1]) && mc_shape_add_vertex(shape, lattice, c[0], c[1]);
    double radius = hypot(a[0] - centre[0], a[1] - centre[1]);
    if (!isfinite(radius))
        return false;
    double begin = atan2(a[1] - centre[1], a[0] - centre[0]), sweep = sweep_of(centre, a, b, c);
    int steps = steps_of(radius, sweep, lattice);
    for (int i = 1; i < steps; i++) {
        double angle = begin + sweep * i / steps;
        if (!mc_shape_add_vertex(shape, lattice, centre[0] + radius * cos(angle), centre[1] + radius * sin(angle)))
            return false;
    }
    return mc_shape_add_vertex(shape, lattice, c[0], c[1]);
}
