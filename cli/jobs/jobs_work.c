/* `mapcache jobs work`: one worker, until it is interrupted or nothing is left. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_line.h"
#include "cli/common/style.h"
#include "jobs.h"
#include "text/text.h"

static volatile int stop;

static void
print_jobs_work_json(const jobs_display *display, const mc_jobs_session_result *r, int64_t job, int status)
{
    double seconds = (double)(mc_clock_now() - display->began) / APR_USEC_PER_SEC;
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_integer(line.json, "job", job);
    mc_json_integer(line.json, "done", r->done);
    mc_json_integer(line.json, "skipped", r->skipped);
    mc_json_integer(line.json, "failed", r->failed);
    mc_json_integer(line.json, "tiles", r->tiles);
    mc_json_integer(line.json, "units", r->units);
    mc_json_integer(line.json, "lost", r->lost);
    mc_json_decimals(line.json, "seconds", seconds, 3);
    if (status >= 0)
        mc_json_integer(line.json, "exit", status);
    mc_cli_json_line_end(&line);
}

jobs_display
mc_cli_jobs_display(const jobs_cli *cli)
{
    return (jobs_display){ .quiet = cli->options.quiet,
                           .json = cli->options.json,
                           .terminal = !cli->options.json && mc_cli_is_screen(stdout),
                           .began = mc_clock_now() };
}

void
mc_cli_jobs_progress(jobs_display *display, const mc_jobs_session_result *so_far, int64_t job)
{
    apr_time_t now = mc_clock_now();
    apr_interval_time_t pause = display->terminal || display->json ? APR_USEC_PER_SEC : 10 * APR_USEC_PER_SEC;
    if (display->quiet || job == 0 || now - display->shown < pause)
        return;
    display->shown = now;
    if (display->json)
        print_jobs_work_json(display, so_far, job, -1);
    else
        printf("%sjob %lld: %lld tiles, %lld metatiles skipped, %lld failed, %lld units%s",
               display->terminal ? "\r\033[K" : "", (long long)job, (long long)so_far->tiles,
               (long long)so_far->skipped, (long long)so_far->failed, (long long)so_far->units,
               display->terminal ? "" : "\n");
    fflush(stdout);
}

void
mc_cli_jobs_end(const jobs_display *display, const mc_jobs_session_result *result, int status)
{
    if (display->json)
        print_jobs_work_json(display, result, 0, status);
    else
        printf("%sworked: %lld tiles, %lld metatiles skipped, %lld failed, %lld units\n",
               display->terminal ? "\r\033[K" : "", (long long)result->tiles, (long long)result->skipped,
               (long long)result->failed, (long long)result->units);
    fflush(stdout);
}

/* HOST:PROCESS, or the name that was given, each process with its number. */
static const char *
own_name(const jobs_cli *cli)
{
    char host[256] = "host";
    if (cli->options.name != NULL && cli->options.processes == 1)
        return cli->options.name;
    gethostname(host, sizeof(host) - 1);
    return apr_psprintf(cli->pool, "%s:%ld", cli->options.name != NULL ? cli->options.name : host, (long)getpid());
}

mc_jobs_session
mc_cli_jobs_session(const jobs_cli *cli, const volatile int *stop_flag)
{
    const jobs_options *options = &cli->options;
    return (mc_jobs_session){ .jobs = cli->jobs,
                              .config = cli->model,
                              .process = cli->ctx.process,
                              .log = &cli->log,
                              .name = mc_message_text(own_name(cli), 200, cli->pool),
                              .threads = options->threads,
                              .retries = options->retries,
                              .drain = options->drain,
                              .stop = stop_flag };
}

static void
show_jobs_work_progress(void *baton, const mc_jobs_session_result *so_far, int64_t job)
{
    mc_cli_jobs_progress(baton, so_far, job);
}

int
mc_cli_jobs_work(jobs_cli *cli)
{
    jobs_display display = mc_cli_jobs_display(cli);
    mc_jobs_session session = mc_cli_jobs_session(cli, &stop);
    mc_jobs_session_result result;
    session.show = show_jobs_work_progress;
    session.baton = &display;
    mc_cli_stop_on_interrupt(&stop, NULL);
    mc_error *error = mc_jobs_work(&result, &session, cli->pool);
    int status = error == MC_OK ? 0 : mc_cli_jobs_failed(cli, error);
    mc_cli_jobs_end(&display, &result, status);
    if (result.late) /* threads still wait for an origin or a database: what they bring is not wanted any more */
        _exit(status);
    return status;
}
