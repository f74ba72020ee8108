/* Graphics along lines (GraphicStroke, OGC 05-077r4, 11.1.3). */
#include <math.h>
#include <stdlib.h>

#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/raster/stroker.h"

/* Where along lines graphics stand, collected before any is drawn: a mark's own lines may be drawn so, too. */
typedef struct graphic_line_row {
    mc_shape points;
    double *turns; /* degrees, of each point */
    int room;
    double reach;         /* pixels */
    int width, height;    /* of the map */
    bool upright, failed; /* failed: no memory */
} graphic_line_row;

static void
add_line_position(graphic_line_row *r, mc_shape_point from, double dx, double dy, double ux, double uy)
{
    if (r->points.point_count == r->room) {
        int room = r->room == 0 ? 64 : r->room * 2;
        double *turns = realloc(r->turns, sizeof(double) * (size_t)room);
        r->failed |= turns == NULL;
        if (r->failed)
            return;
        r->turns = turns;
        r->room = room;
    }
    int before = r->points.point_count;
    mc_shape_add(&r->points, from.x + (int32_t)lrint(dx), from.y + (int32_t)lrint(dy));
    r->failed |= r->points.failed;
    if (r->points.point_count > before)
        r->turns[before] = r->upright ? 0 : atan2(uy, ux) * 180 / M_PI;
}

/* Points at first + k * step along one line; all lengths in 1/256 pixel. Only those near the map. */
static void
add_position_series(graphic_line_row *r, const mc_shape_point *points, int count, bool closed, double first,
                    double step)
{
    double done = 0;
    int segments = closed ? count : count - 1;
    for (int i = 0; i < segments && !r->failed; i++) {
        mc_shape_point a = points[i], b = points[(i + 1) % count];
        mc_stretch seen;
        if (mc_stroker_stretch(&seen, a, b, r->width, r->height, r->reach * MC_SUBPIXELS)) {
            double k = fmax(0, ceil((done + seen.from - first) / step)), end = seen.length + (i == segments - 1);
            for (double at = first + k * step - done; at <= seen.to && at < end && !r->failed;
                 at = first + ++k * step - done)
                if (at >= 0)
                    add_line_position(r, a, seen.ux * at, seen.uy * at, seen.ux, seen.uy);
        }
        done += seen.length;
    }
}

/* At vertices; the direction is the mean of that before and behind. */
static void
add_vertices(graphic_line_row *r, const mc_shape_point *points, int count, bool closed, mc_along along)
{
    int first = along == MC_ALONG_LAST ? count - 1 : 0, last = along == MC_ALONG_FIRST ? 0 : count - 1;
    for (int i = first; i <= last && !r->failed; i++) {
        mc_shape_point a = points[i], before = points[i > 0 ? i - 1 : closed ? count - 1 : 0];
        mc_shape_point behind = points[i < count - 1 ? i + 1 : closed ? 0 : count - 1];
        double x0 = (double)a.x - before.x, y0 = (double)a.y - before.y, x1 = (double)behind.x - a.x,
               y1 = (double)behind.y - a.y;
        double l0 = fmax(hypot(x0, y0), 1), l1 = fmax(hypot(x1, y1), 1);
        add_line_position(r, a, 0, 0, x0 / l0 + x1 / l1, y0 / l0 + y1 / l1);
    }
}

static double
measure_subpixel_length(const mc_shape_point *points, int count, bool closed)
{
    double length = 0;
    for (int i = closed ? 0 : 1; i < count; i++)
        length += hypot((double)points[i].x - points[(i + count - 1) % count].x,
                        (double)points[i].y - points[(i + count - 1) % count].y);
    return length;
}

/* One in the middle of each dash. */
static void
add_dashes(graphic_line_row *r, const mc_shape_point *points, int count, bool closed, const mc_stroke *stroke,
           double unit)
{
    double sum = 0, at = 0;
    for (int i = 0; i < stroke->dash_count; i++)
        sum += stroke->dashes[i] * unit;
    for (int i = 0; i < stroke->dash_count; at += stroke->dashes[i++] * unit) {
        double first = at + (stroke->dashes[i] / 2 - stroke->dash_offset) * unit;
        if (i % 2 == 0 && stroke->dashes[i] > 0)
            add_position_series(r, points, count, closed, (first - floor(first / sum) * sum) * MC_SUBPIXELS,
                                fmax(sum, 1) * MC_SUBPIXELS);
    }
}

static void
collect_line_positions(graphic_line_row *r, const mc_shape_point *points, int count, bool closed,
                       const mc_stroke *stroke, double width, double unit)
{
    double step = fmax(width + fmax(0, stroke->gap) * unit, 1);
    if (stroke->along == MC_ALONG_MIDDLE)
        add_position_series(r, points, count, closed, measure_subpixel_length(points, count, closed) / 2,
                            MC_SHAPE_REACH * 64.0);
    else if (stroke->along != MC_ALONG_ROW)
        add_vertices(r, points, count, closed, stroke->along);
    else if (stroke->dashes != NULL)
        add_dashes(r, points, count, closed, stroke, unit);
    else
        add_position_series(r, points, count, closed, (fmax(0, stroke->initial_gap) * unit + width / 2) * MC_SUBPIXELS,
                            step * MC_SUBPIXELS);
}

mc_error *
mc_graphic_along(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_shape *shape,
                 const mc_feature *feature)
{
    const mc_stroke *stroke = &symbol->stroke;
    double unit = mc_painter_unit(painter, symbol), offset = mc_painter_pixels(painter, symbol, symbol->offset);
    mc_drawing drawing;
    mc_shape beside = { 0 };
    bool any, closed = shape->kind == MC_SHAPE_POLYGONS;
    MC_TRY(mc_graphic_resolve(&drawing, &any, painter, symbol, stroke->graphic, feature));
    if (!any)
        return MC_OK;
    graphic_line_row r = {
        .reach = drawing.reach, .width = canvas->width, .height = canvas->height, .upright = stroke->upright
    };
    mc_shape_clear(&r.points, MC_SHAPE_POINTS);
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        const mc_shape_point *points = shape->points + begin;
        int count = shape->ends[part] - begin;
        if (offset != 0) {
            mc_stroker_beside(&beside, points, count, closed, offset * MC_SUBPIXELS);
            points = beside.points;
            count = beside.point_count;
        }
        if (count >= 2)
            collect_line_positions(&r, points, count, closed, stroke, drawing.placing.width, unit);
    }
    mc_error *error = MC_OK;
    for (int i = 0; i < r.points.point_count && error == MC_OK; i++)
        error = mc_graphic_draw(&drawing, painter, canvas, r.points.points[i], r.turns[i], feature);
    mc_shape_free(&beside);
    mc_shape_free(&r.points);
    free(r.turns);
    return error;
}
