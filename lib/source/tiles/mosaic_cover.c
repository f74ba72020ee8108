/*
 * A map's box in the CRS of a grid. The edges of the map do not tell: a pole may lie inside, the antimeridian may run
 * through, and parts of the map may be no place of the grid's CRS. So a lattice of places is looked at.
 */
#include "source/tiles/mosaic_cover.h"

#include <math.h>
#include <stdlib.h>

enum {
    CELLS = 32, /* of a side of the lattice */
    SIDE = CELLS + 1,
    HALVINGS = 12, /* steps towards the edge of what can be transformed */
};

/* The lattice of a map. Places are x and y in turn, row by row from the upper left corner. */
typedef struct map_lattice {
    const mc_projection *projection;
    const mc_render *wanted;
    double turn;
    double places[2 * SIDE * SIDE]; /* in the grid's CRS, each x by less than half a turn from that beside it */
    mc_extent box;
} map_lattice;

static bool
is_mosaic_place(const double place[2])
{
    return isfinite(place[0]) && isfinite(place[1]);
}

/* x, moved by whole turns to where it is nearest to another one. */
static double
unwrap_x(double x, double near, double turn)
{
    return turn > 0 ? x - turn * round((x - near) / turn) : x;
}

/* From cells of the lattice, from the upper left corner, to the CRS of the map. */
static void
place_in_map(double place[2], double column, double row, const mc_render *wanted)
{
    const mc_extent *box = &wanted->box;
    place[0] = box->minx + (box->maxx - box->minx) * column / CELLS;
    place[1] = box->maxy - (box->maxy - box->miny) * row / CELLS;
}

static double *
lattice_place(map_lattice *lattice, int column, int row)
{
    return lattice->places + 2 * (row * SIDE + column);
}

/* Each place is unwrapped to the place on its left, else to the one above: neighbours on a line that a pole does not
 * lie on are less than half a turn apart. */
static void
fill_lattice(map_lattice *lattice)
{
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++)
            place_in_map(lattice_place(lattice, column, row), column, row, lattice->wanted);
    mc_projection_points(lattice->projection, lattice->places, (size_t)SIDE * SIDE);
    const double *last = NULL;
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            double *place = lattice_place(lattice, column, row);
            const double *left = column > 0 ? place - 2 : NULL, *above = row > 0 ? place - 2 * (size_t)SIDE : NULL;
            const double *near = left != NULL && is_mosaic_place(left)     ? left
                                 : above != NULL && is_mosaic_place(above) ? above
                                                                           : last;
            if (!is_mosaic_place(place))
                continue;
            if (near != NULL)
                place[0] = unwrap_x(place[0], near[0], lattice->turn);
            last = place;
        }
}

static void
include_place(map_lattice *lattice, double x, double y)
{
    mc_extent *box = &lattice->box;
    *box = (mc_extent){ fmin(box->minx, x), fmin(box->miny, y), fmax(box->maxx, x), fmax(box->maxy, y) };
}

/* How far a curve through three values goes beyond them, with as much again to spare: what must be included. */
static double
summit_between(double before, double middle, double after)
{
    double bend = (before + after) / 2 - middle, slope = (after - before) / 2;
    if (fabs(slope) >= 2 * fabs(bend)) /* its summit is not between them */
        return middle;
    double summit = middle - slope * slope / (4 * bend);
    double most = bend < 0 ? fmax(fmax(before, middle), after) : fmin(fmin(before, middle), after);
    return summit + (summit - most);
}

/* What lies between the places of a row or column: bulges, and the way to where places end. */
static void
include_between(map_lattice *lattice, int column, int row, int right, int down)
{
    const double *here = lattice_place(lattice, column, row);
    const double *next = lattice_place(lattice, column + right, row + down);
    if (is_mosaic_place(here) != is_mosaic_place(next)) {
        const double *inside = is_mosaic_place(here) ? here : next;
        double low = is_mosaic_place(here) ? 0 : 1, high = 1 - low; /* parts of the way; the lower end is a place */
        for (int i = 0; i < HALVINGS; i++) {
            double part = (low + high) / 2, tried[2];
            place_in_map(tried, column + right * part, row + down * part, lattice->wanted);
            mc_projection_points(lattice->projection, tried, 1);
            *(is_mosaic_place(tried) ? &low : &high) = part;
            if (is_mosaic_place(tried))
                include_place(lattice, unwrap_x(tried[0], inside[0], lattice->turn), tried[1]);
        }
        return;
    }
    if (!is_mosaic_place(here) || column + 2 * right >= SIDE || row + 2 * down >= SIDE)
        return;
    const double *after = lattice_place(lattice, column + 2 * right, row + 2 * down);
    if (is_mosaic_place(after))
        include_place(lattice, summit_between(here[0], next[0], after[0]), summit_between(here[1], next[1], after[1]));
}

/* Whether there is a place at all. */
static bool
include_lattice(map_lattice *lattice)
{
    lattice->box = (mc_extent){ HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL };
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            const double *place = lattice_place(lattice, column, row);
            if (is_mosaic_place(place))
                include_place(lattice, place[0], place[1]);
            if (column + 1 < SIDE)
                include_between(lattice, column, row, 1, 0);
            if (row + 1 < SIDE)
                include_between(lattice, column, row, 0, 1);
        }
    return lattice->box.minx <= lattice->box.maxx;
}

/* A map with a pole inside has it as a place of the grid; where meridians meet in none, it has all of them, as far as
 * the grid goes. */
static mc_error *
include_poles(bool *any, map_lattice *lattice, const mc_grid *grid, apr_pool_t *pool)
{
    mc_projection *from_degrees;
    const mc_extent *box = &lattice->wanted->box;
    *any = false;
    MC_TRY(mc_projection_open(&from_degrees, "CRS:84", lattice->wanted->grid->srs, pool));
    if (from_degrees == NULL) /* a map in degrees has poles at its edges at most */
        return MC_OK;
    for (int south = 0; south < 2; south++) {
        double place[2] = { 0, south ? -90 : 90 };
        mc_projection_points(from_degrees, place, 1);
        if (!is_mosaic_place(place) || place[0] < box->minx || place[0] > box->maxx || place[1] < box->miny ||
            place[1] > box->maxy)
            continue;
        *any = true;
        mc_projection_points(lattice->projection, place, 1);
        if (is_mosaic_place(place) && lattice->turn == 0)
            include_place(lattice, place[0], place[1]);
        if (lattice->turn > 0)
            include_place(lattice, lattice->box.minx + lattice->turn, south ? grid->extent.miny : grid->extent.maxy);
    }
    return MC_OK;
}

static int
compare_resolutions(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Of the parallelogram of three neighbours in the lattice, or in a pixel; `width` and `height` in pixels. */
static double
resolution_of_corner(const double here[2], const double right[2], const double down[2], double width, double height)
{
    double area = fabs((right[0] - here[0]) * (down[1] - here[1]) - (down[0] - here[0]) * (right[1] - here[1]));
    return isfinite(area) ? sqrt(area / (width * height)) : 0;
}

/* That of the middle of the map. */
static double
resolution_of_middle(const map_lattice *lattice)
{
    const double pixel_x = (double)CELLS / lattice->wanted->width, pixel_y = (double)CELLS / lattice->wanted->height;
    double points[6];
    place_in_map(points, CELLS / 2.0, CELLS / 2.0, lattice->wanted);
    place_in_map(points + 2, CELLS / 2.0 + pixel_x, CELLS / 2.0, lattice->wanted);
    place_in_map(points + 4, CELLS / 2.0, CELLS / 2.0 + pixel_y, lattice->wanted);
    mc_projection_points(lattice->projection, points, 3);
    points[2] = unwrap_x(points[2], points[0], lattice->turn);
    points[4] = unwrap_x(points[4], points[0], lattice->turn);
    return resolution_of_corner(points, points + 2, points + 4, 1, 1);
}

/* That of most of the map: the median of the cells of the lattice. */
static double
resolution_of_cells(map_lattice *lattice)
{
    double all[CELLS * CELLS];
    size_t count = 0;
    for (int row = 0; row < CELLS; row++)
        for (int column = 0; column < CELLS; column++) {
            const double *here = lattice_place(lattice, column, row);
            double right[2] = { unwrap_x(here[2], here[0], lattice->turn), here[3] };
            const double *below = lattice_place(lattice, column, row + 1);
            double down[2] = { unwrap_x(below[0], here[0], lattice->turn), below[1] };
            double one = resolution_of_corner(here, right, down, lattice->wanted->width / (double)CELLS,
                                              lattice->wanted->height / (double)CELLS);
            if (one > 0)
                all[count++] = one;
        }
    qsort(all, count, sizeof(all[0]), compare_resolutions);
    return count == 0 ? 0 : all[count / 2];
}

mc_error *
mc_mosaic_cover_map(mc_mosaic_cover *cover, bool *found, const mc_projection *projection, const mc_grid *grid,
                    double turn, const mc_render *wanted, apr_pool_t *pool)
{
    bool poles;
    map_lattice *lattice = apr_palloc(pool, sizeof(*lattice));
    lattice->projection = projection;
    lattice->wanted = wanted;
    lattice->turn = turn;
    *cover = (mc_mosaic_cover){ 0 };
    fill_lattice(lattice);
    *found = include_lattice(lattice);
    if (!*found)
        return MC_OK;
    MC_TRY(include_poles(&poles, lattice, grid, pool));
    double middle = poles ? 0 : resolution_of_middle(lattice);
    cover->resolution = middle > 0 ? middle : resolution_of_cells(lattice);
    cover->box = lattice->box;
    if (turn <= 0)
        return MC_OK;
    double west = grid->extent.minx, width = cover->box.maxx - cover->box.minx;
    cover->box.minx = width >= turn ? west : cover->box.minx - turn * floor((cover->box.minx - west) / turn);
    cover->box.maxx = cover->box.minx + fmin(width, turn);
    return MC_OK;
}
