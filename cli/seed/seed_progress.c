/*
 * Progress of the seeder: a bar with rate and time left on a terminal, MapCache's lines elsewhere, since scripts read
 * those.
 */
#include "seed_progress.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/json_line.h"

static const apr_interval_time_t INTERVAL = APR_USEC_PER_SEC;

static const char *const parts[] = {
#define X(part, name, meaning) name,
    MC_SEED_PARTS(X)
#undef X
};

static double
seconds_since(apr_time_t began)
{
    double seconds = (double)(mc_clock_now() - began) / APR_USEC_PER_SEC;
    return seconds > 0.001 ? seconds : 0.001;
}

/* "1 h 05 min", "3 min 20 s", "12 s" */
static void
format_duration(char *out, size_t size, double seconds)
{
    long long whole = (long long)seconds;
    if (whole >= 360000)
        snprintf(out, size, "%lld days", whole / 86400);
    else if (whole >= 3600)
        snprintf(out, size, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(out, size, "%lld min %02lld s", whole / 60, whole % 60);
    else
        snprintf(out, size, "%lld s", whole);
}

static void
show_seed_progress_bar(const mc_seed_progress *progress)
{
    enum { WIDTH = 30 };
    static const char full[WIDTH + 1] = "##############################",
                                   empty[WIDTH + 1] = "..............................";
    int64_t met = progress->done + progress->skipped + progress->failed;
    double elapsed = seconds_since(progress->began), share = (double)met / (double)progress->expected;
    if (share > 1)
        share = 1;
    int filled = (int)(share * WIDTH);
    char left[32] = "?";
    if (met > 0)
        format_duration(left, sizeof(left), elapsed * (1 - share) / share);
    char awake[48] = "";
    if (progress->awake < progress->workers)
        snprintf(awake, sizeof(awake), "  %d of %d workers", progress->awake, progress->workers);
    struct winsize window = { .ws_col = 0 };
    char line[320];
    snprintf(line, sizeof(line),
             "[%.*s%.*s] %5.1f %%  %lld tiles, %lld skipped, %lld failed  %.0f tiles/s  %s left%s  z%d x%d y%d", filled,
             full, WIDTH - filled, empty, 100 * share, (long long)(progress->done * progress->metatile_tiles),
             (long long)(progress->skipped * progress->metatile_tiles), (long long)progress->failed,
             (double)progress->done * progress->metatile_tiles / elapsed, left, awake, progress->last.z,
             progress->last.x, progress->last.y);
    /* A line that is longer than the terminal is wide could not be drawn over. */
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
    printf("\r\033[K%.*s", known ? window.ws_col - 1 : (int)sizeof(line), line);
}

static void
show_line(const mc_seed_progress *progress)
{
    if (progress->carriage_return)
        printf("%*s\r", 80, "");
    printf("seeded %lld tiles (%lld skipped), now at z%d x%d y%d%c",
           (long long)(progress->done * progress->metatile_tiles),
           (long long)(progress->skipped * progress->metatile_tiles), progress->last.z, progress->last.x,
           progress->last.y, progress->carriage_return ? '\r' : '\n');
}

/* One object a line; counts are of metatiles but for "tiles". status below 0: it goes on. */
static void
show_seed_json(const mc_seed_progress *progress, int status)
{
    double elapsed = seconds_since(progress->began);
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_integer(line.json, "done", progress->done);
    mc_json_integer(line.json, "skipped", progress->skipped);
    mc_json_integer(line.json, "failed", progress->failed);
    mc_json_integer(line.json, "tiles", progress->tiles);
    mc_json_integer(line.json, "expected", progress->expected);
    mc_json_decimals(line.json, "seconds", elapsed, 3);
    mc_json_decimals(line.json, "tiles_per_second", (double)progress->tiles / elapsed, 1);
    mc_json_integer(line.json, "z", progress->last.z);
    mc_json_integer(line.json, "x", progress->last.x);
    mc_json_integer(line.json, "y", progress->last.y);
    mc_json_open_object(line.json, "time");
    for (int i = 0; i < MC_SEED_PART_COUNT; i++)
        mc_json_decimals(line.json, parts[i], progress->seconds[i], 3);
    mc_json_close(line.json);
    mc_json_integer(line.json, "workers", progress->awake);
    if (status >= 0)
        mc_json_integer(line.json, "exit", status);
    mc_cli_json_line_end(&line);
}

void
mc_seed_progress_show(mc_seed_progress *progress)
{
    apr_time_t now = mc_clock_now();
    if (progress->quiet || now - progress->shown < INTERVAL ||
        progress->done + progress->skipped + progress->failed == 0)
        return;
    progress->shown = now;
    if (progress->json)
        show_seed_json(progress, -1);
    else if (progress->bar && progress->expected > 0)
        show_seed_progress_bar(progress);
    else
        show_line(progress);
    fflush(stdout);
}

/* The share of failures among the last ones; a run that fails from its first tile on ends at once. */
static void
check_seed_failure_share(mc_seed_progress *progress, bool failed)
{
    bool *slot = &progress->backlog[progress->backlog_next];
    if (progress->backlog_count == MC_SEED_BACKLOG)
        progress->backlog_failures -= *slot;
    else
        progress->backlog_count++;
    *slot = failed;
    progress->backlog_failures += failed;
    progress->backlog_next = (progress->backlog_next + 1) % MC_SEED_BACKLOG;
    double share = 100.0 * progress->backlog_failures / progress->backlog_count;
    if (failed && share > progress->percent) {
        progress->aborted = true;
        fprintf(stderr, "aborting seed as %.1f%% of the last %d requests failed\n", share, MC_SEED_BACKLOG);
    }
}

void
mc_seed_progress_take(mc_seed_progress *progress, const mc_seed_result *result)
{
    progress->last = *result;
    for (int i = 0; i < MC_SEED_PART_COUNT; i++)
        progress->seconds[i] += (double)result->seconds[i];
    switch (result->outcome) {
    case MC_SEED_SKIPPED:
        progress->skipped++;
        break;
    case MC_SEED_DONE: {
        mc_metatile metatile =
            mc_tileset_metatile(progress->task->tileset, progress->task->link->grid, result->z, result->x, result->y);
        progress->done++;
        progress->tiles += (int64_t)metatile.columns * metatile.rows;
        check_seed_failure_share(progress, false);
        break;
    }
    case MC_SEED_FAILED:
        progress->failed++;
        if (progress->bar && !progress->quiet)
            fputs("\r\033[K", stdout), fflush(stdout);
        fprintf(stderr, "failed to seed tile z%d,x%d,y%d: %s\n", result->z, result->x, result->y, result->message);
        if (progress->failures != NULL) {
            fprintf(progress->failures, "%d,%d,%d\n", result->x, result->y, result->z);
            if (fflush(progress->failures) != 0)
                progress->unlisted = errno;
        }
        check_seed_failure_share(progress, true);
        break;
    }
    mc_seed_progress_show(progress);
}

bool
mc_seed_progress_listed(const mc_seed_progress *progress)
{
    errno = progress->unlisted;
    return progress->unlisted == 0;
}

/* Where the time of the workers went. */
static void
show_parts(const mc_seed_progress *progress)
{
    double sum = 0;
    for (int i = 0; i < MC_SEED_PART_COUNT; i++)
        sum += progress->seconds[i];
    if (sum <= 0)
        return;
    printf("\n%.1f s of %d %s:", sum, progress->workers, progress->workers == 1 ? "worker" : "workers");
    for (int i = 0; i < MC_SEED_PART_COUNT; i++)
        printf("%s %s %.1f %%", i == 0 ? "" : ",", parts[i], 100 * progress->seconds[i] / sum);
    puts("");
}

void
mc_seed_progress_end(mc_seed_progress *progress, int status)
{
    if (progress->json) {
        show_seed_json(progress, status);
        return;
    }
    if (progress->done == 0) {
        if (!progress->aborted)
            puts("0 tiles needed to be seeded, exiting");
        return;
    }
    double elapsed = seconds_since(progress->began);
    int64_t total = progress->done * progress->metatile_tiles;
    if (progress->bar || progress->verbose)
        show_parts(progress);
    printf("\nseeded %lld metatiles (%lld total tiles, %lld non-empty tiles) in %.1f seconds at %.1f tiles/sec (%.1f "
           "non-empty tiles/sec)\n",
           (long long)progress->done, (long long)total, (long long)progress->tiles, elapsed, (double)total / elapsed,
           (double)progress->tiles / elapsed); /* the last line, which scripts read */
}
