/* A worker's session with the queue: what worker_session.c and session_tell.c share. */
#ifndef MC_JOBS_SESSION_H
#define MC_JOBS_SESSION_H

#include "base/clock.h"
#include "jobs/unit_lease.h"

#define SECOND ((int64_t)1000000)

/* Microseconds between two words to the queue; for a statement; for giving back at the end; between two looks for work;
 * for what is being drawn when the worker is to stop. */
#define BEAT (2 * SECOND)
#define PATIENCE (5 * SECOND)
#define FAREWELL (SECOND / 2)
#define IDLE SECOND
#define LAST_WORK (SECOND * 6 / 5)

/* Seconds between two metatiles at the lowest rate: a month. */
#define LONGEST_RATE_PAUSE 2.6e6

enum { TURN_MS = 100, LONGEST_PAUSE = 30 };

typedef struct jobs_session {
    const mc_jobs_session *plan;
    apr_pool_t *pool, *scratch;
    mc_ctx ctx; /* of statements */
    mc_jobs_session_result *result;

    mc_job job; /* of the worker pool */
    apr_pool_t *job_pool;
    mc_seed_task task;
    mc_seed_area area;
    mc_seed_worker_pool *worker_pool; /* NULL: none is started */
    int64_t submitted, met;           /* orders of this worker pool */
    double rate;                      /* of the job */
    int workers;                      /* who share it */
    int64_t due;                      /* when the rate allows the next metatile */

    jobs_unit_lease *held; /* in the order of their leases; all of the worker pool's job but perhaps the last one */
    apr_array_header_t *without; /* int64_t: jobs that this configuration cannot do */
    int64_t beat, look;          /* when to tell, when to look for work next */
    int64_t tiles_told, told_at; /* for the rate that is shown */
    int bad;                     /* units in a row of which everything failed */
    bool away, leave;            /* the database cannot be reached; a unit is lost or its job not open any more */
    int64_t stop_seen;           /* when a statement met the end of the worker; 0: none did */
    bool nothing_left;
} jobs_session;

bool jobs_session_is_stopping(void *baton); /* of a jobs_session */

/* mc_ctx.abandoned of statements: one that is under way when the worker is to stop has FAREWELL to end. What the queue
 * has done of a statement that is cut off nobody knows. */
bool jobs_session_abandons_statement(void *baton);

/* A statement's context: a fresh scratch pool, and a limit. */
mc_ctx *jobs_session_begin_statement(jobs_session *s, apr_interval_time_t limit);

/* Whether the database answered; an outage is told once. A statement that the end of the worker has cut off is no
 * outage: the worker still says good-bye. */
bool jobs_session_note_answer(jobs_session *s, const mc_error *error);

/* Tells of units that are through, and, every few seconds, that all others are still held. */
void jobs_session_send_heartbeat(jobs_session *s);

/* What is held goes back, as far as it is. */
void jobs_session_return_units(jobs_session *s);

#endif
