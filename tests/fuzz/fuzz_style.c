/* SLD and SE documents: read, and what was understood is drawn for features of every kind. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "draw/label/label.h"
#include "draw/paint/painter.h"
#include "draw/sld/sld.h"
#include "fuzz_support.h"

static const mc_log silent = { 0 };

enum { SIDE = 48 };

static void
make_geometry(mc_geometry *geometry)
{
    static const int corners[4][2] = { { -9, 5 }, { 40, 3 }, { 45, 60 }, { 10, 30 } };
    mc_geometry_clear(geometry);
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; i < (kind == MC_SHAPE_POINTS ? 2 : 4); i++)
            mc_shape_add(&geometry->shapes[kind], corners[i][0] * MC_SUBPIXELS + kind, corners[i][1] * MC_SUBPIXELS);
        if (kind == MC_SHAPE_POLYGONS)
            mc_shape_end_ring(&geometry->shapes[kind], false);
        else
            mc_shape_end_part(&geometry->shapes[kind]);
    }
}

static void
draw(const mc_style *style, apr_pool_t *pool)
{
    static mc_geometry geometry;
    static const char *const texts[] = { "12.5", "#ff8000", "2026-11-22T10:11:12", "", NULL };
    mc_ctx ctx = { .pool = pool, .log = &silent };
    const mc_feature_query map = { .srs = "EPSG:3857",
                                   .scale = 10000,
                                   .resolution = 2.8,
                                   .pixel_grid = { .per_x = 1 / 2.8, .per_y = 1 / 2.8, .left = 100, .top = -7 } };
    mc_pixels *pixels;
    mc_painter *painter;
    const char **values = apr_pcalloc(pool, sizeof(*values) * (size_t)(style->attribute_count + 1));
    if (mc_pixels_create(&pixels, SIDE, SIDE, true, pool) != MC_OK)
        return;
    mc_pixels_attach(pixels, pool);
    (void)mc_painter_margin(style, map.scale);
    if (mc_painter_create(&painter, style, pixels, &map, false, pool) != MC_OK)
        return;
    mc_labels *labels = mc_labels_create(mc_canvas_of(pixels, pool), pool);
    mc_labels_next_layer(labels, map.scale);
    mc_painter_set_labels(painter, mc_labels_visit, labels);
    for (int round = 0; round < 5; round++) {
        make_geometry(&geometry);
        for (int i = 0; i < style->attribute_count; i++)
            values[i] = texts[(round + i) % 5];
        const mc_feature feature = { .id = round, .geometry = &geometry, .values = values };
        if (mc_painter_visit(painter, &feature, &ctx) != MC_OK)
            return;
    }
    (void)(mc_painter_finish(painter, &ctx) == MC_OK);
    (void)(mc_labels_finish(labels, &ctx) == MC_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    apr_pool_t *pool;
    if (file < 0) {
        file = memfd_create("style", 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        return 0;
    apr_pool_create(&pool, NULL);
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool) };
    const mc_style *style = mc_style_read(path, NULL, NULL, &build);
    if (style != NULL)
        draw(style, pool);
    apr_pool_destroy(pool);
    return 0;
}
