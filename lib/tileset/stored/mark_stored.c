/* See mark_stored.h. */
#include "tileset/stored/mark_stored.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache/marked.h"
#include "cdn/purgers.h"
#include "changes/mark_boxes.h"
#include "changes/watch.h"
#include "tileset/stored/stored_walk.h"
#include "tileset/tileset_private.h"
#include "vector/crs/projection.h"

/* Marks that are committed together. Few: what a server draws meanwhile is overwritten by its mark. */
enum { BATCH = 128 };

/* Pixels that a box is made wide at least: one without a size touches a tile, too. */
#define LEAST_PIXELS 0.1

/* The units of a further format are those of the first one. */
static const mc_watch *
mark_units_of(const mc_tileset *tileset)
{
    return tileset->master != NULL ? tileset->master->shown : tileset->shown;
}

const char *
mc_tileset_unmarkable(const mc_tileset *tileset, apr_pool_t *pool)
{
    const char *problem = mc_tileset_unchangeable(tileset, pool);
    if (problem != NULL || mc_cache_keeps_time(tileset->cache))
        return problem;
    return apr_psprintf(pool,
                        "cache \"%s\" of tileset \"%s\" does not keep the times of its tiles, so that none can be "
                        "marked: they can be deleted (mapcache purge)",
                        tileset->cache->name, tileset->name);
}

const char *
mc_tileset_unchangeable(const mc_tileset *tileset, apr_pool_t *pool)
{
    if (tileset->not_built != NULL)
        return apr_psprintf(pool, "tileset \"%s\": %s", tileset->name, tileset->not_built);
    if (tileset->cache == NULL || tileset->cache->ops->keeps_nothing)
        return apr_psprintf(pool, "tileset \"%s\" keeps no tiles", tileset->name);
    if (tileset->source == NULL || tileset->read_only || mark_units_of(tileset) == NULL)
        return apr_psprintf(pool,
                            "nobody would draw the tiles of tileset \"%s\" anew: it has no source, or is read-only",
                            tileset->name);
    return NULL;
}

/* ---- one tile */

/* The bytes stay as they are; the time says that they are old. */
static mc_error *
put_marked_tile(const mc_tileset *tileset, const mc_tile_key *key, const mc_tile *tile, mc_ctx *ctx)
{
    const mc_tile_write put = { .key = *key,
                                .data = tile->data,
                                .lifetime = mc_tileset_store_lifetime(tileset),
                                .made = mc_marked_time(tile->mtime),
                                .layers = mc_tileset_vector_layers,
                                .layers_baton = tileset };
    return mc_cache_put(tileset->cache, &put, 1, ctx);
}

static mc_error *
mark_tile(mc_mark_counts *counts, const mc_tileset *tileset, const mc_tile_key *key, const mc_tile *tile, bool dry_run,
          bool timeless, mc_ctx *ctx)
{
    counts->looked++;
    if (mc_is_marked_time(tile->mtime))
        return MC_OK;
    counts->marked++;
    if (dry_run)
        return MC_OK;
    if (timeless || tile->data == NULL || tile->data->size == 0) /* nothing that could be shown meanwhile */
        return mc_cache_remove(tileset->cache, key, ctx);
    return put_marked_tile(tileset, key, tile, ctx);
}

mc_error *
mc_tileset_mark_metatile(mc_mark_counts *counts, const mc_tile_request *wanted, apr_time_t older, mc_ctx *ctx)
{
    const mc_tileset *tileset = wanted->tileset;
    mc_tile_key key;
    MC_TRY(mc_tileset_key(&key, wanted, ctx, ctx->pool));
    mc_metatile metatile = mc_tileset_metatile(tileset, key.grid, key.z, key.x, key.y);
    key.renderable = true;
    for (int i = 0; i < metatile.rows * metatile.columns; i++) {
        mc_tile *tile = NULL;
        key.x = metatile.x + i % metatile.columns;
        key.y = metatile.y + i / metatile.columns;
        MC_TRY(mc_cache_get(&tile, tileset->cache, &key, ctx, ctx->pool));
        if (tile != NULL && (older == 0 || tile->mtime == 0 || mc_time_made(tile->mtime) < older))
            MC_TRY(mark_tile(counts, tileset, &key, tile, false, false, ctx));
    }
    return MC_OK;
}

/* ---- areas */

typedef struct area_marking {
    const mc_tileset *tileset;
    const mc_mark_area *area;
    mc_mark_counts *counts;
    bool timeless; /* tiles cannot be marked, they are removed */
} area_marking;

static mc_error *
mark_visited_tile(void *baton, const mc_tile_key *key, mc_ctx *ctx)
{
    const area_marking *marking = baton;
    const mc_mark_area *area = marking->area;
    mc_tile *tile = NULL;
    MC_TRY(mc_cache_get(&tile, marking->tileset->cache, key, ctx, ctx->pool));
    if (tile == NULL)
        return MC_OK;
    if (area->most > 0 && marking->counts->marked >= area->most && !mc_is_marked_time(tile->mtime))
        return mc_error_create(ctx->pool, MC_ERR_BUSY, "more than %" APR_INT64_T_FMT " tiles are stored there",
                               (apr_int64_t)area->most);
    MC_TRY(mark_tile(marking->counts, marking->tileset, key, tile, area->dry_run, marking->timeless, ctx));
    return mc_cache_writes_count(ctx->writes) < BATCH ? MC_OK : mc_cache_writes_flush(ctx);
}

static int
widen_to_units(int at, int side, bool up)
{
    return up ? (at + side - 1) / side * side : at / side * side;
}

/* The tiles of a level that a box meets, widened to whole metatiles: what a tile shows moves because of what lies in
 * another tile of its metatile. Adds at most three ranges: a box counts a turn around the globe away, too. */
static void
add_ranges_of_box(apr_array_header_t *ranges, const mc_watch_link *unit, const mc_extent *box, int z)
{
    const mc_grid_link *link = unit->link;
    const double least = LEAST_PIXELS * link->grid->levels[z].resolution;
    const double turn = mc_projection_turn(link->grid->srs);
    const double more_x = fmax(0, least - (box->maxx - box->minx)) / 2;
    const double more_y = fmax(0, least - (box->maxy - box->miny)) / 2;
    for (int side = -1; side <= 1; side++) {
        mc_tile_range range;
        const mc_extent moved = { box->minx - more_x + side * turn, box->miny - more_y,
                                  box->maxx + more_x + side * turn, box->maxy + more_y };
        if ((side != 0 && turn <= 0) || !mc_grid_link_tiles(link, &moved, z, &range))
            continue;
        const mc_tile_range *limits = &link->limits[z];
        const mc_tile_range wide = { widen_to_units(range.minx, unit->columns, false),
                                     widen_to_units(range.miny, unit->rows, false),
                                     widen_to_units(range.maxx, unit->columns, true),
                                     widen_to_units(range.maxy, unit->rows, true) };
        APR_ARRAY_PUSH(ranges, mc_tile_range) = mc_tile_range_intersection(&wide, limits);
    }
}

static int
compare_tile_ranges(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(mc_tile_range)); /* any order in which equal ones are neighbours */
}

/* Boxes in the CRS of the grid (mc_extent); NULL: they cannot be placed on the grid, so that all of it counts. */
static apr_array_header_t *
place_boxes(const mc_mark_area *area, const mc_grid *grid, apr_pool_t *pool)
{
    mc_projection *projection = NULL;
    apr_array_header_t *placed = apr_array_make(pool, 64, sizeof(mc_extent));
    if (area->boxes == NULL || area->boxes->whole)
        return NULL;
    if (area->srs != NULL && mc_projection_open(&projection, area->srs, grid->srs, pool) != MC_OK)
        return NULL;
    for (int i = 0; i < area->boxes->count; i++) {
        bool whole = false;
        mc_extent box = area->boxes->boxes[i];
        if (!mc_place_box(&box, &whole, projection, grid))
            continue;
        if (whole)
            return NULL;
        APR_ARRAY_PUSH(placed, mc_extent) = box;
    }
    return placed;
}

/* What is meant of a level (mc_tile_range), each range once. `boxes` NULL: all of it. */
static apr_array_header_t *
list_level_ranges(const mc_watch_link *unit, const apr_array_header_t *boxes, int z, apr_pool_t *pool)
{
    apr_array_header_t *ranges = apr_array_make(pool, 64, sizeof(mc_tile_range));
    if (boxes == NULL)
        APR_ARRAY_PUSH(ranges, mc_tile_range) = unit->link->limits[z];
    for (int i = 0; boxes != NULL && i < boxes->nelts; i++)
        add_ranges_of_box(ranges, unit, &APR_ARRAY_IDX(boxes, i, mc_extent), z);
    qsort(ranges->elts, (size_t)ranges->nelts, sizeof(mc_tile_range), compare_tile_ranges);
    int count = 0;
    for (int i = 0; i < ranges->nelts; i++) {
        const mc_tile_range range = APR_ARRAY_IDX(ranges, i, mc_tile_range);
        if (count == 0 || memcmp(&range, &APR_ARRAY_IDX(ranges, count - 1, mc_tile_range), sizeof(range)) != 0)
            APR_ARRAY_IDX(ranges, count++, mc_tile_range) = range;
    }
    ranges->nelts = count;
    return ranges;
}

static mc_error *
mark_level(const area_marking *marking, const mc_watch_link *unit, const apr_array_header_t *boxes, int z, mc_ctx *ctx,
           apr_pool_t *pool)
{
    const apr_array_header_t *ranges = list_level_ranges(unit, boxes, z, pool);
    for (int i = 0; i < ranges->nelts; i++) {
        const mc_stored_part part = { (mc_tileset *)marking->tileset, unit->link, z,
                                      APR_ARRAY_IDX(ranges, i, mc_tile_range), marking->area->values };
        MC_TRY(mc_tileset_walk_stored(&part, mark_visited_tile, (void *)(uintptr_t)marking, ctx, pool));
    }
    return MC_OK;
}

/* GRID means GRID@2x, too: the same tiles for fine screens. */
static bool
is_grid_meant(const mc_mark_area *area, const char *grid)
{
    size_t size = area->grid == NULL ? 0 : strlen(area->grid);
    return area->grid == NULL || (strncmp(grid, area->grid, size) == 0 && (grid[size] == '\0' || grid[size] == '@'));
}

static mc_error *
mark_format(const area_marking *marking, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_watch *units = mark_units_of(marking->tileset);
    const mc_mark_area *area = marking->area;
    for (int i = 0; i < units->link_count; i++) {
        const mc_watch_link *unit = &units->links[i];
        const mc_grid *grid = unit->link->grid;
        if (!is_grid_meant(area, grid->name))
            continue;
        apr_pool_t *scratch;
        apr_pool_create(&scratch, pool);
        const apr_array_header_t *boxes = place_boxes(area, grid, scratch);
        mc_error *error = MC_OK;
        for (int z = area->minzoom < 0 ? 0 : area->minzoom;
             z <= area->maxzoom && z < grid->level_count && error == MC_OK; z++)
            error = mc_error_copy(mark_level(marking, unit, boxes, z, ctx, scratch), pool);
        apr_pool_destroy(scratch);
        MC_TRY(error);
    }
    return MC_OK;
}

/* ---- caches in front */

static void
purge_link(const char *tileset, const struct mc_cdns *cdns, const mc_watch_link *unit, const mc_mark_area *area,
           const mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_grid *grid = unit->link->grid;
    const apr_array_header_t *boxes = place_boxes(area, grid, pool);
    for (int z = area->minzoom < 0 ? 0 : area->minzoom; z <= area->maxzoom && z < grid->level_count; z++) {
        const apr_array_header_t *ranges = list_level_ranges(unit, boxes, z, pool);
        for (int i = 0; i < ranges->nelts; i++) {
            const mc_purged_tiles tiles = { tileset,       unit->link, z, APR_ARRAY_IDX(ranges, i, mc_tile_range),
                                            unit->columns, unit->rows };
            mc_purgers_add(ctx->process->purgers, cdns, &tiles, true);
        }
    }
}

void
mc_tileset_purge_in_front(const mc_tileset *tileset, const struct mc_cdns *cdns, const mc_mark_area *area,
                          const mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *first = tileset->master != NULL ? tileset->master : tileset;
    const mc_watch *units = first->shown;
    if (cdns == NULL || ctx->process == NULL || ctx->process->purgers == NULL || area->dry_run)
        return;
    for (int i = 0; units != NULL && i < units->link_count; i++)
        if (is_grid_meant(area, units->links[i].link->grid->name))
            purge_link(units->tileset, cdns, &units->links[i], area, ctx, pool);
    for (int i = 0; units == NULL && i < first->link_count; i++) { /* nobody draws it: it has no metatiles */
        const mc_watch_link unit = { .link = first->links[i], .columns = 1, .rows = 1 };
        if (is_grid_meant(area, unit.link->grid->name))
            purge_link(first->name, cdns, &unit, area, ctx, pool);
    }
}

/* ---- all of it */

mc_error *
mc_tileset_mark_stored(mc_mark_counts *counts, const mc_tileset *tileset, const mc_mark_area *area, mc_ctx *ctx,
                       apr_pool_t *pool)
{
    const char *problem =
        area->or_remove ? mc_tileset_unchangeable(tileset, pool) : mc_tileset_unmarkable(tileset, pool);
    if (problem != NULL)
        return mc_error_create(pool, MC_ERR_BAD_REQUEST, "%s", problem);
    mc_cache_writes *outer = ctx->writes;
    ctx->writes = mc_cache_writes_create(pool);
    area_marking marking = { tileset, area, counts, !mc_cache_keeps_time(tileset->cache) };
    mc_error *error = mark_format(&marking, ctx, pool);
    for (int i = 0; i < tileset->variant_count && error == MC_OK; i++) {
        marking.tileset = tileset->variants[i];
        if (marking.tileset->keeping != MC_KEEP_NEVER)
            error = mark_format(&marking, ctx, pool);
    }
    mc_error *stored = mc_cache_writes_flush(ctx);
    ctx->writes = outer;
    mc_tileset_purge_in_front(tileset, mark_units_of(tileset)->cdns, area, ctx, pool);
    return error != MC_OK ? error : stored;
}
