/* Layers that are painted with workers: the same picture to the last bit, one error, an end in any case. */
#include "random_numbers.h"
#include "styles.h"
#include "unit.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/workers.h"
#include "draw/paint/parallel_painter.h"
#include "memory/scratch.h"

enum { WIDTH = 310, HEIGHT = 290, FEATURES = 9000, WORKERS = 3, HUGE_RING = 60000 };

#define CSS(name, value) "<CssParameter name='" name "'>" value "</CssParameter>"
#define STROKE(more) "<Stroke>" CSS("stroke", "#c83c28") more "</Stroke>"
#define WIDE(width) STROKE(CSS("stroke-width", width))
#define FILL "<Fill>" CSS("fill", "#f0dcb4") "</Fill>"
#define LINE(inner) "<LineSymbolizer>" inner "</LineSymbolizer>"
#define AREA(inner) "<PolygonSymbolizer>" inner "</PolygonSymbolizer>"
#define MARK(name, more) "<Graphic><Mark><WellKnownName>" name "</WellKnownName>" FILL "</Mark>" more "</Graphic>"
#define POINT(inner) "<PointSymbolizer>" inner "</PointSymbolizer>"
#define RULE(inner) "<Rule>" inner "</Rule>"
#define WHERE(name, value, inner)                                                                                      \
    "<Rule><ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>" name "</ogc:PropertyName><ogc:Literal>" value        \
    "</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>" inner "</Rule>"
#define ONLY(number, inner) WHERE("n", number, inner)
#define LOOKS_AT(name, inner) WHERE(name, "nobody has it", inner)
#define NEXT_PASS "</sld:FeatureTypeStyle><sld:FeatureTypeStyle>"
#define PATTERN(mark) "<Fill><GraphicFill>" MARK(mark, "<Size>7</Size>") "</GraphicFill></Fill>"
#define COMPUTED "<Size><ogc:PropertyName>n</ogc:PropertyName></Size>"

static const char *const styles[] = {
    /* few inks: a palette */
    ONLY("0", LINE(WIDE("5"))) ONLY("1", LINE(WIDE("3.5"))) ONLY("2", LINE(WIDE("1"))) ONLY("3", AREA(FILL WIDE("2")))
        LOOKS_AT("long", LINE(WIDE("1"))),
    ONLY("0", AREA(FILL)) ONLY("1", POINT(MARK("circle", "<Size>6</Size>"))) RULE(LINE(WIDE("1.5"))),
    RULE(AREA(FILL) LINE(STROKE(CSS("stroke-width", "4") CSS("stroke-dasharray", "7 3")))),
    RULE(LINE(WIDE("6"))) NEXT_PASS RULE(LINE("<Stroke>" CSS("stroke-width", "3") "</Stroke>")),
    RULE(POINT(MARK("star", "<Size>13</Size><Rotation>30</Rotation>"))),
    /* pixels */
    RULE(AREA("<Fill>" CSS("fill-opacity", "0.4") "</Fill>" WIDE("2.5"))) ONLY("1", LINE(WIDE("9"))),
    RULE(AREA("<Fill>" CSS("fill-opacity", "0.4") "</Fill>"))
        NEXT_PASS RULE(LINE(STROKE(CSS("stroke-opacity", "0.5")))),
    RULE(AREA(PATTERN("shape://slash") WIDE("1"))),
    RULE(AREA(PATTERN("triangle"))),
    RULE(LINE("<Stroke><GraphicStroke>" MARK("square", "<Size>9</Size>") "</GraphicStroke></Stroke>")),
    RULE(LINE(WIDE("3") "<PerpendicularOffset>6</PerpendicularOffset>")),
    RULE(AREA(FILL WIDE("1") "<Displacement><DisplacementX>5</DisplacementX><DisplacementY>9</DisplacementY>"
                             "</Displacement>") POINT(MARK("circle", "<Size>5</Size><Opacity>0.5</Opacity>"))),
    /* one painter for all rows: merged, sorted, of sizes that the data has, of many passes */
    RULE(AREA(FILL WIDE("1"))),
    RULE(LINE(WIDE("1.2"))),
    "<VendorOption name='sortBy'>n</VendorOption>" ONLY("1", LINE(WIDE("4"))) RULE(AREA(FILL)),
    RULE(POINT("<Graphic><Mark><WellKnownName>circle</WellKnownName>" FILL "</Mark>" COMPUTED "</Graphic>")
             LINE(WIDE("2"))),
    RULE(POINT("<Graphic><Mark><WellKnownName>circle</WellKnownName><Fill>" CSS(
        "fill-opacity", "0.3") "</Fill></Mark>" COMPUTED "</Graphic>") LINE(WIDE("2"))),
};

static mc_workers *workers;
static bool no_memory; /* for batches */

/* All of them wait for work. */
static void
start_workers(void)
{
    ck_ok(mc_workers_create(&workers, WORKERS, pool));
    while (mc_workers_idle(workers) < WORKERS)
        apr_sleep(1000);
}

static int32_t
random_place(int32_t size, int32_t around)
{
    return random_whole(-around, size * MC_SUBPIXELS + around);
}

static void
add_random_part(mc_shape *shape, int vertices, int32_t reach)
{
    int32_t x = random_place(WIDTH, 8000), y = random_place(HEIGHT, 8000);
    for (int i = 0; i < vertices; i++)
        mc_shape_add(shape, x + random_whole(-reach, reach), y + random_whole(-reach, reach));
    if (shape->kind == MC_SHAPE_POLYGONS)
        mc_shape_end_ring(shape, false);
    else
        mc_shape_end_part(shape);
}

/* Lines, areas, points and all of them together; mostly small, some over the whole map, some far away. */
static void
make_random_feature(mc_geometry *geometry, int number)
{
    const int kind = number % 5;
    int32_t reach = number % 97 == 0 ? 60000 : number % 4001 == 4000 ? MC_SHAPE_REACH - (1 << 20) : 3500;
    mc_geometry_clear(geometry);
    if (number == FEATURES / 2) { /* larger than any batch */
        for (int i = 0; i < HUGE_RING; i++) {
            double turn = i * 2 * 3.141592653589793 / HUGE_RING, radius = (30 + i % 7) * MC_SUBPIXELS;
            mc_shape_add(&geometry->shapes[MC_SHAPE_POLYGONS], 150 * MC_SUBPIXELS + (int32_t)(radius * cos(turn)),
                         150 * MC_SUBPIXELS + (int32_t)(radius * sin(turn)));
        }
        mc_shape_end_ring(&geometry->shapes[MC_SHAPE_POLYGONS], false);
        return;
    }
    if (kind != 1 && kind != 2)
        add_random_part(&geometry->shapes[MC_SHAPE_LINES], random_whole(2, 8), reach);
    if (kind == 1 || kind == 4)
        add_random_part(&geometry->shapes[MC_SHAPE_POLYGONS], random_whole(3, 9), reach);
    if (kind == 2 || kind == 4)
        add_random_part(&geometry->shapes[MC_SHAPE_POINTS], 1, reach);
    if (kind == 3)
        add_random_part(&geometry->shapes[MC_SHAPE_LINES], 3, reach);
}

static mc_geometry features[FEATURES];

static void
make_features(void)
{
    static bool made;
    for (int i = 0; i < FEATURES && !made; i++)
        make_random_feature(&features[i], i);
    made = true;
}

/* Some of the features of a layer, the same each time; from any thread. */
static mc_error *
visit_some_features(mc_feature_visitor *visit, void *baton, const mc_style *style, const mc_feature_query *query,
                    int from, int to, mc_ctx *visiting)
{
    static const char *const numbers[] = { "0", "1", "2", "3", "4", "5", "6" };
    const char *values[8] = { NULL };
    char text[700]; /* few features fill a batch: more batches than can wait */
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (int i = from; i < to; i++) {
        for (int a = 0; a < style->attribute_count; a++)
            values[a] = i % 11 == 0 ? NULL : strcmp(style->attributes[a], "n") == 0 ? numbers[i % 7] : text;
        const mc_feature feature = { .id = i, .geometry = &features[i], .values = values, .query = query };
        MC_TRY(visit(baton, &feature, visiting));
    }
    return MC_OK;
}

/* All of them, of several worlds. */
static mc_error *
visit_features(mc_feature_visitor *visit, void *baton, const mc_style *style, const mc_feature_query *query)
{
    mc_feature_query other = *query; /* of another world */
    other.pixel_grid.x0 -= 1000;
    make_features();
    for (int i = 0; i < FEATURES; i++) {
        const mc_feature_query *const worlds[] = { &other, query, NULL };
        MC_TRY(visit_some_features(visit, baton, style, worlds[i % 3], i, i + 1, &ctx));
    }
    return MC_OK;
}

/* Packets of features, some of which cannot be kept, and one that fails. */
typedef struct test_packet {
    mc_feature_packet base;
    const mc_style *style;
    int from, to, fails_at;
} test_packet;

static atomic_int kept_packets;
static bool keeps_none;

static mc_error *
decode_test_packet(const mc_feature_packet *base, mc_feature_visitor *visit, void *baton, mc_ctx *decoding,
                   apr_pool_t *errors)
{
    const test_packet *packet = (const test_packet *)base;
    const bool fails = packet->fails_at >= packet->from && packet->fails_at < packet->to;
    MC_TRY(visit_some_features(visit, baton, packet->style, base->query, packet->from,
                               fails ? packet->fails_at : packet->to, decoding));
    return fails ? mc_error_create(errors, MC_ERR_CORRUPT, "feature %d is none", packet->fails_at) : MC_OK;
}

static mc_feature_packet *
keep_test_packet(const mc_feature_packet *base)
{
    const test_packet *packet = (const test_packet *)base;
    if (keeps_none || packet->from % 13 == 0)
        return NULL;
    test_packet *kept = malloc(sizeof(*kept));
    *kept = *packet;
    atomic_fetch_add(&kept_packets, 1);
    return &kept->base;
}

static void
release_test_packet(mc_feature_packet *packet)
{
    atomic_fetch_sub(&kept_packets, 1);
    free(packet);
}

/* All of the features in packets of many sizes, with some that are visited in between; -1: none fails. */
static mc_error *
hand_over_features(mc_parallel_painter *parallel, const mc_style *style, const mc_feature_query *query, int fails_at)
{
    static const mc_packet_ops packets = { decode_test_packet, keep_test_packet, release_test_packet, NULL };
    static const int sizes[] = { 700, 1, 0, 90, 2000, 7, 333 };
    mc_feature_query other = *query; /* of another world */
    mc_packet_taker *taker = mc_parallel_painter_taker(parallel);
    mc_error *error = MC_OK;
    other.pixel_grid.x0 -= 1000;
    make_features();
    for (int i = 0, next, number = 0; i < FEATURES && error == MC_OK; i = next, number++) {
        next = i + sizes[number % 7] > FEATURES ? FEATURES : i + sizes[number % 7];
        const mc_feature_query *world = number % 3 == 0 ? &other : query;
        const test_packet packet = { { &packets, world }, style, i, next, fails_at };
        error = number % 7 == 3 ? visit_some_features(mc_parallel_painter_visit, parallel, style, world, i, next, &ctx)
                                : taker->take(taker, &packet.base, &ctx);
    }
    error = taker->settle(taker, error);
    ck_assert_int_eq(atomic_load(&kept_packets), 0);
    return mc_parallel_painter_end(parallel, error); /* before `other` ends */
}

/* The same one by one. */
static mc_error *
visit_handed_features(mc_painter *painter, const mc_style *style, const mc_feature_query *query)
{
    static const int sizes[] = { 700, 1, 0, 90, 2000, 7, 333 };
    mc_feature_query other = *query;
    other.pixel_grid.x0 -= 1000;
    make_features();
    for (int i = 0, number = 0; i < FEATURES; i += sizes[number++ % 7]) {
        const int next = i + sizes[number % 7] > FEATURES ? FEATURES : i + sizes[number % 7];
        MC_TRY(visit_some_features(mc_painter_visit, painter, style, number % 3 == 0 ? &other : query, i, next, &ctx));
    }
    return MC_OK;
}

static mc_feature_query
query_of(const mc_style *style)
{
    return (mc_feature_query){ .srs = "EPSG:3857",
                               .scale = 1000,
                               .resolution = 0.28,
                               .pixel_grid = { .per_x = 1, .per_y = 1, .thinning = 64, .left = 5, .top = 77 },
                               .attributes = style->attributes,
                               .attribute_count = style->attribute_count };
}

static mc_canvas *
canvas_for(const mc_style *style, apr_pool_t *of)
{
    mc_painter_needs needs = { .merged = true, .suits = true };
    mc_painter_needs_add(&needs, style, 1000);
    mc_canvas *canvas = mc_canvas_create(WIDTH, HEIGHT, true, of);
    if (needs.suits && !needs.merged)
        ck_ok(mc_canvas_create_with_palette(&canvas, WIDTH, HEIGHT, mc_ink_palette_get(&needs.inks, of), of));
    return canvas;
}

/* Paints the layer; *indexed: the canvas still has indices. `packed`: in packets. */
static mc_pixels *
paint_layer(const mc_style *style, bool together, bool packed, bool *indexed)
{
    apr_pool_t *own = mc_task_pool_acquire();
    const mc_feature_query query = query_of(style);
    mc_canvas *canvas = canvas_for(style, own);
    mc_painter *painter;
    mc_pixels *pixels;
    process.workers = together ? workers : NULL;
    ck_ok(mc_painter_create_on(&painter, style, canvas, &query, false, own));
    if (no_memory)
        mc_budget_set(mc_budget_used() + 1, NULL);
    if (together) {
        mc_parallel_painter *parallel = mc_parallel_painter_create(painter, &ctx, pool);
        if (packed)
            ck_ok(hand_over_features(parallel, style, &query, -1));
        else
            ck_ok(
                mc_parallel_painter_end(parallel, visit_features(mc_parallel_painter_visit, parallel, style, &query)));
    } else
        ck_ok(packed ? visit_handed_features(painter, style, &query)
                     : visit_features(mc_painter_visit, painter, style, &query));
    mc_budget_set(0, NULL);
    ck_ok(mc_painter_finish(painter, &ctx));
    *indexed = canvas->indexed != NULL;
    ck_ok(mc_canvas_pixels(&pixels, canvas));
    mc_pixels_attach(mc_pixels_ref(pixels), pool);
    mc_task_pool_release(own);
    return pixels;
}

static void
compare_ways(int number, bool packed)
{
    bool indexed[2];
    const mc_style *style = style_of(styles[number]);
    ck_assert_msg(style != NULL && count_complaints(MC_NOT_BUILT) == 0, "%d: %s", number, all_complaints());
    const mc_pixels *alone = paint_layer(style, false, packed, &indexed[0]);
    const mc_pixels *together = paint_layer(style, true, packed, &indexed[1]);
    ck_assert_msg(indexed[0] == indexed[1], "style %d: indices", number);
    for (int y = 0; y < HEIGHT; y++)
        ck_assert_msg(memcmp(alone->data + (size_t)y * alone->stride, together->data + (size_t)y * together->stride,
                             (size_t)WIDTH * 4) == 0,
                      "style %d: row %d differs", number, y);
}

START_TEST(pictures_are_the_same)
{
    start_workers();
    for (int i = 0; i < (int)(sizeof(styles) / sizeof(styles[0])); i++)
        compare_ways(i, false);
    mc_workers_destroy(workers);
}
END_TEST

/* Packets that workers decode, those that cannot be kept, and features in between. */
START_TEST(pictures_of_packets_are_the_same)
{
    start_workers();
    for (int i = 0; i < (int)(sizeof(styles) / sizeof(styles[0])); i++)
        compare_ways(i, true);
    keeps_none = true;
    compare_ways(0, true);
    mc_workers_destroy(workers);
}
END_TEST

/* Without memory for batches, features are painted as they come. */
START_TEST(no_memory_is_no_error)
{
    start_workers();
    mc_scratch_forget();
    no_memory = true;
    compare_ways(0, false);
    compare_ways(0, true);
    mc_workers_destroy(workers);
}
END_TEST

/* A collector of labels, whom only one thread may call at a time, and that fails. */
typedef struct failing_labels {
    int visited, fails_at;
    atomic_int inside;
} failing_labels;

static mc_error *
fail_later(void *baton, const mc_rule_style *rule, const mc_feature *feature, mc_ctx *own, apr_pool_t *scratch)
{
    failing_labels *labels = baton;
    (void)rule;
    (void)own;
    ck_assert_int_eq(atomic_fetch_add(&labels->inside, 1), 0);
    ck_assert_int_eq(feature->id, labels->visited++); /* in order, each of them once */
    atomic_fetch_sub(&labels->inside, 1);
    return labels->visited <= labels->fails_at ? MC_OK : mc_error_create(scratch, MC_ERR_CORRUPT, "no label");
}

static mc_error *
paint_with_labels(failing_labels *labels, mc_error *of_reader)
{
    apr_pool_t *own = mc_task_pool_acquire();
    const mc_style *style = style_of(RULE(LINE(WIDE("3")) AREA(FILL)));
    const mc_feature_query query = query_of(style);
    mc_painter *painter;
    process.workers = workers;
    ck_ok(mc_painter_create_on(&painter, style, canvas_for(style, own), &query, false, own));
    mc_painter_set_labels(painter, fail_later, labels);
    mc_parallel_painter *parallel = mc_parallel_painter_create(painter, &ctx, pool);
    mc_error *error = visit_features(mc_parallel_painter_visit, parallel, style, &query);
    error = mc_parallel_painter_end(parallel, error == MC_OK ? of_reader : error);
    mc_task_pool_release(own);
    return error;
}

START_TEST(each_error_ends_all_and_comes_once)
{
    start_workers();
    for (int at = 100; at < FEATURES; at += 2150) {
        failing_labels labels = { .fails_at = at };
        ck_fails(CORRUPT, paint_with_labels(&labels, MC_OK));
        ck_assert_int_eq(labels.visited, at + 1); /* nothing was painted after it */
    }
    failing_labels all = { .fails_at = FEATURES };
    ck_ok(paint_with_labels(&all, MC_OK));
    ck_assert_int_eq(all.visited, FEATURES);
    failing_labels some = { .fails_at = FEATURES };
    ck_fails(UPSTREAM, paint_with_labels(&some, mc_error_create(pool, MC_ERR_UPSTREAM, "no more rows")));
    mc_workers_destroy(workers);
}
END_TEST

static mc_error *
hand_over_with_labels(failing_labels *labels, int fails_at)
{
    apr_pool_t *own = mc_task_pool_acquire();
    const mc_style *style = style_of(RULE(LINE(WIDE("3")) AREA(FILL)));
    const mc_feature_query query = query_of(style);
    mc_painter *painter;
    process.workers = workers;
    ck_ok(mc_painter_create_on(&painter, style, canvas_for(style, own), &query, false, own));
    mc_painter_set_labels(painter, fail_later, labels);
    mc_error *error = hand_over_features(mc_parallel_painter_create(painter, &ctx, pool), style, &query, fails_at);
    mc_task_pool_release(own);
    return error;
}

START_TEST(each_error_of_packets_ends_all)
{
    start_workers();
    for (int at = 100; at < FEATURES; at += 2150) {
        failing_labels none = { .fails_at = FEATURES }, some = { .fails_at = at };
        ck_fails(CORRUPT, hand_over_with_labels(&none, at)); /* of a packet */
        ck_assert_int_le(none.visited, at);
        ck_fails(CORRUPT, hand_over_with_labels(&some, -1)); /* of a painter */
        ck_assert_int_eq(some.visited, at + 1);
    }
    failing_labels all = { .fails_at = FEATURES };
    ck_ok(hand_over_with_labels(&all, -1));
    ck_assert_int_eq(all.visited, FEATURES);
    mc_workers_destroy(workers);
}
END_TEST

static bool
client_is_gone(void *baton)
{
    ++*(int *)baton;
    return true;
}

START_TEST(a_client_that_goes_ends_all)
{
    int asked = 0;
    failing_labels labels = { .fails_at = FEATURES };
    start_workers();
    ctx.abandoned = client_is_gone;
    ctx.abandoned_baton = &asked;
    mc_error *error = paint_with_labels(&labels, MC_OK);
    ctx.abandoned = NULL;
    ck_assert((error != MC_OK) == (asked > 0)); /* who never waits leaves that to the reader */
    mc_workers_destroy(workers);
}
END_TEST

UNIT_MAIN("parallel_painter", pictures_are_the_same, pictures_of_packets_are_the_same, no_memory_is_no_error,
          each_error_ends_all_and_comes_once, each_error_of_packets_ends_all, a_client_that_goes_ends_all)
