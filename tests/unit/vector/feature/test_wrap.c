/* Which worlds a map shows, and what is read for each. */
#include "unit.h"

#include <math.h>

#include "vector/crs/projection.h"
#include "vector/feature/wrap.h"

#define MERCATOR 20037508.342789244

static mc_feature_query
query_of(const char *srs, double minx, double maxx)
{
    double width = maxx - minx;
    return (mc_feature_query){ .srs = srs,
                               .box = { minx, -10, maxx, 10 },
                               .pixel_grid = { .x0 = minx, .y0 = 10, .per_x = 1000 / width, .per_y = 1000 / width },
                               .wrap = true };
}

static mc_wrap
plan_of(const char *srs, double minx, double maxx, const char *data_srs, const mc_extent *bounds)
{
    mc_wrap plan;
    const mc_feature_query query = query_of(srs, minx, maxx);
    mc_wrap_plan(&plan, &query, data_srs, bounds);
    return plan;
}

START_TEST(turns)
{
    ck_assert_double_eq(mc_projection_turn("EPSG:4326"), 360);
    ck_assert_double_eq(mc_projection_turn("CRS:84"), 360);
    ck_assert_double_eq(mc_projection_turn("EPSG:4269"), 360);
    ck_assert_double_eq_tol(mc_projection_turn("EPSG:3857"), 2 * MERCATOR, 1e-6);
    ck_assert_double_eq_tol(mc_projection_turn("EPSG:900913"), 2 * MERCATOR, 1e-6);
    ck_assert_double_eq_tol(mc_projection_turn("EPSG:3395"), 2 * MERCATOR, 1e-6);
    ck_assert_double_eq(mc_projection_turn("EPSG:2056"), 0);
    ck_assert_double_eq(mc_projection_turn("EPSG:3035"), 0);
    ck_assert_double_eq(mc_projection_turn("PROJCS[\"something\"]"), 0);
}
END_TEST

START_TEST(worlds)
{
    static const struct {
        const char *srs;
        double minx, maxx;
        const char *data_srs;
        mc_extent bounds; /* minx > maxx: not known */
        int first, last;
        bool cut;
    } rows[] = {
        { "EPSG:4326", -10, 10, "EPSG:4326", { 1, 0, 0, 0 }, 0, 0, true },
        { "EPSG:4326", 170, 190, "EPSG:4326", { 1, 0, 0, 0 }, 0, 1, true },
        { "EPSG:4326", -190, -170, "EPSG:2056", { 2e6, 1e6, 3e6, 2e6 }, -1, 0, true },
        { "EPSG:4326", 170, 190, NULL, { -180, -90, 180, 90 }, 0, 1, false },
        { "EPSG:4326", 170, 190, NULL, { 5, 45, 10, 48 }, 0, 0, false }, /* nothing of it is there */
        { "EPSG:4326", 170, 190, NULL, { -179, -20, -175, 48 }, 0, 1, false },
        { "EPSG:4326", 181, 190, NULL, { -179, -20, -175, 48 }, 0, 1, false },
        { "EPSG:4326", -100, -80, NULL, { 0, -90, 360, 90 }, -1, 0, false }, /* data that goes on to the east */
        { "EPSG:4326", -540, 540, NULL, { -180, -90, 180, 90 }, -2, 2, false },
        { "EPSG:4326", -1e9, 1e9, NULL, { -180, -90, 180, 90 }, -MC_WRAP_WORLDS, MC_WRAP_WORLDS, false },
        { "EPSG:4326", 170, 190, NULL, { 2e6, 1e6, 3e6, 2e6 }, 0, 1, true }, /* no degrees: not believed */
        { "EPSG:4326", 170, 190, NULL, { -NAN, 0, NAN, 0 }, 0, 1, true },
        { "EPSG:3857", MERCATOR - 10, MERCATOR + 10, "EPSG:4326", { -180, 0, -179, 0 }, 0, 1, false },
        { "EPSG:3857", MERCATOR - 10, MERCATOR + 10, "EPSG:4326", { 0, 0, 20, 0 }, 0, 0, false },
        { "EPSG:2056", 2e6, 5e7, "EPSG:4326", { -180, -90, 180, 90 }, 0, 0, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mc_wrap plan = plan_of(rows[i].srs, rows[i].minx, rows[i].maxx, rows[i].data_srs, &rows[i].bounds);
        ck_assert_msg(plan.first == rows[i].first && plan.last == rows[i].last && plan.cut == rows[i].cut,
                      "row %zu: %d %d %d", i, plan.first, plan.last, plan.cut);
    }
    mc_feature_query query = query_of("EPSG:4326", 170, 190);
    query.wrap = false;
    mc_wrap plan;
    mc_wrap_plan(&plan, &query, NULL, NULL);
    ck_assert(plan.first == 0 && plan.last == 0);
}
END_TEST

/* Where a vertex of the other side comes to lie, and what is asked for. */
START_TEST(a_world_is_moved_by_a_turn)
{
    const mc_extent all = { -180, -90, 180, 90 };
    mc_feature_query query = query_of("EPSG:4326", 170, 190);
    mc_wrap plan = plan_of("EPSG:4326", 170, 190, NULL, &all), unknown = plan_of("EPSG:4326", 170, 190, NULL, NULL);
    ck_assert_ptr_eq(mc_wrap_query(&plan, &query, 0, pool), &query);
    const mc_feature_query *moved = mc_wrap_query(&plan, &query, 1, pool);
    ck_assert_double_eq(moved->box.minx, -190);
    ck_assert_double_eq(moved->box.maxx, -170);
    ck_assert_double_eq((-175 - moved->pixel_grid.x0) * moved->pixel_grid.per_x, 15 * 50);
    moved = mc_wrap_query(&unknown, &query, 1, pool);
    ck_assert_double_eq(moved->box.minx, -180);
    ck_assert_double_eq(moved->box.maxx, -170);
    ck_assert_ptr_null(mc_wrap_query(&unknown, &query, 2, pool));
}
END_TEST

START_TEST(what_sticks_out_stays_in_the_middle)
{
    mc_feature_query query = query_of("EPSG:4326", -190, -170);
    mc_wrap unknown = plan_of("EPSG:4326", -190, -170, NULL, NULL);
    const mc_feature_query *moved = mc_wrap_query(&unknown, &query, -1, pool);
    mc_geometry geometry = { 0 };
    const double ends[] = { 175, 180, 180.01, 181 };
    for (int i = 0; i < 4; i++) {
        mc_geometry_clear(&geometry);
        mc_shape *line = &geometry.shapes[MC_SHAPE_LINES];
        ck_assert(mc_shape_add_vertex(line, &moved->pixel_grid, 170, 0));
        ck_assert(mc_shape_add_vertex(line, &moved->pixel_grid, ends[i], 0));
        mc_shape_end_part(line);
        ck_assert_int_eq(mc_wrap_holds(&unknown, moved, -1, &geometry), i < 3);
        ck_assert(mc_wrap_holds(&unknown, &query, 0, &geometry));
    }
    mc_geometry_free(&geometry);
}
END_TEST

UNIT_MAIN("wrap", turns, worlds, a_world_is_moved_by_a_turn, what_sticks_out_stays_in_the_middle)
