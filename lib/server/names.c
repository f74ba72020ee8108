/* What a configuration lacks, said together with what it has: for messages. */
#include <apr_strings.h>

#include "mapcache/server.h"

enum { NAMES_MAX = 12 };

typedef struct names {
    const char *text;
    int count;
    apr_pool_t *pool;
} names;

static void
add(names *names, const char *name)
{
    if (names->count < NAMES_MAX)
        names->text = apr_pstrcat(names->pool, names->text, names->count == 0 ? "" : ", ", name, NULL);
    else if (names->count == NAMES_MAX)
        names->text = apr_pstrcat(names->pool, names->text, ", ...", NULL);
    names->count++;
}

static const char *
lacks(const char *owner, const char *kind, const char *name, const names *names)
{
    return apr_pstrcat(names->pool, owner, " has no ", kind, " \"", name == NULL ? "" : name, "\"",
                       names->count == 0 ? "" : "; it has: ", names->text, NULL);
}

const char *
mc_config_lacks_tileset(const mc_config *config, const char *name, apr_pool_t *pool)
{
    names names = { "", 0, pool };
    for (int i = 0; i < config->tilesets->nelts; i++)
        add(&names, APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *)->name);
    return lacks("the configuration", "tileset", name, &names);
}

const char *
mc_config_lacks_cache(const mc_config *config, const char *name, apr_pool_t *pool)
{
    names names = { "", 0, pool };
    for (int i = 0; i < config->caches->nelts; i++)
        add(&names, APR_ARRAY_IDX(config->caches, i, const mc_cache *)->name);
    return lacks("the configuration", "cache", name, &names);
}

const char *
mc_tileset_lacks_grid(const mc_tileset *tileset, const char *name, apr_pool_t *pool)
{
    names names = { "", 0, pool };
    for (int i = 0; i < tileset->link_count; i++)
        add(&names, tileset->links[i]->grid->name);
    return lacks(apr_psprintf(pool, "tileset \"%s\"", tileset->name), "grid", name, &names);
}

const char *
mc_tileset_lacks_dimension(const mc_tileset *tileset, const char *name, apr_pool_t *pool)
{
    names names = { "", 0, pool };
    for (int i = 0; i < tileset->dimension_count; i++)
        add(&names, tileset->dimensions[i]->name);
    return lacks(apr_psprintf(pool, "tileset \"%s\"", tileset->name), "dimension", name, &names);
}
