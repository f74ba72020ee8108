/* The layers of vector tiles, as documents tell them (TileJSON 3.0.0, vector_layers; MBTiles 1.3, json). */
#include <apr_strings.h>
#include <string.h>

#include "mapcache/cache.h"
#include "mapcache/source.h"
#include "mapcache/tileset.h"
#include "source/tilejson_layers.h"
#include "text/json_writer.h"

static void
write_tilejson_layer(mc_json_writer *json, const mc_vector_layer_info *layer, const mc_grid_link *link)
{
    static const char *const kinds[] = {
        [MC_ATTRIBUTE_TEXT] = "String", [MC_ATTRIBUTE_NUMBER] = "Number", [MC_ATTRIBUTE_BOOLEAN] = "Boolean"
    };
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", layer->name);
    mc_json_integer(json, "minzoom", layer->minzoom > link->minzoom ? layer->minzoom : link->minzoom);
    mc_json_integer(json, "maxzoom", layer->maxzoom < link->maxzoom ? layer->maxzoom : link->maxzoom);
    mc_json_open_object(json, "fields");
    for (int i = 0; i < layer->attributes->nelts; i++) {
        const mc_vector_attribute *field = &APR_ARRAY_IDX(layer->attributes, i, mc_vector_attribute);
        mc_json_string(json, field->name, kinds[field->kind]);
    }
    mc_json_close(json);
    mc_json_close(json);
}

static const char *
write_tilejson_layers(const apr_array_header_t *layers, const mc_grid_link *link, apr_pool_t *pool)
{
    mc_json_writer *writer = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_array(writer, NULL);
    for (int i = 0; layers != NULL && i < layers->nelts; i++)
        write_tilejson_layer(writer, &APR_ARRAY_IDX(layers, i, mc_vector_layer_info), link);
    mc_json_close(writer);
    return mc_json_finish_text(writer);
}

static mc_error *
ask_source_layers(apr_array_header_t **layers, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_source *source = tileset->source;
    *layers = NULL;
    return source == NULL || source->ops->vector_layers == NULL ? MC_OK
                                                                : source->ops->vector_layers(layers, source, ctx, pool);
}

/* Not the store's: the store asks while it is written to. */
mc_error *
mc_tileset_vector_layers(const char **json, const void *baton, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = baton;
    const mc_grid_link *link = mc_tileset_link(tileset, key->grid->name);
    apr_array_header_t *layers;
    *json = NULL;
    if (!mc_format_is_vector(tileset->format) || link == NULL)
        return MC_OK;
    MC_TRY(ask_source_layers(&layers, tileset, ctx, pool));
    *json = write_tilejson_layers(layers, link, pool);
    return MC_OK;
}

/* --- as a store tells them ---------------------------------------------------------------------------------------- */

enum { STORED_BYTES_MAX = 4 << 20 };

/* What other programs have written of the layers need not be right: then they are not known. */
static apr_array_header_t *
ask_store_layers(const mc_tileset *tileset, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_buf *json = NULL;
    apr_array_header_t *layers = NULL;
    const mc_tile_key key = {
        .tileset = tileset->name, .grid = grid, .extension = mc_tileset_extension(tileset), .renderable = true
    };
    mc_cache *cache = tileset->cache;
    if (cache == NULL || cache->ops->metadata == NULL || tileset->dimension_count > 0)
        return NULL;
    mc_error *error = cache->ops->metadata(&json, cache, &key, ctx, pool);
    if (error == MC_OK && json != NULL && json->size <= STORED_BYTES_MAX)
        error = mc_tilejson_layers(&layers, (const char *)json->data, json->size, grid->level_count - 1, pool);
    if (error != MC_OK) {
        mc_log_error(ctx, MC_LOG_WARN,
                     mc_error_wrap(pool, error, error->kind, "the layers of cache \"%s\" are not known", cache->name));
        return NULL;
    }
    return layers == NULL || layers->nelts == 0 ? NULL : layers;
}

mc_error *
mc_tileset_layers(apr_array_header_t **layers, const mc_tileset *tileset, const mc_grid *grid, mc_ctx *ctx,
                  apr_pool_t *pool)
{
    MC_TRY(ask_source_layers(layers, tileset, ctx, pool));
    if (*layers == NULL && mc_format_is_vector(tileset->format))
        *layers = ask_store_layers(tileset, grid, ctx, pool);
    return MC_OK;
}

mc_error *
mc_tileset_layers_text(const char **json, const mc_tileset *tileset, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_grid_link *link = mc_tileset_link(tileset, grid->name);
    apr_array_header_t *layers;
    *json = NULL;
    if (!mc_format_is_vector(tileset->format) || link == NULL)
        return MC_OK;
    MC_TRY(mc_tileset_layers(&layers, tileset, grid, ctx, pool));
    *json = write_tilejson_layers(layers, link, pool);
    return MC_OK;
}
