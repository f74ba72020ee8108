/* See clock_watch.h. */
#include "changes/clock_watch.h"

apr_interval_time_t
mc_clock_watch_read(mc_clock_watch *watch, apr_time_t shown, apr_time_t steady, apr_interval_time_t unsure)
{
    apr_time_t expected = watch->shown + (steady - watch->steady);
    apr_interval_time_t doubt = unsure + watch->unsure;
    apr_interval_time_t back = watch->steady == 0 || shown + doubt >= expected ? 0 : expected - shown;
    apr_time_t passed = atomic_load_explicit(&watch->passed, memory_order_relaxed);
    if (back > 0 && expected + doubt > passed)
        atomic_store_explicit(&watch->passed, expected + doubt, memory_order_relaxed);
    watch->shown = shown;
    watch->steady = steady;
    watch->unsure = unsure;
    return back;
}
