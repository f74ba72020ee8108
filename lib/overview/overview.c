/* See overview.h. */
#include "overview/overview.h"

#include "overview/overview_shapefile.h"
#include "overview/overview_table.h"

typedef mc_error *table_task(mc_overview_table *table, const mc_tileset *tileset);

static mc_error *
run_for_table(const mc_vector_layer *layer, const mc_postgis_config *config, table_task *task,
              const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_overview_table table = { .job = { .source = &mc_overview_table_source,
                                         .store = &mc_overview_table_store,
                                         .layer = layer,
                                         .options = options,
                                         .kind = "table",
                                         .name = config->table,
                                         .ctx = ctx,
                                         .pool = pool },
                                .config = *config };
    if (options->connection != NULL)
        table.config.connection = options->connection;
    MC_TRY(mc_postgres_session_open(&table.session, ctx->process->postgres, table.config.connection, ctx, pool));
    mc_error *error = task(&table, tileset);
    mc_postgres_session_close(table.session);
    return error;
}

static mc_error *
run_for_shapefile(const mc_vector_layer *layer, const mc_shapefile_config *config, bool builds,
                  const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_overview_shapefile shapefile = { .job = { .source = &mc_overview_shapefile_source,
                                                 .store = &mc_overview_file_store,
                                                 .layer = layer,
                                                 .options = options,
                                                 .kind = "shapefile",
                                                 .name = config->path,
                                                 .ctx = ctx },
                                        .config = *config };
    apr_pool_create(&shapefile.job.pool, pool);
    mc_error *error =
        builds ? mc_overview_build_shapefile(&shapefile, tileset) : mc_overview_drop_shapefile(&shapefile);
    error = mc_error_copy(error, pool);
    apr_pool_destroy(shapefile.job.pool);
    return error;
}

/* Each table and shapefile of the tileset's layers. */
static mc_error *
for_each_table(table_task *task, const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx,
               apr_pool_t *pool)
{
    const mc_source *source = tileset->source;
    const mc_vector_source *vector = (const mc_vector_source *)source;
    int tables = 0;
    for (int i = 0; source != NULL && source->ops->render == mc_vector_render && i < vector->layer_count; i++) {
        const mc_postgis_config *config = mc_postgis_config_of(vector->layers[i]->data);
        const mc_shapefile_config *file = mc_shapefile_config_of(vector->layers[i]->data);
        if (file != NULL) {
            tables++;
            MC_TRY(run_for_shapefile(vector->layers[i], file, task != mc_overview_drop_table, tileset, options, ctx,
                                     pool));
        }
        if (config == NULL || config->table == NULL)
            continue;
        tables++;
        MC_TRY(run_for_table(vector->layers[i], config, task, tileset, options, ctx, pool));
    }
    if (tables == 0)
        return mc_error_create(pool, MC_ERR_CONFIG, "tileset \"%s\" shows no table of PostGIS and no shapefile",
                               tileset->name);
    return MC_OK;
}

mc_error *
mc_overview_build(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_table(mc_overview_build_table, tileset, options, ctx, pool);
}

mc_error *
mc_overview_drop(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_table(mc_overview_drop_table, tileset, options, ctx, pool);
}

mc_error *
mc_overview_update(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_table(mc_overview_update_table, tileset, options, ctx, pool);
}
