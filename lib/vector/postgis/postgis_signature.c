/* How a function that makes vector tiles is called: see postgis.h. */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "text/json_writer.h"
#include "text/text.h"
#include "vector/postgis/postgis.h"

enum {
    COLUMN_COUNT,
    COLUMN_NAME,
    COLUMN_TYPE,
    COLUMN_JSON,
    COLUMN_OPTIONAL,
    COLUMN_COMMENT,
    COLUMNS,
    FIRST_OTHER = 3, /* arguments before it: level, column, row */
};

/* A row for each argument behind the third, or one without a type where there is none. A result of several columns has
 * the type record and names the columns among the arguments, or has the type of a table, which has attributes. */
static const char signature_sql[] =
    "WITH found AS (SELECT p.* FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.proname = $2 "
    "AND CASE WHEN $1 IS NULL THEN pg_function_is_visible(p.oid) ELSE n.nspname = $1 END "
    "AND p.prokind = 'f' AND p.pronargs >= 3 AND p.proargtypes[0] IN ('int4'::regtype, 'int8'::regtype) "
    "AND p.proargtypes[1] IN ('int4'::regtype, 'int8'::regtype) "
    "AND p.proargtypes[2] IN ('int4'::regtype, 'int8'::regtype) "
    "AND 'bytea'::regtype = coalesce((SELECT u.type FROM unnest(p.proallargtypes, p.proargmodes) WITH ORDINALITY "
    "u(type, mode, place) WHERE u.mode IN ('o', 'b', 't') ORDER BY u.place LIMIT 1), (SELECT a.atttypid FROM pg_type t "
    "JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped WHERE t.oid = p.prorettype "
    "AND t.typrelid <> 0 ORDER BY a.attnum LIMIT 1), p.prorettype)) "
    "SELECT (SELECT count(*) FROM found)::text, coalesce((SELECT u.name FROM unnest(f.proargnames, f.proargmodes) "
    "WITH ORDINALITY u(name, mode, place) WHERE u.mode IS NULL OR u.mode IN ('i', 'b', 'v') ORDER BY u.place OFFSET i "
    "LIMIT 1), '')::text, format_type(f.proargtypes[i], NULL), "
    "(f.proargtypes[i] IN ('json'::regtype, 'jsonb'::regtype))::text, (i >= f.pronargs - f.pronargdefaults)::text, "
    "obj_description(f.oid, 'pg_proc') FROM found f LEFT JOIN LATERAL generate_series(3, f.pronargs - 1) i ON true "
    "ORDER BY i";

static void
take_signature_row(apr_array_header_t *arguments, const char **comment, const mc_postgres_row *row, apr_pool_t *pool)
{
    if (row->fields[COLUMN_COMMENT].size >= 0 && *comment == NULL)
        *comment = apr_pstrdup(pool, row->fields[COLUMN_COMMENT].data);
    if (row->fields[COLUMN_TYPE].size <= 0)
        return;
    mc_function_argument argument = { apr_pstrdup(pool, row->fields[COLUMN_NAME].data),
                                      apr_pstrdup(pool, row->fields[COLUMN_TYPE].data),
                                      strcmp(row->fields[COLUMN_JSON].data, "true") == 0,
                                      strcmp(row->fields[COLUMN_OPTIONAL].data, "true") == 0 };
    APR_ARRAY_PUSH(arguments, mc_function_argument) = argument;
}

static mc_error *
read_signature(apr_array_header_t *arguments, const char **comment, int *count, mc_postgres_result *result,
               apr_pool_t *pool)
{
    const mc_postgres_row *row;
    *count = 0;
    *comment = NULL;
    for (;;) {
        MC_TRY(mc_postgres_next(&row, result));
        if (row == NULL)
            return MC_OK;
        if (row->columns != COLUMNS || !mc_parse_int(count, row->fields[COLUMN_COUNT].data, 0, INT32_MAX))
            return mc_error_create(pool, MC_ERR_UPSTREAM, "the database answered with %d columns", row->columns);
        take_signature_row(arguments, comment, row, pool);
    }
}

mc_error *
mc_postgis_ask_signature(apr_array_header_t **arguments, const char **comment, const mc_postgis_config *config,
                         mc_ctx *ctx, apr_pool_t *pool)
{
    const char *dot = strchr(config->function, '.'), *name = dot == NULL ? config->function : dot + 1;
    const char *schema = dot == NULL ? NULL : apr_pstrmemdup(pool, config->function, (size_t)(dot - config->function));
    const mc_postgres_param params[] = { { .value = schema, .type = MC_POSTGRES_TEXT },
                                         { .value = name, .type = MC_POSTGRES_TEXT } };
    const mc_postgres_query asked = {
        .connection = config->connection, .sql = signature_sql, .params = params, .param_count = 2
    };
    mc_postgres_result *result = NULL;
    int count = 0;
    *arguments = apr_array_make(pool, 4, sizeof(mc_function_argument));
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &asked, ctx, pool);
    if (error == MC_OK)
        error = read_signature(*arguments, comment, &count, result, pool);
    mc_postgres_end(result);
    if (error != MC_OK)
        return error;
    if (count != 1)
        return mc_error_create(pool, MC_ERR_UPSTREAM,
                               "the database has %s function \"%s\" whose first arguments are three whole numbers (z, "
                               "x, y) and whose result is bytea",
                               count == 0 ? "no" : "more than one", config->function);
    return MC_OK;
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

static const char *
bind_whole(mc_postgis_statement *statement, int64_t number, unsigned type, apr_pool_t *pool)
{
    statement->params[statement->param_count++] =
        (mc_postgres_param){ .value = apr_psprintf(pool, "%" APR_INT64_T_FMT, (apr_int64_t)number), .type = type };
    return apr_psprintf(pool, "$%d", statement->param_count);
}

static const mc_dimension_value *
find_block_dimension(const mc_tile_block *block, const char *name)
{
    for (int i = 0; i < block->dimension_count; i++)
        if (strcasecmp(block->dimensions[i].name, name) == 0)
            return &block->dimensions[i];
    return NULL;
}

/* All dimensions, as an object of texts. */
static const char *
write_dimensions(const mc_tile_block *block, apr_pool_t *pool)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    mc_json_open_object(json, NULL);
    for (int i = 0; i < block->dimension_count; i++)
        mc_json_string(json, block->dimensions[i].name, block->dimensions[i].value);
    mc_json_close(json);
    return mc_json_finish_text(json);
}

/* What stands for an argument in the call, *text NULL: the argument's default. */
static mc_error *
bind_argument(const char **text, mc_postgis_statement *statement, const mc_postgis_config *config,
              const mc_function_argument *argument, int place, const mc_tile_block *block, apr_pool_t *pool)
{
    const mc_dimension_value *dimension = find_block_dimension(block, argument->name);
    bool callable = *argument->name != '\0' || place == 0;
    const char *value = NULL;
    *text = NULL;
    if (argument->json && callable)
        value = write_dimensions(block, pool);
    else if (dimension != NULL && *argument->name != '\0')
        value = dimension->value == NULL ? "" : dimension->value;
    else if (argument->optional)
        return MC_OK;
    else
        return mc_error_create(pool, MC_ERR_CONFIG,
                               "argument \"%s\" of function \"%s\" has no default, and the tileset has no dimension "
                               "of that name",
                               argument->name, config->function);
    if (statement->param_count == MC_POSTGRES_PARAMS)
        return mc_error_create(pool, MC_ERR_CONFIG, "function \"%s\" has too many arguments", config->function);
    statement->dimensions = statement->dimensions || !argument->json;
    statement->params[statement->param_count++] = (mc_postgres_param){ .value = value, .type = MC_POSTGRES_TEXT };
    *text =
        apr_psprintf(pool, ", %s$%d::%s",
                     *argument->name == '\0' ? "" : apr_pstrcat(pool, mc_sql_name(argument->name, pool), " => ", NULL),
                     statement->param_count, argument->type);
    return MC_OK;
}

mc_error *
mc_postgis_build_call(mc_postgis_statement *statement, const mc_postgis_config *config,
                      const apr_array_header_t *arguments, const mc_tile_block *block, apr_pool_t *pool)
{
    *statement = (mc_postgis_statement){ 0 };
    const char *z = bind_whole(statement, block->z, MC_POSTGRES_INT4, pool);
    const char *x = bind_whole(statement, block->column, MC_POSTGRES_INT4, pool);
    const char *y = bind_whole(statement, block->row, MC_POSTGRES_INT4, pool);
    const char *columns = bind_whole(statement, block->columns, MC_POSTGRES_INT4, pool);
    const char *last = bind_whole(statement, (int64_t)block->columns * block->rows - 1, MC_POSTGRES_INT4, pool);
    const char *most = bind_whole(statement, block->max_bytes, MC_POSTGRES_INT8, pool);
    const char *others = "";
    for (int i = 0; i < arguments->nelts; i++) {
        const char *text;
        MC_TRY(bind_argument(&text, statement, config, &APR_ARRAY_IDX(arguments, i, mc_function_argument), i, block,
                             pool));
        if (text != NULL)
            others = apr_pstrcat(pool, others, text, NULL);
    }
    /* OFFSET keeps the function from being called for each place where its result is used. */
    statement->sql = apr_psprintf(
        pool,
        "SELECT t.i, octet_length(m.tile), CASE WHEN octet_length(m.tile) <= %s THEN m.tile END FROM "
        "generate_series(0, %s) t(i), LATERAL (SELECT f.tile FROM %s(%s, %s + t.i %% %s, %s + t.i / %s%s) f(tile) "
        "OFFSET 0) m WHERE m.tile IS NOT NULL",
        most, last, mc_sql_table(config->function, pool), z, x, columns, y, columns, others);
    return MC_OK;
}
