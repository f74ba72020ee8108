/* `mapcache jobs show` and `watch`. */
#include <apr_strings.h>
#include <signal.h>
#include <unistd.h>

#include "cli/common/style.h"
#include "jobs.h"

static void
print_job_time(const char *word, apr_time_t time)
{
    char text[APR_RFC822_DATE_LEN];
    if (time != 0 && apr_rfc822_date(text, time) == APR_SUCCESS)
        printf("  %-9s %s\n", word, text);
}

static void
print_unit(const mc_job_unit *unit, const mc_job *job)
{
    mc_job_block block = mc_job_block_of(job, unit->unit);
    printf("  unit %lld %s: z%d x%d y%d, %dx%d metatiles, %lld done, %lld skipped, %d again, tried %d times, worker "
           "%s%s%s\n",
           (long long)unit->unit, unit->state, block.z, block.column * job->columns, block.row * job->rows,
           block.columns, block.rows, (long long)unit->counts.done, (long long)unit->counts.skipped, unit->again_count,
           unit->attempt, unit->worker, *unit->message == '\0' ? "" : ": ", unit->message);
}

int
mc_cli_jobs_show(jobs_cli *cli, const mc_job *job)
{
    apr_array_header_t *units;
    mc_error *error = mc_jobs_units(&units, cli->jobs, job->id, cli->options.limit, &cli->ctx, cli->pool);
    if (error != MC_OK)
        return mc_cli_jobs_failed(cli, error);
    if (cli->options.json) {
        puts(mc_job_json(job, true, cli->pool));
    } else {
        mc_cli_jobs_line(job, 0);
        printf("  %lld of %lld units finished, %lld failed; by %s\n", (long long)job->finished, (long long)job->units,
               (long long)job->failed_units, job->owner);
        print_job_time("created", job->created);
        print_job_time("started", job->started);
        print_job_time("ended", job->ended);
    }
    for (int i = 0; i < units->nelts; i++) {
        const mc_job_unit *unit = &APR_ARRAY_IDX(units, i, mc_job_unit);
        if (unit->unit < 0 || unit->unit >= job->units)
            continue;
        if (cli->options.json)
            puts(mc_job_unit_json(unit, job, true, cli->pool));
        else
            print_unit(unit, job);
    }
    return 0;
}

/* --- watch ------------------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void
note_watch_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* What was seen of a job a moment ago. */
typedef struct memory {
    int64_t tiles;
    apr_time_t when;
} memory;

static double
rate_of(apr_hash_t *seen, const mc_job *job)
{
    memory *before = apr_hash_get(seen, &job->id, sizeof(job->id));
    double rate = 0;
    if (before == NULL) {
        apr_pool_t *pool = apr_hash_pool_get(seen);
        before = apr_pcalloc(pool, sizeof(*before));
        apr_hash_set(seen, apr_pmemdup(pool, &job->id, sizeof(job->id)), sizeof(job->id), before);
    } else if (job->now > before->when) {
        rate = (double)(job->counts.tiles - before->tiles) * APR_USEC_PER_SEC / (double)(job->now - before->when);
    }
    *before = (memory){ job->counts.tiles, job->now };
    return rate;
}

/* The jobs to look at: those that were named, or all open ones. */
static mc_error *
find_watched_jobs(apr_array_header_t **jobs, jobs_cli *cli, mc_ctx *ctx)
{
    const apr_array_header_t *ids = cli->options.ids;
    mc_jobs_filter open = { .has_state = true, .state = MC_JOB_OPEN, .limit = MC_JOBS_LISTED_MAX };
    if (ids->nelts == 0)
        return mc_jobs_list(jobs, cli->jobs, &open, ctx, ctx->pool);
    *jobs = apr_array_make(ctx->pool, ids->nelts, sizeof(mc_job));
    for (int i = 0; i < ids->nelts; i++)
        MC_TRY(mc_jobs_find(apr_array_push(*jobs), cli->jobs, APR_ARRAY_IDX(ids, i, int64_t), false, ctx, ctx->pool));
    return MC_OK;
}

/* How many of the jobs that were looked at are open. */
static int
print_jobs(const jobs_cli *cli, const apr_array_header_t *jobs, apr_hash_t *seen, apr_pool_t *pool)
{
    int open = 0;
    for (int i = 0; i < jobs->nelts; i++) {
        const mc_job *job = &APR_ARRAY_IDX(jobs, i, mc_job);
        open += job->state == MC_JOB_OPEN;
        double rate = rate_of(seen, job);
        if (cli->options.json)
            puts(mc_job_json(job, true, pool));
        else
            mc_cli_jobs_line(job, rate);
    }
    fflush(stdout);
    return open;
}

int
mc_cli_jobs_watch(jobs_cli *cli)
{
    apr_hash_t *seen = apr_hash_make(cli->pool);
    mc_ctx ctx = cli->ctx;
    bool terminal = mc_cli_is_screen(stdout) && !cli->options.json;
    struct sigaction interrupt = { .sa_handler = note_watch_interrupt };
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
    apr_pool_create(&ctx.pool, cli->pool);
    for (int lines = 0, open = 1; open > 0 && interrupted == 0;) {
        apr_array_header_t *jobs;
        apr_pool_clear(ctx.pool);
        mc_error *error = find_watched_jobs(&jobs, cli, &ctx);
        if (error != MC_OK)
            return mc_cli_jobs_failed(cli, error);
        if (terminal && lines > 0)
            printf("\033[%dA\033[J", lines);
        lines = jobs->nelts;
        open = print_jobs(cli, jobs, seen, ctx.pool);
        if (open > 0 && interrupted == 0)
            sleep(1); /* an interrupt ends it */
    }
    return 0;
}
