/*
 * PostGIS as data of a layer: one prepared statement for a map, geometry in its own binary form (EWKB), attributes as
 * text so that no value changes its look, rows painted while they arrive.
 */
#include "feature/postgis.h"

#include <apr_strings.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "db/postgres.h"
#include "mapcache/trace.h"

typedef struct postgis {
    mc_feature_data data;
    mc_postgis_config config;
    pthread_mutex_t lock; /* of the three below */
    bool found;           /* what the configuration leaves open has been asked for */
    char geometry[64];
    int srid;
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

static mc_error *
postgis_read(mc_feature_data *data, const mc_feature_query *query, mc_feature_taker *take, void *baton,
             int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN(ctx, "mapcache_postgis_read");
    postgis *layer = (postgis *)data;
    mc_postgis_config config;
    mc_postgis_statement statement;
    bool xy_order;
    MC_TRY(complete(&config, layer, ctx, pool));
    int map_srid = mc_crs_epsg(query->srs, &xy_order);
    MC_TRY(mc_postgis_build(&statement, &config, query, map_srid == 0 ? config.srid : map_srid, pool));
    mc_postgres_query asked = { .connection = config.connection,
                                .sql = statement.sql,
                                .params = values_of(&statement, query, pool),
                                .param_count = 4 + statement.placeholder_count,
                                .binary = true,
                                .single_row = true };
    mc_postgres_answer *answer = NULL;
    reading r = { .layer = layer, .config = &config, .query = query, .ctx = ctx };
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

/* Columns of a table but for its geometry; of a query only the one with the feature's number is known. */
static mc_error *
postgis_attributes(apr_array_header_t **names, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    static const char sql[] =
        "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT "
        "attisdropped AND attname <> $2 ORDER BY attnum";
    postgis *layer = (postgis *)data;
    mc_postgis_config config;
    mc_postgres_answer *answer = NULL;
    const mc_postgres_row *row;
    *names = apr_array_make(pool, 16, sizeof(const char *));
    if (layer->config.table == NULL) {
        if (layer->config.id != NULL)
            APR_ARRAY_PUSH(*names, const char *) = layer->config.id;
        return MC_OK;
    }
    MC_TRY(complete(&config, layer, ctx, pool));
    const mc_postgres_param params[] = { { .value = mc_postgis_table(config.table, pool), .type = MC_POSTGRES_TEXT },
                                         { .value = config.geometry, .type = MC_POSTGRES_TEXT } };
    mc_error *error = first_row(&row, &answer, layer, sql, params, 2, ctx, pool);
    while (error == MC_OK && row != NULL) {
        if (row->columns > 0)
            APR_ARRAY_PUSH(*names, const char *) = apr_pstrdup(pool, row->fields[0].data);
        error = mc_postgres_next(&row, answer);
    }
    mc_postgres_end(answer);
    return error;
}

static const mc_feature_ops postgis_ops = { "postgis", postgis_read, postgis_attributes };

mc_feature_data *
mc_postgis_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool)
{
    postgis *made = apr_pcalloc(pool, sizeof(*made));
    made->data = (mc_feature_data){ &postgis_ops, layer };
    made->config = *config;
    pthread_mutex_init(&made->lock, NULL);
    return &made->data;
}
