/* Tilesets whose tiles, or values of dimensions, would take each other's places in files that are named by a path. */
#include "cache/cache_base.h"

#include <apr_strings.h>

static const char *
name_of_use(const mc_cache_use *use, apr_pool_t *pool)
{
    return apr_psprintf(pool, "tileset \"%s\" on grid \"%s\"", use->tileset, use->grid->name);
}

void
mc_cache_note_place(const mc_cache *cache, apr_hash_t *places, const char *place, const char *remedy,
                    const mc_cache_use *use, const mc_node *node, mc_build *build)
{
    const char *who = name_of_use(use, build->pool);
    const char *other = apr_hash_get(places, place, APR_HASH_KEY_STRING);
    if (other == NULL)
        apr_hash_set(places, apr_pstrdup(build->pool, place), APR_HASH_KEY_STRING, who);
    else if (strcmp(other, who) != 0)
        mc_complain(build->diagnostics, mc_cache_use_severity(use), node,
                    "%s and %s have their tiles in the same files of cache \"%s\", and overwrite each other's: %s", who,
                    other, cache->name, remedy);
}

void
mc_cache_note_dimensions(const mc_cache *cache, bool by_dimension, const char *remedy, const mc_cache_use *use,
                         const mc_node *node, mc_build *build)
{
    if (use->dimensions && !by_dimension)
        mc_complain(build->diagnostics, MC_WARNING, node,
                    "tileset \"%s\" has dimensions, and the files of cache \"%s\" cannot tell the tiles of their values"
                    " apart: %s",
                    use->tileset, cache->name, remedy);
}
