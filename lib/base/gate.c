/* A counted door with a queue and a deadline. */
#include "base/gate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

/* The longest wait of a request without a deadline. */
#define WAIT_AT_MOST (600 * APR_USEC_PER_SEC)

typedef struct waiter {
    pthread_cond_t turn;
    bool inside;
    struct waiter *next;
} waiter;

struct mc_gate {
    pthread_mutex_t lock; /* of all below, and of the waiters */
    int places;           /* free ones: none while anybody waits */
    waiter *first;
};

mc_gate *
mc_gate_create(int places)
{
    mc_gate *gate = calloc(1, sizeof(*gate));
    MC_ASSERT(gate != NULL && places > 0);
    pthread_mutex_init(&gate->lock, NULL);
    gate->places = places;
    return gate;
}

void
mc_gate_destroy(mc_gate *gate)
{
    if (gate == NULL)
        return;
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

/* In line, until it is this one's turn or the moment has come (0: never). Under the gate's lock. */
static bool
wait_in_line(mc_gate *gate, bool ahead, apr_time_t until)
{
    waiter own = { .inside = false };
    waiter **at = &gate->first;
    mc_clock_condition(&own.turn);
    while (*at != NULL && !ahead)
        at = &(*at)->next;
    own.next = *at;
    *at = &own;
    for (bool early = true; !own.inside && early;)
        early =
            until == 0 ? pthread_cond_wait(&own.turn, &gate->lock) == 0 : mc_clock_wait(&own.turn, &gate->lock, until);
    if (!own.inside) {
        for (at = &gate->first; *at != &own; at = &(*at)->next)
            continue;
        *at = own.next;
    }
    pthread_cond_destroy(&own.turn);
    return own.inside;
}

static bool
acquire_semaphore_permit(mc_gate *gate, bool ahead, apr_time_t until)
{
    bool inside = true;
    pthread_mutex_lock(&gate->lock);
    if (gate->places > 0)
        gate->places--;
    else
        inside = wait_in_line(gate, ahead, until);
    pthread_mutex_unlock(&gate->lock);
    return inside;
}

static void
release_semaphore_permit(mc_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    waiter *next = gate->first;
    if (next == NULL) {
        gate->places++;
    } else { /* the place goes from hand to hand: nobody can slip in between */
        gate->first = next->next;
        next->inside = true;
        pthread_cond_signal(&next->turn);
    }
    pthread_mutex_unlock(&gate->lock);
}

mc_error *
mc_gate_enter(mc_gate *gate, mc_ctx *ctx, apr_pool_t *pool)
{
    if (gate == NULL)
        return MC_OK;
    MC_ASSERT(ctx->inside == NULL);
    if (!acquire_semaphore_permit(gate, false, mc_clock_now() + mc_ctx_remaining(ctx, WAIT_AT_MOST)))
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "too many maps were asked for at the same time");
    ctx->inside = gate;
    return MC_OK;
}

mc_gate *
mc_gate_step_out(mc_ctx *ctx)
{
    mc_gate *gate = ctx->inside;
    ctx->inside = NULL;
    if (gate != NULL)
        release_semaphore_permit(gate);
    return gate;
}

void
mc_gate_step_in(mc_gate *gate, mc_ctx *ctx)
{
    if (gate != NULL)
        acquire_semaphore_permit(gate, true, 0);
    ctx->inside = gate;
}

void
mc_gate_leave(mc_ctx *ctx)
{
    mc_gate_step_out(ctx);
}
