/* The cache "redis": tiles in redis and its kin, on one server or a cluster, as MapCache's of that name. */
#include "remote/redis.h"

#include "cache/keyvalue/keyvalue.h"
#include "remote/redis_config.h"

enum { LONGEST_KEY = 4096 };

typedef struct redis_cache {
    mc_keyvalue_cache shared;
    mc_redis_settings settings;
    apr_array_header_t *servers; /* of const mc_node * */
    mc_redis *redis;
} redis_cache;

static const mc_key redis_keys[] = {
    MC_CACHE_KEYS(mc_keyvalue_cache),
    MC_REDIS_KEYS(redis_cache, settings, 0, ""),
    MC_KEY_TREE("server", offsetof(redis_cache, servers), mc_redis_server_keys,
                "One more server of the same cluster, asked where those before it do not answer.",
                .flags = MC_KEY_REPEATABLE | MC_KEY_OURS),
    MC_KEY_FLAG("detect_blank", offsetof(mc_keyvalue_cache, detect_blank),
                "Store tiles of one colour as that colour, which MapCache does not read in redis.",
                .flags = MC_KEY_OURS),
    MC_KEYVALUE_KEYS("86400"),
    MC_KEY_END,
};

static mc_error *
redis_get(mc_keyvalue_cache *cache, mc_remote_value *values, int count, const mc_remote_call *call)
{
    return mc_redis_get(((redis_cache *)cache)->redis, values, count, call);
}

static mc_error *
redis_set(mc_keyvalue_cache *cache, mc_remote_value *values, int count, const mc_remote_call *call)
{
    return mc_redis_set(((redis_cache *)cache)->redis, values, count, call);
}

static mc_error *
redis_has(mc_keyvalue_cache *cache, mc_remote_value *values, int count, const mc_remote_call *call)
{
    return mc_redis_has(((redis_cache *)cache)->redis, values, count, call);
}

static mc_error *
redis_remove(mc_keyvalue_cache *cache, mc_remote_value *values, int count, const mc_remote_call *call)
{
    return mc_redis_delete(((redis_cache *)cache)->redis, values, count, call);
}

static mc_error *
redis_scan_keys(mc_keyvalue_cache *cache, const char *prefix, mc_keyvalue_key_visit *visit, void *baton,
                const mc_remote_call *call)
{
    return mc_redis_scan(((redis_cache *)cache)->redis, prefix, visit, baton, call);
}

static const mc_keyvalue_kind redis_kind = {
    .rules = { .longest = LONGEST_KEY, .blanks = true },
    .span = "_mapcache_cache_redis_get",
    .get = redis_get,
    .set = redis_set,
    .has = redis_has,
    .remove = redis_remove,
    .reach = redis_get,
    .scan = redis_scan_keys,
};

static mc_cache *
redis_cache_from_config(const mc_node *node, mc_build *build)
{
    redis_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    if (!mc_cache_read(&cache->shared.base, &mc_cache_redis, false, node, build))
        return NULL;
    cache->shared.kind = &redis_kind;
    cache->redis = mc_redis_from_config(&cache->settings, cache->servers, node, build);
    return cache->redis == NULL ? NULL : &cache->shared.base.cache;
}

const mc_cache_ops mc_cache_redis = {
    MC_KIND("redis", redis_keys, redis_cache_from_config, "Tiles in redis and its kin, one server or a cluster."),
    MC_KEYVALUE_OPS,
};
