/*
 * `mapcache purge`: deletes tiles, or marks them as old (--stale). Where no area and no age is given, the stores delete
 * whole groups of tiles (a level of a grid, of some values of dimensions). Everything else is work of the seeder, grid
 * by grid and value by value.
 */
#include "purge.h"

#include <apr_strings.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changes/box_set.h"
#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "cli/common/words.h"
#include "cli/seed/seed_stored.h"
#include "tileset/stored/mark_stored.h"

/* Exit statuses. */
enum { FAILED = 1, INCOMPLETE = 2 };

static bool
is_purge_stopped(void *baton)
{
    (void)baton;
    return mc_purge_stop != 0;
}

/* The tileset, and whether the options fit it. NULL, or what is wrong. */
static const char *
load_purge_tileset(mc_purge *purge)
{
    const mc_seed_options *seed = &purge->options->seed;
    mc_error *error = mc_server_load(&purge->server, seed->config, mc_diagnostics_create(purge->pool), purge->pool);
    if (error != MC_OK)
        return mc_error_chain(error, purge->pool);
    const mc_config *config = mc_server_config(purge->server);
    purge->tileset = apr_hash_get(config->tilesets_by_name, seed->tileset, APR_HASH_KEY_STRING);
    if (purge->tileset == NULL)
        return mc_config_lacks_tileset(config, seed->tileset, purge->pool);
    if (purge->tileset->cache == NULL)
        return apr_psprintf(purge->pool, "tileset \"%s\" has no cache", seed->tileset);
    if (purge->tileset->cache->ops->keeps_nothing)
        return apr_psprintf(purge->pool, "tileset \"%s\" has cache \"%s\" of type none, which keeps nothing",
                            seed->tileset, purge->tileset->cache->name);
    if (purge->tileset->not_built != NULL)
        return apr_psprintf(purge->pool, "tileset \"%s\": %s", seed->tileset, purge->tileset->not_built);
    if (purge->options->stale && mc_tileset_unmarkable(purge->tileset, purge->pool) != NULL)
        return mc_tileset_unmarkable(purge->tileset, purge->pool);
    if (seed->grid != NULL && mc_tileset_link(purge->tileset, seed->grid) == NULL)
        return mc_tileset_lacks_grid(purge->tileset, seed->grid, purge->pool);
    const apr_array_header_t *pairs = apr_table_elts(seed->dimensions);
    for (int i = 0; i < pairs->nelts; i++) {
        const char *name = APR_ARRAY_IDX(pairs, i, apr_table_entry_t).key;
        if (mc_tileset_dimension(purge->tileset, name, true) < 0)
            return mc_tileset_lacks_dimension(purge->tileset, name, purge->pool);
    }
    return NULL;
}

static bool
has_area_or_age(const mc_seed_options *seed)
{
    return seed->has_extent || seed->area != NULL || seed->ogr.source != NULL || seed->older != 0;
}

static mc_error *
look_through_stores(mc_purge *purge, bool removing)
{
    mc_runtime *runtime;
    mc_log log = mc_log_stderr;
    log.level = mc_cli_log_level(purge->options->seed.verbose, purge->quiet);
    mc_ctx ctx = { .pool = purge->pool, .log = &log, .abandoned = is_purge_stopped };
    MC_TRY(mc_runtime_create(&runtime, mc_server_config(purge->server), 1, false, &log, purge->pool));
    ctx.process = mc_runtime_process(runtime);
    mc_error *error = mc_purge_groups(purge, removing, &ctx);
    mc_runtime_destroy(runtime);
    return error;
}

static int
compare_purge_levels(const void *a, const void *b)
{
    const mc_purge_level *left = a, *right = b;
    int grids = strcmp(left->grid, right->grid);
    return grids != 0 ? grids : left->z - right->z;
}

static void
print_purge_levels(const mc_purge *purge)
{
    qsort(purge->levels->elts, (size_t)purge->levels->nelts, sizeof(mc_purge_level), compare_purge_levels);
    for (int i = 0; i < purge->levels->nelts && purge->options->json; i++) {
        const mc_purge_level *level = &APR_ARRAY_IDX(purge->levels, i, mc_purge_level);
        mc_cli_json_line line = mc_cli_json_line_begin();
        mc_json_string(line.json, "grid", level->grid);
        mc_json_integer(line.json, "level", level->z);
        mc_json_integer(line.json, "tiles", level->tiles);
        mc_json_integer(line.json, "size", level->bytes);
        mc_cli_json_line_end(&line);
    }
    if (purge->options->json || purge->levels->nelts == 0)
        return;
    printf("%-24s %6s %12s %10s\n", "grid", "level", "tiles", "size");
    for (int i = 0; i < purge->levels->nelts; i++) {
        const mc_purge_level *level = &APR_ARRAY_IDX(purge->levels, i, mc_purge_level);
        printf("%-24s %6d %12" PRId64 " %10s\n", level->grid, level->z, level->tiles,
               mc_cli_size_words((double)level->bytes, purge->pool));
    }
}

static void
print_purge_sum(const mc_purge *purge, bool deleted)
{
    if (purge->options->json) {
        mc_cli_json_line line = mc_cli_json_line_begin();
        mc_json_string(line.json, "tileset", purge->tileset->name);
        mc_json_boolean(line.json, "dry_run", !deleted);
        mc_json_integer(line.json, deleted ? "deleted" : "would_delete", purge->tiles);
        mc_json_integer(line.json, "size", purge->bytes);
        mc_cli_json_line_end(&line);
        return;
    }
    printf("%s %s of %s\n", deleted ? "deleted" : "would delete", mc_cli_count_words(purge->tiles, "tile", purge->pool),
           mc_cli_size_words((double)purge->bytes, purge->pool));
}

/* Whether it may be done: --yes, or the answer of whoever sits at the terminal. */
static bool
confirm_purge(const mc_cli_call *call, const mc_purge *purge, const char *what)
{
    char answer[16];
    if (purge->options->yes)
        return true;
    if (isatty(STDIN_FILENO) != 1) {
        mc_cli_refuse(call, "there is no terminal to ask on: --yes deletes without asking, --dry-run says what");
        return false;
    }
    fflush(stdout);
    fprintf(stderr, "delete %s of tileset %s? [y/N] ", what, purge->tileset->name);
    if (fgets(answer, sizeof(answer), stdin) != NULL && (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0))
        return true;
    fputs("nothing is deleted\n", stderr);
    return false;
}

/* Of groups, by the stores themselves. *status: of the whole command; false: it ends here. */
static bool
purge_by_groups(int *status, const mc_cli_call *call, mc_purge *purge)
{
    mc_error *error = MC_OK;
    print_purge_levels(purge);
    if (purge->options->dry_run || (purge->tiles == 0 && purge->untold)) {
        if (!purge->untold)
            print_purge_sum(purge, false);
        return purge->untold;
    }
    if (purge->tiles > 0 && !confirm_purge(call, purge, mc_cli_count_words(purge->tiles, "tile", purge->pool))) {
        *status = FAILED;
        return false;
    }
    if (purge->tiles > 0)
        error = look_through_stores(purge, true);
    if (error != MC_OK) {
        fprintf(stderr, "mapcache purge: %s\n", mc_error_chain(error, purge->pool));
        *status = FAILED;
        return false;
    }
    print_purge_sum(purge, true);
    return purge->untold;
}

/* The dimensions of one set of values, joined by '#', and those that were given. NULL: it has too few or too many. */
static apr_table_t *
split_purge_values(const mc_purge *purge, const char *values)
{
    const mc_tileset *tileset = purge->tileset;
    apr_table_t *table = apr_table_make(purge->pool, tileset->dimension_count + 1);
    for (int i = tileset->dimension_count - 1; i >= 0; i--) { /* stores have the last dimension first */
        bool last = i == 0;
        size_t size = last ? strlen(values) : strcspn(values, "#");
        if (!last && values[size] != '#')
            return NULL;
        apr_table_set(table, tileset->dimensions[i]->name, apr_pstrmemdup(purge->pool, values, size));
        values += size + !last;
    }
    return table;
}

/* What the seeder is to go over: NULL after a message where the stores do not tell the values. */
static apr_array_header_t *
list_purge_values(const mc_purge *purge)
{
    apr_array_header_t *list = apr_array_make(purge->pool, 4, sizeof(apr_table_t *));
    const apr_table_t *given = purge->options->seed.dimensions;
    if (purge->tileset->dimension_count == 0 || apr_table_elts(given)->nelts == purge->tileset->dimension_count) {
        APR_ARRAY_PUSH(list, apr_table_t *) = apr_table_copy(purge->pool, given);
        return list;
    }
    for (int i = 0; i < purge->values->nelts; i++) {
        apr_table_t *values = split_purge_values(purge, APR_ARRAY_IDX(purge->values, i, const char *));
        if (values != NULL)
            APR_ARRAY_PUSH(list, apr_table_t *) = values;
    }
    if (!purge->untold)
        return list;
    fprintf(
        stderr,
        "mapcache purge: a store of tileset \"%s\" does not tell the values of dimensions of its tiles: --dimension "
        "names all of them\n",
        purge->tileset->name);
    return NULL;
}

static bool
is_level_of_link(const mc_seed_options *seed, const mc_grid_link *link)
{
    return !seed->has_zoom || (seed->minzoom <= link->maxzoom && seed->maxzoom >= link->minzoom &&
                               seed->minzoom < link->grid->level_count);
}

/* A walk over all levels of a grid would not end in a lifetime, where the store has no list of its tiles. */
static bool
is_walk_endless(const mc_purge *purge)
{
    const mc_seed_options *seed = &purge->options->seed;
    const mc_seed_task task = { .mode = seed->mode, .tileset = purge->tileset, .link = purge->tileset->links[0] };
    if (seed->has_zoom || has_area_or_age(seed) || mc_seed_stored_possible(&task, task.link->grid->level_count - 1))
        return false;
    fprintf(stderr,
            "mapcache purge: a store of tileset \"%s\" has no list of its tiles: --zoom names levels to go over\n",
            purge->tileset->name);
    return true;
}

/* Tile by tile, as `mapcache seed --mode delete` does it. */
static int
purge_by_seeder(const mc_cli_call *call, const mc_purge *purge)
{
    const mc_seed_options *options = &purge->options->seed;
    if (is_walk_endless(purge))
        return FAILED;
    const apr_array_header_t *values = list_purge_values(purge);
    int status = values == NULL ? FAILED : 0;
    const int links = purge->tileset->link_count;
    for (int i = 0; i < links + purge->tileset->dense_link_count && status == 0; i++) {
        const mc_grid_link *link = i < links ? purge->tileset->links[i] : purge->tileset->dense_links[i - links];
        if (!mc_purge_means_grid(purge, link->grid->name) || !is_level_of_link(options, link))
            continue;
        for (int j = 0; j < values->nelts && status == 0 && !mc_seed_was_interrupted(); j++) {
            mc_seed_options one = *options;
            one.grid = link->grid->name;
            one.dimensions = APR_ARRAY_IDX(values, j, apr_table_t *);
            status = mc_seed_run(call, &one);
        }
    }
    return status == 0 && mc_seed_was_interrupted() ? INCOMPLETE : status;
}

static const char *
describe_purged_tiles(const mc_seed_options *seed, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "the stored tiles", seed->older != 0 ? " of that age" : "",
                       seed->outside                                                        ? " outside of the area"
                       : seed->has_extent || seed->area != NULL || seed->ogr.source != NULL ? " of the area"
                                                                                            : "",
                       NULL);
}

static int
run_purge(const mc_cli_call *call, mc_purge *purge)
{
    const mc_purge_options *options = purge->options;
    bool by_area = has_area_or_age(&options->seed) || options->stale, asked = options->stale; /* no tile is lost */
    int status = 0;
    mc_error *error = look_through_stores(purge, false);
    if (error != MC_OK) {
        fprintf(stderr, "mapcache purge: %s\n", mc_error_chain(error, purge->pool));
        return FAILED;
    }
    if (!by_area) {
        if (!purge_by_groups(&status, call, purge))
            return status;
        asked = purge->tiles > 0;
    }
    if (mc_purge_stop != 0)
        return INCOMPLETE;
    if (!options->dry_run && !asked && !confirm_purge(call, purge, describe_purged_tiles(&options->seed, purge->pool)))
        return FAILED;
    return purge_by_seeder(call, purge);
}

/* Caches in front drop what was deleted or marked; the runtime's end waits for them. */
static mc_error *
purge_in_front(const mc_purge *purge)
{
    const mc_seed_options *seed = &purge->options->seed;
    const mc_config *config = mc_server_config(purge->server);
    mc_runtime *runtime;
    mc_box_set *boxes = mc_box_set_create(purge->pool);
    if (config->cdns == NULL || purge->options->dry_run)
        return MC_OK;
    const bool boxed = seed->has_extent && !seed->outside;
    const mc_mark_area area = { .boxes = boxed ? boxes : NULL,
                                .grid = seed->grid,
                                .minzoom = seed->has_zoom ? seed->minzoom : 0,
                                .maxzoom = seed->has_zoom ? seed->maxzoom : INT_MAX };
    mc_box_set_add(boxes, &seed->extent);
    MC_TRY(mc_runtime_create(&runtime, config, 1, false, &mc_log_stderr, purge->pool));
    const mc_ctx ctx = { .pool = purge->pool, .log = &mc_log_stderr, .process = mc_runtime_process(runtime) };
    mc_tileset_purge_in_front(purge->tileset, config->cdns, &area, &ctx, purge->pool);
    mc_runtime_destroy(runtime);
    return MC_OK;
}

static int
purge_tileset(mc_cli_call *call, const mc_purge_options *options, mc_tileset **tileset, bool *agreed)
{
    mc_purge purge = { .options = options, .quiet = call->quiet, .pool = call->pool };
    const char *problem = load_purge_tileset(&purge);
    if (problem != NULL) {
        mc_cli_refuse(call, problem);
        return FAILED;
    }
    *tileset = purge.tileset;
    int status = run_purge(call, &purge);
    mc_error *error = status == FAILED ? MC_OK : purge_in_front(&purge);
    if (error != MC_OK) {
        fprintf(stderr, "mapcache purge: %s\n", mc_error_chain(error, purge.pool));
        status = INCOMPLETE;
    }
    *agreed = purge.tiles > 0 || has_area_or_age(&options->seed); /* or nothing was asked */
    return status != 0 ? status : purge.failures > 0 || mc_purge_stop != 0 ? INCOMPLETE : 0;
}

/* The same in further formats, which are tilesets of their own in stores; who has agreed is not asked again. */
static int
purge_formats(mc_cli_call *call, const mc_purge_options *options, const mc_tileset *tileset, bool agreed)
{
    int status = 0;
    for (int i = 0; i < tileset->variant_count && status == 0; i++) {
        mc_purge_options own = *options;
        mc_tileset *variant = NULL;
        if (tileset->variants[i]->keeping == MC_KEEP_NEVER)
            continue;
        own.yes = own.yes || agreed;
        own.seed.tileset = tileset->variants[i]->name;
        if (!options->json)
            printf("%s:\n", own.seed.tileset);
        status = purge_tileset(call, &own, &variant, &agreed);
    }
    return status;
}

int
mc_command_purge(mc_cli_call *call)
{
    mc_tileset *tileset = NULL;
    bool agreed = false;
    mc_cli_stop_on_interrupt(&mc_purge_stop, "\ninterrupted: what is deleted stays deleted\n");
    int status = purge_tileset(call, call->options, &tileset, &agreed);
    return status != 0 ? status : purge_formats(call, call->options, tileset, agreed);
}
