/* A counted door with a deadline. Who waits stands in a queue and is given the place of whoever leaves: nobody who comes
 * later is before him. */
#include "base/gate.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* The longest wait of a request without a deadline. */
#define WAIT_AT_MOST (600 * APR_USEC_PER_SEC)

typedef struct waiter {
    pthread_cond_t called;
    struct waiter *next;
    bool entered; /* a place has been given to it, and it is not in the queue any more */
} waiter;

struct mc_gate {
    pthread_mutex_t lock;
    pthread_condattr_t clock;
    int places;           /* free ones; all under the lock */
    waiter *first, *last; /* the queue; only when no place is free */
};

mc_gate *
mc_gate_create(int places)
{
    mc_gate *gate = calloc(1, sizeof(*gate));
    MC_ASSERT(gate != NULL && places > 0);
    pthread_condattr_init(&gate->clock);
    pthread_condattr_setclock(&gate->clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&gate->lock, NULL);
    gate->places = places;
    return gate;
}

void
mc_gate_destroy(mc_gate *gate)
{
    if (gate == NULL)
        return;
    pthread_condattr_destroy(&gate->clock);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

static struct timespec
end_of(mc_ctx *ctx)
{
    apr_interval_time_t wait = mc_ctx_remaining(ctx, WAIT_AT_MOST);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + wait % APR_USEC_PER_SEC * 1000;
    until.tv_sec += (time_t)(wait / APR_USEC_PER_SEC + nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    return until;
}

static void
leave_queue(mc_gate *gate, const waiter *gone)
{
    waiter *before = NULL;
    for (waiter *w = gate->first; w != NULL; before = w, w = w->next) {
        if (w != gone)
            continue;
        *(before == NULL ? &gate->first : &before->next) = w->next;
        if (gate->last == w)
            gate->last = before;
        return;
    }
}

/* Under the lock, which is given up meanwhile. False where the time has passed. */
static bool
wait_in_queue(mc_gate *gate, const struct timespec *until)
{
    waiter own = { .entered = false };
    pthread_cond_init(&own.called, &gate->clock);
    *(gate->first == NULL ? &gate->first : &gate->last->next) = &own;
    gate->last = &own;
    int status = 0;
    while (!own.entered && status == 0)
        status = pthread_cond_timedwait(&own.called, &gate->lock, until);
    if (!own.entered)
        leave_queue(gate, &own);
    pthread_cond_destroy(&own.called);
    return own.entered;
}

mc_error *
mc_gate_enter(mc_gate *gate, mc_ctx *ctx, apr_pool_t *pool)
{
    if (gate == NULL)
        return MC_OK;
    struct timespec until = end_of(ctx);
    bool entered = true;
    pthread_mutex_lock(&gate->lock);
    if (gate->places > 0)
        gate->places--;
    else
        entered = wait_in_queue(gate, &until);
    pthread_mutex_unlock(&gate->lock);
    return entered ? MC_OK : mc_error_create(pool, MC_ERR_UNAVAILABLE, "too many maps were asked for at the same time");
}

void
mc_gate_leave(mc_gate *gate)
{
    if (gate == NULL)
        return;
    pthread_mutex_lock(&gate->lock);
    waiter *next = gate->first;
    if (next == NULL) {
        gate->places++;
    } else {
        gate->first = next->next;
        if (gate->first == NULL)
            gate->last = NULL;
        next->entered = true;
        pthread_cond_signal(&next->called);
    }
    pthread_mutex_unlock(&gate->lock);
}
