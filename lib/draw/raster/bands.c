/*
 * See bands.h. Pieces that touch share the line between them: what one of them leaves of a pixel there, the other one
 * covers. All numbers are relative to a vertex of the line, so that they are the same in every tile.
 */
#include "draw/raster/bands.h"

#include <math.h>
#include <stdlib.h>

#include "draw/raster/bands_private.h"

enum {
    WIDEST = 32,                   /* pixels */
    LONGEST = 8192 * MC_SUBPIXELS, /* of a segment, across or down */
};

#define MITRE_LIMIT 4.0 /* as the stroker's */
#define TURN 0.7        /* cosine of a bend at which two sides cover a pixel as if they did not know of each other */
#define TIP 0.125       /* pixels: where a mitre is no longer, a round join is not told from it */

typedef struct bands_vector {
    double x, y;
} bands_vector;

typedef struct banding {
    mc_outline *outline;
    double half; /* of the width, in pixels */
    mc_line_join join;
    mc_line_cap cap;
    int32_t reach, right, bottom; /* 1/256 pixel: what is beyond cannot be seen */
} banding;

/* The lines that cut a segment at one of its ends, by the direction to the outside and the distance from the vertex. */
typedef struct ending {
    bands_vector outside[2];
    double at[2];
    int count;
    double reach; /* of the corners, from the vertex */
} ending;

typedef struct bands_segment {
    mc_shape_point a, b;
    bands_vector unit;
    double length; /* pixels; 0: not known yet */
    bool near;
    ending begin;
} bands_segment;

static bool
is_band_in_reach(const banding *b, mc_shape_point p, mc_shape_point q)
{
    return !((p.x < -b->reach && q.x < -b->reach) || (p.y < -b->reach && q.y < -b->reach) ||
             (p.x > b->right && q.x > b->right) || (p.y > b->bottom && q.y > b->bottom));
}

static void
measure_segment(bands_segment *s)
{
    if (s->length > 0)
        return;
    double dx = (s->b.x - s->a.x) / (double)MC_SUBPIXELS, dy = (s->b.y - s->a.y) / (double)MC_SUBPIXELS;
    s->length = sqrt(dx * dx + dy * dy);
    s->unit = (bands_vector){ dx / s->length, dy / s->length };
}

static void
begin_piece(mc_piece *piece, mc_shape_point at)
{
    piece->column = at.x >> 8;
    piece->row = at.y >> 8;
    piece->fx = (float)(at.x & (MC_SUBPIXELS - 1)) / MC_SUBPIXELS;
    piece->fy = (float)(at.y & (MC_SUBPIXELS - 1)) / MC_SUBPIXELS;
    piece->count = 0;
    piece->radius = 0;
}

/* Inside is what is not farther than `distance` in a direction. */
static void
add_half_plane(mc_piece *piece, bands_vector outside, double distance)
{
    int i = piece->count++;
    piece->a[i] = (float)-outside.x;
    piece->b[i] = (float)-outside.y;
    piece->c[i] = (float)(distance + 0.5);
}

/* What may be covered lies around the vertex, `reach` pixels at most, and around another point. It ends there, whatever
 * the lines leave: at an acute tip that is a little more. */
static void
finish_band_piece(const banding *b, mc_piece *piece, double reach, double dx, double dy, double reach_there)
{
    piece->left = (float)(fmin(-reach, dx - reach_there) - 0.5);
    piece->top = (float)(fmin(-reach, dy - reach_there) - 0.5);
    piece->right = (float)(fmax(reach, dx + reach_there) + 0.5);
    piece->bottom = (float)(fmax(reach, dy + reach_there) + 0.5);
    mc_piece_add(b->outline, piece);
}

static void
add_segment_piece(const banding *b, const bands_segment *s, const ending *end)
{
    mc_piece piece;
    bands_vector u = s->unit;
    double dx = u.x * s->length, dy = u.y * s->length;
    begin_piece(&piece, s->a);
    add_half_plane(&piece, (bands_vector){ -u.y, u.x }, b->half);
    add_half_plane(&piece, (bands_vector){ u.y, -u.x }, b->half);
    for (int i = 0; i < s->begin.count; i++)
        add_half_plane(&piece, s->begin.outside[i], s->begin.at[i]);
    for (int i = 0; i < end->count; i++)
        add_half_plane(&piece, end->outside[i], end->at[i] + end->outside[i].x * dx + end->outside[i].y * dy);
    finish_band_piece(b, &piece, s->begin.reach, dx, dy, end->reach);
}

/* The outer side of a bend whose segments both end straight at p: what is behind the one and before the other. */
static void
add_wedge(const banding *b, mc_shape_point p, bands_vector u, bands_vector v, bands_vector outer, double cosine,
          bool is_mitre)
{
    mc_piece piece;
    double side = outer.x * -u.y + outer.y * u.x < 0 ? -1 : 1;
    begin_piece(&piece, p);
    add_half_plane(&piece, (bands_vector){ -u.x, -u.y }, 0);
    add_half_plane(&piece, v, 0);
    if (b->join == MC_JOIN_ROUND) {
        piece.radius = (float)(b->half + 0.5);
    } else if (is_mitre) {
        add_half_plane(&piece, (bands_vector){ -u.y * side, u.x * side }, b->half);
        add_half_plane(&piece, (bands_vector){ -v.y * side, v.x * side }, b->half);
    } else if (cosine > 0) {
        add_half_plane(&piece, outer, b->half * cosine);
    } else
        return; /* there and back: nothing is outside */
    double reach = is_mitre ? b->half / cosine : b->half;
    finish_band_piece(b, &piece, reach, 0, 0, reach);
}

/* Where one segment ends and the next one begins. */
static void
make_bend(const banding *b, const bands_segment *in, ending *end, bands_segment *out)
{
    bands_vector u = in->unit, v = out->unit;
    double cross = u.x * v.y - u.y * v.x, dot = u.x * v.x + u.y * v.y, sum = sqrt(fmax(0, 2 + 2 * dot));
    double cosine = sum / 2; /* of half of the turn */
    bands_vector outer = { 0, 0 }, across = u;
    if (sum > 1e-3) {
        double side = cross > 0 ? 1 / sum : -1 / sum;
        across = (bands_vector){ (u.x + v.x) / sum, (u.y + v.y) / sum };
        outer = (bands_vector){ (u.y + v.y) * side, -(u.x + v.x) * side };
    } else
        cosine = 0;
    bool is_mitre = b->join == MC_JOIN_MITRE && cosine * MITRE_LIMIT > 1;
    bool is_short = b->half * (1 - cosine) <= TIP * cosine;
    bool fits = cosine > 0 && b->half * fabs(cross) <= (1 + dot) * fmin(in->length, out->length) / 2;
    if (!fits || (b->join == MC_JOIN_ROUND && !is_short)) {
        *end = (ending){ { u }, { 0 }, 1, b->half };
        out->begin = (ending){ { { -v.x, -v.y } }, { 0 }, 1, b->half };
        add_wedge(b, out->a, u, v, outer, cosine, is_mitre);
        return;
    }
    bool has_tip = is_mitre || is_short;
    double reach = has_tip ? b->half / cosine : b->half;
    *end = (ending){ { across, outer }, { 0, b->half * cosine }, has_tip ? 1 : 2, reach };
    out->begin = *end;
    out->begin.outside[0] = (bands_vector){ -across.x, -across.y };
    if (has_tip && dot < TURN) { /* each is cut by the other's outer side, too, or the tip would be too dark */
        double side = cross > 0 ? 1 : -1;
        end->outside[1] = (bands_vector){ v.y * side, -v.x * side };
        out->begin.outside[1] = (bands_vector){ u.y * side, -u.x * side };
        end->at[1] = out->begin.at[1] = b->half;
        end->count = out->begin.count = 2;
    }
}

/* Where a line begins or ends, seen outwards. */
static ending
make_end(const banding *b, mc_shape_point p, bands_vector outside)
{
    mc_piece piece;
    if (b->cap == MC_CAP_SQUARE)
        return (ending){ { outside }, { b->half }, 1, b->half * M_SQRT2 };
    if (b->cap == MC_CAP_ROUND) {
        begin_piece(&piece, p);
        add_half_plane(&piece, (bands_vector){ -outside.x, -outside.y }, 0);
        piece.radius = (float)(b->half + 0.5);
        finish_band_piece(b, &piece, b->half, 0, 0, b->half);
    }
    return (ending){ { outside }, { 0 }, 1, b->half };
}

/* The bend between two segments, of which one at least can be seen. */
static void
join_band_segments(const banding *b, bands_segment *in, ending *end, bands_segment *out)
{
    end->count = 0;
    if (!in->near && !out->near)
        return;
    measure_segment(in);
    measure_segment(out);
    make_bend(b, in, end, out);
}

/* The next segment that has a length, from *i on. */
static bool
next_band_segment(bands_segment *s, const banding *b, const mc_shape_point *points, int count, int segments, int *i)
{
    for (; *i < segments; ++*i) {
        mc_shape_point from = points[*i], to = points[*i + 1 == count ? 0 : *i + 1];
        if (from.x == to.x && from.y == to.y)
            continue;
        *s = (bands_segment){ .a = from, .b = to, .near = is_band_in_reach(b, from, to) };
        ++*i;
        return true;
    }
    return false;
}

/* A line between its ends. */
static void
add_open(const banding *b, const mc_shape_point *points, int count)
{
    bands_segment now, next;
    ending end;
    int i = 0;
    if (!next_band_segment(&now, b, points, count, count - 1, &i))
        return;
    measure_segment(&now);
    now.begin = make_end(b, now.a, (bands_vector){ -now.unit.x, -now.unit.y });
    for (; next_band_segment(&next, b, points, count, count - 1, &i); now = next) {
        join_band_segments(b, &now, &end, &next);
        if (now.near)
            add_segment_piece(b, &now, &end);
    }
    measure_segment(&now);
    end = make_end(b, now.b, now.unit);
    if (now.near)
        add_segment_piece(b, &now, &end);
}

/* A ring: how its first segment begins is known in the end. */
static void
add_closed(const banding *b, const mc_shape_point *points, int count)
{
    bands_segment first, now, next;
    ending end, first_end = { .count = 0 };
    int i = 0, done = 0;
    if (!next_band_segment(&first, b, points, count, count, &i))
        return;
    for (now = first; next_band_segment(&next, b, points, count, count, &i); now = next, done++) {
        join_band_segments(b, &now, &end, &next);
        if (done == 0)
            first_end = end;
        else if (now.near)
            add_segment_piece(b, &now, &end);
    }
    if (done == 0)
        return;
    join_band_segments(b, &now, &end, &first);
    if (now.near)
        add_segment_piece(b, &now, &end);
    measure_segment(&first);
    if (first.near)
        add_segment_piece(b, &first, &first_end);
}

bool
mc_bands_suit(const mc_shape *shape, const mc_pen *pen)
{
    if (pen->dashes != NULL || pen->offset != 0 || !(pen->width <= WIDEST))
        return false;
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        mc_shape_point last = shape->points[shape->kind == MC_SHAPE_POLYGONS ? shape->ends[part] - 1 : begin];
        for (int i = begin; i < shape->ends[part]; last = shape->points[i++])
            if (abs(shape->points[i].x - last.x) > LONGEST || abs(shape->points[i].y - last.y) > LONGEST)
                return false;
    }
    return true;
}

double
mc_bands_reach(const mc_pen *pen)
{
    return pen->width / 2 * MITRE_LIMIT + 1;
}

void
mc_bands_add(mc_outline *outline, const mc_shape *shape, const mc_pen *pen)
{
    banding b = { .outline = outline, .half = pen->width / 2, .join = pen->join, .cap = pen->cap };
    b.reach = (int32_t)(mc_bands_reach(pen) * MC_SUBPIXELS);
    b.right = outline->width * MC_SUBPIXELS + b.reach;
    b.bottom = outline->height * MC_SUBPIXELS + b.reach;
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
        (shape->kind == MC_SHAPE_POLYGONS ? add_closed : add_open)(&b, shape->points + begin,
                                                                   shape->ends[part] - begin);
}
