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
#include "cli/common/words.h"

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

/* What the run does to tiles. Under MapCache's name they are seeded whatever is done: scripts read those lines. */
static const char *
name_seed_deed(const mc_seed_progress *progress)
{
    static const char *const deeds[] = {
        [MC_SEED_FILL] = "seeded",     [MC_SEED_DELETE] = "deleted", [MC_SEED_MARK] = "marked",
        [MC_SEED_TRANSFER] = "copied", [MC_SEED_COPY] = "copied",    [MC_SEED_COMPARE] = "compared"
    };
    return deeds[progress->drop_in ? MC_SEED_FILL : progress->task->mode];
}

static const char *
name_seed_attempt(const mc_seed_progress *progress)
{
    static const char *const attempts[] = {
        [MC_SEED_FILL] = "seed",     [MC_SEED_DELETE] = "delete", [MC_SEED_MARK] = "mark",
        [MC_SEED_TRANSFER] = "copy", [MC_SEED_COPY] = "copy",     [MC_SEED_COMPARE] = "compare"
    };
    return attempts[progress->drop_in ? MC_SEED_FILL : progress->task->mode];
}

/* MapCache counts whole metatiles, also where they reach beyond the grid. */
static int64_t
count_done_tiles(const mc_seed_progress *progress)
{
    return progress->drop_in ? progress->done * progress->metatile_tiles : progress->tiles;
}

static int64_t
count_skipped_tiles(const mc_seed_progress *progress)
{
    return progress->drop_in ? progress->skipped * progress->metatile_tiles : progress->skipped_tiles;
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
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    const char *left = met > 0 ? mc_cli_duration_words(elapsed * (1 - share) / share, pool) : "?";
    char awake[48] = "";
    if (progress->awake < progress->workers)
        snprintf(awake, sizeof(awake), "  %d of %d workers", progress->awake, progress->workers);
    struct winsize window = { .ws_col = 0 };
    char line[320];
    snprintf(line, sizeof(line),
             "[%.*s%.*s] %5.1f %%  %s %lld tiles, %lld skipped, %lld metatiles failed  %.0f tiles/s  %s left%s  "
             "z%d x%d y%d",
             filled, full, WIDTH - filled, empty, 100 * share, name_seed_deed(progress),
             (long long)count_done_tiles(progress), (long long)count_skipped_tiles(progress),
             (long long)progress->failed, (double)count_done_tiles(progress) / elapsed, left, awake, progress->last.z,
             progress->last.x, progress->last.y);
    apr_pool_destroy(pool);
    /* A line that is longer than the terminal is wide could not be drawn over. */
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
    printf("\r\033[K%.*s", known ? window.ws_col - 1 : (int)sizeof(line), line);
}

static void
show_line(const mc_seed_progress *progress)
{
    if (progress->carriage_return)
        printf("%*s\r", 80, "");
    printf("%s %lld tiles (%lld skipped), now at z%d x%d y%d%c", name_seed_deed(progress),
           (long long)count_done_tiles(progress), (long long)count_skipped_tiles(progress), progress->last.z,
           progress->last.x, progress->last.y, progress->carriage_return ? '\r' : '\n');
}

static const char *const mode_names[] = {
    [MC_SEED_FILL] = "seed",         [MC_SEED_DELETE] = "delete", [MC_SEED_MARK] = "mark",
    [MC_SEED_TRANSFER] = "transfer", [MC_SEED_COPY] = "copy",     [MC_SEED_COMPARE] = "compare"
};

/* One object a line; counts are of metatiles but for "tiles". status below 0: it goes on. */
static void
show_seed_json(const mc_seed_progress *progress, int status)
{
    double elapsed = seconds_since(progress->began);
    mc_cli_json_line line = mc_cli_json_line_begin();
    mc_json_string(line.json, "mode", mode_names[progress->task->mode]);
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
        fprintf(stderr, "aborting %s as %.1f%% of the last %d requests failed\n", name_seed_attempt(progress), share,
                MC_SEED_BACKLOG);
    }
}

/* Those of its tiles that are inside the grid, unless somebody has counted what was done with each. */
static int64_t
count_metatile_tiles(const mc_seed_progress *progress, const mc_seed_result *result)
{
    if (result->tiles >= 0)
        return result->outcome == MC_SEED_SKIPPED ? 0 : result->tiles;
    mc_metatile metatile =
        mc_tileset_metatile(progress->task->tileset, progress->task->link->grid, result->z, result->x, result->y);
    return (int64_t)metatile.columns * metatile.rows;
}

void
mc_seed_progress_take(mc_seed_progress *progress, const mc_seed_result *result)
{
    progress->last = *result;
    for (int i = 0; i < MC_SEED_PART_COUNT; i++)
        progress->seconds[i] += (double)result->seconds[i];
    progress->skipped_tiles += result->kept;
    switch (result->outcome) {
    case MC_SEED_SKIPPED:
        progress->skipped++;
        progress->skipped_tiles += count_metatile_tiles(progress, result);
        break;
    case MC_SEED_DONE:
        progress->done++;
        progress->tiles += count_metatile_tiles(progress, result);
        check_seed_failure_share(progress, false);
        break;
    case MC_SEED_FAILED:
        progress->failed++;
        if (progress->bar && !progress->quiet)
            fputs("\r\033[K", stdout), fflush(stdout);
        fprintf(stderr, "failed to %s tile z%d,x%d,y%d: %s\n", name_seed_attempt(progress), result->z, result->x,
                result->y, result->message);
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
    printf("%s%.1f s of %d %s:", progress->drop_in ? "\n" : "", sum, progress->workers,
           progress->workers == 1 ? "worker" : "workers");
    for (int i = 0; i < MC_SEED_PART_COUNT; i++)
        printf("%s %s %.1f %%", i == 0 ? "" : ",", parts[i], 100 * progress->seconds[i] / sum);
    puts("");
}

/* The last line of MapCache's seeder, which scripts read. */
static void
print_drop_in_sum(const mc_seed_progress *progress)
{
    double elapsed = seconds_since(progress->began);
    int64_t total = count_done_tiles(progress);
    printf("\nseeded %lld metatiles (%lld total tiles, %lld non-empty tiles) in %.1f seconds at %.1f tiles/sec (%.1f "
           "non-empty tiles/sec)\n",
           (long long)progress->done, (long long)total, (long long)progress->tiles, elapsed, (double)total / elapsed,
           (double)progress->tiles / elapsed);
}

static void
print_seed_sum(const mc_seed_progress *progress)
{
    double elapsed = seconds_since(progress->began);
    printf("%s %lld tiles (%lld metatiles) in %.1f s: %.1f tiles/s; %lld tiles skipped, %lld metatiles failed\n",
           name_seed_deed(progress), (long long)progress->tiles, (long long)progress->done, elapsed,
           (double)progress->tiles / elapsed, (long long)progress->skipped_tiles, (long long)progress->failed);
}

void
mc_seed_progress_end(mc_seed_progress *progress, int status)
{
    if (progress->json) {
        show_seed_json(progress, status);
        return;
    }
    if (progress->drop_in ? progress->done == 0 : progress->done + progress->failed == 0) {
        if (!progress->aborted)
            printf("0 tiles needed to be %s%s\n", name_seed_deed(progress), progress->drop_in ? ", exiting" : "");
        return;
    }
    if (progress->bar && !progress->quiet && progress->expected > 0)
        show_seed_progress_bar(progress), puts("");
    if (progress->bar || progress->verbose)
        show_parts(progress);
    (progress->drop_in ? print_drop_in_sum : print_seed_sum)(progress);
}
