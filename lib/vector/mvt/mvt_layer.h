/* A layer of a vector tile in the making: encoded features, and the values that the features share. */
#ifndef MC_VECTOR_MVT_MVT_LAYER_H
#define MC_VECTOR_MVT_MVT_LAYER_H

#include <string.h>

#include "vector/feature/feature.h"

/* Bytes that grow. `failed`: no memory; nothing more was added. */
typedef struct mc_byte_buffer {
    uint8_t *data;
    size_t size, room;
    bool failed;
} mc_byte_buffer;

uint8_t *mc_byte_buffer_grown(mc_byte_buffer *bytes, size_t more); /* as mc_byte_buffer_room, after making room */
void mc_byte_buffer_free(mc_byte_buffer *bytes);

/* Where to write `more` bytes; the caller adds to size. NULL: failed. */
static inline uint8_t *
mc_byte_buffer_room(mc_byte_buffer *bytes, size_t more)
{
    return bytes->room - bytes->size >= more && !bytes->failed ? bytes->data + bytes->size
                                                               : mc_byte_buffer_grown(bytes, more);
}

static inline void
mc_byte_buffer_add(mc_byte_buffer *bytes, const void *data, size_t size)
{
    uint8_t *at = mc_byte_buffer_room(bytes, size);
    if (at == NULL)
        return;
    memcpy(at, data, size);
    bytes->size += size;
}

/* Writes a number in 7 bits a byte, at most 10 bytes. Returns the place behind the number. */
static inline uint8_t *
mc_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline size_t
mc_varint_size(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

typedef enum mc_mvt_type { MC_MVT_POINT = 1, MC_MVT_LINE = 2, MC_MVT_POLYGON = 3 } mc_mvt_type;

typedef struct mc_mvt_record {
    int64_t id;
    size_t geometry; /* bytes in the layer's geometry */
    uint32_t geometry_size;
    uint32_t tag_count; /* numbers in the layer's tags: of a field and its value in turn */
    size_t tags;
    uint32_t size;       /* of the whole feature's geometry before it was cut, in units: its longer side */
    uint32_t cost;       /* about how many bytes it adds to the tile */
    uint32_t tags_size;  /* encoded; set by mc_mvt_layer_measure, as the next one */
    size_t message_size; /* of the feature */
    mc_mvt_type type;
} mc_mvt_record;

typedef struct mc_mvt_value {
    size_t at; /* an encoded Value message in `texts` */
    uint32_t size;
    uint32_t hash;
} mc_mvt_value;

typedef struct mc_mvt_slot {
    uint32_t hash, place; /* place: index of the value + 1; 0: free */
} mc_mvt_slot;

typedef struct mc_mvt_layer {
    const char *name;
    const mc_field *fields;
    int field_count;
    bool ids;
    size_t size; /* encoded, without the tag and length in front of it */
    mc_byte_buffer geometry, tags /* uint32_t */, records /* mc_mvt_record */, values /* mc_mvt_value */, texts;
    struct mc_mvt_slot *slots; /* of a table of the values by their hash */
    size_t slot_count;
    bool failed;
} mc_mvt_layer_data;

static inline int
mc_mvt_record_count(const mc_mvt_layer_data *layer)
{
    return (int)(layer->records.size / sizeof(mc_mvt_record));
}

void mc_mvt_layer_free(mc_mvt_layer_data *layer);

/* Adds the tags of a feature's values; *cost grows by the bytes of new values. */
void mc_mvt_layer_tags(mc_mvt_layer_data *layer, mc_mvt_record *record, const char *const *values, uint32_t *cost);

/* Keeps the records for which `keep` is set, with their tags and values. */
void mc_mvt_layer_keep(mc_mvt_layer_data *layer, const bool *keep);

/* Measures the encoded layer and each of its features; mc_mvt_layer_write encodes a measured layer. */
void mc_mvt_layer_measure(mc_mvt_layer_data *layer, int extent);
uint8_t *mc_mvt_layer_write(uint8_t *at, const mc_mvt_layer_data *layer, int extent);

/* A geometry as commands (MVT 2.1, 4.3), at the end of the layer's geometry. `origin`: the tile's upper left corner. */
void mc_mvt_layer_geometry(mc_mvt_layer_data *layer, mc_mvt_record *record, const mc_shape *shape,
                           mc_shape_point origin);

#endif
