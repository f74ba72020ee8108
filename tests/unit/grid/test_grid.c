#include "config_text.h"

#include <apr_strings.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "mapcache/grid.h"

static mc_build build;

static void
start(void)
{
    build = (mc_build){ .pool = pool,
                        .diagnostics = mc_diagnostics_create(pool),
                        .grids = apr_hash_make(pool),
                        .rulesets = apr_hash_make(pool) };
    mc_grid_builtins(build.grids, pool);
}

static const mc_node *
parsed(const char *element)
{
    return config_elements(element);
}

/* A grid of 1000 x 600 units, tiles of 100 x 50 pixels, levels of 2 and 1 units per pixel: 5 x 6 and 10 x 12 tiles. */
static mc_grid *
small(const char *origin)
{
    start();
    mc_grid *grid = mc_grid_from_config(
        parsed(apr_psprintf(pool,
                            "<grid name='s'><srs>EPSG:31467</srs><srsalias>EPSG:1</srsalias><extent>100 200 1100 800"
                            "</extent><size>100 50</size><resolutions>2 1</resolutions><origin>%s</origin>"
                            "<metadata><title>T</title></metadata></grid>",
                            origin)),
        &build);
    ck_assert_msg(grid != NULL, "%s", mc_error_chain(mc_diagnostics_error(build.diagnostics, pool), pool));
    apr_hash_set(build.grids, "s", APR_HASH_KEY_STRING, grid);
    return grid;
}

static mc_grid_link *
link_of(const char *attributes)
{
    return mc_grid_link_from_config(parsed(apr_psprintf(pool, "<grid %s>s</grid>", attributes)), &build);
}

static const char *
complaint(void)
{
    ck_assert_int_gt(build.diagnostics->complaints->nelts, 0);
    return APR_ARRAY_IDX(build.diagnostics->complaints, build.diagnostics->complaints->nelts - 1, mc_complaint).text;
}

START_TEST(builtin_grids_are_those_of_the_reference)
{
    start();
    const mc_grid *wgs84 = apr_hash_get(build.grids, "WGS84", APR_HASH_KEY_STRING);
    const mc_grid *google = apr_hash_get(build.grids, "GoogleMapsCompatible", APR_HASH_KEY_STRING);
    const mc_grid *g = apr_hash_get(build.grids, "g", APR_HASH_KEY_STRING);
    ck_assert_int_eq(wgs84->level_count, 18);
    ck_assert_int_eq(wgs84->levels[0].columns, 2);
    ck_assert_int_eq(wgs84->levels[0].rows, 1);
    ck_assert_int_eq(wgs84->levels[17].columns, 262144);
    ck_assert(wgs84->axes_swapped);
    ck_assert_int_eq(google->level_count, 22);
    ck_assert_int_eq(google->epsg, 3857);
    ck_assert(!google->axes_swapped);
    for (int z = 0; z < 22; z++) {
        ck_assert_int_eq(google->levels[z].columns, 1 << z);
        ck_assert_int_eq(google->levels[z].rows, 1 << z);
    }
    ck_assert(mc_grid_has_srs(google, "epsg:900913"));
    ck_assert(mc_grid_has_srs(g, "EPSG:3857"));
    ck_assert(!mc_grid_has_srs(wgs84, "EPSG:3857"));
    ck_assert(!mc_grid_has_srs(wgs84, NULL));
    ck_assert_str_eq(mc_metadata_get(g->metadata, "wellknownscaleset"),
                     "urn:ogc:def:wkss:OGC:1.0:GoogleMapsCompatible");
    /* the recorded scale denominator of level 0 */
    ck_assert(fabs(wgs84->levels[0].resolution * wgs84->metres_per_unit / 0.00028 - 279541132.01435887813568) < 1e-4);
}
END_TEST

static void
check_extent(const mc_grid *grid, int x, int y, double minx, double miny)
{
    mc_extent extent = mc_grid_tile_extent(grid, 1, x, y);
    ck_assert_msg(extent.minx == minx && extent.miny == miny && extent.maxx == minx + 100 && extent.maxy == miny + 50,
                  "%d %d: %g %g %g %g", x, y, extent.minx, extent.miny, extent.maxx, extent.maxy);
    int fz, fx, fy;
    ck_assert(mc_grid_find_tile(grid, &extent, 100, 50, &fz, &fx, &fy));
    ck_assert_int_eq(fz, 1);
    ck_assert_int_eq(fx, x);
    ck_assert_int_eq(fy, y);
}

START_TEST(tiles_grow_away_from_each_origin)
{
    check_extent(small("bottom-left"), 1, 2, 200, 300);
    check_extent(small("top-left"), 1, 2, 200, 650);
    check_extent(small("top-right"), 1, 2, 900, 650);
    check_extent(small("BOTTOM-RIGHT"), 1, 2, 900, 300);
}
END_TEST

START_TEST(rows_are_flipped_by_origin)
{
    const mc_grid *bottom = small("bottom-left");
    ck_assert_int_eq(bottom->levels[1].rows, 12);
    ck_assert_int_eq(mc_grid_flip_y(bottom, 1, 0), 11);
    ck_assert_int_eq(mc_grid_tms_y(bottom, 1, 3), 3);
    const mc_grid *top = small("top-right");
    ck_assert_int_eq(mc_grid_flip_y(top, 1, 3), 3);
    ck_assert_int_eq(mc_grid_tms_y(top, 1, 0), 11);
    static const int wild[] = { INT_MIN, INT_MAX, -1, 12 };
    for (int i = 0; i < 4; i++) {
        int y = mc_grid_flip_y(bottom, 1, wild[i]);
        ck_assert_msg(y < 0 || y >= 12, "%d became %d", wild[i], y);
    }
    ck_assert_int_lt(mc_grid_flip_y(bottom, 99, 3), 0);
}
END_TEST

START_TEST(a_map_is_a_tile_within_a_pixel)
{
    const mc_grid *grid = small("bottom-left");
    int z, x, y;
    mc_extent box = { 200.9, 300.9, 300.9, 350.9 };
    ck_assert(mc_grid_find_tile(grid, &box, 100, 50, &z, &x, &y));
    ck_assert_int_eq(x, 1);
    box = (mc_extent){ 201.1, 300, 301.1, 350 };
    ck_assert(!mc_grid_find_tile(grid, &box, 100, 50, &z, &x, &y));
    box = (mc_extent){ 200, 300, 300.9, 350 }; /* resolution 1.009: within 1/100 */
    ck_assert(mc_grid_find_tile(grid, &box, 100, 50, &z, &x, &y));
    box = (mc_extent){ 200, 300, 301.1, 350 };
    ck_assert(!mc_grid_find_tile(grid, &box, 100, 50, &z, &x, &y));
    box = (mc_extent){ 200, 300, 300, 350 };
    ck_assert(!mc_grid_find_tile(grid, &box, 50, 100, &z, &x, &y));
    box = (mc_extent){ 0, 300, 100, 350 }; /* left of the grid */
    ck_assert(!mc_grid_find_tile(grid, &box, 100, 50, &z, &x, &y));
    const double wild[] = { NAN, INFINITY, -INFINITY, 1e308, -1e308 };
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 4; j++) {
            box = (mc_extent){ 200, 300, 300, 350 };
            (&box.minx)[j] = wild[i];
            ck_assert(!mc_grid_find_tile(grid, &box, 100, 50, &z, &x, &y));
        }
    }
}
END_TEST

START_TEST(bad_grids_are_refused)
{
    static const struct {
        const char *srs, *extent, *size, *resolutions, *said;
    } cases[] = {
        { "<srs>x</srs>", "0 0 1", "256 256", "1", "holds 3 numbers" },
        { "<srs>x</srs>", "0 0 0 1", "256 256", "1", "minx < maxx" },
        { "<srs>x</srs>", "0 5 1 5", "256 256", "1", "miny < maxy" },
        { "<srs>x</srs>", "-1.7e308 0 1.7e308 1", "256 256", "1", "is no extent" },
        { "<srs>x</srs>", "0 0 1 1", "256 0", "1", "is not a whole number of pixels" },
        { "<srs>x</srs>", "0 0 1 1", "256.5 256", "1", "is not a whole number of pixels" },
        { "<srs>x</srs>", "0 0 1 1", "256 99999", "1", "is not a whole number of pixels" },
        { "<srs>x</srs>", "0 0 1 1", "256 256", "1 0", "must be above 0" },
        { "<srs>x</srs>", "0 0 1 1", "256 256", "1 -1", "must be above 0" },
        { "<srs>x</srs>", "0 0 1 1", "256 256", " ", "holds 0 numbers" },
        { "<srs>x</srs>", "0 0 1e9 1", "1 1", "1e-3", "has more than 1073741824 tiles" },
        { "<srs>x</srs>", "0 0 1e300 1", "1 1", "1e-300", "has more than" },
        { "", "0 0 1 1", "256 256", "1", "<srs> is missing" },
        { "<srs/>", "0 0 1 1", "256 256", "1", "it is empty" },
        { "<srs>x</srs><origin>middle</origin>", "0 0 1 1", "256 256", "1", "is not one of bottom-left" },
        { "<srs>x</srs><units>km</units>", "0 0 1 1", "256 256", "1", "is not one of m, dd, ft" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        start();
        const char *text = apr_psprintf(pool,
                                        "<grid name='b'>%s<extent>%s</extent><size>%s</size><resolutions>%s"
                                        "</resolutions></grid>",
                                        cases[i].srs, cases[i].extent, cases[i].size, cases[i].resolutions);
        ck_assert_msg(mc_grid_from_config(parsed(text), &build) == NULL, "%s", text);
        ck_assert_msg(strstr(complaint(), cases[i].said) != NULL, "%s: %s", text, complaint());
    }
}
END_TEST

START_TEST(rising_resolutions_are_a_warning)
{
    start();
    ck_assert_ptr_nonnull(mc_grid_from_config(parsed("<grid name='b'><srs>x</srs><extent>0 0 1 1</extent><size>1 1"
                                                     "</size><resolutions>1 2</resolutions></grid>"),
                                              &build));
    ck_assert_int_eq(build.diagnostics->refused, 0);
    ck_assert_ptr_nonnull(strstr(complaint(), "resolutions should decrease"));
}
END_TEST

static void
check_limits(const mc_grid_link *link, int z, int minx, int miny, int maxx, int maxy)
{
    const mc_tile_range *l = &link->limits[z];
    ck_assert_msg(l->minx == minx && l->miny == miny && l->maxx == maxx && l->maxy == maxy, "%d %d %d %d", l->minx,
                  l->miny, l->maxx, l->maxy);
}

START_TEST(limits_follow_extent_tolerance_and_origin)
{
    small("bottom-left");
    check_limits(link_of(""), 1, 0, 0, 10, 12);
    check_limits(link_of("tolerance='0' restricted_extent='200 300 400 400'"), 1, 1, 2, 3, 4);
    check_limits(link_of("tolerance='1' restricted_extent='200 300 400 400'"), 1, 0, 1, 4, 5);
    check_limits(link_of("tolerance='2147483647' restricted_extent='200 300 400 400'"), 1, 0, 0, 10, 12);
    check_limits(link_of("tolerance='0' restricted_extent='200,300,400.001,399.99'"), 1, 1, 2, 4, 4);
    small("top-right");
    check_limits(link_of("tolerance='0' restricted_extent='200 300 400 400'"), 1, 7, 8, 9, 10);
    const mc_grid_link *outside = link_of("tolerance='0' restricted_extent='5000 300 6000 400'");
    ck_assert_ptr_nonnull(strstr(complaint(), "lies outside of grid"));
    ck_assert_int_ge(outside->limits[1].minx, outside->limits[1].maxx);
}
END_TEST

START_TEST(tiles_outside_are_errors_that_say_which_parameter)
{
    small("bottom-left");
    const mc_grid_link *link = link_of("tolerance='0' restricted_extent='200 300 400 400' minzoom='1'");
    ck_ok(mc_grid_link_check(link, 1, 1, 2, pool));
    ck_ok(mc_grid_link_check(link, 1, 2, 3, pool));
    static const struct {
        int z, x, y;
        const char *locator;
    } cases[] = { { 0, 0, 0, "TileMatrix" }, { 2, 0, 0, "TileMatrix" }, { INT_MIN, 0, 0, "TileMatrix" },
                  { 1, 0, 2, "TileCol" },    { 1, 3, 2, "TileCol" },    { 1, INT_MAX, 2, "TileCol" },
                  { 1, 1, 1, "TileRow" },    { 1, 1, 4, "TileRow" },    { 1, 1, INT_MIN, "TileRow" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mc_error *error = mc_grid_link_check(link, cases[i].z, cases[i].x, cases[i].y, pool);
        ck_assert_ptr_nonnull(error);
        ck_assert_int_eq(error->kind, MC_ERR_TILE_OUT_OF_RANGE);
        ck_assert_str_eq(error->locator, cases[i].locator);
    }
}
END_TEST

static bool
tiles(const mc_grid_link *link, mc_extent box, mc_tile_range *range)
{
    *range = (mc_tile_range){ -7, -7, -7, -7 };
    return mc_grid_link_tiles(link, &box, 1, range);
}

START_TEST(boxes_that_end_on_tile_edges_do_not_pull_in_neighbours)
{
    small("bottom-left");
    const mc_grid_link *link = link_of("");
    mc_tile_range r;
    ck_assert(tiles(link, (mc_extent){ 200, 300, 400, 400 }, &r));
    ck_assert(r.minx == 1 && r.maxx == 3 && r.miny == 2 && r.maxy == 4);
    ck_assert(tiles(link, (mc_extent){ 199.99, 299.99, 400.01, 400.01 }, &r));
    ck_assert(r.minx == 1 && r.maxx == 3 && r.miny == 2 && r.maxy == 4);
    ck_assert(tiles(link, (mc_extent){ 199.97, 299.97, 400.03, 400.03 }, &r));
    ck_assert(r.minx == 0 && r.maxx == 4 && r.miny == 1 && r.maxy == 5);
    ck_assert(tiles(link, (mc_extent){ 200, 300, 200.001, 300.001 }, &r));
    ck_assert(r.minx == 1 && r.maxx == 2 && r.miny == 2 && r.maxy == 3);
    ck_assert(tiles(link, (mc_extent){ -1e300, -1e300, 1e300, 1e300 }, &r));
    ck_assert(r.minx == 0 && r.maxx == 10 && r.miny == 0 && r.maxy == 12);
    ck_assert(!tiles(link, (mc_extent){ -500, 300, 100, 400 }, &r));
    ck_assert(!tiles(link, (mc_extent){ 1100, 300, 5000, 400 }, &r));
    ck_assert(!tiles(link, (mc_extent){ 200, 300, 200, 400 }, &r));
    ck_assert(!tiles(link, (mc_extent){ 400, 300, 200, 400 }, &r));
    ck_assert(!tiles(link, (mc_extent){ NAN, 300, 400, 400 }, &r));
    ck_assert(!tiles(link, (mc_extent){ 200, 300, INFINITY, 400 }, &r));
    ck_assert_int_eq(r.minx, -7);
    mc_extent box = { 200, 300, 400, 400 };
    ck_assert(!mc_grid_link_tiles(link, &box, 2, &r));
    ck_assert(!mc_grid_link_tiles(link, &box, -1, &r));
}
END_TEST

START_TEST(the_deepest_level_does_not_overflow)
{
    start();
    mc_grid *grid = mc_grid_from_config(parsed("<grid name='s'><srs>x</srs><extent>0 0 1073741824 1073741824</extent>"
                                               "<size>1 1</size><resolutions>1073741824 1</resolutions></grid>"),
                                        &build);
    ck_assert_ptr_nonnull(grid);
    apr_hash_set(build.grids, "s", APR_HASH_KEY_STRING, grid);
    ck_assert_int_eq(grid->levels[1].columns, 1 << 30);
    const mc_grid_link *link = link_of("tolerance='2147483647' restricted_extent='1073741823 0 1073741824 1'");
    check_limits(link, 1, 0, 0, 1 << 30, 1 << 30);
    mc_extent corner = mc_grid_tile_extent(grid, 1, (1 << 30) - 1, (1 << 30) - 1);
    mc_tile_range r;
    ck_assert(mc_grid_link_tiles(link, &corner, 1, &r));
    ck_assert(r.minx == (1 << 30) - 1 && r.maxx == 1 << 30 && r.miny == (1 << 30) - 1 && r.maxy == 1 << 30);
    int z, x, y;
    ck_assert(mc_grid_find_tile(grid, &corner, 1, 1, &z, &x, &y));
    ck_assert(z == 1 && x == (1 << 30) - 1 && y == x);
    ck_assert_int_eq(mc_grid_flip_y(grid, 1, 0), (1 << 30) - 1);
    mc_extent far = mc_grid_tile_extent(grid, 1, INT_MAX, INT_MIN);
    ck_assert(!mc_grid_link_tiles(link, &far, 1, &r));
    ck_assert(!mc_grid_find_tile(grid, &far, 1, 1, &z, &x, &y));
}
END_TEST

START_TEST(zooms_are_checked)
{
    static const struct {
        const char *attributes, *said;
    } bad[] = {
        { "minzoom='2'", "do not fit" },
        { "maxzoom='2'", "do not fit" },
        { "minzoom='1' maxzoom='0'", "do not fit" },
        { "minzoom='-1'", "at least 0" },
        { "minzoom='x'", "at least 0" },
        { "max-cached-zoom='3'", "is not between" },
        { "minzoom='1' max-cached-zoom='0'", "is not between" },
        { "out-of-zoom-strategy='guess'", "is not one of reassemble, proxy" },
        { "ruleset='none'", "there is no ruleset" },
        { "restricted_extent='1 2 3'", "holds 3 numbers" },
        { "restricted_extent='3 2 1 4'", "is no extent" },
        { "tolerance='-1'", "at least 0" },
    };
    small("bottom-left");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(link_of(bad[i].attributes) == NULL, "%s", bad[i].attributes);
        ck_assert_msg(strstr(complaint(), bad[i].said) != NULL, "%s: %s", bad[i].attributes, complaint());
    }
    small("bottom-left");
    ck_assert_int_eq(link_of("max-cached-zoom='2'")->max_cached_zoom, -1);
    const mc_grid_link *link = link_of("max-cached-zoom='0' out-of-zoom-strategy='proxy'");
    ck_assert_int_eq(link->max_cached_zoom, 0);
    ck_assert_int_eq(link->strategy, MC_PROXY);
    ck_assert_int_eq(link->maxzoom, 1);
    ck_assert_int_eq(build.diagnostics->refused, 0);
}
END_TEST

START_TEST(unknown_grids_are_refused)
{
    start();
    ck_assert_ptr_null(mc_grid_link_from_config(parsed("<grid>wgs84</grid>"), &build));
    ck_assert_ptr_nonnull(strstr(complaint(), "there is no grid \"wgs84\""));
    ck_assert_ptr_null(mc_grid_link_from_config(parsed("<grid> WGS84</grid>"), &build));
    ck_assert_ptr_nonnull(strstr(complaint(), "remove the blanks"));
    ck_assert_ptr_null(mc_grid_link_from_config(parsed("<grid/>"), &build));
}
END_TEST

START_TEST(the_nearest_level_is_chosen_between_the_zooms)
{
    start();
    const mc_grid_link *used;
    mc_grid_link *link = mc_grid_link_from_config(parsed("<grid minzoom='2' maxzoom='5'>WGS84</grid>"), &build);
    ck_assert_int_eq(mc_grid_link_level(link, 100, &used), 2);
    ck_assert_int_eq(mc_grid_link_level(link, 1e-9, &used), 5);
    ck_assert_int_eq(mc_grid_link_level(link, 0.08, &used), 3);
    ck_assert_int_eq(mc_grid_link_level(link, NAN, &used), 2);
    ck_assert_ptr_eq(used, link);
    link = mc_grid_link_from_config(
        parsed("<grid use_wms_intermediate_resolutions='true' max-cached-zoom='9'>WGS84</grid>"), &build);
    ck_assert_int_eq(mc_grid_link_level(link, 0.703125 * 0.75, &used), 0);
    ck_assert_ptr_eq(used, link->intermediate);
    ck_assert_str_eq(used->grid->name, "WGS84_intermediate_.5");
    ck_assert_int_eq(used->grid->tile_width, 384);
    ck_assert_int_eq(used->grid->level_count, 17);
    ck_assert(used->grid->levels[0].resolution == 0.703125 * 0.75);
    ck_assert_int_eq(used->maxzoom, 8);
    ck_assert_int_eq(used->limits[0].maxx, used->grid->levels[0].columns);
    ck_assert_int_eq(mc_grid_link_level(link, 0.703125, &used), 0);
    ck_assert_ptr_eq(used, link);
    ck_assert_ptr_null(
        mc_grid_link_from_config(parsed("<grid use_wms_intermediate_resolutions='TRUE'>WGS84</grid>"), &build)
            ->intermediate);
}
END_TEST

START_TEST(rulesets_keep_colours_premultiplied)
{
    start();
    mc_ruleset *ruleset = mc_ruleset_from_config(
        parsed("<ruleset name='r'><rule zoom_level='1 3'><visibility hidden_color='80FF4000'><extent>0 0 1 1</extent>"
               "<extent>2 2 3 3</extent></visibility></rule><rule zoom_level='2'><visibility hidden_color='ff0000'>"
               "<extent>0 0 1 1</extent></visibility></rule><rule zoom_level='7'/></ruleset>"),
        &build);
    ck_assert_ptr_nonnull(ruleset);
    ck_assert_int_eq(ruleset->level_count, 4);
    ck_assert(!ruleset->levels[0].present && ruleset->levels[1].present);
    const uint8_t half[4] = { 0, 32, 128, 128 };
    ck_assert_int_eq(memcmp(ruleset->levels[3].hidden_bgra, half, 4), 0);
    ck_assert_int_eq(ruleset->levels[3].extent_count, 2);
    const uint8_t red[4] = { 0, 0, 255, 255 };
    ck_assert_int_eq(memcmp(ruleset->levels[2].hidden_bgra, red, 4), 0);
    static const char *const bad[] = {
        "<ruleset name='r'><rule zoom_level='1 1'/></ruleset>",
        "<ruleset name='r'><rule zoom_level='1'/><rule zoom_level='1'/></ruleset>",
        "<ruleset name='r'><rule/></ruleset>",
        "<ruleset name='r'><rule zoom_level='-1'/></ruleset>",
        "<ruleset name='r'><rule zoom_level='1.5'/></ruleset>",
        "<ruleset name='r'><rule zoom_level='256'/></ruleset>",
        "<ruleset name='r'><rule zoom_level='1'><visibility hidden_color='red'/></rule></ruleset>",
        "<ruleset name='r'><rule zoom_level='1'><visibility hidden_color='1FF00FF00'/></rule></ruleset>",
        "<ruleset name='r'><rule zoom_level='1'><visibility><extent>1 2 3</extent></visibility></rule></ruleset>",
        "<ruleset name='r'><rule zoom_level='1'><visibility><extent>3 2 1 4</extent></visibility></rule></ruleset>",
        "<ruleset/>",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(mc_ruleset_from_config(parsed(bad[i]), &build) == NULL, "%s", bad[i]);
}
END_TEST

UNIT_MAIN("grid", builtin_grids_are_those_of_the_reference, tiles_grow_away_from_each_origin,
          rows_are_flipped_by_origin, a_map_is_a_tile_within_a_pixel, bad_grids_are_refused,
          rising_resolutions_are_a_warning, limits_follow_extent_tolerance_and_origin,
          tiles_outside_are_errors_that_say_which_parameter, boxes_that_end_on_tile_edges_do_not_pull_in_neighbours,
          the_deepest_level_does_not_overflow, zooms_are_checked, unknown_grids_are_refused,
          the_nearest_level_is_chosen_between_the_zooms, rulesets_keep_colours_premultiplied)
