/*
 * Dimensions whose values stand in a PostgreSQL database (docs/reference/configuration.md 7.4). Values travel as bound
 * texts beside the statement; the server infers their types from what they are compared with, as it does for MapCache.
 */
#include <apr_strings.h>
#include <string.h>

#include "db/postgres/postgres.h"
#include "dimension/placeholders.h"
#include "text/text.h"

typedef struct postgresql_config {
    mc_query_config query; /* first: the rows of MC_QUERY_KEYS count from here */
    const char *connection;
    const char *default_query, *insert_query;
} postgresql_config;

typedef struct postgresql_dimension {
    mc_query_dimension query; /* first */
    const char *connection;
    mc_placeholders statements[MC_QUERY_KINDS]; /* sql NULL where none is configured */
} postgresql_dimension;

static const mc_key postgresql_keys[] = {
    MC_QUERY_KEYS,
    MC_KEY_TEXT("connection", offsetof(postgresql_config, connection),
                "Connection string or URI of libpq, e.g. `host=db.example dbname=catalogue user=maps`.",
                .flags = MC_KEY_REQUIRED),
    MC_KEY_TEXT(
        "default_query", offsetof(postgresql_config, default_query),
        "Its first row is the default value that WMS capabilities show; without a row it is the configured one."),
    MC_QUERY_INSERT_KEY(offsetof(postgresql_config, insert_query)),
    MC_KEY_END,
};

/* Six decimals, as MapCache sends them. */
static const char *
postgresql_coordinate_text(double value, apr_pool_t *pool)
{
    return mc_double_text('f', 6, value, pool);
}

static unsigned
natural_type(mc_query_parameter parameter, const char *text)
{
    switch (parameter) {
    case MC_QUERY_TILESET:
    case MC_QUERY_DIM:
    case MC_QUERY_GRIDSRS:
        return MC_POSTGRES_TEXT;
    case MC_QUERY_START:
    case MC_QUERY_END:
        return strchr(text, '.') == NULL ? MC_POSTGRES_INT8 : MC_POSTGRES_FLOAT8;
    default:
        return MC_POSTGRES_FLOAT8;
    }
}

static mc_postgres_param *
make_params(const mc_placeholders *statement, const mc_query_binds *binds, apr_pool_t *pool)
{
    const char *texts[MC_QUERY_PARAMETER_COUNT];
    mc_query_texts(texts, binds, APR_USEC_PER_SEC, postgresql_coordinate_text, pool);
    mc_postgres_param *params = apr_pcalloc(pool, sizeof(*params) * MC_QUERY_PARAMETER_COUNT);
    for (int i = 0; i < statement->count; i++) {
        params[i].value = texts[statement->parameters[i]];
        params[i].natural = natural_type(statement->parameters[i], params[i].value);
    }
    return params;
}

/* The database's failure in the words of the dimension. */
static mc_error *
postgresql_dimension_error(mc_error *error, const postgresql_dimension *dimension, mc_query_kind kind,
                           const char *state, apr_pool_t *pool)
{
    const char *name = dimension->query.base.name;
    /* Class 22 of SQLSTATE, data exception: only a client's value changes from one question to the next. */
    if (kind == MC_QUERY_VALIDATE && strncmp(state, "22", 2) == 0) {
        mc_error *refused =
            mc_error_wrap(pool, error, MC_ERR_INVALID_DIMENSION, "dimension %s cannot have the requested value", name);
        refused->locator = name;
        return refused;
    }
    mc_error_kind shown = error->kind == MC_ERR_TIMEOUT ? MC_ERR_UNAVAILABLE : error->kind;
    if (error->kind == MC_ERR_TIMEOUT)
        return mc_error_wrap(pool, error, shown, "the database of dimension %s has no answer in time", name);
    return mc_error_wrap(pool, error, shown, "the database of dimension %s cannot be asked", name);
}

/* MC_OK with *failed set: the database's error; an error: ours (too many rows). */
static mc_error *
read_postgresql_values(mc_error **failed, mc_postgres_result *result, mc_query_kind kind, mc_query_rows *rows)
{
    for (;;) {
        const mc_postgres_row *row;
        *failed = mc_postgres_next(&row, result);
        if (*failed != MC_OK || row == NULL)
            return MC_OK;
        if (row->columns == 0 || row->fields[0].size < 0)
            continue;
        MC_TRY(mc_query_rows_add(rows, row->fields[0].data, (size_t)row->fields[0].size));
        if (kind == MC_QUERY_DEFAULT)
            return MC_OK;
    }
}

static mc_error *
query_postgresql_once(const postgresql_dimension *dimension, mc_query_kind kind, const mc_query_binds *binds,
                      mc_query_rows *rows, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_placeholders *statement = &dimension->statements[kind];
    mc_postgres_query query = { .connection = dimension->connection,
                                .sql = statement->sql,
                                .params = make_params(statement, binds, pool),
                                .param_count = statement->count };
    mc_postgres *postgres = ctx->process == NULL ? NULL : ctx->process->postgres;
    mc_postgres_result *result;
    mc_error *failed = mc_postgres_start(&result, postgres, &query, ctx, pool);
    mc_error *error = MC_OK;
    if (failed == MC_OK)
        error = read_postgresql_values(&failed, result, kind, rows);
    const char *state = mc_postgres_sqlstate(result);
    mc_postgres_end(result);
    return failed == MC_OK ? error : postgresql_dimension_error(failed, dimension, kind, state, pool);
}

static mc_error *
postgresql_ask(mc_query_dimension *base, mc_query_batch *batch, mc_ctx *ctx, apr_pool_t *pool)
{
    const postgresql_dimension *dimension = (const postgresql_dimension *)base;
    for (int i = 0; i < batch->count; i++)
        MC_TRY(query_postgresql_once(dimension, batch->kind, &batch->binds[i], batch->rows[i], ctx, pool));
    return MC_OK;
}

static mc_dimension *
pg_dimension_from_config(const mc_node *node, mc_build *build)
{
    postgresql_config config = { 0 };
    postgresql_dimension *dimension = mc_dimension_create(sizeof(*dimension), &config, postgresql_keys, node, build);
    if (dimension == NULL)
        return NULL;
    if (!mc_query_set_up(&dimension->query, &config.query, config.connection, false,
                         &(mc_query_extras){ config.default_query, config.insert_query }, node, build))
        return NULL;
    dimension->query.ask = postgresql_ask;
    dimension->connection = config.connection;
    mc_postgres_configure(config.connection, node, build);
    for (int i = 0; i < MC_QUERY_KINDS; i++)
        if (dimension->query.statements[i].text != NULL)
            dimension->statements[i] = mc_placeholders_number(dimension->query.statements[i].text, build->pool);
    return &dimension->query.base;
}

const mc_dimension_ops mc_dimension_postgresql = {
    MC_KIND("postgresql", postgresql_keys, pg_dimension_from_config,
            "Values that are asked of a PostgreSQL database. Bound values are texts whose types the server infers."),
    .insert = mc_query_insert,
    MC_QUERY_OPS,
};
