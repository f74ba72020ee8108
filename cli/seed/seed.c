/*
 * The seeder: its run, and its exit status (docs/reference/services.md 9).
 */
#include <apr_strings.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/common/help.h"
#include "cli/common/interrupt.h"
#include "cli/common/style.h"
#include "seed_checkpoint.h"
#include "seed_dry.h"
#include "seed_list.h"
#include "seed_progress.h"
#include "seed_setup.h"
#include "seed_stored.h"

/* Exit status: all went well but for lines of a list that were no tiles. */
enum { MC_SEED_BAD_LINES = 3 };

/* All that one run has. */
typedef struct seed_run {
    mc_seed_setup setup;
    mc_runtime *runtime;
    mc_log log;
    mc_seed_plan plan;
    mc_seed_progress progress;
    mc_seed_checkpoint checkpoint;
    int64_t passed;    /* metatiles that an earlier run has done */
    int64_t bad_lines; /* of a list */
    mc_seed_worker_pool *worker_pool;
    mc_error *failure; /* of the worker pool, not of a tile */
} seed_run;

/* Set by an interrupt and when too much has failed: nothing more is handed out. */
static volatile int stop;

static mc_error *
open_seed_process(mc_process **process, void *baton, apr_pool_t *pool)
{
    seed_run *run = baton;
    int processes = run->plan.processes ? run->plan.workers : 1;
    MC_TRY(mc_runtime_create(&run->runtime, run->setup.config, processes, true, &run->log, pool));
    *process = mc_runtime_process(run->runtime);
    return MC_OK;
}

static void
close_seed_process(mc_process *process, void *baton)
{
    seed_run *run = baton;
    (void)process;
    mc_runtime_destroy(run->runtime);
}

static void
record_seed_result(void *baton, const mc_seed_result *result)
{
    seed_run *run = baton;
    run->progress.awake = mc_seed_awake(run->worker_pool);
    mc_seed_progress_take(&run->progress, result);
    mc_seed_checkpoint_take(&run->checkpoint, result);
    if (run->progress.aborted)
        stop = 1;
}

static void
show_seed_run_progress(void *baton)
{
    seed_run *run = baton;
    run->progress.awake = mc_seed_awake(run->worker_pool);
    mc_seed_progress_show(&run->progress);
}

static void
make_plan(seed_run *run)
{
    const mc_seed_options *options = &run->setup.options;
    run->plan = (mc_seed_plan){ .task = run->setup.task,
                                .workers = options->workers,
                                .processes = options->processes,
                                .thread_delay = options->thread_delay,
                                .retries = options->retries,
                                .rate = options->rate / (run->setup.area.columns * run->setup.area.rows),
                                .backoff = !options->no_backoff,
                                .log = &run->log,
                                .process_open = open_seed_process,
                                .process_close = close_seed_process,
                                .report = record_seed_result,
                                .idle = show_seed_run_progress,
                                .baton = run };
}

static bool
submit_seed_metatile(seed_run *run, int z, int x, int y)
{
    if (run->failure == MC_OK)
        run->failure = mc_seed_submit(run->worker_pool, z, x, y, &stop, run->setup.pool);
    return stop == 0 && run->failure == MC_OK;
}

static bool
submit_remaining_metatile(void *baton, int z, int x, int y)
{
    seed_run *run = baton;
    if (run->passed < run->checkpoint.begun) {
        run->passed++;
        return stop == 0;
    }
    return submit_seed_metatile(run, z, x, y);
}

/* What an earlier run has done is no longer in the list, or is passed over quickly: nothing is skipped unseen. */
static void
visit_stored(seed_run *run, mc_seed_visit *visit, void *baton)
{
    run->passed = run->checkpoint.begun;
    mc_error *error = mc_seed_stored_visit(&run->setup.area, &run->setup.task, run->setup.config, &run->log, visit,
                                           baton, run->setup.pool);
    if (run->failure == MC_OK)
        run->failure = error;
}

/* Of a list of tiles, only what is in the area. */
typedef struct sieve {
    const mc_seed_area *area;
    mc_seed_visit *visit;
    void *baton;
} sieve;

static bool
visit_wanted(void *baton, int z, int x, int y)
{
    const sieve *sieve = baton;
    return !mc_seed_wanted(sieve->area, z, x, y) || sieve->visit(sieve->baton, z, x, y);
}

static void
visit_all(seed_run *run, FILE *tiles, mc_seed_visit *visit, void *baton)
{
    const mc_seed_setup *setup = &run->setup;
    sieve sieve = { &setup->area, visit, baton };
    errno = 0;
    if (setup->options.retry != NULL)
        mc_seed_list_visit(tiles, setup->options.retry, MC_LIST_FAILED, &setup->area, visit, baton, &run->bad_lines);
    else if (tiles != NULL)
        mc_seed_list_visit(tiles, setup->options.list, MC_LIST_TILES, &setup->area, visit_wanted, &sieve,
                           &run->bad_lines);
    else if (mc_seed_stored_possible(&setup->task, setup->area.maxzoom))
        visit_stored(run, visit_wanted, &sieve);
    else
        mc_seed_walk(&setup->area, setup->order, visit, baton);
    if (tiles != NULL && ferror(tiles) && run->failure == MC_OK)
        run->failure = mc_error_create(setup->pool, MC_ERR_IO, "%s cannot be read: %s", mc_seed_setup_list(setup),
                                       strerror(errno));
}

/* What failed in an earlier run. */
static void
visit_failures(seed_run *run)
{
    const apr_array_header_t *failures = mc_seed_checkpoint_failures(&run->checkpoint, run->setup.pool);
    for (int i = 0; i < failures->nelts && stop == 0; i++) {
        const mc_seed_place *place = &APR_ARRAY_IDX(failures, i, mc_seed_place);
        submit_seed_metatile(run, place->z, place->x, place->y);
    }
}

static void
begin_progress(seed_run *run, FILE *failures)
{
    bool drop_in = run->setup.options.drop_in;
    bool terminal = drop_in ? isatty(STDOUT_FILENO) == 1 : mc_cli_is_screen(stdout);
    run->progress = (mc_seed_progress){
        .task = &run->setup.task,
        .metatile_tiles = run->setup.area.columns * run->setup.area.rows,
        .expected = mc_seed_setup_list(&run->setup) == NULL &&
                            !mc_seed_stored_possible(&run->setup.task, run->setup.area.maxzoom)
                        ? mc_seed_count(&run->setup.area) - run->checkpoint.begun
                        : 0,
        .percent = run->setup.options.percent,
        .drop_in = drop_in,
        .quiet = run->setup.options.quiet,
        .json = run->setup.options.json,
        .bar = terminal && !run->setup.options.non_interactive && !run->setup.options.json,
        .carriage_return = terminal && !run->setup.options.non_interactive && !run->setup.options.json,
        .failures = failures,
        .workers = run->plan.workers,
        .awake = run->plan.workers,
        .verbose = run->setup.options.verbose,
        .began = mc_clock_now(),
        .shown = mc_clock_now(),
    };
}

/* Everything has been handed out: until the last result, or until nothing more is wanted. */
static void
await_results(seed_run *run)
{
    int outstanding = 1;
    for (int wait = 0; outstanding > 0 && stop == 0 && run->failure == MC_OK; wait = 500)
        run->failure = mc_seed_poll(&outstanding, run->worker_pool, wait, run->setup.pool);
}

/* MapCache says nothing of lines that --retry-failed cannot use. */
static int
status_of_list(const seed_run *run)
{
    return run->setup.options.list != NULL && run->bad_lines > 0 ? MC_SEED_BAD_LINES : 0;
}

/* Stores that keep what is new apart until a seed ends. What an interrupted run has stored waits for the next one. */
static mc_error *
finish_seeded_stores(seed_run *run)
{
    const mc_seed_task *task = &run->setup.task;
    mc_ctx ctx = { .pool = run->setup.pool, .log = &run->log };
    if (task->mode == MC_SEED_COMPARE)
        return MC_OK;
    return mc_cache_finish(task->target != NULL ? task->target->cache : task->tileset->cache, &ctx);
}

static void
tell_pair(mc_seed_pair *pair, const mc_seed_progress *progress)
{
    pair->tiles = progress->tiles;
    pair->kept = progress->skipped_tiles;
    pair->failed = progress->failed;
}

static int
run_seed_workers(seed_run *run, FILE *tiles, FILE *failures)
{
    begin_progress(run, failures);
    run->failure = mc_seed_worker_pool_start(&run->worker_pool, &run->plan, run->setup.pool);
    if (run->failure == MC_OK) {
        mc_cli_stop_on_interrupt(&stop, "SIGINT received, waiting for threads to finish\n"
                                        "press ctrl-C again to force terminate\n");
        bool again = apr_hash_count(run->checkpoint.failures) > 0;
        visit_all(run, tiles, submit_remaining_metatile, run);
        if (again)
            visit_failures(run);
        await_results(run);
        if (stop != 0)
            mc_seed_cancel(run->worker_pool);
        mc_error *late = mc_seed_finish(run->worker_pool, run->setup.pool);
        if (run->failure == MC_OK)
            run->failure = late;
        if (run->failure == MC_OK && stop == 0)
            run->failure = finish_seeded_stores(run);
    }
    mc_seed_checkpoint_close(&run->checkpoint, run->failure == MC_OK && stop == 0);
    if (run->failure == MC_OK && !mc_seed_progress_listed(&run->progress))
        run->failure = mc_error_create(run->setup.pool, MC_ERR_IO, "failures cannot be written to %s: %s",
                                       run->setup.options.failures, strerror(errno));
    int status = run->failure != MC_OK || run->progress.aborted ? 1 : status_of_list(run);
    if (run->setup.options.pair != NULL)
        tell_pair(run->setup.options.pair, &run->progress);
    if (run->failure != MC_OK)
        fprintf(stderr, "%s\n", mc_error_chain(run->failure, run->setup.pool));
    else
        mc_seed_progress_end(&run->progress, status);
    return status;
}

static int
dry_run(seed_run *run, FILE *tiles)
{
    mc_seed_dry dry = { .area = &run->setup.area, .task = &run->setup.task };
    run->failure = mc_seed_dry_begin(&dry, run->setup.config, &run->log, run->setup.pool);
    if (run->failure != MC_OK) {
        fprintf(stderr, "%s\n", mc_error_chain(run->failure, run->setup.pool));
        return 1;
    }
    visit_all(run, tiles, mc_seed_dry_visit, &dry);
    if (run->failure == MC_OK)
        run->failure = dry.failure;
    mc_seed_dry_end(&dry, run->failure == MC_OK, run->setup.options.json);
    if (run->failure == MC_OK)
        return status_of_list(run);
    fprintf(stderr, "%s\n", mc_error_chain(run->failure, run->setup.pool));
    return 1;
}

static bool
is_same_file(FILE *open, FILE *other)
{
    struct stat a, b;
    return fstat(fileno(open), &a) == 0 && fstat(fileno(other), &b) == 0 && S_ISREG(a.st_mode) &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The files of the run. Nothing that stands in them is lost where the run is refused. NULL, or what is wrong. */
static const char *
open_seed_files(seed_run *run, FILE **tiles, FILE **failures)
{
    const mc_seed_options *options = &run->setup.options;
    const char *list = mc_seed_setup_list(&run->setup), *place = options->dry_run ? NULL : options->checkpoint;
    apr_pool_t *pool = run->setup.pool;
    uint64_t hash = 0;
    if (list != NULL && (*tiles = fopen(list, "r")) == NULL)
        return apr_psprintf(pool, "cannot open %s: %s", list, strerror(errno));
    if (options->failures != NULL && !options->dry_run && (*failures = fopen(options->failures, "a")) == NULL)
        return apr_psprintf(pool, "cannot open %s: %s", options->failures, strerror(errno));
    if (*tiles != NULL && *failures != NULL && is_same_file(*tiles, *failures))
        return "--log-failed would empty the file that the tiles are taken from";
    if (*tiles != NULL && place != NULL && !mc_seed_list_hash(&hash, *tiles))
        return apr_psprintf(pool, "--checkpoint needs a list of tiles that can be read again, which %s is not", list);
    const char *problem = mc_seed_checkpoint_open(&run->checkpoint, place, mc_seed_setup_hash(&run->setup, hash),
                                                  &run->setup.area, options->resume, pool);
    if (problem == NULL && *failures != NULL && ftruncate(fileno(*failures), 0) != 0 && errno != EINVAL)
        problem = apr_psprintf(pool, "%s cannot be emptied: %s", options->failures, strerror(errno));
    return problem;
}

static int
run_plan(seed_run *run)
{
    FILE *tiles = NULL, *failures = NULL;
    int status = 1;
    const char *problem = open_seed_files(run, &tiles, &failures);
    if (problem != NULL)
        fprintf(stderr, "%s\n", problem);
    else
        status = run->setup.options.dry_run ? dry_run(run, tiles) : run_seed_workers(run, tiles, failures);
    if (tiles != NULL)
        fclose(tiles);
    if (failures != NULL)
        fclose(failures);
    return status;
}

bool
mc_seed_was_interrupted(void)
{
    return stop != 0;
}

int
mc_command_seed(mc_cli_call *call)
{
    return mc_seed_run(call, call->options);
}

int
mc_seed_run(const mc_cli_call *call, const mc_seed_options *options)
{
    seed_run run = { .log = mc_log_stderr };
    mc_seed_setup *setup = &run.setup;
    setup->pool = call->pool;
    setup->options = *options;
    run.log.level = mc_cli_log_level(setup->options.verbose, call->quiet && !call->drop_in);
    const char *problem = mc_seed_setup_make(setup);
    if (problem != NULL) {
        mc_cli_refuse(call, problem);
        return 1;
    }
    if (setup->nothing) {
        puts("no features in provided ogr parameters, cannot continue");
        return 0;
    }
    make_plan(&run);
    return run_plan(&run);
}
