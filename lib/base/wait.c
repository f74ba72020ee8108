#include "base/wait.h"

#include <errno.h>

#include "base/clock.h"

/* The end of one wait: `until`, or the next look at the client where there is one to look at. */
static apr_time_t
end_of_turn(apr_time_t now, apr_time_t until, const mc_ctx *ctx)
{
    return ctx->abandoned != NULL && until - now > MC_WAIT_LOOK ? now + MC_WAIT_LOOK : until;
}

mc_wait_end
mc_wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, apr_time_t until, mc_ctx *ctx)
{
    apr_time_t turn = end_of_turn(mc_clock_now(), until, ctx);
    if (mc_clock_wait(condition, mutex, turn))
        return MC_WAIT_READY;
    if (turn == until)
        return MC_WAIT_LATE;
    pthread_mutex_unlock(mutex); /* the client belongs to the front end: nothing is held while the front end is asked */
    bool gone = mc_ctx_abandoned(ctx);
    pthread_mutex_lock(mutex);
    return gone ? MC_WAIT_GONE : MC_WAIT_READY;
}

mc_wait_end
mc_wait_socket(struct pollfd *polled, apr_time_t until, mc_ctx *ctx)
{
    for (;;) {
        apr_time_t now = mc_clock_now();
        if (now >= until)
            return MC_WAIT_LATE;
        if (mc_ctx_abandoned(ctx))
            return MC_WAIT_GONE;
        apr_interval_time_t left = end_of_turn(now, until, ctx) - now;
        int milliseconds = left < 3600 * APR_USEC_PER_SEC ? (int)(left / 1000) + 1 : 3600 * 1000;
        int ready = poll(polled, 1, milliseconds);
        if (ready > 0 || (ready < 0 && errno != EINTR && errno != EAGAIN))
            return MC_WAIT_READY;
    }
}

bool
mc_wait_pause(apr_interval_time_t pause, mc_ctx *ctx)
{
    for (apr_interval_time_t step; pause > 0; pause -= step) {
        if (mc_ctx_abandoned(ctx))
            return false;
        step = pause < MC_WAIT_LOOK ? pause : MC_WAIT_LOOK;
        apr_sleep(step);
    }
    return true;
}
