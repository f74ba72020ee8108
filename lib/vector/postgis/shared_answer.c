/* See shared_answer.h. */
#include "vector/postgis/shared_answer.h"

#include "base/clock.h"
#include "base/wait.h"

void
mc_shared_answer_init(mc_shared_answer *shared, apr_interval_time_t wait)
{
    *shared = (mc_shared_answer){ .wait = wait };
    pthread_mutex_init(&shared->lock, NULL);
    mc_clock_condition(&shared->ended_one);
}

void
mc_shared_answer_destroy(mc_shared_answer *shared)
{
    pthread_cond_destroy(&shared->ended_one);
    pthread_mutex_destroy(&shared->lock);
}

static bool
is_asking(const mc_shared_answer *shared)
{
    return shared->begun != shared->ended;
}

/* Waits for the answer of others. False: the caller asks. *leads: for others, too. Under the lock. */
static bool
wait_for_answer(int *answer, bool *leads, mc_shared_answer *shared, uint64_t topic, mc_ctx *ctx)
{
    const uint64_t own = shared->begun + 1; /* the first question that is sent from now on */
    const apr_time_t until = mc_clock_now() + mc_ctx_remaining(ctx, shared->wait);
    mc_wait_end end = MC_WAIT_READY;
    shared->waiting++;
    while (is_asking(shared) && shared->ended < own && end == MC_WAIT_READY)
        end = mc_wait_condition(&shared->ended_one, &shared->lock, until, ctx);
    shared->waiting--;
    *answer = shared->answer;
    if (shared->ended >= own && shared->known && shared->topic == topic)
        return true;
    *leads = !is_asking(shared);
    shared->begun += *leads;
    return false;
}

mc_error *
mc_shared_answer_get(int *answer, mc_shared_answer *shared, uint64_t topic, mc_ask *ask, void *baton, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    bool leads = false;
    pthread_mutex_lock(&shared->lock);
    const bool known = wait_for_answer(answer, &leads, shared, topic, ctx);
    pthread_mutex_unlock(&shared->lock);
    if (known)
        return MC_OK;
    mc_error *error = ask(answer, baton, ctx, pool);
    if (!leads)
        return error;
    pthread_mutex_lock(&shared->lock);
    shared->ended = shared->begun;
    shared->known = error == MC_OK;
    shared->topic = topic;
    shared->answer = *answer;
    pthread_cond_broadcast(&shared->ended_one);
    pthread_mutex_unlock(&shared->lock);
    return error;
}
