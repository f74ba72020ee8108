/* What the files of mc_changes share. */
#ifndef MC_CHANGES_CHANGES_PRIVATE_H
#define MC_CHANGES_CHANGES_PRIVATE_H

#include <pthread.h>

#include "changes/changes.h"
#include "changes/clock_watch.h"
#include "changes/keeper.h"
#include "changes/listener.h"

enum { MC_LISTENERS_MAX = 16, MC_FOLLOWINGS_MAX = 256 };

struct mc_changes {
    mc_process *process;
    const mc_log *log;
    mc_marks *marks;
    _Atomic apr_time_t offset; /* of the first database's clock from ours */
    mc_clock_watch clock;      /* the first database's */
    _Atomic unsigned number;   /* changes with what is followed */
    _Atomic uint64_t told;     /* times that a log told of changes */
    pthread_mutex_t lock;      /* of what follows, also while watches are used */
    mc_following followings[MC_FOLLOWINGS_MAX];
    int following_count;
    mc_listener *listeners[MC_LISTENERS_MAX]; /* the first one is that of the reference clock */
    mc_keeper *keepers[MC_LISTENERS_MAX];     /* of the same databases */
    int listener_count;
    double memory;        /* seconds that marks are kept though the stores have nothing older any more */
    apr_time_t forgotten; /* all marks up to that time are */
};

/* Until when what a batch tells was seen, and what it has lost was removed, by the clock of marks. While that clock
 * shows times that it has shown before, it is the end of those: tiles that were stored before are older. */
apr_time_t mc_changes_time_seen(const mc_changes *changes, const mc_log_batch *batch);
apr_time_t mc_changes_time_lost(const mc_changes *changes, const mc_log_batch *batch);

typedef void mc_watch_visit(void *baton, mc_watch *watch, const mc_watch_table *table);

/* Calls `visit` with each table of all watches that stands in the database, in one order for one number. With the lock
 * held. */
void mc_changes_visit_tables(mc_changes *changes, const char *connection, mc_watch_visit *visit, void *baton);

/* Whether this process looks after what the database changes, for all of its name. With the lock held. */
bool mc_changes_lead(const mc_changes *changes, const char *connection);

/* ---- change_marking.c: what a listener asks and tells; the baton is the mc_changes */

unsigned mc_changes_list_names(apr_array_header_t **names, void *baton, const char *connection, apr_pool_t *pool);
unsigned mc_changes_names_number(void *baton);
bool mc_changes_take(apr_time_t *time, void *baton, const char *connection, const mc_log_batch *batch,
                     const apr_array_header_t *found, unsigned number, apr_pool_t *pool);

/* ---- change_purging.c: caches in front */

/* Has what has changed purged, `delayed` or now. With the lock held, or of a copy. Nobody waits. */
void mc_changes_purge(mc_changes *changes, const char *connection, const mc_log_batch *batch,
                      const apr_array_header_t *found, bool delayed, apr_pool_t *pool);

/* Waits for purges, for a bounded time. False: not all are done. */
bool mc_changes_await_purges(const mc_changes *changes, mc_ctx *ctx);

/* What a keeper tells that begins to look after the rest of the log: nobody may have purged that. */
mc_error *mc_changes_begin_leading(bool *done, void *baton, const char *connection, const mc_log_batch *batch,
                                   const apr_array_header_t *found, unsigned number, mc_ctx *ctx,
                                   apr_pool_t *pool) MC_CHECKED;

/* ---- change_settling.c: what a keeper tells */

mc_error *mc_changes_settle(bool *done, void *baton, const char *connection, const mc_log_batch *batch,
                            const apr_array_header_t *found, unsigned number, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

#endif
