/*
 * Rules of constant opaque ink whose features need not be kept apart: all of them go into one plane for the fill and
 * one for the stroke, and each plane is laid down once.
 */
#include <math.h>
#include <string.h>

#include "draw/paint/painter_private.h"
#include "draw/raster/bands.h"
#include "vector/geometry/shape_prune.h"

enum {
    PARTS = 32,         /* of the map's width and height, in which is counted how deep areas lie over each other */
    DEPTH_MAX = 16000,  /* deeper, the sums of a plane might leave their range: it is painted and begun anew */
    AREAS_OF_POINT = 3, /* that a stroke has at most: of the segment, the join and an end */
};

static inline int
map_part_of(int32_t at, int size)
{
    int64_t part = (int64_t)at * PARTS / ((int64_t)size * MC_SUBPIXELS);
    return part < 0 ? 0 : part >= PARTS ? PARTS - 1 : (int)part;
}

/* Counts `areas` wherever the shape may be, with `reach` around it. */
static void
count_areas(mc_merged_layer *into, const mc_canvas *canvas, const mc_shape *shape, int areas, int32_t reach)
{
    int32_t minx, miny, maxx, maxy;
    if (!mc_shape_bounds(shape, &minx, &miny, &maxx, &maxy))
        return;
    int left = map_part_of(minx - reach, canvas->width), right = map_part_of(maxx + reach, canvas->width);
    int top = map_part_of(miny - reach, canvas->height), bottom = map_part_of(maxy + reach, canvas->height);
    areas = areas > DEPTH_MAX ? DEPTH_MAX : areas;
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            uint16_t *depth = &into->depths[y * PARTS + x];
            *depth = (uint16_t)(*depth + areas);
            into->deepest = *depth > into->deepest ? *depth : into->deepest;
        }
}

static mc_error *
gather_wide(mc_painter *painter, mc_merged_layer *into, const mc_symbolizer *symbol, const mc_shape *shape,
            double width)
{
    mc_pen pen = mc_painter_pen(painter, symbol, width);
    if (mc_bands_suit(shape, &pen)) {
        MC_TRY(mc_painter_outline(&into->bands, painter, true));
        mc_bands_add(into->bands, shape, &pen);
        return MC_OK;
    }
    int32_t reach = (int32_t)((width * 4 + fabs(pen.offset) * 2) * MC_SUBPIXELS); /* of mitres */
    MC_TRY(mc_painter_area(&into->wide, painter, true));
    count_areas(into, painter->canvas, shape,
                shape->point_count > DEPTH_MAX ? DEPTH_MAX : shape->point_count * AREAS_OF_POINT, reach);
    mc_stroker_add(into->wide, shape, &pen, &painter->scratch);
    return MC_OK;
}

static mc_error *
gather_merged_shape(mc_painter *painter, mc_merged_layer *into, const mc_symbolizer *symbol, const mc_shape *shape)
{
    if (!mc_painter_draws(symbol, shape))
        return MC_OK;
    bool filled = symbol->kind == MC_SYMBOL_POLYGON && symbol->fill.present;
    double width = symbol->stroke.paint.present ? mc_painter_pixels(painter, symbol, symbol->stroke.width) : 0;
    shape = mc_painter_straight(painter, symbol, shape);
    bool thin = width > 0 && mc_painter_is_thin(&symbol->stroke, width, symbol);
    if (thin || width == 0) {
        shape = mc_shape_prune(shape, &painter->scratch, painter->canvas->width, painter->canvas->height, width);
        if (shape->part_count == 0)
            return MC_OK;
    }
    if (filled) {
        MC_TRY(mc_painter_area(&into->fill, painter, true));
        count_areas(into, painter->canvas, shape, shape->part_count, 0);
    }
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
mc_merged_layer_add(mc_painter *painter, mc_pass *to, mc_merged_layer *into, const mc_symbolizer *symbol,
                    const mc_geometry *geometry)
{
    if (into->depths == NULL)
        into->depths = apr_pcalloc(painter->pool, sizeof(*into->depths) * PARTS * PARTS);
    into->used = true;
    for (int kind = 0; kind < 3; kind++)
        MC_TRY(gather_merged_shape(painter, into, symbol, &geometry->shapes[kind]));
    return into->deepest < DEPTH_MAX ? MC_OK : mc_merged_layer_paint(painter, to, into, symbol, false);
}

/* At the end (`last`) all passes before lie on the map; a pass that is painted earlier needs a canvas of its own. */
static mc_error *
canvas_of(mc_canvas **canvas, mc_painter *painter, mc_pass *to, bool last)
{
    *canvas = painter->canvas;
    if (to->on_map || (last && to->canvas == NULL))
        return MC_OK;
    return mc_painter_target(canvas, painter, to);
}

mc_error *
mc_merged_layer_paint(mc_painter *painter, mc_pass *to, mc_merged_layer *gathered, const mc_symbolizer *symbol,
                      bool last)
{
    mc_canvas *canvas;
    if (!gathered->used)
        return MC_OK;
    MC_TRY(canvas_of(&canvas, painter, to, last));
    if (gathered->edges != NULL)
        mc_edges_flush(gathered->edges, gathered->fill);
    if (gathered->fill != NULL)
        MC_TRY(mc_canvas_fill(canvas, gathered->fill, MC_NON_ZERO, symbol->fill.color));
    if (gathered->wide != NULL)
        MC_TRY(mc_canvas_fill(canvas, gathered->wide, MC_NON_ZERO, symbol->stroke.paint.color));
    if (gathered->bands != NULL)
        MC_TRY(mc_canvas_outline(canvas, gathered->bands, symbol->stroke.paint.color));
    if (gathered->thin != NULL)
        MC_TRY(mc_canvas_outline(canvas, gathered->thin, symbol->stroke.paint.color));
    memset(gathered->depths, 0, sizeof(*gathered->depths) * PARTS * PARTS);
    gathered->deepest = 0;
    gathered->used = false;
    return MC_OK;
}
