/* Lines of any form with pens of any form: strokes, dashes, lines beside, graphics along them, patterns inside. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/paint/painter.h"
#include "draw/raster/stroker.h"
#include "draw/symbol/mark.h"
#include "fuzz_support.h"
#include "vector/geometry/places.h"

static const mc_log silent = { 0 };

enum { SIDE = 40, DASHES = 4 };

/* The bytes are spent from the front; 0 behind their end. */
typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

static unsigned
byte(bytes *b)
{
    return b->at < b->end ? *b->at++ : 0;
}

/* Mostly near the map, sometimes as far as can be. */
static int32_t
coordinate(bytes *b)
{
    int32_t value = (int32_t)(byte(b) << 8 | byte(b)) - 0x8000;
    unsigned far = byte(b);
    return far < 200 ? value / 2 : far < 250 ? value * 256 : value < 0 ? -MC_SHAPE_REACH : MC_SHAPE_REACH;
}

static double
number(bytes *b)
{
    unsigned kind = byte(b), value = byte(b);
    return kind < 128 ? value / 8.0 : kind < 192 ? value * 8.0 : kind < 240 ? -(double)value : value / 4096.0;
}

static void
read_geometry(mc_geometry *geometry, bytes *b)
{
    mc_geometry_clear(geometry);
    for (int parts = (int)(byte(b) % 5); parts >= 0; parts--) {
        unsigned kind = byte(b) % 3, count = byte(b) % 40;
        for (unsigned i = 0; i < count; i++) {
            int32_t x = coordinate(b);
            mc_shape_add(&geometry->shapes[kind], x, coordinate(b));
        }
        if (kind == MC_SHAPE_POLYGONS)
            mc_shape_end_ring(&geometry->shapes[kind], byte(b) % 2 == 0);
        else
            mc_shape_end_part(&geometry->shapes[kind]);
    }
}

static void
read_stroke(mc_stroke *stroke, double *dashes, bytes *b)
{
    *stroke = (mc_stroke){ .paint = { .present = true, .color = { 1, 2, 3, 255 } }, .width = number(b) };
    stroke->join = (mc_line_join)(byte(b) % 3);
    stroke->cap = (mc_line_cap)(byte(b) % 3);
    stroke->dash_offset = number(b);
    double sum = 0;
    for (int i = 0; i < DASHES; i++)
        sum += dashes[i] = fabs(number(b));
    if (byte(b) % 2 == 0 && sum > 0) {
        stroke->dashes = dashes;
        stroke->dash_count = DASHES;
    }
    stroke->width = fmin(stroke->width, MC_STROKE_WIDTH_MAX);
}

static void
read_graphic(mc_graphic *graphic, double *dashes, bytes *b, apr_pool_t *pool)
{
    static const char *const names[] = { "square", "circle", "shape://times", "horline", "heart", "arrow" };
    unsigned which = byte(b);
    *graphic = (mc_graphic){ .opacity = 1, .anchor = { .x = number(b), .y = 0.5 }, .size = number(b) };
    graphic->mark = mc_mark_find(names[which % 6], true, pool);
    graphic->fill = (mc_paint){ .present = which % 2 == 0, .color = { 9, 8, 7, 200 } };
    graphic->displacement.x = number(b);
    graphic->cell_x = byte(b) % 8 == 0 ? number(b) : 0;
    graphic->cell_y = graphic->cell_x;
    read_stroke(&graphic->stroke, dashes, b);
    graphic->size = fmin(fmax(graphic->size, 0), MC_STROKE_WIDTH_MAX);
}

static void
draw(const mc_symbolizer *symbols, int count, const mc_geometry *geometry, apr_pool_t *pool)
{
    const mc_rule_style rule = { .max_scale = HUGE_VAL, .symbolizers = symbols, .symbolizer_count = count };
    const mc_style_pass pass = { .rules = &rule, .rule_count = 1 };
    const mc_style style = { .name = "fuzz", .passes = &pass, .pass_count = 1 };
    const mc_feature_query map = { .scale = 5000,
                                   .resolution = 1,
                                   .pixel_grid = { .per_x = 1, .per_y = 1, .left = 3 } };
    mc_ctx ctx = { .pool = pool, .log = &silent };
    mc_geometry copy = *geometry;
    const mc_feature feature = { .geometry = &copy };
    mc_pixels *pixels;
    mc_painter *painter;
    if (mc_pixels_create(&pixels, SIDE, SIDE, true, pool) != MC_OK)
        return;
    mc_pixels_attach(pixels, pool);
    mc_error *error = mc_painter_create(&painter, &style, pixels, &map, false, pool);
    error = error != MC_OK ? error : mc_painter_visit(painter, &feature, &ctx);
    error = error != MC_OK ? error : mc_painter_finish(painter, &ctx);
    if (error != MC_OK) { /* nothing here is one */
        fprintf(stderr, "%s\n", error->message);
        abort();
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_geometry geometry;
    static mc_shape places;
    double dashes[3][DASHES];
    bytes b = { data, data + size };
    mc_symbolizer symbols[2] = { 0 };
    mc_graphic graphic, pattern;
    apr_pool_t *pool;
    apr_pool_create(&pool, NULL);
    unsigned how = byte(&b);
    symbols[0] = (mc_symbolizer){ .kind = (mc_symbolizer_kind)(how % 2), .uom = (mc_uom)(how / 2 % 3) };
    symbols[0].offset = how & 8 ? number(&b) : 0;
    symbols[0].displacement.y = how & 16 ? number(&b) : 0;
    read_stroke(&symbols[0].stroke, dashes[0], &b);
    read_graphic(&graphic, dashes[1], &b, pool);
    read_graphic(&pattern, dashes[2], &b, pool);
    symbols[0].fill = (mc_paint){ .present = true, .color = { 4, 5, 6, 100 }, .pattern = how & 32 ? &pattern : NULL };
    symbols[0].stroke.paint.pattern = how & 64 ? &pattern : NULL;
    symbols[0].stroke.graphic = how & 128 ? &graphic : NULL;
    symbols[0].stroke.gap = number(&b);
    symbols[0].stroke.initial_gap = number(&b);
    symbols[0].stroke.along = (mc_along)(byte(&b) % 5);
    symbols[1] =
        (mc_symbolizer){ .kind = MC_SYMBOL_POINT, .part = (mc_geometry_part)(byte(&b) % 8), .graphic = graphic };
    read_geometry(&geometry, &b);
    mc_places_find(&places, &geometry, symbols[1].part);
    draw(symbols, 2, &geometry, pool);
    apr_pool_destroy(pool);
    return 0;
}
