/* Painting the features of a layer by a style. */
#ifndef MC_DRAW_PAINT_PAINTER_H
#define MC_DRAW_PAINT_PAINTER_H

#include "draw/raster/canvas.h"
#include "draw/style/style.h"

typedef struct mc_painter mc_painter;

/*
 * A painter of one layer over `target`, the map of `query`; both live as long as the painter. `by_feature`: features
 * are painted one by one in painter's order; else layers that allow it are merged: all of their features are painted at
 * once (DESIGN.md, Painting). MC_ERR_LIMIT for maps that are too large.
 */
mc_error *mc_painter_create(mc_painter **painter, const mc_style *style, mc_pixels *target,
                            const mc_feature_query *query, bool by_feature, apr_pool_t *pool) MC_CHECKED;

/* Visits a feature together with each rule that applies to it. An error ends the painting. `scratch` is cleared after
 * the feature. */
typedef mc_error *mc_rule_visitor(void *baton, const mc_rule_style *rule, const mc_feature *feature, mc_ctx *ctx,
                                  apr_pool_t *scratch);

/* Hands all features with their rules to a collector of labels (mc_labels_visit, whose baton is `labels`) before they
 * are painted. Without a collector there are no labels. */
void mc_painter_set_labels(mc_painter *painter, mc_rule_visitor *visit, void *labels);

/* Where labels shall not be. Pixels of the map; what lies beside the map may be told too. */
typedef struct mc_obstacle_visitor {
    void *baton;
    /* A graphic that stands at a point of the geometry, and the box around the graphic: left, top, right, bottom. */
    void (*graphic)(void *baton, mc_shape_point at, const float box[4]);
    /* Coverage of `count` pixels of a row by a line or an area, from column x on. */
    void (*row)(void *baton, int x, int y, const uint8_t *coverage, int count);
} mc_obstacle_visitor;

/* Tells of each symbol that labels keep off, whatever the order of the features; `visitor` lives as long as the
 * painter. */
void mc_painter_set_obstacles(mc_painter *painter, const mc_obstacle_visitor *visitor);

/* Whether a style has labels at this scale. */
bool mc_painter_labels(const mc_style *style, double scale);

/* A painter over a canvas, which may stay one of indexed colours. */
mc_error *mc_painter_create_on(mc_painter **painter, const mc_style *style, mc_canvas *canvas,
                               const mc_feature_query *query, bool by_feature, apr_pool_t *pool) MC_CHECKED;

/* An mc_feature_visitor; the painter is its baton. */
mc_error *mc_painter_visit(void *painter, const mc_feature *feature, mc_ctx *ctx) MC_CHECKED;

/* Completes the painting. Before, parts may be missing on the target. */
mc_error *mc_painter_finish(mc_painter *painter, mc_ctx *ctx) MC_CHECKED;

/* Which canvas suits the styles of all layers of a map. */
typedef struct mc_painter_needs {
    bool merged; /* merged layers only: a canvas of the colours that occur */
    bool suits;  /* only the colours in `inks`: a canvas with a palette */
    mc_inks inks;
} mc_painter_needs;

/* Adds the needs of a layer's style at a scale. The first call gets { .merged = true, .suits = true }. */
void mc_painter_needs_add(mc_painter_needs *needs, const mc_style *style, double scale);

/* Whether any rule of the style applies at this scale; else the layer need not be read. */
bool mc_painter_shows(const mc_style *style, double scale);

/* Pixels by which the style's symbols reach over their geometry at this scale: the margin of the query. */
double mc_painter_margin(const mc_style *style, double scale);

/* The same of one rule. */
double mc_painter_rule_margin(const mc_rule_style *rule, double scale);

#endif
