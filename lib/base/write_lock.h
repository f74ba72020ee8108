/* One thread of this process at a time writes to a file, or opens what many read: others queue here until their
 * deadlines, instead of in a library's sleep-and-poll or at a mutex. */
#ifndef MC_BASE_WRITE_LOCK_H
#define MC_BASE_WRITE_LOCK_H

#include <pthread.h>

#include "mapcache/ctx.h"

typedef struct mc_write_lock {
    pthread_mutex_t mutex; /* of `taken`, held for a moment */
    pthread_cond_t given;
    bool taken;
} mc_write_lock;

void mc_write_lock_init(mc_write_lock *lock);
void mc_write_lock_destroy(mc_write_lock *lock);

/* Waits until the moment `until` (mc_clock_now()) or until the client has gone; false: others have it still. */
bool mc_write_lock_take(mc_write_lock *lock, apr_time_t until, mc_ctx *ctx);
/* The same until the deadline of the request, or ten minutes; others draw in the request's place meanwhile. */
bool mc_write_lock_await(mc_write_lock *lock, mc_ctx *ctx);
void mc_write_lock_give(mc_write_lock *lock);

#endif
