/*
 * One renderer for each metatile: flights inside the process, a locker across processes (docs/reference/design.md 3.4).
 */
#ifndef MAPCACHE_LOCK_H
#define MAPCACHE_LOCK_H

#include "mapcache/config.h"
#include "mapcache/ctx.h"

typedef struct mc_flights mc_flights;
typedef struct mc_flight mc_flight;

mc_flights *mc_flights_create(void);
void mc_flights_destroy(mc_flights *flights);

typedef enum mc_flight_role {
    MC_LEAD,   /* the caller renders, then calls mc_flight_land */
    MC_FOLLOW, /* another one has rendered while the caller waited: look into the cache again, then at its gift */
    MC_LOOK,   /* another one has found its own tile: look again; for what is not there, board again */
    MC_FAILED, /* the leader failed less than a second ago: its error is shared */
} mc_flight_role;

/*
 * Joins the flight of `name` and waits, at most until the deadline or `timeout` (MC_ERR_UNAVAILABLE then), until it has
 * landed. A thread holds at most one flight. *flight: with MC_LEAD the one to be landed; with MC_FOLLOW and MC_FAILED
 * one that has a gift, which the caller leaves (mc_flight_leave), or NULL; else NULL.
 */
mc_error *mc_flight_board(mc_flight_role *role, mc_flight **flight, mc_error **shared_error, mc_flights *flights,
                          const char *name, apr_interval_time_t timeout, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The same without waiting: MC_FOLLOW with *flight NULL when another one leads. */
mc_error *mc_flight_try(mc_flight_role *role, mc_flight **flight, mc_flights *flights, const char *name, mc_ctx *ctx,
                        apr_pool_t *pool) MC_CHECKED;

/* The failure of that name which is remembered, in `pool`; MC_OK: there is none. Nobody boards. */
mc_error *mc_flight_failure(mc_flights *flights, const char *name, apr_pool_t *pool) MC_CHECKED;

/* Wakes all waiting threads. They get `failure` (may be MC_OK), as do threads that board within a second. */
void mc_flight_land(mc_flight *flight, const mc_error *failure);

/*
 * What a leader has made goes to those who wait, as a store may have lost it by the time that they look. Called before
 * the landing; `drop` is called once, when nobody waits any more, or at once where nobody does. Who has boarded with
 * MC_FOLLOW or MC_FAILED finds the flight in *flight then, and its gift by mc_flight_gift (NULL: there is none), until
 * mc_flight_leave. Of a leader that has given up nobody gets anything.
 */
void mc_flight_give(mc_flight *flight, void *gift, void (*drop)(void *gift));
void *mc_flight_gift(const mc_flight *flight);
void mc_flight_leave(mc_flight *flight); /* may be NULL */

typedef struct mc_locker mc_locker;
typedef struct mc_lock mc_lock;

/* <locker> or legacy <lock_dir>. */
/* As mc_flight_land; a failure is shared for so many seconds: at least for one, and for no more than that where many
 * failures are remembered. */
void mc_flight_land_for(mc_flight *flight, const mc_error *failure, double seconds);

/* Lands without a failure and without a render: the leader has found what it wanted. What others want of the metatile
 * may be missing nevertheless, after a renderer that has died or a store that took a part: they get MC_LOOK. */
void mc_flight_land_found(mc_flight *flight);

/* As mc_flight_land; the failure is shared, also where its kind says that it is the leader's own trouble: a store that
 * takes nothing, a lock server that is away. Otherwise each one who waits would render, or wait for the server, once
 * more, one after the other. */
void mc_flight_land_shared(mc_flight *flight, const mc_error *failure);

/*
 * Around what boards flights that never wait for those which the thread leads, such as of a tileset that another one is
 * drawn from. What the first function returns is given to the second one.
 */
int mc_flight_descend(void);
void mc_flight_ascend(int descended);

mc_locker *mc_locker_from_config(const mc_node *node, mc_build *build);
/* directory NULL: /tmp. There nobody is warned that each user has a lock file for himself. */
mc_locker *mc_locker_disk(const char *directory, double timeout_seconds, apr_pool_t *pool);
/* Where a disk locker has its file; NULL: the locker is of another kind, or none. */
const char *mc_locker_directory(const mc_locker *locker);

/* Takes the lock of `name` across processes; waits at most <timeout>. The lock of a process that has died is free at
 * once. *waited: another process held the lock meanwhile. */
mc_error *mc_locker_acquire(mc_lock **lock, bool *waited, mc_locker *locker, const char *name, mc_ctx *ctx,
                            apr_pool_t *pool) MC_CHECKED;
/* The same without waiting: *lock is NULL when another one holds it, in this process or any other. */
mc_error *mc_locker_try(mc_lock **lock, mc_locker *locker, const char *name, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
void mc_lock_release(mc_lock *lock);

/* For `mapcache check --connect`: MC_OK where the servers that keep the locks, if there are any, give one now. */
mc_error *mc_locker_reach(mc_locker *locker, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* For `mapcache check`: complains about lock files of others that keep processes from agreeing. */
void mc_locker_inspect(const mc_locker *locker, const mc_node *at, mc_diagnostics *diagnostics, apr_pool_t *pool);
double mc_locker_timeout(const mc_locker *locker); /* seconds */

extern const mc_key mc_locker_keys[];

#endif
