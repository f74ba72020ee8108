/*
 * Labels: any text, any numbers, on a point, along a line or in an area. Whatever is drawn leaves the edge of the map
 * free. The first 16 bytes are the numbers, then a byte how many points there are; the rest is text.
 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "draw/label/label.h"
#include "draw/style/expression.h"
#include "draw/style/label_style.h"
#include "draw/symbol/mark.h"
#include "fuzz_support.h"

enum { SIDE = 160, NUMBERS = 16 };

static const mc_expression name = { .kind = MC_PROPERTY, .property = 0 };

/* Numbers as styles may hold them, also absurd ones. */
static double
number(uint8_t byte)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, 1e9, -1e9, 1e300, 0.001, -0.5 };
    return byte >= 248 ? odd[byte - 248] : (byte - 40) / 2.0;
}

/* The graphic behind it: one that is read may have any numbers that are finite. */
static void
add_graphic(mc_text_symbol *symbol, const uint8_t *bytes, apr_pool_t *pool)
{
    static const char *const marks[] = { "square", "circle", "star", "ttf://DejaVu Sans#0x2708", "arrow" };
    double moved = number(bytes[10]);
    symbol->shielded = bytes[13] & 1;
    symbol->resize = (mc_label_resize)(bytes[11] % 3);
    symbol->graphic = (mc_graphic){ .mark = mc_mark_find(marks[bytes[14] % 5], true, pool),
                                    .fill = { .present = true, .color = { 255, 0, 0, 200 } },
                                    .stroke = { .paint = { .present = bytes[9] & 1, .color = { 0, 0, 0, 255 } },
                                                .width = bytes[9] / 8.0 },
                                    .size = bytes[8] / 2.0,
                                    .opacity = 1,
                                    .anchor = { .x = bytes[2] / 100.0, .y = bytes[3] / 100.0 },
                                    .displacement = { .x = isfinite(moved) ? moved : 0 } };
    for (int i = 0; i < 4; i++)
        symbol->graphic_margin[i] = bytes[15] >> i;
}

static mc_text_symbol
symbol_of(const uint8_t *bytes)
{
    static const char *const families[] = { "DejaVu Sans" };
    return (mc_text_symbol){ .label = &name,
                             .font = { families, 1, bytes[12] & 1, bytes[12] & 2 ? 700 : 400 },
                             .size = { number(bytes[0]), NULL },
                             .fill = { .present = true, .color = { 0, 0, 0, 255 } },
                             .halo = { .present = bytes[12] & 4, .color = { 255, 255, 255, 200 } },
                             .halo_radius = { number(bytes[1]) / 8, NULL },
                             .placement = bytes[12] & 8 ? MC_LABEL_LINE : MC_LABEL_POINT,
                             .anchored = bytes[12] & 16,
                             .anchor_x = { number(bytes[2]) / 50, NULL },
                             .anchor_y = { number(bytes[3]) / 50, NULL },
                             .displacement_x = { number(bytes[4]), NULL },
                             .displacement_y = { number(bytes[5]), NULL },
                             .rotation = { number(bytes[6]), NULL },
                             .offset = { number(bytes[7]), NULL },
                             .aligned = bytes[12] & 32,
                             .curved = bytes[12] & 64,
                             .repeated = bytes[12] & 128,
                             .gap = bytes[8],
                             .initial_gap = bytes[9],
                             .repeat = bytes[10],
                             .max_displacement = bytes[11],
                             .space_around = (double)bytes[13] - 50,
                             .auto_wrap = bytes[14],
                             .max_angle = bytes[15] };
}

/* Points from bytes, some far outside; returns how many bytes they took. */
static size_t
read_points(mc_geometry *geometry, const uint8_t *bytes, size_t size)
{
    size_t count = size == 0 ? 0 : bytes[0] % 16, at = 1;
    mc_shape *shape = &geometry->shapes[size == 0 ? 0 : bytes[0] / 16 % 3];
    for (size_t i = 0; i < count && at + 2 <= size; i++, at += 2)
        mc_shape_add(shape, (bytes[at] - 40) * 256 + (int)i * 31,
                     (bytes[at + 1] - 40) * (bytes[0] & 128 ? 25600 : 256));
    if (shape->kind == MC_SHAPE_POLYGONS)
        mc_shape_end_ring(shape, false);
    else
        mc_shape_end_part(shape);
    return at < size ? at : size;
}

static void
check_edge(const mc_pixels *pixels)
{
    for (int i = 0; i < SIDE; i++) {
        const int edges[4][2] = { { i, 0 }, { i, SIDE - 1 }, { 0, i }, { SIDE - 1, i } };
        for (int e = 0; e < 4; e++)
            if (pixels->data[(size_t)edges[e][1] * pixels->stride + (size_t)edges[e][0] * 4 + 3] != 0)
                __builtin_trap();
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < NUMBERS + 2)
        return 0;
    apr_pool_t *pool;
    mc_pixels *pixels;
    mc_geometry geometry = { 0 };
    apr_pool_create(&pool, NULL);
    mc_ctx ctx = { .pool = pool, .log = &mc_log_stderr };
    mc_text_symbol text = symbol_of(data);
    add_graphic(&text, data, pool);
    const mc_feature_query map = { .scale = 1000, .pixel_grid = { .per_x = 1, .per_y = 1 } };
    const mc_rule_style rule = { .texts = &text, .text_count = 1 };
    mc_geometry_clear(&geometry);
    size_t used = NUMBERS + read_points(&geometry, data + NUMBERS, size - NUMBERS);
    const char *values[] = { apr_pstrmemdup(pool, (const char *)data + used, size - used) };
    const mc_feature feature = { .id = 1, .geometry = &geometry, .values = values, .query = &map };
    if (mc_pixels_create(&pixels, SIDE, SIDE, true, pool) != MC_OK)
        __builtin_trap();
    mc_pixels_attach(pixels, pool);
    mc_labels *labels = mc_labels_create(mc_canvas_of(pixels, pool), pool);
    mc_labels_next_layer(labels, 1000);
    if (mc_labels_visit(labels, &rule, &feature, &ctx, pool) != MC_OK || mc_labels_finish(labels, &ctx) != MC_OK)
        __builtin_trap();
    check_edge(pixels);
    mc_geometry_free(&geometry);
    apr_pool_destroy(pool);
    return 0;
}
