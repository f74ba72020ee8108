/* See feature_batch.h. */
#include "draw/paint/feature_batch.h"

#include <string.h>

enum { SHAPES = 3, ALIGNED = 8 };

static int
count_values(const mc_feature *feature)
{
    return feature->values == NULL ? 0 : feature->query->attribute_count;
}

static size_t
measure_batch_feature(const mc_feature *feature, int values)
{
    size_t size = sizeof(mc_batch_feature) + sizeof(char *) * (size_t)values;
    for (int i = 0; i < SHAPES; i++)
        size += sizeof(mc_shape_point) * (size_t)feature->geometry->shapes[i].point_count +
                sizeof(int) * (size_t)feature->geometry->shapes[i].part_count;
    for (int i = 0; i < values; i++)
        size += feature->values[i] == NULL ? 0 : strlen(feature->values[i]) + 1;
    return (size + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static void
copy_batch_shapes(mc_batch_feature *copy, const mc_geometry *geometry)
{
    mc_shape_point *points = copy->points;
    int *ends = copy->ends;
    for (int i = 0; i < SHAPES; i++) {
        const mc_shape *shape = &geometry->shapes[i];
        if (shape->part_count == 0)
            continue;
        copy->point_counts[i] = shape->point_count;
        copy->part_counts[i] = shape->part_count;
        memcpy(points, shape->points, sizeof(*points) * (size_t)shape->point_count);
        memcpy(ends, shape->ends, sizeof(*ends) * (size_t)shape->part_count);
        points += shape->point_count;
        ends += shape->part_count;
    }
}

mc_batch_feature *
mc_feature_batch_add(mc_feature_batch *batch, const mc_feature *feature)
{
    const int values = count_values(feature);
    const size_t size = measure_batch_feature(feature, values);
    if (size > batch->room - batch->used)
        return NULL;
    uint8_t *at = batch->block + batch->used;
    mc_batch_feature *copy = (void *)at;
    const char **texts = (void *)(at + sizeof(*copy));
    int points = 0, parts = 0;
    for (int i = 0; i < SHAPES; i++) {
        points += feature->geometry->shapes[i].point_count;
        parts += feature->geometry->shapes[i].part_count;
    }
    *copy = (mc_batch_feature){ .id = feature->id, .values = feature->values == NULL ? NULL : texts };
    copy->points = (void *)(texts + values);
    copy->ends = (void *)(copy->points + points);
    copy_batch_shapes(copy, feature->geometry);
    char *text = (void *)(copy->ends + parts);
    for (int i = 0; i < values; i++) {
        size_t bytes = feature->values[i] == NULL ? 0 : strlen(feature->values[i]) + 1;
        texts[i] = bytes == 0 ? NULL : memcpy(text, feature->values[i], bytes);
        text += bytes;
    }
    batch->used += size;
    return copy;
}

mc_feature
mc_batch_feature_restore(mc_geometry *geometry, const mc_batch_feature *copy, mc_shape_point *points)
{
    int *ends = copy->ends;
    for (int i = 0; i < SHAPES; i++) {
        mc_shape *shape = &geometry->shapes[i];
        shape->kind = (mc_shape_kind)i;
        shape->points = points;
        shape->point_count = copy->point_counts[i];
        shape->ends = ends;
        shape->part_count = copy->part_counts[i];
        points += copy->point_counts[i];
        ends += copy->part_counts[i];
    }
    return (mc_feature){ .id = copy->id, .geometry = geometry, .values = copy->values };
}
