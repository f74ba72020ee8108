/* What can be said of a style before anything is painted: which passes are painted whole, and in which inks. */
#include "draw/paint/painter_private.h"
#include "draw/style/label_style.h"
#include "draw/style/rules.h"

bool
mc_painter_is_moved(const mc_symbolizer *symbol)
{
    const mc_pair *by = &symbol->displacement;
    return by->x != 0 || by->y != 0 || by->x_value != NULL || by->y_value != NULL;
}

static bool
paint_is_plain(const mc_paint *paint)
{
    return !paint->present || (paint->color_value == NULL && paint->opacity == NULL && paint->pattern == NULL &&
                               paint->color.alpha == 255);
}

static bool
symbol_can_be_whole(const mc_symbolizer *symbol)
{
    if ((symbol->kind != MC_SYMBOL_POLYGON && symbol->kind != MC_SYMBOL_LINE) || symbol->obstacle)
        return false;
    if (symbol->stroke.graphic != NULL || mc_painter_is_moved(symbol) || symbol->part != MC_PART_WHOLE ||
        (symbol->kind == MC_SYMBOL_POLYGON && symbol->offset != 0))
        return false;
    return paint_is_plain(&symbol->fill) && paint_is_plain(&symbol->stroke.paint) && symbol->stroke.width_value == NULL;
}

bool
mc_painter_pass_is_merged(const mc_style_pass *style, double scale)
{
    int rules = 0;
    if (style->sort_count > 0)
        return false;
    for (int i = 0; i < style->rule_count; i++) {
        const mc_rule_style *rule = &style->rules[i];
        if (!mc_rule_applies(rule, scale) || rule->symbolizer_count == 0)
            continue;
        if (rule->symbolizer_count != 1 || !symbol_can_be_whole(&rule->symbolizers[0]) || ++rules > 1)
            return false;
    }
    return rules > 0;
}

static bool
add_paint(mc_inks *inks, const mc_paint *paint)
{
    return !paint->present || (paint_is_plain(paint) && mc_inks_add(inks, paint->color));
}

static bool
add_mark(mc_inks *inks, const mc_graphic *mark)
{
    return mark->mark != NULL && mark->opacity == 1 && mark->opacity_value == NULL && mark->stroke.graphic == NULL &&
           add_paint(inks, &mark->fill) && add_paint(inks, &mark->stroke.paint);
}

static bool
add_symbol(mc_inks *inks, const mc_symbolizer *symbol)
{
    if (symbol->kind != MC_SYMBOL_POINT)
        return symbol->stroke.graphic == NULL && add_paint(inks, &symbol->stroke.paint) &&
               (symbol->kind != MC_SYMBOL_POLYGON || add_paint(inks, &symbol->fill));
    return add_mark(inks, &symbol->graphic);
}

static bool
add_text_inks(mc_inks *inks, const mc_text_symbol *text)
{
    return paint_is_plain(&text->fill) && mc_inks_add(inks, text->fill.color) && add_paint(inks, &text->halo) &&
           (!text->shielded || add_mark(inks, &text->graphic));
}

static bool
add_rule_inks(mc_inks *inks, const mc_rule_style *rule)
{
    for (int i = 0; i < rule->symbolizer_count; i++)
        if (!add_symbol(inks, &rule->symbolizers[i]))
            return false;
    for (int i = 0; i < rule->text_count; i++)
        if (!add_text_inks(inks, &rule->texts[i]))
            return false;
    return true;
}

void
mc_painter_needs_add(mc_painter_needs *needs, const mc_style *style, double scale)
{
    for (int p = 0; p < style->pass_count; p++) {
        const mc_style_pass *pass = &style->passes[p];
        bool drawn = false;
        for (int i = 0; i < pass->rule_count; i++) {
            const mc_rule_style *rule = &pass->rules[i];
            if (!mc_rule_applies(rule, scale))
                continue;
            drawn |= rule->symbolizer_count > 0;
            needs->merged &= rule->text_count == 0;
            needs->suits = needs->suits && add_rule_inks(&needs->inks, rule);
        }
        needs->merged &= !drawn || mc_painter_pass_is_merged(pass, scale);
    }
}
