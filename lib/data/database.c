/* Tables and views with geometry in a PostgreSQL database. */
#include <apr_strings.h>
#include <string.h>

#include "base/clock.h"
#include "data/data_private.h"
#include "db/postgres/postgres.h"
#include "text/text.h"
#include "vector/feature/feature.h"
#include "vector/postgis/postgis.h"

/* Microseconds in which extents are asked for; what is not known by then stays unknown. */
#define PLACES_TIME (3 * APR_USEC_PER_SEC)

/* Takes "table=NAME" out of the address's parameters: it is ours, not libpq's. *table NULL: there is none. */
static const char *
part_database_address(const char **table, const char *thing, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, thing), *state;
    char *query = strchr(copy, '?');
    const char *kept = "";
    *table = NULL;
    if (query == NULL)
        return copy;
    *query++ = '\0';
    for (char *pair = apr_strtok(query, "&", &state); pair != NULL; pair = apr_strtok(NULL, "&", &state))
        if (strncmp(pair, "table=", 6) == 0)
            *table = mc_url_decode(pair + 6, strlen(pair + 6), false, pool);
        else
            kept = apr_pstrcat(pool, kept, *kept == '\0' ? "?" : "&", pair, NULL);
    return apr_pstrcat(pool, copy, kept, NULL);
}

static const char tables_sql[] =
    "SELECT n.nspname::text, c.relname::text, a.attname::text, postgis_typmod_srid(a.atttypmod)::text, "
    "postgis_typmod_type(a.atttypmod), coalesce(obj_description(c.oid, 'pg_class'), ''), "
    "coalesce((SELECT k.attname::text FROM pg_index i JOIN pg_attribute k ON k.attrelid = c.oid "
    "AND k.attnum = i.indkey[0] WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnatts = 1 "
    "AND k.atttypid IN (20, 21, 23)), ''), "
    "(SELECT count(*) FROM pg_attribute o JOIN pg_type p ON p.oid = o.atttypid WHERE o.attrelid = c.oid "
    "AND o.attnum > 0 AND NOT o.attisdropped AND p.typname IN ('geometry', 'geography'))::text, t.typname::text, "
    "(n.nspname = ANY (current_schemas(false)))::text, "
    "coalesce((SELECT string_agg(o.attname || chr(31) || p.typname || chr(30), '' ORDER BY o.attnum) "
    "FROM pg_attribute o JOIN pg_type p ON p.oid = o.atttypid WHERE o.attrelid = c.oid AND o.attnum > 0 "
    "AND NOT o.attisdropped AND p.typname NOT IN ('geometry', 'geography')), '') "
    "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE t.typname IN ('geometry', 'geography') AND a.attnum > 0 AND NOT a.attisdropped "
    "AND c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition "
    "AND n.nspname NOT IN ('information_schema', 'topology', 'tiger', 'tiger_data') AND n.nspname NOT LIKE 'pg\\_%' "
    "AND c.relname NOT IN ('geometry_columns', 'geography_columns', 'raster_columns', 'raster_overviews') "
    "AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT') "
    "AND ($1::text IS NULL OR c.oid = to_regclass($1)) ORDER BY n.nspname, c.relname, a.attnum LIMIT $2";

static mc_data_shape
shape_of_geometry(const char *type)
{
    const char *kind = strncasecmp(type, "Multi", 5) == 0 ? type + 5 : type;
    return strncasecmp(kind, "Point", 5) == 0                                                ? MC_DATA_POINTS
           : strncasecmp(kind, "Line", 4) == 0 || strncasecmp(kind, "CompoundCurve", 8) == 0 ? MC_DATA_LINES
           : strncasecmp(kind, "Polygon", 7) == 0 || strncasecmp(kind, "Surface", 7) == 0    ? MC_DATA_AREAS
                                                                                             : MC_DATA_ANY_SHAPE;
}

static mc_field_type
type_of_column(const char *type, size_t size)
{
    static const struct {
        const char *name;
        mc_field_type type;
    } known[] = { { "int2", MC_FIELD_INTEGER },  { "int4", MC_FIELD_INTEGER },  { "int8", MC_FIELD_INTEGER },
                  { "float4", MC_FIELD_NUMBER }, { "float8", MC_FIELD_NUMBER }, { "numeric", MC_FIELD_NUMBER },
                  { "bool", MC_FIELD_BOOLEAN } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i].name) == size && memcmp(known[i].name, type, size) == 0)
            return known[i].type;
    return MC_FIELD_TEXT;
}

/* name 0x1f type 0x1e ... */
static const apr_array_header_t *
list_columns(const char *text, apr_pool_t *pool)
{
    apr_array_header_t *fields = apr_array_make(pool, 8, sizeof(mc_field));
    for (const char *at = text; *at != '\0';) {
        size_t name = strcspn(at, "\x1f"), end = strcspn(at, "\x1e");
        if (at[end] == '\0' || name >= end)
            break;
        APR_ARRAY_PUSH(fields, mc_field) =
            (mc_field){ apr_pstrndup(pool, at, name), type_of_column(at + name + 1, end - name - 1) };
        at += end + 1;
    }
    return fields;
}

static bool
add_table(mc_data_search *search, const char *connection, const mc_postgres_field *f)
{
    apr_pool_t *pool = search->pool;
    bool plain = strcmp(f[9].data, "true") == 0, several = strcmp(f[7].data, "1") != 0;
    if (strchr(f[0].data, '.') != NULL || strchr(f[1].data, '.') != NULL) {
        mc_data_note(search, "the table \"%s\" of schema \"%s\" has a point in its name: <table> cannot say it",
                     f[1].data, f[0].data);
        return true;
    }
    mc_data_layer *layer = mc_data_add(search, MC_DATA_VECTOR, "postgis");
    if (layer == NULL)
        return false;
    layer->data = connection;
    layer->table = apr_pstrcat(pool, f[0].data, ".", f[1].data, NULL);
    layer->geometry = apr_pstrdup(pool, f[2].data);
    layer->name = plain ? apr_pstrdup(pool, f[1].data) : layer->table;
    if (several)
        layer->name = apr_pstrcat(pool, layer->name, "_", layer->geometry, NULL);
    layer->title = layer->name;
    layer->description = *f[5].data == '\0' ? NULL : apr_pstrdup(pool, f[5].data);
    layer->id = *f[6].data == '\0' ? NULL : apr_pstrdup(pool, f[6].data);
    layer->shape = shape_of_geometry(f[4].data);
    layer->srs = strcmp(f[8].data, "geography") == 0 ? "EPSG:4326"
                 : strcmp(f[3].data, "0") == 0       ? NULL
                                                     : apr_pstrcat(pool, "EPSG:", f[3].data, NULL);
    layer->attributes = list_columns(f[10].data, pool);
    return true;
}

static mc_error *
list_tables(mc_data_search *search, const char *connection, const char *table, mc_ctx *ctx)
{
    const mc_postgres_row *row = NULL;
    mc_postgres_result *result = NULL;
    const mc_postgres_param params[] = {
        { .value = table == NULL ? NULL : mc_sql_table(table, search->pool), .type = MC_POSTGRES_TEXT },
        { .value = apr_itoa(search->pool, search->limits.layers + 1), .type = MC_POSTGRES_INT8 }
    };
    const mc_postgres_query query = { .connection = connection, .sql = tables_sql, .params = params, .param_count = 2 };
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &query, ctx, search->pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    while (error == MC_OK && row != NULL && row->columns >= 11 && add_table(search, connection, row->fields))
        error = mc_postgres_next(&row, result);
    const char *state = error == MC_OK ? "" : mc_postgres_sqlstate(result);
    if (strcmp(state, "42883") == 0) /* undefined_function */
        error = mc_error_wrap(search->pool, error, MC_ERR_CONFIG, "the database has no PostGIS");
    mc_postgres_end(result);
    return error;
}

/* Extents, as long as there is time. */
static void
place_tables(mc_data_search *search, int first, mc_ctx *ctx)
{
    mc_ctx own = *ctx;
    own.deadline = mc_clock_now() + mc_ctx_remaining(ctx, PLACES_TIME);
    for (int i = first; i < search->layers->nelts && mc_clock_now() < own.deadline; i++) {
        mc_data_layer *layer = APR_ARRAY_IDX(search->layers, i, mc_data_layer *);
        const mc_postgis_config config = { .connection = layer->data,
                                           .table = layer->table,
                                           .geometry = layer->geometry };
        mc_postgis_place place;
        mc_error *error = mc_postgis_find_place(&place, &config, &own, search->pool);
        if (error != MC_OK || !place.known) {
            mc_error_ignore(error);
            continue;
        }
        layer->has_extent = true;
        layer->estimated = place.estimated;
        layer->extent = place.box;
        if (layer->srs == NULL && place.srid > 0)
            layer->srs = apr_psprintf(search->pool, "EPSG:%d", place.srid);
        mc_data_place(layer, 0, search->pool);
    }
}

mc_error *
mc_data_look_database(mc_data_search *search, const char *thing)
{
    const char *table;
    int first = search->layers->nelts;
    const char *connection = part_database_address(&table, thing, search->pool);
    mc_process process = *search->ctx->process;
    mc_ctx ctx = *search->ctx;
    mc_postgres *own = process.postgres == NULL ? mc_postgres_create(1, 1, 60 * APR_USEC_PER_SEC, false) : NULL;
    if (own != NULL)
        process.postgres = own;
    ctx.process = &process;
    mc_error *error = list_tables(search, connection, table, &ctx);
    if (error == MC_OK && search->layers->nelts == first)
        error = table == NULL
                    ? mc_error_create(search->pool, MC_ERR_CONFIG, "the database has no table with geometry to read")
                    : mc_error_create(search->pool, MC_ERR_CONFIG,
                                      "the database has no table \"%s\" with geometry to read", table);
    if (error == MC_OK)
        place_tables(search, first, &ctx);
    error = mc_error_copy(error, search->pool);
    mc_postgres_destroy(own);
    return error;
}
