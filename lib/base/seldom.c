#include "base/seldom.h"

#include "base/clock.h"

#define BETWEEN (60 * APR_USEC_PER_SEC)

bool
mc_seldom_due(mc_seldom *subject, unsigned *unsaid)
{
    apr_time_t now = mc_clock_now(), next = atomic_load(&subject->next);
    *unsaid = 0;
    if (now < next || !atomic_compare_exchange_strong(&subject->next, &next, now + BETWEEN)) {
        atomic_fetch_add(&subject->unsaid, 1);
        return false;
    }
    *unsaid = atomic_exchange(&subject->unsaid, 0);
    return true;
}
