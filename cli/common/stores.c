/* Which tiles of a store a configuration knows. */
#include "stores.h"

#include <string.h>

typedef struct search {
    const mc_cache *wanted;
    bool found;
} search;

static void
compare_cache_part(void *baton, mc_cache *part)
{
    search *search = baton;
    search->found = search->found || part == search->wanted;
}

static bool
tileset_uses_cache(const mc_tileset *tileset, const mc_cache *cache)
{
    search search = { cache, false };
    if (tileset->cache != NULL)
        mc_cache_parts(tileset->cache, compare_cache_part, &search);
    return search.found;
}

/* Values are joined by '#', and may have some of their own. */
static bool
match_dimension_value_count(const mc_tileset *tileset, const char *dim)
{
    if (dim == NULL)
        return true;
    if (tileset->dimension_count == 0 || *dim == '\0')
        return (tileset->dimension_count == 0) == (*dim == '\0');
    int values = 1;
    for (const char *at = dim; (at = strchr(at, '#')) != NULL; at++)
        values++;
    return values >= tileset->dimension_count;
}

static bool
has_level(const mc_tileset *tileset, const mc_store_group *group)
{
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid_link *link = tileset->links[i], *between = link->intermediate;
        bool named = group->grid == NULL || strcmp(group->grid, link->grid->name) == 0;
        if (named && group->z >= link->minzoom && group->z <= link->maxzoom)
            return true;
        if (between != NULL && group->grid != NULL && strcmp(group->grid, between->grid->name) == 0)
            return true;
    }
    return false;
}

/* Also of its further formats, whose names in stores are their own. */
static bool
is_stored_as(const mc_tileset *tileset, const char *name)
{
    bool named = strcmp(name, tileset->name) == 0;
    for (int i = 0; i < tileset->variant_count && !named; i++)
        named = strcmp(name, tileset->variants[i]->name) == 0;
    return named;
}

bool
mc_stores_known(const mc_config *config, mc_cache *cache, const mc_store_group *group)
{
    if (config->mode != MC_MODE_NORMAL)
        return true; /* clients name the tilesets */
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        bool meant =
            group->tileset == NULL ? tileset_uses_cache(tileset, cache) : is_stored_as(tileset, group->tileset);
        if (meant && has_level(tileset, group) && match_dimension_value_count(tileset, group->dim))
            return true;
    }
    return false;
}
