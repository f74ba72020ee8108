/*
 * Painting a layer. The first pass goes onto the map itself; each of the next ones has pixels of its own, laid over at
 * the end: that is the same as to draw pass after pass, and the features have to come only once. Features of further
 * passes, and of passes with an order, are kept and painted at the end, so that a style may have many passes. A rule of
 * constant opaque ink whose shapes need not be kept apart is painted whole: all of its features into one plane, and
 * that plane once. None of this depends on the size of the map, so that tiles fit together.
 */
#include <apr_strings.h>
#include <string.h>

#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/style/rules.h"
#include "mapcache/trace.h"

enum { KEPT_CHECKED = 256 /* features between two looks at the deadline */ };

mc_error *
mc_painter_create(mc_painter **painter, const mc_style *style, mc_pixels *target, const mc_feature_query *query,
                  bool by_feature, apr_pool_t *pool)
{
    return mc_painter_create_on(painter, style, mc_canvas_of(target, pool), query, by_feature, pool);
}

/* Whether any rule of a pass applies at the scale; *paints: one that paints, and does not only label. */
static bool
pass_shows(bool *paints, const mc_style_pass *style, double scale)
{
    bool shows = false;
    *paints = false;
    for (int i = 0; i < style->rule_count; i++)
        if (mc_rule_applies(&style->rules[i], scale)) {
            shows = true;
            *paints |= style->rules[i].symbolizer_count > 0;
        }
    return shows;
}

/* The group of a pass that is painted at the end: that of the pass before it, where they are sorted together. */
static mc_kept_group *
find_kept_group(mc_painter *painter, const mc_style_pass *style)
{
    const mc_pass *before = painter->pass_count > 0 ? &painter->passes[painter->pass_count - 1] : NULL;
    if (style->sort_group != NULL && before != NULL && before->kept != NULL && before->style->sort_group != NULL &&
        strcmp(before->style->sort_group, style->sort_group) == 0 && before->style->sort_count == style->sort_count)
        return before->kept;
    if (painter->kept == NULL)
        painter->kept = mc_kept_create(painter->pool);
    return mc_kept_group_create(painter->kept, style);
}

static void
plan_passes(mc_painter *painter, bool by_feature)
{
    const mc_style *style = painter->style;
    const double scale = painter->query->scale;
    int painted = 0, at_once = 0;
    painter->passes = apr_pcalloc(painter->pool, sizeof(*painter->passes) * (size_t)(style->pass_count + 1));
    for (int i = 0; i < style->pass_count; i++) {
        bool paints;
        if (!pass_shows(&paints, &style->passes[i], scale))
            continue;
        mc_pass planned = { .style = &style->passes[i] };
        planned.rules = mc_rules_create(planned.style, scale, painter->pool);
        if (!by_feature && mc_painter_pass_is_merged(planned.style, scale))
            planned.merged_layers =
                apr_pcalloc(painter->pool, sizeof(mc_merged_layer) * (size_t)planned.style->rule_count);
        if (paints && (planned.style->sort_count > 0 || at_once == MC_PASSES_AT_ONCE))
            planned.kept = find_kept_group(painter, planned.style);
        else
            at_once += paints;
        planned.on_map = planned.kept != NULL || painted == 0;
        painted += paints;
        painter->passes[painter->pass_count++] = planned;
    }
}

mc_error *
mc_painter_create_on(mc_painter **painter, const mc_style *style, mc_canvas *canvas, const mc_feature_query *query,
                     bool by_feature, apr_pool_t *pool)
{
    mc_painter *made = mc_painter_create_bare(canvas, query, mc_painter_shape, pool);
    made->style = style;
    plan_passes(made, by_feature);
    *painter = made;
    return MC_OK;
}

static mc_error *
paint_symbol(mc_painter *painter, mc_pass *to, const mc_symbolizer *symbol, const mc_feature *feature)
{
    mc_canvas *canvas;
    MC_TRY(mc_painter_target(&canvas, painter, to));
    painter->of_style = symbol;
    if (symbol->kind == MC_SYMBOL_POINT)
        return mc_graphic_paint(painter, canvas, symbol, feature);
    for (int kind = 0; kind < 3; kind++)
        MC_TRY(mc_painter_shape(painter, canvas, symbol, &feature->geometry->shapes[kind], feature));
    return MC_OK;
}

static mc_error *
label_by_rule(mc_painter *painter, const mc_rule_style *rule, const mc_feature *feature)
{
    if (painter->visit_labels == NULL)
        return MC_OK;
    return painter->visit_labels(painter->labels, rule, feature, painter->ctx, painter->values);
}

static mc_error *
paint_by_rule(mc_painter *painter, mc_pass *to, int index, const mc_feature *feature)
{
    const mc_rule_style *rule = &to->style->rules[index];
    if (rule->symbolizer_count == 0)
        return MC_OK;
    if (to->merged_layers == NULL) {
        for (int i = 0; i < rule->symbolizer_count; i++)
            MC_TRY(paint_symbol(painter, to, &rule->symbolizers[i], feature));
        return MC_OK;
    }
    return mc_merged_layer_add(painter, to, &to->merged_layers[index], &rule->symbolizers[0], feature->geometry);
}

/* Labels a feature, and keeps the feature for the end. *copy: of the feature, NULL: none has been made so far. */
static mc_error *
keep_for_pass(mc_painter *painter, int index, const mc_feature *feature, const mc_kept_feature **copy)
{
    const mc_pass *pass = &painter->passes[index];
    bool paints = false;
    int words;
    for (int i = 0; (i = mc_rules_next(pass->rules, i)) >= 0; i++) {
        MC_TRY(label_by_rule(painter, &pass->style->rules[i], feature));
        paints |= pass->style->rules[i].symbolizer_count > 0;
    }
    if (!paints)
        return MC_OK;
    if (*copy == NULL)
        MC_TRY(mc_kept_add(copy, painter->kept, feature));
    const uint64_t *found = mc_rules_found(pass->rules, &words);
    return mc_kept_use_add(pass->kept, *copy, index, found, words, feature, painter->values);
}

static mc_error *
apply_pass(mc_painter *painter, int index, const mc_feature *feature, const mc_kept_feature **copy)
{
    mc_pass *pass = &painter->passes[index];
    mc_rules_find(pass->rules, feature, painter->values);
    if (pass->kept != NULL)
        return keep_for_pass(painter, index, feature, copy);
    for (int i = 0; (i = mc_rules_next(pass->rules, i)) >= 0; i++) {
        MC_TRY(label_by_rule(painter, &pass->style->rules[i], feature));
        MC_TRY(paint_by_rule(painter, pass, i, feature));
    }
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

/* Shapes of filters are made once for the query of a world. */
static void
place_feature(mc_painter *painter, mc_feature *feature)
{
    if (feature->query != painter->placed_for) {
        if (painter->worlds == NULL)
            painter->worlds = apr_hash_make(painter->pool);
        painter->placed = apr_hash_get(painter->worlds, &feature->query, sizeof(feature->query));
        if (painter->placed == NULL) {
            painter->placed = apr_hash_make(painter->pool);
            apr_hash_set(painter->worlds, apr_pmemdup(painter->pool, &feature->query, sizeof(feature->query)),
                         sizeof(feature->query), painter->placed);
        }
        painter->placed_for = feature->query;
    }
    feature->placed = painter->placed;
}

mc_error *
mc_painter_visit(void *baton, const mc_feature *feature, mc_ctx *ctx)
{
    mc_painter *painter = baton;
    mc_feature placed = *feature;
    const mc_kept_feature *copy = NULL;
    placed.query = feature->query == NULL ? painter->query : feature->query;
    place_feature(painter, &placed);
    painter->ctx = ctx;
    for (int i = 0; i < painter->pass_count; i++)
        MC_TRY(apply_pass(painter, i, &placed, &copy));
    apr_pool_clear(painter->values);
    return MC_OK;
}

/* Paints what has been kept for a pass, and for the passes that are sorted together with it. */
static mc_error *
paint_kept_group(mc_painter *painter, mc_kept_group *group, mc_ctx *ctx)
{
    mc_geometry geometry;
    mc_kept_sort(group);
    for (int i = 0; i < group->uses->nelts; i++) {
        if (i % KEPT_CHECKED == 0)
            MC_TRY(mc_ctx_check(ctx, painter->pool));
        const mc_kept_use *use = &APR_ARRAY_IDX(group->uses, i, mc_kept_use);
        mc_pass *pass = &painter->passes[use->pass];
        mc_feature feature = mc_kept_restore(&geometry, use->feature);
        place_feature(painter, &feature);
        mc_rules_restore(pass->rules, use->rules);
        for (int rule = 0; (rule = mc_rules_next(pass->rules, rule)) >= 0; rule++)
            MC_TRY(paint_by_rule(painter, pass, rule, &feature));
        apr_pool_clear(painter->values);
    }
    group->uses->nelts = 0;
    return MC_OK;
}

/* The one rule of a merged pass that paints. */
static int
find_merged_rule(const mc_pass *pass, double scale)
{
    int rule = 0;
    while (!mc_rule_applies(&pass->style->rules[rule], scale) || pass->style->rules[rule].symbolizer_count == 0)
        rule++;
    return rule;
}

/* Paints a pass as far as that has not been done. Passes that are painted at the end use the same planes in turn. */
static mc_error *
finish_pass(mc_painter *painter, mc_pass *done, mc_ctx *ctx)
{
    int rule = done->merged_layers == NULL ? 0 : find_merged_rule(done, painter->query->scale);
    mc_merged_layer *merged = done->merged_layers == NULL ? NULL : &done->merged_layers[rule];
    if (done->kept != NULL) {
        if (merged != NULL)
            *merged = painter->spare;
        MC_TRY(paint_kept_group(painter, done->kept, ctx));
    }
    if (merged != NULL)
        MC_TRY(mc_merged_layer_paint(painter, done, merged, &done->style->rules[rule].symbolizers[0], true));
    if (merged != NULL && done->kept != NULL)
        painter->spare = *merged;
    return done->canvas == NULL ? MC_OK : mc_canvas_over(painter->canvas, done->canvas);
}

mc_error *
mc_painter_finish(mc_painter *painter, mc_ctx *ctx)
{
    MC_SPAN(ctx, "mapcache_painter_finish");
    painter->ctx = ctx;
    for (int i = 0; i < painter->pass_count; i++)
        MC_TRY(finish_pass(painter, &painter->passes[i], ctx));
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
