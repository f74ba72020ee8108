/* What the caller of the workers (worker_pool.c) and the workers (worker.c) share. */
#ifndef MC_SEED_WORKER_POOL_PRIVATE_H
#define MC_SEED_WORKER_POOL_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "mapcache/seed.h"
#include "mapcache/trace.h"
#include "seed/throttle.h"

/* A commit for so many tiles, or after so many microseconds: what a killed worker loses at most. */
enum { MC_SEED_TILES_AT_ONCE = 1000, MC_SEED_COMMIT_EVERY = 500000 };

typedef struct mc_seed_call {
    int64_t number;
    int z, x, y;
} mc_seed_call;

/* Of all workers together, threads and processes: in memory that they share. */
typedef struct mc_seed_shared {
    atomic_int awake;             /* workers below this number may work; those above sleep on this word */
    _Atomic apr_time_t cancelled; /* when (mc_clock_now) nothing more was wanted; 0: it goes on */
    pthread_mutex_t lock;         /* of what follows; robust: a process may be killed while it has it */
    mc_throttle throttle;
} mc_seed_shared;

struct mc_seed_worker_pool {
    mc_seed_plan plan;
    mc_seed_shared *shared;
    int orders[2], results[2]; /* pipes: read end, write end */
    int outstanding, most;     /* orders that have no result yet, and how many may be */
    int64_t submitted;
    int started;
    pthread_t *threads;
    pid_t *children;
    apr_time_t looked;                  /* after them, mc_clock_now */
    struct mc_seed_worker *worker_list; /* of threads */
    mc_process *process;                /* of threads */
    apr_time_t due;                     /* when (mc_clock_now) the rate allows the next order */
};

/* Which of the workers a thread is. */
typedef struct mc_seed_worker {
    const mc_seed_worker_pool *worker_pool;
    int number; /* from 0 */
} mc_seed_worker;

/* The number of a result that is none: the order was given up after mc_seed_cancel. */
#define MC_SEED_GIVEN_UP INT64_C(-1)

/* A worker's life: until there are no more orders. */
void mc_seed_work(const mc_seed_worker_pool *worker_pool, int number, mc_process *process);

/* Whole records of a pipe. False at its end. */
bool mc_seed_read_record(int fd, void *record, size_t size);
bool mc_seed_write_record(int fd, const void *record, size_t size);

/* Workers below this number may work; MC_SEED_ALL_WORKERS: all of them, to the end. */
enum { MC_SEED_ALL_WORKERS = INT32_MAX };
void mc_seed_wake(mc_seed_shared *shared, int awake);

/* Adds what a trace has measured since it was asked last, by part. Returns the seconds of requests by HTTP alone. */
float mc_seed_parts_take(float seconds[MC_SEED_PART_COUNT], mc_trace *trace);

#endif
