/* Choosing levels and listing the tiles of a map, then fetching them. */
#include "map/plan.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "mapcache/trace.h"

/* A stored tile costs about 5 us to read: below so many the caller does it alone. */
#define FETCHES_WORTH_A_HELPER 64

/* How far from a tile's pixel grid a map may lie and still be copied instead of resampled
 * (docs/reference/design.md 3.1).
 */
#define EXACT_SCALE 1e-4
#define EXACT_OFFSET 0.02

/* By so many pixels what lies beyond the antimeridian reaches over the seam, so that rounding leaves no gap there. */
#define SEAM_OVERLAP 1e-6

int
mc_map_helpers(const struct mc_workers *workers, int threaded, int jobs)
{
    if (workers == NULL || threaded == 0 || jobs < 2)
        return 0;
    int helpers = threaded == 1 ? mc_workers_count(workers) : mc_workers_spare(workers);
    return helpers < jobs - 1 ? helpers : jobs - 1;
}

/* docs/reference/services.md 4.3: the nearest level; levels above max-cached-zoom are drawn from that one. */
static int
choose_plan_level(const mc_grid_link *link, double resolution, const mc_grid_link **used)
{
    int z = mc_grid_link_level(link, resolution, used);
    if ((*used)->max_cached_zoom >= 0 && z > (*used)->max_cached_zoom && (*used)->strategy == MC_REASSEMBLE)
        z = (*used)->max_cached_zoom;
    return z;
}

static bool
is_whole_pixel(double value)
{
    return fabs(value - round(value)) < EXACT_OFFSET;
}

/* Where the map lies on the mosaic of the layer's tiles. */
static void
place_plan_layer(mc_plan_layer *part, const mc_map_request *wanted)
{
    const mc_grid *grid = part->link->grid;
    double resolution = grid->levels[part->z].resolution;
    mc_extent mosaic = mc_grid_range_extent(grid, part->z, &part->range);
    part->x0 = (part->box.minx - mosaic.minx) / resolution + (part->layer->shift > 0 ? SEAM_OVERLAP : 0);
    part->y0 = (mosaic.maxy - part->box.maxy) / resolution;
    part->scale_x = (wanted->box.maxx - wanted->box.minx) / wanted->width / resolution;
    part->scale_y = (wanted->box.maxy - wanted->box.miny) / wanted->height / resolution;
    part->width = (part->range.maxx - part->range.minx) * grid->tile_width;
    part->height = (part->range.maxy - part->range.miny) * grid->tile_height;
    part->exact = fabs(part->scale_x - 1) < EXACT_SCALE && fabs(part->scale_y - 1) < EXACT_SCALE &&
                  is_whole_pixel(part->x0) && is_whole_pixel(part->y0) &&
                  is_whole_pixel(part->x0 + wanted->width * part->scale_x) &&
                  is_whole_pixel(part->y0 + wanted->height * part->scale_y);
}

/* The level of a layer and its tiles; false: the map shows none. */
static bool
find_plan_tiles(mc_plan_layer *part, const mc_map_layer *layer, const mc_map_request *wanted)
{
    double resolution = fmax((wanted->box.maxx - wanted->box.minx) / wanted->width,
                             (wanted->box.maxy - wanted->box.miny) / wanted->height);
    part->layer = layer;
    part->box = wanted->box;
    part->box.minx -= layer->shift;
    part->box.maxx -= layer->shift;
    part->z = choose_plan_level(layer->link, resolution, &part->link);
    return mc_grid_link_tiles(part->link, &part->box, part->z, &part->range);
}

bool
mc_map_layer_tiles(const mc_grid_link **link, int *z, mc_tile_range *range, const mc_map_request *wanted, int layer)
{
    mc_plan_layer part;
    const bool found = find_plan_tiles(&part, &wanted->layers[layer], wanted);
    *link = part.link;
    *z = part.z;
    *range = part.range;
    return found;
}

static mc_error *
plan_layer(mc_plan_layer *part, const mc_map_layer *layer, const mc_map_request *wanted, apr_pool_t *pool)
{
    if (!find_plan_tiles(part, layer, wanted))
        return MC_OK;
    apr_int64_t columns = part->range.maxx - part->range.minx, rows = part->range.maxy - part->range.miny;
    apr_int64_t limit = wanted->max_pixels > 0 ? wanted->max_pixels : MC_MAX_PIXELS;
    apr_int64_t tiles = limit / ((apr_int64_t)part->link->grid->tile_width * part->link->grid->tile_height);
    if (columns > tiles || rows > tiles || columns * rows > tiles)
        return mc_error_located(pool, MC_ERR_INVALID_PARAMETER, "BBOX",
                                "layer %s has no level coarse enough: the map would need %" APR_INT64_T_FMT
                                " tiles, more than %" APR_INT64_T_FMT,
                                layer->tileset->name, columns * rows, tiles);
    part->count = (int)(columns * rows);
    place_plan_layer(part, wanted);
    return MC_OK;
}

static void
list_plan_tiles(mc_plan *plan, int index)
{
    mc_plan_layer *part = &plan->layers[index];
    const mc_grid *grid = part->link->grid;
    double resolution = part->count == 0 ? 1 : grid->levels[part->z].resolution;
    mc_plan_tile *tile = &plan->tiles[part->first];
    for (int y = part->range.miny; y < part->range.maxy; y++)
        for (int x = part->range.minx; x < part->range.maxx; x++, tile++) {
            mc_extent extent = mc_grid_tile_extent(grid, part->z, x, y);
            tile->request = (mc_tile_request){ part->layer->tileset, part->link,        part->z, x, y,
                                               part->layer->values,  part->layer->style };
            tile->layer = index;
            tile->left = (int)lround((extent.minx - part->box.minx) / resolution + part->x0);
            tile->top = (int)lround((part->box.maxy - extent.maxy) / resolution + part->y0);
        }
}

static apr_status_t
drop_tiles(void *data)
{
    mc_plan *plan = data;
    for (int i = 0; i < plan->tile_count; i++)
        mc_buf_unref(plan->tiles[i].tile.data);
    return APR_SUCCESS;
}

mc_error *
mc_plan_make(mc_plan *plan, const mc_map_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)ctx;
    *plan = (mc_plan){ .wanted = wanted, .layer_count = wanted->count };
    plan->layers = apr_pcalloc(pool, sizeof(*plan->layers) * (size_t)wanted->count);
    for (int i = 0; i < wanted->count; i++) {
        plan->layers[i].first = plan->tile_count;
        MC_TRY(plan_layer(&plan->layers[i], &wanted->layers[i], wanted, pool));
        plan->tile_count += plan->layers[i].count;
        if (mc_extent_intersects(&plan->layers[i].box, &wanted->layers[i].link->extent))
            plan->overlaps = true;
    }
    plan->tiles = apr_pcalloc(pool, sizeof(*plan->tiles) * (size_t)(plan->tile_count + 1));
    for (int i = 0; i < wanted->count; i++)
        if (plan->layers[i].count > 0)
            list_plan_tiles(plan, i);
    apr_pool_cleanup_register(pool, plan, drop_tiles, apr_pool_cleanup_null);
    return MC_OK;
}

static void
keep_plan_tile(mc_plan_tile *entry, const mc_tile *tile)
{
    entry->tile = *tile;
    mc_buf_ref(tile->data);
    entry->fetched = true;
}

static mc_error *
fetch_stored(void *baton, int index, mc_ctx *ctx)
{
    mc_plan_tile *entry = &((mc_plan *)baton)->tiles[index];
    mc_tile *tile;
    if (entry->assembled != NULL || entry->asked)
        return MC_OK;
    MC_TRY(mc_tileset_get_stored(&tile, &entry->request, ctx, ctx->pool));
    if (tile != NULL)
        keep_plan_tile(entry, tile);
    return MC_OK;
}

/* The tiles of a layer whose store is far away, in one round trip. */
static mc_error *
fetch_together(mc_plan *plan, const mc_plan_layer *part, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tile_request *wanted = apr_palloc(pool, sizeof(*wanted) * (size_t)part->count);
    mc_tile **tiles = apr_pcalloc(pool, sizeof(mc_tile *) * (size_t)part->count);
    for (int i = 0; i < part->count; i++)
        wanted[i] = plan->tiles[part->first + i].request;
    MC_TRY(mc_tileset_get_stored_all(tiles, wanted, part->count, ctx, pool));
    for (int i = 0; i < part->count; i++) {
        mc_plan_tile *entry = &plan->tiles[part->first + i];
        entry->asked = true;
        if (tiles[i] != NULL)
            keep_plan_tile(entry, tiles[i]);
    }
    return MC_OK;
}

static mc_error *
fetch_layers_together(mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; i < plan->layer_count; i++) {
        const mc_plan_layer *part = &plan->layers[i];
        if (part->count > 0 && part->assembly == NULL && mc_tileset_gets_all(part->layer->tileset, part->link, part->z))
            MC_TRY(fetch_together(plan, part, ctx, pool));
    }
    return MC_OK;
}

/* One tile of each metatile that is missing: rendering it makes the others appear in the cache. */
typedef struct missing_tiles {
    mc_plan *plan;
    int *leaders;
    int leader_count;
} missing_tiles;

static bool
same_metatile(const mc_tile_request *a, const mc_tile_request *b)
{
    if (a->tileset != b->tileset || a->link != b->link || a->z != b->z || a->values != b->values)
        return false;
    int columns, rows;
    mc_tileset_metatile_size(&columns, &rows, a->tileset, a->link->grid);
    return a->x / columns == b->x / columns && a->y / rows == b->y / rows;
}

static void
find_missing(missing_tiles *missing, mc_plan *plan, apr_pool_t *pool)
{
    *missing = (missing_tiles){ plan, apr_pcalloc(pool, sizeof(int) * (size_t)(plan->tile_count + 1)), 0 };
    for (int i = 0; i < plan->tile_count; i++) {
        bool known = plan->tiles[i].fetched || plan->tiles[i].assembled != NULL;
        for (int j = 0; j < missing->leader_count && !known; j++)
            known = same_metatile(&plan->tiles[i].request, &plan->tiles[missing->leaders[j]].request);
        if (!known)
            missing->leaders[missing->leader_count++] = i;
    }
}

static mc_error *
fetch_any(mc_plan_tile *entry, mc_ctx *ctx)
{
    mc_tile *tile;
    MC_TRY(mc_ctx_check(ctx, ctx->pool));
    MC_TRY(mc_tileset_get(&tile, &entry->request, ctx, ctx->pool));
    keep_plan_tile(entry, tile);
    return MC_OK;
}

static mc_error *
fetch_leader(void *baton, int index, mc_ctx *ctx)
{
    missing_tiles *missing = baton;
    return fetch_any(&missing->plan->tiles[missing->leaders[index]], ctx);
}

static mc_error *
fetch_missing(mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    missing_tiles missing;
    find_missing(&missing, plan, pool);
    /* these wait more than they compute */
    int helpers = plan->wanted->threaded == 0 ? 0 : mc_workers_count(ctx->process->io);
    helpers = helpers < missing.leader_count ? helpers : missing.leader_count - 1;
    if (helpers > 0)
        MC_TRY(mc_workers_run(ctx->process->io, fetch_leader, &missing, missing.leader_count, helpers, ctx, pool));
    for (int i = 0; i < plan->tile_count; i++)
        if (!plan->tiles[i].fetched && plan->tiles[i].assembled == NULL)
            MC_TRY(fetch_any(&plan->tiles[i], ctx));
    return MC_OK;
}

/* Assembled tiles that are stored are fetched and made one by one, as are those that a rule or the zoom decides about.
 */
static bool
is_assembled_here(const mc_plan_layer *part)
{
    const mc_tileset *tileset = part->layer->tileset;
    bool cached = part->link->max_cached_zoom < 0 || part->z <= part->link->max_cached_zoom;
    bool here = tileset->assembly == MC_ASSEMBLE_ANIMATE ||
                (tileset->assembly == MC_ASSEMBLE_STACK && !tileset->store_assemblies);
    return here && part->count > 0 && cached && tileset->not_built == NULL && part->link->ruleset == NULL;
}

/* <threaded_fetching> is about the tiles of a map, <assembly_threaded_fetching> about the parts of a tile; here both
 * are one batch. */
static int
threads_of(const mc_plan *plan, const mc_plan_layer *part)
{
    int parts = mc_tileset_assembly_threads(part->layer->tileset, part->z);
    int tiles = plan->wanted->threaded;
    return parts == 1 || tiles == 1 ? 1 : parts == -1 && tiles == -1 ? -1 : tiles == -1 && parts == 0 ? -1 : 0;
}

mc_error *
mc_plan_assemble(mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    for (int i = 0; i < plan->layer_count; i++) {
        mc_plan_layer *part = &plan->layers[i];
        if (!is_assembled_here(part))
            continue;
        MC_SPAN(ctx, "mapcache_tileset_tile_get_with_subdimensions");
        mc_assembly_order order = { .tileset = part->layer->tileset,
                                    .link = part->link,
                                    .z = part->z,
                                    .range = part->range,
                                    .values = part->layer->values,
                                    .map = &part->box,
                                    .threaded = threads_of(plan, part) };
        MC_TRY(mc_assembly_gather(&part->assembly, &order, ctx, pool));
        for (int j = 0; j < part->count; j++)
            plan->tiles[part->first + j].assembled = &part->assembly->tiles[j];
        part->frames = part->assembly->tiles[0].frames;
        plan->frames = part->frames > plan->frames ? part->frames : plan->frames;
    }
    return MC_OK;
}

mc_error *
mc_plan_fetch(mc_plan *plan, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_prefetch_tiles");
    MC_TRY(mc_plan_assemble(plan, ctx, pool));
    MC_TRY(fetch_layers_together(plan, ctx, pool));
    int helpers = plan->tile_count >= FETCHES_WORTH_A_HELPER
                      ? mc_map_helpers(ctx->process->workers, plan->wanted->threaded, plan->tile_count)
                      : 0;
    if (helpers > 0) {
        MC_TRY(mc_workers_run(ctx->process->workers, fetch_stored, plan, plan->tile_count, helpers, ctx, pool));
    } else {
        mc_error *error = MC_OK;
        mc_cache_reads_begin(ctx);
        for (int i = 0; i < plan->tile_count && error == MC_OK; i++)
            error = fetch_stored(plan, i, ctx);
        mc_cache_reads_end(ctx);
        MC_TRY(error);
    }
    return fetch_missing(plan, ctx, pool);
}
