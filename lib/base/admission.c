#include "base/admission.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"

/* Microseconds between two lines of the log about refusals. */
#define TELL_EVERY (5 * APR_USEC_PER_SEC)

struct mc_admissions {
    int most, most_of_client;
    pthread_mutex_t lock; /* of all below */
    mc_admission *first;
    int inside;
};

mc_admissions *
mc_admissions_create(void)
{
    mc_admissions *admissions = calloc(1, sizeof(*admissions));
    MC_ASSERT(admissions != NULL);
    pthread_mutex_init(&admissions->lock, NULL);
    return admissions;
}

void
mc_admissions_destroy(mc_admissions *admissions)
{
    if (admissions == NULL)
        return;
    MC_ASSERT(admissions->first == NULL);
    pthread_mutex_destroy(&admissions->lock);
    free(admissions);
}

void
mc_admissions_limit(mc_admissions *admissions, int most, int most_of_client)
{
    admissions->most = most;
    admissions->most_of_client = most_of_client;
}

/* Lock held. */
static bool
has_too_many(const mc_admissions *admissions, const mc_admission *own)
{
    int mine = 0;
    if (admissions->most_of_client == 0 || own->client == NULL)
        return false;
    for (const mc_admission *at = admissions->first; at != NULL; at = at->next)
        mine += at->client != NULL && strcmp(at->client, own->client) == 0;
    return mine >= admissions->most_of_client;
}

/* Lock held. */
static void
let_in(mc_admissions *admissions, mc_admission *own)
{
    own->previous = NULL;
    own->next = admissions->first;
    if (own->next != NULL)
        own->next->previous = own;
    admissions->first = own;
    admissions->inside++;
    own->inside = true;
}

/* How many refusals the log is to be told of; 0: none now. */
static int
count_refusal(void)
{
    static _Atomic int refused;
    static _Atomic apr_time_t told;
    apr_time_t now = mc_clock_now();
    apr_time_t last = atomic_load(&told);
    atomic_fetch_add(&refused, 1);
    if ((last != 0 && now < last + TELL_EVERY) || !atomic_compare_exchange_strong(&told, &last, now))
        return 0;
    return atomic_exchange(&refused, 0);
}

mc_error *
mc_admission_refuse(mc_ctx *ctx, const char *message, const char *reason, apr_pool_t *pool)
{
    mc_count(ctx->process == NULL ? NULL : ctx->process->metrics, MC_COUNT_refused_total, 1);
    int refused = count_refusal();
    if (refused > 0)
        mc_log_write(ctx, MC_LOG_WARN, "%d requests were refused, the last one because %s", refused, reason);
    return mc_error_create(pool, MC_ERR_BUSY, "%s", message);
}

/* What keeps a request out. */
typedef enum admission_bar { BAR_NONE, BAR_FULL, BAR_GREEDY } admission_bar;

static admission_bar
try_admission(mc_admission *own)
{
    if (own == NULL || own->admissions == NULL)
        return BAR_NONE;
    mc_admissions *admissions = own->admissions;
    pthread_mutex_lock(&admissions->lock);
    bool full = !own->inside && admissions->most > 0 && admissions->inside >= admissions->most;
    bool greedy = !own->inside && !full && has_too_many(admissions, own);
    if (!full && !greedy && !own->inside)
        let_in(admissions, own);
    pthread_mutex_unlock(&admissions->lock);
    return full ? BAR_FULL : greedy ? BAR_GREEDY : BAR_NONE;
}

bool
mc_admission_lets_in(mc_ctx *ctx)
{
    return try_admission(ctx->admission) == BAR_NONE;
}

mc_error *
mc_admission_enter(mc_ctx *ctx, apr_pool_t *pool)
{
    switch (try_admission(ctx->admission)) {
    case BAR_FULL:
        return mc_admission_refuse(ctx, "the server has more to draw than it can do in time",
                                   "too many others draw or wait: see <max_slow_requests>", pool);
    case BAR_GREEDY:
        return mc_admission_refuse(ctx, "too many requests of this client are under way",
                                   "its client has too many under way: see <max_slow_requests_per_client>", pool);
    case BAR_NONE:
        break;
    }
    return MC_OK;
}

mc_error *
mc_admission_count_origin(mc_ctx *ctx, apr_pool_t *pool)
{
    mc_admission *own = ctx->admission;
    if (own == NULL || own->most_origin_requests == 0 ||
        atomic_fetch_add(&own->origin_requests, 1) < own->most_origin_requests)
        return MC_OK;
    return mc_error_create(pool, MC_ERR_BAD_REQUEST, "the request needs more than %d requests to origins",
                           own->most_origin_requests);
}

void
mc_admission_leave(mc_admission *own)
{
    if (!own->inside)
        return;
    mc_admissions *admissions = own->admissions;
    pthread_mutex_lock(&admissions->lock);
    if (own->previous != NULL)
        own->previous->next = own->next;
    else
        admissions->first = own->next;
    if (own->next != NULL)
        own->next->previous = own->previous;
    admissions->inside--;
    own->inside = false;
    pthread_mutex_unlock(&admissions->lock);
}
