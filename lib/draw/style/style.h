/*
 * Styles: rules that say how features are drawn. The model follows Symbology Encoding 1.1 (OGC 05-077r4). SLD 1.0 files
 * are read into the same model (draw/sld/sld.h).
 */
#ifndef MC_DRAW_STYLE_STYLE_H
#define MC_DRAW_STYLE_STYLE_H

#include "draw/raster/color.h"
#include "draw/raster/pen.h"
#include "mapcache/config.h"
#include "vector/feature/feature.h"
#include "vector/geometry/places.h"

/* A value for each feature: a constant, or computed from attributes. */
typedef struct mc_expression mc_expression;

/* A condition on a feature (OGC 09-026r1). NULL is true. */
typedef struct mc_filter mc_filter;

/* All three functions take memory from `scratch`; the caller clears `scratch` after each feature. */
bool mc_filter_matches(const mc_filter *filter, const mc_feature *feature, apr_pool_t *scratch);

/* The value as text; NULL for null. */
const char *mc_expression_text(const mc_expression *expression, const mc_feature *feature, apr_pool_t *scratch);
/* The value as a number; `otherwise` where the value is no number. */
double mc_expression_number(const mc_expression *expression, const mc_feature *feature, double otherwise,
                            apr_pool_t *scratch);

typedef struct mc_mark mc_mark;       /* draw/symbol/mark.h */
typedef struct mc_picture mc_picture; /* draw/symbol/picture.h */
typedef struct mc_graphic mc_graphic;

/* A colour with an opacity that may be computed. */
typedef struct mc_paint {
    bool present;
    mc_color color;                   /* where neither colour nor opacity is computed */
    const mc_expression *color_value; /* "#RRGGBB"; NULL: constant */
    const mc_expression *opacity;     /* 0..1; or NULL */
    const mc_graphic *pattern;        /* repeated over the area instead of the colour (GraphicFill); or NULL */
} mc_paint;

/* Where the graphics of a line stand: in a row with gaps, or only at some points of the line. */
typedef enum mc_along { MC_ALONG_ROW, MC_ALONG_VERTICES, MC_ALONG_FIRST, MC_ALONG_LAST, MC_ALONG_MIDDLE } mc_along;

typedef struct mc_stroke {
    mc_paint paint;
    double width;                     /* pixels */
    const mc_expression *width_value; /* or NULL */
    mc_line_join join;
    mc_line_cap cap;
    const double *dashes; /* pixels, on and off in turn */
    int dash_count;
    double dash_offset;
    const mc_graphic *graphic; /* repeated along the line instead of a colour (GraphicStroke); or NULL */
    double gap, initial_gap;   /* between the graphics, before the first one */
    mc_along along;
    bool upright; /* the graphics do not turn with the line */
} mc_stroke;

/* A pair of lengths or shares that may be computed: constants where the expressions are NULL. */
typedef struct mc_pair {
    double x, y;
    const mc_expression *x_value, *y_value;
} mc_pair;

struct mc_graphic {
    const mc_mark *mark;       /* or */
    const mc_picture *picture; /* one of the two */
    mc_paint fill;             /* of the mark */
    mc_stroke stroke;
    double size;                        /* height in pixels; 0: the picture's own height */
    const mc_expression *size_value;    /* or NULL */
    double flatness;                    /* of marks: width / height, and `size` is the width; 0: not given */
    const mc_expression *rotation;      /* degrees clockwise; or NULL */
    double opacity;                     /* of the whole graphic, 0..1 */
    const mc_expression *opacity_value; /* or NULL */
    mc_pair anchor;                     /* lies on the point: shares of the size, from the lower left corner */
    mc_pair displacement;               /* pixels to the right and up */
    double margin[4];                   /* around the graphic in a pattern: top, right, bottom, left */
    double cell_x, cell_y;              /* distance of the graphics in a pattern; 0: size and margin */
};

typedef enum mc_symbolizer_kind { MC_SYMBOL_POLYGON, MC_SYMBOL_LINE, MC_SYMBOL_POINT } mc_symbolizer_kind;

/* Unit of the sizes of a symbolizer (OGC 05-077r4, 10.2): pixels, or lengths on the ground. */
typedef enum mc_uom { MC_UOM_PIXEL, MC_UOM_METRE, MC_UOM_FOOT } mc_uom;

typedef struct mc_symbolizer {
    mc_symbolizer_kind kind;
    mc_uom uom;            /* of all sizes */
    mc_geometry_part part; /* of the geometry */
    mc_paint fill;         /* POLYGON */
    mc_stroke stroke;      /* POLYGON, LINE; stroke.paint.present */
    double offset;         /* LINE: pixels to the left of the line; POLYGON: to the outside */
    mc_pair displacement;  /* POLYGON, LINE: pixels to the right and up */
    mc_graphic graphic;    /* POINT */
    bool by_direction;     /* POLYGON: rings may overlap; the direction of a ring tells areas from holes */
    bool obstacle;         /* labels keep off what is painted (GeoServer's option labelObstacle) */
} mc_symbolizer;

/* Labels: draw/style/label_style.h. */
typedef struct mc_text_symbol mc_text_symbol;

/* Where a rule counts (GeoServer's option of that name). */
typedef enum mc_inclusion { MC_INCLUSION_NORMAL, MC_INCLUSION_MAP_ONLY, MC_INCLUSION_LEGEND_ONLY } mc_inclusion;

typedef struct mc_rule_style {
    const char *name, *title; /* for the legend */
    mc_inclusion inclusion;
    const mc_filter *filter; /* NULL: every feature */
    bool is_else;
    double min_scale, max_scale; /* denominators: min <= scale < max; 0 and HUGE_VAL: no limit */
    const mc_graphic *legend;    /* stands for the rule in a legend; NULL: the symbolizers do */
    const mc_symbolizer *symbolizers;
    int symbolizer_count;
    const mc_text_symbol *texts;
    int text_count;
} mc_rule_style;

/* One value by which features are sorted. */
typedef struct mc_style_sort {
    const mc_expression *value;
    bool descending;
} mc_style_sort;

/* Passes of a style (FeatureTypeStyle). */
enum { MC_STYLE_PASSES_MAX = 256 };

/* Features are painted through each pass in turn (FeatureTypeStyle): casings under all fillings of a road net. */
typedef struct mc_style_pass {
    const mc_rule_style *rules;
    int rule_count;
    bool first_only;           /* of the rules that fit, only the first one counts */
    const mc_style_sort *sort; /* features are painted in this order; NULL: as they come */
    int sort_count;
    const char *sort_group; /* passes that follow each other and have the same one are sorted together; or NULL */
} mc_style_pass;

typedef struct mc_style {
    const char *name, *title;
    const mc_style_pass *passes;
    int pass_count;
    const char *const *attributes; /* of filters and values; expressions name an attribute by its index */
    int attribute_count;
    bool ids;        /* labels, filters or values look at the numbers of features */
    uint64_t digest; /* of all that the style says: overviews are built for one style */
} mc_style;

#endif
