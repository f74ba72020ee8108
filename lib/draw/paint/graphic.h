/* Graphics at points, along lines and all over areas (OGC 05-077r4, 11.3). */
#ifndef MC_DRAW_PAINT_GRAPHIC_H
#define MC_DRAW_PAINT_GRAPHIC_H

#include "draw/paint/painter.h"
#include "draw/symbol/mark.h"

/* A graphic resolved for one feature: all computed values are known. */
typedef struct mc_drawing {
    mc_symbolizer symbol; /* how the mark is painted; sizes in pixels */
    const mc_mark *mark;  /* or */
    mc_pixels *picture;
    mc_placing placing; /* `at` is the displacement from the point; the other members as usual */
    unsigned opacity;   /* of the picture */
    double reach;       /* pixels around the point that the graphic may touch */
    bool keeps_labels_off;
    float box[4]; /* around the point, where keeps_labels_off: left, top, right, bottom */
} mc_drawing;

/* *any is false where there is nothing to draw. The drawing is valid until the feature is done. */
mc_error *mc_graphic_resolve(mc_drawing *drawing, bool *any, mc_painter *painter, const mc_symbolizer *symbol,
                             const mc_graphic *graphic, const mc_feature *feature) MC_CHECKED;

/* Draws a graphic once, turned by `turn` more degrees. */
mc_error *mc_graphic_draw(const mc_drawing *drawing, mc_painter *painter, mc_canvas *canvas, mc_shape_point at,
                          double turn, const mc_feature *feature) MC_CHECKED;

/* Paints a point symbolizer for a feature. */
mc_error *mc_graphic_paint(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol,
                           const mc_feature *feature) MC_CHECKED;

/* Paints the graphics of a symbolizer's stroke along the lines of a shape. */
mc_error *mc_graphic_along(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol, const mc_shape *shape,
                           const mc_feature *feature) MC_CHECKED;

/*
 * Repeats a graphic over the covered pixels of the map, and empties the plane `coverage`. The repetition is aligned to
 * the pixel grid of the level, so that neighbouring tiles fit together.
 */
mc_error *mc_pattern_lay(mc_painter *painter, mc_canvas *canvas, mc_area *coverage, mc_fill_rule rule,
                         const mc_symbolizer *symbol, const mc_graphic *graphic, const mc_feature *feature) MC_CHECKED;

#endif
