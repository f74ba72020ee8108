/*
 * From options and configuration to what one run of the seeder does (docs/reference/services.md 9.1).
 */
#include "seed_setup.h"

#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "cli/common/values.h"
#include "grid/same.h"
#include "mapcache/server.h"

static const char *
load_seed_tileset(mc_seed_setup *setup)
{
    const mc_seed_pair *pair = setup->options.pair;
    if (pair != NULL) {
        setup->config = pair->config;
        setup->tileset = pair->drawn ? pair->target : pair->source;
        return NULL;
    }
    mc_server *server;
    mc_diagnostics *diagnostics = mc_diagnostics_create(setup->pool);
    mc_error *error = mc_server_load(&server, setup->options.config, diagnostics, setup->pool);
    if (error != MC_OK)
        return mc_error_chain(error, setup->pool);
    const mc_config *config = setup->config = mc_server_config(server);
    setup->tileset = apr_hash_get(config->tilesets_by_name, setup->options.tileset, APR_HASH_KEY_STRING);
    if (setup->tileset == NULL)
        return mc_config_lacks_tileset(config, setup->options.tileset, setup->pool);
    if (setup->tileset->not_built != NULL)
        return apr_psprintf(setup->pool, "tileset \"%s\": %s", setup->tileset->name, setup->tileset->not_built);
    return NULL;
}

static const char *
choose_cache(mc_seed_setup *setup)
{
    const apr_array_header_t *caches = setup->config->caches;
    if (setup->options.cache == NULL)
        return NULL;
    for (int i = 0; i < caches->nelts; i++) {
        mc_cache *cache = APR_ARRAY_IDX(caches, i, mc_cache *);
        if (strcmp(cache->name, setup->options.cache) == 0) {
            if (cache != setup->tileset->cache)
                setup->tileset->variant_count = 0; /* further formats in its own cache are not those of these tiles */
            setup->tileset->cache = cache;
            return NULL;
        }
    }
    return mc_config_lacks_cache(setup->config, setup->options.cache, setup->pool);
}

static const char *
choose_target(mc_seed_setup *setup)
{
    mc_seed_task *task = &setup->task;
    const mc_seed_pair *pair = setup->options.pair;
    if (pair != NULL) {
        task->target = pair->target;
        task->target_link = pair->target_link;
        task->convert = pair->convert;
        if (pair->drawn) {
            task->drawn_from = pair->source;
            task->drawn_link = pair->source_link;
            return NULL;
        }
        const char *difference = mc_grid_difference(task->link->grid, task->target_link->grid, setup->area.minzoom,
                                                    setup->area.maxzoom, setup->pool);
        return difference == NULL
                   ? NULL
                   : apr_pstrcat(setup->pool, difference,
                                 ": tiles are copied as they are, not warped (--warp GRID draws them anew)", NULL);
    }
    if (task->mode != MC_SEED_TRANSFER)
        return NULL;
    const mc_config *config = setup->config;
    task->target = apr_hash_get(config->tilesets_by_name, setup->options.transfer, APR_HASH_KEY_STRING);
    if (task->target == NULL)
        return mc_config_lacks_tileset(config, setup->options.transfer, setup->pool);
    if (task->target->not_built != NULL)
        return apr_psprintf(setup->pool, "tileset \"%s\": %s", task->target->name, task->target->not_built);
    task->target_link = mc_tileset_link(task->target, task->link->grid->name);
    if (task->target_link == NULL)
        return mc_tileset_lacks_grid(task->target, task->link->grid->name, setup->pool);
    if (!mc_tileset_same_dimensions(task->target, setup->tileset))
        return apr_psprintf(setup->pool, "tilesets \"%s\" and \"%s\" have different dimensions", setup->tileset->name,
                            task->target->name);
    return NULL;
}

static const char *
choose_dimensions(mc_seed_setup *setup)
{
    const char **values;
    if (setup->options.pair != NULL) { /* as they are stored */
        values = mc_tileset_defaults(setup->tileset, setup->pool);
        for (int i = 0; i < setup->tileset->dimension_count; i++)
            values[i] = apr_table_get(setup->options.dimensions, setup->tileset->dimensions[i]->name);
        setup->task.values = values;
        return NULL;
    }
    const char *problem = mc_cli_dimension_values(&values, setup->tileset, setup->options.dimensions,
                                                  setup->options.drop_in, setup->pool);
    setup->task.values = values;
    return problem;
}

/* The zooms that are walked: what was asked for, inside what the grid of the tileset has. Tiles above max-cached-zoom
 * are never stored by the server, so they are not drawn here either. */
static const char *
choose_seed_zooms(mc_seed_setup *setup)
{
    const mc_grid_link *link = setup->task.link;
    int first = link->minzoom, last = link->maxzoom;
    if (setup->task.mode == MC_SEED_FILL && link->max_cached_zoom >= 0 && last > link->max_cached_zoom)
        last = link->max_cached_zoom;
    if (last >= link->grid->level_count)
        last = link->grid->level_count - 1;
    int highest = last;
    if (setup->options.has_zoom) {
        first = setup->options.minzoom > first ? setup->options.minzoom : first;
        last = setup->options.maxzoom < last ? setup->options.maxzoom : last;
    }
    if (first > last)
        return apr_psprintf(setup->pool, "grid \"%s\" of tileset \"%s\" has none of these zoom levels: it has %d to %d",
                            link->grid->name, setup->tileset->name, link->minzoom, highest);
    setup->area.minzoom = first;
    setup->area.maxzoom = last;
    return NULL;
}

static void
choose_metatile(mc_seed_setup *setup)
{
    if (setup->task.mode == MC_SEED_TRANSFER) {
        setup->tileset->metatile_columns = setup->tileset->metatile_rows = 1;
    } else if (setup->options.metatile_columns > 0) {
        setup->tileset->metatile_columns = setup->options.metatile_columns;
        setup->tileset->metatile_rows = setup->options.metatile_rows;
    }
    mc_tileset_metatile_size(&setup->area.columns, &setup->area.rows, setup->tileset, setup->area.grid);
}

static const char *
choose_grid(mc_seed_setup *setup)
{
    const mc_seed_pair *pair = setup->options.pair;
    const mc_grid_link *link = pair == NULL  ? mc_tileset_link(setup->tileset, setup->options.grid)
                               : pair->drawn ? pair->target_link
                                             : pair->source_link;
    if (link == NULL)
        return mc_tileset_lacks_grid(setup->tileset, setup->options.grid, setup->pool);
    setup->task.link = link;
    setup->area.grid = link->grid;
    choose_metatile(setup);
    return choose_seed_zooms(setup);
}

static void
choose_order(mc_seed_setup *setup)
{
    const char *grid = setup->area.grid->name;
    bool down = strcmp(grid, "g") == 0 || strcmp(grid, "WGS84") == 0 || strcmp(grid, "GoogleMapsCompatible") == 0;
    setup->order = setup->options.has_order ? setup->options.order : down ? MC_SEED_DOWN : MC_SEED_LEVELS;
}

/* Of a further format also the tiles that it is made of. */
static void
set_read_only(mc_tileset *tileset, bool read_only)
{
    tileset->read_only = read_only;
    if (tileset->master != NULL)
        tileset->master->read_only = read_only;
}

/* A read-only tileset is written to all the same; the source of a transfer is only read. */
static const char *
choose_access(mc_seed_setup *setup)
{
    mc_tileset *tileset = setup->tileset;
    if (setup->options.pair != NULL)
        return NULL;
    if (setup->task.mode == MC_SEED_TRANSFER) {
        if (!tileset->read_only && tileset->source != NULL && setup->options.older == 0) {
            printf("switching tileset (%s) to read-only as we are in transfer mode\n", tileset->name);
            set_read_only(tileset, true);
        }
        return NULL;
    }
    if (setup->task.mode == MC_SEED_FILL && tileset->source == NULL)
        return apr_psprintf(setup->pool, "tileset \"%s\" has no source: there is nothing to draw its tiles from",
                            tileset->name);
    if (setup->task.mode == MC_SEED_FILL && tileset->cache->ops->keeps_nothing)
        return apr_psprintf(setup->pool,
                            "tileset \"%s\" has cache \"%s\" of type none, which keeps nothing: give it one that "
                            "does",
                            tileset->name, tileset->cache->name);
    if (tileset->read_only) {
        printf("tileset (%s) is read-only, switching it to read-write for seeding\n", tileset->name);
        set_read_only(tileset, false);
    }
    return NULL;
}

const char *
mc_seed_setup_make(mc_seed_setup *setup)
{
    static const char *(*const steps[])(mc_seed_setup *) = { load_seed_tileset,  choose_cache,  choose_grid,
                                                             mc_seed_setup_area, choose_target, choose_dimensions,
                                                             choose_access };
    const mc_seed_options *options = &setup->options;
    setup->task = (mc_seed_task){
        .mode = options->mode, .force = options->force, .older = options->older, .headers = options->headers
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const char *problem = steps[i](setup);
        if (problem != NULL || setup->nothing)
            return problem;
    }
    setup->task.tileset = setup->tileset;
    choose_order(setup);
    return NULL;
}

const char *
mc_seed_setup_list(const mc_seed_setup *setup)
{
    return setup->options.retry != NULL ? setup->options.retry : setup->options.list;
}

uint64_t
mc_seed_setup_hash(const mc_seed_setup *setup, uint64_t list)
{
    const mc_seed_area *area = &setup->area;
    const mc_tileset *tileset = setup->tileset;
    int numbers[] = { area->minzoom,         area->maxzoom,     area->columns, area->rows,
                      (int)setup->task.mode, (int)setup->order, area->outside };
    uint64_t region = area->region == NULL ? 0 : mc_region_hash(area->region);
    uint64_t hash = mc_hash64(numbers, sizeof(numbers), region ^ list);
    for (int z = area->minzoom; z <= area->maxzoom; z++)
        hash = mc_hash64(&area->limits[z], sizeof(area->limits[z]), hash);
    const mc_seed_pair *pair = setup->options.pair;
    const char *target = pair != NULL ? apr_pstrcat(setup->pool, pair->target->cache->name, " ", pair->target->name,
                                                    " ", pair->target_link->grid->name, NULL)
                                      : setup->options.transfer;
    const char *source = pair != NULL && pair->drawn
                             ? apr_pstrcat(setup->pool, pair->source->cache->name, " ", pair->source->name, " ",
                                           pair->source_link->grid->name, NULL)
                             : "";
    const char *names[] = { tileset->name,
                            area->grid->name,
                            tileset->cache->name,
                            target == NULL ? "" : target,
                            source,
                            setup->options.retry != NULL  ? "failed"
                            : setup->options.list != NULL ? "tiles"
                                                          : "" };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        hash = mc_hash64(names[i], strlen(names[i]) + 1, hash);
    for (int i = 0; i < tileset->dimension_count; i++)
        hash = mc_hash64(setup->task.values[i], strlen(setup->task.values[i]) + 1, hash);
    return hash;
}
