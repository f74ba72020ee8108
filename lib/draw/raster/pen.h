/* Pens: how lines are stroked. */
#ifndef MC_DRAW_RASTER_PEN_H
#define MC_DRAW_RASTER_PEN_H

typedef enum mc_line_join { MC_JOIN_MITRE, MC_JOIN_ROUND, MC_JOIN_BEVEL } mc_line_join;
typedef enum mc_line_cap { MC_CAP_BUTT, MC_CAP_ROUND, MC_CAP_SQUARE } mc_line_cap;

/* Wider strokes are not made. */
enum { MC_STROKE_WIDTH_MAX = 1024 };

/* How a line is stroked. Lengths in pixels. */
typedef struct mc_pen {
    double width;
    mc_line_join join;
    mc_line_cap cap;
    const double *dashes; /* on and off in turn, an even number of them, their sum above 0; NULL: none */
    int dash_count;
    double dash_offset;
    double offset;    /* to the left of the line in its direction */
    double dash_unit; /* pixels for a unit of the dashes */
} mc_pen;

#endif
