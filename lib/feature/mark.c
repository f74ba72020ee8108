/* Marks: unit outlines, turned and moved. */
#include "feature/mark.h"

#include <math.h>

enum { CIRCLE_CORNERS_MAX = 128 };

typedef struct placing {
    mc_shape *shape;
    mc_shape_point at;
    double size, cosine, sine;
} placing;

/* A corner in units of the size, y down. */
static void
corner(const placing *p, double x, double y)
{
    double dx = (x * p->cosine - y * p->sine) * p->size, dy = (x * p->sine + y * p->cosine) * p->size;
    mc_shape_add(p->shape, p->at.x + (int32_t)lrint(dx), p->at.y + (int32_t)lrint(dy));
}

static void
line(const placing *p, double x0, double y0, double x1, double y1)
{
    corner(p, x0, y0);
    corner(p, x1, y1);
    mc_shape_end_part(p->shape);
}

/* Corners on a circle from the top on, every second one on the inner radius. */
static void
polygon(const placing *p, int corners, double radius, double inner)
{
    for (int i = 0; i < corners; i++) {
        double angle = 2 * M_PI * i / corners;
        double r = i % 2 == 1 ? inner : radius;
        corner(p, sin(angle) * r, -cos(angle) * r);
    }
    mc_shape_end_part(p->shape);
}

static void
square(const placing *p)
{
    corner(p, -0.5, -0.5);
    corner(p, 0.5, -0.5);
    corner(p, 0.5, 0.5);
    corner(p, -0.5, 0.5);
    mc_shape_end_part(p->shape);
}

bool
mc_mark_place(mc_shape *shape, mc_mark_shape mark, mc_shape_point at, double size, double rotation)
{
    double angle = rotation * M_PI / 180;
    placing p = { shape, at, size * MC_SUBPIXELS, cos(angle), sin(angle) };
    bool open = mark == MC_MARK_CROSS || mark == MC_MARK_X || mark == MC_MARK_LINE;
    mc_shape_clear(shape, open ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS);
    switch (mark) {
    case MC_MARK_SQUARE:
        square(&p);
        break;
    case MC_MARK_CIRCLE:
        polygon(&p, 2 * (int)fmin(CIRCLE_CORNERS_MAX / 2.0, fmax(8, size)), 0.5, 0.5);
        break;
    case MC_MARK_TRIANGLE:
        polygon(&p, 3, 0.5, 0.5);
        break;
    case MC_MARK_STAR:
        polygon(&p, 10, 0.5, 0.5 * 0.381966);
        break;
    case MC_MARK_PENTAGON:
        polygon(&p, 5, 0.5, 0.5);
        break;
    case MC_MARK_DIAMOND:
        polygon(&p, 4, 0.5, 0.5);
        break;
    case MC_MARK_CROSS:
        line(&p, -0.5, 0, 0.5, 0);
        line(&p, 0, -0.5, 0, 0.5);
        break;
    case MC_MARK_X:
        line(&p, -0.5, -0.5, 0.5, 0.5);
        line(&p, -0.5, 0.5, 0.5, -0.5);
        break;
    case MC_MARK_LINE:
        line(&p, 0, -0.5, 0, 0.5);
        break;
    }
    return !open;
}
