/* See overview.h. */
#include "overview/overview.h"

#include <string.h>

#include "overview/overview_list.h"

typedef mc_error *table_task(mc_overview_table *table, const mc_tileset *tileset);
typedef mc_error *shapefile_task(mc_overview_shapefile *shapefile, const mc_tileset *tileset);

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
run_for_shapefile(const mc_vector_layer *layer, const mc_shapefile_config *config, shapefile_task *task,
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
    mc_error *error = mc_error_copy(task(&shapefile, tileset), pool);
    apr_pool_destroy(shapefile.job.pool);
    return error;
}

bool
mc_overview_may_have(const mc_tileset *tileset)
{
    const mc_source *source = tileset->source;
    const mc_vector_source *vector = (const mc_vector_source *)source;
    bool has = false;
    for (int i = 0; source != NULL && source->ops->render == mc_vector_render && i < vector->layer_count; i++) {
        const mc_postgis_config *config = mc_postgis_config_of(vector->layers[i]->data);
        has |= mc_shapefile_config_of(vector->layers[i]->data) != NULL || (config != NULL && config->table != NULL);
    }
    return has;
}

/* Each table and shapefile of the tileset's layers; MC_ERR_CONFIG: there is none. */
static mc_error *
for_each_source(table_task *task, shapefile_task *file_task, const mc_tileset *tileset,
                const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_vector_source *vector = (const mc_vector_source *)tileset->source;
    if (!mc_overview_may_have(tileset))
        return mc_error_create(pool, MC_ERR_CONFIG, "tileset \"%s\" shows no table of PostGIS and no shapefile",
                               tileset->name);
    mc_error *first = MC_OK;
    for (int i = 0; (first == MC_OK || options->list != NULL) && i < vector->layer_count; i++) {
        const mc_postgis_config *config = mc_postgis_config_of(vector->layers[i]->data);
        const mc_shapefile_config *file = mc_shapefile_config_of(vector->layers[i]->data);
        mc_error *error = MC_OK;
        if (file != NULL)
            error = run_for_shapefile(vector->layers[i], file, file_task, tileset, options, ctx, pool);
        else if (config != NULL && config->table != NULL)
            error = run_for_table(vector->layers[i], config, task, tileset, options, ctx, pool);
        first = first == MC_OK ? error : first;
    }
    return first;
}

mc_error *
mc_overview_build(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_source(mc_overview_build_table, mc_overview_build_shapefile, tileset, options, ctx, pool);
}

mc_error *
mc_overview_drop(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_source(mc_overview_drop_table, mc_overview_drop_shapefile, tileset, options, ctx, pool);
}

mc_error *
mc_overview_update(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_source(mc_overview_update_table, mc_overview_build_shapefile, tileset, options, ctx, pool);
}

mc_error *
mc_overview_list(const mc_tileset *tileset, const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    return for_each_source(mc_overview_list_table, mc_overview_list_shapefile, tileset, options, ctx, pool);
}

/* The next layer of that table from `*at` on; NULL: there is none. */
static const mc_postgis_config *
find_layer_of_table(int *at, const mc_tileset *tileset, const char *connection, const char *table)
{
    const mc_source *source = tileset->source;
    const mc_vector_source *vector = (const mc_vector_source *)source;
    for (; source != NULL && source->ops->render == mc_vector_render && *at < vector->layer_count; (*at)++) {
        const mc_postgis_config *config = mc_postgis_config_of(vector->layers[*at]->data);
        if (config != NULL && config->table != NULL && strcmp(config->table, table) == 0 &&
            strcmp(config->connection, connection) == 0)
            return config;
    }
    return NULL;
}

bool
mc_overview_shows_table(const mc_tileset *tileset, const char *connection, const char *table)
{
    int at = 0;
    return find_layer_of_table(&at, tileset, connection, table) != NULL;
}

mc_error *
mc_overview_update_layers(const mc_tileset *tileset, const char *connection, const char *table,
                          const mc_overview_options *options, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_vector_source *vector = (const mc_vector_source *)tileset->source;
    const mc_postgis_config *config;
    mc_error *first = MC_OK;
    for (int i = 0; (config = find_layer_of_table(&i, tileset, connection, table)) != NULL; i++) {
        mc_error *error =
            run_for_table(vector->layers[i], config, mc_overview_update_table, tileset, options, ctx, pool);
        if (error != MC_OK && error->kind != MC_ERR_CONFIG && first == MC_OK)
            first = error;
        else
            mc_error_ignore(error); /* a layer that can have no overviews has none to be updated */
    }
    return first;
}
