/*
 * Painting a layer. The first pass goes onto the map itself; each other one has pixels of its own, laid over at the
 * end: that is the same as to draw pass after pass, and the features have to come only once. A rule of constant opaque
 * ink whose shapes need not be kept apart is painted whole: all of its features into one plane, and that plane once.
 */
#include <apr_strings.h>
#include <math.h>

#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/raster/bands.h"
#include "draw/raster/stroker.h"
#include "draw/style/rules.h"
#include "mapcache/trace.h"
#include "vector/mvt/mvt_shape.h"

#define THIN 2.0 /* pixels: up to this width a stroke is painted by distance */

/* Pixels for a unit of a symbolizer's sizes: the standardised pixel is 0.28 mm wide (OGC 05-077r4, 10.2). */
double
mc_uom_pixels(mc_uom uom, double scale)
{
    static const double metres[] = { [MC_UOM_METRE] = 1, [MC_UOM_FOOT] = 0.3048 };
    return uom == MC_UOM_PIXEL ? 1 : metres[uom] / (0.00028 * scale);
}

double
mc_painter_unit(const mc_painter *painter, const mc_symbolizer *symbol)
{
    return mc_uom_pixels(symbol->uom, painter->query->scale);
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

static apr_status_t
free_painter(void *data)
{
    mc_painter *painter = data;
    mc_sprites_free(painter->sprites);
    mc_shape_free(&painter->scratch);
    mc_shape_free(&painter->mark);
    mc_shape_free(&painter->moved);
    mc_shape_free(&painter->places);
    mc_shape_free(&painter->straight);
    return APR_SUCCESS;
}

mc_error *
mc_painter_create(mc_painter **painter, const mc_style *style, mc_pixels *target, const mc_feature_query *query,
                  bool by_feature, apr_pool_t *pool)
{
    return mc_painter_create_on(painter, style, mc_canvas_of(target, pool), query, by_feature, pool);
}

mc_error *
mc_painter_create_on(mc_painter **painter, const mc_style *style, mc_canvas *canvas, const mc_feature_query *query,
                     bool by_feature, apr_pool_t *pool)
{
    if (style->pass_count > MC_PASSES_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "style %s has more than %d feature type styles", style->name,
                               MC_PASSES_MAX);
    mc_painter *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_painter){ .style = style, .canvas = canvas, .query = query, .pool = pool };
    apr_pool_create(&made->values, pool);
    apr_pool_cleanup_register(pool, made, free_painter, apr_pool_cleanup_null);
    made->mask = apr_palloc(pool, (size_t)canvas->width + MC_MASK_MARGIN);
    for (int i = 0; i < style->pass_count; i++)
        made->passes[i].rules = mc_rules_create(&style->passes[i], query->scale, pool);
    for (int i = 0; i < style->pass_count && !by_feature; i++)
        if (mc_painter_pass_is_merged(&style->passes[i], query->scale))
            made->passes[i].merged_layers =
                apr_pcalloc(pool, sizeof(mc_merged_layer) * (size_t)style->passes[i].rule_count);
    *painter = made;
    return MC_OK;
}

mc_error *
mc_painter_target(mc_canvas **canvas, mc_painter *painter, mc_pass *to)
{
    mc_canvas *first = painter->canvas;
    mc_pixels *pixels;
    if (to != &painter->passes[0] && to->canvas == NULL && first->palette != NULL)
        MC_TRY(mc_canvas_create_with_palette(&to->canvas, first->width, first->height, first->palette, painter->pool));
    else if (to != &painter->passes[0] && to->canvas == NULL)
        to->canvas = mc_canvas_create(first->width, first->height, false, painter->pool);
    *canvas = to == &painter->passes[0] ? first : to->canvas;
    return (*canvas)->palette != NULL ? MC_OK : mc_canvas_pixels(&pixels, *canvas);
}

mc_error *
mc_painter_area(mc_area **area, mc_painter *painter, bool whole)
{
    if (*area == NULL)
        MC_TRY(mc_area_create(area, painter->canvas->width, painter->canvas->height, painter->pool));
    (*area)->coarse = whole || painter->canvas->palette != NULL;
    return MC_OK;
}

mc_error *
mc_painter_outline(mc_outline **outline, mc_painter *painter, bool whole)
{
    if (*outline == NULL)
        MC_TRY(mc_outline_create(outline, painter->canvas->width, painter->canvas->height, painter->pool));
    (*outline)->coarse = whole || painter->canvas->palette != NULL;
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

/* Lays what painter->coverage has gathered. */
static mc_error *
lay_coverage(mc_painter *painter, mc_canvas *canvas, mc_fill_rule rule, const mc_symbolizer *symbol,
             const mc_paint *paint, const mc_feature *feature)
{
    if (paint->pattern != NULL)
        return mc_pattern_lay(painter, canvas, painter->coverage, rule, symbol, paint->pattern, feature);
    return mc_canvas_fill(canvas, painter->coverage, rule, mc_painter_color(painter, paint, feature));
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
    mc_mvt_simplify(straight, shape, thinning / 2.0);
    return painter->straight.failed ? shape : &painter->straight;
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
    MC_TRY(mc_stroke_tile_paint(done, painter, canvas, shape, pen, thin, color));
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
    width = mc_painter_pixels(painter, symbol, width);
    shape = mc_painter_straight(painter, symbol, shape);
    mc_pen pen = mc_painter_pen(painter, symbol, width);
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
    return paint_stroke(painter, canvas, symbol, shape, feature);
}

static mc_error *
paint_symbol(mc_painter *painter, mc_pass *to, const mc_symbolizer *symbol, const mc_feature *feature)
{
    mc_canvas *canvas;
    MC_TRY(mc_painter_target(&canvas, painter, to));
    if (symbol->kind == MC_SYMBOL_POINT)
        return mc_graphic_paint(painter, canvas, symbol, feature);
    for (int kind = 0; kind < 3; kind++)
        MC_TRY(mc_painter_shape(painter, canvas, symbol, &feature->geometry->shapes[kind], feature));
    return MC_OK;
}

static mc_error *
apply_rule(mc_painter *painter, mc_pass *to, int index, const mc_rule_style *rule, const mc_feature *feature)
{
    if (painter->labels != NULL)
        MC_TRY(mc_labels_take(painter->labels, rule, feature, painter->ctx, painter->values));
    if (rule->symbolizer_count == 0)
        return MC_OK;
    if (to->merged_layers == NULL) {
        for (int i = 0; i < rule->symbolizer_count; i++)
            MC_TRY(paint_symbol(painter, to, &rule->symbolizers[i], feature));
        return MC_OK;
    }
    return mc_merged_layer_add(painter, to, &to->merged_layers[index], &rule->symbolizers[0], feature->geometry);
}

static mc_error *
apply_pass(mc_painter *painter, int index, const mc_feature *feature)
{
    mc_pass *pass = &painter->passes[index];
    mc_rules_find(pass->rules, feature, painter->values);
    for (int i = 0; (i = mc_rules_next(pass->rules, i)) >= 0; i++)
        MC_TRY(apply_rule(painter, pass, i, &painter->style->passes[index].rules[i], feature));
    return MC_OK;
}

void
mc_painter_set_labels(mc_painter *painter, mc_labels *labels)
{
    painter->labels = labels;
}

mc_error *
mc_painter_visit(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    mc_painter *painter = baton;
    mc_feature placed = *feature;
    placed.query = feature->query == NULL ? painter->query : feature->query;
    if (placed.query != painter->placed_for) {
        painter->placed = apr_hash_make(painter->pool);
        painter->placed_for = placed.query;
    }
    placed.placed = painter->placed;
    painter->ctx = ctx;
    for (int i = 0; i < painter->style->pass_count; i++)
        MC_TRY(apply_pass(painter, i, &placed));
    apr_pool_clear(painter->values);
    return MC_OK;
}

mc_error *
mc_painter_finish(mc_painter *painter, mc_ctx *ctx)
{
    MC_SPAN(ctx, "mapcache_painter_finish");
    for (int i = 0; i < painter->style->pass_count; i++) {
        mc_pass *done = &painter->passes[i];
        for (int rule = 0; done->merged_layers != NULL && rule < painter->style->passes[i].rule_count; rule++)
            MC_TRY(mc_merged_layer_paint(painter, done, &done->merged_layers[rule],
                                         &painter->style->passes[i].rules[rule].symbolizers[0], true));
        if (done->canvas != NULL)
            MC_TRY(mc_canvas_over(painter->canvas, done->canvas));
    }
    return MC_OK;
}

bool
mc_painter_shows(const mc_style *style, double scale)
{
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++)
            if (mc_rule_applies(&style->passes[p].rules[r], scale))
                return true;
    return false;
}

double
mc_painter_margin(const mc_style *style, double scale)
{
    double most = 0;
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++) {
            const mc_rule_style *rule = &style->passes[p].rules[r];
            for (int i = 0; mc_rule_applies(rule, scale) && i < rule->symbolizer_count; i++)
                most = fmax(most, mc_symbolizer_reach(&rule->symbolizers[i]) *
                                      mc_uom_pixels(rule->symbolizers[i].uom, scale));
        }
    return ceil(fmin(most, MC_STROKE_WIDTH_MAX)) + 1;
}
