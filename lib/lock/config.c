/* Lockers as the configuration names them, and the one that asks several in turn. */
#include <apr_strings.h>
#include <string.h>

#include "lock/locker.h"
#include "remote/redis_config.h"

typedef enum locker_type { TYPE_DISK, TYPE_MEMCACHE, TYPE_FALLBACK, TYPE_REDIS, TYPE_POSTGRESQL } locker_type;

typedef struct locker_config {
    int type;
    double retry;
    double timeout;
    const char *directory;
    const char *connection;
    mc_redis_settings redis;
    apr_array_header_t *servers; /* const mc_node * */
    apr_array_header_t *lockers; /* const mc_node * */
} locker_config;

const mc_key mc_locker_keys[] = {
    MC_KEY_CHOICE("@type", offsetof(locker_config, type), "disk|memcache|fallback|redis|postgresql",
                  "Where locks are kept: in a file of a local folder, in memcached servers, in the first of several "
                  "lockers that works, in redis, or in a PostgreSQL server.",
                  .fallback = "disk"),
    MC_KEY_NUMBER("retry", offsetof(locker_config, retry),
                  "Seconds between two questions to a memcached server. The other lockers are woken; where it is "
                  "longer than a second, also those of a waiter in redis, who looks whether the holder still lives.",
                  .min = 1e-6, .max = 1e9, .fallback = "0.1"),
    MC_KEY_NUMBER("timeout", offsetof(locker_config, timeout),
                  "Seconds after which a request gives up waiting for a lock.", .min = 1e-6, .max = 1e9,
                  .fallback = "120"),
    MC_KEY_TEXT("directory", offsetof(locker_config, directory), "The folder of the lock file of type disk.",
                .flags = MC_KEY_WORKDIR, .fallback = "/tmp"),
    MC_KEY_TREE("server", offsetof(locker_config, servers), mc_locker_server_keys,
                "A memcached server of type memcache; of type redis one more server of the same cluster.",
                .flags = MC_KEY_REPEATABLE),
    MC_REDIS_KEYS(locker_config, redis, MC_KEY_OURS, " of type redis"),
    MC_KEY_TEXT("connection", offsetof(locker_config, connection),
                "Connection string or URI of libpq of type postgresql.", .flags = MC_KEY_OURS),
    MC_KEY_TREE("locker", offsetof(locker_config, lockers), mc_locker_keys,
                "A locker of type fallback; they are asked in this order.", .flags = MC_KEY_REPEATABLE),
    MC_KEY_END,
};

/* Which of the lockers gave the lock, and what it gave. */
typedef struct fallback_held {
    mc_locker *locker;
    void *held;
} fallback_held;

static mc_error *
fallback_acquire(void **held, bool *waited, mc_locker *locker, const char *name, apr_time_t until, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    const apr_array_header_t *lockers = locker->baton;
    fallback_held *mine = apr_pcalloc(pool, sizeof(*mine));
    mc_error *first = MC_OK;
    for (int i = 0; i < lockers->nelts; i++) {
        mine->locker = APR_ARRAY_IDX(lockers, i, mc_locker *);
        mc_error *error = mine->locker->ops->acquire(&mine->held, waited, mine->locker, name, until, ctx, pool);
        if (error == MC_OK) {
            *held = mine;
            return MC_OK;
        }
        /* A lock that works and that another one holds is no reason to take a second one beside it. */
        if (error->kind == MC_ERR_UNAVAILABLE)
            return error;
        if (first == MC_OK)
            first = error;
    }
    return first;
}

static void
fallback_release(mc_locker *locker, void *held, mc_ctx *ctx)
{
    (void)locker;
    fallback_held *mine = held;
    mine->locker->ops->release(mine->locker, mine->held, ctx);
}

static void
fallback_inspect(const mc_locker *locker, const mc_node *at, mc_diagnostics *diagnostics, apr_pool_t *pool)
{
    const apr_array_header_t *lockers = locker->baton;
    for (int i = 0; i < lockers->nelts; i++)
        mc_locker_inspect(APR_ARRAY_IDX(lockers, i, const mc_locker *), at, diagnostics, pool);
}

/* All of them: each one may be needed. */
static mc_error *
fallback_reach(mc_locker *locker, mc_ctx *ctx, apr_pool_t *pool)
{
    const apr_array_header_t *lockers = locker->baton;
    for (int i = 0; i < lockers->nelts; i++)
        MC_TRY(mc_locker_reach(APR_ARRAY_IDX(lockers, i, mc_locker *), ctx, pool));
    return MC_OK;
}

static const mc_locker_ops fallback_ops = { fallback_acquire, fallback_release, fallback_inspect, fallback_reach };

static mc_locker *
create_fallback(const locker_config *config, const mc_node *node, mc_build *build)
{
    if (config->lockers == NULL || config->lockers->nelts == 0) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "a locker of type \"fallback\" needs at least one <locker>");
        return NULL;
    }
    mc_locker *locker = apr_pcalloc(build->pool, sizeof(*locker));
    apr_array_header_t *lockers = apr_array_make(build->pool, config->lockers->nelts, sizeof(mc_locker *));
    locker->ops = &fallback_ops;
    locker->baton = lockers;
    locker->pool = build->pool;
    for (int i = 0; i < config->lockers->nelts; i++) {
        mc_locker *part = mc_locker_from_config(APR_ARRAY_IDX(config->lockers, i, const mc_node *), build);
        if (part == NULL)
            return NULL;
        if (part->timeout > locker->timeout)
            locker->timeout = part->timeout;
        APR_ARRAY_PUSH(lockers, mc_locker *) = part;
    }
    return locker;
}

mc_locker *
mc_locker_from_config(const mc_node *node, mc_build *build)
{
    if (node != NULL && strcmp(node->name, "lock_dir") == 0)
        return mc_locker_disk(node->text, 120,
                              build->pool); /* docs/reference/configuration.md 1.2: its timeout cannot be set */
    locker_config config = { 0 };
    if (!mc_config_read(&config, node, mc_locker_keys, build->diagnostics))
        return NULL;
    switch ((locker_type)config.type) {
    case TYPE_MEMCACHE:
        if (config.servers == NULL || config.servers->nelts == 0) {
            mc_complain(build->diagnostics, MC_REFUSED, node, "a locker of type \"memcache\" needs a <server>");
            return NULL;
        }
        return mc_locker_memcache(config.servers, config.timeout, config.retry, build);
    case TYPE_FALLBACK:
        return create_fallback(&config, node, build);
    case TYPE_REDIS:
        return mc_locker_redis(&config.redis, config.servers, config.timeout, config.retry, node, build);
    case TYPE_POSTGRESQL:
        if (config.connection == NULL) {
            mc_complain(build->diagnostics, MC_REFUSED, node, "a locker of type \"postgresql\" needs a <connection>");
            return NULL;
        }
        return mc_locker_postgresql(config.connection, config.timeout, node, build);
    case TYPE_DISK:
        break;
    }
    return mc_locker_disk(config.directory, config.timeout, build->pool);
}
