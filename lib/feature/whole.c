/*
 * Rules of constant opaque ink whose features need not be kept apart: all of them go into one plane for the fill and
 * one for the stroke, and each plane is laid down once.
 */
#include "feature/painter_private.h"

enum {
    WHOLE_FEATURES = 8192, /* after so many a plane is painted and begun anew: its sums stay inside their range */
};

static mc_error *
gather_wide(mc_painter *painter, mc_whole *into, const mc_symbolizer *symbol, const mc_shape *shape, double width)
{
    mc_pen pen = mc_painter_pen(&symbol->stroke, width, mc_painter_pixels(painter, symbol, symbol->offset));
    MC_TRY(mc_painter_area(&into->wide, painter, true));
    mc_stroker_add(into->wide, shape, &pen, &painter->scratch);
    return MC_OK;
}

static mc_error *
gather(mc_painter *painter, mc_whole *into, const mc_symbolizer *symbol, const mc_shape *shape)
{
    if (!mc_painter_draws(symbol, shape))
        return MC_OK;
    bool filled = symbol->kind == MC_SYMBOL_POLYGON && symbol->fill.present;
    double width = symbol->stroke.ink.present ? mc_painter_pixels(painter, symbol, symbol->stroke.width) : 0;
    bool thin = width > 0 && mc_painter_is_thin(&symbol->stroke, width, symbol);
    if (filled)
        MC_TRY(mc_painter_area(&into->fill, painter, true));
    if (thin)
        MC_TRY(mc_painter_outline(&into->thin, painter, true));
    if (shape->kind == MC_SHAPE_POLYGONS && (filled || thin)) {
        if (into->edges == NULL)
            into->edges = mc_edges_create(painter->pool);
        mc_edges_add(into->edges, filled ? into->fill : NULL, thin ? into->thin : NULL, shape, (float)width);
    } else if (thin)
        mc_outline_add(into->thin, shape, (float)width);
    return width > 0 && !thin ? gather_wide(painter, into, symbol, shape, width) : MC_OK;
}

mc_error *
mc_whole_gather(mc_painter *painter, mc_pass *to, mc_whole *into, const mc_symbolizer *symbol,
                const mc_geometry *geometry)
{
    for (int kind = 0; kind < 3; kind++)
        MC_TRY(gather(painter, into, symbol, &geometry->shapes[kind]));
    return ++into->features < WHOLE_FEATURES ? MC_OK : mc_whole_lay(painter, to, into, symbol);
}

mc_error *
mc_whole_lay(mc_painter *painter, mc_pass *to, mc_whole *gathered, const mc_symbolizer *symbol)
{
    mc_pixels *pixels;
    if (gathered->features == 0)
        return MC_OK;
    MC_TRY(mc_painter_target(&pixels, painter, to));
    if (gathered->edges != NULL)
        mc_edges_flush(gathered->edges, gathered->fill);
    if (gathered->fill != NULL)
        mc_brush_fill(pixels, gathered->fill, MC_NON_ZERO, symbol->fill.color, painter->mask);
    if (gathered->wide != NULL)
        mc_brush_fill(pixels, gathered->wide, MC_NON_ZERO, symbol->stroke.ink.color, painter->mask);
    if (gathered->thin != NULL)
        mc_brush_outline(pixels, gathered->thin, symbol->stroke.ink.color);
    gathered->features = 0;
    return MC_OK;
}
