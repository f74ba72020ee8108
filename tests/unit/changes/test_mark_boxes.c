/* From changed boxes to marks: every tile that shows something of a box is marked, on all levels, and few others. */
#include "changes/mark_boxes.h"

#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "changes/marks.h"
#include "config_text.h"

static mc_build build;
static mc_marks *marks;
static mc_watch watch;
static mc_watch_link links[2];
static mc_watch_table table;

static const mc_grid_link *
link_of(const char *text)
{
    return mc_grid_link_from_config(config_elements(text), &build);
}

static void
set_up_marks(void)
{
    unit_setup();
    build = config_build();
    build.grids = apr_hash_make(pool);
    mc_grid_builtins(build.grids, pool);
    marks = mc_marks_create(1 << 14, 8);
    const char *const texts[] = { "<grid>GoogleMapsCompatible</grid>", "<grid>WGS84</grid>" };
    watch = (mc_watch){ .tileset = "t", .links = links, .link_count = 2, .vector_buffer = -1 };
    watch.tables = apr_array_make(pool, 2, sizeof(mc_watch_table));
    table = (mc_watch_table){ .connection = "", .table = "t", .margin = 2 };
    for (int i = 0; i < 2; i++) {
        links[i] = (mc_watch_link){ .link = link_of(texts[i]), .columns = 1, .rows = 1 };
        atomic_init(&links[i].marks, mc_marks_set(marks, "t", links[i].link->grid, 1, 1, NULL));
    }
}

static void
tear_down(void)
{
    mc_marks_destroy(marks);
    unit_teardown();
}

static void
mark(int srid, double minx, double miny, double maxx, double maxy)
{
    mc_box_set *boxes = mc_box_set_create(pool);
    mc_box_set_add(boxes, &(mc_extent){ minx, miny, maxx, maxy });
    ck_assert_int_ge(mc_mark_boxes(&watch, &table, srid, boxes, 5, pool), 0);
}

static bool
marked(int link, int z, int x, int y)
{
    return mc_marks_find(atomic_load(&links[link].marks), z, x, y) == 5;
}

static double
latitude(double y)
{
    return atan(sinh(y / 6378137)) * 180 / M_PI;
}

/* Compares with the tiles whose extents meet the box; what is marked beside them lies within a pixel or two. */
static void
compare_level(int z, double minx, double miny, double maxx, double maxy)
{
    const mc_grid *grid = links[0].link->grid;
    for (int y = 0; y < 1 << z; y++)
        for (int x = 0; x < 1 << z; x++) {
            mc_extent e = mc_grid_tile_extent(grid, z, x, y);
            double west = e.minx / 6378137 * 180 / M_PI, east = e.maxx / 6378137 * 180 / M_PI;
            bool meets = west < maxx && east > minx && latitude(e.miny) < maxy && latitude(e.maxy) > miny;
            double px = 4 * grid->levels[z].resolution / 6378137 * 180 / M_PI;
            bool near =
                west - px < maxx && east + px > minx && latitude(e.miny) - px < maxy && latitude(e.maxy) + px > miny;
            if (meets)
                ck_assert_msg(marked(0, z, x, y), "%d/%d/%d", z, x, y);
            if (!near)
                ck_assert_msg(!marked(0, z, x, y), "%d/%d/%d", z, x, y);
        }
}

START_TEST(a_box_in_degrees_is_marked_on_all_levels_of_all_grids)
{
    mark(4326, 5.9, 45.8, 10.5, 47.8);
    for (int z = 0; z < 9; z++)
        compare_level(z, 5.9, 45.8, 10.5, 47.8);
    const mc_grid *degrees = links[1].link->grid;
    for (int z = 0; z < degrees->level_count; z++) {
        mc_tile_range range;
        ck_assert(mc_grid_link_tiles(links[1].link, &(mc_extent){ 8, 46, 8.0001, 46.0001 }, z, &range));
        ck_assert(marked(1, z, range.minx, range.miny));
    }
    ck_assert(marked(0, 18, (int)((8.0 + 180) / 360 * (1 << 18)), 169240)); /* 46.5 degrees north, counted from below */
}
END_TEST

START_TEST(a_point_is_marked_and_so_is_what_its_symbol_reaches)
{
    table.margin = 300;
    mark(3857, 1, 1, 1, 1); /* beside the corner of four tiles */
    for (int i = 0; i < 4; i++)
        ck_assert(marked(0, 1, i % 2, i / 2));
    ck_assert(marked(0, 10, 511, 511) && marked(0, 10, 512, 512) && marked(0, 10, 513, 510));
    ck_assert(!marked(0, 10, 515, 512));
}
END_TEST

START_TEST(beside_the_grid_nothing_is_marked)
{
    mark(4326, 0, 88, 10, 89.9);
    mark(4326, 0, -89.5, 10, -88);
    mark(3857, 0, 3e7, 10, 4e7);
    mark(4326, 500, 95, 501, 96);
    for (int z = 2; z < 6; z++)
        for (int y = 1; y < (1 << z) - 1; y++)
            for (int x = 0; x < 1 << z; x++)
                ck_assert_msg(!marked(0, z, x, y), "%d/%d/%d", z, x, y);
}
END_TEST

START_TEST(the_world_and_what_is_no_place_are_everything)
{
    const struct {
        int srid;
        mc_extent box;
    } cases[] = { { 4326, { -180, -90, 180, 90 } },
                  { 4326, { -1e9, -1e9, 1e9, 1e9 } },
                  { 3857, { -1e12, -1e12, 1e12, 1e12 } },
                  { 4326, { NAN, 0, 1, 1 } },
                  { 999999, { 0, 0, 1, 1 } } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mc_marks_forget(marks, 5);
        ck_assert(!marked(0, 0, 0, 0));
        mark(cases[i].srid, cases[i].box.minx, cases[i].box.miny, cases[i].box.maxx, cases[i].box.maxy);
        for (int z = 0; z < links[0].link->grid->level_count; z++)
            ck_assert_msg(marked(0, z, 0, 0) && marked(0, z, (1 << z) - 1, (1 << z) - 1) &&
                              marked(0, z, (1 << z) / 3, 0),
                          "%d, level %d", (int)i, z);
    }
}
END_TEST

START_TEST(beyond_the_antimeridian_is_the_other_side)
{
    mark(4326, 179.5, 10, 181, 11);
    ck_assert(marked(0, 8, 255, 135) && marked(0, 8, 0, 135));
    ck_assert(!marked(0, 8, 2, 135) && !marked(0, 8, 128, 135));
}
END_TEST

START_TEST(other_crs_are_projected)
{
    mark(2056, 2600000, 1200000, 2600100, 1200100); /* Bern */
    compare_level(8, 7.43, 46.95, 7.445, 46.953);
    ck_assert(!marked(0, 8, 0, 0));
}
END_TEST

START_TEST(without_an_srid_boxes_are_those_of_the_grid_and_a_configured_one_wins)
{
    mark(0, 1, 1, 2, 2);
    ck_assert(marked(0, 12, 2048, 2048) && marked(1, 12, 4118, 2070));
    mc_marks_forget(marks, 5);
    table.srid = 4326;
    mark(2056, 8, 47, 8.1, 47.1);
    compare_level(8, 8, 47, 8.1, 47.1);
}
END_TEST

static double
only_from_a_million_on(const void *layer, double scale)
{
    (void)layer;
    return scale < 1e6 ? 3 : -1;
}

START_TEST(levels_that_do_not_show_the_table_are_left_alone)
{
    table.reach = only_from_a_million_on;
    mark(4326, 8, 47, 8.1, 47.1);
    int x = (int)((8.05 + 180) / 360 * 256);
    ck_assert(!marked(0, 8, x, 166));
    mc_tile_range range;
    double meter = 8.05 / 180 * M_PI * 6378137, north = log(tan(M_PI / 4 + 47.05 / 360 * M_PI)) * 6378137;
    ck_assert(mc_grid_link_tiles(links[0].link, &(mc_extent){ meter, north, meter + 1, north + 1 }, 14, &range));
    ck_assert(marked(0, 14, range.minx, range.miny));
}
END_TEST

/* As a source of its own would mark them: each box in a batch of one. */
START_TEST(boxes_of_a_batch_are_marked_as_each_of_them_alone)
{
    const double sides[] = { 0, .001, .02, 3 };
    mc_marks *single = mc_marks_create(1 << 16, 8), *together = mc_marks_create(1 << 16, 8);
    mc_box_set *boxes = mc_box_set_create(pool);
    mc_mark_set *set = mc_marks_set(single, "t", links[0].link->grid, 2, 2, NULL);
    links[0].columns = links[0].rows = 2;
    watch.link_count = 1;
    atomic_store(&links[0].marks, set);
    srand(3);
    for (int i = 0; i < 150; i++) { /* around the antimeridian, too */
        double x = 170 + rand() % 2000 / 100., y = 40 + rand() % 1000 / 100., side = sides[i % 4];
        mark(4326, x, y, x + side, y + side);
        mc_box_set_add(boxes, &(mc_extent){ x, y, x + side, y + side });
    }
    atomic_store(&links[0].marks, mc_marks_set(together, "t", links[0].link->grid, 2, 2, NULL));
    ck_assert_int_gt(mc_mark_boxes(&watch, &table, 4326, boxes, 5, pool), 0);
    for (int z = 0; z < 10; z++)
        for (int y = 0; y < 1 << z; y++)
            for (int x = 0; x < 1 << z; x++)
                ck_assert_msg(marked(0, z, x, y) == (mc_marks_find(set, z, x, y) == 5), "%d/%d/%d", z, x, y);
    ck_assert_int_eq(mc_marks_stat(single).coarsened + mc_marks_stat(together).coarsened, 0);
    mc_marks_destroy(single);
    mc_marks_destroy(together);
}
END_TEST

static double
fewer_on_fine_screens(const void *layer, double scale)
{
    (void)layer;
    return scale < 1e6 ? -1 : 3;
}

START_TEST(metatiles_for_fine_screens_have_the_place_of_the_others)
{
    mc_grid_link *dense = mc_grid_link_dense(links[0].link, 2, &build),
                 *threefold = mc_grid_link_dense(links[0].link, 3, &build);
    const mc_watch_link same = { .link = dense, .columns = 1, .rows = 1 },
                        wide = { .link = dense, .columns = 2, .rows = 1 };
    const mc_watch_link third = { .link = threefold, .columns = 1, .rows = 1 };
    watch.metabuffer = 7;
    APR_ARRAY_PUSH(watch.tables, mc_watch_table) = table;
    ck_assert(mc_watch_same_metatiles(&watch, &same, &links[0]) && mc_watch_same_metatiles(&watch, &third, &links[0]));
    ck_assert(!mc_watch_same_metatiles(&watch, &links[0], &same)); /* the buffer is wider on the ground */
    ck_assert(!mc_watch_same_metatiles(&watch, &wide, &links[0]) && !mc_watch_same_metatiles(&watch, &same, &links[1]));
    watch.metabuffer = 0;
    ck_assert(mc_watch_same_metatiles(&watch, &links[0], &same));
    table.reach = fewer_on_fine_screens;
    APR_ARRAY_PUSH(watch.tables, mc_watch_table) = table;
    ck_assert(mc_watch_same_metatiles(&watch, &same, &links[0])); /* the scale is the same on both */
    mc_grid_link cut = *dense;
    mc_tile_range limits[64];
    memcpy(limits, dense->limits, sizeof(*limits) * (size_t)dense->grid->level_count);
    limits[3].maxx--;
    cut.limits = limits;
    ck_assert(!mc_watch_same_metatiles(&watch, &(mc_watch_link){ .link = &cut, .columns = 1, .rows = 1 }, &links[0]));
}
END_TEST

START_TEST(links_that_share_marks_are_marked_once)
{
    mc_grid_link *dense = mc_grid_link_dense(links[0].link, 2, &build);
    mc_box_set *boxes = mc_box_set_create(pool);
    mc_box_set_add(boxes, &(mc_extent){ 8, 47, 8.1, 47.1 });
    watch.link_count = 1;
    int64_t alone = mc_mark_boxes(&watch, &table, 4326, boxes, 5, pool);
    links[1] = (mc_watch_link){ .link = dense, .columns = 1, .rows = 1 };
    watch.link_count = 2;
    atomic_store(&links[1].marks, mc_marks_set(marks, "t", dense->grid, 1, 1, atomic_load(&links[0].marks)));
    ck_assert_int_eq(mc_mark_boxes(&watch, &table, 4326, boxes, 5, pool), alone);
    int x = (int)((8.05 + 180) / 360 * 256);
    ck_assert(marked(1, 8, x, 166) && marked(0, 8, x, 166));
    ck_assert(!marked(1, 8, x + 2, 166));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { a_box_in_degrees_is_marked_on_all_levels_of_all_grids,
                                   a_point_is_marked_and_so_is_what_its_symbol_reaches,
                                   beside_the_grid_nothing_is_marked,
                                   the_world_and_what_is_no_place_are_everything,
                                   beyond_the_antimeridian_is_the_other_side,
                                   other_crs_are_projected,
                                   without_an_srid_boxes_are_those_of_the_grid_and_a_configured_one_wins,
                                   levels_that_do_not_show_the_table_are_left_alone,
                                   boxes_of_a_batch_are_marked_as_each_of_them_alone,
                                   metatiles_for_fine_screens_have_the_place_of_the_others,
                                   links_that_share_marks_are_marked_once };
    return unit_run_between("mark_boxes", tests, (int)(sizeof(tests) / sizeof(tests[0])), set_up_marks, tear_down);
}
