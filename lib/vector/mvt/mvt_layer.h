/* A layer of a vector tile in the making: encoded features, and the values that the features share. */
#ifndef MC_VECTOR_MVT_MVT_LAYER_H
#define MC_VECTOR_MVT_MVT_LAYER_H

#include <string.h>

#include "compress/quick_deflate.h"
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

/* Of an encoded feature; they lie one behind the other. */
typedef struct mc_mvt_record {
    uint32_t bytes; /* with the tag and length in front of it */
    uint32_t size;  /* of the whole feature's geometry before it was cut, in units: its longer side */
    uint32_t cost;  /* about how many bytes it adds to the tile */
} mc_mvt_record;

typedef struct mc_mvt_value {
    size_t at; /* of the Value message in `texts`, behind its tag and length */
    uint32_t size;
    uint32_t hash;
} mc_mvt_value;

/* Places of values by their hash (mvt_values.c). */
typedef struct mc_mvt_table {
    uint32_t *slots;
    size_t slot_count;
} mc_mvt_table;

typedef struct mc_mvt_layer {
    const char *name;
    const mc_field *fields;
    int field_count;
    bool ids;
    mc_byte_buffer features,
        texts; /* encoded features and values, each with its tag and length, as the layer has them */
    mc_byte_buffer records /* mc_mvt_record */, values /* mc_mvt_value */;
    mc_byte_buffer tags;    /* uint32_t: of the feature that is added, a field and its value in turn */
    mc_mvt_table tables[2]; /* of the values that are no whole numbers, and of those that are */
    bool failed;
} mc_mvt_layer_data;

static inline int
mc_mvt_record_count(const mc_mvt_layer_data *layer)
{
    return (int)(layer->records.size / sizeof(mc_mvt_record));
}

enum {
    MC_MVT_HEAD = 6, /* bytes of a tag and a length in front of a message, at most */
    /* tags: field numbers, with the type of what follows: 0 a number, 2 a length and bytes */
    MC_MVT_LAYER_FEATURE = 2 << 3 | 2,
    MC_MVT_LAYER_VALUE = 4 << 3 | 2,
    MC_MVT_FEATURE_ID = 1 << 3,
    MC_MVT_FEATURE_TAGS = 2 << 3 | 2,
};

static inline uint8_t *
mc_mvt_head(uint8_t *at, int tag, size_t size)
{
    *at++ = (uint8_t)tag;
    return mc_varint(at, size);
}

static inline size_t
mc_mvt_head_size(size_t size)
{
    return 1 + mc_varint_size(size);
}

static inline bool
mc_mvt_layer_has_failed(const mc_mvt_layer_data *layer)
{
    return layer->failed || layer->features.failed || layer->tags.failed || layer->records.failed ||
           layer->values.failed || layer->texts.failed;
}

void mc_mvt_layer_free(mc_mvt_layer_data *layer);

/* ---- mvt_values.c */

/* The tags of a feature's values, in layer->tags; returns about how many bytes they and new values add to the tile. */
uint32_t mc_mvt_layer_tags(mc_mvt_layer_data *layer, const char *const *values, const int64_t *wholes);

/* Forgets the values whose place is 0; the places of all others become their new indexes. */
void mc_mvt_layer_keep_values(mc_mvt_layer_data *layer, uint32_t *places);

/* ---- mvt_write.c */

/* A feature that is added. */
typedef struct mc_mvt_added {
    int64_t id;            /* below zero: none */
    uint32_t size;         /* as a record has it */
    const mc_shape *shape; /* not empty */
    mc_shape_point origin; /* the tile's upper left corner */
    const char *const *values;
    const int64_t *wholes; /* as a feature has them */
} mc_mvt_added;

/* Encodes a feature (MVT 2.1, 4.2 and 4.3); returns its cost. */
uint32_t mc_mvt_layer_add(mc_mvt_layer_data *layer, const mc_mvt_added *added);

/* Bytes of the encoded layer, without the tag and length in front of it. */
size_t mc_mvt_layer_size(const mc_mvt_layer_data *layer, int extent);

enum { MC_MVT_LAYER_PIECES = 5 };

/* A tile in pieces, which lie where they are, and what of the tile lies nowhere else. */
typedef struct mc_mvt_pieces {
    mc_deflate_part *parts; /* room for MC_MVT_LAYER_PIECES of each layer, and one more */
    int count;
    uint8_t *at; /* behind the last one that lies nowhere else */
} mc_mvt_pieces;

void mc_mvt_add_piece(mc_mvt_pieces *pieces, const void *data, size_t size);

/* The tag and length of a layer, and the layer. */
void mc_mvt_layer_pieces(mc_mvt_pieces *pieces, const mc_mvt_layer_data *layer, int extent);

/* ---- mvt_keep.c */

/* Keeps the features for which `keep` is set, with their values, numbered anew. */
void mc_mvt_layer_keep(mc_mvt_layer_data *layer, const bool *keep);

#endif
