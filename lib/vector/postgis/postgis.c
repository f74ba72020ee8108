/*
 * PostGIS as data of a layer: one prepared statement for a map, geometry in its own binary form (EWKB), attributes as
 * text so that no value changes its look, rows painted while they arrive.
 */
#include "vector/postgis/postgis_layer.h"

#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/workers.h"
#include "mapcache/trace.h"
#include "text/text.h"
#include "vector/crs/projection.h"
#include "vector/feature/reading.h"
#include "vector/geometry/warp.h"

/* Rows of an answer from which on COPY is less work; below, planning the statement anew costs more than it spares. */
#define COPY_ROWS 1000
/* Rows that are sorted at no cost to speak of. */
#define SORTED_ROWS 100
/* Bytes of a geometry after which what was needed for it is given back at once. */
#define LARGE_SHAPE (1 << 16)
/* Class of SQLSTATE: a value that does not fit (PostgreSQL manual, appendix A). */
#define STATE_DATA "22"

typedef struct postgis_reading {
    mc_feature_reading base;
    mc_postgis_layer *layer;
    const mc_postgis_column *column;
    const mc_postgis_request *request;
    int first;                 /* column of the first attribute */
    mc_postgres_field *fields; /* of a feature among many in one value; NULL: each has a row of its own */
    const char **values;       /* of the attributes */
    mc_whole_text *texts;      /* what whole numbers among them are written to */
    int64_t rows;
    int64_t beside; /* of the rows: what is not in the box */
    int64_t worth;  /* bytes that the rows had as plain ones */
} postgis_reading;

/* Plain and packed geometry tell themselves apart by the first byte: packed begins with a type, plain of the order that
 * is asked for where packing is not possible with a zero. */
static mc_error *
read_geometry_field(postgis_reading *r, const mc_postgres_field *field, apr_pool_t *scratch)
{
    const mc_pixel_grid *pixel_grid = &r->request->query->pixel_grid;
    size_t size = (size_t)field->size;
    if (r->request->transfer == MC_TRANSFER_TWKB && size > 0 && field->data[0] != 0)
        return mc_twkb_read(&r->base.geometry, field->data, size, pixel_grid, scratch);
    if (r->request->transfer != MC_TRANSFER_HEX)
        return mc_wkb_read(&r->base.geometry, field->data, size, pixel_grid, scratch);
    uint8_t *bytes = apr_palloc(scratch, size / 2 + 1);
    return mc_wkb_read(&r->base.geometry, bytes, mc_postgis_unhex(bytes, field->data, field->size), pixel_grid,
                       scratch);
}

/* A row of another CRS than the layer's is not where it says. */
static mc_error *
check_srid(const postgis_reading *r, apr_pool_t *scratch)
{
    int own = r->base.geometry.srid, map = r->request->map_srid != 0 ? r->request->map_srid : r->column->srid;
    bool transformed = map != r->column->srid;
    if (own == 0 || r->column->srid == 0 || own == r->column->srid || (transformed && own == map))
        return MC_OK;
    return mc_error_create(scratch, MC_ERR_CORRUPT, "its SRID is %d and that of its layer %d", own, r->column->srid);
}

static const char *
value_of(postgis_reading *r, int index, const mc_postgres_field *field)
{
    const bool *integers = r->request->integers;
    if (field->size < 0)
        return NULL;
    return integers != NULL && integers[index] ? mc_write_whole(&r->texts[index], mc_postgis_whole(field))
                                               : field->data;
}

/* Bytes of a packed geometry that it would have plain: two numbers of eight bytes a vertex and a few for its head. */
static int64_t
spared_bytes(const postgis_reading *r, const mc_postgres_field *field)
{
    int64_t plain = 20 + 16 * r->base.geometry.vertex_count;
    return r->request->transfer == MC_TRANSFER_TWKB && plain > field->size ? plain - field->size : 0;
}

/* The box of the map finds no nulls: the statement has made one of it. */
static mc_error *
geometry_size_error(const postgis_reading *r, apr_pool_t *scratch)
{
    return mc_error_create(scratch, MC_ERR_LIMIT, "its geometry has more than %d MB%s", MC_POSTGIS_GEOMETRY_MAX >> 20,
                           r->column->unsettled ? ", or another SRID than its layer" : "");
}

static mc_error *
visit_row(postgis_reading *r, const mc_postgres_field *fields, apr_pool_t *scratch)
{
    bool none = fields[0].size < 0;
    if (none && !r->column->large)
        return MC_OK;
    mc_error *error = none ? geometry_size_error(r, scratch) : read_geometry_field(r, &fields[0], scratch);
    if (error == MC_OK)
        error = check_srid(r, scratch);
    if (error == MC_OK)
        r->worth += spared_bytes(r, &fields[0]);
    if (!mc_reading_draws(&r->base, error, scratch))
        return MC_OK;
    for (int i = 0; i < r->request->query->attribute_count; i++)
        r->values[i] = value_of(r, i, &fields[r->first + i]);
    return mc_reading_visit(&r->base, r->first == 2 ? mc_postgis_whole(&fields[1]) : 0, r->values);
}

static int
count_answer_columns(const postgis_reading *r)
{
    return r->first + r->request->query->attribute_count;
}

/* Many features in one value. */
static mc_error *
hand_over_all(postgis_reading *r, const mc_postgres_field *value, apr_pool_t *scratch)
{
    const char *at = value->data, *end = at + value->size;
    for (bool meets; at < end; r->rows++) {
        if (!mc_postgis_next_of(r->fields, &meets, &at, end, r->first == 2, r->request))
            return mc_error_create(scratch, MC_ERR_UPSTREAM,
                                   "layer \"%s\": the database sent something that is no feature", r->layer->data.name);
        r->beside += !meets;
        if (meets)
            MC_TRY(visit_row(r, r->fields, scratch));
        if (r->rows % 64 == 0 || r->fields[0].size > LARGE_SHAPE)
            apr_pool_clear(scratch);
    }
    return MC_OK;
}

static mc_error *
read_answer_rows(postgis_reading *r, mc_postgres_result *result, apr_pool_t *pool)
{
    const mc_postgres_row *row;
    apr_pool_t *scratch;
    mc_error *error = MC_OK;
    apr_pool_create(&scratch, pool);
    for (; error == MC_OK; r->rows += r->fields == NULL) {
        error = mc_postgres_next(&row, result);
        if (error != MC_OK || row == NULL)
            break;
        if (row->columns != (r->fields != NULL ? 1 : count_answer_columns(r)))
            error = mc_error_create(pool, MC_ERR_UPSTREAM, "layer \"%s\": the database answered with %d columns",
                                    r->layer->data.name, row->columns);
        else if (r->fields != NULL)
            error = mc_error_copy(hand_over_all(r, &row->fields[0], scratch), pool);
        else
            error = mc_error_copy(visit_row(r, row->fields, scratch), pool);
        if (r->rows % 64 == 0 || row->fields[0].size > LARGE_SHAPE)
            apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return error;
}

/* The query in the layer's CRS, to be transformed here; a CRS that only the database knows (its spatial_ref_sys may
 * have rows of its own) is transformed there. The SRID of the query's box. */
static int
in_own_srid(mc_feature_query *own, int srid, const mc_feature_query *query, const char *layer, apr_pool_t *pool)
{
    int map_srid = mc_crs_epsg(query->srs, NULL);
    *own = *query;
    if (srid == 0 || map_srid == srid)
        return srid;
    mc_error *error = mc_feature_query_project(own, query, apr_psprintf(pool, "EPSG:%d", srid), layer, pool);
    if (error == MC_OK || map_srid == 0)
        return srid;
    mc_error_ignore(error);
    *own = *query;
    return map_srid;
}

/* What the map needs of the database, and how. */
static mc_error *
prepare_postgis_read(mc_postgis_statement *statement, mc_postgis_request *request, mc_postgis_layer *layer,
                     const mc_postgis_column *column, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_feature_query *query = request->query;
    request->transfer = (mc_transfer)layer->config.transfer;
    if (request->transfer == MC_TRANSFER_AUTO) {
        mc_transfer_policy *policy = mc_postgres_transfer_policy(ctx->process->postgres, layer->config.connection);
        bool pack = mc_transfer_policy_choose(policy, mc_clock_now()) == MC_PACKED;
        request->transfer = pack ? MC_TRANSFER_TWKB : MC_TRANSFER_BINARY;
    }
    double pixel = mc_pixel_grid_pixel_size(&query->pixel_grid, &query->box);
    request->digits = mc_twkb_digits(query->fineness > 0 ? pixel * query->fineness : pixel);
    if (request->transfer == MC_TRANSFER_TWKB && request->digits > MC_TWKB_DIGITS)
        request->transfer = MC_TRANSFER_BINARY;
    double rows = mc_postgis_expected_rows(&request->guessed, layer, column, query, request->map_srid);
    request->rows = rows;
    request->sorted = rows < (request->guessed ? COPY_ROWS : SORTED_ROWS);
    request->copy = rows >= COPY_ROWS;
    if (request->copy && query->attribute_count > 0)
        request->integers = mc_postgis_find_integers(layer, query, ctx, pool);
    MC_TRY(mc_postgis_build(statement, &layer->config, column, request, pool));
    if (!request->copy || statement->param_count == 0)
        return MC_OK;
    request->copy = false;
    return mc_postgis_build(statement, &layer->config, column, request, pool);
}

/* What has been learnt from an answer that has been read. */
static void
learn_from_answer(const postgis_reading *r, mc_postgis_layer *layer, const mc_postgres_result *result)
{
    static const char *const ways[] = {
        [MC_TRANSFER_BINARY] = "binary", [MC_TRANSFER_HEX] = "hex", [MC_TRANSFER_TWKB] = "twkb"
    };
    mc_postgres_traffic traffic = mc_postgres_traffic_of(result);
    mc_transfer_policy *policy = mc_postgres_transfer_policy(r->base.ctx->process->postgres, layer->config.connection);
    int64_t later = traffic.bytes - traffic.first;
    double gain = traffic.bytes == 0 ? 1 : (double)(traffic.bytes + r->worth) / (double)traffic.bytes;
    if (r->request->transfer != MC_TRANSFER_HEX && later > 0)
        mc_transfer_policy_add(policy, r->request->transfer == MC_TRANSFER_TWKB ? MC_PACKED : MC_PLAIN, later,
                               (int64_t)((double)later * gain), traffic.waited, mc_clock_now());
    if (r->base.world == 0)
        mc_postgis_remember_rows(layer, r->request->query, r->rows - r->beside);
    if (r->base.ctx->trace != NULL)
        mc_trace_say(r->base.ctx->trace, "database:",
                     apr_psprintf(r->base.ctx->pool,
                                  "%" APR_INT64_T_FMT " bytes, %" APR_INT64_T_FMT " rows, %s%s of layer %s",
                                  traffic.bytes, r->rows, ways[r->request->transfer],
                                  r->request->copy ? ", copied," : "", layer->data.name));
}

/* The database's error in the words of the layer. */
static mc_error *
postgis_read_error(mc_error *error, const mc_postgis_layer *layer, const mc_postgis_statement *statement,
                   const char *state, apr_pool_t *pool)
{
    bool value = statement->dimensions && strncmp(state, STATE_DATA, strlen(STATE_DATA)) == 0;
    if (value)
        return mc_error_wrap(pool, error, MC_ERR_INVALID_DIMENSION,
                             "layer \"%s\" cannot have the requested value of a dimension", layer->data.name);
    return mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be read from its database", layer->data.name);
}

static mc_error *
read_with(postgis_reading *r, mc_postgis_layer *layer, const mc_postgis_statement *statement, apr_pool_t *pool)
{
    const mc_postgres_query asked = { .connection = layer->config.connection,
                                      .sql = statement->sql,
                                      .params = statement->params,
                                      .param_count = statement->param_count,
                                      .binary = true,
                                      .copy = r->request->copy,
                                      .by_key = statement->by_key };
    mc_postgres_result *result = NULL;
    mc_error *error = mc_postgres_start(&result, r->base.ctx->process->postgres, &asked, r->base.ctx, pool);
    if (error == MC_OK)
        error = read_answer_rows(r, result, pool);
    const char *state = mc_postgres_sqlstate(result);
    if (error == MC_OK)
        learn_from_answer(r, layer, result);
    else
        error = postgis_read_error(error, layer, statement, state, pool);
    mc_postgres_end(result);
    return error;
}

/* What one of the worlds shows of r->layer. */
static mc_error *
read_from_layer(postgis_reading *r, apr_pool_t *pool)
{
    mc_postgis_layer *layer = r->layer;
    mc_postgis_statement *statement = apr_palloc(pool, sizeof(*statement));
    mc_feature_query own;
    mc_postgis_request request = { .query = &own };
    request.map_srid = in_own_srid(&own, r->column->srid, r->base.map, layer->data.name, pool);
    MC_TRY(prepare_postgis_read(statement, &request, layer, r->column, r->base.ctx, pool));
    r->request = &request;
    r->rows = r->worth = r->beside = 0;
    r->fields = statement->gathered ? apr_palloc(pool, sizeof(*r->fields) * (size_t)count_answer_columns(r)) : NULL;
    mc_error *error = read_with(r, layer, statement, pool);
    if (error != MC_OK && error->kind == MC_ERR_UPSTREAM)
        mc_postgis_forget(layer);
    r->request = NULL; /* it ends here */
    return error;
}

/* What one of the worlds shows: of an overview, where there is one for the map; it may be gone by now. */
static mc_error *
read_postgis_world(mc_feature_reading *base, apr_pool_t *pool)
{
    postgis_reading *r = (postgis_reading *)base;
    int64_t visited = 0;
    mc_level_use use = mc_levels_take(r->layer->levels, r->column, base->map, base->ctx, pool);
    if (use.name == NULL)
        return read_from_layer(r, pool);
    mc_error *error = mc_levels_read(&visited, base, &use, r->first == 2, r->layer->config.connection, NULL, pool);
    mc_levels_give(&use);
    if (error == MC_OK || visited > 0 || (error->kind != MC_ERR_UPSTREAM && error->kind != MC_ERR_CORRUPT))
        return error;
    mc_error_ignore(error);
    mc_levels_forget(r->layer->levels);
    return read_from_layer(r, pool);
}

static mc_error *
read_postgis(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
             int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mapcache_postgis_read", data->name);
    mc_postgis_layer *layer = (mc_postgis_layer *)data;
    mc_postgis_column column;
    mc_error *error = mc_postgis_column_of(&column, layer, ctx, pool);
    if (error != MC_OK)
        return mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be read from its database", data->name);
    postgis_reading r = { .base = { .layer = data->name, .visit = visit, .baton = baton, .ctx = ctx },
                          .layer = layer,
                          .column = &column };
    r.first = query->ids && layer->config.id != NULL ? 2 : 1;
    r.values = apr_pcalloc(pool, sizeof(*r.values) * (size_t)(query->attribute_count + 1));
    r.texts = apr_palloc(pool, sizeof(*r.texts) * (size_t)(query->attribute_count + 1));
    const char *srs = column.srid == 0 ? NULL : apr_psprintf(pool, "EPSG:%d", column.srid);
    error = mc_reading_worlds(&r.base, query, srs, column.bounded ? &column.bounds : NULL, read_postgis_world, pool);
    *skipped = r.base.skipped;
    return error;
}

static mc_error *
postgis_place(mc_place *place, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgis_place found;
    MC_TRY(mc_postgis_find_place(&found, &((mc_postgis_layer *)data)->config, ctx, pool));
    place->known = found.known && found.srid > 0;
    place->box = found.box;
    place->srs = apr_psprintf(pool, "EPSG:%d", found.srid);
    return MC_OK;
}

static void
postgis_table(mc_feature_table *table, const mc_feature_data *data)
{
    const mc_postgis_config *config = &((const mc_postgis_layer *)data)->config;
    *table = (mc_feature_table){ config->connection, config->table, config->srid };
}

static const mc_feature_ops postgis_ops = {
    .type = "postgis", .read = read_postgis, .fields = mc_postgis_fields, .place = postgis_place, .table = postgis_table
};

const mc_postgis_config *
mc_postgis_config_of(const mc_feature_data *data)
{
    return data->ops == &postgis_ops ? &((const mc_postgis_layer *)data)->config : NULL;
}

const char *
mc_postgis_inspect(mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgis_layer *layer = (mc_postgis_layer *)data;
    mc_postgis_column column;
    apr_array_header_t *fields;
    bool indexed = true;
    mc_error *error = mc_postgis_column_of(&column, layer, ctx, pool);
    if (error == MC_OK)
        error = mc_postgis_ask_fields(&fields, &layer->config, &column, ctx, pool);
    if (error == MC_OK)
        error = mc_postgis_is_indexed(&indexed, &layer->config, &column, ctx, pool);
    if (error != MC_OK)
        return mc_error_chain(error, pool);
    if (column.srid == 0)
        return "its geometry has no SRID, and is taken for the map's CRS: <srid> tells it";
    if (!indexed)
        return apr_psprintf(pool, "there is no spatial index: CREATE INDEX ON %s USING gist (%s)",
                            mc_sql_table(layer->config.table, pool), mc_sql_name(column.name, pool));
    return NULL;
}

static apr_status_t
close_postgis(void *data)
{
    mc_postgis_layer *layer = data;
    if (layer->fields_pool != NULL)
        mc_task_pool_release(layer->fields_pool);
    pthread_mutex_destroy(&layer->lock);
    return APR_SUCCESS;
}

mc_feature_data *
mc_postgis_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool)
{
    mc_postgis_layer *made = apr_pcalloc(pool, sizeof(*made));
    made->data = (mc_feature_data){ &postgis_ops, layer, config->id != NULL, config->id };
    made->config = *config;
    made->levels = mc_levels_create(&made->config, layer, pool);
    pthread_mutex_init(&made->lock, NULL);
    apr_pool_cleanup_register(pool, made, close_postgis, apr_pool_cleanup_null);
    return &made->data;
}
