/*
 * Milliseconds of processor time of the labels of a map of 1000 x 1000 pixels: 2,500 areas of 33 corners with names of
 * their own, then 500 winding lines. Cold: the first map of the process; warm: the next ones (the median of all).
 */
#include <apr_general.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "draw/label/label.h"
#include "draw/style/expression.h"
#include "draw/style/label_style.h"
#include "measure.h"

enum { SIDE = 1000, AREAS = 2500, LINES = 500, CORNERS = 33, ROUNDS = 31 };

static apr_pool_t *pool;
static mc_process process;
static mc_ctx ctx;
static char names[AREAS][32];

static uint32_t
next_random_number(void)
{
    static uint32_t state = 1;
    state = state * 1664525U + 1013904223U;
    return state >> 8;
}

static void
make_names(void)
{
    static const char *const parts[] = { "Ober", "Unter", "Wald", "Stein", "Kirch", "Matt", "Aesch", "Schwarz" };
    static const char *const ends[] = { "wil", "ikon", "hofen", "dorf", "bach", "berg", "au", "ingen" };
    for (int i = 0; i < AREAS; i++)
        snprintf(names[i], sizeof(names[i]), "%s%s%s", parts[next_random_number() % 8], i % 3 == 0 ? "en" : "",
                 ends[next_random_number() % 8]);
}

static void
make_random_area(mc_shape *shape, int index)
{
    double x = 10 + index % 50 * 20.0, y = 10 + index / 50 * 20.0;
    for (int i = 0; i < CORNERS; i++) {
        double angle = 2 * M_PI * i / CORNERS, radius = 9 + 4 * sin(angle * 3 + index);
        mc_shape_add(shape, (int32_t)((x + cos(angle) * radius) * 256), (int32_t)((y + sin(angle) * radius) * 256));
    }
    mc_shape_end_ring(shape, false);
}

static void
make_line(mc_shape *shape, int index)
{
    double x = index * 37 % SIDE, y = index * 101 % SIDE, angle = index;
    for (int i = 0; i < 60; i++) {
        mc_shape_add(shape, (int32_t)(x * 256), (int32_t)(y * 256));
        angle += (next_random_number() % 200 - 100) / 500.0;
        x += 5 * cos(angle);
        y += 5 * sin(angle);
    }
    mc_shape_end_part(shape);
}

/* One map; what it took to find the places on the geometries, and to place and draw. */
static void
draw_labels(double *take, double *place, const mc_text_symbol *text, bool lines)
{
    mc_geometry geometry = { 0 };
    apr_pool_t *map, *scratch;
    mc_pixels *pixels;
    const mc_rule_style rule = { .texts = text, .text_count = 1 };
    apr_pool_create(&map, pool);
    apr_pool_create(&scratch, map);
    exit_on_error(mc_pixels_create(&pixels, SIDE, SIDE, true, map));
    mc_pixels_attach(pixels, map);
    mc_labels *labels = mc_labels_create(mc_canvas_of(pixels, map), map);
    mc_labels_next_layer(labels, 1e5);
    *take = 0;
    for (int i = 0; i < (lines ? LINES : AREAS); i++) {
        mc_geometry_clear(&geometry);
        (lines ? make_line : make_random_area)(&geometry.shapes[lines ? MC_SHAPE_LINES : MC_SHAPE_POLYGONS], i);
        const char *values[] = { names[i] };
        const mc_feature feature = { .id = i, .geometry = &geometry, .values = values };
        double begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        exit_on_error(mc_labels_visit(labels, &rule, &feature, &ctx, scratch));
        apr_pool_clear(scratch);
        *take += read_clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin;
    }
    double begin = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    exit_on_error(mc_labels_finish(labels, &ctx));
    *place = read_clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin;
    mc_geometry_free(&geometry);
    apr_pool_destroy(map);
}

static void
measure_labels(const char *what, const mc_text_symbol *text, bool lines)
{
    double takes[ROUNDS], places[ROUNDS], take, place;
    draw_labels(&take, &place, text, lines);
    for (int i = 0; i < ROUNDS; i++)
        draw_labels(&takes[i], &places[i], text, lines);
    qsort(takes, ROUNDS, sizeof(double), compare_doubles);
    qsort(places, ROUNDS, sizeof(double), compare_doubles);
    printf("%-34s cold: take %6.2f place %6.2f   warm: take %6.2f place %6.2f ms\n", what, take, place,
           takes[ROUNDS / 2], places[ROUNDS / 2]);
}

int
main(void)
{
    static const char *const families[] = { "DejaVu Sans" };
    const mc_expression name = { .kind = MC_PROPERTY, .property = 0 };
    mc_text_symbol text = { .label = &name,
                            .font = { families, 1, false, 400 },
                            .size = { 10, NULL },
                            .fill = { .present = true, .color = { 0, 0, 0, 255 } },
                            .aligned = true,
                            .curved = true,
                            .max_angle = 22.5 };
    apr_initialize();
    apr_pool_create(&pool, NULL);
    ctx = (mc_ctx){ .pool = pool, .process = &process, .log = &mc_log_stderr };
    make_names();
    measure_labels("2500 areas", &text, false);
    text.halo = (mc_paint){ .present = true, .color = { 255, 255, 255, 255 } };
    text.halo_radius.constant = 1.5;
    measure_labels("2500 areas, halo 1.5", &text, false);
    text.max_displacement = 20;
    measure_labels("2500 areas, halo, moved by 20", &text, false);
    text.max_displacement = 0;
    text.placement = MC_LABEL_LINE;
    measure_labels("500 lines, halo", &text, true);
    apr_terminate();
    return 0;
}
