/* Values of dimensions as they are stored: no database is asked what a value stands for. */
#include <apr_strings.h>
#include <string.h>

#include "copy.h"
#include "mapcache/upkeep.h"

/* A tile's key has the value that it was stored under. */
static mc_error *
resolve_stored_value(apr_array_header_t **values, mc_dimension *dimension, const mc_dimension_query *query, mc_ctx *ctx,
                     apr_pool_t *pool)
{
    (void)dimension, (void)ctx;
    *values = apr_array_make(pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(*values, const char *) = query->value;
    return MC_OK;
}

static const mc_dimension_ops stored_ops = { .type = "stored", .resolve = resolve_stored_value };
static const mc_dimension_ops resolved_ops = { .type = "stored",
                                               .resolve = resolve_stored_value,
                                               .from_backend = true };

/* Tiles of a block, in columns and rows: what one question to a store that is far away asks for. */
enum { BLOCK_SIDE = 8 };

mc_tileset *
mc_copy_stored_tileset(const mc_tileset *tileset, mc_cache *cache, apr_pool_t *pool)
{
    mc_tileset *stored = apr_pmemdup(pool, tileset, sizeof(*tileset));
    stored->cache = cache;
    stored->assembly = MC_ASSEMBLE_NONE;
    if (cache != tileset->cache)
        stored->variant_count = 0; /* further formats in the other cache are not those of these tiles */
    stored->read_only = true;
    stored->metatile_columns = stored->metatile_rows = BLOCK_SIDE;
    stored->dimensions = apr_palloc(pool, sizeof(mc_dimension *) * (size_t)(tileset->dimension_count + 1));
    for (int i = 0; i < tileset->dimension_count; i++) {
        stored->dimensions[i] = apr_pmemdup(pool, tileset->dimensions[i], sizeof(mc_dimension));
        stored->dimensions[i]->ops = tileset->dimensions[i]->ops->from_backend ? &resolved_ops : &stored_ops;
    }
    return stored;
}

/* The values that a store has, joined by '#', the last dimension first. */
typedef struct value_search {
    const mc_tileset *tileset;
    const mc_grid *grid;
    apr_array_header_t *found; /* of const char * */
    bool untold;               /* a store does not tell */
    mc_error *error;
    mc_ctx *ctx;
    apr_pool_t *pool;
} value_search;

/* mc_upkeep.known */
static bool
take_group_values(void *baton, const mc_store_group *group)
{
    value_search *search = baton;
    if (group->tileset == NULL || group->grid == NULL || group->dim == NULL) {
        search->untold = true;
        return true;
    }
    if (strcmp(group->tileset, search->tileset->name) != 0 || strcmp(group->grid, search->grid->name) != 0)
        return true;
    for (int i = 0; i < search->found->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(search->found, i, const char *), group->dim) == 0)
            return true;
    APR_ARRAY_PUSH(search->found, const char *) = apr_pstrdup(search->pool, group->dim);
    return true;
}

static void
look_for_values(void *baton, mc_cache *part)
{
    value_search *search = baton;
    const mc_upkeep task = { .count = true, .known = take_group_values, .baton = search };
    search->untold = search->untold || !mc_cache_tells_groups(part);
    if (search->error == MC_OK && !search->untold)
        search->error = mc_cache_upkeep(part, &task, search->ctx);
}

static mc_error *
search_values(value_search *search, const mc_copy *copy)
{
    mc_runtime *runtime;
    MC_TRY(mc_runtime_create(&runtime, copy->from.config, 1, false, copy->log, copy->pool));
    mc_ctx ctx = { .pool = copy->pool, .process = mc_runtime_process(runtime), .log = copy->log };
    search->ctx = &ctx;
    mc_cache_parts(copy->from.cache != NULL ? copy->from.cache : search->tileset->cache, look_for_values, search);
    mc_runtime_destroy(runtime);
    return search->error;
}

/* NULL: it has too few values or too many, or others than those that are given. */
static apr_table_t *
split_stored_values(const mc_tileset *tileset, const char *values, const apr_table_t *given, apr_pool_t *pool)
{
    apr_table_t *table = apr_table_make(pool, tileset->dimension_count + 1);
    for (int i = tileset->dimension_count - 1; i >= 0; i--) {
        size_t size = i == 0 ? strlen(values) : strcspn(values, "#");
        if (i > 0 && values[size] != '#')
            return NULL;
        const char *name = tileset->dimensions[i]->name, *value = apr_pstrmemdup(pool, values, size);
        const char *wanted = apr_table_get(given, name);
        if (wanted != NULL && strcmp(wanted, value) != 0)
            return NULL;
        apr_table_set(table, name, value);
        values += size + (i > 0);
    }
    return table;
}

const char *
mc_copy_list_values(apr_array_header_t **list, const mc_copy *copy, const mc_tileset *tileset, const mc_grid *grid)
{
    const apr_table_t *given = copy->options->seed.dimensions;
    const apr_array_header_t *pairs = apr_table_elts(given);
    apr_pool_t *pool = copy->pool;
    *list = apr_array_make(pool, 4, sizeof(apr_table_t *));
    for (int i = 0; i < pairs->nelts; i++) {
        const char *name = APR_ARRAY_IDX(pairs, i, apr_table_entry_t).key;
        if (mc_tileset_dimension(tileset, name, true) < 0)
            return mc_tileset_lacks_dimension(tileset, name, pool);
    }
    if (pairs->nelts == tileset->dimension_count) {
        APR_ARRAY_PUSH(*list, apr_table_t *) = apr_table_copy(pool, given);
        return NULL;
    }
    value_search search = {
        .tileset = tileset, .grid = grid, .found = apr_array_make(pool, 4, sizeof(const char *)), .pool = pool
    };
    mc_error *error = search_values(&search, copy);
    if (error != MC_OK)
        return mc_error_chain(error, pool);
    if (search.untold)
        return apr_psprintf(pool,
                            "the store of tileset \"%s\" does not tell the values of dimensions of its tiles: "
                            "--dimension names all of them",
                            tileset->name);
    for (int i = 0; i < search.found->nelts; i++) {
        apr_table_t *values = split_stored_values(tileset, APR_ARRAY_IDX(search.found, i, const char *), given, pool);
        if (values != NULL)
            APR_ARRAY_PUSH(*list, apr_table_t *) = values;
    }
    return NULL;
}
