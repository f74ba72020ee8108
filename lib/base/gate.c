/* A counted door with a deadline. */
#include "base/gate.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The longest wait of a request without a deadline. */
#define WAIT_AT_MOST (600 * APR_USEC_PER_SEC)

struct mc_gate {
    pthread_mutex_t lock;
    pthread_cond_t left; /* somebody left */
    int places;          /* free ones; lock */
};

mc_gate *
mc_gate_create(int places)
{
    mc_gate *gate = calloc(1, sizeof(*gate));
    MC_ASSERT(gate != NULL && places > 0);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->left, &attributes);
    pthread_condattr_destroy(&attributes);
    gate->places = places;
    return gate;
}

void
mc_gate_destroy(mc_gate *gate)
{
    if (gate == NULL)
        return;
    pthread_cond_destroy(&gate->left);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

mc_error *
mc_gate_enter(mc_gate *gate, mc_ctx *ctx, apr_pool_t *pool)
{
    if (gate == NULL)
        return MC_OK;
    apr_interval_time_t wait = mc_ctx_remaining(ctx, WAIT_AT_MOST);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + wait % APR_USEC_PER_SEC * 1000;
    until.tv_sec += (time_t)(wait / APR_USEC_PER_SEC + nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    int status = 0;
    pthread_mutex_lock(&gate->lock);
    while (gate->places == 0 && status == 0)
        status = pthread_cond_timedwait(&gate->left, &gate->lock, &until);
    bool entered = gate->places > 0;
    if (entered)
        gate->places--;
    pthread_mutex_unlock(&gate->lock);
    return entered ? MC_OK : mc_error_create(pool, MC_ERR_UNAVAILABLE, "too many maps were asked for at the same time");
}

void
mc_gate_leave(mc_gate *gate)
{
    if (gate == NULL)
        return;
    pthread_mutex_lock(&gate->lock);
    gate->places++;
    pthread_cond_signal(&gate->left);
    pthread_mutex_unlock(&gate->lock);
}
