/* See cells.h. A quadtree from the whole plane down; its nodes are made when a point asks for them. */
#include "vector/geometry/cells.h"

#include <math.h>
#include <stdlib.h>

#define HALF_PLANE 67108864.0 /* 2^26: units of the data, metres or degrees */
#define OFF 0.0625            /* pixels that a cell may be off in its middles */
#define TWIST 0.125           /* pixels that a diagonal of it may bend */
#define LARGEST 128.0         /* pixels from corner to corner */
#define SMALLEST 2.0

enum { DEEPEST = 52, CELLS_MAX = 1 << 16, NONE = -1 };

typedef enum cell_state { UNSEEN, PARTED, BILINEAR, WITHOUT } cell_state;

typedef struct warp_cell {
    double x, y, side;                              /* lower left corner, in units of the data */
    double at[2], along_u[2], along_v[2], twist[2]; /* pixels: at + u along_u + v along_v + u v twist, u and v 0..1 */
    int children[4];                                /* NONE: not made yet */
    cell_state state;
} warp_cell;

struct mc_cells {
    const mc_projection *projection;
    double x0, y0, per_x, per_y;
    double widest; /* a wider cell may go round the earth, and its points lie as if it did not */
    warp_cell *list;
    int count, room;
    int last; /* the cell of the point before */
};

static apr_status_t
free_cells(void *data)
{
    free(((mc_cells *)data)->list);
    return APR_SUCCESS;
}

/* Index of a new cell; NONE where there are too many. */
static int
add_cell(mc_cells *cells, double x, double y, double side)
{
    if (cells->count == cells->room) {
        int room = cells->room == 0 ? 256 : cells->room * 2;
        warp_cell *list = room > CELLS_MAX ? NULL : realloc(cells->list, sizeof(*list) * (size_t)room);
        if (list == NULL)
            return NONE;
        cells->list = list;
        cells->room = room;
    }
    cells->list[cells->count] =
        (warp_cell){ .x = x, .y = y, .side = side, .children = { NONE, NONE, NONE, NONE }, .state = UNSEEN };
    return cells->count++;
}

mc_cells *
mc_cells_create(const mc_projection *projection, const mc_pixel_grid *pixel_grid, double widest, apr_pool_t *pool)
{
    mc_cells *made = apr_pcalloc(pool, sizeof(*made));
    *made = (mc_cells){ .projection = projection,
                        .x0 = pixel_grid->x0,
                        .y0 = pixel_grid->y0,
                        .per_x = pixel_grid->per_x,
                        .per_y = pixel_grid->per_y,
                        .widest = widest };
    add_cell(made, -HALF_PLANE, -HALF_PLANE, 2 * HALF_PLANE);
    apr_pool_cleanup_register(pool, made, free_cells, apr_pool_cleanup_null);
    return made;
}

/* Points of a cell, by u and v, into pixels; false where one of them cannot be transformed. */
static bool
place_points(const mc_cells *cells, const warp_cell *of, const double (*uv)[2], double *xy, int count)
{
    bool finite = true;
    for (int i = 0; i < count; i++) {
        xy[2 * i] = of->x + of->side * uv[i][0];
        xy[2 * i + 1] = of->y + of->side * uv[i][1];
    }
    mc_projection_points(cells->projection, xy, (size_t)count);
    for (int i = 0; i < count; i++) {
        xy[2 * i] = (xy[2 * i] - cells->x0) * cells->per_x;
        xy[2 * i + 1] = (cells->y0 - xy[2 * i + 1]) * cells->per_y;
        finite &= isfinite(xy[2 * i]) && isfinite(xy[2 * i + 1]);
    }
    return finite;
}

static double
interpolate_in_cell(const warp_cell *of, double u, double v, int axis)
{
    return of->at[axis] + u * of->along_u[axis] + v * of->along_v[axis] + u * v * of->twist[axis];
}

/* What kind of cell it is; fills in its coefficients. */
static cell_state
classify_cell(const mc_cells *cells, warp_cell *of, int depth)
{
    static const double corners[4][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 } };
    static const double middles[5][2] = { { 0.5, 0.5 }, { 0.5, 0 }, { 0, 0.5 }, { 1, 0.5 }, { 0.5, 1 } };
    double at[8], test[10];
    cell_state smaller = depth < DEEPEST ? PARTED : WITHOUT;
    if (of->side > cells->widest || !place_points(cells, of, corners, at, 4))
        return smaller;
    double size = fmax(hypot(at[6] - at[0], at[7] - at[1]), hypot(at[4] - at[2], at[5] - at[3]));
    if (size > LARGEST)
        return smaller;
    if (!place_points(cells, of, middles, test, 5))
        return smaller;
    bool bilinear = true;
    for (int axis = 0; axis < 2; axis++) {
        of->at[axis] = at[axis];
        of->along_u[axis] = at[2 + axis] - at[axis];
        of->along_v[axis] = at[4 + axis] - at[axis];
        of->twist[axis] = at[6 + axis] - at[4 + axis] - at[2 + axis] + at[axis];
        bilinear &= fabs(of->twist[axis]) / 4 <= TWIST;
    }
    for (int i = 0; i < 5; i++)
        bilinear &= hypot(interpolate_in_cell(of, middles[i][0], middles[i][1], 0) - test[2 * i],
                          interpolate_in_cell(of, middles[i][0], middles[i][1], 1) - test[2 * i + 1]) <= OFF;
    if (bilinear)
        return BILINEAR;
    return size < SMALLEST ? WITHOUT : smaller;
}

static bool
cell_holds_point(const warp_cell *of, double x, double y)
{
    return x >= of->x && x < of->x + of->side && y >= of->y && y < of->y + of->side;
}

/* The child of a split cell that holds the point. */
static int
child_at(mc_cells *cells, int parent, double x, double y)
{
    const warp_cell *of = &cells->list[parent];
    double half = of->side / 2;
    int right = x >= of->x + half, upper = y >= of->y + half, which = right + 2 * upper;
    if (of->children[which] == NONE) {
        int made = add_cell(cells, of->x + right * half, of->y + upper * half, half);
        cells->list[parent].children[which] = made; /* the list may have moved */
        return made;
    }
    return of->children[which];
}

static int
find_bilinear_cell(mc_cells *cells, double x, double y)
{
    int at = 0;
    if (!cell_holds_point(&cells->list[0], x, y))
        return NONE;
    for (int depth = 0; at != NONE; depth++) {
        warp_cell *here = &cells->list[at];
        if (here->state == UNSEEN)
            here->state = classify_cell(cells, here, depth);
        if (here->state == BILINEAR)
            return at;
        if (here->state == WITHOUT)
            return NONE;
        at = child_at(cells, at, x, y);
    }
    return NONE;
}

bool
mc_cells_place(mc_cells *cells, double x, double y, double *px, double *py, int *cell)
{
    if (cells->count == 0)
        return false;
    if (cells->list[cells->last].state != BILINEAR || !cell_holds_point(&cells->list[cells->last], x, y)) {
        int found = find_bilinear_cell(cells, x, y);
        if (found == NONE)
            return false;
        cells->last = found;
    }
    const struct warp_cell *of = &cells->list[cells->last];
    double u = (x - of->x) / of->side, v = (y - of->y) / of->side;
    *px = interpolate_in_cell(of, u, v, 0);
    *py = interpolate_in_cell(of, u, v, 1);
    *cell = cells->last;
    return true;
}
