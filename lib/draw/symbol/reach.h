/* How far symbols reach beyond their geometry: what lies so far beside a tile may be seen in the tile. */
#ifndef MC_DRAW_SYMBOL_REACH_H
#define MC_DRAW_SYMBOL_REACH_H

#include "draw/style/style.h"

/* The reach of a symbolizer, in the unit of its sizes. A length from attributes is taken for 128 units at most, a
 * width for 64. */
double mc_symbolizer_reach(const mc_symbolizer *symbol);

#endif
