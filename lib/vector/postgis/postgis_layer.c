/* A layer of PostGIS: what is known of its table between maps. */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/workers.h"
#include "text/text.h"
#include "vector/postgis/postgis_layer.h"

#define FIELDS_HOLD apr_time_from_sec(60)
/* A column may get another SRID without any error: its rows are then nowhere. */
#define COLUMN_HOLD apr_time_from_sec(10)
/* Of how many times the last map's area a map is still of the same density. */
#define SIMILAR 4

mc_error *
mc_postgis_column_of(mc_postgis_column *column, mc_postgis_layer *layer, mc_ctx *ctx, apr_pool_t *pool)
{
    pthread_mutex_lock(&layer->lock);
    apr_time_t now = mc_clock_now();
    bool found = layer->found != 0 && now - layer->found < COLUMN_HOLD;
    *column = layer->column;
    column->name = apr_pstrdup(pool, layer->name);
    pthread_mutex_unlock(&layer->lock);
    if (found) /* asked without the lock: whoever comes second asks the same */
        return MC_OK;
    MC_TRY(mc_postgis_find_column(column, &layer->config, ctx, pool));
    if (strlen(column->name) >= sizeof(layer->name))
        return MC_OK; /* the server's limit is shorter; of another server it is asked each time */
    pthread_mutex_lock(&layer->lock);
    layer->column = *column;
    layer->column.name = apr_cpystrn(layer->name, column->name, sizeof(layer->name)) - strlen(column->name);
    layer->found = now;
    pthread_mutex_unlock(&layer->lock);
    return MC_OK;
}

/* Which column is asked for. */
typedef struct declared_question {
    const mc_postgis_config *config;
    const char *column;
} declared_question;

static mc_error *
ask_declared(int *declared, void *baton, mc_ctx *ctx, apr_pool_t *pool)
{
    const declared_question *question = baton;
    return mc_postgis_ask_declared(declared, question->config, question->column, ctx, pool);
}

static mc_error *
is_other_declared(bool *other, mc_postgis_layer *layer, const mc_postgis_column *column, mc_ctx *ctx, apr_pool_t *pool)
{
    declared_question question = { &layer->config, column->name };
    int declared;
    *other = false;
    if (layer->config.table == NULL)
        return MC_OK;
    MC_TRY(mc_shared_answer_get(&declared, &layer->declared, mc_hash64(column->name, strlen(column->name), 0),
                                ask_declared, &question, ctx, pool));
    *other = declared != column->declared;
    return MC_OK;
}

/*
 * The catalogue is asked after each such map, which costs it a tenth of a millisecond: an answer to a question that was
 * sent before the map had been read says nothing of that map. Maps that end at the same time share a question. A row is
 * asked for once in COLUMN_HOLD: where the column declares no SRID, a map after UPDATEs of all rows may miss them for
 * so long.
 */
mc_error *
mc_postgis_srid_of_nothing(bool *changed, mc_postgis_layer *layer, const mc_postgis_column *column, mc_ctx *ctx,
                           apr_pool_t *pool)
{
    pthread_mutex_lock(&layer->lock);
    apr_time_t now = mc_clock_now(), before = layer->row_asked;
    bool forgotten = layer->found == 0, other = !forgotten && layer->column.srid != column->srid;
    bool ask_row = column->unsettled && !other && (forgotten || before == 0 || now - before >= COLUMN_HOLD);
    if (ask_row)
        layer->row_asked = now;
    pthread_mutex_unlock(&layer->lock);
    *changed = other; /* as another map has found out */
    if (other)
        return MC_OK;
    mc_error *error = is_other_declared(changed, layer, column, ctx, pool);
    if (error == MC_OK && !*changed && ask_row)
        error = mc_postgis_row_changed(changed, &layer->config, column, ctx, pool);
    if (error != MC_OK && ask_row) { /* the next map asks again */
        pthread_mutex_lock(&layer->lock);
        layer->row_asked = before;
        pthread_mutex_unlock(&layer->lock);
    }
    return error;
}

void
mc_postgis_forget(mc_postgis_layer *layer)
{
    pthread_mutex_lock(&layer->lock);
    layer->found = 0;
    layer->fields_time = 0;
    pthread_mutex_unlock(&layer->lock);
}

static double
query_box_area(const mc_feature_query *query)
{
    return (query->box.maxx - query->box.minx) * (query->box.maxy - query->box.miny);
}

/* As if the rows were spread evenly over the table's bounds. */
static double
guess_rows(const mc_postgis_column *column, const mc_feature_query *query, int map_srid)
{
    bool same = map_srid == 0 || column->srid == 0 || map_srid == column->srid;
    return same && column->bounded ? column->rows * mc_postgis_visible_part(column, &query->box) : 0;
}

double
mc_postgis_expected_rows(bool *guessed, mc_postgis_layer *layer, const mc_postgis_column *column,
                         const mc_feature_query *query, int map_srid)
{
    double area = query_box_area(query), guess = guess_rows(column, query, map_srid);
    pthread_mutex_lock(&layer->lock);
    bool known = strcmp(layer->density_srs, query->srs) == 0;
    double rows = known ? layer->density * area : 0;
    *guessed = guess > 0 && (!known || area > SIMILAR * layer->density_area);
    pthread_mutex_unlock(&layer->lock);
    return *guessed ? guess : rows;
}

void
mc_postgis_remember_rows(mc_postgis_layer *layer, const mc_feature_query *query, int64_t rows)
{
    pthread_mutex_lock(&layer->lock);
    layer->density_area = fmax(query_box_area(query), 1e-300);
    layer->density = (double)rows / layer->density_area;
    apr_cpystrn(layer->density_srs, query->srs, sizeof(layer->density_srs));
    pthread_mutex_unlock(&layer->lock);
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

mc_error *
mc_postgis_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgis_layer *layer = (mc_postgis_layer *)data;
    mc_postgis_column column;
    apr_time_t now = mc_clock_now();
    *fields = NULL;
    pthread_mutex_lock(&layer->lock);
    if (layer->fields != NULL && now - layer->fields_time < FIELDS_HOLD)
        *fields = copy_fields(layer->fields, pool);
    pthread_mutex_unlock(&layer->lock);
    if (*fields != NULL)
        return MC_OK;
    MC_TRY(mc_postgis_column_of(&column, layer, ctx, pool));
    MC_TRY(mc_postgis_ask_fields(fields, &layer->config, &column, ctx, pool));
    pthread_mutex_lock(&layer->lock);
    if (layer->fields_pool != NULL)
        mc_task_pool_release(layer->fields_pool);
    layer->fields_pool = mc_task_pool_acquire();
    layer->fields = copy_fields(*fields, layer->fields_pool);
    layer->fields_time = now;
    pthread_mutex_unlock(&layer->lock);
    return MC_OK;
}

const bool *
mc_postgis_find_integers(mc_postgis_layer *layer, const mc_feature_query *query, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *fields;
    mc_error *error = mc_postgis_fields(&fields, &layer->data, ctx, pool);
    if (error != MC_OK) {
        mc_error_ignore(error);
        return NULL;
    }
    bool *found = apr_pcalloc(pool, sizeof(*found) * (size_t)query->attribute_count);
    for (int i = 0; i < query->attribute_count; i++)
        for (int j = 0; j < fields->nelts && !found[i]; j++)
            found[i] = APR_ARRAY_IDX(fields, j, mc_field).type == MC_FIELD_INTEGER &&
                       strcmp(APR_ARRAY_IDX(fields, j, mc_field).name, query->attributes[i]) == 0;
    return found;
}
