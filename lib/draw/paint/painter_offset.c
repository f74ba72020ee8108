/*
 * Areas that are painted larger or smaller than they are (PerpendicularOffset, OGC 05-077r4, 11.1.4): the fill and a
 * stroke twice as wide as the offset, added or taken away. So no ring ever turns inside out.
 */
#include <math.h>
#include <string.h>

#include "draw/paint/painter_private.h"
#include "draw/raster/stroker.h"

/* Rows that are in use; none yet: bottom < top. */
typedef struct rows {
    int top, bottom;
} rows;

/* Moves what has been accumulated into a plane of bytes: as it is, joined, or taken away. */
static void
combine_coverage(uint8_t *plane, rows *used, mc_area *coverage, mc_fill_rule rule, uint8_t *mask, double sign)
{
    used->top = coverage->top < used->top ? coverage->top : used->top;
    used->bottom = coverage->bottom > used->bottom ? coverage->bottom : used->bottom;
    for (int y = coverage->top; y <= coverage->bottom; y++) {
        int x = 0, count;
        uint8_t *row = plane + (size_t)y * (size_t)coverage->width;
        mc_area_take_row(coverage, y, rule, mask, &x, &count);
        for (int i = 0; i < count; i++) {
            uint8_t less = (uint8_t)(255 - mask[i]);
            if (sign > 0 && mask[i] > row[x + i])
                row[x + i] = mask[i];
            if (sign < 0 && less < row[x + i])
                row[x + i] = less;
        }
    }
    mc_area_done(coverage);
}

mc_error *
mc_painter_offset_fill(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_shape *shape,
                       const mc_feature *feature)
{
    double offset = mc_painter_pixels(painter, symbol, symbol->offset);
    const mc_pen pen = { .width = fmin(2 * fabs(offset), MC_STROKE_WIDTH_MAX), .join = MC_JOIN_MITRE };
    size_t width = (size_t)canvas->width;
    rows used = { canvas->height, -1 };
    if (painter->plane == NULL)
        painter->plane = apr_pcalloc(painter->pool, width * (size_t)canvas->height);
    MC_TRY(mc_painter_area(&painter->coverage, painter, false));
    mc_area_add(painter->coverage, shape, 0, 0);
    combine_coverage(painter->plane, &used, painter->coverage, MC_EVEN_ODD, painter->mask, 1);
    mc_stroker_add(painter->coverage, shape, &pen, &painter->scratch);
    combine_coverage(painter->plane, &used, painter->coverage, MC_NON_ZERO, painter->mask, offset);
    mc_color color = mc_painter_color(painter, &symbol->fill, feature);
    for (int y = used.top; y <= used.bottom; y++) { /* the plane is empty between features */
        uint8_t *row = painter->plane + (size_t)y * width;
        mc_canvas_row(canvas, 0, y, row, canvas->width, color);
        memset(row, 0, width);
    }
    return MC_OK;
}
