/* What a configuration lacks, said together with what it has: for messages. */
#include <apr_strings.h>

#include "mapcache/server.h"

enum { NAMES_MAX = 12 };

typedef struct server_names {
    const char *text, *nearest; /* nearest: to `wanted`; NULL: none is like it */
    const char *wanted;
    int count;
    apr_pool_t *pool;
} server_names;

static void
add_offered_name(server_names *names, const char *name)
{
    if (names->count < NAMES_MAX)
        names->text = apr_pstrcat(names->pool, names->text, names->count == 0 ? "" : ", ", name, NULL);
    else if (names->count == NAMES_MAX)
        names->text = apr_pstrcat(names->pool, names->text, ", ...", NULL);
    names->count++;
    if (names->nearest == NULL && names->wanted != NULL)
        names->nearest = mc_config_nearest(names->wanted, &name, 1);
}

static const char *
describe_missing_name(const char *owner, const char *kind, const char *name, const server_names *names)
{
    return apr_pstrcat(names->pool, owner, " has no ", kind, " \"", name == NULL ? "" : name, "\"",
                       names->count == 0 ? "" : "; it has: ", names->text,
                       names->nearest == NULL ? "" : "; did you mean \"", names->nearest == NULL ? "" : names->nearest,
                       names->nearest == NULL ? "" : "\"?", NULL);
}

const char *
mc_config_lacks_tileset(const mc_config *config, const char *name, apr_pool_t *pool)
{
    server_names names = { "", NULL, name, 0, pool };
    for (int i = 0; i < config->tilesets->nelts; i++)
        add_offered_name(&names, APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *)->name);
    return describe_missing_name("the configuration", "tileset", name, &names);
}

const char *
mc_config_lacks_cache(const mc_config *config, const char *name, apr_pool_t *pool)
{
    server_names names = { "", NULL, name, 0, pool };
    for (int i = 0; i < config->caches->nelts; i++)
        add_offered_name(&names, APR_ARRAY_IDX(config->caches, i, const mc_cache *)->name);
    return describe_missing_name("the configuration", "cache", name, &names);
}

const char *
mc_tileset_lacks_grid(const mc_tileset *tileset, const char *name, apr_pool_t *pool)
{
    server_names names = { "", NULL, name, 0, pool };
    for (int i = 0; i < tileset->link_count; i++)
        add_offered_name(&names, tileset->links[i]->grid->name);
    return describe_missing_name(apr_psprintf(pool, "tileset \"%s\"", tileset->name), "grid", name, &names);
}

const char *
mc_tileset_lacks_dimension(const mc_tileset *tileset, const char *name, apr_pool_t *pool)
{
    server_names names = { "", NULL, name, 0, pool };
    for (int i = 0; i < tileset->dimension_count; i++)
        add_offered_name(&names, tileset->dimensions[i]->name);
    return describe_missing_name(apr_psprintf(pool, "tileset \"%s\"", tileset->name), "dimension", name, &names);
}

static mc_error *
check_value(const mc_tileset *tileset, mc_dimension *dimension, const char *value, apr_pool_t *pool)
{
    apr_array_header_t *stands_for;
    mc_ctx ctx = { .pool = pool };
    const mc_dimension_query query = { .tileset = tileset->name, .value = value };
    return dimension->ops->from_backend ? MC_OK : mc_dimension_resolve(&stands_for, dimension, &query, &ctx, pool);
}

mc_error *
mc_tileset_values(const char ***values, const mc_tileset *tileset, const apr_table_t *given, apr_pool_t *pool)
{
    const apr_array_header_t *pairs = given == NULL ? apr_array_make(pool, 1, 1) : apr_table_elts(given);
    *values = mc_tileset_defaults(tileset, pool);
    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);
        int index = mc_tileset_dimension(tileset, pair->key, true);
        if (index < 0)
            return mc_error_located(pool, MC_ERR_INVALID_DIMENSION, pair->key, "%s",
                                    mc_tileset_lacks_dimension(tileset, pair->key, pool));
        MC_TRY(check_value(tileset, tileset->dimensions[index], pair->val, pool));
        (*values)[index] = pair->val;
    }
    return MC_OK;
}
