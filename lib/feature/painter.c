/*
 * Painting a layer. The first pass goes onto the map itself; each other one has pixels of its own, laid over at the
 * end: that is the same as to draw pass after pass, and the features have to come only once. A rule of constant opaque
 * ink whose shapes need not be kept apart is painted whole: all of its features into one plane, and that plane once.
 */
#include <apr_strings.h>
#include <math.h>

#include "feature/graphic.h"
#include "feature/painter_private.h"
#include "feature/stroker.h"
#include "mapcache/trace.h"

enum {
    WHOLE_RULES_MAX = 4, /* each has planes of its own: memory */
};

#define THIN 2.0 /* pixels: up to this width a stroke is painted by distance */

/* Pixels for a unit of a symbolizer's sizes: the standardised pixel is 0.28 mm wide (OGC 05-077r4, 10.2). */
static double
unit_of(const mc_symbolizer *symbol, double scale)
{
    static const double metres[] = { [MC_UOM_METRE] = 1, [MC_UOM_FOOT] = 0.3048 };
    return symbol->uom == MC_UOM_PIXEL ? 1 : metres[symbol->uom] / (0.00028 * scale);
}

double
mc_painter_pixels(const mc_painter *painter, const mc_symbolizer *symbol, double size)
{
    return fmin(size * unit_of(symbol, painter->map->scale), MC_STROKE_WIDTH_MAX);
}

double
mc_painter_value(mc_painter *painter, const mc_expression *value, double constant, const mc_feature *feature)
{
    return value == NULL ? constant : mc_expression_number(value, feature, constant, painter->values);
}

static bool
rule_applies(const mc_rule_style *rule, double scale)
{
    return scale >= rule->min_scale && scale < rule->max_scale;
}

static bool
ink_is_constant(const mc_ink *ink)
{
    return !ink->present || (ink->color_value == NULL && ink->opacity == NULL && ink->color.alpha == 255);
}

static bool
symbol_can_be_whole(const mc_symbolizer *symbol)
{
    if (symbol->kind != MC_SYMBOL_POLYGON && symbol->kind != MC_SYMBOL_LINE)
        return false;
    return ink_is_constant(&symbol->fill) && ink_is_constant(&symbol->stroke.ink) && symbol->stroke.width_value == NULL;
}

/* Whether all rules of a pass that apply at this scale have one opaque fill and stroke. */
static bool
pass_can_be_whole(const mc_style_pass *style, double scale)
{
    int rules = 0;
    for (int i = 0; i < style->rule_count; i++) {
        const mc_rule_style *rule = &style->rules[i];
        if (!rule_applies(rule, scale))
            continue;
        if (rule->symbolizer_count != 1 || !symbol_can_be_whole(&rule->symbolizers[0]) || ++rules > WHOLE_RULES_MAX)
            return false;
    }
    return rules > 0;
}

static apr_status_t
free_painter(void *data)
{
    mc_painter *painter = data;
    for (int i = 0; i < MC_PASSES_MAX; i++)
        mc_pixels_unref(painter->passes[i].pixels);
    mc_pixels_unref(painter->target);
    mc_shape_free(&painter->scratch);
    mc_shape_free(&painter->mark);
    return APR_SUCCESS;
}

mc_error *
mc_painter_create(mc_painter **painter, const mc_style *style, mc_pixels *target, const mc_feature_query *map,
                  bool by_feature, apr_pool_t *pool)
{
    if (style->pass_count > MC_PASSES_MAX)
        return mc_error_create(pool, MC_ERR_LIMIT, "style %s has more than %d feature type styles", style->name,
                               MC_PASSES_MAX);
    mc_painter *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_painter){ .style = style, .target = mc_pixels_ref(target), .map = map, .pool = pool };
    made->passes[0].pixels = mc_pixels_ref(target);
    apr_pool_create(&made->values, pool);
    apr_pool_cleanup_register(pool, made, free_painter, apr_pool_cleanup_null);
    made->mask = apr_palloc(pool, (size_t)target->width + MC_MASK_MARGIN);
    for (int i = 0; i < style->pass_count && !by_feature; i++)
        if (pass_can_be_whole(&style->passes[i], map->scale))
            made->passes[i].wholes = apr_pcalloc(pool, sizeof(mc_whole) * (size_t)style->passes[i].rule_count);
    *painter = made;
    return MC_OK;
}

mc_error *
mc_painter_target(mc_pixels **pixels, mc_painter *painter, mc_pass *to)
{
    if (to->pixels == NULL)
        MC_TRY(mc_pixels_create(&to->pixels, painter->target->width, painter->target->height, true, painter->pool));
    to->pixels->opacity = MC_OPACITY_UNKNOWN; /* painted on: what was known of it does not hold any more */
    *pixels = to->pixels;
    return MC_OK;
}

mc_error *
mc_painter_area(mc_area **area, mc_painter *painter, bool coarse)
{
    if (*area == NULL)
        MC_TRY(mc_area_create(area, painter->target->width, painter->target->height, painter->pool));
    (*area)->coarse = coarse;
    return MC_OK;
}

mc_error *
mc_painter_outline(mc_outline **outline, mc_painter *painter, bool coarse)
{
    if (*outline == NULL)
        MC_TRY(mc_outline_create(outline, painter->target->width, painter->target->height, painter->pool));
    (*outline)->coarse = coarse;
    return MC_OK;
}

bool
mc_painter_is_thin(const mc_stroke *stroke, double width, const mc_symbolizer *symbol)
{
    return width <= THIN && stroke->dashes == NULL && symbol->offset == 0;
}

mc_pen
mc_painter_pen(const mc_stroke *stroke, double width, double offset)
{
    return (
        mc_pen){ width, stroke->join, stroke->cap, stroke->dashes, stroke->dash_count, stroke->dash_offset, offset };
}

bool
mc_painter_draws(const mc_symbolizer *symbol, const mc_shape *shape)
{
    if (shape->part_count == 0 || shape->kind == MC_SHAPE_POINTS)
        return false;
    return symbol->kind == MC_SYMBOL_LINE || shape->kind == MC_SHAPE_POLYGONS;
}

static mc_color
resolve_ink(const mc_ink *ink, const mc_feature *feature, mc_painter *painter)
{
    mc_color color = ink->color;
    if (ink->color_value != NULL) {
        const char *text = mc_expression_text(ink->color_value, feature, painter->values);
        mc_color_parse(&color, text);
    }
    if (ink->opacity != NULL)
        color.alpha =
            (uint8_t)lrint(255 * fmin(1, fmax(0, mc_expression_number(ink->opacity, feature, 1, painter->values))));
    return color;
}

static mc_error *
paint_stroke(mc_painter *painter, mc_pixels *pixels, const mc_symbolizer *symbol, const mc_shape *shape,
             const mc_feature *feature)
{
    const mc_stroke *stroke = &symbol->stroke;
    double width = mc_painter_value(painter, stroke->width_value, stroke->width, feature);
    if (!stroke->ink.present || !(width > 0))
        return MC_OK;
    width = mc_painter_pixels(painter, symbol, width);
    mc_color color = resolve_ink(&stroke->ink, feature, painter);
    if (mc_painter_is_thin(stroke, width, symbol)) {
        MC_TRY(mc_painter_outline(&painter->outline, painter, false));
        mc_outline_add(painter->outline, shape, (float)width);
        mc_brush_outline(pixels, painter->outline, color);
        return MC_OK;
    }
    mc_pen pen = mc_painter_pen(stroke, width, mc_painter_pixels(painter, symbol, symbol->offset));
    MC_TRY(mc_painter_area(&painter->coverage, painter, false));
    mc_stroker_add(painter->coverage, shape, &pen, &painter->scratch);
    mc_brush_fill(pixels, painter->coverage, MC_NON_ZERO, color, painter->mask);
    return MC_OK;
}

mc_error *
mc_painter_shape(mc_painter *painter, mc_pixels *pixels, const mc_symbolizer *symbol, const mc_shape *shape,
                 const mc_feature *feature)
{
    if (!mc_painter_draws(symbol, shape))
        return MC_OK;
    if (symbol->kind == MC_SYMBOL_POLYGON && symbol->fill.present) {
        MC_TRY(mc_painter_area(&painter->coverage, painter, false));
        mc_area_add(painter->coverage, shape, 0, 0);
        mc_brush_fill(pixels, painter->coverage, MC_EVEN_ODD, resolve_ink(&symbol->fill, feature, painter),
                      painter->mask);
    }
    return paint_stroke(painter, pixels, symbol, shape, feature);
}

static mc_error *
paint_symbol(mc_painter *painter, mc_pass *to, const mc_symbolizer *symbol, const mc_feature *feature)
{
    mc_pixels *pixels;
    MC_TRY(mc_painter_target(&pixels, painter, to));
    if (symbol->kind == MC_SYMBOL_POINT)
        return mc_graphic_paint(painter, pixels, symbol, feature);
    for (int kind = 0; kind < 3; kind++)
        MC_TRY(mc_painter_shape(painter, pixels, symbol, &feature->geometry->shapes[kind], feature));
    return MC_OK;
}

static mc_error *
apply_rule(mc_painter *painter, mc_pass *to, int index, const mc_rule_style *rule, const mc_feature *feature)
{
    if (to->wholes == NULL) {
        for (int i = 0; i < rule->symbolizer_count; i++)
            MC_TRY(paint_symbol(painter, to, &rule->symbolizers[i], feature));
        return MC_OK;
    }
    return mc_whole_gather(painter, to, &to->wholes[index], &rule->symbolizers[0], feature->geometry);
}

static mc_error *
apply_pass(mc_painter *painter, int index, const mc_feature *feature)
{
    const mc_style_pass *style = &painter->style->passes[index];
    bool any = false;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < style->rule_count; i++) {
            const mc_rule_style *rule = &style->rules[i];
            if (rule->is_else != (round == 1) || (rule->is_else && any) || !rule_applies(rule, painter->map->scale) ||
                !mc_filter_matches(rule->filter, feature, painter->values))
                continue;
            any |= !rule->is_else;
            MC_TRY(apply_rule(painter, &painter->passes[index], i, rule, feature));
        }
    return MC_OK;
}

mc_error *
mc_painter_take(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    (void)ctx;
    mc_painter *painter = baton;
    mc_feature placed = *feature;
    placed.map = painter->map;
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
        for (int rule = 0; done->wholes != NULL && rule < painter->style->passes[i].rule_count; rule++)
            MC_TRY(mc_whole_lay(painter, done, &done->wholes[rule],
                                &painter->style->passes[i].rules[rule].symbolizers[0]));
        if (i > 0 && done->pixels != NULL)
            mc_pixels_over(painter->target, 0, 0, done->pixels);
    }
    return MC_OK;
}

static double
reach_of(const mc_symbolizer *symbol)
{
    double stroke = symbol->stroke.ink.present ? symbol->stroke.width * 2 : 0;
    double mark = symbol->kind == MC_SYMBOL_POINT ? symbol->graphic.size + symbol->graphic.stroke.width : 0;
    return stroke + mark + fabs(symbol->offset) * 2;
}

double
mc_painter_margin(const mc_style *style, double scale)
{
    double most = 0;
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++) {
            const mc_rule_style *rule = &style->passes[p].rules[r];
            for (int i = 0; rule_applies(rule, scale) && i < rule->symbolizer_count; i++)
                most = fmax(most, reach_of(&rule->symbolizers[i]) * unit_of(&rule->symbolizers[i], scale));
        }
    return ceil(fmin(most, MC_STROKE_WIDTH_MAX)) + 1;
}
