#include "unit.h"

#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

#include "seed/area.h"

static mc_level levels[] = { { 4, 1, 1 }, { 0.25, 16, 16 } };
static mc_grid grid;
static mc_error *problem;

static mc_seed_region *
read_text(const char *text, const char *srs)
{
    char path[] = "/tmp/mc-area-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    grid = (mc_grid){ .name = "plain",
                      .srs = "EPSG:3857",
                      .aliases = apr_array_make(pool, 1, sizeof(const char *)),
                      .extent = { 0, 0, 1024, 1024 },
                      .tile_width = 256,
                      .tile_height = 256,
                      .level_count = 2,
                      .levels = levels };
    mc_seed_region *region;
    problem = mc_seed_area_read(&region, path, srs, &grid, 1, pool);
    unlink(path);
    return problem == MC_OK ? region : NULL;
}

static mc_region_relation
at(const mc_seed_region *region, double x, double y)
{
    mc_extent box = { x - 0.25, y - 0.25, x + 0.25, y + 0.25 };
    return mc_region_relate(region, &box, 0, 0);
}

START_TEST(well_known_text_of_all_kinds)
{
    static const char text[] =
        "\xef\xbb\xbf polygon Z ((0 0 1, 100 0 1, 100 100 1, 0 100 1, 0 0 1), (40 40 1, 60 40 1, 60 60 1))\n"
        "MULTIPOLYGON(((200 200,300 200,300 300)),EMPTY,((400 0,500 0,500 100,400 100,400 0)));"
        "POINT EMPTY LINESTRINGM (0 600 1, 100 600 2)\r\n"
        "GEOMETRYCOLLECTION(POINT(1e1 7E2),MULTIPOINT((20 700),30 700),GEOMETRYCOLLECTION EMPTY)"
        "MULTILINESTRING ZM ((0 800 1 1, 9 800 2 2),(20 800 0 0, 29 800 0 0))";
    const mc_seed_region *region = read_text(text, NULL);
    ck_ok(problem);
    ck_assert_int_eq(at(region, 20, 20), MC_REGION_INSIDE);
    ck_assert_int_eq(at(region, 58, 50), MC_REGION_OUTSIDE);
    ck_assert_int_eq(at(region, 290, 230), MC_REGION_INSIDE);
    ck_assert_int_eq(at(region, 450, 50), MC_REGION_INSIDE);
    ck_assert_int_eq(at(region, 50, 600), MC_REGION_CROSSED);
    for (int i = 1; i <= 3; i++)
        ck_assert_int_eq(at(region, 10 * i, 700), MC_REGION_CROSSED);
    ck_assert_int_eq(at(region, 5, 800), MC_REGION_CROSSED);
    ck_assert_int_eq(at(region, 15, 800), MC_REGION_OUTSIDE);
}
END_TEST

START_TEST(geojson_of_all_kinds)
{
    static const char text[] =
        "{\"features\": "
        "[{\"type\":\"Feature\",\"id\":1,\"properties\":{\"a\\\"b\":[1,{\"type\":3}],\"c\":null,\"d\":true},"
        "\"geometry\":{\"coordinates\":[[[0,0],[100,0,5],[100,100],[0,100],[0,0]],[[40,40],[60,40],[60,60],[40,40]]],"
        "\"type\":\"Polygon\"}},{\"type\":\"Feature\",\"properties\":{},\"geometry\":null},"
        "{\"type\":\"Feature\",\"geometry\":{\"type\":\"GeometryCollection\",\"geometries\":["
        "{\"type\":\"MultiPolygon\",\"coordinates\":[[[[200,200],[300,200],[300,300],[200,200]]],[],"
        "[[[400,0],[500,0],[500,100],[400,100],[400,0]]]]},{\"type\":\"Point\",\"coordinates\":[1e1,7E2]},"
        "{\"type\":\"MultiPoint\",\"coordinates\":[[20,700],[30,700]]},{\"type\":\"Polygon\",\"coordinates\":[]},"
        "{\"type\":\"LineString\",\"coordinates\":[[0,600],[100,600]]},"
        "{\"type\":\"MultiLineString\",\"coordinates\":[[[0,800],[9,800]],[[20,800],[29,800]]]}]}}],"
        "\"bbox\":[0,0,1,1],\"type\":\"FeatureCollection\"} ";
    const mc_seed_region *region = read_text(text, "EPSG:3857");
    ck_ok(problem);
    ck_assert_int_eq(at(region, 20, 20), MC_REGION_INSIDE);
    ck_assert_int_eq(at(region, 58, 50), MC_REGION_OUTSIDE);
    ck_assert_int_eq(at(region, 290, 230), MC_REGION_INSIDE);
    ck_assert_int_eq(at(region, 450, 50), MC_REGION_INSIDE);
    ck_assert_int_eq(at(region, 50, 600), MC_REGION_CROSSED);
    for (int i = 1; i <= 3; i++)
        ck_assert_int_eq(at(region, 10 * i, 700), MC_REGION_CROSSED);
    ck_assert_int_eq(at(region, 5, 800), MC_REGION_CROSSED);
    ck_assert_int_eq(at(region, 15, 800), MC_REGION_OUTSIDE);
}
END_TEST

START_TEST(the_crs_is_the_one_that_the_file_says)
{
    static const double metre = 180 / (6378137 * 3.14159265358979323846);
    static const char old[] = "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[100,0],[100,100],[0,100],[0,0]]],"
                              "\"crs\":{\"type\":\"name\",\"properties\":{\"name\":\"urn:ogc:def:crs:EPSG::3857\"}}}";
    const char *degrees = apr_psprintf(pool, "%.12f", 100 * metre);
    const char *json =
        apr_psprintf(pool, "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[%s,0],[%s,%s],[0,%s],[0,0]]]}", degrees,
                     degrees, degrees, degrees);
    const char *wkt =
        apr_psprintf(pool, "SRID=4326;POLYGON((0 0,%s 0,%s %s,0 %s,0 0))", degrees, degrees, degrees, degrees);
    const char *const texts[] = { json, wkt, wkt + strlen("SRID=4326;"), old, "POLYGON((0 0,100 0,100 100,0 100))" };
    const char *const srs[] = { NULL, NULL, "CRS:84", NULL, NULL };
    for (int i = 0; i < 5; i++) {
        const mc_seed_region *region = read_text(texts[i], srs[i]);
        ck_ok(problem);
        mc_extent bounds = mc_region_bounds(region);
        ck_assert_double_eq_tol(bounds.maxx, 100, 1e-3);
        ck_assert_int_eq(at(region, 99, 99), MC_REGION_INSIDE);
    }
}
END_TEST

START_TEST(empty_files_have_no_region)
{
    static const char *const texts[] = { "", "  \n", "POLYGON EMPTY",
                                         "{\"type\":\"FeatureCollection\",\"features\":[]}",
                                         "{\"type\":\"Polygon\",\"coordinates\":[]}" };
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_null(read_text(texts[i], NULL));
        ck_ok(problem);
    }
}
END_TEST

START_TEST(damage_is_named_by_line)
{
    static const char *const texts[] = {
        "\nPOLYGON((0 0, 1 x))",
        "\nPOLYGON((0 0, 1 1",
        "\nCIRCLE(1 2 3)",
        "\nPOLYGON((0 0, nan 1, 1 1))",
        "\nPOLYGON((0 0, 1e999 1, 1 1))",
        "\nSRID=0;POINT(1 1)",
        "\nSRID=4326;POINT(1 1) SRID=3857;POINT(1 1)",
        "\n{\"type\":\"Polygon\"",
        "\n{\"type\":\"Topology\",\"coordinates\":[]}",
        "\n{\"type\":\"Polygon\",\"coordinates\":[[0,0],[1,1]]}",
        "\n{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[[1,1]]]]}",
        "\n{\"type\":\"Polygon\",\"coordinates\":[[[0],[1,1]]]}",
        "\n{\"type\":\"Point\",\"coordinates\":[\"1\",2]}",
        "\n{\"type\":\"Point\",\"coordinates\":[1,2]} x",
        "\n{\"type\":\"FeatureCollection\",\"features\":[{}]}",
        "\n{\"type\":\"Point\",\"coordinates\":[1,1e40]}",
        "\n[1]",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_ptr_null(read_text(texts[i], NULL));
        ck_fails(CORRUPT, problem);
        ck_assert_msg(strstr(mc_error_chain(problem, pool), ":2: ") != NULL, "%s: %s", texts[i],
                      mc_error_chain(problem, pool));
    }
    static char deep[8000];
    for (int i = 0; i < 300; i++)
        strcat(deep, "GEOMETRYCOLLECTION(");
    read_text(deep, NULL);
    ck_fails(CORRUPT, problem);
    memset(deep, '[', sizeof(deep) - 1);
    read_text(apr_pstrcat(pool, "{\"x\":", deep, NULL), NULL);
    ck_fails(CORRUPT, problem);
    read_text(apr_pstrcat(pool, "{\"coordinates\":", deep, NULL), NULL);
    ck_fails(CORRUPT, problem);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    mc_seed_region *region;
    read_text("", NULL);
    ck_fails(IO, mc_seed_area_read(&region, "/nowhere/at/all", NULL, &grid, 1, pool));
}
END_TEST

UNIT_MAIN("seed_area", well_known_text_of_all_kinds, geojson_of_all_kinds, the_crs_is_the_one_that_the_file_says,
          empty_files_have_no_region, damage_is_named_by_line, a_missing_file_is_named)
