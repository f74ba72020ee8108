/*
 * Strokes as outlines that run along one side of a line, around its end and back along the other one. Where the inner
 * side of a bend has no room for a corner of its own, it runs through the vertex: so all of it has one direction, as
 * the union of a rectangle for each segment and a wedge for each join, and sums above a whole pixel count as one
 * (MC_NON_ZERO). Corners are computed relative to a vertex of the line and rounded, so that they move with it by whole
 * pixels. Only edges are added, in any order: nothing is kept of an outline but its last two corners.
 */
#include "draw/raster/stroker.h"

#include <math.h>

enum { FAN_STEPS_MAX = 64, DASHES_MAX = 64, TURNS_MAX = 1 << 20 };

#define PERIOD_MIN 64.0 /* 1/256 pixel: finer dashes are not told from a line */

#define MITRE_LIMIT 4.0 /* as most drawing systems; longer ones are bevelled */

typedef struct stroker_vector {
    double x, y;
} stroker_vector;

typedef struct stroking {
    mc_area *coverage;
    const mc_pen *pen;
    double half;           /* of the width, in 1/256 pixel */
    int32_t reach;         /* how far from its line anything can be, in 1/256 pixel */
    int32_t right, bottom; /* with it: what is beyond cannot be seen */
} stroking;

/* The corners of both sides at one place. */
typedef struct sides {
    mc_shape_point left, right;
} sides;

/* A bend: the corners at which the segment before it ends and the one behind it begins. */
typedef struct bend {
    sides in, out;
} bend;

/* A segment: its direction and length. */
typedef struct stroker_segment {
    stroker_vector unit;
    double length;
} stroker_segment;

static mc_shape_point
corner_at(mc_shape_point from, double dx, double dy)
{
    return (mc_shape_point){ from.x + (int32_t)lrint(dx), from.y + (int32_t)lrint(dy) };
}

/* False where both are the same point. */
static bool
segment_direction(stroker_segment *s, mc_shape_point a, mc_shape_point b)
{
    double dx = (double)b.x - a.x, dy = (double)b.y - a.y;
    double length = sqrt(dx * dx + dy * dy);
    if (length == 0)
        return false;
    *s = (stroker_segment){ { dx / length, dy / length }, length };
    return true;
}

/* Whether anything of a segment can be on the map; it then must be added whole. */
static bool
is_stroke_in_reach(const stroking *s, mc_shape_point a, mc_shape_point b)
{
    return !((a.x < -s->reach && b.x < -s->reach) || (a.y < -s->reach && b.y < -s->reach) ||
             (a.x > s->right && b.x > s->right) || (a.y > s->bottom && b.y > s->bottom));
}

static sides
sides_at(const stroking *s, mc_shape_point p, stroker_vector unit)
{
    double nx = -unit.y * s->half, ny = unit.x * s->half;
    return (sides){ corner_at(p, nx, ny), corner_at(p, -nx, -ny) };
}

/* An arc around p, from a corner at an angle to another one; a chord is at most 1/8 pixel off it. */
static void
add_join_arc(const stroking *s, mc_shape_point p, mc_shape_point from, mc_shape_point to, double angle, double sweep)
{
    double step = 2 * acos(1 - fmin(1, 32 / fmax(s->half, 32)));
    int steps = (int)ceil(fabs(sweep) / fmax(step, 0.1));
    steps = steps < 1 ? 1 : steps > FAN_STEPS_MAX ? FAN_STEPS_MAX : steps;
    for (int i = 1; i < steps; i++) {
        double at = angle + sweep * i / steps;
        mc_shape_point next = corner_at(p, cos(at) * s->half, sin(at) * s->half);
        mc_area_add_edge(s->coverage, from, next);
        from = next;
    }
    mc_area_add_edge(s->coverage, from, to);
}

/* The outer side of a bend that is not a mitre, from one segment's corner to the other's; run through backwards on the
 * right side. */
static void
add_outer(const stroking *s, mc_shape_point p, mc_shape_point from, mc_shape_point to, bool is_left)
{
    mc_shape_point first = is_left ? from : to, last = is_left ? to : from;
    if (s->pen->join != MC_JOIN_ROUND) {
        mc_area_add_edge(s->coverage, first, last);
        return;
    }
    double angle = atan2((double)first.y - p.y, (double)first.x - p.x);
    double sweep = atan2((double)last.y - p.y, (double)last.x - p.x) - angle;
    sweep += sweep > M_PI ? -2 * M_PI : sweep < -M_PI ? 2 * M_PI : 0;
    add_join_arc(s, p, first, last, angle, sweep);
}

/* The bend at p. Where a side has more than one corner there, the edges between them are added. */
static bend
add_bend(const stroking *s, mc_shape_point p, const stroker_segment *in, const stroker_segment *out)
{
    stroker_vector u = in->unit, v = out->unit;
    double cross = u.x * v.y - u.y * v.x, dot = u.x * v.x + u.y * v.y;
    bend made = { sides_at(s, p, u), sides_at(s, p, v) };
    if (fabs(cross) < 1e-6 && dot > 0) {
        made.out = made.in;
        return made;
    }
    bool turns_left = cross > 0; /* the inner side is the left one */
    mc_shape_point *inner_in = turns_left ? &made.in.left : &made.in.right;
    mc_shape_point *inner_out = turns_left ? &made.out.left : &made.out.right;
    mc_shape_point *outer_in = turns_left ? &made.in.right : &made.in.left;
    mc_shape_point *outer_out = turns_left ? &made.out.right : &made.out.left;
    double cosine2 = (1 + dot) / 2; /* of half of the turn, squared */
    double scale = cosine2 > 0 ? s->half / (2 * cosine2) : 0, side = turns_left ? 1 : -1;
    double dx = -(u.y + v.y) * scale * side, dy = (u.x + v.x) * scale * side; /* to where the inner sides meet */
    bool turns_back = 1 + dot < 1e-9;
    if (!turns_back && s->half * fabs(cross) <= (1 + dot) * fmin(in->length, out->length) / 2) {
        *inner_in = *inner_out = corner_at(p, dx, dy);
    } else {
        mc_area_add_edge(s->coverage, turns_left ? *inner_in : p, turns_left ? p : *inner_in);
        mc_area_add_edge(s->coverage, turns_left ? p : *inner_out, turns_left ? *inner_out : p);
    }
    if (s->pen->join == MC_JOIN_MITRE && cosine2 * MITRE_LIMIT * MITRE_LIMIT > 1)
        *outer_in = *outer_out = corner_at(p, -dx, -dy);
    else
        add_outer(s, p, *outer_in, *outer_out, !turns_left);
    return made;
}

/* Both sides of a segment. */
static void
add_sides(const stroking *s, sides from, sides to)
{
    mc_area_add_edge(s->coverage, from.left, to.left);
    mc_area_add_edge(s->coverage, to.right, from.right);
}

/* The end of a line at p: from its left corner around to its right one, seen in the direction `out` away from the line
 * (or from the right to the left, where the line begins there). */
static void
add_end(const stroking *s, mc_shape_point p, stroker_vector out, mc_line_cap cap)
{
    double nx = -out.y * s->half, ny = out.x * s->half, ox = out.x * s->half, oy = out.y * s->half;
    mc_shape_point left = corner_at(p, nx, ny), right = corner_at(p, -nx, -ny);
    if (cap == MC_CAP_ROUND) {
        add_join_arc(s, p, left, right, atan2(ny, nx), -M_PI);
        return;
    }
    if (cap == MC_CAP_SQUARE) {
        mc_shape_point from = corner_at(p, nx + ox, ny + oy), to = corner_at(p, -nx + ox, -ny + oy);
        mc_area_add_edge(s->coverage, left, from);
        mc_area_add_edge(s->coverage, from, to);
        mc_area_add_edge(s->coverage, to, right);
        return;
    }
    mc_area_add_edge(s->coverage, left, right);
}

/* Across, from one side to the other, where an outline breaks off outside of the map. */
static void
add_break(const stroking *s, mc_shape_point from, mc_shape_point to)
{
    mc_area_add_edge(s->coverage, from, to);
}

/*
 * What is known of a line while it is walked along: the last segment, and the corners where it begins. Of segments that
 * cannot be seen nothing is painted, but those next to others have their bends: so that what is seen of those does not
 * depend on what else is.
 */
typedef struct stroker_walk {
    mc_shape_point from; /* where it begins */
    stroker_segment before;
    sides at;
    bool any;    /* there is one */
    bool open;   /* it is painted; else `before` may not be known */
    bool joined; /* a ring whose first bend has been made */
    bend first;
} stroker_walk;

/* The bend of a ring at its first point, where a segment ends or begins that is near. */
static void
begin_ring(stroker_walk *w, const stroking *s, const mc_shape_point *points, int count)
{
    stroker_segment in, out;
    int last = count - 1, next = 1;
    while (last > 0 && !segment_direction(&in, points[last], points[0]))
        last--;
    while (next < count && !segment_direction(&out, points[0], points[next]))
        next++;
    if (last == 0 || next == count)
        return;
    bool ends_near = is_stroke_in_reach(s, points[last], points[0]),
         begins_near = is_stroke_in_reach(s, points[0], points[next]);
    if (!ends_near && !begins_near)
        return;
    w->first = add_bend(s, points[0], &in, &out);
    w->joined = true;
    if (!ends_near)
        add_break(s, w->first.in.right, w->first.in.left);
    if (!begins_near)
        add_break(s, w->first.out.left, w->first.out.right);
}

/* A segment from a, which is near: `closed` for a ring. */
static void
continue_stroke(stroker_walk *w, const stroking *s, mc_shape_point a, const stroker_segment *now, bool closed)
{
    if (!w->any && w->joined) {
        w->at = w->first.out;
    } else if (!w->any) {
        w->at = sides_at(s, a, now->unit);
        add_end(s, a, (stroker_vector){ -now->unit.x, -now->unit.y }, closed ? MC_CAP_BUTT : s->pen->cap);
    } else if (w->open || segment_direction(&w->before, w->from, a)) {
        bend made = add_bend(s, a, &w->before, now);
        if (w->open)
            add_sides(s, w->at, made.in);
        else
            add_break(s, made.in.right, made.in.left);
        w->at = made.out;
    }
    w->before = *now;
    w->open = true;
}

/* A segment from a to b that cannot be seen. */
static void
break_off(stroker_walk *w, const stroking *s, mc_shape_point a, mc_shape_point b)
{
    stroker_segment now;
    if (w->open && segment_direction(&now, a, b)) {
        bend made = add_bend(s, a, &w->before, &now);
        add_sides(s, w->at, made.in);
        add_break(s, made.out.left, made.out.right);
    }
    w->open = false;
}

/* One line or ring. */
static void
stroke_part(const stroking *s, const mc_shape_point *points, int count, bool closed)
{
    stroker_walk w = { .any = false };
    mc_shape_point end = points[0]; /* of the last segment that has a length */
    int segments = closed ? count : count - 1;
    if (closed)
        begin_ring(&w, s, points, count);
    for (int i = 0; i < segments; i++) {
        mc_shape_point a = points[i], b = points[i + 1 == count ? 0 : i + 1];
        stroker_segment now;
        if (a.x == b.x && a.y == b.y)
            continue;
        if (!is_stroke_in_reach(s, a, b))
            break_off(&w, s, a, b);
        else if (segment_direction(&now, a, b))
            continue_stroke(&w, s, a, &now, closed);
        w.any = true;
        w.from = a;
        end = b;
    }
    if (!w.open)
        return;
    if (w.joined) {
        add_sides(s, w.at, w.first.in);
        return;
    }
    add_sides(s, w.at, sides_at(s, end, w.before.unit));
    add_end(s, end, w.before.unit, closed ? MC_CAP_BUTT : s->pen->cap);
}

/* Cuts [*from, *to], lengths along a + t * u, to where the coordinate is inside of low..high. */
static void
narrow_stretch(double *from, double *to, double a, double u, double low, double high)
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
    narrow_stretch(&stretch->from, &stretch->to, a.x, stretch->ux, -reach, width * (double)MC_SUBPIXELS + reach);
    narrow_stretch(&stretch->from, &stretch->to, a.y, stretch->uy, -reach, height * (double)MC_SUBPIXELS + reach);
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
cut_segment_dashes(mc_shape *out, bool *open, const dashing *d, mc_shape_point a, mc_shape_point b,
                   const mc_stretch *stretch, double done)
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
            cut_segment_dashes(out, &open, d, a, b, &stretch, done);
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
        stroker_segment in = { { 0, 0 }, 0 }, beyond = { { 0, 0 }, 0 };
        bool has_in = (i > 0 || closed) && segment_direction(&in, points[(i + count - 1) % count], points[i]);
        bool has_out = (i < count - 1 || closed) && segment_direction(&beyond, points[i], points[(i + 1) % count]);
        if (!has_in)
            in = beyond;
        if (!has_out)
            beyond = in;
        double nx = in.unit.y + beyond.unit.y, ny = -(in.unit.x + beyond.unit.x);
        double scale = 2 / fmax(nx * nx + ny * ny, 0.5);
        mc_shape_add(out, points[i].x + (int32_t)lrint(nx * scale * offset),
                     points[i].y + (int32_t)lrint(ny * scale * offset));
    }
    mc_shape_end_part(out);
}

static void
stroke_or_dash(const stroking *s, const mc_shape_point *points, int count, bool closed, mc_shape *scratch)
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
    s.right = coverage->width * MC_SUBPIXELS + s.reach;
    s.bottom = coverage->height * MC_SUBPIXELS + s.reach;
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
