/* How far symbols reach over their geometry: the margin of the query for a tile. */
#include <math.h>

#include "draw/paint/painter_private.h"
#include "draw/style/expression.h"
#include "draw/style/rules.h"

/* What tiles reckon with where a length comes from the data. */
enum { COMPUTED_SIZE = 128, COMPUTED_WIDTH = 64 };

static double
largest_graphic_size(const mc_graphic *graphic)
{
    double size = graphic->size > 0 ? graphic->size : COMPUTED_SIZE;
    if (graphic->size_value != NULL)
        size = fmax(size, mc_expression_most(graphic->size_value, COMPUTED_SIZE));
    return graphic->flatness > 0 && graphic->flatness < 1 ? size / graphic->flatness : size;
}

static double
largest_pair_sum(const mc_pair *pair, double computed)
{
    double x = pair->x_value == NULL ? fabs(pair->x) : mc_expression_most(pair->x_value, computed);
    double y = pair->y_value == NULL ? fabs(pair->y) : mc_expression_most(pair->y_value, computed);
    return x + y;
}

static double
largest_stroke_width(const mc_stroke *stroke)
{
    return stroke->width_value == NULL ? stroke->width
                                       : fmax(stroke->width, mc_expression_most(stroke->width_value, COMPUTED_WIDTH));
}

static double
graphic_reach(const mc_graphic *graphic)
{
    bool known = graphic->mark != NULL && graphic->mark->glyph == NULL; /* others may be long ones */
    double share_away = fmax(0.5, largest_pair_sum(&graphic->anchor, 1)) * (known ? 1.5 : 4);
    if (known)
        share_away += graphic->mark->reach;
    return largest_graphic_size(graphic) * share_away + largest_stroke_width(&graphic->stroke) * 2 +
           largest_pair_sum(&graphic->displacement, COMPUTED_SIZE);
}

static double
stroke_reach(const mc_symbolizer *symbol)
{
    return symbol->stroke.paint.present ? largest_stroke_width(&symbol->stroke) * 2 : 0;
}

static double
along_reach(const mc_symbolizer *symbol)
{
    return symbol->stroke.graphic != NULL ? graphic_reach(symbol->stroke.graphic) : 0;
}

static double
point_reach(const mc_symbolizer *symbol)
{
    return symbol->kind == MC_SYMBOL_POINT ? graphic_reach(&symbol->graphic) : 0;
}

static double
offset_reach(const mc_symbolizer *symbol)
{
    return fabs(symbol->offset) * 2;
}

static double
displacement_reach(const mc_symbolizer *symbol)
{
    return largest_pair_sum(&symbol->displacement, COMPUTED_SIZE);
}

/* The reach of a symbolizer, in the unit of its sizes. */
static double
symbolizer_reach(const mc_symbolizer *symbol)
{
    /* a line for each option that moves paint beyond the geometry; the options of graphics are inside of theirs */
    static double (*const reaches[])(const mc_symbolizer *symbol) = {
        stroke_reach, /* stroke-width */
        along_reach,  /* GraphicStroke */
        point_reach,  /* Graphic of a PointSymbolizer */
        offset_reach, /* PerpendicularOffset */
        displacement_reach,
    };
    double sum = 0;
    for (size_t i = 0; i < sizeof(reaches) / sizeof(reaches[0]); i++)
        sum += reaches[i](symbol);
    return sum;
}

static double
rule_reach(const mc_rule_style *rule, double scale)
{
    double most = 0;
    for (int i = 0; mc_rule_applies(rule, scale) && i < rule->symbolizer_count; i++)
        most = fmax(most, symbolizer_reach(&rule->symbolizers[i]) * mc_uom_pixels(rule->symbolizers[i].uom, scale));
    return most;
}

static double
margin_of_reach(double reach)
{
    return ceil(fmin(reach, MC_STROKE_WIDTH_MAX)) + 1;
}

double
mc_painter_rule_margin(const mc_rule_style *rule, double scale)
{
    return margin_of_reach(rule_reach(rule, scale));
}

double
mc_painter_margin(const mc_style *style, double scale)
{
    double most = 0;
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++)
            most = fmax(most, rule_reach(&style->passes[p].rules[r], scale));
    return margin_of_reach(most);
}
