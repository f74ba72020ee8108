/* The source "shapefile": styled maps of vector data in shapefiles. */
#include <apr_strings.h>

#include "feature/shapefile.h"
#include "source/vector.h"

typedef struct shapefile_layer {
    mc_vector_layer layer;
    mc_shapefile_config config;
} shapefile_layer;

#define FIELD(member) offsetof(shapefile_layer, config.member)

static const mc_key layer_keys[] = {
    MC_VECTOR_LAYER_KEYS(shapefile_layer),
    { "data", MC_TEXT, MC_KEY_REQUIRED | MC_KEY_OURS, 0, 0, NULL, NULL, FIELD(path), NULL,
      "Path of the .shp file; its table (.dbf, .cpg), CRS (.prj) and indexes (.shx, .qix) lie beside it." },
    { "srs", MC_TEXT, MC_KEY_OURS, 0, 0, NULL, NULL, FIELD(srs), NULL,
      "CRS of the data, where there is no .prj or it is wrong: EPSG:2056, or WKT." },
    { "encoding", MC_TEXT, MC_KEY_OURS, 0, 0, NULL, NULL, FIELD(encoding), NULL,
      "Code page of the table, where there is no .cpg or it is wrong: UTF-8, 1252, 850, Shift_JIS, ..." },
    MC_KEY_END,
};

static const mc_key shapefile_keys[] = {
    MC_SOURCE_KEYS(mc_vector_source, "0"),
    { "layer", MC_TREE, MC_KEY_REQUIRED | MC_KEY_REPEATABLE | MC_KEY_OURS, 0, 0, NULL, NULL,
      offsetof(mc_vector_source, nodes), layer_keys,
      "A layer: its data and its style. The first one is at the bottom." },
    MC_KEY_END,
};

static mc_vector_layer *
layer_from_config(const mc_node *node, mc_build *build)
{
    shapefile_layer *made = apr_pcalloc(build->pool, sizeof(*made));
    if (!mc_config_read(made, node, layer_keys, build->diagnostics) ||
        !mc_vector_layer_finish(&made->layer, node, build))
        return NULL;
    made->layer.data = mc_shapefile_create(&made->config, made->layer.name, build->pool);
    return &made->layer;
}

static mc_source *
shapefile_from_config(const mc_node *node, mc_build *build)
{
    mc_vector_source *source = apr_pcalloc(build->pool, sizeof(*source));
    if (!mc_source_read(&source->base, &mc_source_shapefile, node, build) ||
        !mc_vector_layers(source, layer_from_config, build))
        return NULL;
    return &source->base.source;
}

const mc_source_ops mc_source_shapefile = {
    .type = "shapefile",
    .keys = shapefile_keys,
    .help = "Styled maps of vector data in shapefiles.",
    .from_config = shapefile_from_config,
    .render = mc_vector_render,
    .info = mc_vector_info,
    .legend = mc_vector_legend,
    .vector_layers = mc_vector_tile_layers,
};
