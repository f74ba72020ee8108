/*
 * PostGIS as data of a layer: one prepared statement for a map, geometry in its own binary form (EWKB), attributes as
 * text so that no value changes its look, rows painted while they arrive.
 */
#include "vector/postgis/postgis_reading.h"

#include <apr_strings.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/workers.h"
#include "mapcache/trace.h"
#include "vector/geometry/warp.h"

/* Rows of an answer from which on COPY is less work; below, planning the statement anew costs more than sorting. */
#define COPY_ROWS 300
/* Readings of a map whose layer gets another SRID each time. */
enum { ATTEMPTS = 3 };
/* Class of SQLSTATE: a value that does not fit (PostgreSQL manual, appendix A). */
#define STATE_DATA "22"

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
    request->copy = rows >= COPY_ROWS || column->parted;
    if (request->copy && query->attribute_count > 0)
        request->integers = mc_postgis_find_integers(layer, query, ctx, pool);
    MC_TRY(mc_postgis_build(statement, &layer->config, column, request, pool));
    if (!request->copy || statement->param_count == 0)
        return MC_OK;
    request->copy = false;
    return mc_postgis_build(statement, &layer->config, column, request, pool);
}

/* What has been learnt from the rows of a map. `how`: they have been read, beside the usual. */
static void
learn_from_rows(const mc_postgis_reading *r, mc_postgis_layer *layer, int64_t bytes, const char *how)
{
    static const char *const ways[] = {
        [MC_TRANSFER_BINARY] = "binary", [MC_TRANSFER_HEX] = "hex", [MC_TRANSFER_TWKB] = "twkb"
    };
    if (r->base.world == 0)
        mc_postgis_remember_rows(layer, r->request->query, r->rows - r->beside);
    if (r->base.ctx->trace != NULL)
        mc_trace_say(r->base.ctx->trace, "database:",
                     apr_psprintf(r->base.ctx->pool,
                                  "%" APR_INT64_T_FMT " bytes, %" APR_INT64_T_FMT " rows, %s%s%s of layer %s", bytes,
                                  r->rows, ways[r->request->transfer], r->request->copy ? ", copied," : "", how,
                                  layer->data.name));
}

/* What has been learnt from an answer that has been read. */
static void
learn_from_answer(const mc_postgis_reading *r, mc_postgis_layer *layer, const mc_postgres_result *result)
{
    mc_postgres_traffic traffic = mc_postgres_traffic_of(result);
    mc_transfer_policy *policy = mc_postgres_transfer_policy(r->base.ctx->process->postgres, layer->config.connection);
    int64_t later = traffic.bytes - traffic.first;
    double gain = traffic.bytes == 0 ? 1 : (double)(traffic.bytes + r->worth) / (double)traffic.bytes;
    if (r->request->transfer != MC_TRANSFER_HEX && later > 0)
        mc_transfer_policy_add(policy, r->request->transfer == MC_TRANSFER_TWKB ? MC_PACKED : MC_PLAIN, later,
                               (int64_t)((double)later * gain), traffic.waited, mc_clock_now());
    learn_from_rows(r, layer, traffic.bytes, "");
}

static mc_error *
unreadable_layer_error(mc_error *error, const mc_postgis_layer *layer, apr_pool_t *pool)
{
    return mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be read from its database", layer->data.name);
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
    return unreadable_layer_error(error, layer, pool);
}

static mc_error *
read_with(mc_postgis_reading *r, mc_postgis_layer *layer, const mc_postgis_statement *statement, apr_pool_t *pool)
{
    const mc_postgres_query asked = { .connection = layer->config.connection,
                                      .sql = statement->sql,
                                      .params = statement->params,
                                      .param_count = statement->param_count,
                                      .binary = true,
                                      .copy = r->request->copy,
                                      .stored_order = statement->stored_order,
                                      .by_key = statement->by_key };
    mc_postgres_result *result = NULL;
    mc_error *error = mc_postgres_start(&result, r->base.ctx->process->postgres, &asked, r->base.ctx, pool);
    if (error == MC_OK)
        error = mc_postgis_read_rows(r, result, INT64_MAX, pool);
    const char *state = mc_postgres_sqlstate(result);
    if (error == MC_OK)
        learn_from_answer(r, layer, result);
    else
        error = postgis_read_error(error, layer, statement, state, pool);
    mc_postgres_end(result);
    return error;
}

/* Large tables over several connections, where there are idle ones. */
static mc_error *
read_over_connections(mc_postgis_reading *r, mc_postgis_layer *layer, const mc_postgis_statement *statement,
                      apr_pool_t *pool)
{
    bool done;
    int64_t bytes = 0;
    mc_error *error = mc_postgis_read_spread(&done, &bytes, r, statement, pool);
    if (error != MC_OK)
        return postgis_read_error(error, layer, statement, "", pool);
    if (!done)
        return read_with(r, layer, statement, pool);
    learn_from_rows(r, layer, bytes, " over several connections,");
    return MC_OK;
}

/* What one of the worlds shows of r->layer. */
static mc_error *
read_from_layer(mc_postgis_reading *r, apr_pool_t *pool)
{
    mc_postgis_layer *layer = r->layer;
    mc_postgis_statement *statement = apr_palloc(pool, sizeof(*statement));
    mc_feature_query own;
    mc_postgis_request request = { .query = &own };
    request.map_srid = mc_postgis_own_query(&own, r->column->srid, r->base.map, layer->data.name, pool);
    MC_TRY(prepare_postgis_read(statement, &request, layer, r->column, r->base.ctx, pool));
    r->request = &request;
    r->rows = r->worth = r->beside = 0;
    mc_postgis_reserve_row(r, statement->gathered, pool);
    mc_error *error = read_over_connections(r, layer, statement, pool);
    if (error != MC_OK && error->kind == MC_ERR_UPSTREAM)
        mc_postgis_forget(layer);
    r->request = NULL; /* they end here */
    r->base.wholes = NULL;
    return error;
}

/* What one of the worlds shows: of an overview, where there is one for the map; it may be gone by now. */
static mc_error *
read_postgis_world(mc_feature_reading *base, apr_pool_t *pool)
{
    mc_postgis_reading *r = (mc_postgis_reading *)base;
    int64_t visited = 0;
    mc_level_use use = mc_levels_take(r->layer->levels, r->column, base->map, base->ctx, pool);
    if (use.name == NULL)
        return read_from_layer(r, pool);
    mc_error *error = mc_levels_read(&visited, base, &use, r->first == 2, r->layer->config.connection, NULL, pool);
    mc_levels_give(&use);
    r->visited += visited;
    if (error == MC_OK || visited > 0 || (error->kind != MC_ERR_UPSTREAM && error->kind != MC_ERR_CORRUPT))
        return error;
    mc_error_ignore(error);
    mc_levels_forget(r->layer->levels);
    return read_from_layer(r, pool);
}

/* All worlds of a map. *changed: the map shows nothing, and the column's SRID is another one than was thought. */
static mc_error *
read_postgis_map(bool *changed, int64_t *skipped, mc_postgis_reading *r, const mc_feature_query *query, mc_ctx *ctx,
                 apr_pool_t *pool)
{
    mc_postgis_layer *layer = r->layer;
    mc_postgis_column column;
    mc_error *error = mc_postgis_column_of(&column, layer, ctx, pool);
    if (error != MC_OK)
        return unreadable_layer_error(error, layer, pool);
    r->column = &column;
    const char *srs = column.srid == 0 ? NULL : apr_psprintf(pool, "EPSG:%d", column.srid);
    error = mc_reading_worlds(&r->base, query, srs, column.bounded ? &column.bounds : NULL, read_postgis_world, pool);
    *skipped = r->base.skipped;
    r->column = NULL; /* it ends here */
    if (error != MC_OK || r->visited > 0)
        return error;
    /* Without an answer nobody knows whether nothing is right: such a map fails, also where the database has gone only
     * now or no time is left, for a tile of nothing would be stored. */
    error = mc_postgis_srid_of_nothing(changed, layer, &column, ctx, pool);
    return error == MC_OK ? MC_OK : unreadable_layer_error(error, layer, pool);
}

/* A column that gets another SRID gives no error: its rows are elsewhere. What a map shows has the SRID that was
 * thought of, for rows of another one are left out; a map that shows nothing is right where the SRID has not changed.
 */
static mc_error *
read_postgis(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
             int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mapcache_postgis_read", data->name);
    mc_postgis_layer *layer = (mc_postgis_layer *)data;
    mc_error *error = MC_OK;
    bool changed = true;
    for (int attempt = 0; attempt < ATTEMPTS && changed && error == MC_OK; attempt++) {
        mc_postgis_reading r = { .base = { .layer = data->name, .visit = visit, .baton = baton, .ctx = ctx },
                                 .layer = layer,
                                 .first = query->ids && layer->config.id != NULL ? 2 : 1 };
        changed = false;
        error = read_postgis_map(&changed, skipped, &r, query, ctx, pool);
        if (changed)
            mc_postgis_forget(layer);
    }
    if (error == MC_OK && changed)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "layer \"%s\": its SRID changes again and again", data->name);
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
    mc_shared_answer_destroy(&layer->declared);
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
    mc_shared_answer_init(&made->declared, MC_SHARED_WAIT);
    apr_pool_cleanup_register(pool, made, close_postgis, apr_pool_cleanup_null);
    return &made->data;
}
