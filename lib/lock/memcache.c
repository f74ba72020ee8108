/*
 * Locks between machines: a key that only one can add to a memcached server, and that the server forgets after the
 * timeout. memcached cannot wake who waits, so here, and nowhere else, a waiter asks again and again (<retry>).
 */
#include <apr_strings.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/wait.h"
#include "lock/locker.h"
#include "lock/memcached.h"

enum { SHORTEST_PAUSE = 1000 /* microseconds */ };

/* Microseconds that the server has for one answer, also at the end of a request; and for the one to a release. */
#define ANSWER_AT_LEAST (APR_USEC_PER_SEC / 10)
#define ANSWER_AT_MOST (2 * APR_USEC_PER_SEC)
#define RELEASE_AT_MOST (1 * APR_USEC_PER_SEC)

typedef struct server {
    const char *host;
    int port;
} server;

const mc_key mc_locker_server_keys[] = {
    MC_KEY_TEXT("host", offsetof(server, host), "Name or address of a memcached server.", .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("port", offsetof(server, port), "Its port.", .min = 1, .max = 65535, .fallback = "11211"),
    MC_KEY_END,
};

typedef struct memcache {
    int count;
    mc_memcached **servers;
} memcache;

typedef struct held_key {
    mc_memcached *server; /* that has the key */
    const char *key;
    apr_time_t since;
} held_key;

/* MapCache's key; where the protocol forbids a character or the length, a hash stands for the name. */
static const char *
memcache_lock_key(const char *name, apr_pool_t *pool)
{
    bool plain = strlen(name) <= MC_MEMCACHED_KEY_MAX - strlen("_gc_lock.lck");
    for (const char *c = name; plain && *c != '\0'; c++)
        plain = (unsigned char)*c > ' ' && *c != 0x7f;
    if (plain)
        return apr_pstrcat(pool, "_gc_lock", name, ".lck", NULL);
    size_t size = strlen(name);
    char hash[40];
    snprintf(hash, sizeof(hash), "%016llx%016llx", (unsigned long long)mc_hash64(name, size, 0),
             (unsigned long long)mc_hash64(name, size, 1));
    return apr_pstrcat(pool, "_gc_lock%", hash, ".lck", NULL);
}

/* Adds the key at its server, or at the next one while that server does not answer. */
static mc_error *
add_key(bool *added, held_key *mine, const memcache *m, int expiry, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_error *error = MC_OK;
    int first = mc_memcached_server_of(mine->key, strlen(mine->key), m->count);
    for (int i = 0; i < m->count; i++) {
        mine->server = m->servers[(first + i) % m->count];
        if (!mc_memcached_is_usable(mine->server, ctx))
            continue;
        mine->since = mc_clock_now();
        apr_interval_time_t most = mc_ctx_remaining(ctx, ANSWER_AT_MOST);
        apr_time_t end = mine->since + (most < ANSWER_AT_LEAST ? ANSWER_AT_LEAST : most);
        error = mc_memcached_add(added, mine->server, mine->key, expiry, end, ctx, pool);
        if (error == MC_OK || error->kind == MC_ERR_UNAVAILABLE)
            return error;
    }
    if (error == MC_OK)
        error = mc_error_create(pool, MC_ERR_IO, "memcached did not answer a moment ago");
    return mc_error_wrap(pool, error, MC_ERR_IO, "the lock server cannot be used");
}

static mc_error *
memcache_acquire(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    held_key *mine = apr_pcalloc(pool, sizeof(*mine));
    mine->key = memcache_lock_key(name, pool);
    /* memcached counts its own ticks, one a second: a key may go up to a second before its time. */
    int expiry = locker->timeout >= MC_MEMCACHED_EXPIRY_MAX ? MC_MEMCACHED_EXPIRY_MAX : (int)ceil(locker->timeout) + 1;
    apr_interval_time_t pause = (apr_interval_time_t)(locker->retry * APR_USEC_PER_SEC);
    if (pause < SHORTEST_PAUSE)
        pause = SHORTEST_PAUSE;
    for (;;) {
        bool added = false;
        MC_TRY(add_key(&added, mine, locker->baton, expiry, ctx, pool));
        if (added) {
            *held = mine;
            return MC_OK;
        }
        *waited = true;
        apr_time_t now = mc_clock_now();
        if (now >= until || !mc_wait_pause(until - now < pause ? until - now : pause, ctx))
            return mc_locker_busy(pool);
    }
}

/*
 * Once the key has expired it may be another one's: then it is left alone, and a little before, since the order to
 * delete takes its time. Who has rendered a tile at the last moment has the time to say so.
 */
static void
memcache_release(mc_locker *locker, void *held, mc_ctx *ctx)
{
    const held_key *mine = held;
    apr_time_t now = mc_clock_now();
    double age = (double)(now - mine->since) / APR_USEC_PER_SEC;
    if (age >= locker->timeout - (locker->timeout > 2 ? 1 : locker->timeout / 2))
        return;
    apr_interval_time_t most = mc_ctx_remaining(ctx, RELEASE_AT_MOST);
    if (most < ANSWER_AT_LEAST)
        most = ANSWER_AT_LEAST;
    mc_ctx own = *ctx;
    own.abandoned = NULL; /* a client that has gone is no reason to keep others out */
    mc_error *error = mc_memcached_is_usable(mine->server, ctx)
                          ? mc_memcached_remove(mine->server, mine->key, now + most, &own, ctx->pool)
                          : mc_error_create(ctx->pool, MC_ERR_IO, "memcached did not answer a moment ago");
    if (error != MC_OK)
        mc_log_write(ctx, MC_LOG_WARN, "a lock is not given back and ends after %.4g s: %s", locker->timeout,
                     mc_error_chain(error, ctx->pool));
}

static const mc_locker_ops memcache_ops = { memcache_acquire, memcache_release, NULL, mc_locker_try_any };

static apr_status_t
close_servers(void *data)
{
    const memcache *m = data;
    for (int i = 0; i < m->count; i++)
        mc_memcached_destroy(m->servers[i]);
    return APR_SUCCESS;
}

mc_locker *
mc_locker_memcache(const apr_array_header_t *servers, double timeout, double retry, mc_build *build)
{
    memcache *m = apr_pcalloc(build->pool, sizeof(*m));
    m->servers = apr_pcalloc(build->pool, (size_t)servers->nelts * sizeof(mc_memcached *));
    apr_pool_cleanup_register(build->pool, m, close_servers, apr_pool_cleanup_null);
    for (int i = 0; i < servers->nelts; i++) {
        server each = { 0 };
        if (!mc_config_read(&each, APR_ARRAY_IDX(servers, i, const mc_node *), mc_locker_server_keys,
                            build->diagnostics))
            return NULL;
        m->servers[m->count++] = mc_memcached_create(each.host, each.port);
    }
    mc_locker *locker = apr_pcalloc(build->pool, sizeof(*locker));
    *locker = (mc_locker){ .ops = &memcache_ops, .baton = m, .timeout = timeout, .retry = retry, .pool = build->pool };
    return locker;
}
