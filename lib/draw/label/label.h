/*
 * Labels of a map: gathered while the features of all its layers are read, then put where there is room, and drawn on
 * top. No label is cut: each label lies wholly inside the map, at least one pixel from the map's edge, and beside the
 * symbols that painters tell of.
 */
#ifndef MC_DRAW_LABEL_LABEL_H
#define MC_DRAW_LABEL_LABEL_H

#include "draw/paint/painter.h"
#include "draw/raster/canvas.h"
#include "draw/style/style.h"

typedef struct mc_labels mc_labels;

/* An empty set of labels for a map, in `pool`. */
mc_labels *mc_labels_create(mc_canvas *canvas, apr_pool_t *pool);

/* The map goes to a client as it is, no tiles are cut of it: labels that allow it (option `partials`) may be cut off at
 * its edge. */
void mc_labels_allow_partials(mc_labels *labels);

/* What painters are to tell of the symbols that labels keep off; lives as long as the labels. */
const mc_obstacle_visitor *mc_labels_obstacles(mc_labels *labels);

/* Pixels of the map for a pixel of a style; 1 unless it is said. */
void mc_labels_set_density(mc_labels *labels, double density);

/* The labels that are gathered from now on belong to the next layer, drawn at a scale (denominator). */
void mc_labels_next_layer(mc_labels *labels, double scale);

/*
 * Gathers the labels of a feature by one rule: an mc_rule_visitor of painters, its baton is an mc_labels. Labels are
 * put in the order of priority, then upper layers first, then the feature's id, in whatever order the features come. Of
 * more than MC_LABELS_MAX labels the first ones in this order are kept.
 */
mc_error *mc_labels_visit(void *labels, const mc_rule_style *rule, const mc_feature *feature, mc_ctx *ctx,
                          apr_pool_t *scratch) MC_CHECKED;

/* Places and draws the labels. MC_ERR_UNAVAILABLE where there is no font, or the module is not installed. */
mc_error *mc_labels_finish(mc_labels *labels, mc_ctx *ctx) MC_CHECKED;

enum {
    MC_LABELS_MAX = 20000,
    MC_LABEL_POINTS_MAX = 1 << 21, /* of all lines that are kept */
};

#endif
