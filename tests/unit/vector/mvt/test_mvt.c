#include "unit.h"

#include <apr_strings.h>
#include <string.h>

#include "base/metrics.h"
#include "base/workers.h"
#include "compress/gzip.h"
#include "vector/geometry/simplify.h"
#include "vector/mvt/mvt.h"
#include "vector/mvt/mvt_layer.h"
#include "vector/mvt/mvt_shape.h"

static void
add_ring(mc_shape *shape, const int (*points)[2], int count)
{
    for (int i = 0; i < count; i++)
        mc_shape_add(shape, points[i][0], points[i][1]);
    mc_shape_end_part(shape);
}

static int64_t
area_of(const mc_shape *shape, int part)
{
    int begin = part == 0 ? 0 : shape->ends[part - 1], count = shape->ends[part] - begin;
    int64_t twice = 0;
    for (int i = 0; i < count; i++) {
        mc_shape_point a = shape->points[begin + i], b = shape->points[begin + (i + 1) % count];
        twice += (int64_t)a.x * b.y - (int64_t)b.x * a.y;
    }
    return twice / 2;
}

/* Clips to 0..100, cleans and orders; the result lives in statics until the next call. */
static const mc_shape *
clipped(mc_shape *in)
{
    static mc_shape cut, clean, ordered;
    mc_mvt_clip_rings(&cut, in, 0, 100, mc_mvt_clipper_create(pool));
    mc_mvt_clean_rings(&clean, &cut);
    static const mc_shape nothing = { .kind = MC_SHAPE_POLYGONS };
    const mc_shape *out = mc_mvt_order_rings(&ordered, &clean, false, pool);
    return out == NULL ? &nothing : out;
}

START_TEST(a_ring_inside_stays_as_it_is)
{
    static const int square[][2] = { { 10, 10 }, { 20, 10 }, { 20, 20 }, { 10, 20 } };
    mc_shape in = { .kind = MC_SHAPE_POLYGONS };
    add_ring(&in, square, 4);
    const mc_shape *out = clipped(&in);
    ck_assert_int_eq(out->part_count, 1);
    ck_assert_int_eq(out->point_count, 4);
    ck_assert_int_eq(area_of(out, 0), 100);
    mc_shape_free(&in);
}
END_TEST

START_TEST(a_comb_falls_into_its_teeth)
{
    /* The back lies outside, three teeth reach in: three polygons, not one with bridges along the side. */
    static const int comb[][2] = { { -50, 0 }, { 30, 0 },   { 30, 10 },  { -20, 10 }, { -20, 20 }, { 30, 20 },
                                   { 30, 30 }, { -20, 30 }, { -20, 40 }, { 30, 40 },  { 30, 50 },  { -50, 50 } };
    mc_shape in = { .kind = MC_SHAPE_POLYGONS };
    add_ring(&in, comb, 12);
    const mc_shape *out = clipped(&in);
    ck_assert_int_eq(out->part_count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(area_of(out, i), 300);
    mc_shape_free(&in);
}
END_TEST

START_TEST(a_hole_that_is_cut_becomes_part_of_the_border)
{
    static const int outer[][2] = { { -50, -50 }, { 150, -50 }, { 150, 150 }, { -50, 150 } };
    static const int hole[][2] = { { 80, 40 }, { 80, 60 }, { 120, 60 }, { 120, 40 } };
    mc_shape in = { .kind = MC_SHAPE_POLYGONS };
    add_ring(&in, outer, 4);
    add_ring(&in, hole, 4);
    const mc_shape *out = clipped(&in);
    ck_assert_int_eq(out->part_count, 1);
    ck_assert_int_eq(area_of(out, 0), 100 * 100 - 20 * 20);
    mc_shape_free(&in);
}
END_TEST

START_TEST(a_tile_inside_of_a_ring_is_full_and_one_beside_it_empty)
{
    static const int around[][2] = { { -500, -500 }, { 500, -500 }, { 500, 500 }, { -500, 500 } };
    static const int corner[][2] = { { -500, 50 }, { 50, -500 }, { -500, -500 } }; /* its box meets, it does not */
    mc_shape in = { .kind = MC_SHAPE_POLYGONS };
    add_ring(&in, around, 4);
    const mc_shape *out = clipped(&in);
    ck_assert_int_eq(out->part_count, 1);
    ck_assert_int_eq(area_of(out, 0), 10000);
    mc_shape_clear(&in, MC_SHAPE_POLYGONS);
    add_ring(&in, corner, 3);
    ck_assert_int_eq(clipped(&in)->part_count, 0);
    mc_shape_free(&in);
}
END_TEST

START_TEST(holes_follow_the_ring_that_they_are_in)
{
    static const int outers[2][4][2] = { { { 10, 10 }, { 40, 10 }, { 40, 40 }, { 10, 40 } },
                                         { { 50, 10 }, { 90, 10 }, { 90, 40 }, { 50, 40 } } };
    static const int holes[2][4][2] = { { { 20, 20 }, { 20, 30 }, { 30, 30 }, { 30, 20 } },
                                        { { 60, 20 }, { 60, 30 }, { 70, 30 }, { 70, 20 } } };
    static const int lost[][2] = { { 60, 60 }, { 60, 70 }, { 70, 70 }, { 70, 60 } };
    mc_shape in = { .kind = MC_SHAPE_POLYGONS };
    add_ring(&in, holes[1], 4); /* shapefiles have them in any order */
    add_ring(&in, outers[0], 4);
    add_ring(&in, outers[1], 4);
    add_ring(&in, holes[0], 4);
    add_ring(&in, lost, 4);
    const mc_shape *out = clipped(&in);
    ck_assert_int_eq(out->part_count, 4);
    ck_assert_int_eq(out->points[0].x, 10);
    ck_assert_int_eq(area_of(out, 1), -100);
    ck_assert_int_eq(out->points[4].x, 20);
    ck_assert_int_eq(out->points[8].x, 50);
    ck_assert_int_eq(out->points[12].x, 60);
    mc_shape_free(&in);
}
END_TEST

/* As an island may be that has turned round when it was simplified. */
START_TEST(a_hole_beside_the_only_ring_is_left_out)
{
    static const int ring[][2] = { { 10, 10 }, { 20, 10 }, { 20, 20 }, { 10, 20 } };
    static const int beside[][2] = { { 50, 50 }, { 50, 60 }, { 60, 60 } };
    mc_shape in = { .kind = MC_SHAPE_POLYGONS };
    add_ring(&in, beside, 3);
    add_ring(&in, ring, 4);
    add_ring(&in, beside, 3);
    const mc_shape *out = clipped(&in);
    ck_assert_int_eq(out->part_count, 1);
    ck_assert_int_eq(area_of(out, 0), 100);
    mc_shape_free(&in);
}
END_TEST

START_TEST(spikes_straight_runs_and_flat_rings_go)
{
    static const int spiked[][2] = {
        { 10, 10 }, { 15, 10 }, { 20, 10 }, { 60, 10 }, { 20, 10 }, { 20, 20 }, { 10, 20 }
    };
    static const int flat[][2] = { { 10, 10 }, { 20, 20 }, { 30, 30 }, { 15, 15 } };
    mc_shape in = { .kind = MC_SHAPE_POLYGONS };
    add_ring(&in, spiked, 7);
    add_ring(&in, flat, 4);
    const mc_shape *out = clipped(&in);
    ck_assert_int_eq(out->part_count, 1);
    ck_assert_int_eq(out->point_count, 4);
    ck_assert_int_eq(area_of(out, 0), 100);
    mc_shape_free(&in);
}
END_TEST

START_TEST(simplified_lines_stay_close)
{
    enum { COUNT = 4000 };
    static const double tolerances[] = { 0, 0.5, 1, 3 };
    for (size_t t = 0; t < sizeof(tolerances) / sizeof(*tolerances); t++) {
        mc_shape in = { .kind = MC_SHAPE_LINES }, out = { .kind = MC_SHAPE_LINES };
        unsigned state = 7;
        int x = 0, y = 0;
        for (int i = 0; i < COUNT; i++) {
            state = state * 1664525U + 1013904223U;
            x += (int)(state >> 16) % 9 - 2;
            y += (int)(state >> 8) % 7 - 3;
            mc_shape_add(&in, x, y);
        }
        mc_shape_end_part(&in);
        mc_shape_simplify(&out, &in, tolerances[t]);
        ck_assert_int_eq(out.points[0].x, in.points[0].x);
        ck_assert_int_eq(out.points[out.point_count - 1].y, in.points[COUNT - 1].y);
        for (int i = 0; i < COUNT; i++) { /* each vertex has a segment near it */
            double least = 1e30;
            for (int j = 1; j < out.point_count; j++) {
                double ax = out.points[j - 1].x, ay = out.points[j - 1].y;
                double dx = out.points[j].x - ax, dy = out.points[j].y - ay, square = dx * dx + dy * dy;
                double at = square == 0 ? 0 : ((in.points[i].x - ax) * dx + (in.points[i].y - ay) * dy) / square;
                at = at < 0 ? 0 : at > 1 ? 1 : at;
                double px = in.points[i].x - ax - at * dx, py = in.points[i].y - ay - at * dy;
                least = px * px + py * py < least ? px * px + py * py : least;
            }
            ck_assert_double_le(least, tolerances[t] * tolerances[t] + 1e-9);
        }
        ck_assert_int_lt(out.point_count, t == 0 ? COUNT + 1 : COUNT * 9 / 10);
        mc_shape_free(&in);
        mc_shape_free(&out);
    }
}
END_TEST

START_TEST(lines_are_cut_and_points_chosen)
{
    static const int zigzag[][2] = { { -50, 50 }, { 50, 50 }, { 150, 50 }, { 150, 70 }, { 50, 70 }, { 60, 80 } };
    mc_shape in = { .kind = MC_SHAPE_LINES }, out = { .kind = MC_SHAPE_LINES };
    add_ring(&in, zigzag, 6);
    mc_mvt_clip_lines(&out, &in, 0, 100);
    ck_assert_int_eq(out.part_count, 2);
    ck_assert_int_eq(out.points[0].x, 0);
    ck_assert_int_eq(out.points[out.ends[0] - 1].x, 100);
    ck_assert_int_eq(out.points[out.ends[0]].x, 100);
    ck_assert_int_eq(out.points[out.ends[1] - 1].x, 60);
    mc_shape_clear(&in, MC_SHAPE_POINTS);
    mc_shape_add(&in, 0, 100);
    mc_shape_end_part(&in);
    mc_shape_add(&in, -1, 100);
    mc_shape_end_part(&in);
    mc_mvt_clip_points(&out, &in, 0, 100);
    ck_assert_int_eq(out.point_count, 1);
    mc_shape_free(&in);
    mc_shape_free(&out);
}
END_TEST

static const mc_mvt_options options = {
    .extent = 256, .buffer = 16, .simplification = 1, .max_features = 10, .max_bytes = 1 << 20, .max_time = 10
};

/* The bytes of a tile of one layer with `count` squares of growing size and an attribute each. */
static mc_buf *
tile_of(int count, mc_field_type type, const char *const *values, const mc_mvt_options *how, mc_mvt_result *result)
{
    static const mc_field field = { "key", MC_FIELD_TEXT };
    mc_field *own = apr_pmemdup(pool, &field, sizeof(field));
    own->type = type;
    mc_mvt *mvt = mc_mvt_create(how, 1, 1, 1, pool);
    mc_geometry geometry = { 0 };
    mc_geometry_clear(&geometry);
    mc_mvt_layer(mvt, "name", own, 1, true);
    for (int i = 0; i < count; i++) {
        int side = 20 + i;
        const int square[4][2] = { { 0, 0 }, { side, 0 }, { side, side }, { 0, side } };
        mc_geometry_clear(&geometry);
        add_ring(&geometry.shapes[MC_SHAPE_POLYGONS], square, 4);
        const mc_feature feature = { .id = i, .geometry = &geometry, .values = &values[i] };
        ck_ok(mc_mvt_visit(mvt, &feature, &ctx));
    }
    mc_geometry_free(&geometry);
    ck_ok(mc_mvt_finish(result, mvt, 0, 0, &ctx, pool));
    mc_buf *bytes;
    ck_ok(mc_gunzip(&bytes, result->packed->data, result->packed->size, 1 << 20, pool));
    ck_assert_uint_eq(bytes->size, result->bytes);
    return bytes;
}

static bool
holds(const mc_buf *bytes, const void *what, size_t size)
{
    return memmem(bytes->data, bytes->size, what, size) != NULL;
}

START_TEST(values_are_encoded_by_their_type)
{
    static const struct {
        mc_field_type type;
        const char *text;
        uint8_t bytes[16];
        size_t size;
    } cases[] = {
        { MC_FIELD_TEXT, "a\xC3\xBC", { 0x22, 5, 0x0A, 3, 'a', 0xC3, 0xBC }, 7 },
        { MC_FIELD_TEXT, "\xFCz", { 0x22, 6, 0x0A, 4, 0xEF, 0xBF, 0xBD, 'z' }, 8 },
        { MC_FIELD_TEXT, "\xE2\x82", { 0x22, 8, 0x0A, 6, 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD }, 10 },
        { MC_FIELD_TEXT, "", { 0x22, 2, 0x0A, 0 }, 4 },
        { MC_FIELD_INTEGER, "300", { 0x22, 3, 0x28, 0xAC, 2 }, 5 },
        { MC_FIELD_INTEGER, "-2", { 0x22, 2, 0x30, 3 }, 4 },
        { MC_FIELD_INTEGER,
          "-9223372036854775808",
          { 0x22, 11, 0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1 },
          13 },
        { MC_FIELD_INTEGER, "no", { 0x22, 4, 0x0A, 2, 'n', 'o' }, 6 },
        { MC_FIELD_NUMBER, "0.5", { 0x22, 5, 0x15, 0, 0, 0, 0x3F }, 7 },
        { MC_FIELD_NUMBER, "0.1", { 0x22, 9, 0x19, 0x9A, 0x99, 0x99, 0x99, 0x99, 0x99, 0xB9, 0x3F }, 11 },
        { MC_FIELD_BOOLEAN, "true", { 0x22, 2, 0x38, 1 }, 4 },
        { MC_FIELD_BOOLEAN, "F", { 0x22, 2, 0x38, 0 }, 4 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mc_mvt_result result;
        mc_buf *bytes = tile_of(1, cases[i].type, &cases[i].text, &options, &result);
        ck_assert_msg(holds(bytes, cases[i].bytes, cases[i].size), "%s", cases[i].text);
    }
}
END_TEST

START_TEST(a_tile_is_what_the_specification_says)
{
    static const char *const values[] = { "v" };
    static const uint8_t expected[] = { 0x1A, 44,                                                       /* a layer */
                                        0x78, 2,                                                        /* version */
                                        0x0A, 4,    'n',  'a', 'm', 'e',                                /* name */
                                        0x12, 21,   0x08, 0,                                            /* feature 0 */
                                        0x12, 2,    0,    0,                                            /* tags */
                                        0x18, 3,                                                        /* a polygon */
                                        0x22, 11,   9,    0,   0,                                       /* to 0 0 */
                                        26,   40,   0,    0,   40,  39,  0, 15, 0x1A, 3, 'k', 'e', 'y', /* key */
                                        0x22, 3,    0x0A, 1,   'v',                                     /* value */
                                        0x28, 0x80, 2 };                                                /* extent */
    mc_mvt_result result;
    mc_buf *bytes = tile_of(1, MC_FIELD_TEXT, values, &options, &result);
    ck_assert_uint_eq(bytes->size, sizeof(expected));
    ck_assert_mem_eq(bytes->data, expected, sizeof(expected));
    ck_assert_uint_eq(tile_of(0, MC_FIELD_TEXT, values, &options, &result)->size, 0);
}
END_TEST

START_TEST(the_largest_features_are_kept)
{
    static const char *values[1000];
    mc_mvt_options few = options;
    mc_mvt_result result;
    for (int i = 0; i < 1000; i++)
        values[i] = apr_psprintf(pool, "value %d", i);
    mc_buf *bytes = tile_of(100, MC_FIELD_TEXT, values, &few, &result);
    ck_assert_int_eq(result.features, 10);
    ck_assert_int_eq(result.dropped, 90);
    ck_assert(holds(bytes, "value 90", 8) && holds(bytes, "value 99", 8));
    ck_assert(!holds(bytes, "value 89", 8) && !holds(bytes, "value 1", 7));
    few.max_features = 100000;
    few.max_bytes = 1024;
    bytes = tile_of(1000, MC_FIELD_TEXT, values, &few, &result);
    ck_assert_uint_le(bytes->size, 1024);
    ck_assert_uint_ge(bytes->size, 512);
    ck_assert(holds(bytes, "value 999", 9) && !holds(bytes, "value 900", 9));
    ck_assert_int_eq(result.features + result.dropped, 1000);
}
END_TEST

/* A number below `limit` that follows from the ones before. */
static int
random_below(unsigned *state, int limit)
{
    *state = *state * 1664525U + 1013904223U;
    return (int)((*state >> 8) % (unsigned)limit);
}

/* Zigzags and points of any size around a block of 3x2 tiles, moved. */
static void
random_geometry(mc_geometry *geometry, unsigned *state, int right, int down)
{
    mc_geometry_clear(geometry);
    mc_shape *shape = &geometry->shapes[random_below(state, 3)];
    int parts = 1 + random_below(state, 3), size = 4 << random_below(state, 8);
    int x = random_below(state, 1100) - 150, y = random_below(state, 800) - 150;
    for (int part = 0; part < parts; part++) {
        for (int i = 0, count = 1 + random_below(state, 30); i < count; i++)
            mc_shape_add(shape, x + random_below(state, size) - right, y + random_below(state, size) - down);
        if (shape->kind == MC_SHAPE_POLYGONS)
            mc_shape_end_ring(shape, part > 0);
        else
            mc_shape_end_part(shape);
    }
}

static mc_mvt *
random_block(int columns, int rows, int right, int down, const mc_mvt_options *how)
{
    static const mc_field field = { "key", MC_FIELD_INTEGER };
    mc_geometry geometry = { 0 };
    unsigned state = 5;
    mc_mvt *mvt = mc_mvt_create(how, columns, rows, 2, pool);
    for (int layer = 0; layer < 2; layer++) {
        mc_mvt_layer(mvt, layer == 0 ? "first" : "second", &field, 1, true);
        for (int i = 0; i < 200; i++) {
            const char *value = apr_itoa(pool, i % 7);
            random_geometry(&geometry, &state, right, down);
            const mc_feature feature = { .id = i, .geometry = &geometry, .values = &value };
            ck_ok(mc_mvt_visit(mvt, &feature, &ctx));
        }
    }
    mc_geometry_free(&geometry);
    return mvt;
}

START_TEST(tiles_of_a_block_are_those_that_are_made_alone)
{
    mc_mvt_options budgets[] = { options, options, options };
    budgets[0].max_features = 1000;
    budgets[2].max_features = 1000;
    budgets[2].max_bytes = 5000;
    for (size_t i = 0; i < sizeof(budgets) / sizeof(*budgets); i++) {
        int columns = i == 2 ? 2 : 3; /* what so many bytes are not too much for at once */
        mc_mvt *block = random_block(columns, 2, 0, 0, &budgets[i]);
        for (int tile = 0; tile < columns * 2; tile++) {
            mc_mvt_result one, other;
            mc_mvt *alone = random_block(1, 1, tile % columns * 256, tile / columns * 256, &budgets[i]);
            ck_ok(mc_mvt_finish(&one, alone, 0, 0, &ctx, pool));
            ck_ok(mc_mvt_finish(&other, block, tile % columns, tile / columns, &ctx, pool));
            ck_assert_int_gt(one.features, 5);
            ck_assert_int_eq(one.features, other.features);
            ck_assert_int_eq(one.dropped, other.dropped);
            ck_assert_int_eq(one.dropped > 0, i > 0);
            ck_assert_uint_eq(one.packed->size, other.packed->size);
            ck_assert_mem_eq(one.packed->data, other.packed->data, one.packed->size);
        }
    }
}
END_TEST

typedef struct finished_tiles {
    const mc_mvt *block;
    mc_mvt_result results[6];
} finished_tiles;

static mc_error *
finish_one_of(void *baton, int index, mc_ctx *task_ctx)
{
    finished_tiles *tiles = baton;
    MC_TRY(mc_mvt_finish(&tiles->results[index], tiles->block, index % 3, index / 3, task_ctx, task_ctx->pool));
    mc_buf_ref(tiles->results[index].packed);
    return MC_OK;
}

/* Also where the budgets make each of them throw things away. */
START_TEST(threads_finish_tiles_of_a_block_at_once)
{
    mc_workers *workers;
    mc_mvt_options budget = options;
    budget.max_bytes = 12000;
    ck_ok(mc_workers_create(&workers, 3, pool));
    for (int round = 0; round < 5; round++) {
        const mc_mvt *in_turn = random_block(3, 2, 0, 0, &budget);
        finished_tiles tiles = { .block = random_block(3, 2, 0, 0, &budget) };
        ck_ok(mc_workers_run(workers, finish_one_of, &tiles, 6, 3, &ctx, pool));
        for (int i = 0; i < 6; i++) {
            mc_mvt_result one;
            ck_ok(mc_mvt_finish(&one, in_turn, i % 3, i / 3, &ctx, pool));
            ck_assert_int_gt(one.dropped, 0);
            ck_assert_int_eq(one.dropped, tiles.results[i].dropped);
            ck_assert_uint_eq(one.packed->size, tiles.results[i].packed->size);
            ck_assert_mem_eq(one.packed->data, tiles.results[i].packed->data, one.packed->size);
            mc_buf_unref(tiles.results[i].packed);
        }
    }
    mc_workers_destroy(workers);
}
END_TEST

/* Squares in every tile of a block of 4x4, until there is no more room; how many, at most `most`. */
static int
fill_block(mc_mvt *mvt, int most)
{
    mc_geometry geometry = { 0 };
    int count = 0;
    mc_error *error = MC_OK;
    mc_mvt_layer(mvt, "layer", NULL, 0, true);
    for (; count < most && error == MC_OK; count++) {
        int x = count % 4 * 256 + 100, y = count / 4 % 4 * 256 + 100;
        const int square[4][2] = { { x, y }, { x + 20, y }, { x + 20, y + 20 }, { x, y + 20 } };
        mc_geometry_clear(&geometry);
        add_ring(&geometry.shapes[MC_SHAPE_POLYGONS], square, 4);
        const mc_feature feature = { .id = count, .geometry = &geometry };
        error = mc_mvt_visit(mvt, &feature, &ctx);
    }
    mc_geometry_free(&geometry);
    ck_assert(error == MC_OK || error->kind == MC_ERR_LIMIT);
    ck_assert_int_eq(error != MC_OK, mc_mvt_crowded(mvt));
    mc_error_ignore(error);
    return count;
}

START_TEST(a_block_needs_no_more_memory_than_some_full_tiles)
{
    enum { MOST = 100000 };
    mc_mvt_options small = options;
    small.max_bytes = 4096;
    small.max_features = MOST;
    int squares = fill_block(mc_mvt_create(&small, 4, 4, 1, pool), MOST);
    ck_assert_int_gt(squares, 16 * 10);
    ck_assert_int_lt(squares, 16 * 200);
    ck_assert_int_eq(fill_block(mc_mvt_create(&small, 1, 1, 1, pool), MOST), MOST);
}
END_TEST

static bool
count_looks(void *baton)
{
    ++*(int *)baton;
    return false;
}

/* A large shape in many tiles takes as long as many features. */
START_TEST(time_is_looked_at_between_tiles)
{
    enum { TEETH = 20000 };
    mc_geometry geometry = { 0 };
    int looks = 0;
    mc_ctx watched = ctx;
    watched.abandoned = count_looks;
    watched.abandoned_baton = &looks;
    mc_mvt_options plenty = options;
    plenty.max_bytes = 1 << 24;
    mc_mvt *mvt = mc_mvt_create(&plenty, 8, 8, 1, pool);
    mc_mvt_layer(mvt, "a", NULL, 0, false);
    mc_geometry_clear(&geometry);
    for (int i = 0; i < TEETH; i++)
        mc_shape_add(&geometry.shapes[MC_SHAPE_LINES], i % 2 * 2047, i * 2047 / TEETH);
    mc_shape_end_part(&geometry.shapes[MC_SHAPE_LINES]);
    const mc_feature feature = { .geometry = &geometry };
    ck_ok(mc_mvt_visit(mvt, &feature, &watched));
    ck_assert_int_ge(looks, 8);
    mc_geometry_free(&geometry);
}
END_TEST

START_TEST(lines_from_end_to_end_of_what_there_is)
{
    enum { FAR = MC_SHAPE_REACH };
    static const int line[][2] = { { -FAR, -FAR }, { 0, 0 },         { FAR, FAR }, { FAR, -FAR },
                                   { FAR, 0 },     { FAR - 1, FAR }, { -FAR, FAR } };
    mc_shape in = { .kind = MC_SHAPE_LINES }, out = { .kind = MC_SHAPE_LINES };
    add_ring(&in, line, 7);
    mc_shape_simplify(&out, &in, 256);
    ck_assert_int_eq(out.point_count, 5);
    ck_assert_int_eq(out.points[1].y, FAR);
    ck_assert_int_eq(out.points[2].y, -FAR);
    ck_assert_int_eq(out.points[3].x, FAR - 1);
    mc_shape_free(&in);
    mc_shape_free(&out);
}
END_TEST

START_TEST(gzip_goes_there_and_back)
{
    mc_buf *bytes, *back;
    char *text = apr_palloc(pool, 300000);
    for (int i = 0; i < 300000; i++)
        text[i] = (char)("abcdefgh"[i % 7] + i % 3);
    static const size_t sizes[] = { 0, 1, 100, 300000 };
    for (int level = MC_GZIP_FAST; level <= MC_GZIP_BEST; level++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            ck_ok(mc_gzip(&bytes, text, sizes[i], (mc_gzip_level)level, pool));
            ck_assert(mc_is_gzip(bytes->data, bytes->size));
            ck_ok(mc_gunzip(&back, bytes->data, bytes->size, sizes[i], pool));
            ck_assert_uint_eq(back->size, sizes[i]);
            ck_assert(sizes[i] == 0 || memcmp(back->data, text, sizes[i]) == 0);
        }
    ck_fails(LIMIT, mc_gunzip(&back, bytes->data, bytes->size, 299999, pool));
    ck_fails(CORRUPT, mc_gunzip(&back, bytes->data, bytes->size - 9, 300000, pool));
    mc_buf *twice = mc_buf_attach(mc_buf_create(16, 1 << 20), pool);
    for (int i = 0; i < 2; i++)
        ck_ok(mc_buf_append(twice, bytes->data, bytes->size, pool));
    ck_ok(mc_gunzip(&back, twice->data, twice->size, 1 << 20, pool));
    ck_assert_uint_eq(back->size, 600000);
}
END_TEST

UNIT_MAIN("mvt", a_ring_inside_stays_as_it_is, a_comb_falls_into_its_teeth,
          a_hole_that_is_cut_becomes_part_of_the_border, a_tile_inside_of_a_ring_is_full_and_one_beside_it_empty,
          holes_follow_the_ring_that_they_are_in, a_hole_beside_the_only_ring_is_left_out,
          spikes_straight_runs_and_flat_rings_go, simplified_lines_stay_close, lines_are_cut_and_points_chosen,
          values_are_encoded_by_their_type, a_tile_is_what_the_specification_says, the_largest_features_are_kept,
          tiles_of_a_block_are_those_that_are_made_alone, threads_finish_tiles_of_a_block_at_once,
          a_block_needs_no_more_memory_than_some_full_tiles, time_is_looked_at_between_tiles,
          lines_from_end_to_end_of_what_there_is, gzip_goes_there_and_back)
