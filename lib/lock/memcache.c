/*
 * Locks between machines: a key that only one can add to a memcached server, and that the server forgets after the
 * timeout. memcached cannot wake who waits, so here, and nowhere else, a waiter asks again and again (<retry>).
 */
#include <apr_memcache.h>
#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "lock/locker.h"

enum { EXPIRY_MAX = 30 * 24 * 3600 /* memcached takes more for a date */, SHORTEST_PAUSE = 1000 /* microseconds */ };
enum { KEY_MAX = 250, CONNECTIONS_MAX = 64, IDLE_SECONDS = 60 };

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
    apr_array_header_t *servers; /* of server */
    pthread_mutex_t lock;        /* of the two below, which exist from the first use on: not before a fork */
    apr_pool_t *pool;
    apr_memcache_t *client; /* has locks of its own */
} memcache;

typedef struct held_key {
    const char *key;
    apr_time_t since;
} held_key;

/* With the lock held. */
static mc_error *
connect_servers(memcache *m, apr_pool_t *error_pool)
{
    apr_pool_t *pool;
    if (apr_pool_create_unmanaged_ex(&pool, NULL, NULL) != APR_SUCCESS)
        return mc_error_create(error_pool, MC_ERR_LIMIT, "no memory for a lock");
    apr_memcache_t *client;
    apr_status_t status = apr_memcache_create(pool, (apr_uint16_t)m->servers->nelts, 0, &client);
    for (int i = 0; status == APR_SUCCESS && i < m->servers->nelts; i++) {
        const server *each = &APR_ARRAY_IDX(m->servers, i, server);
        apr_memcache_server_t *added;
        status = apr_memcache_server_create(pool, each->host, (apr_port_t)each->port, 0, 1, CONNECTIONS_MAX,
                                            IDLE_SECONDS * APR_USEC_PER_SEC, &added);
        if (status == APR_SUCCESS)
            status = apr_memcache_add_server(client, added);
    }
    if (status != APR_SUCCESS) {
        apr_pool_destroy(pool);
        return mc_error_create(error_pool, MC_ERR_IO, "the lock server cannot be used");
    }
    m->pool = pool;
    m->client = client;
    return MC_OK;
}

static mc_error *
get_client(apr_memcache_t **client, memcache *m, apr_pool_t *pool)
{
    pthread_mutex_lock(&m->lock);
    mc_error *error = m->client != NULL ? MC_OK : connect_servers(m, pool);
    *client = m->client;
    pthread_mutex_unlock(&m->lock);
    return error;
}

/* MapCache's key; where the protocol forbids a character or the length, a hash stands for the name. */
static const char *
memcache_lock_key(const char *name, apr_pool_t *pool)
{
    bool plain = strlen(name) <= KEY_MAX - strlen("_gc_lock.lck");
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

static mc_error *
memcache_acquire(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, apr_pool_t *pool)
{
    apr_memcache_t *client;
    MC_TRY(get_client(&client, locker->baton, pool));
    held_key *mine = apr_pcalloc(pool, sizeof(*mine));
    mine->key = memcache_lock_key(name, pool);
    char value[] = "1";
    /* memcached counts its own ticks, one a second: a key may go up to a second before its time. */
    apr_uint32_t expiry = locker->timeout >= EXPIRY_MAX ? EXPIRY_MAX : (apr_uint32_t)ceil(locker->timeout) + 1;
    apr_interval_time_t pause = (apr_interval_time_t)(locker->retry * APR_USEC_PER_SEC);
    if (pause < SHORTEST_PAUSE)
        pause = SHORTEST_PAUSE;
    for (;;) {
        mine->since = mc_clock_now();
        apr_status_t status = apr_memcache_add(client, mine->key, value, 1, expiry, 0);
        if (status == APR_SUCCESS) {
            *held = mine;
            return MC_OK;
        }
        if (status != APR_EEXIST) {
            char reason[200];
            mc_error *cause =
                mc_error_create(pool, MC_ERR_IO, "memcached: %s", apr_strerror(status, reason, sizeof(reason)));
            return mc_error_wrap(pool, cause, MC_ERR_IO, "the lock server cannot be used");
        }
        *waited = true;
        apr_time_t now = mc_clock_now();
        if (now >= until)
            return mc_locker_busy(pool);
        apr_sleep(until - now < pause ? until - now : pause);
    }
}

/* Once the key has expired it may be another one's: then it is left alone, and a little before, since the order to
 * delete takes its time. */
static void
memcache_release(mc_locker *locker, void *held)
{
    const held_key *mine = held;
    const memcache *m = locker->baton;
    double age = (double)(mc_clock_now() - mine->since) / APR_USEC_PER_SEC;
    if (age < locker->timeout - (locker->timeout > 2 ? 1 : locker->timeout / 2))
        apr_memcache_delete(m->client, mine->key, 0);
}

static const mc_locker_ops memcache_ops = { memcache_acquire, memcache_release };

static apr_status_t
close_client(void *data)
{
    memcache *m = data;
    if (m->pool != NULL)
        apr_pool_destroy(m->pool);
    pthread_mutex_destroy(&m->lock);
    return APR_SUCCESS;
}

mc_locker *
mc_locker_memcache(const apr_array_header_t *servers, double timeout, double retry, mc_build *build)
{
    memcache *m = apr_pcalloc(build->pool, sizeof(*m));
    m->servers = apr_array_make(build->pool, servers->nelts, sizeof(server));
    for (int i = 0; i < servers->nelts; i++) {
        server each = { 0 };
        if (!mc_config_read(&each, APR_ARRAY_IDX(servers, i, const mc_node *), mc_locker_server_keys,
                            build->diagnostics))
            return NULL;
        APR_ARRAY_PUSH(m->servers, server) = each;
    }
    pthread_mutex_init(&m->lock, NULL);
    apr_pool_cleanup_register(build->pool, m, close_client, apr_pool_cleanup_null);
    mc_locker *locker = apr_pcalloc(build->pool, sizeof(*locker));
    *locker = (mc_locker){ .ops = &memcache_ops, .baton = m, .timeout = timeout, .retry = retry, .pool = build->pool };
    return locker;
}
