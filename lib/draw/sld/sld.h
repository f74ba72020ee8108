/* Styles from SLD 1.0 (OGC 02-070) and SE 1.1 (OGC 05-077r4) documents. */
#ifndef MC_DRAW_SLD_SLD_H
#define MC_DRAW_SLD_SLD_H

#include "draw/style/style.h"

/*
 * Reads a file: its first user style, or the user style called `name`. An element that cannot be drawn here is a
 * complaint of kind MC_NOT_BUILT with file and line, at most one complaint for each element. NULL after a complaint of
 * kind MC_REFUSED; the complaint is at `at` where the file as a whole is at fault.
 */
const mc_style *mc_style_read(const char *path, const char *name, const mc_node *at, mc_build *build);

#endif
