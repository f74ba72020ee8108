/* Painting the fill and the stroke of a symbolizer. */
#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/raster/bands.h"
#include "draw/raster/stroker.h"

/* Lays what painter->coverage has gathered. */
static mc_error *
lay_coverage(mc_painter *painter, mc_canvas *canvas, mc_fill_rule rule, const mc_symbolizer *symbol,
             const mc_paint *paint, const mc_feature *feature)
{
    if (paint->pattern != NULL)
        return mc_pattern_lay(painter, canvas, painter->coverage, rule, symbol, paint->pattern, feature);
    return mc_canvas_fill(canvas, painter->coverage, rule, mc_painter_color(painter, paint, feature));
}

/* Thin strokes, and those that bands can be made of. */
static mc_error *
paint_by_distance(bool *done, mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol,
                  const mc_shape *shape, const mc_pen *pen, const mc_feature *feature)
{
    const mc_stroke *stroke = &symbol->stroke;
    bool thin = mc_painter_is_thin(stroke, pen->width, symbol);
    if (!thin && (stroke->paint.pattern != NULL || !mc_bands_suit(shape, pen)))
        return MC_OK;
    mc_color color = mc_painter_color(painter, &stroke->paint, feature);
    if (painter->stroke_tile == NULL)
        MC_TRY(mc_stroke_tile_create(&painter->stroke_tile, painter->pool));
    *done = mc_stroke_tile_paint(painter->stroke_tile, canvas, shape, pen, thin, color);
    if (*done)
        return MC_OK;
    *done = true;
    MC_TRY(mc_painter_outline(&painter->outline, painter, false));
    if (thin)
        mc_outline_add(painter->outline, shape, (float)pen->width);
    else
        mc_bands_add(painter->outline, shape, pen);
    return mc_canvas_outline(canvas, painter->outline, color);
}

/* The pen of a symbolizer of the style whose width is no expression: worked out once for a map. */
static const mc_pen *
find_known_pen(mc_painter *painter, const mc_symbolizer *symbol)
{
    const uint64_t hash = (uint64_t)(uintptr_t)symbol * UINT64_C(0x9E3779B97F4A7C15);
    mc_known_pen *known = &painter->pens[hash >> 60];
    _Static_assert(MC_PENS_KNOWN == 1 << (64 - 60), "the hash's highest bits are places");
    if (known->symbol != symbol)
        *known = (mc_known_pen){ symbol, mc_painter_pen(painter, symbol,
                                                        mc_painter_pixels(painter, symbol, symbol->stroke.width)) };
    return &known->pen;
}

static mc_error *
paint_stroke(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_shape *shape,
             const mc_feature *feature)
{
    const mc_stroke *stroke = &symbol->stroke;
    if (stroke->paint.present && stroke->graphic != NULL)
        return mc_graphic_along(painter, canvas, symbol, shape, feature);
    double width = mc_painter_value(painter, stroke->width_value, stroke->width, feature);
    if (!stroke->paint.present || !(width > 0))
        return MC_OK;
    shape = mc_painter_straight(painter, symbol, shape);
    const mc_pen pen = stroke->width_value == NULL && symbol == painter->of_style
                           ? *find_known_pen(painter, symbol)
                           : mc_painter_pen(painter, symbol, mc_painter_pixels(painter, symbol, width));
    bool done = false;
    MC_TRY(paint_by_distance(&done, painter, canvas, symbol, shape, &pen, feature));
    if (done)
        return MC_OK;
    MC_TRY(mc_painter_area(&painter->coverage, painter, false));
    mc_stroker_add(painter->coverage, shape, &pen, &painter->scratch);
    return lay_coverage(painter, canvas, MC_NON_ZERO, symbol, &stroke->paint, feature);
}

static mc_error *
paint_fill(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_shape *shape,
           const mc_feature *feature)
{
    if (symbol->kind != MC_SYMBOL_POLYGON || !symbol->fill.present)
        return MC_OK;
    if (symbol->offset != 0)
        return mc_painter_offset_fill(painter, canvas, symbol, shape, feature);
    MC_TRY(mc_painter_area(&painter->coverage, painter, false));
    mc_area_add(painter->coverage, shape, 0, 0);
    mc_fill_rule rule = symbol->by_direction ? MC_NON_ZERO : MC_EVEN_ODD;
    return lay_coverage(painter, canvas, rule, symbol, &symbol->fill, feature);
}

static const mc_shape *
displace_shape(mc_painter *painter, const mc_symbolizer *symbol, const mc_shape *shape, const mc_feature *feature)
{
    mc_shape_point by = mc_painter_displacement(painter, symbol, &symbol->displacement, feature);
    mc_shape_clear(&painter->moved, shape->kind);
    for (int part = 0, i = 0; part < shape->part_count; part++) {
        for (; i < shape->ends[part]; i++)
            mc_shape_add(&painter->moved, shape->points[i].x + by.x, shape->points[i].y + by.y);
        mc_shape_end_part(&painter->moved);
    }
    return &painter->moved;
}

mc_error *
mc_painter_shape(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_shape *shape,
                 const mc_feature *feature)
{
    if (!mc_painter_draws(symbol, shape))
        return MC_OK;
    if (mc_painter_is_moved(symbol))
        shape = displace_shape(painter, symbol, shape, feature);
    MC_TRY(paint_fill(painter, canvas, symbol, shape, feature));
    MC_TRY(paint_stroke(painter, canvas, symbol, shape, feature));
    return painter->obstacles != NULL && symbol->obstacle ? mc_obstacle_shape(painter, symbol, shape, feature) : MC_OK;
}
