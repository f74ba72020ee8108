/* Geometry as commands and layers as messages of protocol buffers (MVT 2.1, 4). */
#include <string.h>

#include "vector/mvt/mvt_layer.h"

enum {
    MOVE_TO = 1,
    LINE_TO = 2,
    CLOSE_PATH = 7,
    /* field numbers, with the type of what follows: 0 a number, 2 a length and bytes */
    LAYER_NAME = 1 << 3 | 2,
    LAYER_FEATURE = 2 << 3 | 2,
    LAYER_KEY = 3 << 3 | 2,
    LAYER_VALUE = 4 << 3 | 2,
    LAYER_EXTENT = 5 << 3,
    LAYER_VERSION = 15 << 3,
    FEATURE_ID = 1 << 3,
    FEATURE_TAGS = 2 << 3 | 2,
    FEATURE_TYPE = 3 << 3,
    FEATURE_GEOMETRY = 4 << 3 | 2,
    VERSION = 2,
    STEP_BYTES = 10, /* of two coordinates, at most */
};

static uint8_t *
put_command(uint8_t *at, int command, int count)
{
    return mc_varint(at, (uint64_t)(uint32_t)(command | count << 3));
}

/* The way from the last vertex, each coordinate as an unsigned number whose lowest bit is the sign. */
static uint8_t *
put_step(uint8_t *at, mc_shape_point *from, mc_shape_point to)
{
    int32_t x = to.x - from->x, y = to.y - from->y;
    *from = to;
    at = mc_varint(at, (uint32_t)x << 1 ^ (uint32_t)(x >> 31));
    return mc_varint(at, (uint32_t)y << 1 ^ (uint32_t)(y >> 31));
}

static uint8_t *
put_parts(uint8_t *at, const mc_shape *shape, mc_shape_point last)
{
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        at = put_command(at, MOVE_TO, 1);
        at = put_step(at, &last, shape->points[begin]);
        at = put_command(at, LINE_TO, shape->ends[part] - begin - 1);
        for (int i = begin + 1; i < shape->ends[part]; i++)
            at = put_step(at, &last, shape->points[i]);
        if (shape->kind == MC_SHAPE_POLYGONS)
            at = put_command(at, CLOSE_PATH, 1);
    }
    return at;
}

void
mc_mvt_layer_geometry(mc_mvt_layer_data *layer, mc_mvt_record *record, const mc_shape *shape, mc_shape_point origin)
{
    static const mc_mvt_type types[] = {
        [MC_SHAPE_POINTS] = MC_MVT_POINT, [MC_SHAPE_LINES] = MC_MVT_LINE, [MC_SHAPE_POLYGONS] = MC_MVT_POLYGON
    };
    uint8_t *begin = mc_byte_buffer_room(&layer->geometry,
                                         ((size_t)shape->point_count + (size_t)shape->part_count * 2 + 1) * STEP_BYTES),
            *at = begin;
    if (begin == NULL)
        return;
    record->type = types[shape->kind];
    if (shape->kind == MC_SHAPE_POINTS) {
        at = put_command(at, MOVE_TO, shape->point_count);
        for (int i = 0; i < shape->point_count; i++)
            at = put_step(at, &origin, shape->points[i]);
    } else {
        at = put_parts(at, shape, origin);
    }
    record->geometry = layer->geometry.size;
    record->geometry_size = (uint32_t)(at - begin);
    layer->geometry.size += record->geometry_size;
}

static const uint32_t *
tags_of(const mc_mvt_layer_data *layer, const mc_mvt_record *record)
{
    return (const uint32_t *)(const void *)layer->tags.data + record->tags;
}

static size_t
tags_size(const mc_mvt_layer_data *layer, const mc_mvt_record *record)
{
    size_t size = 0;
    for (uint32_t i = 0; i < record->tag_count; i++)
        size += mc_varint_size(tags_of(layer, record)[i]);
    return size;
}

static size_t
block_size(size_t size)
{
    return 1 + mc_varint_size(size) + size;
}

static bool
record_has_id(const mc_mvt_layer_data *layer, const mc_mvt_record *record)
{
    return layer->ids && record->id >= 0;
}

static void
measure_feature(mc_mvt_record *record, const mc_mvt_layer_data *layer)
{
    record->message_size = 2 + block_size(record->geometry_size);
    record->tags_size = (uint32_t)tags_size(layer, record);
    if (record_has_id(layer, record))
        record->message_size += 1 + mc_varint_size((uint64_t)record->id);
    if (record->tag_count > 0)
        record->message_size += block_size(record->tags_size);
}

static mc_mvt_record *
record_at(const mc_mvt_layer_data *layer, int index)
{
    return (mc_mvt_record *)(void *)layer->records.data + index;
}

void
mc_mvt_layer_measure(mc_mvt_layer_data *layer, int extent)
{
    const mc_mvt_value *values = (const mc_mvt_value *)(const void *)layer->values.data;
    size_t size = 2 + block_size(strlen(layer->name)) + 1 + mc_varint_size((uint64_t)extent);
    for (int i = 0; i < mc_mvt_record_count(layer); i++) {
        measure_feature(record_at(layer, i), layer);
        size += block_size(record_at(layer, i)->message_size);
    }
    for (int i = 0; i < layer->field_count; i++)
        size += block_size(strlen(layer->fields[i].name));
    for (size_t i = 0; i < layer->values.size / sizeof(*values); i++)
        size += block_size(values[i].size);
    layer->size = size;
}

static uint8_t *
put_block(uint8_t *at, int field, const void *data, size_t size)
{
    *at++ = (uint8_t)field;
    at = mc_varint(at, size);
    if (size > 0)
        memcpy(at, data, size);
    return at + size;
}

static uint8_t *
put_feature(uint8_t *at, const mc_mvt_layer_data *layer, const mc_mvt_record *record)
{
    *at++ = LAYER_FEATURE;
    at = mc_varint(at, record->message_size);
    if (record_has_id(layer, record)) {
        *at++ = FEATURE_ID;
        at = mc_varint(at, (uint64_t)record->id);
    }
    if (record->tag_count > 0) {
        *at++ = FEATURE_TAGS;
        at = mc_varint(at, record->tags_size);
        for (uint32_t i = 0; i < record->tag_count; i++)
            at = mc_varint(at, tags_of(layer, record)[i]);
    }
    *at++ = FEATURE_TYPE;
    *at++ = (uint8_t)record->type;
    return put_block(at, FEATURE_GEOMETRY, layer->geometry.data + record->geometry, record->geometry_size);
}

uint8_t *
mc_mvt_layer_write(uint8_t *at, const mc_mvt_layer_data *layer, int extent)
{
    const mc_mvt_value *values = (const mc_mvt_value *)(const void *)layer->values.data;
    *at++ = LAYER_VERSION;
    *at++ = VERSION;
    at = put_block(at, LAYER_NAME, layer->name, strlen(layer->name));
    for (int i = 0; i < mc_mvt_record_count(layer); i++)
        at = put_feature(at, layer, record_at(layer, i));
    for (int i = 0; i < layer->field_count; i++)
        at = put_block(at, LAYER_KEY, layer->fields[i].name, strlen(layer->fields[i].name));
    for (size_t i = 0; i < layer->values.size / sizeof(*values); i++)
        at = put_block(at, LAYER_VALUE, layer->texts.data + values[i].at, values[i].size);
    *at++ = LAYER_EXTENT;
    return mc_varint(at, (uint64_t)extent);
}
