/* The queue that the commands of `mapcache jobs` work with, and what they say of a job and of an error. */
#include "jobs.h"

int
mc_cli_jobs_failed(const jobs_cli *cli, const mc_error *error)
{
    fprintf(stderr, "mapcache jobs %s: %s\n", cli->command, mc_error_chain(error, cli->pool));
    return 1;
}

/* Percent of a job that is through. */
static double
compute_job_share(const mc_job *job)
{
    int64_t through = job->counts.done + job->counts.skipped + job->failed;
    if (through >= job->metatiles) /* which may be a guess */
        return job->metatiles == 0 ? 0 : 100;
    return 100.0 * (double)through / (double)job->metatiles;
}

void
mc_cli_jobs_line(const mc_job *job, double rate)
{
    printf("%6lld %-9s %5.1f %%  %-8s %s@%s z%d-%d  %lld tiles, %lld skipped, %lld failed  %d worker%s",
           (long long)job->id, mc_job_state_name(job->state), compute_job_share(job), mc_job_mode_name(job->mode),
           job->tileset, job->grid, job->minzoom, job->maxzoom, (long long)job->counts.tiles,
           (long long)job->counts.skipped, (long long)job->failed, job->workers, job->workers == 1 ? "" : "s");
    if (job->priority != 0)
        printf("  priority %d", job->priority);
    if (rate > 0)
        printf("  %.0f tiles/s", rate);
    putchar('\n');
}

const char *
mc_cli_jobs_load(jobs_cli *cli)
{
    const jobs_options *options = &cli->options;
    if (options->config != NULL) {
        mc_diagnostics *diagnostics = mc_diagnostics_create(cli->pool);
        mc_error *error = mc_server_load(&cli->server, options->config, diagnostics, cli->pool);
        if (error != MC_OK)
            return mc_error_chain(error, cli->pool);
        cli->model = mc_server_config(cli->server);
        cli->jobs = cli->model->jobs;
    }
    if (options->connection != NULL)
        cli->jobs = mc_jobs_create(options->connection, cli->jobs, cli->pool);
    return cli->jobs == NULL ? "the configuration has no <jobs>, and no --connection is given" : NULL;
}

const char *
mc_cli_jobs_open(jobs_cli *cli, int processes)
{
    mc_error *error;
    if (cli->model != NULL) {
        error = mc_runtime_create(&cli->runtime, cli->model, processes, true, &cli->log, cli->pool);
    } else {
        const mc_config nothing = { .max_connections = 4,
                                    .idle_connection_time = 60 * APR_USEC_PER_SEC,
                                    .open_files = 16,
                                    .tilesets = apr_array_make(cli->pool, 1, sizeof(void *)),
                                    .databases = apr_array_make(cli->pool, 1, sizeof(void *)) };
        error = mc_runtime_create(&cli->runtime, &nothing, 1, false, &cli->log, cli->pool);
    }
    if (error != MC_OK)
        return mc_error_chain(error, cli->pool);
    cli->ctx = (mc_ctx){ .pool = cli->pool, .process = mc_runtime_process(cli->runtime), .log = &cli->log };
    return NULL;
}
