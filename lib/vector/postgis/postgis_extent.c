/* Where the features of a layer lie: see postgis.h. */
#include <apr_strings.h>
#include <math.h>

#include "base/clock.h"
#include "text/text.h"
#include "vector/postgis/postgis.h"

/* Microseconds for a look at all features, rows of a table that are worth it, and the margin of an estimate. */
#define LOOK_TIME (2 * APR_USEC_PER_SEC)
#define ROWS_MAX 2e6
#define MARGIN 0.05

#define BOX_COLUMNS "ST_XMin(b)::text, ST_YMin(b)::text, ST_XMax(b)::text, ST_YMax(b)::text"

static mc_error *
ask_box(mc_postgis_place *place, const mc_postgis_config *config, const char *sql, const mc_postgres_param *params,
        int count, mc_ctx *ctx, apr_pool_t *pool)
{
    const char **values;
    mc_ctx own = *ctx;
    own.deadline = mc_clock_now() + mc_ctx_remaining(ctx, LOOK_TIME);
    MC_TRY(mc_postgis_first_row(&values, 4, config, sql, params, count, &own, pool));
    place->known = values != NULL && mc_parse_double(&place->box.minx, values[0]) &&
                   mc_parse_double(&place->box.miny, values[1]) && mc_parse_double(&place->box.maxx, values[2]) &&
                   mc_parse_double(&place->box.maxy, values[3]);
    return MC_OK;
}

static mc_error *
measure_all_features(mc_postgis_place *place, const mc_postgis_config *config, const mc_postgis_column *column,
                     mc_ctx *ctx, apr_pool_t *pool)
{
    const char *sql = apr_psprintf(pool, "SELECT " BOX_COLUMNS " FROM (SELECT ST_Extent(%s::geometry) AS b FROM %s) e",
                                   mc_sql_name(column->name, pool), mc_sql_table(config->table, pool));
    return ask_box(place, config, sql, NULL, 0, ctx, pool);
}

/* By the statistics that ANALYZE has made of a sample of the rows. */
static mc_error *
estimate_box(mc_postgis_place *place, const mc_postgis_config *config, const mc_postgis_column *column, mc_ctx *ctx,
             apr_pool_t *pool)
{
    static const char sql[] =
        "SELECT " BOX_COLUMNS " FROM (SELECT ST_EstimatedExtent(n.nspname, c.relname, $2) AS b FROM pg_class c JOIN "
        "pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)) e";
    const mc_postgres_param params[] = { { .value = mc_sql_table(config->table, pool), .type = MC_POSTGRES_TEXT },
                                         { .value = column->name, .type = MC_POSTGRES_TEXT } };
    MC_TRY(ask_box(place, config, sql, params, 2, ctx, pool));
    double x = (place->box.maxx - place->box.minx) * MARGIN, y = (place->box.maxy - place->box.miny) * MARGIN;
    place->estimated = true;
    if (place->known)
        place->box = (mc_extent){ place->box.minx - x, place->box.miny - y, place->box.maxx + x, place->box.maxy + y };
    return MC_OK;
}

mc_error *
mc_postgis_find_place(mc_postgis_place *place, const mc_postgis_config *config, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgis_column column;
    mc_error *error = MC_OK;
    *place = (mc_postgis_place){ 0 };
    if (config->table == NULL)
        return MC_OK;
    MC_TRY(mc_postgis_find_column(&column, config, ctx, pool));
    place->srid = column.srid;
    if (column.bounded) {
        place->known = true;
        place->box = column.bounds;
        return MC_OK;
    }
    if (!column.stored || column.rows <= ROWS_MAX)
        error = measure_all_features(place, config, &column, ctx, pool);
    if (place->known || !column.stored || column.geography)
        return error;
    if (error != MC_OK || column.rows > ROWS_MAX)
        error = estimate_box(place, config, &column, ctx, pool);
    return error;
}
