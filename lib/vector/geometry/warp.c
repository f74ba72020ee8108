/* See warp.h. */
#include "vector/geometry/warp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vector/geometry/cells.h"

#define BEND 0.25 /* pixels that an edge may be off */
#define SHORT 4.0 /* pixels: no edge of this length bends by as much as that */
#define LONG 64.0
#define NEAR 8.0 /* pixels */

#define STEP 1e-5 /* of a box: so far apart are points that tell how large its pixels are */

enum { NET = 8, DEEPEST = 12, POINTS_MAX = MC_SHAPE_POINTS_MAX, OTHER_SIDES = 2 /* worlds */ };

struct mc_warp {
    const mc_projection *projection;
    mc_cells *cells; /* NULL: the projection is quick enough */
    double dense;    /* units of the data: parts whose vertices are nearer than this in the mean go through cells */
    double turn, west, east; /* pixels of the grid: once around the world, and its edges; turn 0: it has none */
    double reach;            /* units of the data: no longer edge is taken to cross the antimeridian */
    double *given, *moved;   /* x and y in turn: of the data, of the map */
    size_t given_room, moved_room;
};

typedef struct vertex {
    double x, y;
} vertex;

/* A vertex before and after its transformation: in units of the data, in pixels of the grid. */
typedef struct warp_place {
    vertex given, moved;
    int cell; /* -1: none */
} warp_place;

static apr_status_t
free_warp(void *data)
{
    mc_warp *warp = data;
    free(warp->given);
    free(warp->moved);
    return APR_SUCCESS;
}

mc_warp *
mc_warp_create(const mc_projection *projection, const mc_pixel_grid *pixel_grid, double turn, apr_pool_t *pool)
{
    mc_warp *made = apr_pcalloc(pool, sizeof(*made));
    double ratio = mc_projection_ratio(projection);
    made->projection = projection;
    if (ratio > 0) {
        made->cells = mc_cells_create(projection, pixel_grid, turn > 0 ? turn / 8 / ratio : HUGE_VAL, pool);
        made->dense = NEAR / (ratio * pixel_grid->per_x);
        made->turn = turn * pixel_grid->per_x;
        made->west = (-turn / 2 - pixel_grid->x0) * pixel_grid->per_x;
        made->east = made->west + made->turn;
        made->reach = turn / 2 / ratio;
    }
    apr_pool_cleanup_register(pool, made, free_warp, apr_pool_cleanup_null);
    return made;
}

static double *
reserve_warp_values(double **values, size_t *room, size_t count)
{
    if (count > POINTS_MAX)
        return NULL;
    if (*room < count) {
        free(*values);
        *values = malloc(sizeof(**values) * 2 * count);
        *room = *values == NULL ? 0 : count;
    }
    return *values;
}

double *
mc_warp_vertices(mc_warp *warp, size_t count)
{
    return reserve_warp_values(&warp->given, &warp->given_room, count);
}

static vertex
to_pixels(const mc_pixel_grid *pixel_grid, const double *xy)
{
    return (vertex){ (xy[0] - pixel_grid->x0) * pixel_grid->per_x, (pixel_grid->y0 - xy[1]) * pixel_grid->per_y };
}

/* Where vertices go: a shape, so many pixels to the right. */
typedef struct warp_out {
    mc_shape *shape;
    const mc_pixel_grid *pixel_grid;
    double by;
} warp_out;

static void
add_moved_vertex(const warp_out *out, vertex moved)
{
    /* its pixels are the same as those of a vertex that needed no transformation */
    (void)mc_shape_add_vertex(out->shape, out->pixel_grid,
                              out->pixel_grid->x0 + (moved.x + out->by) / out->pixel_grid->per_x,
                              out->pixel_grid->y0 - moved.y / out->pixel_grid->per_y);
}

static bool
by_itself(warp_place *at, const mc_pixel_grid *pixel_grid)
{
    double xy[2] = { at->given.x, at->given.y };
    mc_projection_points(pixel_grid->warp->projection, xy, 1);
    at->moved = to_pixels(pixel_grid, xy);
    at->cell = -1;
    return isfinite(at->moved.x) && isfinite(at->moved.y);
}

/* Through its cell, if it has one. */
static bool
by_cell(warp_place *at, const mc_pixel_grid *pixel_grid)
{
    return mc_cells_place(pixel_grid->warp->cells, at->given.x, at->given.y, &at->moved.x, &at->moved.y, &at->cell) ||
           by_itself(at, pixel_grid);
}

/* A place that is a turn away from the one before it in the line is brought there. True where it was. */
static bool
unwrap_place(warp_place *at, const mc_warp *warp, const warp_place *before)
{
    double jump = at->moved.x - before->moved.x;
    if (warp->turn == 0 || !(fabs(jump) > warp->turn / 2) ||
        hypot(at->given.x - before->given.x, at->given.y - before->given.y) > warp->reach)
        return false;
    at->moved.x -= rint(jump / warp->turn) * warp->turn;
    return true;
}

/* Where the point of an edge at `part` of its length comes to lie; false where it cannot be transformed. */
static bool
place_at(warp_place *at, const mc_pixel_grid *pixel_grid, const warp_place *a, const warp_place *b, double part)
{
    at->given =
        (vertex){ a->given.x + (b->given.x - a->given.x) * part, a->given.y + (b->given.y - a->given.y) * part };
    if (!(a->cell >= 0 || b->cell >= 0 ? by_cell(at, pixel_grid) : by_itself(at, pixel_grid)))
        return false;
    unwrap_place(at, pixel_grid->warp, a);
    return true;
}

/* How far a point is from a line between two others, squared. */
static double
squared_line_distance(vertex p, vertex a, vertex b)
{
    double dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    double t = length2 > 0 ? fmin(1, fmax(0, ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2)) : 0;
    double ex = p.x - a.x - t * dx, ey = p.y - a.y - t * dy;
    return ex * ex + ey * ey;
}

/* An edge may bend to both sides and pass through its own middle: long ones are looked at in their quarters too. */
static bool
is_bent(const mc_pixel_grid *pixel_grid, const warp_place *a, const warp_place *middle, const warp_place *b,
        double length2)
{
    warp_place quarter;
    if (squared_line_distance(middle->moved, a->moved, b->moved) > BEND * BEND)
        return true;
    for (int i = 1; length2 > LONG * LONG && i < 4; i += 2)
        if (!place_at(&quarter, pixel_grid, a, b, i * 0.25) ||
            squared_line_distance(quarter.moved, a->moved, b->moved) > BEND * BEND)
            return true;
    return false;
}

/* Adds what has to stand between the ends of an edge. */
static void
add_bent_edge(const warp_out *out, const warp_place *a, const warp_place *b, int depth)
{
    const mc_pixel_grid *pixel_grid = out->pixel_grid;
    warp_place middle;
    double dx = b->moved.x - a->moved.x, dy = b->moved.y - a->moved.y, length2 = dx * dx + dy * dy;
    bool one_cell = a->cell >= 0 && a->cell == b->cell;
    if (one_cell || length2 <= SHORT * SHORT || depth == DEEPEST || !place_at(&middle, pixel_grid, a, b, 0.5) ||
        !is_bent(pixel_grid, a, &middle, b, length2))
        return;
    add_bent_edge(out, a, &middle, depth + 1);
    add_moved_vertex(out, middle.moved);
    add_bent_edge(out, &middle, b, depth + 1);
}

/* Whether the vertices of a part are so near to each other that its cells serve several of them. Of the part alone:
 * what comes out is the same in every tile. */
static bool
is_dense(const mc_warp *warp, size_t count)
{
    double length = 0;
    if (warp->cells == NULL)
        return false;
    for (size_t i = 1; i < count; i++)
        length +=
            fabs(warp->given[2 * i] - warp->given[2 * i - 2]) + fabs(warp->given[2 * i + 1] - warp->given[2 * i - 1]);
    return length < warp->dense * (double)count;
}

/* What a part came to be. */
typedef struct warp_result {
    double minx, maxx, first_x, last_x; /* pixels of the grid */
    bool any, jumped;                   /* jumped: it crosses the antimeridian */
} warp_result;

/* `moved`: the vertices as they were transformed; NULL: they go through cells. */
static warp_result
add_warped_vertices(const warp_out *out, const double *moved, size_t count, bool unwrap)
{
    const mc_warp *warp = out->pixel_grid->warp;
    warp_result made = { HUGE_VAL, -HUGE_VAL, 0, 0, false, false };
    warp_place last = { { 0, 0 }, { 0, 0 }, -1 };
    for (size_t i = 0; i < count; i++) {
        warp_place next = { { warp->given[2 * i], warp->given[2 * i + 1] }, { 0, 0 }, -1 };
        if (moved == NULL)
            by_cell(&next, out->pixel_grid);
        else
            next.moved = to_pixels(out->pixel_grid, moved + 2 * i);
        if (!isfinite(next.moved.x) || !isfinite(next.moved.y))
            continue;
        if (made.any && unwrap)
            made.jumped |= unwrap_place(&next, warp, &last);
        if (made.any && out->shape->kind != MC_SHAPE_POINTS)
            add_bent_edge(out, &last, &next, 0);
        add_moved_vertex(out, next.moved);
        made.minx = fmin(made.minx, next.moved.x);
        made.maxx = fmax(made.maxx, next.moved.x);
        made.first_x = made.any ? made.first_x : next.moved.x;
        made.last_x = next.moved.x;
        made.any = true;
        last = next;
    }
    return made;
}

static void
end_warped_part(mc_shape *shape, mc_warp_part part)
{
    if (part == MC_WARP_AS_IS || shape->kind != MC_SHAPE_POLYGONS)
        mc_shape_end_part(shape);
    else
        mc_shape_end_ring(shape, part == MC_WARP_HOLE);
}

/* What lies beyond an edge of the world, once more at the other edge. */
static void
add_other_sides(const warp_out *out, const double *moved, size_t count, const warp_result *made, mc_warp_part part)
{
    const mc_warp *warp = out->pixel_grid->warp;
    for (int world = -OTHER_SIDES; world <= OTHER_SIDES; world++) {
        warp_out other = { out->shape, out->pixel_grid, world * warp->turn };
        if (world == 0 || made->maxx + other.by <= warp->west || made->minx + other.by >= warp->east)
            continue;
        end_warped_part(out->shape, part);
        (void)add_warped_vertices(&other, moved, count, true);
    }
}

bool
mc_warp_add(mc_shape *shape, const mc_pixel_grid *pixel_grid, size_t count, mc_warp_part part)
{
    mc_warp *warp = pixel_grid->warp;
    bool dense = is_dense(warp, count);
    double *moved = dense ? NULL : reserve_warp_values(&warp->moved, &warp->moved_room, count);
    const warp_out out = { shape, pixel_grid, 0 };
    const int begin = mc_shape_part_begin(shape, shape->part_count);
    if (!dense && moved == NULL) {
        shape->failed = true;
        return false;
    }
    if (!dense) {
        memcpy(moved, warp->given, sizeof(*moved) * 2 * count);
        mc_projection_points(warp->projection, moved, count);
    }
    warp_result made = add_warped_vertices(&out, moved, count, true);
    if (made.jumped && shape->kind == MC_SHAPE_POLYGONS && fabs(made.last_x - made.first_x) > warp->turn / 2) {
        shape->point_count = begin; /* around a pole */
        shape->running = shape->far = false;
        made = add_warped_vertices(&out, moved, count, false);
    } else if (made.jumped) {
        add_other_sides(&out, moved, count, &made, part);
    }
    return made.any;
}

/* The size of a pixel at a point, by how far a step to both sides goes on the map. */
static double
pixel_size_at(const mc_pixel_grid *pixel_grid, double x, double y, double step)
{
    double xy[6] = { x, y, x + step, y, x, y + step };
    mc_projection_points(pixel_grid->warp->projection, xy, 3);
    vertex at = to_pixels(pixel_grid, xy), right = to_pixels(pixel_grid, xy + 2), up = to_pixels(pixel_grid, xy + 4);
    double pixels = fmax(hypot(right.x - at.x, right.y - at.y), hypot(up.x - at.x, up.y - at.y));
    return isfinite(pixels) && pixels > 0 ? step / pixels : HUGE_VAL;
}

double
mc_pixel_grid_pixel_size(const mc_pixel_grid *pixel_grid, const mc_extent *box)
{
    if (pixel_grid->warp == NULL)
        return fmin(1 / pixel_grid->per_x, 1 / pixel_grid->per_y);
    double width = box->maxx - box->minx, height = box->maxy - box->miny, smallest = HUGE_VAL;
    if (!isfinite(width) || !isfinite(height))
        return 0;
    for (int i = 0; i <= NET; i++)
        for (int j = 0; j <= NET; j++)
            smallest = fmin(smallest, pixel_size_at(pixel_grid, box->minx + width * i / NET,
                                                    box->miny + height * j / NET, fmax(width, height) * STEP));
    return isfinite(smallest) ? smallest : 0;
}
