/*
 * Strokes that wait to be painted: where lines are dense most of what is painted first disappears under what comes
 * later. They are painted from the last one to the first, and what lies wholly under pixels that are covered by then is
 * left out; what remains is laid in painter's order. So nothing looks different.
 */
#ifndef MC_FEATURE_PILE_H
#define MC_FEATURE_PILE_H

#include "feature/painter_private.h"

/* A pile of one pass, for a painter's canvas; it lives as long as the painter. */
mc_pile *mc_pile_create(mc_painter *painter);

/*
 * Puts a feature's lines on the pile, if they can wait: a plain stroke, small enough. Else *taken is false, and what is
 * there is laid, so that the feature may be painted now.
 */
mc_error *mc_pile_take(bool *taken, mc_pile *pile, mc_canvas *canvas, const mc_symbolizer *symbol,
                       const mc_feature *feature) MC_CHECKED;

/* Lays all that is there. The canvas is the same each time. */
mc_error *mc_pile_lay(mc_pile *pile, mc_canvas *canvas) MC_CHECKED;

#endif
