/* Statements of the cache "postgresql": how one is sent with its parameters, and the error of one that failed. */
#include <apr_strings.h>

#include "cache/postgresql/postgresql_base.h"

static mc_postgres_param
text_param(const char *value)
{
    return (mc_postgres_param){ .value = value, .type = MC_POSTGRES_TEXT };
}

void
mc_postgresql_series(tile_params *params, const mc_tile_key *key, apr_pool_t *pool)
{
    params->list[0] = text_param(key->tileset);
    params->list[1] = text_param(key->grid->name);
    params->list[2] = text_param(mc_cache_dimension_key(key, pool));
    params->count = 3;
    params->by_key = false;
}

mc_error *
mc_postgresql_start(mc_postgres_result **result, const postgresql_cache *cache, mc_postgres_session *session,
                    const char *sql, const tile_params *params, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgres_query query = { .connection = cache->connection,
                                .session = session,
                                .sql = sql,
                                .params = params == NULL ? NULL : params->list,
                                .param_count = params == NULL ? 0 : params->count,
                                .binary = true,
                                .by_key = params != NULL && params->by_key };
    return mc_postgres_start(result, ctx->process == NULL ? NULL : ctx->process->postgres, &query, ctx, pool);
}

mc_error *
mc_postgresql_run(char state[6], const postgresql_cache *cache, mc_postgres_session *session, const char *sql,
                  const tile_params *params, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_postgres_result *result;
    const mc_postgres_row *row;
    mc_error *error = mc_postgresql_start(&result, cache, session, sql, params, ctx, pool);
    while (error == MC_OK && (error = mc_postgres_next(&row, result)) == MC_OK && row != NULL)
        continue;
    apr_cpystrn(state, mc_postgres_sqlstate(result), 6);
    mc_postgres_end(result);
    return error;
}

mc_error *
mc_postgresql_failure(mc_error *error, const postgresql_cache *cache, apr_pool_t *pool)
{
    mc_error_kind kind =
        error->kind == MC_ERR_UNAVAILABLE || error->kind == MC_ERR_TIMEOUT ? MC_ERR_UNAVAILABLE : MC_ERR_IO;
    return mc_error_wrap(pool, error, kind, "cache \"%s\" cannot reach its tiles", cache->base.cache.name);
}
