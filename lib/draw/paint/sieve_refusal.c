/* What a style must not do where maps are drawn from overviews: see sieve.h. */
#include <string.h>
#include <strings.h>

#include "draw/paint/sieve.h"
#include "draw/style/expression.h"
#include "draw/style/rules.h"

/* Whether a value needs more of a feature than its attributes, or depends on the map. */
static bool
looks_beyond(const mc_expression *value)
{
    if (value == NULL)
        return false;
    if (value->kind == MC_FUNCTION && (value->function->of_geometry || strcasecmp(value->function->name, "id") == 0 ||
                                       strcasecmp(value->function->name, "env") == 0))
        return true;
    for (int i = 0; i < value->argument_count; i++)
        if (looks_beyond(value->arguments[i]))
            return true;
    return false;
}

static bool
filter_looks_beyond(const mc_filter *filter)
{
    if (filter == NULL)
        return false;
    if (filter->kind == MC_FILTER_ID || filter->kind == MC_FILTER_SPATIAL)
        return true;
    for (int i = 0; i < 3; i++)
        if (looks_beyond(filter->operands[i]))
            return true;
    for (int i = 0; i < filter->member_count; i++)
        if (filter_looks_beyond(filter->members[i]))
            return true;
    return false;
}

static bool graphic_looks_beyond(const mc_graphic *graphic);

static bool
paint_looks_beyond(const mc_paint *paint)
{
    return paint->present && (looks_beyond(paint->color_value) || looks_beyond(paint->opacity) ||
                              (paint->pattern != NULL && graphic_looks_beyond(paint->pattern)));
}

static bool
pair_looks_beyond(const mc_pair *pair)
{
    return looks_beyond(pair->x_value) || looks_beyond(pair->y_value);
}

/* Pictures are files that may change. */
static bool
graphic_looks_beyond(const mc_graphic *graphic)
{
    return graphic->picture != NULL || paint_looks_beyond(&graphic->fill) ||
           paint_looks_beyond(&graphic->stroke.paint) || looks_beyond(graphic->stroke.width_value) ||
           looks_beyond(graphic->size_value) || looks_beyond(graphic->rotation) ||
           looks_beyond(graphic->opacity_value) || pair_looks_beyond(&graphic->anchor) ||
           pair_looks_beyond(&graphic->displacement);
}

static const char *
symbol_refusal(const mc_symbolizer *symbol, bool points)
{
    const mc_stroke *stroke = &symbol->stroke;
    if (symbol->kind == MC_SYMBOL_POINT)
        return !points && symbol->part != MC_PART_POINTS ? "it has graphics that stand on lines or areas"
               : graphic_looks_beyond(&symbol->graphic)
                   ? "it has pictures, or graphics that depend on the geometry or the map"
                   : NULL;
    if (symbol->part != MC_PART_WHOLE)
        return "it draws parts of geometries";
    if (stroke->paint.present && (stroke->dash_count > 0 || stroke->graphic != NULL))
        return "it has dashes or graphics along lines";
    if (paint_looks_beyond(&symbol->fill) || paint_looks_beyond(&stroke->paint) || looks_beyond(stroke->width_value) ||
        pair_looks_beyond(&symbol->displacement))
        return "its values depend on the geometry, the number of the feature, or the map";
    return NULL;
}

static const char *
rule_refusal(const mc_rule_style *rule, bool points)
{
    if (rule->text_count > 0)
        return "it has labels";
    if (filter_looks_beyond(rule->filter))
        return "a filter depends on the geometry, the number of the feature, or the map";
    for (int i = 0; i < rule->symbolizer_count; i++) {
        const char *refusal = symbol_refusal(&rule->symbolizers[i], points);
        if (refusal != NULL)
            return refusal;
    }
    return NULL;
}

static bool
lies_between(double scale, double least, double most)
{
    return scale > least && scale < most;
}

const char *
mc_sieve_refusal(const mc_style *style, double least, double most, bool points)
{
    bool shows = false;
    for (int p = 0; p < style->pass_count; p++) {
        const mc_style_pass *pass = &style->passes[p];
        for (int r = 0; r < pass->rule_count; r++) {
            const mc_rule_style *rule = &pass->rules[r];
            if (lies_between(rule->min_scale, least, most) || lies_between(rule->max_scale, least, most))
                return "rules begin or end among these scales";
            if (!mc_rule_applies(rule, least))
                continue;
            shows = true;
            const char *refusal = rule_refusal(rule, points);
            for (int i = 0; refusal == NULL && i < pass->sort_count; i++)
                refusal = looks_beyond(pass->sort[i].value) ? "features are sorted by more than attributes" : NULL;
            if (refusal != NULL)
                return refusal;
        }
    }
    return shows ? NULL : "no rule draws anything";
}
