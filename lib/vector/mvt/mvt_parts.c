/* Reading the layers of encoded tiles: see mvt_parts.h. */
#include "vector/mvt/mvt_parts.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "vector/mvt/mvt.h"

enum {
    /* types of protocol buffers: what follows the number of a field */
    VARINT = 0,
    EIGHT_BYTES = 1,
    SIZED = 2,
    FOUR_BYTES = 5,
    /* numbers of fields */
    TILE_LAYER = 3,
    LAYER_NAME = 1,
    LAYER_FEATURE = 2,
    LAYER_KEY = 3,
    LAYER_VALUE = 4,
    LAYER_EXTENT = 5,
    LAYER_VERSION = 15,
    FEATURE_TYPE = 3,
    VARINT_BITS = 64,
    QUOTED = 100, /* bytes of a name in a message */
};

typedef struct mc_mvt_part_name {
    size_t at; /* in the layers */
    size_t size;
} mc_mvt_part_name;

typedef struct mvt_field {
    const uint8_t *begin; /* of the field, its number included */
    const uint8_t *bytes; /* of a sized one */
    size_t size;
    uint64_t value; /* of a varint */
    uint64_t number;
    int type;
} mvt_field;

/* False where the bytes end before the number does, or the number has more than 64 bits. */
static bool
read_mvt_varint(uint64_t *value, const uint8_t **at, const uint8_t *end)
{
    *value = 0;
    for (int shift = 0; shift < VARINT_BITS && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The field at *at, which moves behind the field. */
static bool
read_mvt_field(mvt_field *field, const uint8_t **at, const uint8_t *end)
{
    uint64_t key;
    field->begin = *at;
    if (!read_mvt_varint(&key, at, end) || key >> 3 == 0)
        return false;
    field->number = key >> 3;
    field->type = (int)(key & 7);
    field->size = 0;
    if (field->type == VARINT)
        return read_mvt_varint(&field->value, at, end);
    uint64_t size = field->type == EIGHT_BYTES ? 8 : 4;
    if (field->type == SIZED) {
        if (!read_mvt_varint(&size, at, end))
            return false;
    } else if (field->type != EIGHT_BYTES && field->type != FOUR_BYTES) {
        return false;
    }
    if (size > (uint64_t)(end - *at))
        return false;
    field->bytes = *at;
    field->size = (size_t)size;
    *at += size;
    return true;
}

/* Whether the bytes are fields, one after the other, of the types that those of a feature have. */
static bool
is_feature(const uint8_t *at, const uint8_t *end)
{
    mvt_field field;
    while (at < end) {
        if (!read_mvt_field(&field, &at, end))
            return false;
        int type = field.number == 1 || field.number == FEATURE_TYPE ? VARINT : SIZED;
        if (field.number >= 1 && field.number <= 4 && field.type != type)
            return false;
    }
    return true;
}

/* A name is UTF-8 without zero bytes. */
static bool
is_layer_name(const uint8_t *bytes, size_t size, apr_pool_t *pool)
{
    const char *text = apr_pstrmemdup(pool, (const char *)bytes, size), *at = text;
    for (size_t step; *at != '\0'; at += step) {
        step = mc_utf8_size(at);
        if (step == 0)
            return false;
    }
    return size > 0 && (size_t)(at - text) == size;
}

typedef struct mvt_part_layer {
    const uint8_t *name;
    size_t name_size;
    int64_t features;
    bool versioned;
} mvt_part_layer;

/* A field of a layer; NULL, or what is wrong. */
static const char *
take_layer_part(mvt_part_layer *layer, const mvt_field *field, apr_pool_t *pool)
{
    bool plain = field->number == LAYER_EXTENT || field->number == LAYER_VERSION;
    bool known = plain || (field->number >= LAYER_NAME && field->number <= LAYER_VALUE);
    if (known && field->type != (plain ? VARINT : SIZED))
        return "a field of a layer has another type";
    if (field->number == LAYER_NAME) {
        if (layer->name != NULL || !is_layer_name(field->bytes, field->size, pool))
            return "a layer's name is empty, given twice or no text";
        layer->name = field->bytes;
        layer->name_size = field->size;
    } else if (field->number == LAYER_FEATURE) {
        layer->features++;
        if (!is_feature(field->bytes, field->bytes + field->size))
            return "a feature is no message";
    } else if (field->number == LAYER_EXTENT && (field->value == 0 || field->value > UINT32_MAX)) {
        return "a layer's extent is no size";
    } else if (field->number == LAYER_VERSION) {
        layer->versioned = field->value == 1 || field->value == 2;
        if (!layer->versioned)
            return "a layer's version is neither 1 nor 2";
    }
    return NULL;
}

static const char *
read_part_layer(mvt_part_layer *layer, const mvt_field *message, apr_pool_t *pool)
{
    const uint8_t *at = message->bytes, *end = at + message->size;
    mvt_field field;
    *layer = (mvt_part_layer){ 0 };
    while (at < end) {
        if (!read_mvt_field(&field, &at, end))
            return "a layer ends in the middle of a field";
        const char *wrong = take_layer_part(layer, &field, pool);
        if (wrong != NULL)
            return wrong;
    }
    if (layer->name == NULL)
        return "a layer has no name";
    return layer->versioned ? NULL : "a layer has no version";
}

static const mc_mvt_part_name *
part_names(const mc_mvt_parts *parts, int *count)
{
    *count = (int)(parts->names.size / sizeof(mc_mvt_part_name));
    return (const mc_mvt_part_name *)(const void *)parts->names.data;
}

static bool
has_name(const mc_mvt_parts *parts, const void *name, size_t size)
{
    int count;
    const mc_mvt_part_name *names = part_names(parts, &count);
    for (int i = 0; i < count; i++)
        if (names[i].size == size && memcmp(parts->layers.data + names[i].at, name, size) == 0)
            return true;
    return false;
}

static const char *
add_part_layer(mc_mvt_parts *parts, const mvt_field *message, apr_pool_t *pool)
{
    mvt_part_layer layer;
    int count;
    const char *wrong = read_part_layer(&layer, message, pool);
    if (wrong != NULL || layer.features == 0)
        return wrong;
    (void)part_names(parts, &count);
    if (count == MC_MVT_LAYERS)
        return apr_psprintf(pool, "it has more than %d layers", MC_MVT_LAYERS);
    if (has_name(parts, layer.name, layer.name_size))
        return apr_psprintf(pool, "layer \"%.*s\" is there twice",
                            layer.name_size > QUOTED ? QUOTED : (int)layer.name_size, (const char *)layer.name);
    const mc_mvt_part_name name = { parts->layers.size + (size_t)(layer.name - message->begin), layer.name_size };
    mc_byte_buffer_add(&parts->layers, message->begin, (size_t)(message->bytes + message->size - message->begin));
    mc_byte_buffer_add(&parts->names, &name, sizeof(name));
    parts->features += layer.features;
    return NULL;
}

const char *
mc_mvt_parts_add(mc_mvt_parts *parts, const void *bytes, size_t size, apr_pool_t *pool)
{
    const uint8_t *at = bytes, *end = size == 0 ? at : at + size; /* no bytes may have no address */
    const size_t layers = parts->layers.size, names = parts->names.size;
    const int64_t features = parts->features;
    const char *wrong = NULL;
    mvt_field field;
    while (at < end && wrong == NULL) {
        if (!read_mvt_field(&field, &at, end))
            wrong = "it is no message of protocol buffers";
        else if (field.number == TILE_LAYER)
            wrong = field.type == SIZED ? add_part_layer(parts, &field, pool) : "a layer is no message";
    }
    if (wrong != NULL) {
        parts->layers.size = layers;
        parts->names.size = names;
        parts->features = features;
    }
    return wrong;
}

bool
mc_mvt_parts_have(const mc_mvt_parts *parts, const char *name)
{
    return has_name(parts, name, strlen(name));
}

void
mc_mvt_parts_free(mc_mvt_parts *parts)
{
    mc_byte_buffer_free(&parts->layers);
    mc_byte_buffer_free(&parts->names);
    *parts = (mc_mvt_parts){ 0 };
}
