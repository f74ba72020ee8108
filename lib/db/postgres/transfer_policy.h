/*
 * How fast a database's results arrive, and whether it pays to have it pack them: packing costs the database time and
 * saves bytes, so it is right where the way is long. Decided by measurement alone: both ways are tried, and what brings
 * more in the time that one waits for it is used.
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
 * An answer has been read. `bytes`: what arrived after its first packet; `worth`: what that would have been unpacked;
 * `waited`: microseconds spent waiting for it. Short answers tell nothing and are left out.
 */
void mc_transfer_policy_add(mc_transfer_policy *policy, mc_packing packing, int64_t bytes, int64_t worth,
                            apr_interval_time_t waited, apr_time_t now);

/*
 * What the next answer should be. Plain to begin with, and as long as that arrives as from the same machine; else
 * packed, unless that has been tried and brought no more. What has not been tried for half a minute is tried again, but
 * for plain results of a database whose packed ones show that the way is slow.
 */
mc_packing mc_transfer_policy_choose(mc_transfer_policy *policy, apr_time_t now);

#endif
