/* Painters of bands of a map: the same passes on some of the rows, so that several threads paint one layer. */
#include "draw/paint/painter_private.h"
#include "draw/style/rules.h"
#include "draw/symbol/picture.h"

static bool
reach_of_pair_is_known(const mc_pair *pair)
{
    return pair->x_value == NULL && pair->y_value == NULL;
}

/* Sizes that come from the data, of pictures and of glyphs are guessed for the margin of a tile. Which marks that
 * differ from feature to feature are sprites depends on all features before. */
static bool
graphic_reach_is_known(const mc_graphic *graphic)
{
    return graphic->mark != NULL && graphic->mark->glyph == NULL && graphic->size > 0 &&
           graphic->stroke.graphic == NULL && mc_graphic_is_constant(graphic);
}

static bool
symbol_reach_is_known(const mc_symbolizer *symbol)
{
    return symbol->stroke.width_value == NULL && reach_of_pair_is_known(&symbol->displacement) &&
           (symbol->stroke.graphic == NULL || graphic_reach_is_known(symbol->stroke.graphic)) &&
           (symbol->kind != MC_SYMBOL_POINT || graphic_reach_is_known(&symbol->graphic));
}

static bool
rule_reach_is_known(const mc_rule_style *rule)
{
    for (int i = 0; i < rule->symbolizer_count; i++)
        if (!symbol_reach_is_known(&rule->symbolizers[i]))
            return false;
    return true;
}

bool
mc_painter_can_part(const mc_painter *painter)
{
    if (painter->visit_labels != NULL || painter->obstacles != NULL ||
        (painter->canvas->palette == NULL && painter->canvas->pixels == NULL))
        return false;
    for (int p = 0; p < painter->pass_count; p++) {
        const mc_pass *pass = &painter->passes[p];
        if (pass->kept != NULL || pass->merged_layers != NULL)
            return false;
        for (int r = 0; r < pass->style->rule_count; r++)
            if (mc_rule_applies(&pass->style->rules[r], painter->query->scale) &&
                !rule_reach_is_known(&pass->style->rules[r]))
                return false;
    }
    return mc_painter_margin(painter->style, painter->query->scale) < MC_STROKE_WIDTH_MAX;
}

bool
mc_painter_leaves_bounds(const mc_painter *painter)
{
    for (int p = 0; p < painter->pass_count; p++) {
        const mc_style_pass *style = painter->passes[p].style;
        for (int r = 0; r < style->rule_count; r++)
            for (int i = 0; i < style->rules[r].symbolizer_count; i++)
                if (style->rules[r].symbolizers[i].kind == MC_SYMBOL_POINT ||
                    style->rules[r].symbolizers[i].part != MC_PART_WHOLE)
                    return true;
    }
    return false;
}

mc_error *
mc_painter_create_lane(mc_painter **lane, mc_painter *whole, const mc_feature_query *query, int top, int height,
                       apr_pool_t *pool)
{
    mc_canvas *canvas = mc_canvas_band(whole->canvas, top, height, pool);
    MC_TRY(mc_painter_create_on(lane, whole->style, canvas, query, true, pool));
    for (int p = 0; p < whole->pass_count; p++) {
        mc_pass *pass = &(*lane)->passes[p];
        MC_TRY(mc_painter_target(&canvas, whole, &whole->passes[p]));
        pass->canvas = pass->on_map ? NULL : mc_canvas_band(canvas, top, height, pool);
    }
    return MC_OK;
}
