/*
 * The thread that makes changes of one database durable in the stores, in one process of all that have the same
 * readers' name: the one that holds an advisory lock of the database. Some time after a change it has old tiles removed
 * that nobody has asked for meanwhile, and then moves the readers' place in the log, so that who starts later begins
 * there.
 */
#ifndef MC_CHANGES_KEEPER_H
#define MC_CHANGES_KEEPER_H

#include "changes/change_log.h"
#include "mapcache/ctx.h"

/* found: mc_log_name of the names. *done: false where the names have another number now, and nothing was done. */
typedef mc_error *mc_keeper_step(bool *done, void *baton, const char *connection, const mc_log_batch *batch,
                                 const apr_array_header_t *found, unsigned number, mc_ctx *ctx, apr_pool_t *pool);

typedef struct mc_keeper_client {
    void *baton;
    /* The names of the tables that are watched in the database, in `pool`, and a number that changes with them. */
    unsigned (*names)(apr_array_header_t **names, void *baton, const char *connection, apr_pool_t *pool);
    /* Told, when this process becomes the one, of what is not settled yet. As `settle`. */
    mc_keeper_step *begin;
    /* Removes what is stored and shows something that was changed at `time` at the latest, by the clock of the batch,
     * and has caches in front purge it. *done: false also where these have not done so. An error: not all could be
     * removed. */
    mc_keeper_step *settle;
} mc_keeper_client;

typedef struct mc_keeper mc_keeper;

/* `delay`: microseconds from a change to the removal of what is still old. */
mc_keeper *mc_keeper_start(const char *connection, const char *reader, apr_interval_time_t poll,
                           apr_interval_time_t delay, const mc_keeper_client *client, mc_process *process,
                           const mc_log *log);

/* Ends the thread, and waits for it. */
void mc_keeper_stop(mc_keeper *keeper);

/* Whether this process is the one. */
bool mc_keeper_leads(const mc_keeper *keeper);

#endif
