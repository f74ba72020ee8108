/* `mapcache jobs work`: one worker, until it is interrupted or nothing is left. */
#include <apr_strings.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "jobs.h"

static volatile int stop;

static void
on_interrupt(int signal_number)
{
    (void)signal_number;
    if (stop != 0)
        _exit(2);
    stop = 1;
}

typedef struct display {
    bool quiet, json, terminal;
    apr_time_t began, shown;
} display;

static void
print_json(const display *display, const mc_jobs_shift_result *r, int64_t job, int status)
{
    double seconds = (double)(mc_clock_now() - display->began) / APR_USEC_PER_SEC;
    printf("{\"job\":%lld,\"done\":%lld,\"skipped\":%lld,\"failed\":%lld,\"tiles\":%lld,\"units\":%lld,\"lost\":%lld,"
           "\"seconds\":%.3f",
           (long long)job, (long long)r->done, (long long)r->skipped, (long long)r->failed, (long long)r->tiles,
           (long long)r->units, (long long)r->lost, seconds);
    if (status >= 0)
        printf(",\"exit\":%d", status);
    puts("}");
    fflush(stdout);
}

static void
print_line(const display *display, const mc_jobs_shift_result *r, int64_t job, bool last)
{
    const char *begin = display->terminal ? "\r\033[K" : "", *end = display->terminal && !last ? "" : "\n";
    printf("%s%s%lld: %lld tiles, %lld metatiles skipped, %lld failed, %lld units%s", begin,
           last       ? "worked, last on job "
           : job == 0 ? "waiting, last on job "
                      : "job ",
           (long long)job, (long long)r->tiles, (long long)r->skipped, (long long)r->failed, (long long)r->units, end);
    fflush(stdout);
}

static void
show(void *baton, const mc_jobs_shift_result *so_far, int64_t job)
{
    display *display = baton;
    apr_time_t now = mc_clock_now();
    apr_interval_time_t pause = display->terminal || display->json ? APR_USEC_PER_SEC : 10 * APR_USEC_PER_SEC;
    if (display->quiet || job == 0 || (now >= display->shown && now - display->shown < pause))
        return;
    display->shown = now;
    if (display->json)
        print_json(display, so_far, job, -1);
    else
        print_line(display, so_far, job, false);
}

static const char *
own_name(apr_pool_t *pool)
{
    char host[256] = "host";
    gethostname(host, sizeof(host) - 1);
    return apr_psprintf(pool, "%s:%ld", host, (long)getpid());
}

int
mc_cli_jobs_work(jobs_cli *cli)
{
    const jobs_options *options = &cli->options;
    display display = { .quiet = options->quiet,
                        .json = options->json,
                        .terminal = !options->json && isatty(STDOUT_FILENO) == 1,
                        .began = mc_clock_now() };
    mc_jobs_shift shift = { .jobs = cli->jobs,
                            .config = cli->model,
                            .process = cli->ctx.process,
                            .log = &cli->log,
                            .name = mc_message_text(options->name != NULL ? options->name : own_name(cli->pool), 200,
                                                    cli->pool),
                            .threads = options->threads,
                            .retries = options->retries,
                            .drain = options->drain,
                            .stop = &stop,
                            .show = show,
                            .baton = &display };
    mc_jobs_shift_result result;
    struct sigaction interrupt = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART };
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
    mc_error *error = mc_jobs_work(&result, &shift, cli->pool);
    int status = error == MC_OK ? 0 : mc_cli_jobs_failed(cli, error);
    if (display.json)
        print_json(&display, &result, 0, status);
    else
        printf("%sworked: %lld tiles, %lld metatiles skipped, %lld failed, %lld units\n",
               display.terminal ? "\r\033[K" : "", (long long)result.tiles, (long long)result.skipped,
               (long long)result.failed, (long long)result.units);
    fflush(stdout);
    if (result.late) /* threads still wait for an origin or a database: what they bring is not wanted any more */
        _exit(status);
    return status;
}
