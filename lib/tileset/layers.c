/* The layers of vector tiles, as documents tell them (TileJSON 3.0.0, vector_layers; MBTiles 1.3, json). */
#include "mapcache/source.h"
#include "mapcache/tileset.h"
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

mc_error *
mc_tileset_vector_layers(const char **json, const void *baton, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = baton;
    const mc_grid_link *link = mc_tileset_link(tileset, key->grid->name);
    mc_source *source = tileset->source;
    apr_array_header_t *layers = NULL;
    *json = NULL;
    if (!mc_format_is_vector(tileset->format) || link == NULL)
        return MC_OK;
    if (source != NULL && source->ops->vector_layers != NULL)
        MC_TRY(source->ops->vector_layers(&layers, source, ctx, pool));
    mc_json_writer *writer = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_array(writer, NULL);
    for (int i = 0; layers != NULL && i < layers->nelts; i++)
        write_tilejson_layer(writer, &APR_ARRAY_IDX(layers, i, mc_vector_layer_info), link);
    mc_json_close(writer);
    *json = mc_json_finish_text(writer);
    return MC_OK;
}
