/*
 * The thread of a process that updates overviews after changes (<changes><overviews>): in one process of all that
 * follow the change log under one name, the one that looks after stored tiles. Following, purging and removing tiles
 * are done by other threads, and never wait for this one.
 */
#ifndef MC_OVERVIEW_OVERVIEW_FOLLOWER_H
#define MC_OVERVIEW_OVERVIEW_FOLLOWER_H

#include "changes/watch.h"

typedef struct mc_overview_follower mc_overview_follower;

/* `process`, with its changes, and `log` live longer. */
mc_overview_follower *mc_overview_follower_create(mc_process *process, const mc_log *log);

/* The thread starts with the first configuration that wants it. NULL is ignored. */
void mc_overview_follower_want(mc_overview_follower *follower, const mc_changes_config *config);

/* Ends the thread; an update under way leaves the levels as they were. NULL is ignored. */
void mc_overview_follower_destroy(mc_overview_follower *follower);

#endif
