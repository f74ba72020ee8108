/*
 * Of a process: who follows the change logs of databases, and the marks of the tiles that have changed. One thread for
 * each database, from the first configuration on that wants it.
 */
#ifndef MC_CHANGES_CHANGES_H
#define MC_CHANGES_CHANGES_H

#include "changes/marks.h"
#include "changes/watch.h"
#include "mapcache/ctx.h"

typedef struct mc_changes mc_changes;

/* `process` and `log` live longer. */
mc_changes *mc_changes_create(mc_process *process, const mc_log *log);

/* Ends all threads, and drops what is followed. NULL is ignored. */
void mc_changes_destroy(mc_changes *changes);

/* What is followed for one configuration. */
typedef struct mc_following {
    const char *file; /* of the configuration: what was followed for it before is dropped */
    const mc_changes_config *config;
    apr_array_header_t *watches; /* of mc_watch *; they get their marks */
    const mc_owner *owner;       /* of all this: taken already, and dropped when nothing of it is used any more */
} mc_following;

/* Follows the logs of all tables of the watches from now on. The process serves stored tiles by the marks from then on.
 */
void mc_changes_follow(mc_changes *changes, const mc_following *following);

/* Now, by the clock that marks and stored tiles of all hosts are compared by: that of the first database. */
apr_time_t mc_changes_now(const mc_changes *changes);

/* How a log is followed. */
typedef struct mc_changes_state {
    const char *connection;
    bool connected;
    bool leads;      /* this process looks after stored tiles for all of its name */
    apr_time_t read; /* mc_clock_now() of the last read; 0: never */
} mc_changes_state;

/* Tells of each log; `visit` must not wait. NULL: nothing is followed. */
void mc_changes_visit(mc_changes *changes, void (*visit)(void *baton, const mc_changes_state *state), void *baton);

mc_marks_statistics mc_changes_marks(mc_changes *changes);

/* ---- for those who derive something else from the tables of watches, one process for all */

/* Another number after a log has told of changes, after other tables are followed, and once this process begins or
 * ceases to look after a database for all of its name. */
uint64_t mc_changes_number(mc_changes *changes);

/* Whether this process looks after that database for all of its name. */
bool mc_changes_is_leader(mc_changes *changes, const char *connection);

/* What is followed (mc_following), each owner taken. Given back with mc_changes_release. */
apr_array_header_t *mc_changes_hold(mc_changes *changes, apr_pool_t *pool);
void mc_changes_release(const apr_array_header_t *held);

#endif
