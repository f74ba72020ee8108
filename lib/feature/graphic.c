/* Graphics at points: see graphic.h. */
#include "feature/graphic.h"

#include <math.h>

#include "feature/mark.h"
#include "feature/painter_private.h"

/* One mark at each point; at the first vertex of each line and ring where there are no points. */
mc_error *
mc_graphic_paint(mc_painter *painter, mc_pixels *pixels, const mc_symbolizer *symbol, const mc_feature *feature)
{
    const mc_graphic *graphic = &symbol->graphic;
    const mc_symbolizer drawn = {
        .kind = MC_SYMBOL_POLYGON, .uom = symbol->uom, .fill = graphic->fill, .stroke = graphic->stroke
    };
    const mc_symbolizer stroked = { .kind = MC_SYMBOL_LINE, .uom = symbol->uom, .stroke = graphic->stroke };
    double size = mc_painter_value(painter, graphic->size_value, graphic->size, feature);
    double turn = mc_painter_value(painter, graphic->rotation, 0, feature);
    if (!(size > 0) || !isfinite(turn))
        return MC_OK;
    size = mc_painter_pixels(painter, symbol, size);
    for (int kind = 0; kind < 3; kind++) {
        const mc_shape *shape = &feature->geometry->shapes[kind];
        for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
            bool area = mc_mark_place(&painter->mark, graphic->mark, shape->points[begin], size, turn);
            MC_TRY(mc_painter_shape(painter, pixels, area ? &drawn : &stroked, &painter->mark, feature));
        }
    }
    return MC_OK;
}
