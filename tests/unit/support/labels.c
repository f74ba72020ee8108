#include "labels.h"

const char *const label_fonts[] = { "DejaVu Sans" };
static const mc_expression label_name = { .kind = MC_PROPERTY, .property = 0 };
const mc_expression label_rank = { .kind = MC_PROPERTY, .property = 1 };

mc_text_symbol
label_symbol(void)
{
    return (mc_text_symbol){ .label = &label_name,
                             .font = { label_fonts, 1, false, 400 },
                             .size = { 12, NULL },
                             .fill = { .present = true, .color = { 0, 0, 0, 255 } },
                             .anchored = true,
                             .anchor_x = { 0.5, NULL },
                             .anchor_y = { 0.5, NULL },
                             .aligned = true,
                             .curved = true,
                             .max_angle = 22.5 };
}

mc_pixels *
draw_labels_in(const mc_text_symbol *texts, int text_count, const labelled *things, int count, mc_ctx *own,
               apr_pool_t *memory)
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
        ck_ok(mc_labels_visit(labels, &rule, &feature, own, memory));
    }
    ck_ok(mc_labels_finish(labels, own));
    mc_geometry_free(&geometry);
    return pixels;
}

mc_pixels *
draw_labels(const mc_text_symbol *texts, int text_count, const labelled *things, int count)
{
    return draw_labels_in(texts, text_count, things, count, &ctx, pool);
}

int
alpha_at(const mc_pixels *pixels, int x, int y)
{
    return pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + 3];
}

label_seen
look_at_labels(const mc_pixels *pixels)
{
    label_seen s = { SIDE, SIDE, -1, -1, 0 };
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (alpha_at(pixels, x, y) > 0) {
                s.left = x < s.left ? x : s.left;
                s.right = x > s.right ? x : s.right;
                s.top = y < s.top ? y : s.top;
                s.bottom = y > s.bottom ? y : s.bottom;
                s.sum += alpha_at(pixels, x, y);
            }
    return s;
}

labelled
label_at_point(const char *text, float x, float y)
{
    return (labelled){ { text, NULL }, MC_SHAPE_POINTS, { x, y }, 1, 0 };
}
