/* The source "postgis": styled maps of vector data in PostGIS. */
#include <apr_strings.h>
#include <string.h>

#include "source/vector/vector.h"
#include "vector/postgis/postgis.h"

typedef struct postgis_layer {
    mc_vector_layer layer;
    mc_postgis_config config;
} postgis_layer;

#define FIELD(member) offsetof(postgis_layer, config.member)

static const mc_key layer_keys[] = {
    MC_VECTOR_LAYER_KEYS(postgis_layer),
    MC_KEY_TEXT("connection", FIELD(connection),
                "libpq connection string or URI of the database. Without one, that of the source.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT(
        "table", FIELD(table),
        "The table or view that holds the features, with its schema before a point where it is not in the search path.",
        .flags = MC_KEY_OURS),
    MC_KEY_TEXT(
        "query", FIELD(query),
        "A SELECT instead of a table. !BBOX!, !PIXEL!, !SCALE!, !NAME! of a dimension, !NAME_START! and !NAME_END! of "
        "one "
        "that is a time are bound as values.",
        .flags = MC_KEY_OURS),
    MC_KEY_TEXT("function", FIELD(function),
                "A function instead of a table: of level, column and row (from the top) of a tile, it makes vector "
                "tiles, as bytea. Further arguments get the tileset's dimensions: one of type json all of them, others "
                "the one of their name. Tiles only; maps cannot be drawn of it.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT("geometry", FIELD(geometry),
                "The column of geometry (or, of a table, geography); of a table by default its first one.",
                .flags = MC_KEY_OURS),
    MC_KEY_INT("srid", FIELD(srid),
               "SRID of the geometry; of a table by default (0) the column's, or that of the first geometry in it.",
               .flags = MC_KEY_OURS, .max = 999999, .fallback = "0"),
    MC_KEY_TEXT("id", FIELD(id), "The column with the number of each feature.", .flags = MC_KEY_OURS),
    MC_KEY_CHOICE("transfer", FIELD(transfer), "auto|binary|hex|twkb",
                  "How geometry travels: in its binary form, as TWKB of a tenth of a pixel (six times smaller, for a "
                  "database that "
                  "is far away), as hex digits (for comparison), or as it comes faster (auto).",
                  .flags = MC_KEY_OURS, .fallback = "auto"),
    MC_KEY_END,
};

static const mc_key postgis_keys[] = {
    MC_SOURCE_KEYS(mc_vector_source, "0"),
    MC_KEY_TEXT("connection", offsetof(mc_vector_source, connection),
                "libpq connection string or URI of the layers that have none of their own.", .flags = MC_KEY_OURS),
    MC_VECTOR_SOURCE_KEYS(layer_keys),
    MC_KEY_END,
};

/* False after a complaint. */
static bool
is_data_named(const mc_postgis_config *config, const mc_vector_layer *layer, const mc_node *node, mc_build *build)
{
    static const char *const of_features[] = { "style", "geometry", "srid", "id", "attributes", "transfer" };
    int kinds = (config->table != NULL) + (config->query != NULL) + (config->function != NULL);
    if (kinds != 1 || (config->query != NULL && (config->geometry == NULL || config->srid == 0))) {
        mc_complain(build->diagnostics, MC_REFUSED, node,
                    "layer \"%s\" needs either a <table>, or a <query> with <geometry> and <srid>, or a <function>",
                    layer->name);
        return false;
    }
    for (size_t i = 0; config->function != NULL && i < sizeof(of_features) / sizeof(of_features[0]); i++) {
        const mc_node *other = mc_node_child(node, of_features[i]);
        if (other != NULL)
            mc_complain(build->diagnostics, MC_WARNING, other,
                        "layer \"%s\" is made by a <function>: <%s> has no effect", layer->name, of_features[i]);
    }
    return true;
}

static mc_vector_layer *
postgis_layer_from_config(const mc_node *node, mc_build *build)
{
    postgis_layer *made = apr_pcalloc(build->pool, sizeof(*made));
    if (!mc_config_read(made, node, layer_keys, build->diagnostics))
        return NULL;
    mc_postgis_config *config = &made->config;
    const mc_node *shared = mc_node_child(node->parent, "connection");
    if (config->connection == NULL)
        config->connection = shared == NULL || *shared->text == '\0' ? NULL : shared->text;
    if (config->connection == NULL) {
        mc_complain(build->diagnostics, MC_REFUSED, node, "layer \"%s\" has no <connection>, and its source has none",
                    made->layer.name);
        return NULL;
    }
    if (!is_data_named(config, &made->layer, node, build))
        return NULL;
    mc_postgres_configure(config->connection, node, build);
    made->layer.data = config->function != NULL ? mc_postgis_function_create(config, made->layer.name, build->pool)
                                                : mc_postgis_create(config, made->layer.name, build->pool);
    return mc_vector_layer_finish(&made->layer, node, build) ? &made->layer : NULL;
}

static mc_source *
postgis_from_config(const mc_node *node, mc_build *build)
{
    return mc_vector_from_config(&mc_source_postgis, postgis_layer_from_config, node, build);
}

static void
postgis_inspect(mc_source *source, mc_diagnostics *diagnostics, mc_ctx *ctx, apr_pool_t *pool)
{
    const mc_vector_source *vector = (const mc_vector_source *)source;
    for (int i = 0; i < vector->layer_count; i++) {
        mc_feature_data *data = vector->layers[i]->data;
        const char *finding = NULL;
        if (data->ops->tiles != NULL)
            finding = mc_postgis_function_inspect(data, ctx, pool);
        else if (strcmp(data->ops->type, "postgis") == 0) /* not one of another source */
            finding = mc_postgis_inspect(data, ctx, pool);
        if (finding != NULL)
            mc_complain(diagnostics, MC_WARNING, APR_ARRAY_IDX(vector->nodes, i, const mc_node *), "layer \"%s\": %s",
                        vector->layers[i]->name, finding);
    }
}

const mc_source_ops mc_source_postgis = {
    MC_KIND("postgis", postgis_keys, postgis_from_config, "Styled maps of vector data in PostGIS."),
    MC_VECTOR_OPS,
    .inspect = postgis_inspect,
};
