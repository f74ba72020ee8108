/* Keys of tiles: of one value for each dimension, of sub-tiles, and of assembled tiles by the values of the request. */
#include <apr_strings.h>

#include "tileset/assembly.h"
#include "tileset/tileset_private.h"

mc_tile_key
mc_assembly_key(const mc_tileset *tileset, const mc_grid *grid, int z, int x, int y,
                const mc_dimension_value *dimensions)
{
    return (mc_tile_key){ .tileset = tileset->name,
                          .grid = grid,
                          .z = z,
                          .x = x,
                          .y = y,
                          .dimension_count = tileset->dimension_count,
                          .dimensions = dimensions,
                          .extension = mc_tileset_extension(tileset),
                          .mime = tileset->format == NULL ? NULL : tileset->format->mime,
                          .renderable = mc_tileset_renders(tileset) && !tileset->subdimensions_read_only,
                          .client_named = tileset->client_named };
}

/* The key of the assembled tile: the values as requested, whoever resolves them to what. */
void
mc_tileset_requested_key(mc_tile_key *key, const mc_tile_request *wanted, apr_pool_t *pool)
{
    const mc_tileset *tileset = wanted->tileset;
    mc_dimension_value *dimensions = apr_pcalloc(pool, sizeof(*dimensions) * (size_t)(tileset->dimension_count + 1));
    for (int i = 0; i < tileset->dimension_count; i++) {
        const char *value = wanted->values == NULL ? NULL : wanted->values[i];
        dimensions[i].name = tileset->dimensions[i]->name;
        dimensions[i].value = value == NULL ? tileset->dimensions[i]->default_value : value;
    }
    *key = mc_assembly_key(tileset, wanted->link->grid, wanted->z, wanted->x, wanted->y, dimensions);
    key->renderable = true; /* it may not be there yet */
}

mc_error *
mc_tileset_key(mc_tile_key *key, const mc_tile_request *wanted, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_tileset *tileset = wanted->tileset;
    *key = (mc_tile_key){ .tileset = tileset->name,
                          .grid = wanted->link->grid,
                          .z = wanted->z,
                          .x = wanted->x,
                          .y = wanted->y,
                          .dimension_count = tileset->dimension_count,
                          .extension = mc_tileset_extension(tileset),
                          .mime = tileset->format == NULL ? NULL : tileset->format->mime,
                          .renderable = mc_tileset_renders(tileset),
                          .client_named = tileset->client_named };
    if (tileset->dimension_count == 0)
        return MC_OK;
    if (tileset->assembly != MC_ASSEMBLE_NONE) {
        mc_tileset_requested_key(key, wanted, pool);
        return MC_OK;
    }
    mc_dimension_value *dimensions = apr_pcalloc(pool, sizeof(*dimensions) * (size_t)tileset->dimension_count);
    for (int i = 0; i < tileset->dimension_count; i++) {
        mc_dimension *dimension = tileset->dimensions[i];
        const char *value =
            wanted->values != NULL && wanted->values[i] != NULL ? wanted->values[i] : dimension->default_value;
        mc_dimension_query query = { tileset->name, wanted->link->grid, NULL, value };
        apr_array_header_t *values;
        MC_TRY(mc_dimension_resolve(&values, dimension, &query, ctx, pool));
        if (values->nelts == 0)
            return mc_error_located(pool, MC_ERR_NOT_FOUND, dimension->name, "dimension %s has nothing for \"%s\"",
                                    dimension->name, value);
        if (values->nelts > 1)
            return mc_error_create(pool, MC_ERR_LIMIT,
                                   "dimension %s stands for %d values at once, and no assembly is configured",
                                   dimension->name, values->nelts);
        dimensions[i] = (mc_dimension_value){ dimension->name, APR_ARRAY_IDX(values, 0, const char *),
                                              dimension->ops->from_backend };
    }
    key->dimensions = dimensions;
    return MC_OK;
}
