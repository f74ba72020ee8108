/* Labels on a small map, for tests. */
#ifndef LABELS_H
#define LABELS_H

#include "unit.h"

#include "draw/label/label_private.h"
#include "draw/style/expression.h"

enum { SIDE = 200 };

static inline uint32_t
next_random(void)
{
    static uint32_t state = 4711;
    state = state * 1664525U + 1013904223U;
    return state >> 8;
}

static inline double
between(double low, double high)
{
    return low + (high - low) * (next_random() % 10000) / 10000.0;
}

static const char *const dejavu[] = { "DejaVu Sans" };
static const mc_expression name = { .kind = MC_PROPERTY, .property = 0 };
static const mc_expression rank_value = { .kind = MC_PROPERTY, .property = 1 };

static inline mc_text_symbol
symbol(void)
{
    return (mc_text_symbol){ .label = &name,
                             .font = { dejavu, 1, false, 400 },
                             .size = { 12, NULL },
                             .fill = { .present = true, .color = { 0, 0, 0, 255 } },
                             .anchored = true,
                             .anchor_x = { 0.5, NULL },
                             .anchor_y = { 0.5, NULL },
                             .aligned = true,
                             .curved = true,
                             .max_angle = 22.5 };
}

/* A feature with its own copy of geometry. */
typedef struct thing {
    const char *values[2];
    mc_shape_kind kind;
    float points[40];
    int count;
    int64_t id;
} thing;

static inline mc_pixels *
drawn_in(const mc_text_symbol *texts, int text_count, const thing *things, int count, mc_ctx *own, apr_pool_t *memory)
{
    mc_pixels *pixels;
    mc_geometry geometry = { 0 };
    const mc_rule_style rule = { .texts = texts, .text_count = text_count };
    const mc_feature_query map = { .scale = 10000, .pixel_grid = { .per_x = 1, .per_y = 1 } };
    ck_ok(mc_pixels_create(&pixels, SIDE, SIDE, true, memory));
    mc_pixels_attach(pixels, memory);
    mc_labels *labels = mc_labels_create(mc_canvas_of(pixels, memory), memory);
    mc_labels_next_layer(labels, 10000);
    for (int i = 0; i < count; i++) {
        mc_geometry_clear(&geometry);
        mc_shape *shape = &geometry.shapes[things[i].kind];
        for (int p = 0; p < things[i].count; p++)
            mc_shape_add(shape, (int32_t)(things[i].points[p * 2] * MC_SUBPIXELS),
                         (int32_t)(things[i].points[p * 2 + 1] * MC_SUBPIXELS));
        if (things[i].kind == MC_SHAPE_POLYGONS)
            mc_shape_end_ring(shape, false);
        else
            mc_shape_end_part(shape);
        const mc_feature feature = {
            .id = things[i].id, .geometry = &geometry, .values = things[i].values, .query = &map
        };
        ck_ok(mc_labels_take(labels, &rule, &feature, own, memory));
    }
    ck_ok(mc_labels_finish(labels, own));
    mc_geometry_free(&geometry);
    return pixels;
}

static inline mc_pixels *
drawn(const mc_text_symbol *texts, int text_count, const thing *things, int count)
{
    return drawn_in(texts, text_count, things, count, &ctx, pool);
}

static inline int
alpha(const mc_pixels *pixels, int x, int y)
{
    return pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + 3];
}

typedef struct seen {
    int left, top, right, bottom; /* of what is not transparent */
    int64_t sum;
} seen;

static inline seen
look_at(const mc_pixels *pixels)
{
    seen s = { SIDE, SIDE, -1, -1, 0 };
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (alpha(pixels, x, y) > 0) {
                s.left = x < s.left ? x : s.left;
                s.right = x > s.right ? x : s.right;
                s.top = y < s.top ? y : s.top;
                s.bottom = y > s.bottom ? y : s.bottom;
                s.sum += alpha(pixels, x, y);
            }
    return s;
}

static inline thing
at_point(const char *text, float x, float y)
{
    return (thing){ { text, NULL }, MC_SHAPE_POINTS, { x, y }, 1, 0 };
}

#endif
