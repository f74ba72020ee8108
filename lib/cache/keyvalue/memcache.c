/* The cache "memcache": tiles in memcached servers, as MapCache's of that name. */
#include "cache/keyvalue/keyvalue.h"
#include "remote/memcached.h"

enum { SERVERS_MAX = 256 };

typedef struct memcache_cache {
    mc_keyvalue_cache shared;
    apr_array_header_t *nodes; /* of const mc_node * */
    int count;
    mc_remote_address *servers;
} memcache_cache;

static const mc_key memcache_server_keys[] = {
    MC_KEY_TEXT("host", offsetof(mc_remote_address, host), "Name or address of a memcached server.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_INT("port", offsetof(mc_remote_address, port), "Its port, usually 11211.", .min = 1, .max = 65535,
               .flags = MC_KEY_REQUIRED),
    MC_KEY_END,
};

static const mc_key memcache_keys[] = {
    MC_CACHE_KEYS(mc_keyvalue_cache),
    MC_KEY_TREE("server", offsetof(memcache_cache, nodes), memcache_server_keys,
                "A server; which of several has a tile is told by the tile's key, in the order of the servers.",
                .flags = MC_KEY_REPEATABLE | MC_KEY_REQUIRED),
    MC_KEY_FLAG("detect_blank", offsetof(memcache_cache, shared.detect_blank),
                "Store tiles of one colour as that colour."),
    MC_KEYVALUE_KEYS("0"),
    MC_KEY_END,
};

/* The servers of the cache, in the order of the file. */
static mc_error *
find_memcached_servers(mc_remote **servers, const memcache_cache *cache, const mc_remote_call *call)
{
    const mc_process *process = call->ctx->process;
    for (int i = 0; i < cache->count; i++) {
        servers[i] =
            process == NULL || process->remotes == NULL ? NULL : mc_remote_find(process->remotes, &cache->servers[i]);
        if (servers[i] == NULL)
            return mc_error_create(call->pool, MC_ERR_IO, "memcached at %s:%d cannot be asked", cache->servers[i].host,
                                   cache->servers[i].port);
    }
    return MC_OK;
}

typedef mc_error *memcached_do(mc_remote_value *values, int count, mc_remote *const *servers, int server_count,
                               const mc_remote_call *call);

static mc_error *
do_at_servers(memcached_do *verb, mc_keyvalue_cache *base, mc_remote_value *values, int count,
              const mc_remote_call *call)
{
    const memcache_cache *cache = (const memcache_cache *)base;
    mc_remote *servers[SERVERS_MAX];
    MC_TRY(find_memcached_servers(servers, cache, call));
    return verb(values, count, servers, cache->count, call);
}

static mc_error *
memcache_get(mc_keyvalue_cache *cache, mc_remote_value *values, int count, const mc_remote_call *call)
{
    return do_at_servers(mc_memcached_get, cache, values, count, call);
}

static mc_error *
memcache_set(mc_keyvalue_cache *cache, mc_remote_value *values, int count, const mc_remote_call *call)
{
    return do_at_servers(mc_memcached_set, cache, values, count, call);
}

static mc_error *
memcache_remove(mc_keyvalue_cache *cache, mc_remote_value *values, int count, const mc_remote_call *call)
{
    return do_at_servers(mc_memcached_delete, cache, values, count, call);
}

/* One by one, so that no server stands in for another. */
static mc_error *
memcache_reach(mc_keyvalue_cache *base, mc_remote_value *values, int count, const mc_remote_call *call)
{
    const memcache_cache *cache = (const memcache_cache *)base;
    mc_remote *servers[SERVERS_MAX];
    MC_TRY(find_memcached_servers(servers, cache, call));
    for (int i = 0; i < cache->count; i++)
        MC_TRY(mc_memcached_get(values, count, &servers[i], 1, call));
    return MC_OK;
}

static const mc_keyvalue_kind memcache_kind = {
    .rules = { .longest = MC_MEMCACHED_KEY_MAX },
    .span = "_mapcache_cache_memcache_get",
    .get = memcache_get,
    .set = memcache_set,
    .has = memcache_get, /* the protocol of all versions has no other question */
    .remove = memcache_remove,
    .reach = memcache_reach,
};

static mc_cache *
memcache_cache_from_config(const mc_node *node, mc_build *build)
{
    memcache_cache *cache = apr_pcalloc(build->pool, sizeof(*cache));
    if (!mc_cache_read(&cache->shared.base, &mc_cache_memcache, false, node, build))
        return NULL;
    if (cache->nodes->nelts > SERVERS_MAX) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "a cache has at most %d servers", SERVERS_MAX);
        return NULL;
    }
    cache->shared.kind = &memcache_kind;
    cache->count = cache->nodes->nelts;
    cache->servers = apr_pcalloc(build->pool, sizeof(*cache->servers) * (size_t)cache->count);
    for (int i = 0; i < cache->count; i++) {
        if (!mc_config_read(&cache->servers[i], APR_ARRAY_IDX(cache->nodes, i, const mc_node *), memcache_server_keys,
                            build->diagnostics))
            return NULL;
        cache->servers[i].kind = "memcached";
    }
    return &cache->shared.base.cache;
}

const mc_cache_ops mc_cache_memcache = {
    MC_KIND("memcache", memcache_keys, memcache_cache_from_config, "Tiles in the memory of memcached servers."),
    MC_KEYVALUE_OPS,
};
