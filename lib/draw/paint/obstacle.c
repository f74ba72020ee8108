/* Symbols that labels keep off: told as boxes of graphics, and as coverage of lines and areas. */
#include <math.h>

#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/raster/stroker.h"

static bool
paint_is_seen(const mc_paint *paint)
{
    return paint->present && (paint->pattern != NULL || paint->color.alpha > 0);
}

/* The outline of a mark in shares of its size from its middle; circles and pictures fill all of it. */
static void
measure_outline(double least[2], double most[2], const mc_mark *mark)
{
    bool known = mark != NULL && !mark->circle && mark->part_count > 0;
    for (int axis = 0; axis < 2; axis++) {
        least[axis] = known ? HUGE_VAL : -0.5;
        most[axis] = known ? -HUGE_VAL : 0.5;
    }
    for (int i = 0; known && i < 2 * mark->ends[mark->part_count - 1]; i++) {
        least[i % 2] = fmin(least[i % 2], mark->points[i]);
        most[i % 2] = fmax(most[i % 2], mark->points[i]);
    }
}

bool
mc_obstacle_box(float box[4], const mc_drawing *drawing, double stroke_width)
{
    const mc_placing *placing = &drawing->placing;
    const mc_stroke *stroke = &drawing->symbol.stroke;
    bool outlined = drawing->mark != NULL && paint_is_seen(&stroke->paint) && stroke_width > 0;
    if (drawing->mark != NULL && !outlined && (drawing->mark->open || !paint_is_seen(&drawing->symbol.fill)))
        return false;
    double angle = placing->turn * M_PI / 180, cosine = cos(angle), sine = sin(angle), least[2], most[2];
    float more = outlined ? (float)(stroke_width / 2) : 0;
    measure_outline(least, most, drawing->mark);
    box[0] = box[1] = INFINITY;
    box[2] = box[3] = -INFINITY;
    for (int corner = 0; corner < 4; corner++) {
        double x = corner % 2 == 0 ? least[0] : most[0], y = corner < 2 ? least[1] : most[1];
        x = (x + 0.5 - placing->anchor_x) * placing->width;
        y = (y - 0.5 + placing->anchor_y) * placing->height;
        float px = (float)(x * cosine - y * sine + placing->at.x / (double)MC_SUBPIXELS);
        float py = (float)(x * sine + y * cosine + placing->at.y / (double)MC_SUBPIXELS);
        box[0] = fminf(box[0], px - more);
        box[1] = fminf(box[1], py - more);
        box[2] = fmaxf(box[2], px + more);
        box[3] = fmaxf(box[3], py + more);
    }
    return true;
}

void
mc_obstacle_graphics(const mc_painter *painter, const mc_drawing *drawing)
{
    for (int i = 0; i < painter->places.point_count; i++) {
        mc_shape_point at = painter->places.points[i];
        float x = (float)at.x / MC_SUBPIXELS, y = (float)at.y / MC_SUBPIXELS;
        const float box[4] = { x + drawing->box[0], y + drawing->box[1], x + drawing->box[2], y + drawing->box[3] };
        painter->obstacles->graphic(painter->obstacles->baton, at, box);
    }
}

/* Hands out what the plane has gathered, and empties the plane. */
static void
tell_coverage(mc_painter *painter, mc_fill_rule rule)
{
    mc_area *area = painter->coverage;
    for (int y = area->top; y <= area->bottom; y++) {
        int x, count;
        mc_area_take_row(area, y, rule, painter->mask, &x, &count);
        if (count > 0)
            painter->obstacles->row(painter->obstacles->baton, x, y, painter->mask, count);
    }
    mc_area_done(area);
}

/* Graphics along a line keep labels off as a line of their height does. */
static double
obstacle_width(mc_painter *painter, const mc_stroke *stroke, const mc_feature *feature)
{
    const mc_graphic *graphic = stroke->graphic;
    double width = graphic != NULL ? mc_painter_value(painter, graphic->size_value, graphic->size, feature)
                                   : mc_painter_value(painter, stroke->width_value, stroke->width, feature);
    return isfinite(width) ? fmax(width, 0) : 0;
}

mc_error *
mc_obstacle_shape(mc_painter *painter, const mc_symbolizer *symbol, const mc_shape *shape, const mc_feature *feature)
{
    MC_TRY(mc_painter_area(&painter->coverage, painter, false));
    if (symbol->kind == MC_SYMBOL_POLYGON && paint_is_seen(&symbol->fill)) {
        mc_area_add(painter->coverage, shape, 0, 0);
        tell_coverage(painter, symbol->by_direction ? MC_NON_ZERO : MC_EVEN_ODD);
    }
    double width = symbol->stroke.paint.present ? obstacle_width(painter, &symbol->stroke, feature) : 0;
    if (!(width > 0))
        return MC_OK;
    mc_pen pen = mc_painter_pen(painter, symbol, mc_painter_pixels(painter, symbol, width));
    mc_stroker_add(painter->coverage, mc_painter_straight(painter, symbol, shape), &pen, &painter->scratch);
    tell_coverage(painter, MC_NON_ZERO);
    return MC_OK;
}
