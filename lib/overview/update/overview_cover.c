/* See overview_cover.h. Boxes are laid over a lattice; cells of a row that follow each other make a box. */
#include "overview/update/overview_cover.h"

#include <math.h>
#include <stdlib.h>

enum { CELLS_MOST = 1 << 17 };

typedef struct cover_cell {
    int32_t row, column;
} cover_cell;

typedef struct cover_lattice {
    double x0, y0, side, reach;
} cover_lattice;

/* The cells of a box: left, bottom, right, top. */
static void
find_cells_of_box(double cells[4], const cover_lattice *lattice, const mc_extent *box)
{
    cells[0] = floor((box->minx - lattice->reach - lattice->x0) / lattice->side);
    cells[1] = floor((box->miny - lattice->reach - lattice->y0) / lattice->side);
    cells[2] = floor((box->maxx + lattice->reach - lattice->x0) / lattice->side);
    cells[3] = floor((box->maxy + lattice->reach - lattice->y0) / lattice->side);
}

static double
count_cells(const cover_lattice *lattice, const mc_box_set *boxes)
{
    double count = 0;
    for (int i = 0; i < boxes->count; i++) {
        double cells[4];
        find_cells_of_box(cells, lattice, &boxes->boxes[i]);
        count += (cells[2] - cells[0] + 1) * (cells[3] - cells[1] + 1);
        if (fmax(cells[2], cells[3]) > 1e9)
            return INFINITY;
    }
    return count;
}

static int
compare_cover_cells(const void *a, const void *b)
{
    const cover_cell *left = a, *right = b;
    if (left->row != right->row)
        return left->row < right->row ? -1 : 1;
    return left->column < right->column ? -1 : left->column > right->column;
}

static void
push_cells_of_box(apr_array_header_t *found, const cover_lattice *lattice, const mc_extent *box)
{
    double cells[4];
    find_cells_of_box(cells, lattice, box);
    const int32_t right = (int32_t)cells[2], top = (int32_t)cells[3];
    for (int32_t row = (int32_t)cells[1]; row <= top; row++)
        for (int32_t column = (int32_t)cells[0]; column <= right; column++)
            APR_ARRAY_PUSH(found, cover_cell) = (cover_cell){ row, column };
}

apr_array_header_t *
mc_overview_cover(const mc_box_set *boxes, double reach, apr_pool_t *pool)
{
    apr_array_header_t *made = apr_array_make(pool, 64, sizeof(mc_extent));
    cover_lattice lattice = { .x0 = INFINITY, .y0 = INFINITY, .side = reach / 2, .reach = reach };
    for (int i = 0; i < boxes->count; i++) {
        lattice.x0 = fmin(lattice.x0, boxes->boxes[i].minx - reach);
        lattice.y0 = fmin(lattice.y0, boxes->boxes[i].miny - reach);
    }
    while (count_cells(&lattice, boxes) > fmax(CELLS_MOST, 4.0 * boxes->count))
        lattice.side *= 2;
    apr_array_header_t *found = apr_array_make(pool, 1024, sizeof(cover_cell));
    for (int i = 0; i < boxes->count; i++)
        push_cells_of_box(found, &lattice, &boxes->boxes[i]);
    const cover_cell *cells = (const cover_cell *)found->elts;
    qsort(found->elts, (size_t)found->nelts, sizeof(cover_cell), compare_cover_cells);
    for (int i = 0, end; i < found->nelts; i = end) {
        for (end = i + 1;
             end < found->nelts && cells[end].row == cells[i].row && cells[end].column <= cells[end - 1].column + 1;)
            end++;
        APR_ARRAY_PUSH(made, mc_extent) =
            (mc_extent){ lattice.x0 + cells[i].column * lattice.side, lattice.y0 + cells[i].row * lattice.side,
                         lattice.x0 + (cells[end - 1].column + 1.0) * lattice.side,
                         lattice.y0 + (cells[i].row + 1.0) * lattice.side };
    }
    return made;
}
