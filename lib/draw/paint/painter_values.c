/* What all files that paint take from a painter: a symbolizer's values in pixels, planes at their first use. */
#include <math.h>

#include "draw/paint/painter_private.h"
#include "grid/earth.h"
#include "vector/geometry/simplify.h"

#define THIN 2.0 /* pixels: up to this width a stroke is painted by distance */

static apr_status_t
free_painter(void *data)
{
    mc_painter *painter = data;
    mc_shape_free(&painter->scratch);
    mc_shape_free(&painter->mark);
    mc_shape_free(&painter->moved);
    mc_shape_free(&painter->places);
    mc_shape_free(&painter->straight);
    return APR_SUCCESS;
}

mc_painter *
mc_painter_create_bare(mc_canvas *canvas, const mc_feature_query *query, mc_shape_painter *paint_shape,
                       apr_pool_t *pool)
{
    mc_painter *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_painter){ .canvas = canvas, .query = query, .paint_shape = paint_shape, .pool = pool };
    apr_pool_create(&made->values, pool);
    apr_pool_cleanup_register(pool, made, free_painter, apr_pool_cleanup_null);
    made->mask = apr_palloc(pool, (size_t)canvas->width + MC_MASK_MARGIN);
    return made;
}

mc_painter *
mc_painter_create_inner(const mc_painter *outer, mc_canvas *canvas, const mc_feature_query *query, apr_pool_t *pool)
{
    mc_painter *made = mc_painter_create_bare(canvas, query, outer->paint_shape, pool);
    made->ctx = outer->ctx;
    return made;
}

/* Pixels for a unit of a symbolizer's sizes: the standardised pixel is 0.28 mm wide (OGC 05-077r4, 10.2). */
double
mc_uom_pixels(mc_uom uom, double scale)
{
    static const double metres[] = { [MC_UOM_METRE] = 1, [MC_UOM_FOOT] = 0.3048 };
    return uom == MC_UOM_PIXEL ? 1 : metres[uom] / (MC_PIXEL_METRES * scale);
}

double
mc_painter_unit(const mc_painter *painter, const mc_symbolizer *symbol)
{
    return mc_uom_pixels(symbol->uom, painter->query->scale) * mc_query_density(painter->query);
}

double
mc_painter_pixels(const mc_painter *painter, const mc_symbolizer *symbol, double size)
{
    return fmax(-MC_STROKE_WIDTH_MAX, fmin(size * mc_painter_unit(painter, symbol), MC_STROKE_WIDTH_MAX));
}

double
mc_painter_value(mc_painter *painter, const mc_expression *value, double constant, const mc_feature *feature)
{
    return value == NULL ? constant : mc_expression_number(value, feature, constant, painter->values);
}

mc_error *
mc_painter_target(mc_canvas **canvas, mc_painter *painter, mc_pass *to)
{
    mc_canvas *first = painter->canvas;
    mc_pixels *pixels;
    if (!to->on_map && to->canvas == NULL && first->palette != NULL)
        MC_TRY(mc_canvas_create_with_palette(&to->canvas, first->width, first->height, first->palette, painter->pool));
    else if (!to->on_map && to->canvas == NULL)
        to->canvas = mc_canvas_create(first->width, first->height, false, painter->pool);
    *canvas = to->on_map ? first : to->canvas;
    return (*canvas)->palette != NULL ? MC_OK : mc_canvas_pixels(&pixels, *canvas);
}

mc_error *
mc_painter_area(mc_area **area, mc_painter *painter, bool merged)
{
    if (*area == NULL)
        MC_TRY(mc_area_create(area, painter->canvas->width, painter->canvas->height, painter->pool));
    (*area)->coarse = merged || painter->canvas->palette != NULL;
    return MC_OK;
}

mc_error *
mc_painter_outline(mc_outline **outline, mc_painter *painter, bool merged)
{
    if (*outline == NULL)
        MC_TRY(mc_outline_create(outline, painter->canvas->width, painter->canvas->height, painter->pool));
    (*outline)->coarse = merged || painter->canvas->palette != NULL;
    return MC_OK;
}

bool
mc_painter_is_thin(const mc_stroke *stroke, double width, const mc_symbolizer *symbol)
{
    return width <= THIN && stroke->dashes == NULL && symbol->offset == 0 && stroke->paint.pattern == NULL;
}

mc_pen
mc_painter_pen(const mc_painter *painter, const mc_symbolizer *symbol, double width)
{
    const mc_stroke *stroke = &symbol->stroke;
    return (mc_pen){ width,
                     stroke->join,
                     stroke->cap,
                     stroke->dashes,
                     stroke->dash_count,
                     stroke->dash_offset,
                     mc_painter_pixels(painter, symbol, symbol->offset),
                     mc_painter_unit(painter, symbol) };
}

bool
mc_painter_draws(const mc_symbolizer *symbol, const mc_shape *shape)
{
    if (shape->part_count == 0 || shape->kind == MC_SHAPE_POINTS)
        return false;
    return symbol->kind == MC_SYMBOL_LINE || shape->kind == MC_SHAPE_POLYGONS;
}

mc_color
mc_paint_color(const mc_paint *paint, const mc_feature *feature, apr_pool_t *scratch)
{
    mc_color color = paint->color;
    if (paint->color_value != NULL) {
        const char *text = mc_expression_text(paint->color_value, feature, scratch);
        mc_color_parse(&color, text);
    }
    if (paint->opacity != NULL)
        color.alpha = (uint8_t)lrint(255 * fmin(1, fmax(0, mc_expression_number(paint->opacity, feature, 1, scratch))));
    return color;
}

mc_color
mc_painter_color(mc_painter *painter, const mc_paint *paint, const mc_feature *feature)
{
    return mc_paint_color(paint, feature, painter->values);
}

mc_shape_point
mc_painter_displacement(mc_painter *painter, const mc_symbolizer *symbol, const mc_pair *pair,
                        const mc_feature *feature)
{
    double x = mc_painter_value(painter, pair->x_value, pair->x, feature);
    double y = mc_painter_value(painter, pair->y_value, pair->y, feature);
    return (mc_shape_point){ (int32_t)lrint(mc_painter_pixels(painter, symbol, x) * MC_SUBPIXELS),
                             -(int32_t)lrint(mc_painter_pixels(painter, symbol, y) * MC_SUBPIXELS) };
}

/* Whether the straight line between the ends of a line passes all of its vertices within a tolerance, in their order.
 */
static bool
is_chord(const mc_shape_point *points, int count, double tolerance)
{
    double dx = points[count - 1].x - points[0].x, dy = points[count - 1].y - points[0].y;
    double square = dx * dx + dy * dy, most = tolerance * tolerance * square, along = 0;
    bool holds = square > 0;
    for (int i = 1; i < count && holds; i++) {
        double x = points[i].x - points[0].x, y = points[i].y - points[0].y;
        double beside = dx * y - dy * x, next = dx * x + dy * y;
        holds = beside * beside <= most && next >= along;
        along = next;
    }
    return holds;
}

const mc_shape *
mc_painter_straight(mc_painter *painter, const mc_symbolizer *symbol, const mc_shape *shape)
{
    int thinning = painter->query->pixel_grid.thinning;
    if (shape->kind != MC_SHAPE_LINES || thinning <= 1 || symbol->stroke.dashes != NULL ||
        symbol->stroke.graphic != NULL || shape->point_count == 2 * shape->part_count)
        return shape;
    mc_shape *straight = &painter->straight;
    if (shape->part_count == 1 && is_chord(shape->points, shape->point_count, thinning / 2.0)) {
        mc_shape_clear(straight, MC_SHAPE_LINES);
        mc_shape_add(straight, shape->points[0].x, shape->points[0].y);
        mc_shape_add(straight, shape->points[shape->point_count - 1].x, shape->points[shape->point_count - 1].y);
        mc_shape_end_part(straight);
        return straight->failed ? shape : straight;
    }
    mc_shape_simplify(straight, shape, thinning / 2.0);
    return painter->straight.failed ? shape : &painter->straight;
}
