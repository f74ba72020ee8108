/*
 * Strokes as unions of simple areas of one direction: a quad for each segment, a wedge or fan for each join, a cap for
 * each end. Sums above a whole pixel count as one (MC_NON_ZERO). Corners are computed relative to a vertex of the line
 * and rounded, so that they move with it by whole pixels.
 */
#include "feature/stroker.h"

#include <math.h>

enum { FAN_STEPS_MAX = 64, DASHES_MAX = 64, TURNS_MAX = 1 << 20 };

#define PERIOD_MIN 64.0 /* 1/256 pixel: finer dashes are not told from a line */

#define MITRE_LIMIT 4.0 /* as most drawing systems; longer ones are bevelled */

typedef struct vector {
    double x, y;
} vector;

typedef struct stroking {
    mc_area *coverage;
    const mc_pen *pen;
    double half;   /* of the width, in 1/256 pixel */
    int32_t reach; /* how far from its line anything can be, in 1/256 pixel */
    mc_shape area; /* one part, on the stack below */
    mc_shape_point corners[FAN_STEPS_MAX + 4];
    int end;
} stroking;

static void
begin_area(stroking *s)
{
    s->area.point_count = 0;
}

static void
add_corner(stroking *s, mc_shape_point from, double dx, double dy)
{
    s->corners[s->area.point_count++] = (mc_shape_point){ from.x + (int32_t)lrint(dx), from.y + (int32_t)lrint(dy) };
}

/* Turns the area so that all have the same direction, and adds it. */
static void
finish_area(stroking *s)
{
    int count = s->area.point_count;
    int64_t twice = 0;
    for (int i = 0; i < count; i++) {
        mc_shape_point a = s->corners[i], b = s->corners[(i + 1) % count];
        twice += (int64_t)(a.x - s->corners[0].x) * (b.y - s->corners[0].y) -
                 (int64_t)(b.x - s->corners[0].x) * (a.y - s->corners[0].y);
    }
    for (int i = 0; twice < 0 && i < count / 2; i++) {
        mc_shape_point swap = s->corners[i];
        s->corners[i] = s->corners[count - 1 - i];
        s->corners[count - 1 - i] = swap;
    }
    s->end = count;
    s->area.part_count = 1;
    mc_area_add(s->coverage, &s->area, 0, 0);
}

/* Unit vector from a to b; false where they are the same point. */
static bool
direction(vector *unit, mc_shape_point a, mc_shape_point b)
{
    double dx = (double)b.x - a.x, dy = (double)b.y - a.y;
    double length = sqrt(dx * dx + dy * dy);
    if (length == 0)
        return false;
    *unit = (vector){ dx / length, dy / length };
    return true;
}

/* Whether anything of a segment can be on the map; it then must be added whole. */
static bool
is_near(const stroking *s, mc_shape_point a, mc_shape_point b)
{
    int32_t right = s->coverage->width * MC_SUBPIXELS + s->reach,
            bottom = s->coverage->height * MC_SUBPIXELS + s->reach;
    return !((a.x < -s->reach && b.x < -s->reach) || (a.y < -s->reach && b.y < -s->reach) ||
             (a.x > right && b.x > right) || (a.y > bottom && b.y > bottom));
}

static void
add_quad(stroking *s, mc_shape_point a, mc_shape_point b, vector unit)
{
    double nx = -unit.y * s->half, ny = unit.x * s->half;
    begin_area(s);
    add_corner(s, a, nx, ny);
    add_corner(s, b, nx, ny);
    add_corner(s, b, -nx, -ny);
    add_corner(s, a, -nx, -ny);
    finish_area(s);
}

/* A part of a disc around p, from one angle on; a chord is at most 1/8 pixel off the arc. */
static void
add_fan(stroking *s, mc_shape_point p, double from, double sweep)
{
    double step = 2 * acos(1 - fmin(1, 32 / fmax(s->half, 32)));
    int steps = (int)ceil(fabs(sweep) / fmax(step, 0.1));
    steps = steps < 1 ? 1 : steps > FAN_STEPS_MAX ? FAN_STEPS_MAX : steps;
    begin_area(s);
    add_corner(s, p, 0, 0);
    for (int i = 0; i <= steps; i++) {
        double angle = from + sweep * i / steps;
        add_corner(s, p, cos(angle) * s->half, sin(angle) * s->half);
    }
    finish_area(s);
}

static void
add_join(stroking *s, mc_shape_point p, vector in, vector out)
{
    double cross = in.x * out.y - in.y * out.x, dot = in.x * out.x + in.y * out.y;
    if (fabs(cross) < 1e-6 && dot > 0)
        return;
    double side = cross > 0 ? -1 : 1; /* the outer side of the bend */
    vector a = { -in.y * side, in.x * side }, b = { -out.y * side, out.x * side };
    if (s->pen->join == MC_JOIN_ROUND) {
        double from = atan2(a.y, a.x), sweep = atan2(b.y, b.x) - from;
        if (sweep > M_PI)
            sweep -= 2 * M_PI;
        if (sweep < -M_PI)
            sweep += 2 * M_PI;
        add_fan(s, p, from, sweep);
        return;
    }
    begin_area(s);
    add_corner(s, p, 0, 0);
    add_corner(s, p, a.x * s->half, a.y * s->half);
    double cosine2 = (1 + dot) / 2; /* of half of the turn, squared */
    if (s->pen->join == MC_JOIN_MITRE && cosine2 * MITRE_LIMIT * MITRE_LIMIT > 1) {
        double scale = s->half / (2 * cosine2);
        add_corner(s, p, (a.x + b.x) * scale, (a.y + b.y) * scale);
    }
    add_corner(s, p, b.x * s->half, b.y * s->half);
    finish_area(s);
}

/* The end of a line at p; `out` points away from the line. */
static void
add_cap(stroking *s, mc_shape_point p, vector out)
{
    if (s->pen->cap == MC_CAP_ROUND)
        add_fan(s, p, atan2(out.y, out.x) - M_PI / 2, M_PI);
    if (s->pen->cap != MC_CAP_SQUARE)
        return;
    double nx = -out.y * s->half, ny = out.x * s->half, ox = out.x * s->half, oy = out.y * s->half;
    begin_area(s);
    add_corner(s, p, nx, ny);
    add_corner(s, p, nx + ox, ny + oy);
    add_corner(s, p, -nx + ox, -ny + oy);
    add_corner(s, p, -nx, -ny);
    finish_area(s);
}

/* One line or ring without repeated points. */
static void
stroke_part(stroking *s, const mc_shape_point *points, int count, bool closed)
{
    vector before = { 0, 0 }, first = { 0, 0 };
    bool begun = false;
    int segments = closed ? count : count - 1;
    for (int i = 0; i < segments; i++) {
        mc_shape_point a = points[i], b = points[(i + 1) % count];
        vector unit;
        if (!direction(&unit, a, b))
            continue;
        if (is_near(s, a, b))
            add_quad(s, a, b, unit);
        if (begun && is_near(s, a, a))
            add_join(s, a, before, unit);
        if (!begun)
            first = unit;
        before = unit;
        begun = true;
    }
    if (!begun)
        return;
    if (closed) {
        if (is_near(s, points[0], points[0]))
            add_join(s, points[0], before, first);
        return;
    }
    if (is_near(s, points[0], points[0]))
        add_cap(s, points[0], (vector){ -first.x, -first.y });
    if (is_near(s, points[count - 1], points[count - 1]))
        add_cap(s, points[count - 1], before);
}

/* Cuts [*from, *to], lengths along a + t * u, to where the coordinate is inside of low..high. */
static void
cut(double *from, double *to, double a, double u, double low, double high)
{
    if (u == 0) {
        if (a < low || a > high)
            *to = *from - 1;
        return;
    }
    double t0 = (low - a) / u, t1 = (high - a) / u;
    *from = fmax(*from, fmin(t0, t1));
    *to = fmin(*to, fmax(t0, t1));
}

bool
mc_stroker_stretch(mc_stretch *stretch, mc_shape_point a, mc_shape_point b, int width, int height, double reach)
{
    double dx = (double)b.x - a.x, dy = (double)b.y - a.y, length = hypot(dx, dy);
    *stretch = (mc_stretch){ .length = length, .to = length };
    if (length == 0)
        return false;
    stretch->ux = dx / length;
    stretch->uy = dy / length;
    cut(&stretch->from, &stretch->to, a.x, stretch->ux, -reach, width * (double)MC_SUBPIXELS + reach);
    cut(&stretch->from, &stretch->to, a.y, stretch->uy, -reach, height * (double)MC_SUBPIXELS + reach);
    return stretch->from <= stretch->to;
}

/* Where dashes begin and end along a line, in 1/256 pixel: computed from the line's begin each, so that they are the
 * same whatever part of it is looked at. */
typedef struct dashing {
    double begins[DASHES_MAX], ends[DASHES_MAX];
    int count;
    double period;
} dashing;

static bool
make_dashing(dashing *d, const mc_pen *pen)
{
    double unit = pen->dash_unit * MC_SUBPIXELS, at = -pen->dash_offset * unit;
    *d = (dashing){ 0 };
    for (int i = 0; i < pen->dash_count && d->count < DASHES_MAX; i++) {
        double length = pen->dashes[i] * unit;
        if (i % 2 == 0) {
            d->begins[d->count] = at;
            d->ends[d->count++] = at + fmax(length, 1); /* a dash of no length is a dot */
        }
        at += length;
        d->period += length;
    }
    return d->period >= PERIOD_MIN;
}

static void
add_along(mc_shape *out, mc_shape_point a, const mc_stretch *stretch, double at)
{
    mc_shape_add(out, a.x + (int32_t)lrint(stretch->ux * at), a.y + (int32_t)lrint(stretch->uy * at));
}

/* Ends the dash that goes on from the segment before. */
static void
end_open(mc_shape *out, bool *open)
{
    if (*open)
        mc_shape_end_part(out);
    *open = false;
}

/* The dashes of one segment that begins `done` behind the line's begin. *open: the last one goes on. */
static void
cut_segment(mc_shape *out, bool *open, const dashing *d, mc_shape_point a, mc_shape_point b, const mc_stretch *stretch,
            double done)
{
    double first = floor((done + stretch->from - d->ends[d->count - 1]) / d->period);
    double last = ceil((done + stretch->to - d->begins[0]) / d->period);
    int turns = (int)fmin(last - first, TURNS_MAX);
    for (int t = 0; t <= turns; t++)
        for (int i = 0; i < d->count; i++) {
            double turn = first + t;
            double begin = turn * d->period + d->begins[i] - done, end = turn * d->period + d->ends[i] - done;
            if (begin >= stretch->length || end <= 0 || begin > stretch->to || end < stretch->from)
                continue;
            if (begin >= 0)
                end_open(out, open);
            if (!*open)
                add_along(out, a, stretch, fmax(begin, 0));
            *open = end > stretch->length;
            if (*open) {
                mc_shape_add(out, b.x, b.y);
                return;
            }
            add_along(out, a, stretch, end);
            mc_shape_end_part(out);
        }
    end_open(out, open);
}

/* Cuts one line into the parts of `out` that are to be seen. */
static void
cut_dashes(mc_shape *out, const stroking *s, const dashing *d, const mc_shape_point *points, int count, bool closed)
{
    int segments = closed ? count : count - 1;
    double done = 0;
    bool open = false;
    mc_shape_clear(out, MC_SHAPE_LINES);
    for (int i = 0; i < segments; i++) {
        mc_shape_point a = points[i], b = points[(i + 1) % count];
        mc_stretch stretch;
        bool seen = mc_stroker_stretch(&stretch, a, b, s->coverage->width, s->coverage->height, s->reach);
        if (!seen && stretch.length > 0)
            end_open(out, &open); /* what follows is outside of the map */
        if (seen)
            cut_segment(out, &open, d, a, b, &stretch, done);
        done += stretch.length;
    }
    end_open(out, &open);
}

/* Each vertex moved along the half of its angle. */
void
mc_stroker_beside(mc_shape *out, const mc_shape_point *points, int count, bool closed, double offset)
{
    mc_shape_clear(out, MC_SHAPE_LINES);
    for (int i = 0; i < count; i++) {
        vector in = { 0, 0 }, beyond = { 0, 0 };
        bool has_in = (i > 0 || closed) && direction(&in, points[(i + count - 1) % count], points[i]);
        bool has_out = (i < count - 1 || closed) && direction(&beyond, points[i], points[(i + 1) % count]);
        if (!has_in)
            in = beyond;
        if (!has_out)
            beyond = in;
        double nx = in.y + beyond.y, ny = -(in.x + beyond.x);
        double scale = 2 / fmax(nx * nx + ny * ny, 0.5);
        mc_shape_add(out, points[i].x + (int32_t)lrint(nx * scale * offset),
                     points[i].y + (int32_t)lrint(ny * scale * offset));
    }
    mc_shape_end_part(out);
}

static void
stroke_or_dash(stroking *s, const mc_shape_point *points, int count, bool closed, mc_shape *scratch)
{
    dashing d;
    if (s->pen->dashes == NULL || !make_dashing(&d, s->pen)) {
        stroke_part(s, points, count, closed);
        return;
    }
    cut_dashes(scratch, s, &d, points, count, closed);
    for (int part = 0, begin = 0; part < scratch->part_count; begin = scratch->ends[part++])
        stroke_part(s, scratch->points + begin, scratch->ends[part] - begin, false);
}

void
mc_stroker_add(mc_area *coverage, const mc_shape *shape, const mc_pen *pen, mc_shape *scratch)
{
    stroking s = { .coverage = coverage, .pen = pen, .half = pen->width * MC_SUBPIXELS / 2 };
    s.reach =
        (int32_t)fmin((s.half * MITRE_LIMIT + fabs(pen->offset) * MC_SUBPIXELS * 2) + MC_SUBPIXELS, MC_SHAPE_REACH / 2);
    s.area = (mc_shape){ .kind = MC_SHAPE_POLYGONS, .points = s.corners, .ends = &s.end };
    bool closed = shape->kind == MC_SHAPE_POLYGONS;
    mc_shape beside = { 0 };
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        const mc_shape_point *points = shape->points + begin;
        int count = shape->ends[part] - begin;
        if (pen->offset != 0) {
            mc_stroker_beside(&beside, points, count, closed, pen->offset * MC_SUBPIXELS);
            points = beside.points;
            count = beside.point_count;
        }
        if (count >= 2)
            stroke_or_dash(&s, points, count, closed, scratch);
    }
    mc_shape_free(&beside);
}
