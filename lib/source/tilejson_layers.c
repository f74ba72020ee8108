/* Reading the layers of TileJSON: see tilejson_layers.h. */
#include "source/tilejson_layers.h"

#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/json.h"
#include "text/text.h"

enum { TOLD_LAYERS_MAX = 500, TOLD_FIELDS_MAX = 1000 };

typedef struct told_layers {
    apr_array_header_t *layers;
    int levels;
} told_layers;

static mc_vector_layer_info *
last_told_layer(const told_layers *told)
{
    return &APR_ARRAY_IDX(told->layers, told->layers->nelts - 1, mc_vector_layer_info);
}

static void
take_layer_field(told_layers *told, const char *name, const char *text)
{
    static const char field[] = "fields.";
    mc_vector_layer_info *layer = last_told_layer(told);
    apr_pool_t *pool = told->layers->pool;
    if (strcmp(name, "id") == 0) {
        layer->name = apr_pstrdup(pool, text);
    } else if (strcmp(name, "minzoom") == 0 || strcmp(name, "maxzoom") == 0) {
        int level;
        if (mc_parse_int(&level, text, 0, told->levels))
            *(name[1] == 'i' ? &layer->minzoom : &layer->maxzoom) = level;
    } else if (strncmp(name, field, sizeof(field) - 1) == 0 && layer->attributes->nelts < TOLD_FIELDS_MAX) {
        mc_vector_attribute *attribute = apr_array_push(layer->attributes);
        attribute->name = apr_pstrdup(pool, name + sizeof(field) - 1);
        attribute->kind = strcasecmp(text, "Number") == 0    ? MC_ATTRIBUTE_NUMBER
                          : strcasecmp(text, "Boolean") == 0 ? MC_ATTRIBUTE_BOOLEAN
                                                             : MC_ATTRIBUTE_TEXT;
    }
}

/* Whether the layer begun last has a name, which no other one has. */
static bool
is_last_layer_named(const told_layers *told)
{
    const mc_vector_layer_info *last = last_told_layer(told);
    if (last->name == NULL || *last->name == '\0')
        return false;
    for (int i = 0; i + 1 < told->layers->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(told->layers, i, mc_vector_layer_info).name, last->name) == 0)
            return false;
    return true;
}

/* mc_json_field */
static mc_error *
take_told_field(void *baton, const char *name, const char *text)
{
    told_layers *told = baton;
    apr_array_header_t *layers = told->layers;
    if (name != NULL) {
        take_layer_field(told, name, text);
        return MC_OK;
    }
    if (layers->nelts > 0 && !is_last_layer_named(told))
        apr_array_pop(layers);
    if (layers->nelts == TOLD_LAYERS_MAX)
        return mc_error_create(layers->pool, MC_ERR_LIMIT, "there are more than %d layers", TOLD_LAYERS_MAX);
    APR_ARRAY_PUSH(layers, mc_vector_layer_info) =
        (mc_vector_layer_info){ .maxzoom = told->levels,
                                .attributes = apr_array_make(layers->pool, 4, sizeof(mc_vector_attribute)) };
    return MC_OK;
}

mc_error *
mc_tilejson_layers(apr_array_header_t **layers, const char *json, size_t size, int levels, apr_pool_t *pool)
{
    told_layers told = { apr_array_make(pool, 8, sizeof(mc_vector_layer_info)), levels };
    *layers = told.layers;
    MC_TRY(mc_json_items(json, size, "vector_layers", take_told_field, &told, pool));
    if (told.layers->nelts > 0 && !is_last_layer_named(&told))
        apr_array_pop(told.layers);
    return MC_OK;
}
