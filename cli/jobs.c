/* `mapcache jobs COMMAND`: the queue of seeding jobs that any number of hosts share. */
#include "jobs.h"

#include <apr_strings.h>
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

int
mc_cli_jobs_failed(const jobs_cli *cli, const mc_error *error)
{
    fprintf(stderr, "mapcache jobs %s: %s\n", cli->command, mc_error_chain(error, cli->pool));
    return 1;
}

/* USER@HOST */
static const char *
owner(apr_pool_t *pool)
{
    char host[256] = "";
    const struct passwd *user = getpwuid(geteuid());
    gethostname(host, sizeof(host) - 1);
    return apr_pstrcat(pool, user == NULL ? "?" : user->pw_name, "@", host, NULL);
}

/* The whole file, whose bounds the job checks. */
static mc_error *
read_area(const char **text, const char *path, apr_pool_t *pool)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        return mc_error_create(pool, MC_ERR_IO, "%s cannot be opened: %s", path, strerror(errno));
    char *bytes = apr_palloc(pool, MC_JOBS_AREA_MAX + 2);
    size_t size = fread(bytes, 1, MC_JOBS_AREA_MAX + 1, in);
    bool failed = ferror(in) != 0;
    fclose(in);
    bytes[size] = '\0';
    *text = bytes;
    if (!failed && strlen(bytes) == size)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_IO, failed ? "%s cannot be read" : "%s is no text", path);
}

static int
enqueue(jobs_cli *cli)
{
    mc_job job;
    int64_t id = 0;
    mc_job_wish *wish = &cli->options.wish;
    wish->owner = owner(cli->pool);
    mc_error *error = MC_OK;
    if (cli->options.area != NULL)
        error = read_area(&wish->area, cli->options.area, cli->pool);
    if (error == MC_OK)
        error = mc_job_make(&job, wish, cli->model, cli->pool);
    if (error == MC_OK)
        error = mc_jobs_enqueue(&id, cli->jobs, &job, wish->request, &cli->ctx);
    if (error == MC_OK)
        error = mc_jobs_find(&job, cli->jobs, id, &cli->ctx, cli->pool);
    if (error != MC_OK)
        return mc_cli_jobs_failed(cli, error);
    if (cli->options.json)
        puts(mc_job_json(&job, true, cli->pool));
    else
        printf("job %lld: %lld metatiles in %lld units\n", (long long)id, (long long)job.metatiles,
               (long long)job.units);
    return 0;
}

double
mc_cli_jobs_share(const mc_job *job)
{
    int64_t through = job->counts.done + job->counts.skipped + job->failed;
    return job->metatiles == 0 ? 0 : 100.0 * (double)through / (double)job->metatiles;
}

void
mc_cli_jobs_line(const mc_job *job, double rate)
{
    printf("%6lld %-9s %5.1f %%  %-8s %s@%s z%d-%d  %lld tiles, %lld skipped, %lld failed  %d worker%s",
           (long long)job->id, mc_job_state_name(job->state), mc_cli_jobs_share(job), mc_job_mode_name(job->mode),
           job->tileset, job->grid, job->minzoom, job->maxzoom, (long long)job->counts.tiles,
           (long long)job->counts.skipped, (long long)job->failed, job->workers, job->workers == 1 ? "" : "s");
    if (job->priority != 0)
        printf("  priority %d", job->priority);
    if (rate > 0)
        printf("  %.0f tiles/s", rate);
    putchar('\n');
}

static int
list(jobs_cli *cli)
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
show(jobs_cli *cli)
{
    mc_job job;
    mc_error *error = mc_jobs_find(&job, cli->jobs, APR_ARRAY_IDX(cli->options.ids, 0, int64_t), &cli->ctx, cli->pool);
    return error == MC_OK ? mc_cli_jobs_show(cli, &job) : mc_cli_jobs_failed(cli, error);
}

/* The jobs that an action makes sense for, where --all was said. */
static mc_error *
collect_all(jobs_cli *cli, mc_job_action action)
{
    static const mc_job_state states[4][2] = { { MC_JOB_OPEN, MC_JOB_PAUSED },
                                               { MC_JOB_OPEN, MC_JOB_OPEN },
                                               { MC_JOB_PAUSED, MC_JOB_PAUSED },
                                               { MC_JOB_OPEN, MC_JOB_DONE } };
    for (int i = 0; i < 2; i++) {
        mc_jobs_filter filter = { .has_state = true, .state = states[action][i], .limit = MC_JOBS_LISTED_MAX };
        apr_array_header_t *jobs;
        if (i == 1 && states[action][0] == states[action][1])
            break;
        MC_TRY(mc_jobs_list(&jobs, cli->jobs, &filter, &cli->ctx, cli->pool));
        for (int k = 0; k < jobs->nelts; k++)
            if (action != MC_JOB_RETRY || APR_ARRAY_IDX(jobs, k, mc_job).failed_units > 0)
                APR_ARRAY_PUSH(cli->options.ids, int64_t) = APR_ARRAY_IDX(jobs, k, mc_job).id;
    }
    return MC_OK;
}

static int
change(jobs_cli *cli)
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
            printf("{\"id\":%lld,\"state\":\"%s\"}\n", (long long)id, mc_job_state_name(state));
        else
            printf("job %lld: %s\n", (long long)id, mc_job_state_name(state));
    }
    return status;
}

static int
prune(jobs_cli *cli)
{
    int64_t count;
    mc_error *error = mc_jobs_prune(&count, cli->jobs, cli->options.older, &cli->ctx);
    if (error != MC_OK)
        return mc_cli_jobs_failed(cli, error);
    printf(cli->options.json ? "{\"removed\":%lld}\n" : "%lld jobs removed\n", (long long)count);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(jobs_cli *cli);
} runs[] = {
    { "enqueue", enqueue }, { "work", mc_cli_jobs_work },   { "list", list },
    { "show", show },       { "watch", mc_cli_jobs_watch }, { "cancel", change },
    { "pause", change },    { "resume", change },           { "retry", change },
    { "prune", prune },
};

/* The configuration, the queue and a process. NULL, or what is wrong. */
static const char *
open_queue(jobs_cli *cli)
{
    static const mc_config nothing = { .max_connections = 4,
                                       .idle_connection_time = 60 * APR_USEC_PER_SEC,
                                       .open_files = 16 };
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
    if (cli->jobs == NULL)
        return "the configuration has no <jobs>, and no --connection is given";
    mc_error *error = MC_OK;
    if (cli->model != NULL)
        error = mc_runtime_create(&cli->runtime, cli->model, 1, true, &cli->log, cli->pool);
    else {
        mc_config empty = nothing;
        empty.tilesets = apr_array_make(cli->pool, 1, sizeof(void *));
        empty.databases = apr_array_make(cli->pool, 1, sizeof(void *));
        error = mc_runtime_create(&cli->runtime, &empty, 1, false, &cli->log, cli->pool);
    }
    if (error != MC_OK)
        return mc_error_chain(error, cli->pool);
    cli->ctx = (mc_ctx){ .pool = cli->pool, .process = mc_runtime_process(cli->runtime), .log = &cli->log };
    return NULL;
}

static int
run(jobs_cli *cli, int (*command)(jobs_cli *cli))
{
    const char *problem = open_queue(cli);
    if (problem != NULL) {
        fprintf(stderr, "mapcache jobs %s: %s\n", cli->command, problem);
        return 1;
    }
    int status = command(cli);
    mc_runtime_destroy(cli->runtime);
    return status;
}

int
mc_command_jobs(int argc, const char *const *argv)
{
    jobs_cli cli = { .log = mc_log_stderr, .command = argc > 1 ? argv[1] : "" };
    bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    int status = 1;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        if (strcmp(cli.command, runs[i].name) != 0)
            continue;
        apr_pool_create(&cli.pool, NULL);
        const char *problem = mc_cli_jobs_parse(&cli.options, cli.command, argc - 1, argv + 1, cli.pool);
        cli.log.level = cli.options.verbose ? MC_LOG_DEBUG : MC_LOG_WARN;
        if (problem != NULL)
            fprintf(stderr, "mapcache jobs %s: %s\n", cli.command, problem);
        else if (cli.options.help)
            mc_cli_jobs_usage(stdout, cli.command), status = 0;
        else
            status = run(&cli, runs[i].run);
        apr_pool_destroy(cli.pool);
        return status;
    }
    if (argc > 1 && !help)
        fprintf(stderr, "mapcache jobs: there is no command \"%s\"\n\n", argv[1]);
    mc_cli_jobs_usage(help ? stdout : stderr, NULL);
    return help ? 0 : 1;
}
