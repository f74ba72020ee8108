#include "base/breaker.h"

#include "base/backoff.h"
#include "base/clock.h"

enum { FAILURES_COUNTED = 16 /* the pause is as long as it gets long before */ };

void
mc_breaker_start(mc_breaker *breaker, const mc_breaker_rules *rules)
{
    *breaker = (mc_breaker){ .rules = rules };
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
    const mc_breaker_rules *rules = breaker->rules;
    breaker->open_until = mc_clock_now() + mc_backoff(breaker->failures - rules->failures, rules->first, rules->most);
}

bool
mc_breaker_admits(mc_breaker *breaker)
{
    pthread_mutex_lock(&breaker->lock);
    bool admits = mc_clock_now() >= breaker->open_until;
    if (admits && breaker->open_until != 0)
        open_breaker(breaker); /* for all but this caller */
    pthread_mutex_unlock(&breaker->lock);
    return admits;
}

bool
mc_breaker_is_closed(mc_breaker *breaker)
{
    pthread_mutex_lock(&breaker->lock);
    bool closed = breaker->open_until == 0;
    pthread_mutex_unlock(&breaker->lock);
    return closed;
}

void
mc_breaker_report(mc_breaker *breaker, bool works)
{
    pthread_mutex_lock(&breaker->lock);
    if (works) {
        breaker->failures = 0;
        breaker->open_until = 0;
    } else {
        breaker->failures += breaker->failures < FAILURES_COUNTED;
        if (breaker->failures >= breaker->rules->failures)
            open_breaker(breaker);
    }
    pthread_mutex_unlock(&breaker->lock);
}
