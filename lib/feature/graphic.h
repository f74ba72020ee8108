/* Graphics at points of the map (OGC 05-077r4, 11.3). */
#ifndef MC_FEATURE_GRAPHIC_H
#define MC_FEATURE_GRAPHIC_H

#include "feature/painter.h"

/* Paints a point symbolizer for a feature. */
mc_error *mc_graphic_paint(mc_painter *painter, mc_pixels *pixels, const mc_symbolizer *symbol,
                           const mc_feature *feature) MC_CHECKED;

#endif
