/* From the two sides to runs of the seeder: a tileset and a grid each, and one set of values of dimensions. */
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

#include "cli/seed/seed_stored.h"
#include "compress/packing.h"
#include "copy.h"
#include "grid/same.h"
#include "mapcache/upkeep.h"

/* Copies are read from the stores themselves, as they are now. */
static void
forget_nothing(void *baton, mc_cache *part)
{
    (void)baton;
    part->remember = false;
    part->remember_for = 0;
}

static const char *
check_stored_tileset(const mc_tileset *tileset, apr_pool_t *pool)
{
    if (tileset->not_built != NULL)
        return apr_psprintf(pool, "tileset \"%s\": %s", tileset->name, tileset->not_built);
    if (tileset->cache == NULL)
        return apr_psprintf(pool, "tileset \"%s\" has no cache", tileset->name);
    if (tileset->cache->ops->keeps_nothing)
        return apr_psprintf(pool, "tileset \"%s\" has cache \"%s\" of type none, which keeps nothing", tileset->name,
                            tileset->cache->name);
    return NULL;
}

static void
look_for_picture_store(void *baton, mc_cache *part)
{
    bool *pictures = baton;
    *pictures = *pictures || part->ops->pictures_only;
}

/* Whether the target's tiles can be what the source's are. NULL, or why not. */
static const char *
check_formats(mc_seed_pair *pair, bool to_tileset, apr_pool_t *pool)
{
    const mc_format *from = pair->source->format, *to = pair->target->format;
    bool pictures = false;
    mc_cache_parts(pair->target->cache, look_for_picture_store, &pictures);
    if (pictures && !mc_format_is_image(from))
        return apr_psprintf(pool, "cache \"%s\" holds pictures, and tiles of tileset \"%s\" are none",
                            pair->target->cache->name, pair->source->name);
    if (!to_tileset)
        return NULL;
    if (mc_format_is_image(from) != mc_format_is_image(to))
        return apr_psprintf(pool, "only one of tilesets \"%s\" and \"%s\" has pictures", pair->source->name,
                            pair->target->name);
    if (!mc_format_is_image(to) || to == NULL || mc_format_coding(to) == MC_CODING_UNKNOWN)
        return NULL;
    pair->convert = from == NULL || from->type != to->type;
    return NULL;
}

static void
look_for_gzip_store(void *baton, mc_cache *part)
{
    bool *found = baton;
    *found = *found || strcmp(part->ops->type, "mbtiles") == 0;
}

/* Vector tiles of MBTiles are gzip (MBTiles 1.3, "Content"), however the source packs them. */
static void
pack_for_target(const mc_seed_pair *pair, mc_tileset *target, apr_pool_t *pool)
{
    bool gzip = false;
    mc_cache_parts(pair->target->cache, look_for_gzip_store, &gzip);
    if (!gzip || target->format == NULL || target->format->type != MC_FORMAT_MVT)
        return;
    mc_format *format = apr_pmemdup(pool, target->format, sizeof(*format));
    format->mvt.encoding = MC_PACKED_GZIP;
    target->format = format;
}

/* Tells the cache about a tileset that the configuration does not give it. NULL, or why it cannot have the tiles. */
static const char *
tell_target(const mc_copy *copy, const mc_seed_pair *pair)
{
    mc_node node = { .name = "cache", .text = "" };
    mc_diagnostics *diagnostics = mc_diagnostics_create(copy->pool);
    mc_build build = { .pool = copy->pool, .diagnostics = diagnostics };
    const mc_cache_use use = { .tileset = pair->target->name,
                               .grid = pair->target_link->grid,
                               .dimensions = pair->target->dimension_count > 0,
                               .extension = mc_tileset_extension(pair->target) };
    mc_cache_used_by(pair->target->cache, &use, &node, &build);
    for (int i = 0; i < diagnostics->complaints->nelts; i++) {
        const mc_complaint *complaint = &APR_ARRAY_IDX(diagnostics->complaints, i, mc_complaint);
        if (complaint->severity == MC_REFUSED || copy->parts->nelts > 0 || pair->target->dimension_count > 0)
            return complaint->text;
        fprintf(stderr, "mapcache copy: %s\n", complaint->text);
    }
    return NULL;
}

/* The link of the target whose grid has the name, or else the first one with the same tiles. */
static const mc_grid_link *
match_link(const mc_tileset *target, const mc_grid_link *link, apr_pool_t *pool)
{
    const mc_grid_link *named = mc_tileset_link(target, link->grid->name);
    if (named != NULL)
        return named;
    for (int i = 0; i < target->link_count + target->dense_link_count; i++) {
        const mc_grid_link *own =
            i < target->link_count ? target->links[i] : target->dense_links[i - target->link_count];
        const mc_grid *grid = own->grid;
        int last = link->maxzoom < grid->level_count ? link->maxzoom : grid->level_count - 1;
        if (link->minzoom <= last && mc_grid_difference(link->grid, grid, link->minzoom, last, pool) == NULL)
            return own;
    }
    return target->links[0];
}

/* The grid of --warp as it is used by a target that has no tileset of its own. NULL: there is no such grid. */
static const mc_grid_link *
make_warp_link(const mc_copy *copy, const char *name)
{
    const mc_config *configs[] = { copy->from.config, copy->to.config };
    mc_node node = { .name = "grid", .text = name };
    mc_build build = { .pool = copy->pool,
                       .diagnostics = mc_diagnostics_create(copy->pool),
                       .grids = apr_hash_make(copy->pool) };
    for (int i = 0; i < 2; i++)
        for (int j = 0; configs[i] != NULL && j < configs[i]->grids->nelts; j++) {
            const mc_grid *grid = APR_ARRAY_IDX(configs[i]->grids, j, const mc_grid *);
            if (apr_hash_get(build.grids, grid->name, APR_HASH_KEY_STRING) == NULL)
                apr_hash_set(build.grids, grid->name, APR_HASH_KEY_STRING, grid);
        }
    return mc_grid_link_from_config(&node, &build);
}

/* Sets what --warp changes of a pair, whose other members are set. NULL, or what is wrong. */
static const char *
plan_warp(mc_seed_pair *pair, const mc_copy *copy)
{
    enum { BLOCK = 4 /* tiles a side that are drawn together */ };
    const char *name = copy->options->warp;
    const mc_grid_link *from = pair->source_link;
    apr_pool_t *pool = copy->pool;
    const bool to_tileset = copy->to.tilesets->nelts > 0;
    pair->target_link = to_tileset ? mc_tileset_link(pair->target, name) : make_warp_link(copy, name);
    if (pair->target_link == NULL)
        return to_tileset ? mc_tileset_lacks_grid(pair->target, name, pool)
                          : apr_psprintf(pool, "there is no grid \"%s\" for --warp", name);
    const mc_grid *grid = pair->target_link->grid;
    const int last = from->maxzoom < grid->level_count ? from->maxzoom : grid->level_count - 1;
    if (from->minzoom <= last && mc_grid_difference(from->grid, grid, from->minzoom, last, pool) == NULL)
        return NULL; /* as they are */
    pair->drawn = true;
    pair->target->metatile_columns = pair->target->metatile_rows = BLOCK;
    if (!mc_format_is_image(pair->source->format) || !mc_format_is_image(pair->target->format))
        return "vector tiles cannot be warped";
    return pair->target->format == NULL
               ? apr_psprintf(pool, "tileset \"%s\" has no format to draw tiles in", pair->target->name)
               : NULL;
}

/* A walk over all levels of a grid would not end in a lifetime, where the store has no list of its tiles. */
static const char *
check_walk(const mc_copy *copy, const mc_copy_part *part)
{
    const mc_seed_options *seed = &copy->options->seed;
    const mc_seed_pair *pair = &part->pair;
    const mc_seed_task task = {
        .mode = MC_SEED_COPY, .tileset = pair->source, .link = pair->source_link, .values = NULL
    };
    if (pair->drawn && !seed->has_zoom && seed->list == NULL)
        return apr_psprintf(copy->pool, "--zoom names the levels of grid \"%s\" that are drawn",
                            pair->target_link->grid->name);
    if (seed->has_zoom || seed->has_extent || seed->list != NULL || seed->area != NULL || seed->ogr.source != NULL)
        return NULL;
    if (pair->source->dimension_count == 0 && mc_seed_stored_possible(&task, pair->source_link->grid->level_count - 1))
        return NULL;
    if (pair->source->dimension_count > 0 && pair->source->cache->ops->lists != NULL)
        return NULL;
    return apr_psprintf(copy->pool,
                        "the store of tileset \"%s\" has no list of its tiles: --zoom names levels to go over",
                        pair->source->name);
}

static bool
is_same_place(const mc_seed_pair *pair)
{
    return pair->source->cache == pair->target->cache && strcmp(pair->source->name, pair->target->name) == 0 &&
           (strcmp(pair->source_link->grid->name, pair->target_link->grid->name) == 0 ||
            !mc_cache_tells_grids(pair->target->cache));
}

static const char *
plan_link(mc_copy *copy, const mc_tileset *tileset, const mc_grid_link *link)
{
    bool to_tileset = copy->to.tilesets->nelts > 0;
    apr_pool_t *pool = copy->pool;
    const mc_tileset *other = to_tileset ? APR_ARRAY_IDX(copy->to.tilesets, 0, mc_tileset *) : tileset;
    mc_cache *from = copy->from.cache != NULL ? copy->from.cache : tileset->cache;
    mc_cache *to = copy->to.cache != NULL ? copy->to.cache : other->cache;
    apr_array_header_t *values;
    const char *problem = NULL;
    mc_tileset *target = mc_copy_stored_tileset(other, to, pool);
    mc_seed_pair pair = { .config = copy->from.file && !copy->to.file ? copy->to.config : copy->from.config,
                          .source = mc_copy_stored_tileset(tileset, from, pool),
                          .target = target,
                          .source_link = link,
                          .target_link = to_tileset ? match_link(other, link, pool) : link };
    if (copy->options->warp != NULL && (problem = plan_warp(&pair, copy)) != NULL)
        return problem;
    if (!to_tileset)
        pack_for_target(&pair, target, pool);
    if (!mc_tileset_same_dimensions(other, tileset))
        return apr_psprintf(pool, "tilesets \"%s\" and \"%s\" have different dimensions", tileset->name, other->name);
    if (is_same_place(&pair))
        return apr_psprintf(pool, "%s and %s are the same tiles", copy->from.name, copy->to.name);
    if ((problem = check_formats(&pair, to_tileset, pool)) != NULL ||
        (!to_tileset && (problem = tell_target(copy, &pair)) != NULL) ||
        (problem = mc_copy_list_values(&values, copy, tileset, link->grid)) != NULL)
        return problem;
    mc_cache_parts(from, forget_nothing, NULL);
    mc_cache_parts(to, forget_nothing, NULL);
    forget_nothing(NULL, from);
    forget_nothing(NULL, to);
    for (int i = 0; i < values->nelts && problem == NULL; i++) {
        mc_copy_part *part = apr_array_push(copy->parts);
        *part = (mc_copy_part){ pair, APR_ARRAY_IDX(values, i, apr_table_t *) };
        problem = check_walk(copy, part);
    }
    return problem;
}

/* An option by which one file keeps something of a run, or says something of it: several runs cannot share it. NULL:
 * none is given. */
static const char *
name_single_option(const mc_copy *copy)
{
    const mc_seed_options *seed = &copy->options->seed;
    return seed->checkpoint != NULL ? "--checkpoint"
           : seed->failures != NULL ? "--log-failed"
           : seed->list != NULL     ? "--list"
                                    : NULL;
}

/* NULL, or why the tiles of the tileset's dense link number `index` stay where they are. */
static const char *
find_dense_obstacle(const mc_copy *copy, const mc_tileset *tileset, int index)
{
    const mc_grid_link *link = tileset->dense_links[index];
    const char *single = name_single_option(copy);
    if (single != NULL)
        return apr_psprintf(copy->pool, "%s is for one grid; --grid %s copies them", single, link->grid->name);
    if (copy->to.tilesets->nelts > 0) {
        const mc_tileset *other = APR_ARRAY_IDX(copy->to.tilesets, 0, mc_tileset *);
        return match_link(other, link, copy->pool)->grid->density == link->grid->density
                   ? NULL
                   : apr_psprintf(copy->pool, "tileset \"%s\" does not offer them (<density>)", other->name);
    }
    return mc_cache_tells_grids(copy->to.cache)
               ? NULL
               : apr_psprintf(copy->pool, "%s cannot tell them from the others; --grid %s copies them to another place",
                              copy->to.name, link->grid->name);
}

/* The tiles for fine screens, which are on grids of their own: taken along where the target can have them. */
static const char *
plan_dense_links(mc_copy *copy, const mc_tileset *tileset)
{
    const char *problem = NULL;
    for (int i = 0; i < tileset->dense_link_count && problem == NULL; i++) {
        const mc_grid_link *link = tileset->dense_links[i];
        const char *obstacle = find_dense_obstacle(copy, tileset, i);
        if (obstacle == NULL)
            problem = plan_link(copy, tileset, link);
        else if (!copy->options->seed.quiet)
            fprintf(stderr, "mapcache copy: tiles of grid \"%s\" are left out: %s\n", link->grid->name, obstacle);
    }
    return problem;
}

static const char *
plan_tileset(mc_copy *copy, const mc_tileset *tileset)
{
    const char *grid = copy->options->seed.grid;
    const char *problem = check_stored_tileset(tileset, copy->pool);
    if (problem != NULL)
        return problem;
    if (grid != NULL) {
        const mc_grid_link *link = mc_tileset_link(tileset, grid);
        return link == NULL ? mc_tileset_lacks_grid(tileset, grid, copy->pool) : plan_link(copy, tileset, link);
    }
    if (copy->options->warp != NULL && tileset->link_count > 1)
        return apr_psprintf(copy->pool, "tileset \"%s\" has %d grids: --grid names the one whose tiles are warped",
                            tileset->name, tileset->link_count);
    for (int i = 0; i < tileset->link_count && problem == NULL; i++)
        problem = plan_link(copy, tileset, tileset->links[i]);
    if (copy->options->warp != NULL)
        return problem;
    return problem != NULL ? problem : plan_dense_links(copy, tileset);
}

static const char *
check_single(const mc_copy *copy)
{
    const char *option = name_single_option(copy);
    return option == NULL || copy->parts->nelts <= 1
               ? NULL
               : apr_psprintf(copy->pool,
                              "%s is for one tileset, grid and set of values, and these are %d: name one by --tileset, "
                              "--grid and --dimension",
                              option, copy->parts->nelts);
}

const char *
mc_copy_plan(mc_copy *copy)
{
    const char *wanted = copy->options->seed.tileset, *problem = NULL;
    bool found = false;
    copy->parts = apr_array_make(copy->pool, 4, sizeof(mc_copy_part));
    if (copy->to.tilesets->nelts > 0 &&
        (problem = check_stored_tileset(APR_ARRAY_IDX(copy->to.tilesets, 0, mc_tileset *), copy->pool)) != NULL)
        return problem;
    if (copy->to.cache != NULL && copy->to.cache->ops->keeps_nothing)
        return apr_psprintf(copy->pool, "cache \"%s\" of type none keeps nothing", copy->to.cache->name);
    for (int i = 0; i < copy->from.tilesets->nelts && problem == NULL; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(copy->from.tilesets, i, mc_tileset *);
        if (wanted != NULL && strcmp(tileset->name, wanted) != 0)
            continue;
        found = true;
        problem = plan_tileset(copy, tileset);
    }
    if (problem == NULL && !found)
        return apr_psprintf(copy->pool, "%s has no tiles of a tileset \"%s\"", copy->from.name, wanted);
    return problem != NULL ? problem : check_single(copy);
}
