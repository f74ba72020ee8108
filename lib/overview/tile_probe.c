/* See tile_probe.h. */
#include "overview/tile_probe.h"

#include <limits.h>
#include <math.h>

enum {
    SIDE = 2,              /* tiles of a block in each direction */
    MADE_AT_ONCE = 1 << 12 /* features that a block takes before the next one is begun */
};

/* Places, in units, that are told apart and can be counted. */
#define UNITS_MOST 1e15

struct mc_tile_probe {
    mc_mvt_options options;
    mc_vector_tile_lattice lattice;
    mc_pixel_grid whole; /* of the level */
    mc_mvt *block;
    int made;
    mc_geometry geometry;
    apr_pool_t *pool; /* of the block, and of what is read */
};

static apr_status_t
free_probe(void *data)
{
    mc_geometry_free(&((mc_tile_probe *)data)->geometry);
    return APR_SUCCESS;
}

static mc_pixel_grid
grid_of_block(const mc_tile_probe *probe, int column, int row)
{
    const mc_vector_tile_lattice *at = &probe->lattice;
    return mc_mvt_pixel_grid(&probe->options, at->x0, at->y0, at->width, at->height, column, row);
}

mc_tile_probe *
mc_tile_probe_create(const mc_mvt_options *options, const mc_vector_tile_lattice *lattice, apr_pool_t *pool)
{
    mc_tile_probe *made = apr_pcalloc(pool, sizeof(*made));
    made->options = *options;
    made->options.max_features = INT_MAX; /* the budgets are looked at by others */
    made->options.max_bytes = INT64_MAX;
    made->lattice = *lattice;
    made->whole = grid_of_block(made, 0, 0);
    apr_pool_create(&made->pool, pool);
    apr_pool_cleanup_register(pool, made, free_probe, apr_pool_cleanup_null);
    return made;
}

/* An empty block, from time to time: what a block takes is kept in memory. */
static void
renew_block(mc_tile_probe *probe)
{
    if (probe->block != NULL && probe->made < MADE_AT_ONCE)
        return;
    apr_pool_clear(probe->pool);
    probe->block = mc_mvt_create(&probe->options, SIDE, SIDE, 1, probe->pool);
    probe->made = 0;
    mc_mvt_layer(probe->block, "", NULL, 0, false);
}

/* The first and the last tile that reach from `low` to `high`, in units; false: they cannot be counted. */
static bool
find_probed_range(double range[2], const mc_mvt_options *options, double low, double high)
{
    range[0] = ceil((low - options->extent - options->buffer) / options->extent);
    range[1] = floor((high + options->buffer) / options->extent);
    return fabs(low) < UNITS_MOST && fabs(high) < UNITS_MOST && fabs(range[0]) < INT_MAX / 2.0;
}

/* The upper left tile of a block in which all tiles lie that show the geometry; false: there is none. */
static bool
find_probed_block(int *column, int *row, const mc_tile_probe *probe, const mc_overview_row *feature)
{
    const mc_pixel_grid *grid = &probe->whole;
    const double per_x = grid->per_x * MC_SUBPIXELS, per_y = grid->per_y * MC_SUBPIXELS;
    double columns[2], rows[2];
    mc_extent bounds;
    if (!mc_wkb_bounds(&bounds, feature->geometry, feature->size) ||
        !find_probed_range(columns, &probe->options, rint((bounds.minx - grid->x0) * per_x),
                           rint((bounds.maxx - grid->x0) * per_x)) ||
        !find_probed_range(rows, &probe->options, rint((grid->y0 - bounds.maxy) * per_y),
                           rint((grid->y0 - bounds.miny) * per_y)))
        return false;
    *column = (int)columns[0];
    *row = (int)rows[0];
    return columns[1] - columns[0] < SIDE && rows[1] - rows[0] < SIDE;
}

/* The only shape that the geometry has; NULL: it has several, or none. */
static const mc_shape *
find_only_shape(const mc_geometry *geometry)
{
    const mc_shape *only = NULL;
    for (int kind = 0; kind < 3; kind++) {
        if (geometry->shapes[kind].part_count == 0)
            continue;
        if (only != NULL)
            return NULL;
        only = &geometry->shapes[kind];
    }
    return only;
}

/* Adds the geometry to a block, whose upper left tile is given, and looks which of its tiles have one feature more. */
static mc_error *
try_tiles(mc_tile_look *look, mc_tile_probe *probe, int column, int row, mc_ctx *ctx)
{
    int before[SIDE][SIDE];
    const mc_feature feature = { .geometry = &probe->geometry };
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            before[y][x] = mc_mvt_count(probe->block, x, y);
    probe->made++;
    MC_TRY(mc_mvt_visit(probe->block, &feature, ctx));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (mc_mvt_count(probe->block, x, y) > before[y][x]) {
                look->tiles[look->count].column = (int64_t)column + x;
                look->tiles[look->count++].row = (int64_t)row + y;
            }
    look->shown = look->count > 0;
    return MC_OK;
}

mc_error *
mc_tile_probe_look(mc_tile_look *look, mc_tile_probe *probe, const mc_overview_row *row, mc_ctx *ctx)
{
    int32_t low[2], high[2];
    int at[2] = { 0, 0 };
    const bool placed = find_probed_block(&at[0], &at[1], probe, row);
    renew_block(probe);
    const mc_pixel_grid grid = placed ? grid_of_block(probe, at[0], at[1]) : probe->whole;
    mc_error *error = mc_wkb_read(&probe->geometry, row->geometry, row->size, &grid, probe->pool);
    *look = (mc_tile_look){ .unreadable = error != MC_OK };
    if (error != MC_OK) { /* tiles leave it out, too */
        mc_error_ignore(error);
        return MC_OK;
    }
    const mc_shape *only = find_only_shape(&probe->geometry);
    look->shown = !mc_geometry_is_empty(&probe->geometry);
    if (only == NULL || !placed)
        return MC_OK;
    (void)mc_shape_bounds(only, &low[0], &low[1], &high[0], &high[1]);
    const uint32_t width = (uint32_t)high[0] - (uint32_t)low[0], height = (uint32_t)high[1] - (uint32_t)low[1];
    look->size = width > height ? width : height;
    return try_tiles(look, probe, at[0], at[1], ctx);
}
