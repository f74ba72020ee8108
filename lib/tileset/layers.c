/* The layers of vector tiles, as documents tell them (TileJSON 3.0.0, vector_layers; MBTiles 1.3, json). */
#include <apr_strings.h>

#include "mapcache/source.h"
#include "mapcache/tileset.h"
#include "text/text.h"

static const char *
tilejson_text(const char *text, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "\"", mc_json_escape(text, pool), "\"", NULL);
}

static const char *
write_tilejson_layer(const mc_vector_layer_info *layer, const mc_grid_link *link, apr_pool_t *pool)
{
    static const char *const kinds[] = {
        [MC_ATTRIBUTE_TEXT] = "String", [MC_ATTRIBUTE_NUMBER] = "Number", [MC_ATTRIBUTE_BOOLEAN] = "Boolean"
    };
    apr_array_header_t *fields = apr_array_make(pool, 16, sizeof(const char *));
    for (int i = 0; i < layer->attributes->nelts; i++) {
        const mc_vector_attribute *field = &APR_ARRAY_IDX(layer->attributes, i, mc_vector_attribute);
        APR_ARRAY_PUSH(fields, const char *) =
            apr_pstrcat(pool, tilejson_text(field->name, pool), ":\"", kinds[field->kind], "\"", NULL);
    }
    return apr_psprintf(pool, "{\"id\":%s,\"minzoom\":%d,\"maxzoom\":%d,\"fields\":{%s}}",
                        tilejson_text(layer->name, pool),
                        layer->minzoom > link->minzoom ? layer->minzoom : link->minzoom,
                        layer->maxzoom < link->maxzoom ? layer->maxzoom : link->maxzoom,
                        fields->nelts > 0 ? apr_array_pstrcat(pool, fields, ',') : "");
}

mc_error *
mc_tileset_vector_layers(const char **json, const void *baton, const mc_tile_key *key, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_tileset *tileset = baton;
    const mc_grid_link *link = mc_tileset_link(tileset, key->grid->name);
    mc_source *source = tileset->source;
    apr_array_header_t *layers = NULL, *written = apr_array_make(pool, 8, sizeof(const char *));
    *json = NULL;
    if (!mc_format_is_vector(tileset->format) || link == NULL)
        return MC_OK;
    if (source != NULL && source->ops->vector_layers != NULL)
        MC_TRY(source->ops->vector_layers(&layers, source, ctx, pool));
    for (int i = 0; layers != NULL && i < layers->nelts; i++)
        APR_ARRAY_PUSH(written, const char *) =
            write_tilejson_layer(&APR_ARRAY_IDX(layers, i, mc_vector_layer_info), link, pool);
    *json = apr_pstrcat(pool, "[", written->nelts > 0 ? apr_array_pstrcat(pool, written, ',') : "", "]", NULL);
    return MC_OK;
}
