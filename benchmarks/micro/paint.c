/* Milliseconds of processor time of the steps of a drawn map of 1000x1000 pixels, the best of several rounds:
 * `micro_paint FILE.shp [zoom [thinning [rounds]]]`. Areas are filled and outlined, lines drawn one pixel wide. */
#include <math.h>
#include <stdlib.h>

#include "draw/raster/canvas.h"
#include "draw/raster/edges.h"
#include "draw/raster/stroker.h"
#include "steps.h"
#include "vector/shapefile/shp.h"

enum { SIDE = 1000 };

enum { READ, EDGES, SINGLE, THIN, WIDE, LAY, ENCODE, STEPS };
static const char *const names[STEPS] = { "read and thin",
                                          "polygons with shared edges",
                                          "polygons one by one",
                                          "lines by distance",
                                          "lines 3 px wide as areas",
                                          "lay on indexed colours",
                                          "encode" };
static int64_t points;

/* All shapes of the map, kept. */
typedef struct map {
    mc_shape *shapes;
    int count;
    mc_pixel_grid pixel_grid;
    mc_extent box;
} map;

static void
read_all_shapes(map *m, const mc_shp *file)
{
    mc_shp_record record;
    mc_geometry geometry = { 0 };
    mc_shp_reader reader;
    m->count = 0;
    points = 0;
    mc_shp_begin(&reader, file, &m->box, pool);
    while (mc_shp_next(&reader, &record)) {
        exit_on_error(mc_shp_geometry(&geometry, &record, &m->pixel_grid, pool));
        for (int kind = 1; kind < 3; kind++) {
            mc_shape *from = &geometry.shapes[kind], *to = &m->shapes[m->count];
            if (from->part_count == 0)
                continue;
            mc_shape swap = *to;
            *to = *from;
            *from = swap;
            points += to->point_count;
            m->count++;
        }
    }
    mc_shp_end(&reader);
    mc_geometry_free(&geometry);
}

static void
paint_map(map *m)
{
    mc_area *area, *wide;
    mc_outline *outline;
    apr_pool_t *scratch;
    mc_buf *png;
    mc_ctx ctx = { .pool = pool };
    const mc_pen pen = { .width = 3 };
    mc_shape room = { 0 };
    apr_pool_create(&scratch, pool);
    exit_on_error(mc_area_create(&area, SIDE, SIDE, scratch));
    exit_on_error(mc_area_create(&wide, SIDE, SIDE, scratch));
    exit_on_error(mc_outline_create(&outline, SIDE, SIDE, scratch));
    area->coarse = outline->coarse = wide->coarse = true;
    mc_edges *edges = mc_edges_create(scratch);
    mc_canvas *canvas = mc_canvas_create(SIDE, SIDE, true, scratch);
    bool polygons = m->count > 0 && m->shapes[0].kind == MC_SHAPE_POLYGONS;
    double begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; polygons && i < m->count; i++) {
        mc_area_add(area, &m->shapes[i], 0, 0);
        mc_outline_add(outline, &m->shapes[i], 1);
    }
    note_step(SINGLE, begin);
    exit_on_error(mc_canvas_fill(canvas, area, MC_NON_ZERO, (mc_color){ 240, 220, 180, 255 }));
    exit_on_error(mc_canvas_outline(canvas, outline, (mc_color){ 120, 80, 40, 255 }));
    begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; polygons && i < m->count; i++)
        mc_edges_add(edges, area, outline, &m->shapes[i], 1);
    mc_edges_flush(edges, area);
    note_step(EDGES, begin);
    exit_on_error(mc_canvas_outline(canvas, outline, (mc_color){ 120, 80, 40, 255 }));
    begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < m->count; i++)
        mc_outline_add(outline, &m->shapes[i], 1);
    note_step(THIN, begin);
    begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; !polygons && i < m->count; i++)
        mc_stroker_add(wide, &m->shapes[i], &pen, &room);
    note_step(WIDE, begin);
    canvas = mc_canvas_create(SIDE, SIDE, true, scratch);
    begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    exit_on_error(mc_canvas_fill(canvas, area, MC_NON_ZERO, (mc_color){ 240, 220, 180, 255 }));
    exit_on_error(mc_canvas_fill(canvas, wide, MC_NON_ZERO, (mc_color){ 240, 220, 180, 255 }));
    exit_on_error(mc_canvas_outline(canvas, outline, (mc_color){ 120, 80, 40, 255 }));
    note_step(LAY, begin);
    begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    mc_format format = { .type = MC_FORMAT_PNG, .compression = MC_PNG_FAST };
    if (canvas->indexed != NULL)
        exit_on_error(mc_indexed_encode(&png, &format, canvas->indexed, MC_ON_THE_FLY, &ctx, scratch));
    note_step(ENCODE, begin);
    static bool told;
    if (!told && canvas->indexed != NULL)
        printf("%d shapes, %ld points, %d colours, %lu bytes\n", m->count, (long)points, canvas->indexed->count,
               (unsigned long)png->size);
    told = true;
    mc_shape_free(&room);
    apr_pool_destroy(scratch);
}

int
main(int argc, char **argv)
{
    mc_shp *file;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    if (argc < 2)
        return fprintf(stderr, "usage: micro_paint FILE.shp [zoom [thinning [rounds]]]\n"), 1;
    double zoom = argc > 2 ? atof(argv[2]) : 1;
    int rounds = argc > 4 ? atoi(argv[4]) : 10;
    exit_on_error(mc_shp_open(&file, argv[1], NULL, pool));
    mc_shp_prepare(file, pool);
    double side = fmax(file->box.maxx - file->box.minx, file->box.maxy - file->box.miny) / zoom;
    double x = (file->box.minx + file->box.maxx) / 2, y = (file->box.miny + file->box.maxy) / 2;
    map m = { .shapes = calloc((size_t)file->count * 2 + 1, sizeof(mc_shape)),
              .box = { x - side / 2, y - side / 2, x + side / 2, y + side / 2 },
              .pixel_grid = { .x0 = x - side / 2,
                              .y0 = y + side / 2,
                              .per_x = SIDE / side,
                              .per_y = SIDE / side,
                              .thinning = argc > 3 ? atoi(argv[3]) : 64,
                              .keep_small = true } };
    for (int i = 0; i < rounds; i++) {
        double begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        read_all_shapes(&m, file);
        note_step(READ, begin);
        paint_map(&m);
    }
    print_steps(names, STEPS);
    return 0;
}
