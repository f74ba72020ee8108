/* A thread that keeps one connection to a database whose log is followed, and does its work there: again and again,
 * however often the connection ends. */
#ifndef MC_CHANGES_FOLLOWER_H
#define MC_CHANGES_FOLLOWER_H

#include "changes/change_log.h"
#include "mapcache/ctx.h"

typedef struct mc_follower mc_follower;

/* What a follower does. */
typedef struct mc_follower_work {
    /* On one connection, until it ends or the follower is stopped. */
    mc_error *(*follow)(void *baton, mc_follower *follower, mc_postgres_session *session, mc_ctx *ctx);
    void *baton;
    const char *application;         /* the name that its connections have at the server */
    apr_interval_time_t first_pause; /* microseconds to the next connection, doubled each time up to 30 seconds */
    mc_log_level level;              /* at which it says that it fails; the same failure is said once */
    const char *failure, *again;     /* what it says: before the reason; once it works again (NULL: nothing) */
} mc_follower_work;

/* Copies all but the texts of `work`; `process` and `log` live longer. */
mc_follower *mc_follower_start(const char *connection, const mc_follower_work *work, mc_process *process,
                               const mc_log *log);

/* What followers and their work keep of a text; of malloc. */
char *mc_follower_copy_text(const char *text);

/* Ends the thread, and waits for it. */
void mc_follower_stop(mc_follower *follower);

/* As its connection string was given. */
const char *mc_follower_connection(const mc_follower *follower);

/* Said by the work: what it is for is done on this connection. And whether that is so now. */
void mc_follower_note_success(mc_follower *follower, mc_ctx *ctx);
bool mc_follower_succeeds(const mc_follower *follower);

#endif
