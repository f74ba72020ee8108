#include "base/backoff.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/hash.h"

/* Of this thread; the quality is that of dice, not of keys. */
static uint64_t
throw_dice(void)
{
    static _Thread_local uint64_t thrown;
    const struct {
        uint64_t before;
        const void *thread;
        apr_time_t now;
    } seed = { thrown, &thrown, mc_clock_now() };
    thrown = mc_hash64(&seed, sizeof(seed), mc_hash_seed());
    return thrown;
}

apr_interval_time_t
mc_backoff(int attempt, apr_interval_time_t first, apr_interval_time_t most)
{
    apr_interval_time_t pause = first;
    for (int i = 0; i < attempt && pause < most; i++)
        pause *= 2;
    if (pause > most)
        pause = most;
    apr_interval_time_t quarter = pause / 4;
    return pause - (quarter > 0 ? (apr_interval_time_t)(throw_dice() % (uint64_t)quarter) : 0);
}
