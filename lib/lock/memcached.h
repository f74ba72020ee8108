/* What locks need of memcached: keys that only one can add, and that go. Its text protocol, doc/protocol.txt there. */
#ifndef MC_LOCK_MEMCACHED_H
#define MC_LOCK_MEMCACHED_H

#include "mapcache/ctx.h"
#include "remote/memcached.h"

/* One server, and what it owes; for all threads. Its connections and its breaker are the process's (lib/remote). */
typedef struct mc_memcached mc_memcached;

mc_memcached *mc_memcached_create(const char *host, int port);
void mc_memcached_destroy(mc_memcached *server);

/*
 * False for a while after the server has not answered: who asks meanwhile does not wait for it, too. Then true for one
 * caller, who finds out.
 */
bool mc_memcached_is_usable(const mc_memcached *server, mc_ctx *ctx);

/*
 * Adds `key` (mc_memcached_key_valid) for `expiry` seconds; *added is false where it is there. Ends at `until`
 * (mc_clock_now()), when the client has gone (MC_ERR_UNAVAILABLE), and in any case after 2 s without an answer.
 * MC_ERR_IO: the server cannot be used.
 */
mc_error *mc_memcached_add(bool *added, mc_memcached *server, const char *key, int expiry, apr_time_t until,
                           mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* Likewise; no error where there is no such key. */
mc_error *mc_memcached_remove(mc_memcached *server, const char *key, apr_time_t until, mc_ctx *ctx,
                              apr_pool_t *pool) MC_CHECKED;

#endif
