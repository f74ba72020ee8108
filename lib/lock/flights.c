/*
 * Flights: of all threads of a process that want the same thing made, one makes it, the others sleep on a condition
 * until it is there. A failure stays known for a second or for as long as the leader says, so that a broken origin is
 * not asked by each of them in turn.
 */
#include <apr_strings.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/wait.h"
#include "base/workers.h"
#include "mapcache/lock.h"
#include "mapcache/trace.h"

enum { BUCKETS = 256, FAILURE_SECONDS = 1, LASTING_FAILURES = 1024 };

struct mc_flight {
    mc_flights *flights;
    struct mc_flight *chain; /* all fields: flights->lock */
    uint64_t hash;
    char *name;
    unsigned references; /* the table's, the leader's, and one for each who waits */
    bool listed;
    bool landed;
    bool lasting;  /* a failure that is remembered for longer than usual */
    bool given_up; /* the leader ended for reasons of its own: who waits tries again */
    bool found;    /* the leader has found its tile, and rendered nothing */
    void *gift;    /* what the leader has made, for those who wait; NULL: nothing */
    void (*drop)(void *gift);
    unsigned takers; /* who waits, or has not left the flight yet */
    mc_error *failure;
    apr_pool_t *pool;  /* of `failure` */
    apr_time_t forget; /* when (mc_clock_now) it may */
    pthread_t leader;
    pthread_cond_t changed;
};

struct mc_flights {
    pthread_mutex_t lock; /* innermost: nothing else is locked or called while it is held */
    uint64_t seed;
    int lasting; /* failures that are remembered for longer than usual */
    mc_flight *buckets[BUCKETS];
};

#ifdef MC_DEBUG
static _Thread_local int leading;
#endif

mc_flights *
mc_flights_create(void)
{
    mc_flights *flights = calloc(1, sizeof(*flights));
    MC_ASSERT(flights != NULL);
    pthread_mutex_init(&flights->lock, NULL);
    flights->seed = mc_hash_seed();
    return flights;
}

/* With the lock held. */
static void
release_flight(mc_flight *flight)
{
    MC_ASSERT(flight->references > 0);
    if (--flight->references > 0)
        return;
    mc_task_pool_release(flight->pool);
    pthread_cond_destroy(&flight->changed);
    free(flight->name);
    free(flight);
}

/* With the lock held. */
static void
unlist_flight(mc_flight *flight)
{
    mc_flight **link = &flight->flights->buckets[flight->hash % BUCKETS];
    while (*link != flight)
        link = &(*link)->chain;
    *link = flight->chain;
    flight->listed = false;
    flight->flights->lasting -= flight->lasting;
    release_flight(flight);
}

void
mc_flights_destroy(mc_flights *flights)
{
    if (flights == NULL)
        return;
    for (int i = 0; i < BUCKETS; i++)
        while (flights->buckets[i] != NULL) {
            MC_ASSERT(flights->buckets[i]->landed);
            unlist_flight(flights->buckets[i]);
        }
    pthread_mutex_destroy(&flights->lock);
    free(flights);
}

/* The flight of that name, flying or failed a moment ago. Forgets older failures on its way. Lock held. */
static mc_flight *
find_flight(mc_flights *flights, uint64_t hash, const char *name)
{
    mc_flight *found = NULL;
    for (mc_flight *flight = flights->buckets[hash % BUCKETS], *next; flight != NULL; flight = next) {
        next = flight->chain;
        if (flight->landed && mc_clock_now() >= flight->forget)
            unlist_flight(flight);
        else if (flight->hash == hash && strcmp(flight->name, name) == 0)
            found = flight;
    }
    return found;
}

/* Lock held. */
static mc_flight *
take_off(mc_flights *flights, uint64_t hash, const char *name)
{
    mc_flight *flight = calloc(1, sizeof(*flight));
    MC_ASSERT(flight != NULL);
    flight->name = strdup(name);
    MC_ASSERT(flight->name != NULL);
    flight->flights = flights;
    flight->hash = hash;
    flight->references = 2;
    flight->listed = true;
    flight->leader = pthread_self();
    mc_clock_condition(&flight->changed);
    flight->chain = flights->buckets[hash % BUCKETS];
    flights->buckets[hash % BUCKETS] = flight;
#ifdef MC_DEBUG
    leading++;
#endif
    return flight;
}

/* Sleeps until the flight has landed; false when `until` comes first, or the client goes. Lock held, given up while
 * sleeping. */
static bool
wait_for_landing(mc_flight *flight, apr_time_t until, mc_ctx *ctx)
{
#ifdef MC_DEBUG
    MC_ASSERT(leading == 0); /* who leads one flight and waits for another may close a circle */
#endif
    mc_wait_end end = MC_WAIT_READY;
    flight->references++;
    flight->takers++;
    while (!flight->landed && end == MC_WAIT_READY)
        end = mc_wait_condition(&flight->changed, &flight->flights->lock, until, ctx);
    return flight->landed;
}

/* With the lock held; *late: nothing landed in time. Returns whether it has to be tried again. */
static bool
board_flight(mc_flight_role *role, mc_flight **flight, mc_error **shared_error, mc_flights *flights, uint64_t hash,
             const char *name, apr_time_t until, bool *late, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_flight *found = find_flight(flights, hash, name);
    if (found == NULL) {
        *role = MC_LEAD;
        *flight = take_off(flights, hash, name);
        return false;
    }
    bool waited = !found->landed;
    if (waited && !wait_for_landing(found, until, ctx)) {
        *late = true;
        found->takers--; /* it has not landed: there is no gift that would be dropped for that */
        release_flight(found);
        return false;
    }
    bool again = found->given_up;
    *role = found->failure != MC_OK ? MC_FAILED : found->found ? MC_LOOK : MC_FOLLOW;
    *shared_error = mc_error_repeats(mc_error_copy(found->failure, pool));
    *flight = waited && found->gift != NULL ? found : NULL;
    if (waited && found->gift == NULL)
        release_flight(found);
    return again;
}

void
mc_flight_give(mc_flight *flight, void *gift, void (*drop)(void *gift))
{
    if (flight == NULL) {
        drop(gift);
        return;
    }
    pthread_mutex_lock(&flight->flights->lock);
    flight->gift = gift;
    flight->drop = drop;
    pthread_mutex_unlock(&flight->flights->lock);
}

void *
mc_flight_gift(const mc_flight *flight)
{
    return flight == NULL ? NULL : flight->gift;
}

/* With the lock held: what is to be dropped once the lock is given up; NULL: nothing. */
static void *
take_unwanted_gift(mc_flight *flight)
{
    void *gift = flight->takers == 0 || flight->given_up ? flight->gift : NULL;
    if (gift != NULL)
        flight->gift = NULL;
    return gift;
}

void
mc_flight_leave(mc_flight *flight)
{
    if (flight == NULL)
        return;
    mc_flights *flights = flight->flights;
    void (*drop)(void *) = flight->drop;
    pthread_mutex_lock(&flights->lock);
    flight->takers--;
    void *gift = take_unwanted_gift(flight);
    release_flight(flight);
    pthread_mutex_unlock(&flights->lock);
    if (gift != NULL)
        drop(gift);
}

/* A thread that waits for what it makes itself would wait for ever. */
static bool
is_own(mc_flights *flights, uint64_t hash, const char *name)
{
    mc_flight *found = find_flight(flights, hash, name);
    return found != NULL && !found->landed && pthread_equal(found->leader, pthread_self());
}

mc_error *
mc_flight_board(mc_flight_role *role, mc_flight **flight, mc_error **shared_error, mc_flights *flights,
                const char *name, apr_interval_time_t timeout, mc_ctx *ctx, apr_pool_t *pool)
{
    *role = MC_LEAD;
    *flight = NULL;
    *shared_error = MC_OK;
    if (flights == NULL)
        return MC_OK;
    MC_SPAN(ctx, "mapcache_flight_board");
    uint64_t hash = mc_hash64(name, strlen(name), flights->seed);
    apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, timeout);
    bool late = false;
    pthread_mutex_lock(&flights->lock);
    bool own = is_own(flights, hash, name);
    while (!own && board_flight(role, flight, shared_error, flights, hash, name, until, &late, ctx, pool))
        continue;
    pthread_mutex_unlock(&flights->lock);
    if (own)
        return mc_error_create(pool, MC_ERR_LIMIT, "rendering a tile needs the same tile again");
    if (late)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "another request has been rendering the tile for too long");
    return MC_OK;
}

mc_error *
mc_flight_try(mc_flight_role *role, mc_flight **flight, mc_flights *flights, const char *name, mc_ctx *ctx,
              apr_pool_t *pool)
{
    (void)ctx;
    (void)pool;
    *role = MC_LEAD;
    *flight = NULL;
    if (flights == NULL)
        return MC_OK;
    uint64_t hash = mc_hash64(name, strlen(name), flights->seed);
    pthread_mutex_lock(&flights->lock);
    mc_flight *found = find_flight(flights, hash, name);
    if (found == NULL)
        *flight = take_off(flights, hash, name);
    else
        *role = found->landed ? MC_FAILED : MC_FOLLOW;
    pthread_mutex_unlock(&flights->lock);
    return MC_OK;
}

mc_error *
mc_flight_failure(mc_flights *flights, const char *name, apr_pool_t *pool)
{
    if (flights == NULL)
        return MC_OK;
    uint64_t hash = mc_hash64(name, strlen(name), flights->seed);
    pthread_mutex_lock(&flights->lock);
    const mc_flight *found = find_flight(flights, hash, name);
    mc_error *failure = found == NULL || !found->landed ? MC_OK : mc_error_repeats(mc_error_copy(found->failure, pool));
    pthread_mutex_unlock(&flights->lock);
    return failure;
}

/* The leader's client went away, its deadline passed, or it has asked for too much: that says nothing about the tile.
 */
static bool
is_own_trouble(const mc_error *failure)
{
    for (; failure != NULL; failure = failure->cause)
        if (failure->kind == MC_ERR_UNAVAILABLE || failure->kind == MC_ERR_BUSY || failure->kind == MC_ERR_NO_MEMORY ||
            failure->kind == MC_ERR_BAD_REQUEST)
            return true;
    return false;
}

int
mc_flight_descend(void)
{
#ifdef MC_DEBUG
    int descended = leading;
    leading = 0;
    return descended;
#else
    return 0;
#endif
}

void
mc_flight_ascend(int descended)
{
#ifdef MC_DEBUG
    MC_ASSERT(leading == 0);
    leading = descended;
#else
    (void)descended;
#endif
}

/* When a failure is forgotten; lock held. */
static apr_time_t
end_of_failure(mc_flight *flight, double seconds)
{
    flight->lasting = seconds > FAILURE_SECONDS && flight->flights->lasting < LASTING_FAILURES;
    flight->flights->lasting += flight->lasting;
    double life = flight->lasting ? seconds : FAILURE_SECONDS;
    return mc_clock_now() + (apr_interval_time_t)(life * APR_USEC_PER_SEC);
}

static void
land_flight(mc_flight *flight, const mc_error *failure, double seconds, bool given_up, bool found)
{
    if (flight == NULL)
        return;
    apr_pool_t *kept = NULL;
    mc_error *copy = MC_OK;
    if (failure != MC_OK && !given_up) {
        kept = mc_task_pool_acquire();
        copy = mc_error_copy(failure, kept);
    }
    mc_flights *flights = flight->flights;
    void (*drop)(void *) = flight->drop;
    pthread_mutex_lock(&flights->lock);
    MC_ASSERT(!flight->landed);
    flight->landed = true;
    flight->given_up = given_up;
    flight->found = found;
    flight->failure = copy;
    flight->pool = kept;
    flight->forget = end_of_failure(flight, copy == MC_OK ? 0 : seconds);
    void *gift = take_unwanted_gift(flight);
    pthread_cond_broadcast(&flight->changed);
    if (copy == MC_OK)
        unlist_flight(flight);
    release_flight(flight); /* NOLINT(clang-analyzer-unix.Malloc): leader and table hold one reference each */
    pthread_mutex_unlock(&flights->lock);
    if (gift != NULL)
        drop(gift);
#ifdef MC_DEBUG
    leading--;
#endif
}

void
mc_flight_land(mc_flight *flight, const mc_error *failure)
{
    land_flight(flight, failure, FAILURE_SECONDS, is_own_trouble(failure), false);
}

void
mc_flight_land_for(mc_flight *flight, const mc_error *failure, double seconds)
{
    land_flight(flight, failure, seconds, is_own_trouble(failure), false);
}

void
mc_flight_land_shared(mc_flight *flight, const mc_error *failure)
{
    land_flight(flight, failure, FAILURE_SECONDS, false, false);
}

void
mc_flight_land_found(mc_flight *flight)
{
    land_flight(flight, MC_OK, FAILURE_SECONDS, false, true);
}
