/* What the files that place labels share. Lengths are pixels of the map, y downwards. */
#ifndef MC_DRAW_LABEL_LABEL_PRIVATE_H
#define MC_DRAW_LABEL_LABEL_PRIVATE_H

#include "draw/label/label.h"
#include "draw/style/label_style.h"
#include "draw/symbol/mark.h"

/* ---- label_text.c: a text as glyphs ---- */

typedef struct mc_label_glyph {
    uint32_t face, index;
    uint32_t from;                  /* the cluster of the text: the glyphs of one cluster have the same number */
    float x, y;                     /* the glyph's origin, from the upper left corner of the label's box */
    float begin, advance;           /* on its line */
    float left, top, right, bottom; /* of the glyph's ink, from the glyph's origin; all 0: a blank */
} mc_label_glyph;

typedef struct mc_label_layout {
    mc_label_glyph *glyphs;
    int count, lines;
    float size;          /* of the font */
    float width, height; /* of the box */
    float ascent;        /* the first baseline, from the top of the box */
    float middle;        /* of small letters above the baseline */
    float *line_begins, *line_widths;
    float underline; /* width of the line under the text; 0: none */
} mc_label_layout;

/* How far under the baseline the middle of the line is. */
float mc_label_underline_depth(const mc_label_layout *layout);

/* A text as it is drawn: valid UTF-8, lines by '\n', no other control characters, no blanks at the ends of lines. NULL
 * where nothing is left or it is longer than MC_TEXT_BYTES_MAX. */
const char *mc_label_clean(const char *text, apr_pool_t *pool);

/* Glyphs of a clean text; broken at blanks where a line would be longer than `wrap` (0: never). `align`: 0 lines begin
 * at the left of the box, 1 they end at its right. */
mc_error *mc_label_lay_out(mc_label_layout *layout, const mc_font *font, const char *text, float size, float wrap,
                           float align, apr_pool_t *pool) MC_CHECKED;

/* ---- label_anchor.c: where on a geometry ---- */

typedef struct mc_label_frame {
    int width, height; /* of the map */
} mc_label_frame;

/*
 * A point well inside the largest visible part of polygons, for a label; *extent is the area of that part. False where
 * no part is visible. Where the largest ring crosses the edge of the map and is at most half as wide and high as the
 * map, the point is that of the whole ring, and the result is false where that point lies outside of the map: a
 * neighbouring map draws the label.
 */
bool mc_label_inside(double at[2], double *extent, const mc_shape *polygons, const mc_label_frame *frame,
                     apr_pool_t *scratch);

/* The visible pieces of lines or rings: points x, y in turn; `ends` has the index after the last point of each piece.
 */
typedef struct mc_label_pieces {
    float *points;
    int *ends;
    int count;
} mc_label_pieces;

void mc_label_visible(mc_label_pieces *pieces, const mc_shape *shape, const mc_label_frame *frame, apr_pool_t *pool);

/* The index of the longest piece, and the length of that piece; -1 where no piece has a length. */
int mc_label_longest(const mc_label_pieces *pieces, double *length);

/* ---- label_line.c: along a line ---- */

typedef struct mc_placed_glyph {
    uint32_t face, index;
    float x, y;         /* its origin */
    float cosine, sine; /* of its turn, clockwise */
} mc_placed_glyph;

/* A piece of the line under a text: from the middle of one end to that of the other. */
typedef struct mc_label_stroke {
    float x0, y0, x1, y1, width;
} mc_label_stroke;

typedef struct mc_label_box {
    float minx, miny, maxx, maxy;
} mc_label_box;

/* Pieces of the line under a label, at most. */
int mc_label_underline_pieces(const mc_label_layout *layout);

/* A label that may be drawn: the label's glyphs, and a box for each glyph or one for all glyphs. */
typedef struct mc_label_spot {
    mc_placed_glyph *glyphs;
    mc_label_box *boxes;
    int glyph_count, box_count;
    mc_label_box bounds; /* of all ink and the halo */
    bool upright;
    float middle[2], angle;     /* of the text's box; radians clockwise */
    mc_placing shield;          /* of the graphic behind it */
    mc_label_stroke *underline; /* pieces of the line under the text, from end to end */
    int underline_count;
} mc_label_spot;

typedef struct mc_label_path {
    float *points;  /* x, y in turn */
    float *lengths; /* from the first point to each */
    int count;
    float length;
} mc_label_path;

/* Makes a path of a line of at least two points, without the jags that letters of `size` cannot follow. `generalize`
 * smooths the line more. */
void mc_label_path_make(mc_label_path *path, const float *points, int count, float size, bool generalize,
                        apr_pool_t *pool);

/* A point of a path; before and after the path it goes straight on. */
void mc_label_path_point(float at[2], const mc_label_path *path, float distance);

/* How a label follows a line. */
typedef struct mc_label_course {
    float offset;    /* to the left of the line */
    float max_angle; /* radians between neighbours */
    float halo;
    bool curved, any_direction;
} mc_label_course;

/* Puts a label on a path with its middle at `middle`; false where the path is too short or bends too much. The spot has
 * room for all glyphs, and for the pieces of a line under them. */
bool mc_label_along(mc_label_spot *spot, const mc_label_layout *layout, const mc_label_path *path, float middle,
                    const mc_label_course *course);

/* Puts the upper left corner of a label's box at (x, y), and turns all of it around a point. */
void mc_label_at(mc_label_spot *spot, const mc_label_layout *layout, float x, float y, float angle,
                 const float around[2], float halo);

void mc_label_spot_move(mc_label_spot *spot, float dx, float dy);

/* ---- label_grid.c: the places that are taken ---- */

typedef struct mc_label_grid mc_label_grid;

mc_label_grid *mc_label_grid_create(int width, int height, apr_pool_t *pool);
bool mc_label_grid_is_free(const mc_label_grid *grid, const mc_label_box *boxes, int count, float margin);
void mc_label_grid_take(mc_label_grid *grid, const mc_label_box *boxes, int count);

/* ---- label_obstacles.c: symbols that labels keep off ---- */

typedef struct mc_label_obstacles mc_label_obstacles;

mc_label_obstacles *mc_label_obstacles_create(int width, int height, apr_pool_t *pool);

/* The functions of an mc_obstacle_visitor; the baton is an mc_label_obstacles. */
void mc_label_obstacles_add(void *obstacles, mc_shape_point at, const float box[4]);
void mc_label_obstacles_add_row(void *obstacles, int x, int y, const uint8_t *coverage, int count);

/* The box around the symbols that stand at a point of the map; false where there are none. */
bool mc_label_obstacles_at(mc_label_box *box, const mc_label_obstacles *obstacles, const double at[2]);

/* Whether boxes, with a margin around each, lie beside all symbols. `own`: what is inside of this box does not count;
 * NULL: all counts. */
bool mc_label_obstacles_allow(const mc_label_obstacles *obstacles, const mc_label_box *boxes, int count, float margin,
                              const mc_label_box *own);

/* The box around what is taken inside of `within`; false where all of that is free. */
bool mc_label_obstacles_inside(mc_label_box *taken, const mc_label_obstacles *obstacles, const mc_label_box *within);

/* ---- label_painter.c: drawing ---- */

enum { MC_HALO_MAX = 16, MC_GLYPH_SIDE = 1024 }; /* pixels: the widest halo; the largest glyph */

typedef struct mc_label_painter mc_label_painter;

typedef struct mc_label_look {
    float size, halo;
    mc_color fill, halo_color;
} mc_label_look;

mc_label_painter *mc_label_painter_create(mc_canvas *target, apr_pool_t *pool);

/* Draws a label; what lies beside the map is cut off. */
mc_error *mc_label_painter_draw(mc_label_painter *painter, const mc_label_spot *spot, const mc_label_look *look,
                                apr_pool_t *scratch) MC_CHECKED;

#endif
