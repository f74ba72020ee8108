/* `mapcache jobs COMMAND`: the queue of seeding jobs that any number of hosts share. */
#include "jobs.h"

#include <apr_strings.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/common/json_line.h"
#include "cli/common/ogr_area.h"
#include "cli/common/style.h"

/* USER@HOST */
static const char *
make_job_owner(apr_pool_t *pool)
{
    char host[256] = "";
    const struct passwd *user = getpwuid(geteuid());
    gethostname(host, sizeof(host) - 1);
    return apr_pstrcat(pool, user == NULL ? "?" : user->pw_name, "@", host, NULL);
}

/* The last level that the area is for. */
static int
finest_of(const mc_job_spec *spec, const mc_grid *grid)
{
    return spec->has_zoom && spec->maxzoom < grid->level_count ? spec->maxzoom : grid->level_count - 1;
}

/* The geometry of the features as GeoJSON: workers on other hosts need not have the source. */
static mc_error *
read_job_ogr_area(jobs_cli *cli, const mc_grid *grid)
{
    mc_job_spec *spec = &cli->options.spec;
    mc_seed_ogr wanted = cli->options.ogr;
    mc_seed_region *region;
    mc_seed_shape *shape;
    mc_extent bounds;
    wanted.srs = spec->area_srs;
    wanted.shape = &shape;
    MC_TRY(mc_ogr_area_read(&region, &wanted, grid, finest_of(spec, grid), cli->pool));
    if (region != NULL)
        MC_TRY(mc_seed_shape_cut(&spec->area, &bounds, shape, NULL, cli->pool));
    if (spec->area == NULL)
        return mc_error_create(cli->pool, MC_ERR_CONFIG, "\"%s\" has no features with a geometry there", wanted.source);
    if (spec->area_srs == NULL) {
        mc_ogr_area_warn(region, grid);
        spec->area_srs = grid->srs;
    }
    return MC_OK;
}

/* The text of the file, looked into: errors name it. */
static mc_error *
read_job_area_file(jobs_cli *cli, const mc_grid *grid)
{
    mc_job_spec *spec = &cli->options.spec;
    mc_seed_region *region;
    MC_TRY(mc_seed_area_text(&spec->area, cli->options.area, cli->pool));
    MC_TRY(mc_seed_area_parse(&region, spec->area, strlen(spec->area), cli->options.area, spec->area_srs, grid,
                              finest_of(spec, grid), cli->pool));
    if (region == NULL)
        return mc_error_create(cli->pool, MC_ERR_CORRUPT, "%s has no polygon, line or point", cli->options.area);
    if (spec->area_srs == NULL)
        mc_ogr_area_warn(region, grid);
    return MC_OK;
}

/* The area of the job specification, from the file or the source that the options name. What is wrong with tileset and
 * grid, the job says.
 */
static mc_error *
read_area(jobs_cli *cli)
{
    const jobs_options *options = &cli->options;
    const mc_tileset *tileset = apr_hash_get(cli->model->tilesets_by_name, options->spec.tileset, APR_HASH_KEY_STRING);
    const mc_grid_link *link = tileset == NULL ? NULL : mc_tileset_link(tileset, options->spec.grid);
    if (link == NULL || (options->area == NULL && options->ogr.source == NULL))
        return MC_OK;
    return options->area != NULL ? read_job_area_file(cli, link->grid) : read_job_ogr_area(cli, link->grid);
}

static int
enqueue_requested_job(jobs_cli *cli)
{
    mc_job job;
    int64_t id = 0;
    mc_job_spec *spec = &cli->options.spec;
    spec->owner = make_job_owner(cli->pool);
    mc_error *error = read_area(cli);
    const mc_tileset *tileset = apr_hash_get(cli->model->tilesets_by_name, spec->tileset, APR_HASH_KEY_STRING);
    if (tileset != NULL)
        mc_tileset_ask_place_alone(tileset, cli->pool);
    if (error == MC_OK)
        error = mc_job_make(&job, spec, cli->model, cli->pool);
    if (error == MC_OK)
        error = mc_jobs_enqueue(&id, cli->jobs, &job, spec->request, &cli->ctx);
    if (error == MC_OK)
        error = mc_jobs_find(&job, cli->jobs, id, false, &cli->ctx, cli->pool);
    if (error != MC_OK)
        return mc_cli_jobs_failed(cli, error);
    if (cli->options.json)
        puts(mc_job_json(&job, true, cli->pool));
    else
        printf("job %lld: %lld metatiles in %lld units\n", (long long)id, (long long)job.metatiles,
               (long long)job.units);
    return 0;
}

static int
list_queued_jobs(jobs_cli *cli)
{
    mc_jobs_filter filter = { .has_state = cli->options.has_state,
                              .state = cli->options.state,
                              .limit = cli->options.limit };
    apr_array_header_t *jobs;
    mc_error *error = mc_jobs_list(&jobs, cli->jobs, &filter, &cli->ctx, cli->pool);
    if (error != MC_OK)
        return mc_cli_jobs_failed(cli, error);
    for (int i = 0; i < jobs->nelts; i++) {
        const mc_job *job = &APR_ARRAY_IDX(jobs, i, mc_job);
        if (cli->options.json)
            puts(mc_job_json(job, true, cli->pool));
        else
            mc_cli_jobs_line(job, 0);
    }
    return 0;
}

static int
show_queued_job(jobs_cli *cli)
{
    mc_job job;
    mc_error *error =
        mc_jobs_find(&job, cli->jobs, APR_ARRAY_IDX(cli->options.ids, 0, int64_t), false, &cli->ctx, cli->pool);
    return error == MC_OK ? mc_cli_jobs_show(cli, &job) : mc_cli_jobs_failed(cli, error);
}

/* All jobs of a state that have failed units, or all of them, however many there are. */
static mc_error *
collect_jobs_in_state(jobs_cli *cli, mc_job_state state, bool failed_only)
{
    mc_jobs_filter filter = { .has_state = true, .state = state, .limit = MC_JOBS_LISTED_MAX };
    for (;;) {
        apr_array_header_t *jobs;
        MC_TRY(mc_jobs_list(&jobs, cli->jobs, &filter, &cli->ctx, cli->pool));
        if (jobs->nelts == 0)
            return MC_OK;
        for (int i = 0; i < jobs->nelts; i++) {
            const mc_job *job = &APR_ARRAY_IDX(jobs, i, mc_job);
            if (!failed_only || job->failed_units > 0)
                APR_ARRAY_PUSH(cli->options.ids, int64_t) = job->id;
            filter.before = job->id;
        }
    }
}

/* The jobs that an action makes sense for, where --all was said. */
static mc_error *
collect_all(jobs_cli *cli, mc_job_action action)
{
    static const struct {
        mc_job_state list[3];
        int count;
    } states[] = { [MC_JOB_CANCEL] = { { MC_JOB_OPEN, MC_JOB_PAUSED }, 2 },
                   [MC_JOB_PAUSE] = { { MC_JOB_OPEN }, 1 },
                   [MC_JOB_RESUME] = { { MC_JOB_PAUSED }, 1 },
                   [MC_JOB_RETRY] = { { MC_JOB_OPEN, MC_JOB_PAUSED, MC_JOB_DONE }, 3 } };
    for (int i = 0; i < states[action].count; i++)
        MC_TRY(collect_jobs_in_state(cli, states[action].list[i], action == MC_JOB_RETRY));
    return MC_OK;
}

static void
print_changed_job_json(int64_t id, mc_job_state state)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_integer(line.json, "id", id);
    mc_json_string(line.json, "state", mc_job_state_name(state));
    mc_cli_json_line_end(&line);
}

static int
change_queued_jobs(jobs_cli *cli)
{
    mc_job_action action;
    mc_job_state state;
    int status = 0;
    MC_ASSERT(mc_job_action_parse(&action, cli->command));
    mc_error *error = cli->options.all ? collect_all(cli, action) : MC_OK;
    if (error != MC_OK)
        return mc_cli_jobs_failed(cli, error);
    for (int i = 0; i < cli->options.ids->nelts; i++) {
        int64_t id = APR_ARRAY_IDX(cli->options.ids, i, int64_t);
        error = mc_jobs_change(&state, cli->jobs, id, action, &cli->ctx);
        if (error != MC_OK)
            status = mc_cli_jobs_failed(cli, error);
        else if (cli->options.json)
            print_changed_job_json(id, state);
        else
            printf("job %lld: %s\n", (long long)id, mc_job_state_name(state));
    }
    return status;
}

static void
print_pruned_jobs_json(int64_t count)
{
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_integer(line.json, "removed", count);
    mc_cli_json_line_end(&line);
}

static int
prune_queued_jobs(jobs_cli *cli)
{
    int64_t count;
    mc_error *error = mc_jobs_prune(&count, cli->jobs, cli->options.older, &cli->ctx);
    if (error != MC_OK)
        return mc_cli_jobs_failed(cli, error);
    if (cli->options.json)
        print_pruned_jobs_json(count);
    else
        printf("%lld job%s removed\n", (long long)count, count == 1 ? "" : "s");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(jobs_cli *cli);
} runs[] = {
    { "enqueue", enqueue_requested_job }, { "work", mc_cli_jobs_work },     { "list", list_queued_jobs },
    { "show", show_queued_job },          { "watch", mc_cli_jobs_watch },   { "cancel", change_queued_jobs },
    { "pause", change_queued_jobs },      { "resume", change_queued_jobs }, { "retry", change_queued_jobs },
    { "prune", prune_queued_jobs },
};

static int
run_jobs_subcommand(jobs_cli *cli, int (*command)(jobs_cli *cli))
{
    const char *problem = mc_cli_jobs_load(cli);
    if (problem == NULL && command == mc_cli_jobs_work && cli->options.processes > 1)
        return mc_cli_jobs_processes(cli);
    if (problem == NULL)
        problem = mc_cli_jobs_open(cli, 1);
    if (problem != NULL) {
        fprintf(stderr, "mapcache jobs %s: %s\n", cli->command, problem);
        return 1;
    }
    int status = command(cli);
    mc_runtime_destroy(cli->runtime);
    return status;
}

int
mc_command_jobs(mc_cli_call *call)
{
    jobs_cli cli = { .log = mc_log_stderr, .pool = call->pool, .command = strchr(call->command->name, ' ') + 1 };
    cli.options = *(const jobs_options *)call->options;
    cli.log.level = mc_cli_log_level(cli.options.verbose, call->quiet);
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
        if (strcmp(cli.command, runs[i].name) == 0)
            return run_jobs_subcommand(&cli, runs[i].run);
    return 1;
}
