/*
 * Legends: the symbol and the title of each rule of some styles, in rows (OGC 05-078r4, 12). Rules of the same title
 * are one row: a casing and the line over it are one symbol.
 */
#ifndef MC_DRAW_LABEL_LEGEND_H
#define MC_DRAW_LABEL_LEGEND_H

#include "draw/style/style.h"

typedef struct mc_legend mc_legend;

typedef struct mc_legend_options {
    int width, height; /* of a symbol, pixels */
    double density;    /* pixels for a pixel of a style: symbols and titles are so much larger; 0: as 1 */
    double scale;      /* denominator: only rules that apply there; 0: all */
    const char *rule;  /* only the symbol of the rule of that name or title, without its title; NULL: all */
    bool transparent;  /* else on white */
} mc_legend_options;

enum { MC_LEGEND_SYMBOL = 20, MC_LEGEND_SYMBOL_MAX = 256, MC_LEGEND_ROWS_MAX = 500 };

/* Copies the options. */
mc_legend *mc_legend_create(const mc_legend_options *options, apr_pool_t *pool);

/* Adds the rules of a layer's style below the rows that the legend has. */
void mc_legend_add(mc_legend *legend, const char *layer, const mc_style *style);

/* Whether the legend has no row. */
bool mc_legend_is_empty(const mc_legend *legend);

/* The legend's size in pixels. Where titles cannot be drawn (no fonts, no module) the legend has symbols only, and a
 * line goes to the log. */
void mc_legend_measure(mc_legend *legend, int *width, int *height, mc_ctx *ctx);

/* Draws the legend; the pixels are attached to `pool`. A legend without rows is one empty symbol. */
mc_error *mc_legend_draw(mc_pixels **pixels, mc_legend *legend, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
