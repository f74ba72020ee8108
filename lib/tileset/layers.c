/* The layers of vector tiles, as documents tell them (TileJSON 3.0.0, vector_layers; MBTiles 1.3, json). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "mapcache/cache.h"
#include "mapcache/source.h"
#include "mapcache/tileset.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/text.h"

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

enum { STORED_LAYERS_MAX = 500, STORED_FIELDS_MAX = 1000, STORED_BYTES_MAX = 4 << 20 };

typedef struct stored_layers {
    apr_array_header_t *layers;
    int levels;
} stored_layers;

static mc_vector_layer_info *
last_stored_layer(const stored_layers *stored)
{
    return &APR_ARRAY_IDX(stored->layers, stored->layers->nelts - 1, mc_vector_layer_info);
}

static void
take_layer_field(stored_layers *stored, const char *name, const char *text)
{
    static const char field[] = "fields.";
    mc_vector_layer_info *layer = last_stored_layer(stored);
    apr_pool_t *pool = stored->layers->pool;
    if (strcmp(name, "id") == 0) {
        layer->name = apr_pstrdup(pool, text);
    } else if (strcmp(name, "minzoom") == 0 || strcmp(name, "maxzoom") == 0) {
        int level;
        if (mc_parse_int(&level, text, 0, stored->levels))
            *(name[1] == 'i' ? &layer->minzoom : &layer->maxzoom) = level;
    } else if (strncmp(name, field, sizeof(field) - 1) == 0 && layer->attributes->nelts < STORED_FIELDS_MAX) {
        mc_vector_attribute *attribute = apr_array_push(layer->attributes);
        attribute->name = apr_pstrdup(pool, name + sizeof(field) - 1);
        attribute->kind = strcasecmp(text, "Number") == 0    ? MC_ATTRIBUTE_NUMBER
                          : strcasecmp(text, "Boolean") == 0 ? MC_ATTRIBUTE_BOOLEAN
                                                             : MC_ATTRIBUTE_TEXT;
    }
}

/* Whether the layer begun last has a name, which no other one has. */
static bool
is_last_layer_named(const stored_layers *stored)
{
    const mc_vector_layer_info *last = last_stored_layer(stored);
    if (last->name == NULL || *last->name == '\0')
        return false;
    for (int i = 0; i + 1 < stored->layers->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(stored->layers, i, mc_vector_layer_info).name, last->name) == 0)
            return false;
    return true;
}

/* mc_json_field */
static mc_error *
take_stored_field(void *baton, const char *name, const char *text)
{
    stored_layers *stored = baton;
    apr_array_header_t *layers = stored->layers;
    if (name != NULL) {
        take_layer_field(stored, name, text);
        return MC_OK;
    }
    if (layers->nelts > 0 && !is_last_layer_named(stored))
        apr_array_pop(layers);
    if (layers->nelts == STORED_LAYERS_MAX)
        return mc_error_create(layers->pool, MC_ERR_LIMIT, "there are more than %d layers", STORED_LAYERS_MAX);
    APR_ARRAY_PUSH(layers, mc_vector_layer_info) =
        (mc_vector_layer_info){ .maxzoom = stored->levels,
                                .attributes = apr_array_make(layers->pool, 4, sizeof(mc_vector_attribute)) };
    return MC_OK;
}

/* What other programs have written of the layers need not be right: then they are not known. */
static apr_array_header_t *
ask_store_layers(const mc_tileset *tileset, const mc_grid *grid, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_buf *json = NULL;
    stored_layers stored = { apr_array_make(pool, 8, sizeof(mc_vector_layer_info)), grid->level_count - 1 };
    const mc_tile_key key = {
        .tileset = tileset->name, .grid = grid, .extension = mc_tileset_extension(tileset), .renderable = true
    };
    mc_cache *cache = tileset->cache;
    if (cache == NULL || cache->ops->metadata == NULL || tileset->dimension_count > 0)
        return NULL;
    mc_error *error = cache->ops->metadata(&json, cache, &key, ctx, pool);
    if (error == MC_OK && json != NULL && json->size <= STORED_BYTES_MAX)
        error = mc_json_items((const char *)json->data, json->size, "vector_layers", take_stored_field, &stored, pool);
    if (error != MC_OK) {
        mc_log_error(ctx, MC_LOG_WARN,
                     mc_error_wrap(pool, error, error->kind, "the layers of cache \"%s\" are not known", cache->name));
        return NULL;
    }
    if (stored.layers->nelts > 0 && !is_last_layer_named(&stored))
        apr_array_pop(stored.layers);
    return stored.layers->nelts == 0 ? NULL : stored.layers;
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
