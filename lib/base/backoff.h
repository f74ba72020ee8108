/* How long to wait before something that has failed is tried again. */
#ifndef MC_BASE_BACKOFF_H
#define MC_BASE_BACKOFF_H

#include <apr_time.h>

/*
 * Microseconds before the repetition number `attempt` (from 0): `first`, doubled with each one, at most `most`; of that
 * a part between three quarters and all, by chance, so that those who failed together do not come back together.
 */
apr_interval_time_t mc_backoff(int attempt, apr_interval_time_t first, apr_interval_time_t most);

#endif
