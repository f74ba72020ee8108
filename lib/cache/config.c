/* <cache>: which kind of store, by its type. */
#include <string.h>

#include "cache/cache_base.h"
#include "config/kind.h"

/* MapCache knows these as well (docs/reference/configuration.md 5): with what takes their place. */
static const struct {
    const char *type, *instead;
} known_elsewhere[] = {
    { "riak", "redis and s3 share tiles between machines, too" },
    { "couchbase", "memcache and redis share tiles between machines, too" },
    { "tokyocabinet", "lmdb and bdb keep keys and values in files, too" },
};

mc_cache *
mc_cache_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    for (size_t i = 0; type != NULL && i < sizeof(known_elsewhere) / sizeof(*known_elsewhere); i++)
        if (strcmp(known_elsewhere[i].type, type) == 0) {
            mc_complain(build->diagnostics, MC_NOT_BUILT, node,
                        "caches of type \"%s\" are not part of this build: %s; it has %s", type,
                        known_elsewhere[i].instead, mc_kind_types(mc_cache_kinds, build->pool));
            return NULL;
        }
    const mc_cache_ops *ops = mc_kind_choose(mc_cache_kinds, "cache", node, strcmp, build);
    mc_cache *cache = ops == NULL ? NULL : ops->from_config(node, build);
    if (cache != NULL)
        cache->position = mc_node_position(node);
    return cache;
}
