/* What a process notes for the status page, while any of its configurations has one (lib/telemetry/monitor.h). */
#ifndef MC_SERVER_MONITORING_H
#define MC_SERVER_MONITORING_H

#include <stdatomic.h>

#include "mapcache/server.h"

/* A configuration is in force in this process: from now on errors are noted if it has the page, and the page is told
 * of what the configuration names. */
void mc_monitoring_follow(const mc_config *config, mc_process *process);

/* Whether anything is noted. */
static inline bool
mc_monitoring_on(const mc_process *process)
{
    return atomic_load_explicit(&process->tap, memory_order_relaxed) != 0;
}

/* Tells the page how this process is and how it finds what the configuration names; at most once a second, or a
 * hundred times where the request has failed. */
void mc_monitoring_report(const mc_config *config, mc_process *process, bool failed, apr_pool_t *pool);

/* "file:line" of a tileset by its name in the configuration, of the first one of several; NULL: there is none. */
const char *mc_monitoring_position(const mc_config *config, const char *tileset, apr_pool_t *pool);

#endif
