/* <cache>: which kind of store, by its type. */
#include <apr_strings.h>
#include <string.h>

#include "cache/cache_base.h"

/* MapCache knows these as well (docs/reference/configuration.md 5). */
static const char *const known_elsewhere[] = {
    "bdb", "lmdb", "memcache", "redis", "tiff", "rest", "s3", "azure", "google", "riak", "couchbase", "tokyocabinet",
};

mc_cache *
mc_cache_from_config(const mc_node *node, mc_build *build)
{
    const char *type = mc_node_attr(node, "type");
    if (type == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "<cache> has no type");
        return NULL;
    }
    const char *list = "";
    for (int i = 0; mc_cache_kinds[i] != NULL; i++) {
        if (strcmp(mc_cache_kinds[i]->type, type) == 0)
            return mc_cache_kinds[i]->from_config(node, build);
        list = apr_pstrcat(build->pool, list, i == 0 ? "" : ", ", mc_cache_kinds[i]->type, NULL);
    }
    for (size_t i = 0; i < sizeof(known_elsewhere) / sizeof(*known_elsewhere); i++)
        if (strcmp(known_elsewhere[i], type) == 0) {
            mc_complain(build->diagnostics, MC_NOT_BUILT, node,
                        "caches of type \"%s\" are not part of this build; it has %s", type, list);
            return NULL;
        }
    mc_complain(build->diagnostics, MC_REFUSED, node, "no cache has the type %s: it is one of %s",
                mc_config_quote(type, build->pool), list);
    return NULL;
}
