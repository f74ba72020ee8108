/* Reading a map from the blocks of an overview: see postgis_levels.h and level_blocks.h. */
#include <apr_strings.h>
#include <math.h>

#include "mapcache/trace.h"
#include "text/text.h"
#include "vector/levels/level_reading.h"
#include "vector/postgis/postgis_levels.h"

static const char *
level_sql(const mc_level_use *use, apr_pool_t *pool)
{
    return apr_psprintf(pool,
                        "SELECT part, features FROM " MC_LEVELS_SCHEMA
                        ".%s WHERE box && ST_MakeEnvelope($1, $2, $3, $4, %d) ORDER BY part",
                        mc_sql_name(use->name, pool), use->srid);
}

static bool
is_block_row(const mc_postgres_row *row)
{
    return row->columns == 2 && row->fields[0].size == 4 && row->fields[1].size >= 0;
}

/* A window is whole when a row of the next one comes. */
static mc_error *
read_level_rows(mc_level_reading *r, mc_postgres_result *result, apr_pool_t *pool)
{
    const mc_postgres_row *row;
    char part[4];
    bool begun = false;
    for (;;) {
        MC_TRY(mc_postgres_next(&row, result));
        if (row == NULL)
            return mc_level_reading_visit(r);
        if (!is_block_row(row))
            return mc_error_create(pool, MC_ERR_CORRUPT, "an overview of layer \"%s\" is broken", r->base->layer);
        if (begun && memcmp(part, row->fields[0].data, sizeof(part)) != 0)
            MC_TRY(mc_level_reading_visit(r));
        memcpy(part, row->fields[0].data, sizeof(part));
        begun = true;
        MC_TRY(mc_error_copy(mc_level_window_add(r->window, row->fields[1].data, (size_t)row->fields[1].size), pool));
    }
}

static void
trace_level(const mc_level_reading *r, const mc_level_use *use, const mc_postgres_result *result)
{
    const mc_ctx *ctx = r->base->ctx;
    if (ctx->trace != NULL)
        mc_trace_say(ctx->trace, "database:",
                     apr_psprintf(ctx->pool,
                                  "%" APR_INT64_T_FMT " bytes, %" APR_INT64_T_FMT " features, overview %s of layer %s",
                                  mc_postgres_traffic_of(result).bytes, (apr_int64_t)r->features, use->name,
                                  r->base->layer));
}

static mc_postgres_param
level_coordinate(double value, apr_pool_t *pool)
{
    return (mc_postgres_param){ .value = mc_double_text('g', 17, value, pool), .type = MC_POSTGRES_FLOAT8 };
}

mc_error *
mc_levels_read(int64_t *features, mc_feature_reading *reading, const mc_level_use *use, bool ids,
               const char *connection, mc_postgres_session *session, apr_pool_t *pool)
{
    mc_level_reading r;
    const mc_extent *box = &reading->map->box;
    const mc_postgres_param params[] = { level_coordinate(box->minx, pool), level_coordinate(box->miny, pool),
                                         level_coordinate(box->maxx, pool), level_coordinate(box->maxy, pool) };
    const mc_postgres_query query = { .connection = connection,
                                      .session = session,
                                      .sql = level_sql(use, pool),
                                      .params = params,
                                      .param_count = 4,
                                      .binary = true };
    mc_postgres_result *result = NULL;
    mc_level_reading_begin(&r, reading, ids, pool);
    mc_error *error = mc_postgres_start(&result, reading->ctx->process->postgres, &query, reading->ctx, pool);
    if (error == MC_OK)
        error = read_level_rows(&r, result, pool);
    if (error == MC_OK)
        trace_level(&r, use, result);
    else
        error =
            mc_error_wrap(pool, error, error->kind, "layer \"%s\" cannot be read from its overview", reading->layer);
    mc_postgres_end(result);
    mc_level_reading_end(&r);
    *features = r.features;
    return error;
}
