#include "source_fixture.h"

#include "cube_fixture.h"
#include "mapcache/cube_ingest.h"
#include "mapcache/dimension.h"

/* A cube of 60 by 50 pixels of one unit, with one empty date at each of the days. */
static const mc_cube *
cube_with_days(const int *days, int count)
{
    mc_cube_writer *writer;
    apr_pool_t *own;
    const mc_cube *cube = cube_in_file(CUBE_PLACE);
    apr_pool_create(&own, pool);
    ck_ok(cube->ops->write(&writer, cube, &ctx, own));
    ck_ok(cube->ops->begin(writer));
    for (int i = 0; i < count; i++) {
        uint8_t data[24 * 24 * 3];
        memset(data, days[i], sizeof(data));
        const mc_cube_chunk chunk = { i, 1, 2, NULL, data, 0, 8 * 24 * 3 }; /* columns 52 to 59, rows 26 to 49 */
        ck_ok(cube->ops->put(writer, &chunk));
        ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(days[i]), i, 0, 0 }));
    }
    ck_ok(cube->ops->commit(writer));
    apr_pool_destroy(own);
    return cube;
}

static mc_source *
source_of(const mc_cube *cube, const char *more)
{
    source_fixture_reset();
    source_build.cubes = apr_hash_make(pool);
    apr_hash_set(source_build.cubes, "c", APR_HASH_KEY_STRING, cube);
    mc_source *source =
        source_from_text(apr_psprintf(pool, "<source name=\"s\" type=\"cube\"><cube>c</cube>%s</source>", more));
    ck_assert_ptr_nonnull(source);
    return source;
}

static mc_error *
draw(mc_pixels **pixels, mc_source *source, const mc_grid *grid, const char *time, double x0, double y0, double x1,
     double y1, int size)
{
    mc_rendered map = { 0 };
    mc_render wanted = fixture_map(grid, x0, y0, x1, y1, size, size);
    const mc_dimension_value value = { "TIME", time, true };
    wanted.dimensions = &value;
    wanted.dimension_count = time != NULL;
    MC_TRY(mc_source_render(&map, source, &wanted, &ctx, pool));
    *pixels = map.pixels;
    return MC_OK;
}

static int
first_alpha(const mc_pixels *pixels)
{
    return pixels->data[3];
}

START_TEST(a_period_shows_its_latest_date)
{
    cube_process();
    static const int days[] = { 5, 40, 45 };
    mc_pixels *pixels = NULL;
    const mc_cube *cube = cube_with_days(days, 3);
    for (int i = 0; i < 2; i++) {
        mc_source *source = source_of(cube, i == 0 ? "" : "<resample>nearest</resample>");
        const struct {
            const char *time;
            int day;
        } rows[] = {
            { "1970-02", 45 }, { "1970-01", 5 },       { "1970-02-10", 40 },      { "1970", 45 },
            { NULL, 45 },      { "1970-02-10~3", 40 }, { "1960/1970-02-12", 40 }, { "1970-01-06,1970-02-10", 40 }
        };
        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            ck_ok(draw(&pixels, source, &fixture_mercator, rows[j].time, 54, 4, 58, 8, 4));
            ck_assert_int_eq(pixels->data[0], rows[j].day);
            ck_assert_int_eq(first_alpha(pixels), 255);
        }
        ck_fails(NOT_FOUND, draw(&pixels, source, &fixture_mercator, "1970-03", 54, 4, 58, 8, 4));
        ck_fails(INVALID_DIMENSION, draw(&pixels, source, &fixture_mercator, "noon", 54, 4, 58, 8, 4));
    }
    cube_process_end();
}
END_TEST

START_TEST(maps_reach_beyond_the_cube)
{
    cube_process();
    static const int day = 9;
    mc_pixels *pixels = NULL;
    mc_source *source = source_of(cube_with_days(&day, 1), "<resample>nearest</resample>");
    ck_ok(draw(&pixels, source, &fixture_mercator, NULL, 50, -2, 62, 10, 12));
    for (int y = 0; y < 12; y++)
        for (int x = 0; x < 12; x++) {
            bool known = x >= 2 && x < 10 && y < 10;
            ck_assert_int_eq(pixels->data[(size_t)y * pixels->stride + (size_t)x * 4 + 3], known ? 255 : 0);
        }
    ck_ok(draw(&pixels, source, &fixture_mercator, NULL, 1e6, 1e6, 1e6 + 1, 1e6 + 1, 16));
    ck_assert_int_eq(first_alpha(pixels), 0);
    ck_ok(draw(&pixels, source, &fixture_mercator, NULL, -2e7, -2e7, 2e7, 2e7, 4));
    mc_grid other = fixture_wgs84;
    other.aliases = apr_array_make(pool, 0, sizeof(const char *));
    ck_fails(CONFIG, draw(&pixels, source, &other, NULL, 0, 0, 10, 10, 4));
    cube_process_end();
}
END_TEST

START_TEST(maps_of_too_many_pixels_are_refused)
{
    cube_process();
    mc_pixels *pixels = NULL;
    mc_source *source =
        source_of(cube_in_file("<srs>EPSG:3857</srs><extent>0 0 9000 9000</extent><resolution>1</resolution>"
                               "<overviews>0</overviews>"),
                  "");
    ck_fails(LIMIT, draw(&pixels, source, &fixture_mercator, NULL, 0, 0, 9000, 9000, 256));
    cube_process_end();
}
END_TEST

START_TEST(names_that_are_not_known_are_refused)
{
    source_fixture_reset();
    source_build.cubes = apr_hash_make(pool);
    ck_assert_ptr_null(source_from_text("<source name=\"s\" type=\"cube\"><cube>other</cube></source>"));
    ck_assert_ptr_nonnull(strstr(mc_diagnostics_error(source_build.diagnostics, pool)->message, "other"));
}
END_TEST

static mc_error *
resolve(const char **values, mc_dimension *dimension, const char *value)
{
    apr_array_header_t *list;
    const mc_dimension_query query = { "t", NULL, NULL, value };
    MC_TRY(mc_dimension_resolve(&list, dimension, &query, &ctx, pool));
    *values = apr_array_pstrcat(pool, list, ' ');
    return MC_OK;
}

/* Stores a date once more. */
static void
correct(const mc_cube *cube, int day)
{
    mc_cube_writer *writer;
    apr_pool_t *own;
    apr_pool_create(&own, pool);
    ck_ok(cube->ops->write(&writer, cube, &ctx, own));
    ck_ok(cube->ops->begin(writer));
    ck_ok(cube->ops->put_date(writer, &(mc_cube_date){ DAY(day), 0, 0, 0 }));
    ck_ok(cube->ops->commit(writer));
    apr_pool_destroy(own);
}

START_TEST(a_dimension_has_the_dates_of_its_cube)
{
    cube_process();
    static const int days[] = { 40, 5, 45, 84000 };
    const mc_cube *cube = cube_with_days(days, 4);
    (void)source_of(cube, "");
    const mc_node *element =
        config_elements("<dimension type=\"cube\" name=\"when\" default=\"current\"><cube>c</cube></dimension>");
    mc_dimension *dimension = mc_dimension_from_config(element, &source_build);
    ck_assert_ptr_nonnull(dimension);
    const char *values = NULL, *value = "current";
    apr_array_header_t *list;
    ck_ok(resolve(&values, dimension, "1970-02"));
    ck_assert_str_eq(values, "1970-02-10 1970-02-15");
    ck_ok(resolve(&values, dimension, "1970-01-06"));
    ck_assert_str_eq(values, "1970-01-06");
    ck_ok(resolve(&values, dimension, "1970-01-07"));
    ck_assert_str_eq(values, "");
    ck_fails(INVALID_DIMENSION, resolve(&values, dimension, "x"));
    ck_ok(mc_dimension_settle(&value, dimension, "t", &ctx, pool));
    ck_assert_str_eq(value, "1970-02-15");
    ck_ok(mc_dimension_default(&value, dimension, "t", &ctx, pool));
    ck_assert_str_eq(value, "1970-02-15");
    ck_ok(mc_dimension_list(&list, dimension, "t", &ctx, pool));
    ck_assert_str_eq(apr_array_pstrcat(pool, list, ' '), "1970-01-06 1970-02-10 1970-02-15 2199-12-26");
    correct(cube, 40);
    correct(cube, 40);
    ck_ok(resolve(&values, dimension, "1970-02"));
    ck_assert_str_eq(values, "1970-02-10~2 1970-02-15");
    ck_ok(mc_dimension_list(&list, dimension, "t", &ctx, pool));
    ck_assert_str_eq(APR_ARRAY_IDX(list, 1, const char *), "1970-02-10");
    ck_fails(INVALID_DIMENSION, resolve(&values, dimension, "1970-02-10~2"));
    cube_process_end();
}
END_TEST

UNIT_MAIN("cube_source", a_period_shows_its_latest_date, maps_reach_beyond_the_cube,
          maps_of_too_many_pixels_are_refused, names_that_are_not_known_are_refused,
          a_dimension_has_the_dates_of_its_cube)
