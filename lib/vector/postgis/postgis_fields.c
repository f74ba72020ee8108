/* What attributes a layer has, and of what types. */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "vector/postgis/postgis.h"

/* Types that are not of the system are text: enumerations, say. */
static mc_field_type
postgis_field_type(unsigned type)
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
is_type_listed(unsigned type, const char *list)
{
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
        if (strtoul(at, NULL, 10) == type)
            return true;
    return false;
}

/* What the columns of a table or query but for the geometry are. The row that says so is made without reading any. */
mc_error *
mc_postgis_ask_fields(apr_array_header_t **fields, const mc_postgis_config *config, const mc_postgis_column *column,
                      mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgis_statement *statement = apr_palloc(pool, sizeof(*statement));
    mc_postgres_result *result = NULL;
    const mc_postgres_row *row = NULL;
    MC_TRY(mc_postgis_build_fields(statement, config, column, pool));
    mc_postgres_query asked = { .connection = config->connection,
                                .sql = statement->sql,
                                .params = statement->params,
                                .param_count = statement->param_count };
    mc_error *error = mc_postgres_start(&result, ctx->process->postgres, &asked, ctx, pool);
    if (error == MC_OK)
        error = mc_postgres_next(&row, result);
    *fields = apr_array_make(pool, 16, sizeof(mc_field));
    for (int i = 0; error == MC_OK && row != NULL && i < row->columns - 1; i++)
        if (strcmp(row->fields[i].name, column->name) != 0 &&
            !is_type_listed(row->fields[i].type, row->fields[row->columns - 1].data))
            APR_ARRAY_PUSH(*fields, mc_field) =
                (mc_field){ apr_pstrdup(pool, row->fields[i].name), postgis_field_type(row->fields[i].type) };
    mc_postgres_end(result);
    return error;
}
