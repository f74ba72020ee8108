/* Which statements for PostGIS layers are planned once for all maps. */
#include "vector/postgis/postgis.h"

#include <string.h>

#include "unit.h"

static const mc_feature_query query = { .box = { 0, 0, 10, 10 }, .resolution = 1, .scale = 1 };
static const mc_postgis_column roads_column = {
    .name = "geom", .srid = 3857, .stored = true, .bounded = true, .bounds = { -100, -100, 100, 100 }
};
static const mc_postgis_request few_rows = { .query = &query, .map_srid = 3857, .rows = 20 };

static bool
is_planned_once(mc_postgis_config config, mc_postgis_column column, mc_postgis_request request)
{
    mc_postgis_statement statement;
    ck_assert_ptr_eq(mc_postgis_build(&statement, &config, &column, &request, pool), MC_OK);
    if (statement.by_key) {
        ck_assert_ptr_nonnull(strstr(statement.sql, " && "));
        ck_assert_ptr_nonnull(strstr(statement.sql, " ORDER BY ctid"));
        ck_assert_int_eq(statement.param_count, 4);
    }
    return statement.by_key;
}

START_TEST(few_rows_of_a_table_have_one_plan)
{
    mc_postgis_config roads = { .table = "roads" }, asked = { .query = "SELECT * FROM roads" };
    mc_postgis_request unknown = few_rows, copied = few_rows;
    mc_postgis_column view = roads_column, globe = roads_column, small = roads_column;
    unknown.rows = 0;
    copied.copy = true;
    view.stored = false;
    globe.geography = true;
    small.bounds = (mc_extent){ 1, 1, 9, 9 };
    ck_assert(is_planned_once(roads, roads_column, few_rows));
    ck_assert(!is_planned_once(roads, roads_column, unknown));
    ck_assert(!is_planned_once(roads, roads_column, copied));
    ck_assert(!is_planned_once(asked, roads_column, few_rows));
    ck_assert(!is_planned_once(roads, view, few_rows));
    ck_assert(!is_planned_once(roads, globe, few_rows));
    ck_assert(!is_planned_once(roads, small, few_rows));
}
END_TEST

UNIT_MAIN("postgis_sql", few_rows_of_a_table_have_one_plan)
