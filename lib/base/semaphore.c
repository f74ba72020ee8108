/* A counting semaphore with a queue and a deadline. */
#include "base/semaphore.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/admission.h"
#include "base/clock.h"
#include "base/wait.h"

/* Of so many waits the average is: places become free in bunches. */
#define PACE_MEMORY 32

/* Before anything is known. */
#define PACE_AT_FIRST (50 * 1000)

/* A turn may come in this part of the time that is left: the rest is for the work, and for works that take longer than
 * those before them. */
#define SHARE_OF_WAIT 2

/* The longest wait of a request without a deadline. */
#define WAIT_AT_MOST (600 * APR_USEC_PER_SEC)

typedef struct semaphore_waiter {
    pthread_cond_t turn;
    bool inside;
    bool newcomer;
    apr_time_t joined;
    struct semaphore_waiter *next;
} semaphore_waiter;

struct mc_semaphore {
    pthread_mutex_t lock; /* of all below, and of the waiters */
    int places;           /* free ones: none while anybody waits */
    semaphore_waiter *first;
    int newcomers;            /* of the waiters; the others come back */
    apr_time_t let_in;        /* when the last newcomer's wait has ended; 0: none has waited since */
    apr_interval_time_t pace; /* microseconds from one such end to the next, of late on the average */
};

mc_semaphore *
mc_semaphore_create(int places)
{
    mc_semaphore *semaphore = calloc(1, sizeof(*semaphore));
    MC_ASSERT(semaphore != NULL && places > 0);
    pthread_mutex_init(&semaphore->lock, NULL);
    semaphore->places = places;
    semaphore->pace = PACE_AT_FIRST;
    return semaphore;
}

void
mc_semaphore_destroy(mc_semaphore *semaphore)
{
    if (semaphore == NULL)
        return;
    pthread_mutex_destroy(&semaphore->lock);
    free(semaphore);
}

/* A waiter has left the line. Under the semaphore's lock, as the two below. */
static void
forget_newcomer(mc_semaphore *semaphore, const semaphore_waiter *waiter)
{
    semaphore->newcomers -= waiter->newcomer;
    if (semaphore->newcomers == 0)
        semaphore->let_in = 0; /* what comes next says nothing about the pace of a queue */
}

static void
note_pace(mc_semaphore *semaphore, const semaphore_waiter *waiter)
{
    if (!waiter->newcomer)
        return;
    apr_time_t now = mc_clock_now();
    apr_interval_time_t gap = now - (semaphore->let_in != 0 ? semaphore->let_in : waiter->joined);
    semaphore->pace += (gap - semaphore->pace) / PACE_MEMORY;
    semaphore->let_in = now;
}

/* Whether the line is so long that the turn of whoever joins it now would come too late. */
static bool
is_hopeless(const mc_semaphore *semaphore, apr_interval_time_t patience)
{
    return semaphore->places == 0 && semaphore->newcomers > 0 &&
           (apr_interval_time_t)(semaphore->newcomers + 1) * semaphore->pace > patience / SHARE_OF_WAIT;
}

static mc_error *
refuse_newcomer(mc_ctx *ctx, apr_pool_t *pool)
{
    return mc_admission_refuse(ctx, "the server has more to draw than it can do in time",
                               "the line of drawings is too long for its deadline", pool);
}

/* In line, until it is this one's turn, the client has gone or the moment has come (0: never, and no client counts).
 * Under the semaphore's lock. */
static bool
wait_in_line(mc_semaphore *semaphore, bool ahead, apr_time_t until, mc_ctx *ctx)
{
    semaphore_waiter own = { .newcomer = !ahead, .joined = mc_clock_now() };
    semaphore_waiter **at = &semaphore->first;
    mc_clock_condition(&own.turn);
    while (*at != NULL && !ahead)
        at = &(*at)->next;
    own.next = *at;
    *at = &own;
    semaphore->newcomers += own.newcomer;
    for (bool goes_on = true; !own.inside && goes_on;)
        goes_on = until == 0 ? pthread_cond_wait(&own.turn, &semaphore->lock) == 0
                             : mc_wait_condition(&own.turn, &semaphore->lock, until, ctx) == MC_WAIT_READY;
    if (!own.inside) {
        for (at = &semaphore->first; *at != &own; at = &(*at)->next)
            continue;
        *at = own.next;
        forget_newcomer(semaphore, &own);
    }
    pthread_cond_destroy(&own.turn);
    return own.inside;
}

/* Under the semaphore's lock, as wait_in_line. */
static bool
take_place(mc_semaphore *semaphore, bool ahead, apr_time_t until, mc_ctx *ctx)
{
    if (semaphore->places == 0)
        return wait_in_line(semaphore, ahead, until, ctx);
    semaphore->places--;
    return true;
}

static void
release_semaphore_permit(mc_semaphore *semaphore)
{
    pthread_mutex_lock(&semaphore->lock);
    semaphore_waiter *next = semaphore->first;
    if (next == NULL) {
        semaphore->places++;
    } else { /* the place goes from hand to hand: nobody can slip in between */
        semaphore->first = next->next;
        next->inside = true;
        note_pace(semaphore, next);
        forget_newcomer(semaphore, next);
        pthread_cond_signal(&next->turn);
    }
    pthread_mutex_unlock(&semaphore->lock);
}

mc_error *
mc_semaphore_acquire(mc_semaphore *semaphore, mc_ctx *ctx, apr_pool_t *pool)
{
    if (semaphore == NULL)
        return MC_OK;
    MC_ASSERT(ctx->inside == NULL);
    apr_interval_time_t patience = mc_ctx_remaining(ctx, WAIT_AT_MOST);
    pthread_mutex_lock(&semaphore->lock);
    bool hopeless = is_hopeless(semaphore, patience);
    bool inside = !hopeless && take_place(semaphore, false, mc_clock_now() + patience, ctx);
    pthread_mutex_unlock(&semaphore->lock);
    if (hopeless)
        return refuse_newcomer(ctx, pool);
    if (!inside)
        return mc_error_create(pool, MC_ERR_UNAVAILABLE, "too many maps were asked for at the same time");
    ctx->inside = semaphore;
    return MC_OK;
}

mc_error *
mc_semaphore_expect(mc_semaphore *semaphore, mc_ctx *ctx, apr_pool_t *pool)
{
    if (semaphore == NULL || ctx->inside != NULL)
        return MC_OK;
    apr_interval_time_t patience = mc_ctx_remaining(ctx, WAIT_AT_MOST);
    pthread_mutex_lock(&semaphore->lock);
    bool hopeless = is_hopeless(semaphore, patience);
    pthread_mutex_unlock(&semaphore->lock);
    return hopeless ? refuse_newcomer(ctx, pool) : MC_OK;
}

mc_semaphore *
mc_semaphore_yield(mc_ctx *ctx)
{
    mc_semaphore *semaphore = ctx->inside;
    ctx->inside = NULL;
    if (semaphore != NULL)
        release_semaphore_permit(semaphore);
    return semaphore;
}

void
mc_semaphore_resume(mc_semaphore *semaphore, mc_ctx *ctx)
{
    if (semaphore != NULL) {
        pthread_mutex_lock(&semaphore->lock);
        take_place(semaphore, true, 0, ctx);
        pthread_mutex_unlock(&semaphore->lock);
    }
    ctx->inside = semaphore;
}

void
mc_semaphore_release(mc_ctx *ctx)
{
    mc_semaphore_yield(ctx);
}
