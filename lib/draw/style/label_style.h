/* Text symbolizers (OGC 05-077r4, 11.4; OGC 02-070, 11.4), with GeoServer's options. */
#ifndef MC_DRAW_STYLE_LABEL_STYLE_H
#define MC_DRAW_STYLE_LABEL_STYLE_H

#include "draw/font/text.h"
#include "draw/style/style.h"

/* A number: constant, or computed from the attributes of a feature. */
typedef struct mc_label_number {
    double constant;
    const mc_expression *value; /* or NULL */
} mc_label_number;

typedef enum mc_label_placement { MC_LABEL_POINT, MC_LABEL_LINE } mc_label_placement;

/* How the graphic behind a label is fitted to its text (GeoServer's option `graphic-resize`). */
typedef enum mc_label_resize { MC_RESIZE_NONE, MC_RESIZE_STRETCH, MC_RESIZE_PROPORTIONAL } mc_label_resize;

struct mc_text_symbol {
    int number;            /* place among the text symbolizers of the style */
    mc_uom uom;            /* of all lengths */
    mc_geometry_part part; /* of the geometry */
    const mc_expression *label;
    mc_font_spec font;
    mc_label_number size;
    mc_paint fill, halo; /* halo.present */
    mc_label_number halo_radius;
    mc_label_placement placement;
    bool anchored;                                  /* the anchor is given; else the kind of geometry decides */
    mc_label_number anchor_x, anchor_y;             /* shares of the label's box, from its lower left corner */
    mc_label_number displacement_x, displacement_y; /* to the right and up */
    mc_label_number rotation;                       /* degrees clockwise */
    mc_label_number offset;                         /* to the left of a line in its direction */
    bool aligned;                                   /* along the line; else horizontal */
    bool repeated;
    double gap, initial_gap;  /* between labels of a line, and before the first one */
    bool generalize;          /* GeneralizeLine: the text follows a smoothed line */
    mc_label_number priority; /* the highest first */
    /* GeoServer's element and options */
    bool shielded;      /* there is a graphic behind the label */
    mc_graphic graphic; /* without patterns that are computed */
    mc_label_resize resize;
    double graphic_margin[4]; /* around the text where the graphic is resized: top, right, bottom, left */
    double repeat;            /* between the middles of labels of a line; 0: one label */
    double max_displacement;  /* how far a label may be moved to find room */
    double space_around;      /* kept free around the label; below 0: overlap that is allowed */
    double auto_wrap;         /* width of a line of text; 0: text is not broken into lines */
    double max_angle;         /* degrees between neighbouring glyphs */
    bool group, label_all;    /* one label for all features of the same text, or for each part */
    bool curved;              /* followLine */
    bool any_direction;       /* no forceLeftToRight: text is upside down where the line runs to the left */
    bool overlapping;         /* conflictResolution false: drawn in any case, and other labels may lie over the label */
    bool partial;             /* partials: may be cut off at the edge of a map that is drawn as a whole */
    bool underlined;          /* underlineText */
};

#endif
