/* What the seeder says while it works, and what it counts (docs/reference/services.md 9.3). */
#ifndef MC_CLI_SEED_PROGRESS_H
#define MC_CLI_SEED_PROGRESS_H

#include <stdio.h>

#include "mapcache/seed.h"

enum { MC_SEED_BACKLOG = 1000 };

typedef struct mc_seed_progress {
    const mc_seed_task *task;
    int metatile_tiles; /* tiles in a whole metatile */
    int64_t expected;   /* metatiles in all; 0: not known */
    double percent;     /* the share of failures that ends the run */
    bool drop_in;       /* the words and the counts of MapCache */
    bool quiet, bar, carriage_return, json, verbose;
    int workers, awake; /* all of them, and those that do not let the origin alone */
    FILE *failures;     /* or NULL */
    int unlisted;       /* errno of the last failure that could not be written there; 0: all are */

    apr_time_t began, shown; /* mc_clock_now */
    double seconds[MC_SEED_PART_COUNT];
    int64_t done, skipped, failed; /* metatiles */
    int64_t tiles, skipped_tiles;  /* inside the grid, of those done or skipped */
    mc_seed_result last;
    bool backlog[MC_SEED_BACKLOG]; /* whether the last ones failed, a ring */
    int backlog_next, backlog_count, backlog_failures;
    bool aborted;
} mc_seed_progress;

/* Counts a result, tells of a failure, and shows how far it is at most once a second. */
void mc_seed_progress_take(mc_seed_progress *progress, const mc_seed_result *result);

/* Shows how far it is, if that has not been done for a second. */
void mc_seed_progress_show(mc_seed_progress *progress);

/* Whether all failures stand in the list of failures, where there is one; errno says why not. */
bool mc_seed_progress_listed(const mc_seed_progress *progress);

/* The last line. status: what the program ends with. */
void mc_seed_progress_end(mc_seed_progress *progress, int status);

#endif
