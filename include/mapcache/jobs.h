/*
 * A queue of seeding jobs in PostgreSQL, which any number of workers on any number of hosts share (docs/jobs.md). A job
 * is one walk over an area. The job is cut into units: rectangles of metatiles of one level. The job's row has the
 * number of the next unit; only units that are leased, given back or failed have rows of their own. A lease ends by the
 * clock of the database: clocks of workers do not matter.
 *
 * Arrays and texts that a function hands out live in its `pool`, or in ctx->pool where it has none.
 */
#ifndef MAPCACHE_JOBS_H
#define MAPCACHE_JOBS_H

#include "mapcache/seed.h"

struct mc_config;

/* <jobs>: where the queue is. */
typedef struct mc_jobs mc_jobs;

extern const mc_key mc_jobs_keys[];
mc_jobs *mc_jobs_from_config(const mc_node *node, mc_build *build);

/* A queue by its connection string, in `pool`; no connection is made yet. `like`: a queue whose schema and lease the
 * new one has, too; NULL: the first schema of the connection's search path, and leases of 60 seconds. */
mc_jobs *mc_jobs_create(const char *connection, const mc_jobs *like, apr_pool_t *pool);

enum {
    MC_JOBS_PRIORITY_MAX = 1000000,
    MC_JOBS_SIDE_MAX = 1024,    /* metatiles along a unit's side */
    MC_JOBS_ATTEMPTS_MAX = 100, /* how often a unit is tried */
    MC_JOBS_LISTED_MAX = 1000,
    MC_JOBS_AREA_MAX = 64 << 20, /* bytes of an area's text */
};

typedef enum mc_job_mode { MC_JOB_SEED, MC_JOB_RESEED, MC_JOB_DELETE, MC_JOB_TRANSFER } mc_job_mode;
typedef enum mc_job_state { MC_JOB_OPEN, MC_JOB_PAUSED, MC_JOB_CANCELLED, MC_JOB_DONE } mc_job_state;

/* level or hilbert: the orders that units may have. Whole branches of a pyramid are no rectangles of one level. */
const char *mc_job_order_name(mc_seed_order order);
bool mc_job_order_parse(mc_seed_order *order, const char *text);

const char *mc_job_mode_name(mc_job_mode mode);
bool mc_job_mode_parse(mc_job_mode *mode, const char *text);
const char *mc_job_state_name(mc_job_state state);
bool mc_job_state_parse(mc_job_state *state, const char *text);

/* A job as somebody asks for it, before any check against a configuration. Texts belong to the caller. */
typedef struct mc_job_spec {
    const char *tileset;
    const char *grid;              /* NULL: the tileset's first */
    const char *target;            /* of a transfer */
    const apr_table_t *dimensions; /* name -> value; NULL: the defaults */
    mc_job_mode mode;
    bool has_order; /* false: MC_SEED_LEVELS */
    mc_seed_order order;
    apr_int64_t older; /* seconds since 1970; 0: any age */
    bool has_zoom, has_extent;
    int minzoom, maxzoom;
    mc_extent extent;     /* in units of the grid's CRS, x (longitude, easting) first in every CRS */
    const char *area;     /* GeoJSON or WKT that limits the job; NULL: none */
    const char *area_srs; /* its CRS, x first; NULL: what it names, else degrees (GeoJSON) or the grid's (WKT) */
    double rate;          /* tiles per second of all workers together; 0: no limit */
    int priority;         /* the highest first */
    int attempts;         /* how often a unit is tried; 0: three times */
    int side;             /* metatiles along a unit's side; 0: by the job's size */
    const char *owner;    /* who asks, for people; NULL: nobody */
    const char *request;  /* the same text makes the same job only once; NULL: one of its own */
} mc_job_spec;

/* Counts of metatiles by their outcome. */
typedef struct mc_job_counts {
    int64_t done, skipped; /* metatiles */
    int64_t tiles;         /* tiles inside the grid, of the metatiles that are done */
} mc_job_counts;

/* A job as the queue has it. Times are microseconds since 1970 by the database's clock, 0 where there is none. */
typedef struct mc_job {
    int64_t id;
    mc_job_state state;
    mc_job_mode mode;
    mc_seed_order order; /* of the units of a level; levels come one after the other */
    int priority, attempts;
    const char *tileset, *grid, *target, *dimensions; /* target "" but of a transfer; dimensions as a query string */
    apr_time_t older;
    int minzoom, maxzoom;
    bool has_extent;
    mc_extent extent;
    bool has_area;
    const char *area, *area_srs; /* texts; "" without, the first also where it was not asked for */
    const mc_tile_range *limits; /* of minzoom and so on: [0] is the one of minzoom */
    int columns, rows;           /* tiles in a metatile */
    int side;
    double rate;
    const char *model; /* of grid, levels and order: equal where units mean the same tiles */
    int64_t units, next_unit, finished, failed_units;
    int64_t metatiles, failed; /* metatiles in all (of a large area a guess until the job is done: mc_seed_estimate),
                                * and of those that have failed */
    mc_job_counts counts;
    int workers; /* that hold a lease now */
    apr_time_t created, started, ended, now;
    const char *owner;
} mc_job;

/* A unit that is not finished: leased by a worker, given back, or failed. */
typedef struct mc_job_unit {
    int64_t job, unit, lease;
    const char *state;   /* leased, returned or failed */
    const char *worker;  /* the last one */
    const char *message; /* of its last failure, or "" */
    int attempt;         /* how often the unit has failed */
    int position;        /* metatiles that have been visited, from the first one of the unit on */
    const int *again;    /* numbers of visited metatiles that have to be visited once more, in ascending order */
    int again_count;
    mc_job_counts counts;
    apr_time_t until; /* microseconds since 1970 by the database's clock: end of the lease, or begin of the next one */
} mc_job_unit;

typedef struct mc_job_worker {
    const char *name;
    int threads;
    int64_t job; /* 0: it waits */
    double rate; /* tiles per second, lately */
    int64_t tiles;
    apr_time_t started, seen;
} mc_job_worker;

/* --- pure arithmetic -------------------------------------------------------------------------------------------- */

/* Where a unit lies: metatiles column.. (columns of them) and row.. of level z, numbered from the grid's origin. */
typedef struct mc_job_block {
    int z, column, row, columns, rows;
} mc_job_block;

/* How many units, and metatiles, a job with limits, zooms, metatile size and side has; INT64_MAX at most. */
int64_t mc_job_units(const mc_job *job);
int64_t mc_job_metatiles(const mc_job *job);

/* A unit's place. Levels ascend; inside of one, blocks go row by row or along Hilbert's curve (job->order), metatiles
 * inside of a block row by row. */
mc_job_block mc_job_block_of(const mc_job *job, int64_t unit);

/* --- a configuration -------------------------------------------------------------------------------------------- */

/* The job that a specification means with a configuration. MC_ERR_INVALID_PARAMETER where there is no such thing. */
mc_error *mc_job_make(mc_job *job, const mc_job_spec *spec, const struct mc_config *config,
                      apr_pool_t *pool) MC_CHECKED;

/* What a worker with this configuration has to do for a job, and which metatiles of its units are wanted. The tileset
 * is a copy. MC_ERR_CONFIG where the configuration has not what the job names, or where the job's units mean other
 * tiles here. */
mc_error *mc_job_task(mc_seed_task *task, mc_seed_area *area, const mc_job *job, const struct mc_config *config,
                      apr_pool_t *pool) MC_CHECKED;

/* --- the queue ---------------------------------------------------------------------------------------------------
 * Errors: MC_ERR_UNAVAILABLE and MC_ERR_TIMEOUT where the database cannot be had, MC_ERR_UPSTREAM where it refuses,
 * MC_ERR_CONFIG where its tables are of another version, MC_ERR_NOT_FOUND for a job that is not there. Tables are made
 * by mc_jobs_enqueue and mc_jobs_lease; where there are none, nothing is listed. */

/* Puts a job into the queue. *id: the number of the new job, or of the job that the same `request` has made before;
 * request NULL: always a new job. */
mc_error *mc_jobs_enqueue(int64_t *id, mc_jobs *jobs, const mc_job *job, const char *request, mc_ctx *ctx) MC_CHECKED;

typedef struct mc_jobs_filter {
    bool has_state;
    mc_job_state state;
    int64_t before; /* only jobs below this number; 0: all */
    int limit;      /* 1 to MC_JOBS_LISTED_MAX */
} mc_jobs_filter;

/* *list: jobs (mc_job), the newest first. */
mc_error *mc_jobs_list(apr_array_header_t **list, mc_jobs *jobs, const mc_jobs_filter *filter, mc_ctx *ctx,
                       apr_pool_t *pool) MC_CHECKED;
/* `with_area`: also the text of its area, which may have MC_JOBS_AREA_MAX bytes; else that is "", as in lists. */
mc_error *mc_jobs_find(mc_job *job, mc_jobs *jobs, int64_t id, bool with_area, mc_ctx *ctx,
                       apr_pool_t *pool) MC_CHECKED;

/* *list: at most `limit` units (mc_job_unit) of a job that are leased, given back or failed; failed ones first. */
mc_error *mc_jobs_units(apr_array_header_t **list, mc_jobs *jobs, int64_t id, int limit, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* *list: the workers (mc_job_worker) that have told something in the last `seconds`. */
mc_error *mc_jobs_workers(apr_array_header_t **list, mc_jobs *jobs, int seconds, mc_ctx *ctx,
                          apr_pool_t *pool) MC_CHECKED;

typedef enum mc_job_action { MC_JOB_CANCEL, MC_JOB_PAUSE, MC_JOB_RESUME, MC_JOB_RETRY } mc_job_action;

bool mc_job_action_parse(mc_job_action *action, const char *text);

/* Applies an action to a job. *state: the state of the job afterwards. MC_ERR_INVALID_PARAMETER where the present state
 * of the job does not allow the action. */
mc_error *mc_jobs_change(mc_job_state *state, mc_jobs *jobs, int64_t id, mc_job_action action, mc_ctx *ctx) MC_CHECKED;

/* Removes jobs that ended at least so many seconds ago, and rows of workers that are silent for as long. *count: the
 * removed jobs. */
mc_error *mc_jobs_prune(int64_t *count, mc_jobs *jobs, int64_t seconds, mc_ctx *ctx) MC_CHECKED;

/* --- a worker's side -------------------------------------------------------------------------------------------- */

/*
 * Leases a unit of the job with the highest priority that has one, but of those in `without` (int64_t; jobs that this
 * worker cannot do): one that was given back or whose lease has ended, else a new one. *found false: none is to be had
 * now; *open then says how many jobs are still to be finished.
 */
mc_error *mc_jobs_lease(bool *found, mc_job_unit *unit, int64_t *open, mc_jobs *jobs, const char *worker,
                        const apr_array_header_t *without, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Of a lease that is told about: whether it was still held, and what the job is like now. */
typedef struct mc_job_told {
    bool held;
    mc_job_state state;
    double rate;
    int workers;
} mc_job_told;

/* Stores how far a unit is: counts, position, again. The lease begins anew, or (give_back) ends. `size`: metatiles in
 * the unit. */
mc_error *mc_jobs_tell(mc_job_told *told, mc_jobs *jobs, const mc_job_unit *unit, int size, bool give_back,
                       mc_ctx *ctx) MC_CHECKED;

/* Ends the work on a unit. Without metatiles in `again` the unit is finished and its row goes; otherwise the unit is
 * tried again later, or has failed. */
mc_error *mc_jobs_finish(mc_job_told *told, mc_jobs *jobs, const mc_job_unit *unit, int size, mc_ctx *ctx) MC_CHECKED;

/* Shows that a worker is there. name, threads, job, rate, tiles are taken. */
mc_error *mc_jobs_present(mc_jobs *jobs, const mc_job_worker *worker, mc_ctx *ctx) MC_CHECKED;
mc_error *mc_jobs_leave(mc_jobs *jobs, const char *worker, mc_ctx *ctx) MC_CHECKED;

/* Seconds of a lease. */
int mc_jobs_lease_time(const mc_jobs *jobs);

/* --- a worker --------------------------------------------------------------------------------------------------- */

typedef struct mc_jobs_session_result {
    int64_t done, skipped, failed, tiles; /* by this worker */
    int64_t units, lost;                  /* finished; leases that ended before they were told */
    /* The process has to end without tidying up: a metatile is still being drawn, or the database does not answer, and
     * somebody may wait for it. */
    bool late;
} mc_jobs_session_result;

typedef struct mc_jobs_session {
    mc_jobs *jobs;
    const struct mc_config *config;
    mc_process *process;
    const mc_log *log;
    const char *name; /* unlike that of any other worker */
    int threads;
    int retries; /* of a metatile, inside of one try of its unit */
    bool drain;  /* end when nothing is left to be done */
    const volatile int *stop;
    void (*show)(void *baton, const mc_jobs_session_result *so_far,
                 int64_t job); /* about twice a second; may be NULL */
    void *baton;
} mc_jobs_session;

/* Works until *stop or until nothing is left. A database that is away is waited for. */
mc_error *mc_jobs_work(mc_jobs_session_result *result, const mc_jobs_session *session, apr_pool_t *pool) MC_CHECKED;

/* --- as text ---------------------------------------------------------------------------------------------------- */

/* JSON objects. `open`: with what not everybody is to see (owners, workers, messages). */
const char *mc_job_json(const mc_job *job, bool open, apr_pool_t *pool);
const char *mc_job_unit_json(const mc_job_unit *unit, const mc_job *job, bool open, apr_pool_t *pool);
const char *mc_job_worker_json(const mc_job_worker *worker, bool open, apr_pool_t *pool);

#endif
