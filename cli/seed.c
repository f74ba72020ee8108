/*
 * The seeder: from options and configuration to a plan, its run, and its exit status (spec services 9).
 */
#include <apr_strings.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "commands.h"
#include "mapcache/server.h"
#include "seed_checkpoint.h"
#include "seed_dry.h"
#include "seed_list.h"
#include "seed_options.h"
#include "seed_progress.h"
#include "seed_stored.h"

/* Exit status: all went well but for lines of a list that were no tiles. */
enum { MC_SEED_BAD_LINES = 3 };

/* All that one run has. */
typedef struct run {
    apr_pool_t *pool;
    mc_seed_options options;
    mc_server *server;
    mc_runtime *runtime;
    mc_log log;
    mc_tileset *tileset;
    mc_seed_area area;
    mc_seed_plan plan;
    mc_seed_progress progress;
    mc_seed_checkpoint checkpoint;
    int64_t passed;    /* metatiles that an earlier run has done */
    int64_t bad_lines; /* of a list */
    mc_seed_crew *crew;
    mc_error *failure; /* of the crew, not of a tile */
} run;

/* Set by an interrupt and when too much has failed: nothing more is handed out. */
static volatile int stop;

static void
on_interrupt(int signal_number)
{
    static const char text[] = "SIGINT received, waiting for threads to finish\n"
                               "press ctrl-C again to force terminate\n";
    static volatile sig_atomic_t count;
    (void)signal_number;
    if (count++ > 0)
        _exit(2);
    stop = 1;
    int saved = errno;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        stop = 1; /* nobody to tell */
    errno = saved;
}

static const char *
load(run *run)
{
    mc_diagnostics *diagnostics = mc_diagnostics_create(run->pool);
    mc_error *error = mc_server_load(&run->server, run->options.config, diagnostics, run->pool);
    if (error != MC_OK)
        return mc_error_chain(error, run->pool);
    const mc_config *config = mc_server_config(run->server);
    run->tileset = apr_hash_get(config->tilesets_by_name, run->options.tileset, APR_HASH_KEY_STRING);
    if (run->tileset == NULL)
        return apr_psprintf(run->pool, "the configuration has no tileset \"%s\"", run->options.tileset);
    if (run->tileset->not_built != NULL)
        return apr_psprintf(run->pool, "tileset \"%s\": %s", run->tileset->name, run->tileset->not_built);
    return NULL;
}

static const char *
choose_cache(run *run)
{
    const apr_array_header_t *caches = mc_server_config(run->server)->caches;
    if (run->options.cache == NULL)
        return NULL;
    for (int i = 0; i < caches->nelts; i++) {
        mc_cache *cache = APR_ARRAY_IDX(caches, i, mc_cache *);
        if (strcmp(cache->name, run->options.cache) == 0) {
            run->tileset->cache = cache;
            return NULL;
        }
    }
    return apr_psprintf(run->pool, "the configuration has no cache \"%s\"", run->options.cache);
}

static const char *
choose_target(run *run)
{
    mc_seed_task *task = &run->plan.task;
    if (task->mode != MC_SEED_TRANSFER)
        return NULL;
    task->target =
        apr_hash_get(mc_server_config(run->server)->tilesets_by_name, run->options.transfer, APR_HASH_KEY_STRING);
    if (task->target == NULL)
        return apr_psprintf(run->pool, "the configuration has no tileset \"%s\"", run->options.transfer);
    if (task->target->not_built != NULL)
        return apr_psprintf(run->pool, "tileset \"%s\": %s", task->target->name, task->target->not_built);
    task->target_link = mc_tileset_link(task->target, task->link->grid->name);
    if (task->target_link == NULL)
        return apr_psprintf(run->pool, "tileset \"%s\" has no grid \"%s\"", task->target->name, task->link->grid->name);
    if (task->target->dimension_count != run->tileset->dimension_count)
        return apr_psprintf(run->pool, "tilesets \"%s\" and \"%s\" have different dimensions", run->tileset->name,
                            task->target->name);
    return NULL;
}

static const char *
choose_dimensions(run *run)
{
    const char **values = mc_tileset_defaults(run->tileset, run->pool);
    const apr_array_header_t *given = apr_table_elts(run->options.dimensions);
    for (int i = 0; i < given->nelts; i++) {
        const apr_table_entry_t *entry = &APR_ARRAY_IDX(given, i, apr_table_entry_t);
        int index = mc_tileset_dimension(run->tileset, entry->key, true);
        if (index < 0)
            return apr_psprintf(run->pool, "tileset \"%s\" has no dimension \"%s\"", run->tileset->name, entry->key);
        values[index] = entry->val;
    }
    run->plan.task.values = values;
    return NULL;
}

/* The zooms that are walked: what was asked for, inside what the grid of the tileset has. Tiles above max-cached-zoom
 * are never stored by the server, so they are not drawn here either. */
static const char *
choose_zooms(run *run)
{
    const mc_grid_link *link = run->plan.task.link;
    int first = link->minzoom, last = link->maxzoom;
    if (run->plan.task.mode == MC_SEED_FILL && link->max_cached_zoom >= 0 && last > link->max_cached_zoom)
        last = link->max_cached_zoom;
    if (last >= link->grid->level_count)
        last = link->grid->level_count - 1;
    if (run->options.has_zoom) {
        first = run->options.minzoom > first ? run->options.minzoom : first;
        last = run->options.maxzoom < last ? run->options.maxzoom : last;
    }
    if (first > last)
        return apr_psprintf(run->pool, "grid \"%s\" of tileset \"%s\" has none of these zoom levels", link->grid->name,
                            run->tileset->name);
    run->area.minzoom = first;
    run->area.maxzoom = last;
    return NULL;
}

static void
choose_metatile(run *run)
{
    if (run->plan.task.mode == MC_SEED_TRANSFER) {
        run->tileset->metatile_columns = run->tileset->metatile_rows = 1;
    } else if (run->options.metatile_columns > 0) {
        run->tileset->metatile_columns = run->options.metatile_columns;
        run->tileset->metatile_rows = run->options.metatile_rows;
    }
    run->area.columns = run->tileset->metatile_columns;
    run->area.rows = run->tileset->metatile_rows;
}

static const char *
choose_area(run *run)
{
    const mc_grid_link *link = mc_tileset_link(run->tileset, run->options.grid);
    if (link == NULL)
        return apr_psprintf(run->pool, "tileset \"%s\" has no grid \"%s\"", run->tileset->name,
                            run->options.grid == NULL ? "(first)" : run->options.grid);
    run->plan.task.link = link;
    run->area.grid = link->grid;
    run->area.limits =
        run->options.has_extent ? mc_seed_limits(link->grid, &run->options.extent, run->pool) : link->limits;
    choose_metatile(run);
    return choose_zooms(run);
}

/* A read-only tileset is written to all the same; the source of a transfer is only read. */
static const char *
choose_access(run *run)
{
    mc_tileset *tileset = run->tileset;
    if (run->plan.task.mode == MC_SEED_TRANSFER) {
        if (!tileset->read_only && tileset->source != NULL && run->options.older == 0) {
            printf("switching tileset (%s) to read-only as we are in transfer mode\n", tileset->name);
            tileset->read_only = true;
        }
        return NULL;
    }
    if (run->plan.task.mode == MC_SEED_FILL && tileset->source == NULL)
        return apr_psprintf(run->pool, "tileset \"%s\" has no source: there is nothing to draw its tiles from",
                            tileset->name);
    if (tileset->read_only) {
        printf("tileset (%s) is read-only, switching it to read-write for seeding\n", tileset->name);
        tileset->read_only = false;
    }
    return NULL;
}

static mc_error *
open_process(mc_process **process, void *baton, apr_pool_t *pool)
{
    run *run = baton;
    int processes = run->plan.processes ? run->plan.workers : 1;
    MC_TRY(mc_runtime_create(&run->runtime, mc_server_config(run->server), processes, true, &run->log, pool));
    *process = mc_runtime_process(run->runtime);
    return MC_OK;
}

static void
close_process(mc_process *process, void *baton)
{
    run *run = baton;
    (void)process;
    mc_runtime_destroy(run->runtime);
}

static void
take_result(void *baton, const mc_seed_result *result)
{
    run *run = baton;
    mc_seed_progress_take(&run->progress, result);
    mc_seed_checkpoint_take(&run->checkpoint, result);
    if (run->progress.aborted)
        stop = 1;
}

static void
show(void *baton)
{
    run *run = baton;
    mc_seed_progress_show(&run->progress);
}

static const char *
make_plan(run *run)
{
    const mc_seed_options *options = &run->options;
    mc_seed_task *task = &run->plan.task;
    *task = (mc_seed_task){ .mode = options->mode,
                            .tileset = run->tileset,
                            .force = options->force,
                            .older = options->older,
                            .headers = options->headers };
    const char *problem = choose_cache(run);
    if (problem == NULL)
        problem = choose_area(run);
    if (problem == NULL)
        problem = choose_target(run);
    if (problem == NULL)
        problem = choose_dimensions(run);
    if (problem == NULL)
        problem = choose_access(run);
    int tiles = run->area.columns * run->area.rows;
    run->plan.workers = options->workers;
    run->plan.processes = options->processes;
    run->plan.thread_delay = options->thread_delay;
    run->plan.retries = options->retries;
    run->plan.rate = tiles > 0 ? (double)options->rate / tiles : 0;
    run->plan.log = &run->log;
    run->plan.process_open = open_process;
    run->plan.process_close = close_process;
    run->plan.report = take_result;
    run->plan.idle = show;
    run->plan.baton = run;
    return problem;
}

static bool
submit(run *run, int z, int x, int y)
{
    if (run->failure == MC_OK)
        run->failure = mc_seed_submit(run->crew, z, x, y, &stop, run->pool);
    return stop == 0 && run->failure == MC_OK;
}

static bool
hand_out(void *baton, int z, int x, int y)
{
    run *run = baton;
    if (run->passed < run->checkpoint.begun) {
        run->passed++;
        return stop == 0;
    }
    return submit(run, z, x, y);
}

static bool
drills_down(const run *run)
{
    if (run->options.order != MC_ORDER_BY_GRID)
        return run->options.order == MC_ORDER_DRILL_DOWN;
    const char *grid = run->area.grid->name;
    return strcmp(grid, "g") == 0 || strcmp(grid, "WGS84") == 0 || strcmp(grid, "GoogleMapsCompatible") == 0;
}

static FILE *
open_list(const char *name, const char *mode)
{
    FILE *list = fopen(name, mode);
    if (list == NULL)
        fprintf(stderr, "cannot open %s: %s\n", name, strerror(errno));
    return list;
}

static const char *
list_name(const run *run)
{
    return run->options.retry != NULL ? run->options.retry : run->options.list;
}

/* What an earlier run has done is no longer in the list, or is passed over quickly: nothing is skipped unseen. */
static void
visit_stored(run *run, mc_seed_visit *visit, void *baton)
{
    run->passed = run->checkpoint.begun;
    mc_error *error = mc_seed_stored_visit(&run->area, &run->plan.task, mc_server_config(run->server), &run->log, visit,
                                           baton, run->pool);
    if (run->failure == MC_OK)
        run->failure = error;
}

static void
visit_all(run *run, FILE *tiles, mc_seed_visit *visit, void *baton)
{
    if (tiles != NULL)
        mc_seed_list_visit(tiles, list_name(run), run->options.retry != NULL ? MC_LIST_FAILED : MC_LIST_TILES,
                           &run->area, visit, baton, &run->bad_lines);
    else if (mc_seed_stored_possible(&run->plan.task))
        visit_stored(run, visit, baton);
    else if (drills_down(run))
        mc_seed_walk_down(&run->area, visit, baton);
    else
        mc_seed_walk_levels(&run->area, visit, baton);
}

/* What failed in an earlier run. */
static void
visit_failures(run *run)
{
    const apr_array_header_t *failures = mc_seed_checkpoint_failures(&run->checkpoint, run->pool);
    for (int i = 0; i < failures->nelts && stop == 0; i++) {
        const mc_seed_place *place = &APR_ARRAY_IDX(failures, i, mc_seed_place);
        submit(run, place->z, place->x, place->y);
    }
}

/* Of everything that decides which metatiles come in which order. */
static uint64_t
plan_hash(const run *run)
{
    const mc_seed_area *area = &run->area;
    const mc_tileset *tileset = run->tileset;
    int numbers[] = { area->minzoom,   area->maxzoom, area->columns, area->rows, (int)run->plan.task.mode,
                      drills_down(run) };
    uint64_t hash = mc_hash64(numbers, sizeof(numbers), 1);
    for (int z = area->minzoom; z <= area->maxzoom; z++)
        hash = mc_hash64(&area->limits[z], sizeof(area->limits[z]), hash);
    const char *names[] = { tileset->name, area->grid->name, tileset->cache->name,
                            run->options.transfer == NULL ? "" : run->options.transfer,
                            list_name(run) == NULL ? "" : list_name(run) };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        hash = mc_hash64(names[i], strlen(names[i]) + 1, hash);
    for (int i = 0; i < tileset->dimension_count; i++)
        hash = mc_hash64(run->plan.task.values[i], strlen(run->plan.task.values[i]) + 1, hash);
    return hash;
}

static void
begin_progress(run *run, FILE *failures)
{
    bool terminal = isatty(STDOUT_FILENO) == 1;
    run->progress = (mc_seed_progress){
        .task = &run->plan.task,
        .metatile_tiles = run->area.columns * run->area.rows,
        .expected = list_name(run) == NULL && !mc_seed_stored_possible(&run->plan.task)
                        ? mc_seed_count(&run->area) - run->checkpoint.begun
                        : 0,
        .percent = run->options.percent,
        .quiet = run->options.quiet,
        .json = run->options.json,
        .bar = terminal && !run->options.non_interactive && !run->options.json,
        .carriage_return = terminal && !run->options.non_interactive && !run->options.json,
        .failures = failures,
        .began = apr_time_now(),
        .shown = apr_time_now(),
    };
}

/* MapCache says nothing of lines that --retry-failed cannot use. */
static int
status_of_list(const run *run)
{
    return run->options.list != NULL && run->bad_lines > 0 ? MC_SEED_BAD_LINES : 0;
}

static int
work(run *run, FILE *tiles, FILE *failures)
{
    begin_progress(run, failures);
    run->failure = mc_seed_hire(&run->crew, &run->plan, run->pool);
    if (run->failure == MC_OK) {
        struct sigaction interrupt = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
        sigaction(SIGINT, &interrupt, NULL);
        sigaction(SIGTERM, &interrupt, NULL);
        bool again = apr_hash_count(run->checkpoint.failures) > 0;
        visit_all(run, tiles, hand_out, run);
        if (again)
            visit_failures(run);
        if (stop != 0)
            mc_seed_recall(run->crew);
        mc_error *late = mc_seed_finish(run->crew, run->pool);
        if (run->failure == MC_OK)
            run->failure = late;
    }
    mc_seed_checkpoint_close(&run->checkpoint, run->failure == MC_OK && stop == 0);
    int status = run->failure != MC_OK || run->progress.aborted ? 1 : status_of_list(run);
    if (run->failure != MC_OK)
        fprintf(stderr, "%s\n", mc_error_chain(run->failure, run->pool));
    else
        mc_seed_progress_end(&run->progress, status);
    return status;
}

static int
dry_run(run *run, FILE *tiles)
{
    mc_seed_dry dry = { .area = &run->area, .task = &run->plan.task, .expected = mc_seed_count(&run->area) };
    run->failure = mc_seed_dry_begin(&dry, mc_server_config(run->server), &run->log, run->pool);
    if (run->failure != MC_OK) {
        fprintf(stderr, "%s\n", mc_error_chain(run->failure, run->pool));
        return 1;
    }
    visit_all(run, tiles, mc_seed_dry_visit, &dry);
    mc_seed_dry_end(&dry, run->options.json);
    return status_of_list(run);
}

static int
run_plan(run *run)
{
    FILE *tiles = NULL, *failures = NULL;
    int status = 1;
    const char *problem =
        mc_seed_checkpoint_open(&run->checkpoint, run->options.dry_run ? NULL : run->options.checkpoint, plan_hash(run),
                                run->options.resume, run->pool);
    if (problem != NULL) {
        fprintf(stderr, "%s\n", problem);
        return 1;
    }
    if (list_name(run) != NULL && (tiles = open_list(list_name(run), "r")) == NULL)
        return 1;
    if (run->options.dry_run)
        status = dry_run(run, tiles);
    else if (run->options.failures == NULL || (failures = open_list(run->options.failures, "w")) != NULL)
        status = work(run, tiles, failures);
    if (tiles != NULL)
        fclose(tiles);
    if (failures != NULL && fclose(failures) != 0)
        status = 1;
    return status;
}

int
mc_command_seed(int argc, const char *const *argv)
{
    run run = { .log = mc_log_stderr };
    apr_pool_create(&run.pool, NULL);
    const char *program = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
    if (strcmp(program, "seed") == 0)
        program = "mapcache seed";
    const char *problem = mc_seed_options_parse(&run.options, argc, argv, run.pool);
    run.log.level = run.options.verbose ? MC_LOG_DEBUG : MC_LOG_WARN;
    int status = 1;
    if (problem == NULL && !run.options.help)
        problem = load(&run);
    if (problem == NULL && !run.options.help)
        problem = make_plan(&run);
    if (problem != NULL) {
        mc_seed_usage(program, problem);
    } else if (run.options.help) {
        mc_seed_usage(program, NULL);
        status = 0;
    } else {
        status = run_plan(&run);
    }
    apr_pool_destroy(run.pool);
    return status;
}
