/* Vector tiles: encoded ones, well-known binary, or rings and lines straight from the bytes, and attributes that are
 * any text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compress/gzip.h"
#include "fuzz_support.h"
#include "vector/geometry/simplify.h"
#include "vector/mvt/mvt.h"
#include "vector/mvt/mvt_parts.h"
#include "vector/mvt/mvt_shape.h"

enum { EXTENT = 256, BUFFER = 8, LOW = -BUFFER, HIGH = EXTENT + BUFFER };

/* Two bytes for a vertex around the tile; 255 255 ends a part, an odd one a hole. */
static void
read_shapes(mc_geometry *geometry, const uint8_t *bytes, size_t size)
{
    mc_geometry_clear(geometry);
    mc_shape *shape = &geometry->shapes[size % 3];
    for (size_t i = 0; i + 1 < size; i += 2) {
        bool ends = bytes[i] == 255 && bytes[i + 1] >= 254;
        if (!ends)
            mc_shape_add(shape, bytes[i] * 3 - 200, bytes[i + 1] * 3 - 200);
        else if (shape->kind == MC_SHAPE_POLYGONS)
            mc_shape_end_ring(shape, bytes[i + 1] == 254);
        else
            mc_shape_end_part(shape);
    }
    mc_shape_end_part(shape);
}

/* Rings as the specification wants them. */
static void
check_rings(const mc_shape *in, apr_pool_t *pool)
{
    static mc_shape simple, cut, clean, ordered;
    mc_shape_simplify(&simple, in, 1);
    mc_mvt_clip_rings(&cut, &simple, LOW, HIGH, mc_mvt_clipper_create(pool));
    mc_mvt_clean_rings(&clean, &cut);
    const mc_shape *out = mc_mvt_order_rings(&ordered, &clean, false, pool);
    for (int part = 0, begin = 0; out != NULL && part < out->part_count; begin = out->ends[part++]) {
        const mc_shape_point *ring = out->points + begin;
        int count = out->ends[part] - begin;
        int64_t twice = 0;
        for (int i = 0; i < count; i++) {
            mc_shape_point a = ring[i], b = ring[(i + 1) % count];
            twice += (int64_t)a.x * b.y - (int64_t)b.x * a.y;
            if (a.x < LOW || a.x > HIGH || a.y < LOW || a.y > HIGH || (a.x == b.x && a.y == b.y))
                abort();
        }
        if (count < 3 || twice == 0 || (part == 0 && twice < 0))
            abort();
    }
}

static void
make_tile(mc_geometry *geometry, const char *text, mc_ctx *ctx, apr_pool_t *pool)
{
    static const mc_field fields[] = { { "text", MC_FIELD_TEXT },
                                       { "integer", MC_FIELD_INTEGER },
                                       { "number", MC_FIELD_NUMBER },
                                       { "boolean", MC_FIELD_BOOLEAN } };
    const mc_mvt_options options = {
        .extent = EXTENT, .buffer = BUFFER, .simplification = 1, .max_features = 3, .max_bytes = 4096, .max_time = 1
    };
    const char *const values[] = { text, text, text, text };
    const mc_feature feature = { .id = 1, .geometry = geometry, .values = values };
    mc_mvt *mvt = mc_mvt_create(&options, 2, 2, 1, pool);
    mc_mvt_layer(mvt, "layer", fields, 4, true);
    for (int i = 0; i < 8; i++) {
        mc_error *error = mc_mvt_visit(mvt, &feature, ctx);
        if (error != MC_OK && !mc_mvt_crowded(mvt))
            abort();
        mc_error_ignore(error);
    }
    for (int i = 0; i < 4; i++) {
        mc_mvt_result result;
        mc_buf *bytes;
        if (mc_mvt_finish(&result, mvt, i % 2, i / 2, ctx, pool) != MC_OK || result.bytes > (size_t)options.max_bytes ||
            result.features > options.max_features)
            abort();
        if (mc_gunzip(&bytes, result.packed->data, result.packed->size, 4096, pool) != MC_OK ||
            bytes->size != result.bytes)
            abort();
    }
}

/* What is taken of an encoded tile is one itself, and all of it is taken again. */
static void
take_encoded_tile(const uint8_t *data, size_t size, apr_pool_t *pool)
{
    mc_mvt_parts parts = { 0 }, again = { 0 };
    if (mc_mvt_parts_add(&parts, data, size, pool) == NULL) {
        if (parts.layers.size > size || mc_mvt_parts_add(&again, parts.layers.data, parts.layers.size, pool) != NULL ||
            again.layers.size != parts.layers.size || again.features != parts.features)
            abort();
    } else if (parts.layers.size != 0 || parts.features != 0) {
        abort();
    }
    mc_mvt_parts_free(&parts);
    mc_mvt_parts_free(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mc_pixel_grid pixel_grid = { .x0 = -180, .y0 = 90, .per_x = 1, .per_y = 1 };
    static mc_geometry geometry;
    static mc_process process;
    apr_pool_t *pool;
    if (size < 2)
        return 0;
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool, .process = &process };
    mc_error *error = MC_OK;
    take_encoded_tile(data, size, pool);
    if (data[0] % 2 == 0)
        read_shapes(&geometry, data + 1, size - 1);
    else
        error = mc_wkb_read(&geometry, data + 1, size - 1, &pixel_grid, pool);
    if (error == MC_OK) {
        char *text = malloc(size); /* of its own, so that a step over its end is seen */
        memcpy(text, data + 1, size - 1);
        text[size - 1] = '\0';
        check_rings(&geometry.shapes[MC_SHAPE_POLYGONS], pool);
        make_tile(&geometry, text, &ctx, pool);
        free(text);
    }
    apr_pool_destroy(pool);
    return 0;
}
