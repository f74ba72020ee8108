/* What is seen only once all of a configuration is read: tables that tilesets show, caches that are not used, tiles
 * that would be lost. */
#include "changes/watch.h"
#include "mapcache/upkeep.h"
#include "server/server_private.h"

void
mc_config_connect_watches(const apr_array_header_t *nodes, mc_build *build)
{
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(nodes, i, const mc_node *);
        const char *name = mc_node_attr(node, "name");
        mc_tileset *tileset = name == NULL ? NULL : apr_hash_get(build->tilesets, name, APR_HASH_KEY_STRING);
        if (tileset != NULL && build->diagnostics->refused == 0)
            mc_tileset_connect_watch(tileset, node, build);
    }
}

/* Of a file in which something is refused, nobody can say. */
void
mc_config_warn_unused_caches(const mc_config *config, const apr_array_header_t *nodes, mc_build *build)
{
    if (!build->diagnostics->thorough || build->diagnostics->refused > 0 || config->tilesets->nelts == 0)
        return;
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(nodes, i, const mc_node *);
        const char *name = mc_node_attr(node, "name");
        const mc_cache *cache = name == NULL ? NULL : apr_hash_get(build->caches, name, APR_HASH_KEY_STRING);
        if (cache != NULL && !cache->used)
            mc_complain(build->diagnostics, MC_WARNING, node, "no tileset uses this cache");
    }
}

static void
note_bounded_part(void *baton, mc_cache *part)
{
    const mc_cache **bounded = baton;
    if (part->max_size > 0)
        *bounded = part;
}

/* Tiles that nobody renders again are lost when <max_size> removes them. */
void
mc_config_warn_lost_tiles(const apr_array_header_t *nodes, mc_build *build)
{
    for (int i = 0; nodes != NULL && i < nodes->nelts; i++) {
        const mc_node *node = APR_ARRAY_IDX(nodes, i, const mc_node *);
        const char *name = mc_node_attr(node, "name");
        const mc_tileset *tileset = name == NULL ? NULL : apr_hash_get(build->tilesets, name, APR_HASH_KEY_STRING);
        const mc_cache *bounded = NULL;
        if (tileset == NULL || tileset->cache == NULL || (tileset->source != NULL && !tileset->read_only))
            continue;
        mc_cache_parts(tileset->cache, note_bounded_part, &bounded);
        if (bounded != NULL)
            mc_complain(build->diagnostics, MC_WARNING, node,
                        "tileset \"%s\" renders no tiles, and <max_size> of cache \"%s\" removes those that it has: "
                        "they are lost then",
                        tileset->name, bounded->name);
    }
}
