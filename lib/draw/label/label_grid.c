/* Room that labels have taken: boxes in the cells of a grid. */
#include <apr_tables.h>

#include "draw/label/label_private.h"

enum { CELL = 64, CELLS_MAX = 256 /* a side */ };

/* A box in one of the cells that it touches. */
typedef struct label_grid_entry {
    mc_label_box box;
    int next; /* entry of the same cell, -1: none */
} label_grid_entry;

struct mc_label_grid {
    int columns, rows;
    float cell_width, cell_height;
    int *first;                  /* entry of each cell, -1: none */
    apr_array_header_t *entries; /* of entry */
};

mc_label_grid *
mc_label_grid_create(int width, int height, apr_pool_t *pool)
{
    mc_label_grid *grid = apr_pcalloc(pool, sizeof(*grid));
    grid->columns = width / CELL < 1 ? 1 : width / CELL > CELLS_MAX ? CELLS_MAX : width / CELL;
    grid->rows = height / CELL < 1 ? 1 : height / CELL > CELLS_MAX ? CELLS_MAX : height / CELL;
    grid->cell_width = (float)width / (float)grid->columns;
    grid->cell_height = (float)height / (float)grid->rows;
    int cells = grid->columns * grid->rows;
    grid->first = apr_palloc(pool, sizeof(int) * (size_t)cells);
    for (int i = 0; i < cells; i++)
        grid->first[i] = -1;
    grid->entries = apr_array_make(pool, 256, sizeof(label_grid_entry));
    return grid;
}

static int
label_grid_cell(float at, float size, int count)
{
    int index = at <= 0 ? 0 : (int)(at / size);
    return index < count ? index : count - 1;
}

typedef struct cells {
    int left, top, right, bottom;
} cells;

static cells
cells_of(const mc_label_grid *grid, const mc_label_box *box, float margin)
{
    return (cells){ label_grid_cell(box->minx - margin, grid->cell_width, grid->columns),
                    label_grid_cell(box->miny - margin, grid->cell_height, grid->rows),
                    label_grid_cell(box->maxx + margin, grid->cell_width, grid->columns),
                    label_grid_cell(box->maxy + margin, grid->cell_height, grid->rows) };
}

static bool
meets_any(const mc_label_grid *grid, int at, const mc_label_box *box, float margin)
{
    for (const label_grid_entry *e; at >= 0; at = e->next) {
        e = &APR_ARRAY_IDX(grid->entries, at, label_grid_entry);
        if (e->box.minx < box->maxx + margin && e->box.maxx > box->minx - margin && e->box.miny < box->maxy + margin &&
            e->box.maxy > box->miny - margin)
            return true;
    }
    return false;
}

bool
mc_label_grid_is_free(const mc_label_grid *grid, const mc_label_box *boxes, int count, float margin)
{
    for (int i = 0; i < count; i++) {
        cells in = cells_of(grid, &boxes[i], margin);
        for (int row = in.top; row <= in.bottom; row++)
            for (int column = in.left; column <= in.right; column++)
                if (meets_any(grid, grid->first[row * grid->columns + column], &boxes[i], margin))
                    return false;
    }
    return true;
}

void
mc_label_grid_take(mc_label_grid *grid, const mc_label_box *boxes, int count)
{
    for (int i = 0; i < count; i++) {
        cells in = cells_of(grid, &boxes[i], 0);
        for (int row = in.top; row <= in.bottom; row++)
            for (int column = in.left; column <= in.right; column++) {
                int *first = &grid->first[row * grid->columns + column];
                APR_ARRAY_PUSH(grid->entries, label_grid_entry) = (label_grid_entry){ boxes[i], *first };
                *first = grid->entries->nelts - 1;
            }
    }
}
