/*
 * Painting a layer. The first pass goes onto the map itself; each other one has pixels of its own, laid over at the
 * end: that is the same as to draw pass after pass, and the features have to come only once. A rule of constant opaque
 * ink whose shapes need not be kept apart is painted whole: all of its features into one plane, and that plane once.
 */
#include <apr_strings.h>

#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/style/rules.h"
#include "mapcache/trace.h"

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
    mc_painter *made = mc_painter_create_bare(canvas, query, mc_painter_shape, pool);
    made->style = style;
    for (int i = 0; i < style->pass_count; i++)
        made->passes[i].rules = mc_rules_create(&style->passes[i], query->scale, pool);
    for (int i = 0; i < style->pass_count && !by_feature; i++)
        if (mc_painter_pass_is_merged(&style->passes[i], query->scale))
            made->passes[i].merged_layers =
                apr_pcalloc(pool, sizeof(mc_merged_layer) * (size_t)style->passes[i].rule_count);
    *painter = made;
    return MC_OK;
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
    if (painter->visit_labels != NULL)
        MC_TRY(painter->visit_labels(painter->labels, rule, feature, painter->ctx, painter->values));
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
mc_painter_set_labels(mc_painter *painter, mc_rule_visitor *visit, void *labels)
{
    painter->visit_labels = visit;
    painter->labels = labels;
}

void
mc_painter_set_obstacles(mc_painter *painter, const mc_obstacle_visitor *visitor)
{
    painter->obstacles = visitor;
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

bool
mc_painter_labels(const mc_style *style, double scale)
{
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++)
            if (style->passes[p].rules[r].text_count > 0 && mc_rule_applies(&style->passes[p].rules[r], scale))
                return true;
    return false;
}
