/* Graphics repeated over areas: hatches by their lines, everything else as a cell of whole pixels. */
#include <apr_strings.h>
#include <math.h>

#include "draw/paint/graphic.h"
#include "draw/paint/painter_private.h"
#include "draw/raster/hatch.h"
#include "draw/symbol/picture.h"

/* Where the map begins on the pixel grid. */
static int64_t
column_of(const mc_painter *painter, int x)
{
    return painter->query->pixel_grid.left + x;
}

static int64_t
lattice_row_of(const mc_painter *painter, int y)
{
    return painter->query->pixel_grid.top + y;
}

static int
cell_side(double cell, double own, double before, double after)
{
    double side = cell > 0 ? cell : own + before + after;
    return (int)fmin(MC_PICTURE_SIDE_MAX, fmax(1, rint(side)));
}

/* One cell, with what reaches into it from its neighbours. */
static mc_error *
draw_cell(mc_pixels **cell, mc_painter *painter, const mc_symbolizer *symbol, const mc_graphic *graphic,
          const mc_feature *feature, apr_pool_t *pool)
{
    mc_drawing drawing;
    double margin[4];
    bool any;
    *cell = NULL;
    MC_TRY(mc_graphic_resolve(&drawing, &any, painter, symbol, graphic, feature));
    if (!any)
        return MC_OK;
    for (int i = 0; i < 4; i++)
        margin[i] = mc_painter_pixels(painter, symbol, graphic->margin[i]);
    int width =
        cell_side(mc_painter_pixels(painter, symbol, graphic->cell_x), drawing.placing.width, margin[3], margin[1]);
    int height =
        cell_side(mc_painter_pixels(painter, symbol, graphic->cell_y), drawing.placing.height, margin[0], margin[2]);
    MC_TRY(mc_pixels_create(cell, width, height, true, pool));
    mc_pixels_attach(*cell, pool);
    mc_feature_query *query = apr_pmemdup(pool, painter->query, sizeof(*query));
    query->pixel_grid.left = query->pixel_grid.top = 0;
    mc_painter *inner = mc_painter_create_inner(painter, mc_canvas_of(*cell, pool), query, pool);
    double x = graphic->cell_x > 0 ? width / 2.0 : margin[3] + drawing.placing.width / 2;
    double y = graphic->cell_y > 0 ? height / 2.0 : margin[0] + drawing.placing.height / 2;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            mc_shape_point at = { (int32_t)lrint((x + i * width) * MC_SUBPIXELS),
                                  (int32_t)lrint((y + j * height) * MC_SUBPIXELS) };
            MC_TRY(mc_graphic_draw(&drawing, inner, inner->canvas, at, 0, feature));
        }
    return MC_OK;
}

static mc_error *
get_pattern_cell(mc_pixels **cell, mc_painter *painter, const mc_symbolizer *symbol, const mc_graphic *graphic,
                 const mc_feature *feature)
{
    if (!mc_graphic_is_constant(graphic))
        return draw_cell(cell, painter, symbol, graphic, feature, painter->values);
    for (int i = 0; i < painter->cell_count; i++)
        if (painter->cells[i].graphic == graphic) {
            *cell = painter->cells[i].pixels;
            return MC_OK;
        }
    bool kept = painter->cell_count < MC_CELLS_MAX;
    MC_TRY(draw_cell(cell, painter, symbol, graphic, feature, kept ? painter->pool : painter->values));
    if (kept)
        painter->cells[painter->cell_count++] = (mc_known_cell){ graphic, *cell };
    return MC_OK;
}

static mc_error *
lay_cells(mc_painter *painter, mc_pixels *pixels, mc_area *coverage, mc_fill_rule rule, const mc_pixels *cell)
{
    for (int y = coverage->top; y <= coverage->bottom; y++) {
        int x = 0, count;
        mc_area_take_row(coverage, y, rule, painter->mask, &x, &count);
        if (cell == NULL || count == 0)
            continue;
        int64_t row = lattice_row_of(painter, y) % cell->height, column = column_of(painter, x) % cell->width;
        row += row < 0 ? cell->height : 0;
        column += column < 0 ? cell->width : 0;
        mc_brush_cells(pixels, x, y, painter->mask, count, cell, (int)column, (int)row);
    }
    mc_area_done(coverage);
    return MC_OK;
}

static mc_error *
lay_lines(mc_painter *painter, mc_pixels *pixels, mc_area *coverage, mc_fill_rule rule, const mc_symbolizer *symbol,
          const mc_graphic *graphic, const mc_feature *feature)
{
    mc_hatch hatch = { 0 };
    mc_drawing drawing;
    bool any;
    int dots = graphic->mark->dense, side = (int)fmax(1, rint(mc_query_density(painter->query)));
    MC_TRY(mc_graphic_resolve(&drawing, &any, painter, symbol, graphic, feature));
    const mc_symbolizer *drawn = &drawing.symbol;
    mc_color color = dots > 0 && drawn->fill.present ? drawn->fill.color : drawn->stroke.paint.color;
    if (any)
        mc_hatch_make(&hatch, graphic->mark->hatch, drawing.placing.height,
                      mc_painter_pixels(painter, symbol, drawn->stroke.width), drawing.placing.turn,
                      (double)drawing.placing.at.x / MC_SUBPIXELS, (double)drawing.placing.at.y / MC_SUBPIXELS);
    for (int y = coverage->top; y <= coverage->bottom; y++) {
        int x = 0, count;
        mc_area_take_row(coverage, y, rule, painter->mask, &x, &count);
        if (!any || count == 0)
            continue;
        if (dots > 0)
            mc_hatch_dots(dots, side, column_of(painter, x), lattice_row_of(painter, y), painter->mask, count);
        else
            mc_hatch_row(&hatch, column_of(painter, x), lattice_row_of(painter, y), painter->mask, count);
        mc_brush_row(pixels, x, y, painter->mask, count, color);
    }
    mc_area_done(coverage);
    return MC_OK;
}

/* Whether the lines of a mark run on into those of its neighbours. */
static bool
is_lines(const mc_graphic *graphic)
{
    bool apart = graphic->cell_x > 0;
    for (int i = 0; i < 4; i++)
        apart |= graphic->margin[i] > 0;
    if (graphic->mark == NULL || apart)
        return false;
    return graphic->mark->dense > 0 || (graphic->mark->hatch != 0 && graphic->stroke.paint.present &&
                                        graphic->stroke.paint.pattern == NULL && graphic->stroke.dashes == NULL);
}

mc_error *
mc_pattern_lay(mc_painter *painter, mc_canvas *canvas, mc_area *coverage, mc_fill_rule rule,
               const mc_symbolizer *symbol, const mc_graphic *graphic, const mc_feature *feature)
{
    mc_pixels *cell, *pixels;
    MC_TRY(mc_canvas_pixels(&pixels, canvas));
    if (is_lines(graphic))
        return lay_lines(painter, pixels, coverage, rule, symbol, graphic, feature);
    MC_TRY(get_pattern_cell(&cell, painter, symbol, graphic, feature));
    return lay_cells(painter, pixels, coverage, rule, cell);
}
