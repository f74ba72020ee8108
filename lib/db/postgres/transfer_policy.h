/*
 * Whether a database should pack its results. Packing costs the database time and saves bytes on the network.
 * Measurements alone decide: both ways are tried, and the way with more data for the time of waiting is used.
 */
#ifndef MC_DB_POSTGRES_TRANSFER_POLICY_H
#define MC_DB_POSTGRES_TRANSFER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include <apr_time.h>

typedef enum mc_packing { MC_PLAIN, MC_PACKED } mc_packing;

/* Of one database, for all threads of a process. */
typedef struct mc_transfer_policy mc_transfer_policy;

mc_transfer_policy *mc_transfer_policy_create(void);
void mc_transfer_policy_destroy(mc_transfer_policy *policy); /* NULL is ignored */

/*
 * An answer has been read. `bytes`: bytes after the first packet; `worth`: the size of these bytes without packing;
 * `waited`: microseconds spent waiting for it. Short answers are left out, as they tell nothing.
 */
void mc_transfer_policy_add(mc_transfer_policy *policy, mc_packing packing, int64_t bytes, int64_t worth,
                            apr_interval_time_t waited, apr_time_t now);

/*
 * How the next answer should come. Plain at first, and as long as plain answers arrive as fast as from the same
 * machine. Otherwise packed, unless packed answers were tried and brought no more. A way that was not tried for half a
 * minute is tried again; plain answers are not, where packed ones show that the network is slow.
 */
mc_packing mc_transfer_policy_choose(mc_transfer_policy *policy, apr_time_t now);

#endif
