#include "base/breaker.h"

#include "base/backoff.h"
#include "base/clock.h"

enum { FAILURES_COUNTED = 16 /* the pause is as long as it gets long before */ };

void
mc_breaker_start(mc_breaker *breaker)
{
    *breaker = (mc_breaker){ .failures = 0 };
    pthread_mutex_init(&breaker->lock, NULL);
}

void
mc_breaker_end(mc_breaker *breaker)
{
    pthread_mutex_destroy(&breaker->lock);
}

/* With the lock held. */
static void
open_breaker(mc_breaker *breaker)
{
    breaker->open_until =
        mc_clock_now() + mc_backoff(breaker->failures - MC_BREAKER_FAILURES, MC_BREAKER_PAUSE, MC_BREAKER_PAUSE_MOST);
}

bool
mc_breaker_admits(mc_breaker *breaker)
{
    pthread_mutex_lock(&breaker->lock);
    bool admits = mc_clock_now() >= breaker->open_until;
    if (admits && breaker->open_until != 0) {
        open_breaker(breaker); /* for all but this caller */
        breaker->probing = true;
    }
    pthread_mutex_unlock(&breaker->lock);
    return admits;
}

bool
mc_breaker_works(mc_breaker *breaker)
{
    pthread_mutex_lock(&breaker->lock);
    bool works = breaker->failures == 0;
    pthread_mutex_unlock(&breaker->lock);
    return works;
}

void
mc_breaker_report(mc_breaker *breaker, bool works, apr_interval_time_t waited)
{
    pthread_mutex_lock(&breaker->lock);
    if (works) {
        breaker->failures = 0;
        breaker->open_until = 0;
    } else if (breaker->probing || breaker->open_until == 0) {
        breaker->failures += breaker->failures < FAILURES_COUNTED;
        if (waited >= MC_BREAKER_COSTLY && breaker->failures < MC_BREAKER_FAILURES)
            breaker->failures = MC_BREAKER_FAILURES;
        if (breaker->failures >= MC_BREAKER_FAILURES)
            open_breaker(breaker);
    }
    breaker->probing = false;
    pthread_mutex_unlock(&breaker->lock);
}
