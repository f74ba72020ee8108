/* World files and GeoTIFF tags: numbers from outside. */
#include "ingest/raster/georeference.h"

#include <math.h>
#include <string.h>

#include "unit.h"

static mc_error *
parse(double affine[6], const char *text)
{
    return mc_world_file_parse(affine, text, strlen(text), pool);
}

START_TEST(world_file_counts_from_the_corner)
{
    double a[6];
    ck_ok(parse(a, "100\n0\n0\n-100\n-699950\n6499950\n"));
    ck_assert_double_eq(a[0], -700000);
    ck_assert_double_eq(a[1], 100);
    ck_assert_double_eq(a[3], 6500000);
    ck_assert_double_eq(a[5], -100);
    ck_ok(parse(a, "  1,5\r\n0.5\r\n-0.5 \r\n\r\n-1.5\r\n+10\r\n2e1"));
    ck_assert_double_eq(a[1], 1.5);
    ck_assert_double_eq(a[4], 0.5);
    ck_assert_double_eq(a[2], -0.5);
    ck_assert_double_eq(a[0], 10 - 0.75 + 0.25);
    ck_assert_double_eq(a[3], 20 - 0.25 + 0.75);
}
END_TEST

START_TEST(wrong_world_files_are_named_by_line)
{
    static const char *const wrong[] = { "",
                                         "1\n0\n0\n-1\n5\n",
                                         "1\n0\nzero\n-1\n5\n6\n",
                                         "nan\n0\n0\n-1\n5\n6\n",
                                         "0\n0\n0\n-1\n5\n6\n",
                                         "1\n1\n1\n1\n5\n6\n",
                                         "1\n0\n0\n-1\n1e300\n6\n",
                                         "1\n0\n0\n0\n5\n6\n" };
    double a[6];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_fails(CORRUPT, parse(a, wrong[i]));
    mc_error *error = parse(a, "1\n0\nzero\n-1\n5\n6\n");
    ck_assert_ptr_nonnull(strstr(error->message, "line 3: \"zero\""));
}
END_TEST

static const double scale[3] = { 10, 20, 0 }, tie[6] = { 2, 1, 0, 500, 900, 0 };

START_TEST(geotiff_scale_and_tiepoint)
{
    static const uint16_t keys[] = { 1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 2056 };
    mc_geotiff_tags tags = {
        .scale = scale, .scale_count = 3, .tiepoints = tie, .tiepoint_count = 6, .keys = keys, .key_count = 16
    };
    double a[6];
    bool found;
    int epsg;
    ck_ok(mc_geotiff_read(&found, a, &epsg, &tags, pool));
    ck_assert(found);
    ck_assert_int_eq(epsg, 2056);
    ck_assert_double_eq(a[0], 480);
    ck_assert_double_eq(a[3], 920);
    ck_assert_double_eq(a[5], -20);
}
END_TEST

START_TEST(geotiff_pixel_is_point_and_geographic)
{
    static const uint16_t keys[] = { 1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 2, 2048, 0, 1, 4326 };
    mc_geotiff_tags tags = {
        .scale = scale, .scale_count = 3, .tiepoints = tie, .tiepoint_count = 6, .keys = keys, .key_count = 16
    };
    double a[6];
    bool found;
    int epsg;
    ck_ok(mc_geotiff_read(&found, a, &epsg, &tags, pool));
    ck_assert_int_eq(epsg, 4326);
    ck_assert_double_eq(a[0], 475);
    ck_assert_double_eq(a[3], 930);
}
END_TEST

START_TEST(geotiff_matrix_points_and_lies)
{
    static const double matrix[16] = { 0, 2, 0, 7, 3, 0, 0, 8, 0, 0, 1, 0, 0, 0, 0, 1 },
                        flat[16] = { 1, 1, 0, 0, 1, 1 };
    static const double gcps[12] = { 0, 0, 0, 5, 5, 0, 9, 9, 0, 8, 8, 0 };
    static const uint16_t liar[] = { 1, 1, 0, 60000, 3072, 0, 1, 32767 };
    double a[6];
    bool found;
    int epsg;
    mc_geotiff_tags tags = { .matrix = matrix, .matrix_count = 16, .keys = liar, .key_count = 8 };
    ck_ok(mc_geotiff_read(&found, a, &epsg, &tags, pool));
    ck_assert(found);
    ck_assert_int_eq(epsg, 0);
    ck_assert_double_eq(a[2], 2);
    ck_assert_double_eq(a[4], 3);
    tags = (mc_geotiff_tags){ .matrix = flat, .matrix_count = 16 };
    ck_fails(CORRUPT, mc_geotiff_read(&found, a, &epsg, &tags, pool));
    tags = (mc_geotiff_tags){ .tiepoints = gcps, .tiepoint_count = 12 };
    ck_fails(CORRUPT, mc_geotiff_read(&found, a, &epsg, &tags, pool));
    tags = (mc_geotiff_tags){ 0 };
    ck_ok(mc_geotiff_read(&found, a, &epsg, &tags, pool));
    ck_assert(!found);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { world_file_counts_from_the_corner, wrong_world_files_are_named_by_line,
                                   geotiff_scale_and_tiepoint, geotiff_pixel_is_point_and_geographic,
                                   geotiff_matrix_points_and_lies };
    return unit_run("georeference", tests, sizeof(tests) / sizeof(tests[0]));
}
