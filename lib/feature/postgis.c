/*
 * PostGIS as data of a layer: one prepared statement for a map, geometry in its own binary form (EWKB), attributes as
 * text so that no value changes its look, rows painted while they arrive.
 */
#include "feature/postgis.h"

#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/workers.h"
#include "db/postgres.h"
#include "feature/projection.h"
#include "mapcache/trace.h"

#define FIELDS_HOLD apr_time_from_sec(60)

typedef struct postgis {
    mc_feature_data data;
    mc_postgis_config config;
    pthread_mutex_t lock; /* of all below */
    bool found;           /* what the configuration leaves open has been asked for */
    char geometry[64];
    int srid;
    apr_pool_t *fields_pool;    /* a root pool of its own; NULL: not asked so far */
    apr_array_header_t *fields; /* as asked at `fields_time` */
    apr_time_t fields_time;
} postgis;

/* One row of a statement, or none. */
static mc_error *
first_row(const mc_postgres_row **row, mc_postgres_answer **answer, const postgis *layer, const char *sql,
          const mc_postgres_param *params, int count, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgres_query query = {
        .connection = layer->config.connection, .sql = sql, .params = params, .param_count = count
    };
    MC_TRY(mc_postgres_start(answer, ctx->process->postgres, &query, ctx, pool));
    return mc_postgres_next(row, *answer);
}

/* Column and SRID of a table, from the view that the standard asks for (OGC 06-104r4, 7.1.4.1). */
static mc_error *
look_up(postgis *layer, mc_ctx *ctx, apr_pool_t *pool)
{
    static const char sql[] =
        "SELECT f_geometry_column::text, srid::text FROM geometry_columns WHERE f_table_name = $1 AND "
        "f_table_schema = coalesce($2, f_table_schema) AND f_geometry_column = "
        "coalesce($3, f_geometry_column) ORDER BY f_table_schema, f_geometry_column LIMIT 1";
    const char *dot = strchr(layer->config.table, '.');
    const char *schema =
        dot == NULL ? NULL : apr_pstrmemdup(pool, layer->config.table, (size_t)(dot - layer->config.table));
    const mc_postgres_param params[] = { { .value = dot == NULL ? layer->config.table : dot + 1,
                                           .type = MC_POSTGRES_TEXT },
                                         { .value = schema, .type = MC_POSTGRES_TEXT },
                                         { .value = layer->config.geometry, .type = MC_POSTGRES_TEXT } };
    const mc_postgres_row *row;
    mc_postgres_answer *answer = NULL;
    int srid = 0;
    mc_error *error = first_row(&row, &answer, layer, sql, params, 3, ctx, pool);
    if (error == MC_OK && (row == NULL || row->columns < 2 || row->fields[0].size >= (int)sizeof(layer->geometry) ||
                           !mc_parse_int(&srid, row->fields[1].data, 0, 999999)))
        error = mc_error_create(pool, MC_ERR_UPSTREAM,
                                "layer \"%s\": the database has no geometry column for its table", layer->data.name);
    if (error == MC_OK) {
        apr_cpystrn(layer->geometry, row->fields[0].data, sizeof(layer->geometry));
        layer->srid = layer->config.srid != 0 ? layer->config.srid : srid;
    }
    mc_postgres_end(answer);
    return error;
}

/* The configuration with nothing left open. */
static mc_error *
complete(mc_postgis_config *config, postgis *layer, mc_ctx *ctx, apr_pool_t *pool)
{
    *config = layer->config;
    if (config->geometry != NULL && config->srid != 0)
        return MC_OK;
    if (config->table == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "layer \"%s\": a query needs <geometry> and <srid>",
                               layer->data.name);
    pthread_mutex_lock(&layer->lock);
    bool found = layer->found;
    pthread_mutex_unlock(&layer->lock);
    if (!found) { /* asked without the lock: whoever comes second asks the same */
        postgis asked = { .data = layer->data, .config = layer->config };
        MC_TRY(look_up(&asked, ctx, pool));
        pthread_mutex_lock(&layer->lock);
        memcpy(layer->geometry, asked.geometry, sizeof(asked.geometry));
        layer->srid = asked.srid;
        layer->found = true;
        pthread_mutex_unlock(&layer->lock);
    }
    config->geometry = apr_pstrdup(pool, layer->geometry);
    config->srid = layer->srid;
    return MC_OK;
}

/* A number in the wire form of float8. */
static mc_postgres_param
number(double value, apr_pool_t *pool)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint8_t *bytes = apr_palloc(pool, 8);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> (56 - 8 * i));
    return (mc_postgres_param){ .value = bytes, .size = 8, .binary = true, .type = MC_POSTGRES_FLOAT8 };
}

static const char *
dimension_of(const mc_feature_query *query, const char *name)
{
    for (int i = 0; i < query->dimension_count; i++)
        if (strcasecmp(query->dimensions[i].name, name) == 0)
            return query->dimensions[i].value;
    return NULL;
}

/* Values of $1 and on. */
static mc_postgres_param *
values_of(const mc_postgis_statement *statement, const mc_feature_query *query, apr_pool_t *pool)
{
    const double box[4] = { query->box.minx, query->box.miny, query->box.maxx, query->box.maxy };
    mc_postgres_param *params = apr_pcalloc(pool, sizeof(*params) * (size_t)(4 + statement->placeholder_count));
    for (int i = 0; i < 4; i++)
        params[i] = number(box[i], pool);
    for (int i = 0; i < statement->placeholder_count; i++) {
        const mc_postgis_placeholder *asked = &statement->placeholders[i];
        if (asked->kind == MC_BIND_DIMENSION)
            params[4 + i] =
                (mc_postgres_param){ .value = dimension_of(query, asked->dimension), .type = MC_POSTGRES_TEXT };
        else
            params[4 + i] = number(asked->kind == MC_BIND_PIXEL ? query->resolution : query->scale, pool);
    }
    return params;
}

typedef struct reading {
    const postgis *layer;
    const mc_postgis_config *config;
    const mc_feature_query *query;
    mc_geometry geometry;
    const char **values;
    int64_t skipped, bytes;
    mc_ctx *ctx;
} reading;

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Hex digits back into bytes, up to the first that is none. */
static size_t
unhex(uint8_t *out, const char *text, int size)
{
    size_t count = 0;
    for (int i = 0; i + 1 < size; i += 2) {
        int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0)
            break;
        out[count++] = (uint8_t)(high << 4 | low);
    }
    return count;
}

static mc_error *
read_shape(reading *r, const mc_postgres_field *field, apr_pool_t *scratch)
{
    if (r->config->transfer == MC_TRANSFER_TWKB)
        return mc_twkb_read(&r->geometry, field->data, (size_t)field->size, &r->query->lattice, scratch);
    if (r->config->transfer == MC_TRANSFER_BINARY)
        return mc_wkb_read(&r->geometry, field->data, (size_t)field->size, &r->query->lattice, scratch);
    uint8_t *bytes = apr_palloc(scratch, (size_t)field->size / 2 + 1);
    size_t size = unhex(bytes, field->data, field->size);
    return mc_wkb_read(&r->geometry, bytes, size, &r->query->lattice, scratch);
}

static int64_t
id_of(const mc_postgres_field *field)
{
    uint64_t id = 0;
    for (int i = 0; i < field->size && i < 8; i++)
        id = id << 8 | (uint8_t)field->data[i];
    return (int64_t)id;
}

static mc_error *
hand_over(reading *r, const mc_postgres_row *row, mc_feature_taker *take, void *baton, apr_pool_t *scratch)
{
    for (int i = 0; i < row->columns; i++)
        r->bytes += row->fields[i].size > 0 ? row->fields[i].size : 0;
    if (row->fields[0].size < 0)
        return MC_OK;
    mc_error *error = read_shape(r, &row->fields[0], scratch);
    if (error != MC_OK) {
        if (r->skipped++ == 0)
            mc_log_error(
                r->ctx, MC_LOG_WARN,
                mc_error_wrap(scratch, error, error->kind, "layer \"%s\": a feature is left out", r->layer->data.name));
        return MC_OK;
    }
    if (mc_geometry_is_empty(&r->geometry))
        return MC_OK;
    for (int i = 0; i < r->query->attribute_count; i++)
        r->values[i] = row->fields[2 + i].size < 0 ? NULL : row->fields[2 + i].data;
    const mc_feature feature = { .id = id_of(&row->fields[1]), .geometry = &r->geometry, .values = r->values };
    return take(baton, &feature, r->ctx);
}

static mc_error *
read_rows(reading *r, mc_postgres_answer *answer, mc_feature_taker *take, void *baton, apr_pool_t *pool)
{
    const mc_postgres_row *row;
    apr_pool_t *scratch;
    mc_error *error = MC_OK;
    apr_pool_create(&scratch, pool);
    for (int i = 0; error == MC_OK; i++) {
        error = mc_postgres_next(&row, answer);
        if (error != MC_OK || row == NULL)
            break;
        if (row->columns != 2 + r->query->attribute_count)
            error = mc_error_create(pool, MC_ERR_UPSTREAM, "layer \"%s\": the database answered with %d columns",
                                    r->layer->data.name, row->columns);
        else
            error = mc_error_copy(hand_over(r, row, take, baton, scratch), pool);
        if (i % 64 == 0)
            apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return error;
}

/* The query in the layer's CRS, to be transformed here; a CRS that only the database knows (its spatial_ref_sys may
 * have rows of its own) is transformed there. The SRID of the query's box. */
static int
in_own_srid(mc_feature_query *own, const mc_postgis_config *config, const mc_feature_query *query, apr_pool_t *pool)
{
    int map_srid = mc_crs_epsg(query->srs, NULL);
    mc_error *error = mc_projection_query(own, query, apr_psprintf(pool, "EPSG:%d", config->srid), pool);
    if (error == MC_OK || map_srid == 0)
        return config->srid;
    mc_error_ignore(error);
    *own = *query;
    return map_srid;
}

static mc_error *
postgis_read(mc_feature_data *data, const mc_feature_query *query, mc_feature_taker *take, void *baton,
             int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_postgis_read");
    postgis *layer = (postgis *)data;
    mc_postgis_config config;
    mc_postgis_statement statement;
    mc_feature_query own;
    MC_TRY(complete(&config, layer, ctx, pool));
    int srid = in_own_srid(&own, &config, query, pool);
    MC_TRY(mc_postgis_build(&statement, &config, &own, srid, pool));
    mc_postgres_query asked = { .connection = config.connection,
                                .sql = statement.sql,
                                .params = values_of(&statement, &own, pool),
                                .param_count = 4 + statement.placeholder_count,
                                .binary = true,
                                .single_row = true };
    mc_postgres_answer *answer = NULL;
    reading r = { .layer = layer, .config = &config, .query = &own, .ctx = ctx };
    r.values = apr_pcalloc(pool, sizeof(*r.values) * (size_t)(query->attribute_count + 1));
    mc_error *error = mc_postgres_start(&answer, ctx->process->postgres, &asked, ctx, pool);
    if (error == MC_OK)
        error = read_rows(&r, answer, take, baton, pool);
    mc_postgres_end(answer);
    mc_geometry_free(&r.geometry);
    *skipped = r.skipped;
    if (error == MC_OK)
        return MC_OK;
    return mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be read from its database", layer->data.name);
}

/* Types that are not of the system are text: enumerations, say. */
static mc_field_type
type_of(unsigned type)
{
    switch (type) {
    case MC_POSTGRES_BOOL:
        return MC_FIELD_BOOLEAN;
    case MC_POSTGRES_INT2:
    case MC_POSTGRES_INT4:
    case MC_POSTGRES_INT8:
        return MC_FIELD_INTEGER;
    case MC_POSTGRES_FLOAT4:
    case MC_POSTGRES_FLOAT8:
    case MC_POSTGRES_NUMERIC:
        return MC_FIELD_NUMBER;
    default:
        return MC_FIELD_TEXT;
    }
}

/* Whether a type is one of a list of ids with commas. */
static bool
is_listed(unsigned type, const char *list)
{
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
        if (strtoul(at, NULL, 10) == type)
            return true;
    return false;
}

/* What the columns of a table or query but for the geometry are. The row that says so is made without reading any. */
static mc_error *
ask_fields(apr_array_header_t **fields, postgis *layer, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgis_config config;
    mc_postgis_statement statement;
    mc_postgres_answer *answer = NULL;
    const mc_postgres_row *row = NULL;
    const mc_feature_query nowhere = { .box = { 0, 0, 0, 0 }, .resolution = 1, .scale = 1 };
    MC_TRY(complete(&config, layer, ctx, pool));
    MC_TRY(mc_postgis_build_fields(&statement, &config, pool));
    mc_postgres_query asked = { .connection = config.connection,
                                .sql = statement.sql,
                                .params = values_of(&statement, &nowhere, pool),
                                .param_count = 4 + statement.placeholder_count };
    mc_error *error = mc_postgres_start(&answer, ctx->process->postgres, &asked, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, answer);
    *fields = apr_array_make(pool, 16, sizeof(mc_field));
    for (int i = 0; error == MC_OK && row != NULL && i < row->columns - 1; i++)
        if (strcmp(row->fields[i].name, config.geometry) != 0 &&
            !is_listed(row->fields[i].type, row->fields[row->columns - 1].data))
            APR_ARRAY_PUSH(*fields, mc_field) =
                (mc_field){ apr_pstrdup(pool, row->fields[i].name), type_of(row->fields[i].type) };
    mc_postgres_end(answer);
    return error;
}
static apr_array_header_t *
copy_fields(const apr_array_header_t *fields, apr_pool_t *pool)
{
    apr_array_header_t *copy = apr_array_copy(pool, fields);
    for (int i = 0; i < copy->nelts; i++) {
        mc_field *field = &APR_ARRAY_IDX(copy, i, mc_field);
        field->name = apr_pstrdup(pool, field->name);
    }
    return copy;
}

/* Asked once a minute: tables gain and lose columns. */
static mc_error *
postgis_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    postgis *layer = (postgis *)data;
    apr_time_t now = apr_time_now();
    *fields = NULL;
    pthread_mutex_lock(&layer->lock);
    if (layer->fields != NULL && now >= layer->fields_time && now - layer->fields_time < FIELDS_HOLD)
        *fields = copy_fields(layer->fields, pool);
    pthread_mutex_unlock(&layer->lock);
    if (*fields != NULL)
        return MC_OK;
    MC_TRY(ask_fields(fields, layer, ctx, pool));
    pthread_mutex_lock(&layer->lock);
    if (layer->fields_pool != NULL)
        mc_job_pool_release(layer->fields_pool);
    layer->fields_pool = mc_job_pool_acquire();
    layer->fields = copy_fields(*fields, layer->fields_pool);
    layer->fields_time = now;
    pthread_mutex_unlock(&layer->lock);
    return MC_OK;
}

static const mc_feature_ops postgis_ops = { "postgis", postgis_read, postgis_fields };

static apr_status_t
close_postgis(void *data)
{
    postgis *layer = data;
    if (layer->fields_pool != NULL)
        mc_job_pool_release(layer->fields_pool);
    pthread_mutex_destroy(&layer->lock);
    return APR_SUCCESS;
}

mc_feature_data *
mc_postgis_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool)
{
    postgis *made = apr_pcalloc(pool, sizeof(*made));
    made->data = (mc_feature_data){ &postgis_ops, layer, config->id != NULL };
    made->config = *config;
    pthread_mutex_init(&made->lock, NULL);
    apr_pool_cleanup_register(pool, made, close_postgis, apr_pool_cleanup_null);
    return &made->data;
}
