/* What the kinds of lockers share. */
#ifndef MC_LOCK_LOCKER_H
#define MC_LOCK_LOCKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "mapcache/lock.h"

struct mc_redis_settings; /* remote/redis_config.h */

typedef struct mc_locker_ops {
    /*
     * Takes the lock at the latest at `until` (mc_clock_now(); in the past: now or not at all), and waits no longer
     * than the client of ctx. *held is what `release` gets. MC_ERR_UNAVAILABLE: another one holds it; MC_ERR_IO: locks
     * are not to be had.
     */
    mc_error *(*acquire)(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
                         apr_pool_t *pool);
    void (*release)(mc_locker *locker, void *held, mc_ctx *ctx); /* takes a second at most */
    /* Complains about what keeps processes from agreeing; NULL: there is nothing to look at. */
    void (*inspect)(const mc_locker *locker, const mc_node *at, mc_diagnostics *diagnostics, apr_pool_t *pool);
    /* Whether its servers give a lock now; NULL: it has none. */
    mc_error *(*reach)(mc_locker *locker, mc_ctx *ctx, apr_pool_t *pool);
} mc_locker_ops;

/* mc_locker_ops.reach of lockers whose servers are asked by taking a lock that nobody needs. */
mc_error *mc_locker_try_any(mc_locker *locker, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

struct mc_locker {
    const mc_locker_ops *ops;
    void *baton;    /* the kind's own */
    double timeout; /* seconds */
    double retry;   /* seconds between two questions, where the store cannot wake a waiting process */
    apr_pool_t *pool;
};

/* The lock file, opened for one lock at a time. */
typedef struct mc_lock_file {
    int fd;
    bool common;    /* the file that all users' processes lock, not one for this user alone */
    bool in_public; /* in a folder where everybody may create files */
    dev_t device;   /* of the file, as is the next one */
    ino_t inode;
} mc_lock_file;

enum { MC_LOCK_FILES_IDLE = 8 };

/* The baton of a disk locker. */
typedef struct mc_disk_locker {
    const char *directory;
    bool usual;       /* the folder of who has not chosen one: each user for himself is nothing to warn about there */
    atomic_bool told; /* that the common lock file is passed over */
    pthread_mutex_t mutex; /* of the rest: common lock files that wait for the next lock */
    pid_t process;         /* that has opened them: locks of a description go with it into a forked process */
    int idle_count;
    mc_lock_file idle[MC_LOCK_FILES_IDLE];
} mc_disk_locker;

/* Why the lock file at `path` is not this user's to use ("PATH belongs to user NAME"); NULL where nothing is wrong with
 * it, or there is none. *severity: how bad that is. */
const char *mc_lock_file_problem(mc_severity *severity, const mc_disk_locker *disk, const char *path, apr_pool_t *pool);

/* mc_locker_ops.inspect of disk lockers. */
void mc_disk_locker_inspect(const mc_locker *locker, const mc_node *at, mc_diagnostics *diagnostics, apr_pool_t *pool);

extern const mc_key mc_locker_server_keys[]; /* of <server> */

/* `servers`: const mc_node * each, with <host> and <port>. NULL when one of them was refused. */
mc_locker *mc_locker_memcache(const apr_array_header_t *servers, double timeout, double retry, mc_build *build);

/* NULL after a complaint. `servers`: const mc_node * each, more of the same cluster. */
mc_locker *mc_locker_redis(const struct mc_redis_settings *settings, const apr_array_header_t *servers, double timeout,
                           double retry, const mc_node *node, mc_build *build);

/* Advisory locks of a PostgreSQL server; `connection`: libpq's connection string or URI. */
mc_locker *mc_locker_postgresql(const char *connection, double timeout, const mc_node *node, mc_build *build);

mc_error *mc_locker_busy(apr_pool_t *pool) MC_CHECKED; /* the error after a wait that was too long */

#endif
