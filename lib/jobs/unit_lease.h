/* A unit in a worker's hands: what has been handed out of it, and what has become of that. */
#ifndef MC_JOBS_UNIT_LEASE_H
#define MC_JOBS_UNIT_LEASE_H

#include "mapcache/jobs.h"

typedef struct jobs_unit_lease {
    struct jobs_unit_lease *next;
    apr_pool_t *pool;
    mc_job_unit unit; /* as it was leased */
    mc_job_block block;
    int size;              /* metatiles */
    const int *places;     /* of the metatiles to be visited, in their order */
    int todo, handed, met; /* metatiles to be visited; given to the worker pool; with an outcome */
    int64_t first;         /* the worker pool's number of the first one that was handed out */
    uint8_t *outcomes;     /* by place in the unit: see unit_lease.c */
    mc_job_counts counts;
    int failed;
    char message[480]; /* of the last failure */
    int64_t ends;      /* of the lease at the latest, microseconds of the monotonic clock */
} jobs_unit_lease;

/* A copy of the unit with room for its outcomes, in a pool of its own below `pool`; of what has not been visited only
 * what `area` wants. False where the row of the unit
 * cannot be one of its job. */
bool jobs_unit_lease_create(jobs_unit_lease **held, const mc_job_unit *unit, const mc_job *job,
                            const mc_seed_area *area, apr_pool_t *pool);

/* Where the metatile of a place in the unit lies: its lowest tile. */
void jobs_unit_lease_tile(int *x, int *y, const jobs_unit_lease *held, int place, const mc_job *job);

/* `tiles`: of the metatile, inside the grid. */
void jobs_unit_lease_take(jobs_unit_lease *held, int n, const mc_seed_result *result, int tiles);

/* How far it is, for the queue: in `pool`. */
mc_job_unit jobs_unit_lease_state(const jobs_unit_lease *held, apr_pool_t *pool);

#endif
