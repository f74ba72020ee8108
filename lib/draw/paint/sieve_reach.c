/* How far symbols reach over the geometry of a feature, but for the tips of lines that bend sharply. */
#include <math.h>

#include "draw/paint/painter_private.h"
#include "draw/paint/sieve_private.h"

/* `wide`: times the width of a stroke. Symbols that are no plain strokes reach as far as their margin says. */
static double
reach_of_rule(const mc_rule_style *rule, double scale, double wide)
{
    double most = 1;
    for (int i = 0; i < rule->symbolizer_count; i++) {
        const mc_symbolizer *symbol = &rule->symbolizers[i];
        if (symbol->kind == MC_SYMBOL_POINT || symbol->stroke.graphic != NULL || symbol->stroke.width_value != NULL ||
            mc_painter_is_moved(symbol) || symbol->offset != 0)
            return mc_painter_rule_margin(rule, scale);
        most = fmax(most, symbol->stroke.width * mc_uom_pixels(symbol->uom, scale) * wide + 1);
    }
    return fmin(most, mc_painter_rule_margin(rule, scale));
}

double
mc_sieve_rule_reach(const mc_rule_style *rule, double scale)
{
    return reach_of_rule(rule, scale, M_SQRT1_2);
}

int
mc_sieve_reach(const mc_style *style, double scale)
{
    double most = 1;
    for (int p = 0; p < style->pass_count; p++)
        for (int r = 0; r < style->passes[p].rule_count; r++)
            if (mc_rule_applies(&style->passes[p].rules[r], scale))
                most = fmax(most, reach_of_rule(&style->passes[p].rules[r], scale, 1));
    return (int)ceil(most);
}

/* All segments run within half a right angle of the way from the first point to the last one: so do those that are
 * left when a stroke is straightened. */
static bool
part_bends_mildly(const mc_shape_point *points, int count)
{
    const double along_x = (double)points[count - 1].x - points[0].x,
                 along_y = (double)points[count - 1].y - points[0].y;
    const double along = along_x * along_x + along_y * along_y;
    for (int i = 1; i < count; i++) {
        const double x = (double)points[i].x - points[i - 1].x, y = (double)points[i].y - points[i - 1].y;
        const double dot = x * along_x + y * along_y;
        if (dot < 0 || 2 * dot * dot < (x * x + y * y) * along)
            return false;
    }
    return true;
}

bool
mc_sieve_bends_mildly(const mc_geometry *geometry)
{
    const mc_shape *lines = &geometry->shapes[MC_SHAPE_LINES];
    if (geometry->shapes[MC_SHAPE_POLYGONS].point_count > 0)
        return false;
    for (int i = 0; i < lines->part_count; i++) {
        const int begin = mc_shape_part_begin(lines, i);
        if (!part_bends_mildly(lines->points + begin, lines->ends[i] - begin))
            return false;
    }
    return true;
}
