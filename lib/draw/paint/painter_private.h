/* The parts of a painter, shared by the files of this room. */
#ifndef MC_DRAW_PAINT_PAINTER_PRIVATE_H
#define MC_DRAW_PAINT_PAINTER_PRIVATE_H

#include <apr_hash.h>

#include "draw/paint/kept.h"
#include "draw/paint/painter.h"
#include "draw/raster/edges.h"
#include "draw/raster/stroke_tile.h"
#include "draw/raster/stroker.h"
#include "draw/symbol/mark.h"

enum {
    MC_PASSES_AT_ONCE = 16, /* that are painted while features come; the features of all others are kept */
    MC_PICTURES_MAX = 16,
    MC_CELLS_MAX = 16,
    MC_PENS_KNOWN = 16,
};

/* The features of one rule, gathered to be painted at once. */
typedef struct mc_merged_layer {
    mc_area *fill, *wide; /* NULL: not used so far */
    mc_outline *thin, *bands;
    mc_edges *edges;  /* of polygons */
    uint16_t *depths; /* for each part of the map, how many areas lie over each other at most */
    int deepest;      /* the largest of `depths` */
    bool used;        /* features have been gathered that are not painted yet */
} mc_merged_layer;

/* A pass that draws or labels anything at the scale of the map. */
typedef struct mc_pass {
    const mc_style_pass *style;
    struct mc_rules *rules;         /* draw/style/rules.h */
    bool on_map;                    /* painted straight onto the map */
    mc_canvas *canvas;              /* of a pass that is not; NULL: nothing painted yet */
    mc_kept_group *kept;            /* painted at the end; NULL: while features come */
    mc_merged_layer *merged_layers; /* by rule; NULL: feature by feature */
} mc_pass;

/* Pictures and cells of patterns that are the same for all features. */
typedef struct mc_known_picture {
    const mc_picture *picture;
    double height;
    mc_pixels *pixels; /* NULL: the picture cannot be read */
} mc_known_picture;

typedef struct mc_known_cell {
    const mc_graphic *graphic;
    mc_pixels *pixels;
} mc_known_cell;

/* The pen of a symbolizer of the style that is the same for all features. */
typedef struct mc_known_pen {
    const mc_symbolizer *symbol; /* NULL: none */
    mc_pen pen;
} mc_known_pen;

/* Marks that are the same for all features (draw/paint/graphic.c). */
typedef struct mc_known_mark mc_known_mark;

/* Marks that have been painted (draw/paint/sprite.c). */
typedef struct mc_sprites mc_sprites;

/* Paints the fill and the stroke of a symbolizer for one shape. Graphics call it through the painter, because a stroke
 * may be made of graphics, and a graphic of strokes. */
typedef mc_error *mc_shape_painter(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol,
                                   const mc_shape *shape, const mc_feature *feature);

struct mc_painter {
    const mc_style *style;
    mc_canvas *canvas;
    const mc_feature_query *query;
    mc_shape_painter *paint_shape; /* mc_painter_shape */
    mc_pass *passes;               /* those that draw or label anything at this scale */
    int pass_count;
    mc_kept *kept;         /* NULL: no pass is painted at the end */
    mc_merged_layer spare; /* planes of the passes that have been painted at the end */
    mc_area *coverage;     /* for one symbol of one feature */
    mc_outline *outline;
    mc_stroke_tile *stroke_tile; /* NULL: not used so far */
    uint8_t *mask;
    mc_rule_visitor *visit_labels;        /* NULL: there are no labels */
    void *labels;                         /* baton of visit_labels */
    const mc_obstacle_visitor *obstacles; /* NULL: nobody asks */
    uint8_t *plane;                       /* for areas with an offset; NULL: not used so far */
    mc_shape scratch, mark, moved, places, straight;
    mc_known_picture pictures[MC_PICTURES_MAX];
    mc_known_cell cells[MC_CELLS_MAX];
    int picture_count, cell_count;
    const mc_symbolizer *of_style;    /* the style's symbolizer that is being painted; those of marks come and go */
    mc_known_pen pens[MC_PENS_KNOWN]; /* of the style's symbolizers, by a hash of their places */
    mc_known_mark *marks;             /* a list */
    mc_sprites *sprites;              /* NULL: none so far */
    apr_hash_t *placed;               /* by filters, for `placed_for` */
    apr_hash_t *worlds;               /* `placed` by query; NULL: none so far */
    const mc_feature_query *placed_for;
    bool warned;               /* a missing picture has been logged */
    mc_ctx *ctx;               /* of the feature that is being painted */
    apr_pool_t *pool, *values; /* values: cleared after each feature */
};

/* A painter of single symbols: without a style, without rules. An inner painter paints onto a canvas of its own, in the
 * context of an outer painter. */
mc_painter *mc_painter_create_bare(mc_canvas *canvas, const mc_feature_query *query, mc_shape_painter *paint_shape,
                                   apr_pool_t *pool);
mc_painter *mc_painter_create_inner(const mc_painter *outer, mc_canvas *canvas, const mc_feature_query *query,
                                    apr_pool_t *pool);

/* A size of a symbolizer in pixels, MC_STROKE_WIDTH_MAX at most. */
double mc_painter_pixels(const mc_painter *painter, const mc_symbolizer *symbol, double size);

/* Pixels for a unit of a symbolizer's sizes: those of styles, those of the map. */
double mc_uom_pixels(mc_uom uom, double scale);
double mc_painter_unit(const mc_painter *painter, const mc_symbolizer *symbol);

/* A number that may be computed for each feature (value is not NULL). */
double mc_painter_value(mc_painter *painter, const mc_expression *value, double constant, const mc_feature *feature);

/* The canvas of a pass, with a palette or pixels. */
mc_error *mc_painter_target(mc_canvas **canvas, mc_painter *painter, mc_pass *to) MC_CHECKED;

/* A plane, created at its first use. `merged`: of a merged layer. Coverage is coarse for merged layers and on a canvas
 * with a palette, so that few enough colours occur. */
mc_error *mc_painter_area(mc_area **area, mc_painter *painter, bool merged) MC_CHECKED;
mc_error *mc_painter_outline(mc_outline **outline, mc_painter *painter, bool merged) MC_CHECKED;

/* Whether a stroke is painted by distance, else as an area with a pen. */
bool mc_painter_is_thin(const mc_stroke *stroke, double width, const mc_symbolizer *symbol);
mc_pen mc_painter_pen(const mc_painter *painter, const mc_symbolizer *symbol, double width);

/* Which shape of a geometry a symbol draws: polygons have outlines, but lines have no inside. */
bool mc_painter_draws(const mc_symbolizer *symbol, const mc_shape *shape);

bool mc_painter_is_moved(const mc_symbolizer *symbol);

/* Whether the rules of a pass that apply at a scale can be merged: features need no order, and there is one such rule,
 * with one opaque fill and stroke. Several merged rules would be laid one after the other, while features belong over
 * each other in their own order. */
bool mc_painter_pass_is_merged(const mc_style_pass *style, double scale);

/*
 * Lines without the vertices that a stroke does not need: those at most half as far from the remaining line as thinning
 * may move a vertex. The result depends on the whole line only. Other shapes, and lines with dashes, are returned as
 * they are.
 */
const mc_shape *mc_painter_straight(mc_painter *painter, const mc_symbolizer *symbol, const mc_shape *shape);

/* Adds a feature to a merged layer; paints all features that were added (`last`: no more features come). */
mc_error *mc_merged_layer_add(mc_painter *painter, mc_pass *to, mc_merged_layer *into, const mc_symbolizer *symbol,
                              const mc_geometry *geometry) MC_CHECKED;
mc_error *mc_merged_layer_paint(mc_painter *painter, mc_pass *to, mc_merged_layer *gathered,
                                const mc_symbolizer *symbol, bool last) MC_CHECKED;
mc_color mc_paint_color(const mc_paint *paint, const mc_feature *feature, apr_pool_t *scratch);
mc_color mc_painter_color(mc_painter *painter, const mc_paint *paint, const mc_feature *feature);

/* A displacement in 1/256 pixel, y down. */
mc_shape_point mc_painter_displacement(mc_painter *painter, const mc_symbolizer *symbol, const mc_pair *pair,
                                       const mc_feature *feature);

/* Paints the fill of an area that has an offset. */
mc_error *mc_painter_offset_fill(mc_painter *painter, mc_canvas *canvas, const mc_symbolizer *symbol,
                                 const mc_shape *shape, const mc_feature *feature) MC_CHECKED;

/* The box of a resolved graphic, whose outline is `stroke_width` pixels wide, around its point (0, 0). False where
 * nothing of the graphic can be seen. */
struct mc_drawing;
bool mc_obstacle_box(float box[4], const struct mc_drawing *drawing, double stroke_width);

/* Tells of the graphics at the painter's places, and of a line or an area. */
void mc_obstacle_graphics(const mc_painter *painter, const struct mc_drawing *drawing);
mc_error *mc_obstacle_shape(mc_painter *painter, const mc_symbolizer *symbol, const mc_shape *shape,
                            const mc_feature *feature) MC_CHECKED;

mc_shape_painter mc_painter_shape;

/* Whether bands of the map can be painted by themselves: features are painted as they come and nothing looks at all of
 * them, and how far symbols reach is known for certain. */
bool mc_painter_can_part(const mc_painter *painter);

/* Whether lines and areas may be painted elsewhere than in their bounds: the centre of an area whose rings cross may
 * lie anywhere. */
bool mc_painter_leaves_bounds(const mc_painter *painter);

/* A painter of some rows of a painter's map; what it paints is there at once, it is not finished. `query`: that of the
 * map, moved to these rows. mc_painter_can_part holds. */
mc_error *mc_painter_create_lane(mc_painter **lane, mc_painter *whole, const mc_feature_query *query, int top,
                                 int height, apr_pool_t *pool) MC_CHECKED;

#endif
