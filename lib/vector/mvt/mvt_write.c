/* Geometry as commands and layers as messages of protocol buffers (MVT 2.1, 4). */
#include <string.h>

#include "vector/mvt/mvt_layer.h"

enum {
    MOVE_TO = 1,
    LINE_TO = 2,
    CLOSE_PATH = 7,
    TILE_LAYER = 3 << 3 | 2,
    LAYER_NAME = 1 << 3 | 2,
    LAYER_KEY = 3 << 3 | 2,
    LAYER_EXTENT = 5 << 3,
    LAYER_VERSION = 15 << 3,
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

static uint8_t *
put_geometry(uint8_t *at, const mc_shape *shape, mc_shape_point origin)
{
    if (shape->kind != MC_SHAPE_POINTS)
        return put_parts(at, shape, origin);
    at = put_command(at, MOVE_TO, shape->point_count);
    for (int i = 0; i < shape->point_count; i++)
        at = put_step(at, &origin, shape->points[i]);
    return at;
}

static size_t
varints_size(const uint32_t *numbers, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += mc_varint_size(numbers[i]);
    return size;
}

/* What stands in front of a feature's geometry; returns the place behind it. */
static uint8_t *
put_feature_head(uint8_t *at, const mc_mvt_layer_data *layer, const mc_mvt_added *added, size_t geometry_size)
{
    static const mc_mvt_type types[] = {
        [MC_SHAPE_POINTS] = MC_MVT_POINT, [MC_SHAPE_LINES] = MC_MVT_LINE, [MC_SHAPE_POLYGONS] = MC_MVT_POLYGON
    };
    const uint32_t *tags = (const uint32_t *)(const void *)layer->tags.data;
    const size_t count = layer->tags.size / sizeof(*tags), tags_size = varints_size(tags, count);
    const bool has_id = layer->ids && added->id >= 0;
    size_t size = 2 + mc_mvt_head_size(geometry_size) + geometry_size;
    size += has_id ? 1 + mc_varint_size((uint64_t)added->id) : 0;
    size += count > 0 ? mc_mvt_head_size(tags_size) + tags_size : 0;
    at = mc_mvt_head(at, MC_MVT_LAYER_FEATURE, size);
    if (has_id) {
        *at++ = MC_MVT_FEATURE_ID;
        at = mc_varint(at, (uint64_t)added->id);
    }
    if (count > 0)
        at = mc_mvt_head(at, MC_MVT_FEATURE_TAGS, tags_size);
    for (size_t i = 0; i < count; i++)
        at = mc_varint(at, tags[i]);
    *at++ = FEATURE_TYPE;
    *at++ = (uint8_t)types[added->shape->kind];
    return mc_mvt_head(at, FEATURE_GEOMETRY, geometry_size);
}

/* The geometry is written behind where it can begin at the latest, and moved to where it does. */
uint32_t
mc_mvt_layer_add(mc_mvt_layer_data *layer, const mc_mvt_added *added)
{
    enum { NUMBER = 10, TAG = 5 };
    const mc_shape *shape = added->shape;
    uint32_t cost = mc_mvt_layer_tags(layer, added->values, added->wholes) + 16;
    const size_t head = 4 * MC_MVT_HEAD + NUMBER + layer->tags.size / sizeof(uint32_t) * TAG;
    const size_t most = ((size_t)shape->point_count + (size_t)shape->part_count * 2 + 1) * STEP_BYTES;
    uint8_t *begin = mc_byte_buffer_room(&layer->features, head + most);
    if (begin == NULL)
        return cost;
    const size_t size = (size_t)(put_geometry(begin + head, shape, added->origin) - begin) - head;
    uint8_t *end = put_feature_head(begin, layer, added, size);
    memmove(end, begin + head, size);
    cost += (uint32_t)size;
    const mc_mvt_record record = { (uint32_t)((size_t)(end - begin) + size), added->size, cost };
    layer->features.size += record.bytes;
    mc_byte_buffer_add(&layer->records, &record, sizeof(record));
    return cost;
}

static size_t
block_size(size_t size)
{
    return mc_mvt_head_size(size) + size;
}

size_t
mc_mvt_layer_size(const mc_mvt_layer_data *layer, int extent)
{
    size_t size = 2 + block_size(strlen(layer->name)) + 1 + mc_varint_size((uint64_t)extent);
    for (int i = 0; i < layer->field_count; i++)
        size += block_size(strlen(layer->fields[i].name));
    return size + layer->features.size + layer->texts.size;
}

static uint8_t *
put_encoded(uint8_t *at, const void *data, size_t size)
{
    if (size > 0)
        memcpy(at, data, size);
    return at + size;
}

static uint8_t *
put_name(uint8_t *at, int tag, const char *name)
{
    const size_t size = strlen(name);
    return put_encoded(mc_mvt_head(at, tag, size), name, size);
}

void
mc_mvt_add_piece(mc_mvt_pieces *pieces, const void *data, size_t size)
{
    pieces->parts[pieces->count++] = (mc_deflate_part){ data, size };
}

/* What has been written from pieces->at to `end`. */
static void
add_written(mc_mvt_pieces *pieces, uint8_t *end)
{
    mc_mvt_add_piece(pieces, pieces->at, (size_t)(end - pieces->at));
    pieces->at = end;
}

void
mc_mvt_layer_pieces(mc_mvt_pieces *pieces, const mc_mvt_layer_data *layer, int extent)
{
    uint8_t *at = mc_mvt_head(pieces->at, TILE_LAYER, mc_mvt_layer_size(layer, extent));
    *at++ = LAYER_VERSION;
    *at++ = VERSION;
    add_written(pieces, put_name(at, LAYER_NAME, layer->name));
    mc_mvt_add_piece(pieces, layer->features.data, layer->features.size);
    at = pieces->at;
    for (int i = 0; i < layer->field_count; i++)
        at = put_name(at, LAYER_KEY, layer->fields[i].name);
    add_written(pieces, at);
    mc_mvt_add_piece(pieces, layer->texts.data, layer->texts.size);
    at = pieces->at;
    *at++ = LAYER_EXTENT;
    add_written(pieces, mc_varint(at, (uint64_t)extent));
}
