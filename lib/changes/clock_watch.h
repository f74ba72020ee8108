/* Watches the clock of a database for steps back: moments that it shows a second time. */
#ifndef MC_CHANGES_CLOCK_WATCH_H
#define MC_CHANGES_CLOCK_WATCH_H

#include <apr_time.h>
#include <stdatomic.h>

/* All zero: not read so far. One thread at a time reads; any may ask. */
typedef struct mc_clock_watch {
    apr_time_t shown, steady;
    apr_interval_time_t unsure;
    _Atomic apr_time_t
        passed; /* before the last step back the clock showed that time at the latest; 0: there was none */
} mc_clock_watch;

/* The clock showed `shown` when mc_clock_now() was `steady`, give or take `unsure` microseconds. Steps that are smaller
 * than what is unsure are none. Returns the microseconds by which the clock was set back since the last reading, or 0.
 */
apr_interval_time_t mc_clock_watch_read(mc_clock_watch *watch, apr_time_t shown, apr_time_t steady,
                                        apr_interval_time_t unsure);

/* `time`, or where the clock may have shown that already before it was set back, the end of what it showed. */
static inline apr_time_t
mc_clock_watch_after(const mc_clock_watch *watch, apr_time_t time)
{
    apr_time_t passed = atomic_load_explicit(&watch->passed, memory_order_relaxed);
    return time > passed ? time : passed;
}

#endif
