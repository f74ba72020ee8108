/* Marks: unit outlines, turned and moved. */
#include "draw/symbol/mark.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "draw/raster/hatch.h"

enum { CIRCLE_CORNERS_MAX = 128, POINTS_MAX = 256, PARTS_MAX = 16, ARC_STEP = 10 /* degrees */ };

/*
 * Outlines in thousandths of the size, x to the right and y down from the centre: x,y are corners, z ends a part,
 * a cx,cy radius,from,to is an arc in degrees clockwise from above.
 */
#define SQUARE "-500,-500 500,-500 500,500 -500,500 z"
#define TRIANGLE "0,-500 500,500 -500,500 z"
#define STAR "0,-500 112,-155 476,-155 182,59 294,405 0,191 -294,405 -182,59 -476,-155 -112,-155 z"
#define FAT_CROSS                                                                                                      \
    "-125,-500 125,-500 125,-125 500,-125 500,125 125,125 125,500 -125,500 -125,125 -500,125 -500,-125 -125,-125 z"
#define FAT_X "-500,-323 -323,-500 0,-177 323,-500 500,-323 177,0 500,323 323,500 0,177 -323,500 -500,323 -177,0 z"
#define PLUS "-500,0 500,0 z 0,-500 0,500 z"
#define TIMES "-500,500 500,-500 z -500,-500 500,500 z"
#define UP "0,-500 0,500 z"
#define ACROSS "-500,0 500,0 z"
#define SLASH "-500,500 500,-500 z"
#define BACKSLASH "-500,-500 500,500 z"
#define ARROW "0,-500 250,-250 125,-250 125,500 -125,500 -125,-250 -250,-250 z"
#define HALF_CIRCLE "a0,0 500,-90,90 z"
#define ACROSS_UP (MC_HATCH_ACROSS | MC_HATCH_UP)
#define DIAGONALS (MC_HATCH_SLASH | MC_HATCH_BACKSLASH)

typedef struct mark_row {
    const char *name, *path;
    bool open;
    unsigned hatch;
    int dense;
} mark_row;

static const mark_row with_insides[] = { { "cross", FAT_CROSS, false, 0, 0 }, { "x", FAT_X, false, 0, 0 } };

/* The standard's first; then QGIS' and GeoServer's. */
static const mark_row rows[] = {
    { "square", SQUARE, false, 0, 0 },
    { "circle", NULL, false, 0, 0 },
    { "triangle", TRIANGLE, false, 0, 0 },
    { "star", STAR, false, 0, 0 },
    { "cross", PLUS, true, ACROSS_UP, 0 },
    { "x", TIMES, true, DIAGONALS, 0 },
    { "rectangle", SQUARE, false, 0, 0 },
    { "rounded_square", "a-300,-300 200,-90,0 a300,-300 200,0,90 a300,300 200,90,180 a-300,300 200,180,270 z", false, 0,
      0 },
    { "square_with_corners", "-304,-500 304,-500 500,-304 500,304 304,500 -304,500 -500,304 -500,-304 z", false, 0, 0 },
    { "quarter_square", "-500,-500 0,-500 0,0 -500,0 z", false, 0, 0 },
    { "half_square", "-500,-500 0,-500 0,500 -500,500 z", false, 0, 0 },
    { "diagonal_half_square", "-500,-500 500,500 -500,500 z", false, 0, 0 },
    { "trapezoid", "-250,-250 250,-250 500,250 -500,250 z", false, 0, 0 },
    { "parallelogram_right", "-250,-250 500,-250 250,250 -500,250 z", false, 0, 0 },
    { "parallelogram_left", "-500,-250 250,-250 500,250 -250,250 z", false, 0, 0 },
    { "diamond", "0,-500 500,0 0,500 -500,0 z", false, 0, 0 },
    { "shield", "-500,-500 500,-500 500,250 0,500 -500,250 z", false, 0, 0 },
    { "pentagon", "0,-500 476,-155 294,405 -294,405 -476,-155 z", false, 0, 0 },
    { "hexagon", "0,-500 433,-250 433,250 0,500 -433,250 -433,-250 z", false, 0, 0 },
    { "octagon", "-207,-500 207,-500 500,-207 500,207 207,500 -207,500 -500,207 -500,-207 z", false, 0, 0 },
    { "decagon", "0,-500 294,-405 476,-155 476,155 294,405 0,500 -294,405 -476,155 -476,-155 -294,-405 z", false, 0,
      0 },
    { "equilateral_triangle", "0,-500 433,250 -433,250 z", false, 0, 0 },
    { "left_half_triangle", "0,-500 500,500 0,500 z", false, 0, 0 }, /* it is the right one, but so QGIS has it */
    { "right_half_triangle", "0,-500 0,500 -500,500 z", false, 0, 0 },
    { "regular_star", STAR, false, 0, 0 },
    { "star_diamond", "0,-500 135,-135 500,0 135,135 0,500 -135,135 -500,0 -135,-135 z", false, 0, 0 },
    { "diamond_star", "0,-500 135,-135 500,0 135,135 0,500 -135,135 -500,0 -135,-135 z", false, 0, 0 },
    { "heart", "a-250,-200 250,-110,90 a250,-200 250,-90,110 0,450 z", false, 0, 0 },
    { "arrow", ARROW, false, 0, 0 },
    { "filled_arrowhead", "0,0 -500,500 -500,-500 z", false, 0, 0 },
    { "cross_fill",
      "-100,-500 100,-500 100,-100 500,-100 500,100 100,100 100,500 -100,500 -100,100 -500,100 -500,-100 "
      "-100,-100 z",
      false, 0, 0 },
    { "asterisk_fill",
      "-75,-500 75,-500 75,-181 301,-407 407,-301 181,-75 500,-75 500,75 181,75 407,301 301,407 75,181 "
      "75,500 -75,500 -75,181 -301,407 -407,301 -181,75 -500,75 -500,-75 -181,-75 -407,-301 -301,-407 -75,-181 z",
      false, 0, 0 },
    { "semi_circle", HALF_CIRCLE, false, 0, 0 },
    { "half_circle", HALF_CIRCLE, false, 0, 0 },
    { "third_circle", "0,0 a0,0 500,-120,0 z", false, 0, 0 },
    { "quarter_circle", "0,0 a0,0 500,-90,0 z", false, 0, 0 },
    { "half_arc", HALF_CIRCLE, true, 0, 0 },
    { "third_arc", "a0,0 500,-120,0 z", true, 0, 0 },
    { "quarter_arc", "a0,0 500,-90,0 z", true, 0, 0 },
    { "cross2", TIMES, true, DIAGONALS, 0 },
    { "line", UP, true, MC_HATCH_UP, 0 },
    { "vertline", UP, true, MC_HATCH_UP, 0 },
    { "horline", ACROSS, true, MC_HATCH_ACROSS, 0 },
    { "slash", SLASH, true, MC_HATCH_SLASH, 0 },
    { "backslash", BACKSLASH, true, MC_HATCH_BACKSLASH, 0 },
    { "arrowhead", "-500,-500 0,0 -500,500 z", true, 0, 0 },
    { "shape://vertline", UP, true, MC_HATCH_UP, 0 },
    { "shape://horline", ACROSS, true, MC_HATCH_ACROSS, 0 },
    { "shape://slash", SLASH, true, MC_HATCH_SLASH, 0 },
    { "shape://backslash", BACKSLASH, true, MC_HATCH_BACKSLASH, 0 },
    { "shape://plus", PLUS, true, ACROSS_UP, 0 },
    { "shape://times", TIMES, true, DIAGONALS, 0 },
    { "shape://dot", "-2,-2 2,-2 2,2 -2,2 z", false, 0, 0 },
    { "shape://oarrow", "-500,-500 0,0 -500,500 z", true, 0, 0 },
    { "shape://carrow", "-500,-500 0,0 -500,500 z", false, 0, 0 },
    { "shape://coarrow", "-500,-500 0,0 -500,500 z", true, 0, 0 },
    { "shape://ccarrow", "-500,-500 0,0 -500,500 z", false, 0, 0 },
    { "extshape://triangle", TRIANGLE, false, 0, 0 },
    { "extshape://emicircle", HALF_CIRCLE, false, 0, 0 },
    { "extshape://triangleemicircle", "-500,500 -500,0 a0,0 500,-90,90 500,500 0,0 z", false, 0, 0 },
    { "extshape://arrow", ARROW, false, 0, 0 },
    { "extshape://narrow", ARROW, false, 0, 0 },
    { "extshape://sarrow", "0,500 -250,250 -125,250 -125,-500 125,-500 125,250 250,250 z", false, 0, 0 },
    { "brush://dense1", SQUARE, false, 0, 60 },
    { "brush://dense2", SQUARE, false, 0, 56 },
    { "brush://dense3", SQUARE, false, 0, 40 },
    { "brush://dense4", SQUARE, false, 0, 32 },
    { "brush://dense5", SQUARE, false, 0, 24 },
    { "brush://dense6", SQUARE, false, 0, 8 },
    { "brush://dense7", SQUARE, false, 0, 4 },
};

/* A path that is being read. */
typedef struct tracing {
    double points[POINTS_MAX][2];
    int ends[PARTS_MAX];
    int point_count, part_count;
} tracing;

static void
add_mark_point(tracing *t, double x, double y)
{
    MC_ASSERT(t->point_count < POINTS_MAX);
    t->points[t->point_count][0] = x / 1000;
    t->points[t->point_count++][1] = y / 1000;
}

static double
next_number(const char **at)
{
    char *end;
    double value = (double)strtol(*at, &end, 10);
    MC_ASSERT(end != *at);
    *at = *end == ',' || *end == ' ' ? end + 1 : end;
    return value;
}

static void
add_mark_arc(tracing *t, const char **at)
{
    double x = next_number(at), y = next_number(at), radius = next_number(at);
    double from = next_number(at), to = next_number(at);
    int steps = (int)ceil(fabs(to - from) / ARC_STEP);
    for (int i = 0; i <= steps; i++) {
        double angle = (from + (to - from) * i / steps) * M_PI / 180;
        add_mark_point(t, x + sin(angle) * radius, y - cos(angle) * radius);
    }
}

static void
trace_mark_path(tracing *t, const char *path)
{
    while (*path != '\0') {
        if (*path == 'a') {
            path++;
            add_mark_arc(t, &path);
        } else if (*path == 'z') {
            MC_ASSERT(t->part_count < PARTS_MAX);
            t->ends[t->part_count++] = t->point_count;
            path += path[1] == ' ' ? 2 : 1;
        } else {
            double x = next_number(&path);
            add_mark_point(t, x, next_number(&path));
        }
    }
}

static const mc_mark *
create_mark(const mark_row *found, apr_pool_t *pool)
{
    tracing *t = apr_pcalloc(pool, sizeof(*t));
    mc_mark *made = apr_palloc(pool, sizeof(*made));
    if (found->path != NULL)
        trace_mark_path(t, found->path);
    *made = (mc_mark){ .name = found->name,
                       .open = found->open,
                       .circle = found->path == NULL,
                       .hatch = found->hatch,
                       .dense = found->dense,
                       .points = t->points[0],
                       .ends = t->ends,
                       .part_count = t->part_count };
    return made;
}

const mc_mark *
mc_mark_find(const char *name, bool with_inside, apr_pool_t *pool)
{
    for (size_t i = 0; with_inside && i < sizeof(with_insides) / sizeof(with_insides[0]); i++)
        if (strcasecmp(with_insides[i].name, name) == 0)
            return create_mark(&with_insides[i], pool);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcasecmp(rows[i].name, name) == 0)
            return create_mark(&rows[i], pool);
    const mc_mark *geometry = mc_mark_of_wkt(name, pool);
    return geometry != NULL ? geometry : mc_mark_of_font(name, pool);
}

void
mc_mark_place(mc_shape *shape, const mc_mark *mark, const mc_placing *placing)
{
    double angle = placing->turn * M_PI / 180, cosine = cos(angle), sine = sin(angle);
    double ax = placing->anchor_x - 0.5, ay = 0.5 - placing->anchor_y;
    int corners = 2 * (int)fmin(CIRCLE_CORNERS_MAX / 2.0, fmax(8, fmax(placing->width, placing->height)));
    int parts = mark->circle ? 1 : mark->part_count;
    mc_shape_clear(shape, mark->open ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS);
    for (int part = 0, i = 0; part < parts; part++) {
        for (int end = mark->circle ? corners : mark->ends[part]; i < end; i++) {
            double round = 2 * M_PI * i / corners;
            double x = mark->circle ? sin(round) * 0.5 : mark->points[2 * i];
            double y = mark->circle ? -cos(round) * 0.5 : mark->points[2 * i + 1];
            x = (x - ax) * placing->width * MC_SUBPIXELS;
            y = (y - ay) * placing->height * MC_SUBPIXELS;
            mc_shape_add(shape, placing->at.x + (int32_t)lrint(x * cosine - y * sine),
                         placing->at.y + (int32_t)lrint(x * sine + y * cosine));
        }
        mc_shape_end_part(shape);
    }
}
