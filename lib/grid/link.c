/* A grid as a tileset uses it: which levels and tiles it has there (docs/reference/configuration.md 6.1). */
#include <apr_strings.h>
#include <math.h>
#include <stdint.h>

#include "grid/grid_private.h"

typedef struct link_config {
    const char *grid;
    mc_number_list restricted_extent;
    int tolerance;
    int minzoom, maxzoom;
    int max_cached_zoom;
    int strategy;
    bool intermediate;
    const char *ruleset;
} link_config;

#define FIELD(member) offsetof(link_config, member)

const mc_key mc_grid_link_keys[] = {
    MC_KEY_TEXT("", FIELD(grid), "Name of a grid.", .flags = MC_KEY_REQUIRED),
    MC_KEY_NUMBERS(
        "@restricted_extent", FIELD(restricted_extent),
        "minx miny maxx maxy in units of the grid: tiles outside of it do not exist. By default the grid's extent.",
        .min = 4, .max = 4),
    MC_KEY_INT("@tolerance", FIELD(tolerance), "Tiles around the extent that exist nevertheless, at each level.",
               .max = INT32_MAX, .fallback = "5"),
    MC_KEY_INT("@minzoom", FIELD(minzoom), "First level; 0 by default.", .max = INT32_MAX),
    MC_KEY_INT("@maxzoom", FIELD(maxzoom), "Last level; by default the last one of the grid.", .max = INT32_MAX),
    MC_KEY_INT("@max-cached-zoom", FIELD(max_cached_zoom),
               "Last level that is cached; tiles of the levels after it are made on the fly.", .max = INT32_MAX),
    MC_KEY_CHOICE("@out-of-zoom-strategy", FIELD(strategy), "reassemble|proxy",
                  "How tiles after max-cached-zoom are made: from its tiles, or by asking the source.",
                  .fallback = "reassemble"),
    MC_KEY_TRUE_ONLY("@use_wms_intermediate_resolutions", FIELD(intermediate),
                     "true: WMS maps may use tiles of a further grid with resolutions half way between the levels.",
                     .fallback = "false"),
    MC_KEY_TEXT("@ruleset", FIELD(ruleset), "Name of a ruleset."),
    MC_KEY_END,
};

#undef FIELD

/* A whole number of tiles inside 0..count, whatever the double is. */
static int
clip_tile_count(double tiles, int count)
{
    if (!(tiles > 0))
        return 0;
    return tiles < count ? (int)tiles : count;
}

static void
set_limits(mc_grid_link *link, apr_pool_t *pool)
{
    const double slack = 1e-7; /* tiles: extents that end on a tile edge, as far as their digits go */
    const mc_grid *grid = link->grid;
    mc_tile_range *limits = apr_pcalloc(pool, sizeof(mc_tile_range) * (size_t)grid->level_count);
    for (int z = 0; z < grid->level_count; z++) {
        mc_grid_cells cells = mc_grid_cells_of(grid, &link->extent, z);
        int columns = grid->levels[z].columns;
        int rows = grid->levels[z].rows;
        limits[z] = (mc_tile_range){
            .minx = clip_tile_count(floor(cells.minx + slack) - link->tolerance, columns),
            .miny = clip_tile_count(floor(cells.miny + slack) - link->tolerance, rows),
            .maxx = clip_tile_count(ceil(cells.maxx - slack) + link->tolerance, columns),
            .maxy = clip_tile_count(ceil(cells.maxy - slack) + link->tolerance, rows),
        };
    }
    link->limits = limits;
}

static bool
set_link_extent(mc_grid_link *link, const link_config *config, const mc_node *node, mc_build *build)
{
    link->extent = link->grid->extent;
    if (config->restricted_extent.count == 0)
        return true;
    if (!mc_extent_read(&link->extent, &config->restricted_extent, node, build->diagnostics))
        return false;
    link->restricted = true;
    if (!mc_extent_intersects(&link->extent, &link->grid->extent))
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "the restricted_extent lies outside of grid \"%s\"; its units must be those of the grid",
                    link->grid->name);
    return true;
}

static bool
set_zooms(mc_grid_link *link, const link_config *config, const mc_node *node, mc_diagnostics *diagnostics)
{
    int last = link->grid->level_count - 1;
    link->minzoom = config->minzoom;
    link->maxzoom = config->maxzoom < 0 ? last : config->maxzoom;
    link->max_cached_zoom = config->max_cached_zoom;
    link->strategy = (mc_zoom_strategy)config->strategy;
    if (link->maxzoom > last || link->minzoom > link->maxzoom) {
        mc_complain(diagnostics, MC_REFUSED, node,
                    "minzoom %d and maxzoom %d do not fit; grid \"%s\" has levels 0 to %d and minzoom must not exceed "
                    "maxzoom",
                    link->minzoom, link->maxzoom, link->grid->name, last);
        return false;
    }
    if (link->max_cached_zoom < 0) {
        if (mc_node_attr(node, "out-of-zoom-strategy") != NULL)
            mc_complain(diagnostics, MC_WARNING, node, "out-of-zoom-strategy has no effect without max-cached-zoom");
        return true;
    }
    if (link->max_cached_zoom < link->minzoom || link->max_cached_zoom > link->maxzoom + 1) {
        mc_complain(diagnostics, MC_REFUSED, node, "max-cached-zoom %d is not between minzoom %d and maxzoom %d",
                    link->max_cached_zoom, link->minzoom, link->maxzoom);
        return false;
    }
    if (link->max_cached_zoom > link->maxzoom) {
        mc_complain(diagnostics, MC_WARNING, node, "max-cached-zoom %d has no effect beyond maxzoom %d",
                    link->max_cached_zoom, link->maxzoom);
        link->max_cached_zoom = -1;
    }
    return true;
}

/*
 * The hidden grid: tiles half as large again, level i half way between the resolutions of i and i + 1. MapCache's
 * library prints 0.5 without its zero, and so the tiles of existing caches are named.
 */
static mc_grid *
intermediate_grid(const mc_grid *grid, apr_pool_t *pool)
{
    mc_grid *half = apr_pmemdup(pool, grid, sizeof(*grid));
    half->name = apr_pstrcat(pool, grid->name, "_intermediate_.5", NULL);
    half->tile_width = grid->tile_width + grid->tile_width / 2;
    half->tile_height = grid->tile_height + grid->tile_height / 2;
    int count = grid->level_count - 1;
    double *resolutions = apr_palloc(pool, sizeof(double) * (size_t)count);
    for (int z = 0; z < count; z++)
        resolutions[z] = grid->levels[z].resolution + (grid->levels[z + 1].resolution - grid->levels[z].resolution) / 2;
    if (mc_grid_set_levels(half, resolutions, count, pool) >= 0)
        return NULL;
    mc_grid_set_definition(half);
    return half;
}

/* Levels that would be synthesised have no intermediate ones: those come only from stored or rendered tiles. */
static void
add_intermediate(mc_grid_link *link, const mc_node *node, mc_build *build)
{
    int last = link->max_cached_zoom >= 0 ? link->max_cached_zoom : link->maxzoom;
    mc_grid *grid = last > link->minzoom ? intermediate_grid(link->grid, build->pool) : NULL;
    if (grid == NULL) {
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "use_wms_intermediate_resolutions has no effect: there are no two cached levels to lie between");
        return;
    }
    mc_grid_link *half = apr_pmemdup(build->pool, link, sizeof(*link));
    half->grid = grid;
    half->maxzoom = last - 1;
    half->max_cached_zoom = -1;
    half->intermediate = NULL;
    set_limits(half, build->pool);
    link->intermediate = half;
}

static mc_grid *
make_dense_grid(const mc_grid *grid, int density, const char *name, apr_pool_t *pool)
{
    mc_grid *dense = apr_pmemdup(pool, grid, sizeof(*grid));
    mc_level *levels = apr_pmemdup(pool, grid->levels, sizeof(*levels) * (size_t)grid->level_count);
    for (int z = 0; z < grid->level_count; z++)
        levels[z].resolution /= density;
    dense->name = name;
    dense->density = density;
    dense->tile_width *= density;
    dense->tile_height *= density;
    dense->levels = levels;
    mc_grid_set_definition(dense);
    return dense;
}

mc_grid_link *
mc_grid_link_dense(const mc_grid_link *link, int density, mc_build *build)
{
    const char *name = apr_psprintf(build->pool, "%s@%dx", link->grid->name, density);
    if (apr_hash_get(build->grids, name, APR_HASH_KEY_STRING) != NULL)
        return NULL;
    if (build->dense_grids == NULL)
        build->dense_grids = apr_hash_make(build->pool);
    mc_grid *grid = apr_hash_get(build->dense_grids, name, APR_HASH_KEY_STRING);
    if (grid == NULL) {
        grid = make_dense_grid(link->grid, density, name, build->pool);
        apr_hash_set(build->dense_grids, name, APR_HASH_KEY_STRING, grid);
    }
    mc_grid_link *dense = apr_pmemdup(build->pool, link, sizeof(*link));
    dense->grid = grid;
    dense->intermediate = NULL;
    return dense;
}

mc_grid_link *
mc_grid_link_from_config(const mc_node *node, mc_build *build)
{
    link_config config = { .minzoom = 0, .maxzoom = -1, .max_cached_zoom = -1 };
    if (!mc_config_read(&config, node, mc_grid_link_keys, build->diagnostics))
        return NULL;
    mc_grid_link *link = apr_pcalloc(build->pool, sizeof(*link));
    link->grid = mc_config_find(build->grids, "grid", config.grid, node, build->diagnostics);
    link->tolerance = config.tolerance;
    if (link->grid == NULL || !set_link_extent(link, &config, node, build) ||
        !set_zooms(link, &config, node, build->diagnostics))
        return NULL;
    if (config.ruleset != NULL) {
        link->ruleset = mc_config_find(build->rulesets, "ruleset", config.ruleset, node, build->diagnostics);
        if (link->ruleset == NULL)
            return NULL;
    }
    set_limits(link, build->pool);
    if (config.intermediate)
        add_intermediate(link, node, build);
    return link;
}

mc_error *
mc_grid_link_check(const mc_grid_link *link, int z, int x, int y, apr_pool_t *pool)
{
    if (z < link->minzoom || z > link->maxzoom)
        return mc_error_located(pool, MC_ERR_TILE_OUT_OF_RANGE, "TileMatrix", "level %d is not in %d..%d", z,
                                link->minzoom, link->maxzoom);
    const mc_tile_range *limits = &link->limits[z];
    if (x < limits->minx || x >= limits->maxx)
        return mc_error_located(pool, MC_ERR_TILE_OUT_OF_RANGE, "TileCol", "tile x=%d is not in [%d,%d[ at level %d", x,
                                limits->minx, limits->maxx, z);
    if (y < limits->miny || y >= limits->maxy)
        return mc_error_located(pool, MC_ERR_TILE_OUT_OF_RANGE, "TileRow", "tile y=%d is not in [%d,%d[ at level %d", y,
                                limits->miny, limits->maxy, z);
    return MC_OK;
}

/* A range of tiles between two positions; its ends give way by `slack` tiles, but a range that they would empty keeps
 * the tile in its middle. */
static void
round_tile_range(double from, double to, double slack, int first, int last, int *min, int *max)
{
    double lower = floor(from + slack);
    double upper = ceil(to - slack);
    if (upper <= lower) {
        lower = floor((from + to) / 2);
        upper = lower + 1;
    }
    *min = lower > first ? clip_tile_count(lower, last) : first;
    *max = clip_tile_count(upper, last);
}

bool
mc_grid_link_tiles(const mc_grid_link *link, const mc_extent *box, int z, mc_tile_range *range)
{
    const mc_grid *grid = link->grid;
    if (z < 0 || z >= grid->level_count || !mc_extent_valid(box))
        return false;
    const double slack = 0.02; /* pixels */
    const mc_tile_range *limits = &link->limits[z];
    mc_grid_cells cells = mc_grid_cells_of(grid, box, z);
    mc_tile_range found;
    round_tile_range(cells.minx, cells.maxx, slack / grid->tile_width, limits->minx, limits->maxx, &found.minx,
                     &found.maxx);
    round_tile_range(cells.miny, cells.maxy, slack / grid->tile_height, limits->miny, limits->maxy, &found.miny,
                     &found.maxy);
    if (found.minx >= found.maxx || found.miny >= found.maxy)
        return false;
    *range = found;
    return true;
}

static int
find_nearest_link_level(const mc_grid_link *link, double resolution, double *distance)
{
    int nearest = link->minzoom;
    *distance = fabs(link->grid->levels[nearest].resolution - resolution);
    for (int z = link->minzoom + 1; z <= link->maxzoom; z++) {
        double other = fabs(link->grid->levels[z].resolution - resolution);
        if (other < *distance) {
            nearest = z;
            *distance = other;
        }
    }
    return nearest;
}

int
mc_grid_link_level(const mc_grid_link *link, double resolution, const mc_grid_link **used)
{
    double distance, half_distance;
    int z = find_nearest_link_level(link, resolution, &distance);
    *used = link;
    if (link->intermediate == NULL)
        return z;
    int half = find_nearest_link_level(link->intermediate, resolution, &half_distance);
    if (!(half_distance < distance))
        return z;
    *used = link->intermediate;
    return half;
}
