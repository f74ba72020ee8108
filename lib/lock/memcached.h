/* What locks need of memcached: keys that only one can add, and that go. Its text protocol, doc/protocol.txt there. */
#ifndef MC_LOCK_MEMCACHED_H
#define MC_LOCK_MEMCACHED_H

#include "mapcache/ctx.h"

enum { MC_MEMCACHED_KEY_MAX = 250, MC_MEMCACHED_EXPIRY_MAX = 30 * 24 * 3600 /* seconds; more is taken for a date */ };

/* One server, and its connections; for all threads. */
typedef struct mc_memcached mc_memcached;

mc_memcached *mc_memcached_create(const char *host, int port);
void mc_memcached_destroy(mc_memcached *server);

/*
 * False for a while after the server has not answered: who asks meanwhile does not wait for it, too. Then true for one
 * caller, who finds out.
 */
bool mc_memcached_is_usable(mc_memcached *server);

/*
 * Adds `key` (1 to MC_MEMCACHED_KEY_MAX bytes above space) for `expiry` seconds; *added is false where it is there.
 * Ends at `until` (mc_clock_now()), when the client has gone (MC_ERR_UNAVAILABLE), and in any case after 2 s without an
 * answer. MC_ERR_IO: the server cannot be used.
 */
mc_error *mc_memcached_add(bool *added, mc_memcached *server, const char *key, int expiry, apr_time_t until,
                           mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Likewise; no error where there is no such key. */
mc_error *mc_memcached_remove(mc_memcached *server, const char *key, apr_time_t until, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

#endif
