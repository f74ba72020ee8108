/* Milliseconds of processor time of whole maps of 1000x1000 pixels, from a shapefile to a PNG, in one process:
 * `micro_map FILE.shp STYLE.sld [zoom [maps [thinning [workers [SAVED.png]]]]]`. Boxes are the same in each run. With
 * workers each map is painted in turns alone and together with them, and has to be the same. */
#include <apr_general.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/workers.h"
#include "draw/label/label.h"
#include "draw/paint/painter.h"
#include "draw/paint/parallel_painter.h"
#include "draw/sld/sld.h"
#include "image/codec.h"
#include "measure.h"
#include "vector/shapefile/shapefile.h"
#include "vector/shapefile/shp.h"

enum { SIDE = 1000, MAPS_MAX = 1000 };

static apr_pool_t *pool;
static mc_process process;
static mc_ctx ctx = { .process = &process };
static const uint8_t background[4] = { 250, 242, 235, 255 };

typedef struct drawn_map {
    double paint, wall, encode;
    bool indexed;
    mc_buf *png;
} drawn_map;

static void
encode_map(drawn_map *map, mc_canvas *canvas, apr_pool_t *scratch)
{
    const mc_format format = { .ops = &mc_format_png_ops, .type = MC_FORMAT_PNG, .compression = MC_PNG_FAST };
    mc_indexed *indexed;
    mc_pixels *pixels, *merged;
    exit_on_error(mc_canvas_indexed(&indexed, canvas));
    map->indexed = indexed != NULL;
    if (indexed != NULL) {
        mc_indexed_over(indexed, background);
        exit_on_error(mc_indexed_encode(&map->png, &format, indexed, MC_ON_THE_FLY, &ctx, scratch));
        return;
    }
    exit_on_error(mc_canvas_pixels(&pixels, canvas));
    exit_on_error(mc_pixels_create(&merged, SIDE, SIDE, false, scratch));
    mc_pixels_attach(merged, scratch);
    mc_pixels_fill(merged, background);
    mc_pixels_over(merged, 0, 0, pixels);
    exit_on_error(mc_format_encode(&map->png, &format, merged, MC_ON_THE_FLY, &ctx, scratch));
}

static void
draw_map(drawn_map *map, mc_feature_data *data, const mc_style *style, const mc_extent *box, int thinning,
         apr_pool_t *reads, apr_pool_t *scratch)
{
    const double side = box->maxx - box->minx;
    mc_painter *painter;
    int64_t skipped = 0;
    double begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID), first = read_clock_ms(CLOCK_MONOTONIC);
    mc_feature_query query = { .srs = "EPSG:21781",
                               .attributes = style->attributes,
                               .attribute_count = style->attribute_count };
    query.resolution = side / SIDE;
    query.scale = query.resolution / 0.00028;
    double margin = mc_painter_margin(style, query.scale) * query.resolution;
    query.box = (mc_extent){ box->minx - margin, box->miny - margin, box->maxx + margin, box->maxy + margin };
    query.pixel_grid = (mc_pixel_grid){ .x0 = box->minx,
                                        .y0 = box->maxy,
                                        .per_x = SIDE / side,
                                        .per_y = SIDE / side,
                                        .thinning = thinning,
                                        .keep_small = true };
    mc_painter_needs needs = { .merged = true, .suits = true };
    mc_painter_needs_add(&needs, style, query.scale);
    mc_ink_palette *palette = needs.suits && !needs.merged ? mc_ink_palette_get(&needs.inks, scratch) : NULL;
    mc_canvas *canvas = mc_canvas_create(SIDE, SIDE, true, scratch);
    if (palette != NULL)
        exit_on_error(mc_canvas_create_with_palette(&canvas, SIDE, SIDE, palette, scratch));
    mc_labels *labels = mc_painter_labels(style, query.scale) ? mc_labels_create(canvas, scratch) : NULL;
    exit_on_error(mc_painter_create_on(&painter, style, canvas, &query, false, scratch));
    if (labels != NULL) {
        mc_labels_next_layer(labels, query.scale);
        mc_painter_set_labels(painter, mc_labels_visit, labels);
    }
    mc_parallel_painter *parallel = mc_parallel_painter_create(painter, &ctx, reads);
    mc_error *error = data->ops->read(data, &query, mc_parallel_painter_visit, parallel, &skipped, &ctx, reads);
    exit_on_error(mc_parallel_painter_end(parallel, error));
    exit_on_error(mc_painter_finish(painter, &ctx));
    if (labels != NULL)
        exit_on_error(mc_labels_finish(labels, &ctx));
    double painted = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    encode_map(map, canvas, scratch);
    map->encode = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID) - painted;
    map->paint = painted - begin;
    map->wall = read_clock_ms(CLOCK_MONOTONIC) - first;
}

static void
save_png(const char *path, const mc_buf *png)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(png->data, 1, png->size, file) != png->size || fclose(file) != 0)
        exit(1);
}

/* Figures of maps that are painted in one way. */
typedef struct map_figures {
    double paints[MAPS_MAX], walls[MAPS_MAX], encodes[MAPS_MAX];
    size_t bytes;
    int indexed;
} map_figures;

static void
add_figures(map_figures *to, int i, const drawn_map *map)
{
    to->paints[i] = map->paint;
    to->walls[i] = map->wall;
    to->encodes[i] = map->encode;
    to->bytes += map->png->size;
    to->indexed += map->indexed;
}

static void
print_figures(map_figures *of, int maps, const char *name)
{
    qsort(of->paints, (size_t)maps, sizeof(double), compare_doubles);
    qsort(of->walls, (size_t)maps, sizeof(double), compare_doubles);
    qsort(of->encodes, (size_t)maps, sizeof(double), compare_doubles);
    printf("%s: %d maps: read and paint %.2f ms (median; least %.2f), wall with encoding %.2f ms (least %.2f), encode "
           "%.2f ms; %lu bytes, %d indexed\n",
           name, maps, of->paints[maps / 2], of->paints[0], of->walls[maps / 2], of->walls[0], of->encodes[maps / 2],
           (unsigned long)(of->bytes / (size_t)maps), of->indexed);
}

static mc_extent
random_map_box(const mc_extent *all, double side, unsigned *state)
{
    double width = all->maxx - all->minx, height = all->maxy - all->miny;
    double x = rand_r(state) / (double)RAND_MAX, y = rand_r(state) / (double)RAND_MAX;
    mc_extent box = { .minx = all->minx + (width <= side ? (width - side) / 2 : x * (width - side)),
                      .miny = all->miny + (height <= side ? (height - side) / 2 : y * (height - side)) };
    box.maxx = box.minx + side;
    box.maxy = box.miny + side;
    return box;
}

int
main(int argc, char **argv)
{
    static map_figures figures[2];
    mc_shp *file;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    ctx.pool = pool;
    if (argc < 3)
        return fprintf(stderr, "usage: micro_map FILE.shp STYLE.sld [zoom [maps [thinning [workers [SAVED.png]]]]]\n"),
               1;
    double zoom = argc > 3 ? atof(argv[3]) : 1;
    int maps = argc > 4 ? atoi(argv[4]) : 10, thinning = argc > 5 ? atoi(argv[5]) : 64;
    maps = maps < 1 ? 1 : maps > MAPS_MAX ? MAPS_MAX : maps;
    mc_build build = { .pool = pool, .diagnostics = mc_diagnostics_create(pool) };
    const mc_style *style = mc_style_read(argv[2], NULL, NULL, &build);
    if (style == NULL)
        return fprintf(stderr, "%s cannot be read\n", argv[2]), 1;
    struct mc_workers *workers = NULL;
    if (argc > 6 && atoi(argv[6]) > 0)
        exit_on_error(mc_workers_create(&workers, atoi(argv[6]), pool));
    exit_on_error(mc_shp_open(&file, argv[1], NULL, pool));
    const mc_shapefile_config config = { .path = argv[1] };
    mc_feature_data *data = mc_shapefile_create(&config, "map", pool);
    double side = fmax(file->box.maxx - file->box.minx, file->box.maxy - file->box.miny) / zoom;
    unsigned state = 1;
    for (int i = -1; i < maps; i++) { /* the first one opens and prepares */
        drawn_map map[2] = { 0 };
        apr_pool_t *reads, *scratches[2];
        mc_extent box = random_map_box(&file->box, side, &state);
        apr_pool_create(&reads, pool);
        for (int way = 0; way < (workers != NULL ? 2 : 1); way++) {
            process.workers = way == 0 ? NULL : workers;
            scratches[way] = mc_task_pool_acquire();
            draw_map(&map[way], data, style, &box, thinning, reads, scratches[way]);
            if (i >= 0)
                add_figures(&figures[way], i, &map[way]);
            if (way == 1 && (map[0].png->size != map[1].png->size ||
                             memcmp(map[0].png->data, map[1].png->data, map[0].png->size) != 0))
                return fprintf(stderr, "map %d is another one with workers\n", i), 1;
        }
        if (i == maps - 1 && argc > 7)
            save_png(argv[7], map[0].png);
        for (int way = 0; way < (workers != NULL ? 2 : 1); way++)
            mc_task_pool_release(scratches[way]);
        apr_pool_destroy(reads);
    }
    print_figures(&figures[0], maps, "alone");
    if (workers != NULL)
        print_figures(&figures[1], maps, "with workers");
    return 0;
}
