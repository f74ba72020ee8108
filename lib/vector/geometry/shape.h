/*
 * Shapes in pixels of a map: the form in which vector data is painted. Coordinates are whole numbers of 1/256 pixel,
 * x to the right and y down from the map's upper left corner, so that shapes that are moved by whole pixels are equal
 * to the last bit: a pixel does not depend on the tile that it is drawn in (docs/reference/design.md 3.8).
 */
#ifndef MC_VECTOR_GEOMETRY_SHAPE_H
#define MC_VECTOR_GEOMETRY_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MC_SUBPIXELS = 256,            /* steps of a pixel */
    MC_SHAPE_REACH = 1 << 27,      /* no coordinate is beyond +-this: 524,288 pixels */
    MC_SHAPE_POINTS_MAX = 1 << 25, /* points of one shape */
};

typedef enum mc_shape_kind { MC_SHAPE_POINTS, MC_SHAPE_LINES, MC_SHAPE_POLYGONS } mc_shape_kind;

typedef struct mc_shape_point {
    int32_t x, y;
} mc_shape_point;

/* One or more points, lines, or rings of one or more polygons (of any direction; closed without a last point that
 * repeats the first). Used again for the next feature: its memory only grows. */
typedef struct mc_shape {
    mc_shape_kind kind;
    mc_shape_point *points;
    int point_count, point_room;
    int *ends; /* for each part the index after its last point */
    int part_count, part_room;
    bool failed; /* too large, or no memory: nothing more was added */
    /* Of the part that is being made of vertices: the first vertex of the run that its last point stands for, the last
     * one of its first run, and what a run shares. */
    mc_shape_point run_first, first_run_last;
    int run_bits;
    bool running, keep_small;
    bool far;         /* its last vertex lies beyond what is kept, */
    double far_at[2]; /* here */
} mc_shape;

void mc_shape_clear(mc_shape *shape, mc_shape_kind kind);
void mc_shape_free(mc_shape *shape);
void mc_shape_add(mc_shape *shape, int32_t x, int32_t y);

/* Room for `more` points, which the caller writes himself; false, and the shape is marked, where there is none. */
bool mc_shape_reserve(mc_shape *shape, int more);

/* Ends a part. Parts with fewer points than their kind needs (1, 2, 3) are taken back. */
void mc_shape_end_part(mc_shape *shape);

/* Ends a ring of a polygon and gives it the direction of what it is: an outer ring and a hole run against each other,
 * so that many polygons may be filled together by MC_NON_ZERO. */
void mc_shape_end_ring(mc_shape *shape, bool hole);

/* The index of the first point of a part. */
static inline int
mc_shape_part_begin(const mc_shape *shape, int part)
{
    return part == 0 ? 0 : shape->ends[part - 1];
}

static inline bool
mc_shape_same_point(mc_shape_point a, mc_shape_point b)
{
    return a.x == b.x && a.y == b.y;
}

/* Twice the area of a ring that begins at its first point; its sign is that of the ring's direction. */
static inline double
mc_shape_twice_area(const mc_shape_point *points, int count)
{
    double twice = 0;
    for (int i = 1; i + 1 < count; i++)
        twice += ((double)points[i].x - points[0].x) * ((double)points[i + 1].y - points[0].y) -
                 ((double)points[i + 1].x - points[0].x) * ((double)points[i].y - points[0].y);
    return twice;
}

/* Bounds of all points; false without any. */
bool mc_shape_bounds(const mc_shape *shape, int32_t *minx, int32_t *miny, int32_t *maxx, int32_t *maxy);

/*
 * Where a map lies on the endless pixel grid of its level: pixel (0, 0) of the pixel grid has its upper left corner at
 * (x0, y0) in units of the CRS, and the map's upper left corner is at (left, top) in whole pixels of the grid.
 */
typedef struct mc_pixel_grid {
    double x0, y0;
    double per_x, per_y; /* pixels for a unit of the CRS */
    int64_t left, top;
    int thinning;         /* a power of two of 1/256 pixel, at most a pixel: see mc_shape_add_vertex; 0: none */
    struct mc_warp *warp; /* from the CRS of the data (vector/geometry/warp.h); NULL: it is that of the map */
    bool keep_small;      /* a ring that is thinned to one point or two stays as a speck: its outline can be seen */
} mc_pixel_grid;

/*
 * Adds a vertex in units of the CRS to the part that is being made: snapped, thinned. False where it is not finite.
 * Vertices that follow each other in the same cell of the pixel grid, `thinning` wide, become one point halfway between
 * the first and the last of them; the ends of a line stay where they are. So nothing moves by more than the diagonal of
 * a cell, and a border is thinned alike from both of its sides: neighbours keep it in common.
 *
 * What lies so far outside of the map that a shape has no room for it is moved to the nearest place within a square
 * around the map, edges with all of their points: inside of it lines and areas are what they were.
 */
bool mc_shape_add_vertex(mc_shape *shape, const mc_pixel_grid *pixel_grid, double x, double y);

/* The same for `count` vertices, `stride` bytes apart, that begin with x and y as doubles (swapped: of the other byte
 * order than the machine's). False where one of them is not finite. */
bool mc_shape_add_vertices(mc_shape *shape, const mc_pixel_grid *pixel_grid, const uint8_t *bytes, size_t stride,
                           size_t count, bool swapped);

#endif
