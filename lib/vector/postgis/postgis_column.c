/* What a layer's geometry column is: asked of the catalogue once. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/text.h"
#include "vector/postgis/postgis.h"

enum { WGS84 = 4326, SRID_MAX = 999999 };

mc_error *
mc_postgis_first_row(const char ***values, int columns, const mc_postgis_config *config, const char *sql,
                     const mc_postgres_param *params, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgres_query query = { .connection = config->connection, .sql = sql, .params = params, .param_count = count };
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    *values = NULL;
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    if (error == MC_OK && row != NULL && row->columns >= columns) {
        *values = apr_pcalloc(pool, sizeof(**values) * (size_t)columns);
        for (int i = 0; i < columns; i++)
            (*values)[i] = apr_pstrdup(pool, row->fields[i].data);
    }
    mc_postgres_end(result);
    return error;
}

/* Of the names that postgis_typmod_type gives. */
static bool
is_varied(const char *type)
{
    static const char *const plain[] = { "Point",      "LineString",      "Polygon",
                                         "MultiPoint", "MultiLineString", "MultiPolygon" };
    size_t size = strlen(type);
    while (size > 0 && (type[size - 1] == 'Z' || type[size - 1] == 'M'))
        size--;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strlen(plain[i]) == size && strncasecmp(plain[i], type, size) == 0)
            return false;
    return true;
}

/* The column does not tell: the first geometry that there is does. */
static mc_error *
ask_geometry(int *srid, const mc_postgis_config *config, const char *column, mc_ctx *ctx, apr_pool_t *pool)
{
    const char **values, *name = mc_sql_name(column, pool);
    const char *sql = apr_pstrcat(pool, "SELECT ST_SRID(", name, ")::text FROM ", mc_sql_table(config->table, pool),
                                  " WHERE ", name, " IS NOT NULL LIMIT 1", NULL);
    MC_TRY(mc_postgis_first_row(&values, 1, config, sql, NULL, 0, ctx, pool));
    if (values != NULL && !mc_parse_int(srid, values[0], 0, SRID_MAX))
        *srid = 0;
    return MC_OK;
}

mc_error *
mc_postgis_find_column(mc_postgis_column *column, const mc_postgis_config *config, mc_ctx *ctx, apr_pool_t *pool)
{
    static const char sql[] =
        "SELECT a.attname::text, postgis_typmod_srid(a.atttypmod)::text, postgis_typmod_type(a.atttypmod), "
        "t.typname::text, (c.relkind IN ('r', 'm'))::text, "
        "ST_XMin(e.box)::text, ST_YMin(e.box)::text, ST_XMax(e.box)::text, ST_YMax(e.box)::text, "
        "(c.relkind NOT IN ('r', 'm') OR c.relhassubclass OR "
        "(c.reltoastrelid <> 0 AND pg_relation_size(c.reltoastrelid) > $3))::text, "
        "(c.relkind IN ('r', 'm') AND NOT c.relhassubclass AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap') "
        "AND (c.reltoastrelid = 0 OR pg_relation_size(c.reltoastrelid) <= $4) "
        "AND current_setting('server_version_num')::int >= 140000 "
        "AND has_table_privilege(c.oid, 'SELECT'))::text, c.reltuples::text, (c.relkind = 'p' OR "
        "c.relhassubclass)::text "
        "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN LATERAL (SELECT CASE WHEN c.relkind IN ('r', 'm') "
        "AND t.typname = 'geometry' AND NOT c.relhassubclass AND EXISTS (SELECT FROM pg_index i "
        "JOIN pg_class o ON o.oid = i.indexrelid JOIN pg_am m ON m.oid = o.relam WHERE i.indrelid = c.oid "
        "AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'gist') "
        "THEN ST_EstimatedExtent(n.nspname, c.relname, a.attname) END AS box) e ON true "
        "WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped "
        "AND t.typname IN ('geometry', 'geography') AND a.attname = coalesce($2, a.attname) "
        "ORDER BY a.attnum LIMIT 1";
    *column = (mc_postgis_column){
        .name = config->geometry, .srid = config->srid, .varied = true, .unsettled = true, .large = true
    };
    if (config->table == NULL)
        return MC_OK;
    const mc_postgres_param params[] = { { .value = mc_sql_table(config->table, pool), .type = MC_POSTGRES_TEXT },
                                         { .value = config->geometry, .type = MC_POSTGRES_TEXT },
                                         { .value = apr_itoa(pool, MC_POSTGIS_GEOMETRY_MAX), .type = MC_POSTGRES_INT8 },
                                         { .value = apr_itoa(pool, MC_POSTGIS_OUTSIDE_MAX),
                                           .type = MC_POSTGRES_INT8 } };
    const char **values;
    int srid = 0;
    MC_TRY(mc_postgis_first_row(&values, 13, config, sql, params, 4, ctx, pool));
    if (values == NULL || !mc_parse_int(&srid, values[1], 0, SRID_MAX))
        return mc_error_create(pool, MC_ERR_UPSTREAM, "the database has no table \"%s\" with a geometry column%s%s",
                               config->table, config->geometry == NULL ? "" : " ",
                               config->geometry == NULL ? "" : config->geometry);
    column->name = values[0];
    column->geography = strcmp(values[3], "geography") == 0;
    column->varied = is_varied(values[2]);
    column->stored = strcmp(values[4], "true") == 0;
    column->bounded =
        mc_parse_double(&column->bounds.minx, values[5]) && mc_parse_double(&column->bounds.miny, values[6]) &&
        mc_parse_double(&column->bounds.maxx, values[7]) && mc_parse_double(&column->bounds.maxy, values[8]);
    column->large = strcmp(values[9], "false") != 0;
    column->paged = strcmp(values[10], "true") == 0; /* ranges of ctid: since PostgreSQL 14 */
    column->parted = strcmp(values[12], "true") == 0;
    if (!mc_parse_double(&column->rows, values[11]) || column->rows < 0)
        column->rows = 0;
    column->declared = srid;
    column->unsettled = srid == 0 && !column->geography;
    if (srid == 0 && column->geography)
        srid = WGS84;
    if (srid == 0 && config->srid == 0)
        MC_TRY(ask_geometry(&srid, config, column->name, ctx, pool));
    column->srid = config->srid != 0 ? config->srid : srid;
    return MC_OK;
}

const char *
mc_postgis_known_srids(const mc_postgis_column *column, apr_pool_t *pool)
{
    if (column->declared == 0 || column->declared == column->srid)
        return apr_itoa(pool, column->srid);
    return apr_psprintf(pool, "%d,%d", column->srid, column->declared);
}

mc_error *
mc_postgis_ask_declared(int *declared, const mc_postgis_config *config, const char *column, mc_ctx *ctx,
                        apr_pool_t *pool)
{
    static const char sql[] = "SELECT postgis_typmod_srid(atttypmod)::text FROM pg_attribute WHERE attrelid = "
                              "to_regclass($1) AND attname = $2 AND NOT attisdropped";
    const mc_postgres_param params[] = { { .value = mc_sql_table(config->table, pool), .type = MC_POSTGRES_TEXT },
                                         { .value = column, .type = MC_POSTGRES_TEXT } };
    const char **values;
    *declared = -1;
    MC_TRY(mc_postgis_first_row(&values, 1, config, sql, params, 2, ctx, pool));
    if (values != NULL && !mc_parse_int(declared, values[0], 0, SRID_MAX))
        *declared = -1;
    return MC_OK;
}

mc_error *
mc_postgis_row_changed(bool *changed, const mc_postgis_config *config, const mc_postgis_column *column, mc_ctx *ctx,
                       apr_pool_t *pool)
{
    int srid = column->declared;
    *changed = false;
    if (config->table == NULL || config->srid != 0 || !column->unsettled || !column->stored)
        return MC_OK;
    MC_TRY(ask_geometry(&srid, config, column->name, ctx, pool));
    *changed = srid != column->srid;
    return MC_OK;
}

mc_error *
mc_postgis_is_indexed(bool *indexed, const mc_postgis_config *config, const mc_postgis_column *column, mc_ctx *ctx,
                      apr_pool_t *pool)
{
    static const char sql[] =
        "SELECT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE i.indrelid = to_regclass($1) "
        "AND i.indisvalid AND m.amname IN ('gist', 'spgist', 'brin') AND a.attname = $2)::text";
    *indexed = true;
    if (config->table == NULL || !column->stored)
        return MC_OK;
    const mc_postgres_param params[] = { { .value = mc_sql_table(config->table, pool), .type = MC_POSTGRES_TEXT },
                                         { .value = column->name, .type = MC_POSTGRES_TEXT } };
    const char **values;
    MC_TRY(mc_postgis_first_row(&values, 1, config, sql, params, 2, ctx, pool));
    *indexed = values != NULL && strcmp(values[0], "true") == 0;
    return MC_OK;
}
