/*
 * Where a run of the seeder is: all metatiles before a place of the walk are in the store, and which of them failed.
 * Kept in a file that is replaced as a whole, so that a killed run goes on where it was. It never says more than the
 * store holds, as results are told once they are committed.
 */
#ifndef MC_CLI_SEED_CHECKPOINT_H
#define MC_CLI_SEED_CHECKPOINT_H

#include <apr_hash.h>
#include <stdio.h>

#include "mapcache/seed.h"

/* Results arrive in another order than the walk's, but never further away from the first that is missing. */
enum { MC_SEED_WINDOW = 4096, MC_SEED_FAILURES_KEPT = 10000 };

typedef struct mc_seed_place {
    int z, x, y;
} mc_seed_place;

typedef struct mc_seed_checkpoint {
    const char *path; /* NULL: none is kept */
    apr_pool_t *pool;
    uint64_t plan;              /* of what is walked: another plan has other places */
    int64_t begun;              /* metatiles that an earlier run has done */
    int64_t done;               /* those that are done now: the first of the walk */
    bool known[MC_SEED_WINDOW]; /* by number: done, although one before it is not */
    apr_hash_t *failures;       /* those that have failed and not succeeded since: keys are mc_seed_place */
    apr_time_t written;
    bool unwritten; /* the last time that was tried: it has been told */
    FILE *held;     /* the file that stands there, locked: no other run works by it */
} mc_seed_checkpoint;

/*
 * Reads the file if `resume` is wanted and there is one, and writes it. `area`: where the run's metatiles lie. NULL, or
 * what is wrong: there is a file but it is not to be resumed, it is another plan's or another run's, it is damaged, or
 * cannot be written.
 */
const char *mc_seed_checkpoint_open(mc_seed_checkpoint *checkpoint, const char *path, uint64_t plan,
                                    const mc_seed_area *area, bool resume, apr_pool_t *pool);

/* Takes a result; writes the file at most twice a second. */
void mc_seed_checkpoint_take(mc_seed_checkpoint *checkpoint, const mc_seed_result *result);

/* The failures of earlier runs, which are to be tried again: an array of mc_seed_place in `pool`. */
apr_array_header_t *mc_seed_checkpoint_failures(const mc_seed_checkpoint *checkpoint, apr_pool_t *pool);

/* Writes the file, or removes it where everything is done: then there is nothing to resume. */
void mc_seed_checkpoint_close(mc_seed_checkpoint *checkpoint, bool finished);

#endif
