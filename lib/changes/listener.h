/* The thread that follows the change log of one database. */
#ifndef MC_CHANGES_LISTENER_H
#define MC_CHANGES_LISTENER_H

#include "changes/change_log.h"
#include "mapcache/ctx.h"

/* Who takes what has changed: lib/changes/changes.c. */
typedef struct mc_listener_client {
    void *baton;
    /* The names of the tables (const char *) that are watched in the database, in `pool`, and a number that changes
     * with them. */
    unsigned (*names)(apr_array_header_t **names, void *baton, const char *connection, apr_pool_t *pool);
    unsigned (*names_number)(void *baton);
    /* What was read; found: mc_log_name of the names that were handed out with that number. *time: of its oldest marks.
     * False: the names are others now, and nothing is taken. */
    bool (*take)(apr_time_t *time, void *baton, const char *connection, const mc_log_batch *batch,
                 const apr_array_header_t *found, unsigned number, apr_pool_t *pool);
} mc_listener_client;

typedef struct mc_listener mc_listener;

/* `reader`: whose place in the log is where a process begins. `poll`: microseconds. All is copied but the client's
 * baton. */
mc_listener *mc_listener_start(const char *connection, const char *reader, apr_interval_time_t poll,
                               const mc_listener_client *client, mc_process *process, const mc_log *log);

/* Reads the log once more from where its readers have got to for good. */
void mc_listener_begin_again(mc_listener *listener);

/* Ends the thread, and waits for it. */
void mc_listener_stop(mc_listener *listener);

const char *mc_listener_connection(const mc_listener *listener);
bool mc_listener_connected(const mc_listener *listener);
/* The time of the oldest marks that are not applied in the stores for good yet; 0: there are none. */
apr_time_t mc_listener_unsettled(const mc_listener *listener);
apr_time_t mc_listener_last_read(const mc_listener *listener); /* mc_clock_now(); 0: never */

#endif
