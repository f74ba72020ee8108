/* <grid> from the configuration (docs/reference/configuration.md 2). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "grid/earth.h"
#include "grid/grid_private.h"

/* All feet of the registry differ by less. */
#define SAME_FOOT 1e-4

typedef struct grid_config {
    const char *name;
    const char *srs;
    apr_array_header_t *aliases;
    mc_number_list extent;
    mc_number_list size;
    mc_number_list resolutions;
    int units;
    int origin;
    apr_array_header_t *metadata;
} grid_config;

#define FIELD(member) offsetof(grid_config, member)

const mc_key mc_grid_keys[] = {
    MC_KEY_TEXT("@name", FIELD(name),
                "Unique name, part of URLs and cache keys; WGS84, GoogleMapsCompatible and g are taken.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("srs", FIELD(srs),
                "The coordinate reference system, e.g. EPSG:3857: what clients ask for and what sources are sent.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT("srsalias", FIELD(aliases), "A further name of the same system that clients may use.",
                .flags = MC_KEY_REPEATABLE),
    MC_KEY_NUMBERS("extent", FIELD(extent),
                   "minx miny maxx maxy in units of the srs; x (or longitude) first, whatever the srs says.",
                   .flags = MC_KEY_REQUIRED, .min = 4, .max = 4),
    MC_KEY_NUMBERS("size", FIELD(size), "Width and height of a tile in pixels.", .flags = MC_KEY_REQUIRED, .min = 2,
                   .max = 2),
    MC_KEY_NUMBERS("resolutions", FIELD(resolutions), "Units per pixel of each level, level 0 (the coarsest) first.",
                   .flags = MC_KEY_REQUIRED, .min = 1, .max = MC_MAX_LEVELS),
    MC_KEY_CHOICE_CI(
        "units", FIELD(units), "m|dd|ft",
        "Unit of the srs: metres, decimal degrees or feet (of an EPSG code the registry's foot, which may be the US "
        "survey foot).",
        .fallback = "m"),
    MC_KEY_CHOICE_CI("origin", FIELD(origin), "bottom-left|top-left|top-right|bottom-right",
                     "The corner of the extent where tile 0,0 lies; x and y grow away from it.",
                     .fallback = "bottom-left"),
    MC_KEY_TREE("metadata", FIELD(metadata), NULL, "title, WellKnownScaleSet (WMTS), profile (TMS).",
                .flags = MC_KEY_REPEATABLE),
    MC_KEY_END,
};

#undef FIELD

int
mc_grid_set_levels(mc_grid *grid, const double *resolutions, int count, apr_pool_t *pool)
{
    mc_level *levels = apr_pcalloc(pool, sizeof(mc_level) * (size_t)count);
    for (int z = 0; z < count; z++) {
        double width = grid->tile_width * resolutions[z];
        double height = grid->tile_height * resolutions[z];
        double columns = ceil((grid->extent.maxx - grid->extent.minx - 0.01 * width) / width);
        double rows = ceil((grid->extent.maxy - grid->extent.miny - 0.01 * height) / height);
        if (!(columns <= MC_MAX_TILES && rows <= MC_MAX_TILES))
            return z;
        /* The formula gives none for an extent below a hundredth of a tile; that one still has to be shown. */
        levels[z] = (mc_level){ resolutions[z], (int)fmax(columns, 1), (int)fmax(rows, 1) };
    }
    grid->levels = levels;
    grid->level_count = count;
    return -1;
}

void
mc_grid_set_definition(mc_grid *grid)
{
    const double shape[] = { grid->extent.minx, grid->extent.miny, grid->extent.maxx, grid->extent.maxy,
                             grid->metres_per_unit };
    const int counts[] = { (int)grid->origin, grid->tile_width, grid->tile_height, grid->density, grid->level_count };
    uint64_t hash = mc_hash64(grid->srs, strlen(grid->srs), 0);
    hash = mc_hash64(shape, sizeof(shape), hash);
    hash = mc_hash64(counts, sizeof(counts), hash);
    for (int z = 0; z < grid->level_count; z++) /* columns and rows follow from that */
        hash = mc_hash64(&grid->levels[z].resolution, sizeof(grid->levels[z].resolution), hash);
    grid->definition = hash;
}

void
mc_grid_set_axes(mc_grid *grid)
{
    bool xy_order;
    grid->epsg = mc_crs_epsg(grid->srs, &xy_order);
    grid->axes_swapped = !xy_order && mc_crs_axes_swapped(grid->epsg);
}

bool
mc_extent_read(mc_extent *extent, const mc_number_list *numbers, const mc_node *at, mc_diagnostics *diagnostics)
{
    *extent = (mc_extent){ numbers->values[0], numbers->values[1], numbers->values[2], numbers->values[3] };
    if (mc_extent_valid(extent) && isfinite(extent->maxx - extent->minx) && isfinite(extent->maxy - extent->miny))
        return true;
    mc_complain(diagnostics, MC_REFUSED, at,
                "%.15g %.15g %.15g %.15g is no extent; expected: minx miny maxx maxy with minx < maxx and miny < maxy",
                extent->minx, extent->miny, extent->maxx, extent->maxy);
    return false;
}

static bool
read_size(mc_grid *grid, const mc_number_list *size, const mc_node *at, mc_diagnostics *diagnostics)
{
    for (int i = 0; i < 2; i++) {
        double side = size->values[i];
        if (!(side >= 1 && side <= MC_MAX_TILE_SIDE && side == floor(side))) {
            mc_complain(diagnostics, MC_REFUSED, at, "%.15g is not a whole number of pixels from 1 to %d", side,
                        MC_MAX_TILE_SIDE);
            return false;
        }
    }
    grid->tile_width = (int)size->values[0];
    grid->tile_height = (int)size->values[1];
    return true;
}

static bool
check_resolutions(const mc_number_list *list, const mc_node *at, mc_diagnostics *diagnostics)
{
    for (int z = 0; z < list->count; z++) {
        if (!(list->values[z] > 0)) {
            mc_complain(diagnostics, MC_REFUSED, at, "level %d: %.15g is no resolution; it must be above 0", z,
                        list->values[z]);
            return false;
        }
    }
    for (int z = 1; z < list->count; z++) {
        if (list->values[z] >= list->values[z - 1]) {
            mc_complain(diagnostics, MC_WARNING, at,
                        "level %d (%.15g) is not finer than level %d (%.15g): resolutions should decrease", z,
                        list->values[z], z - 1, list->values[z - 1]);
            break;
        }
    }
    return true;
}

static const apr_array_header_t *
alias_texts(const apr_array_header_t *nodes, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, nodes->nelts, sizeof(const char *));
    for (int i = 0; i < nodes->nelts; i++)
        APR_ARRAY_PUSH(texts, const char *) = APR_ARRAY_IDX(nodes, i, const mc_node *)->text;
    return texts;
}

/* Feet are those of the CRS: EPSG measures many of the United States in survey feet, 2 in a million longer. */
static double
metres_of_unit(int unit, int epsg)
{
    enum { FEET = 2 };
    static const double metres[] = { 1, MC_METRES_PER_DEGREE, 0.3048 };
    double registered = mc_crs_metres_per_unit(epsg);
    bool is_foot = fabs(registered / metres[FEET] - 1) < SAME_FOOT;
    return unit == FEET && is_foot ? registered : metres[unit];
}

mc_grid *
mc_grid_from_config(const mc_node *node, mc_build *build)
{
    mc_diagnostics *diagnostics = build->diagnostics;
    grid_config config = { 0 };
    if (!mc_config_read(&config, node, mc_grid_keys, diagnostics))
        return NULL;
    mc_grid *grid = apr_pcalloc(build->pool, sizeof(*grid));
    grid->name = config.name;
    grid->srs = config.srs;
    grid->aliases = alias_texts(config.aliases, build->pool);
    grid->origin = (mc_origin)config.origin;
    grid->metadata = mc_metadata_create(build->pool);
    for (int i = 0; i < config.metadata->nelts; i++)
        mc_metadata_add(grid->metadata, APR_ARRAY_IDX(config.metadata, i, const mc_node *));
    mc_grid_set_axes(grid);
    grid->metres_per_unit = metres_of_unit(config.units, grid->epsg);
    const mc_node *resolutions = mc_node_child(node, "resolutions");
    bool sound = mc_extent_read(&grid->extent, &config.extent, mc_node_child(node, "extent"), diagnostics);
    sound &= read_size(grid, &config.size, mc_node_child(node, "size"), diagnostics);
    sound &= check_resolutions(&config.resolutions, resolutions, diagnostics);
    if (!sound)
        return NULL;
    int overfull = mc_grid_set_levels(grid, config.resolutions.values, config.resolutions.count, build->pool);
    if (overfull >= 0) {
        mc_complain(diagnostics, MC_REFUSED, resolutions, "level %d (%.15g) has more than %d tiles in a row or column",
                    overfull, config.resolutions.values[overfull], MC_MAX_TILES);
        return NULL;
    }
    mc_grid_set_definition(grid);
    return grid;
}
