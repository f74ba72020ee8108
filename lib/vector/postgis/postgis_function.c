/* Vector tiles that a function of the database makes: see postgis.h. */
#include <apr_strings.h>
#include <pthread.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/workers.h"
#include "mapcache/trace.h"
#include "vector/postgis/postgis.h"

/* As of a table's columns: functions are replaced by others. */
#define SIGNATURE_HOLD apr_time_from_sec(60)
/* Of SQLSTATE (PostgreSQL manual, appendix A): the class of values that do not fit; there is no such function. */
#define STATE_DATA "22"
#define STATE_NO_FUNCTION "42883"

enum { ANSWER_PLACE, ANSWER_SIZE, ANSWER_TILE, ANSWER_COLUMNS };

typedef struct postgis_function {
    mc_feature_data data;
    mc_postgis_config config;
    pthread_mutex_t lock;          /* of all below */
    apr_pool_t *pool;              /* a root pool of what has been asked; NULL: nothing has been asked */
    apr_array_header_t *arguments; /* mc_function_argument */
    const char *comment;
    apr_time_t asked;
} postgis_function;

static apr_array_header_t *
copy_arguments(const apr_array_header_t *arguments, apr_pool_t *pool)
{
    apr_array_header_t *copy = apr_array_copy(pool, arguments);
    for (int i = 0; i < copy->nelts; i++) {
        mc_function_argument *argument = &APR_ARRAY_IDX(copy, i, mc_function_argument);
        argument->name = apr_pstrdup(pool, argument->name);
        argument->type = apr_pstrdup(pool, argument->type);
    }
    return copy;
}

static mc_error *
find_signature(apr_array_header_t **arguments, const char **comment, postgis_function *function, mc_ctx *ctx,
               apr_pool_t *pool)
{
    apr_time_t now = mc_clock_now();
    *arguments = NULL;
    pthread_mutex_lock(&function->lock);
    if (function->pool != NULL && now - function->asked < SIGNATURE_HOLD) {
        *arguments = copy_arguments(function->arguments, pool);
        *comment = apr_pstrdup(pool, function->comment);
    }
    pthread_mutex_unlock(&function->lock);
    if (*arguments != NULL) /* asked without the lock: whoever comes second asks the same */
        return MC_OK;
    MC_TRY(mc_postgis_ask_signature(arguments, comment, &function->config, ctx, pool));
    pthread_mutex_lock(&function->lock);
    if (function->pool != NULL)
        mc_task_pool_release(function->pool);
    function->pool = mc_task_pool_acquire();
    function->arguments = copy_arguments(*arguments, function->pool);
    function->comment = apr_pstrdup(function->pool, *comment);
    function->asked = now;
    pthread_mutex_unlock(&function->lock);
    return MC_OK;
}

static void
forget_signature(postgis_function *function)
{
    pthread_mutex_lock(&function->lock);
    function->asked = 0;
    pthread_mutex_unlock(&function->lock);
}

/* The reading of a block. */
typedef struct function_reading {
    postgis_function *function;
    const mc_tile_block *block;
    mc_encoded_visitor *visit;
    void *baton;
    int64_t rows; /* that have been visited */
    bool changed; /* there is no such function any more */
} function_reading;

/* Hands over a row of the answer. */
static mc_error *
visit_encoded_row(const function_reading *r, const mc_postgres_row *row, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_field *fields = row->fields;
    const mc_tile_block *block = r->block;
    if (row->columns != ANSWER_COLUMNS || fields[ANSWER_PLACE].size != 4 || fields[ANSWER_SIZE].size != 4)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "the database answered with %d columns", row->columns);
    int place = (int)mc_big_number(fields[ANSWER_PLACE].data, 4);
    if (place < 0 || place >= block->columns * block->rows)
        return mc_error_create(pool, MC_ERR_UPSTREAM, "the database answered with tile %d of %d", place,
                               block->columns * block->rows);
    int right = place % block->columns, down = place / block->columns;
    mc_error *error =
        fields[ANSWER_TILE].size >= 0
            ? r->visit(r->baton, right, down, fields[ANSWER_TILE].data, (size_t)fields[ANSWER_TILE].size, ctx)
            : mc_error_create(pool, MC_ERR_UPSTREAM,
                              "it has %u bytes, more than the <max_bytes> of the tileset's format",
                              (unsigned)mc_big_number(fields[ANSWER_SIZE].data, 4));
    if (error == MC_OK)
        return MC_OK;
    return mc_error_wrap(pool, error, error->kind, "what was made of tile %d/%d/%d cannot be used", block->z,
                         block->column + right, block->row + down);
}

static mc_error *
read_answer_tiles(function_reading *r, mc_postgres_result *result, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgres_row *row;
    apr_pool_t *scratch;
    mc_error *error = MC_OK;
    apr_pool_create(&scratch, pool);
    for (;;) {
        error = mc_postgres_next(&row, result);
        if (error != MC_OK || row == NULL)
            break;
        r->rows++;
        apr_pool_clear(scratch);
        error = mc_error_copy(visit_encoded_row(r, row, ctx, scratch), pool);
        if (error != MC_OK)
            break;
    }
    apr_pool_destroy(scratch);
    return error;
}

static mc_error *
call_function(function_reading *r, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_postgis_config *config = &r->function->config;
    mc_postgis_statement *statement = apr_palloc(pool, sizeof(*statement));
    apr_array_header_t *arguments;
    const char *comment;
    mc_postgres_result *result = NULL;
    MC_TRY(find_signature(&arguments, &comment, r->function, ctx, pool));
    MC_TRY(mc_postgis_build_call(statement, config, arguments, r->block, pool));
    const mc_postgres_query asked = { .connection = config->connection,
                                      .sql = statement->sql,
                                      .params = statement->params,
                                      .param_count = statement->param_count,
                                      .binary = true };
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &asked, ctx, pool);
    if (error == MC_OK)
        error = read_answer_tiles(r, result, ctx, pool);
    const char *state = error == MC_OK ? "" : mc_postgres_sqlstate(result);
    r->changed = strcmp(state, STATE_NO_FUNCTION) == 0;
    if (statement->dimensions && strncmp(state, STATE_DATA, strlen(STATE_DATA)) == 0)
        error = mc_error_wrap(pool, error, MC_ERR_INVALID_DIMENSION,
                              "function \"%s\" cannot have the requested value of a dimension", config->function);
    mc_postgres_end(result);
    return error;
}

/* The function may have been replaced by one with other arguments: then it is asked for, and called, once more. */
static mc_error *
function_tiles(mc_feature_data *data, const mc_tile_block *block, mc_encoded_visitor *visit, void *baton, mc_ctx *ctx,
               apr_pool_t *pool)
{
    MC_SPAN_ABOUT(ctx, "mapcache_postgis_function", data->name);
    function_reading r = { (postgis_function *)data, block, visit, baton, 0, false };
    mc_error *error = call_function(&r, ctx, pool);
    if (error != MC_OK && error->kind == MC_ERR_UPSTREAM)
        forget_signature(r.function);
    if (r.changed && r.rows == 0) {
        mc_error_ignore(error);
        error = call_function(&r, ctx, pool);
    }
    if (error == MC_OK)
        return MC_OK;
    return mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be had from function \"%s\"", data->name,
                         r.function->config.function);
}

/* There are none. */
static mc_error *
function_read(mc_feature_data *data, const mc_feature_query *query, mc_feature_visitor *visit, void *baton,
              int64_t *skipped, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)data, (void)query, (void)visit, (void)baton, (void)ctx, (void)pool;
    *skipped = 0;
    return MC_OK;
}

static mc_error *
function_fields(apr_array_header_t **fields, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)data, (void)ctx;
    *fields = apr_array_make(pool, 1, sizeof(mc_field));
    return MC_OK;
}

static mc_error *
function_place(mc_place *place, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    (void)data, (void)ctx, (void)pool;
    place->known = false;
    return MC_OK;
}

static void
function_table(mc_feature_table *table, const mc_feature_data *data)
{
    *table = (mc_feature_table){ .connection = ((const postgis_function *)data)->config.connection };
}

/* The function's comment, where it is an object: COMMENT ON FUNCTION. */
static mc_error *
describe_function(const char **json, mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *arguments;
    MC_TRY(find_signature(&arguments, json, (postgis_function *)data, ctx, pool));
    if (*json != NULL && (*json)[strspn(*json, " \t\r\n")] != '{')
        *json = NULL;
    return MC_OK;
}

static const mc_feature_ops function_ops = {
    .type = "postgis function",
    .read = function_read,
    .fields = function_fields,
    .place = function_place,
    .table = function_table,
    .tiles = function_tiles,
    .describe = describe_function,
};

const char *
mc_postgis_function_inspect(mc_feature_data *data, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *arguments;
    const char *comment;
    mc_error *error = find_signature(&arguments, &comment, (postgis_function *)data, ctx, pool);
    return error == MC_OK ? NULL : mc_error_chain(error, pool);
}

static apr_status_t
close_function(void *data)
{
    postgis_function *function = data;
    if (function->pool != NULL)
        mc_task_pool_release(function->pool);
    pthread_mutex_destroy(&function->lock);
    return APR_SUCCESS;
}

mc_feature_data *
mc_postgis_function_create(const mc_postgis_config *config, const char *layer, apr_pool_t *pool)
{
    postgis_function *made = apr_pcalloc(pool, sizeof(*made));
    made->data = (mc_feature_data){ .ops = &function_ops, .name = layer };
    made->config = *config;
    pthread_mutex_init(&made->lock, NULL);
    apr_pool_cleanup_register(pool, made, close_function, apr_pool_cleanup_null);
    return &made->data;
}
