/* The source "ogr": styled maps of vector data in GeoPackage, FlatGeobuf and GeoJSON files. */
#include <apr_strings.h>
#include <string.h>

#include "source/vector/vector.h"
#include "vector/ogr/ogr_data.h"

typedef struct ogr_layer {
    mc_vector_layer layer;
    mc_ogr_config config;
} ogr_layer;

#define FIELD(member) offsetof(ogr_layer, config.member)

static const mc_key layer_keys[] = {
    MC_VECTOR_LAYER_KEYS(ogr_layer),
    MC_KEY_TEXT("data", FIELD(path), "Path of the file: GeoPackage, FlatGeobuf or GeoJSON (also one feature a line).",
                .flags = MC_KEY_REQUIRED | MC_KEY_OURS | MC_KEY_FILE),
    MC_KEY_TEXT("table", FIELD(table), "Which layer of the file; needed where it has several.", .flags = MC_KEY_OURS),
    MC_KEY_TEXT("srs", FIELD(srs), "CRS of the data, where the file does not say it or is wrong: EPSG:2056, or WKT.",
                .flags = MC_KEY_OURS),
    MC_KEY_END,
};

static const mc_key ogr_keys[] = {
    MC_SOURCE_KEYS(mc_vector_source, "0"),
    MC_VECTOR_SOURCE_KEYS(layer_keys),
    MC_KEY_END,
};

/* What a map would find out. */
static void
inspect_ogr_file(const ogr_layer *made, const mc_node *node, mc_build *build)
{
    apr_array_header_t *names = apr_array_make(build->pool, 8, sizeof(const char *));
    for (int i = 0; i < made->layer.style->attribute_count; i++)
        APR_ARRAY_PUSH(names, const char *) = made->layer.style->attributes[i];
    if (made->layer.shown != NULL)
        apr_array_cat(names, made->layer.shown);
    mc_ogr_inspect(build->diagnostics, mc_node_child(node, "data"), &made->config, made->layer.name, names,
                   build->pool);
}

static mc_vector_layer *
ogr_layer_from_config(const mc_node *node, mc_build *build)
{
    ogr_layer *made = apr_pcalloc(build->pool, sizeof(*made));
    if (!mc_config_read(made, node, layer_keys, build->diagnostics) ||
        !mc_vector_layer_finish(&made->layer, node, build))
        return NULL;
    if (build->diagnostics->thorough)
        inspect_ogr_file(made, node, build);
    made->layer.data = mc_ogr_create(&made->config, made->layer.name, build->pool);
    return &made->layer;
}

static mc_source *
ogr_from_config(const mc_node *node, mc_build *build)
{
#ifndef MC_HAVE_GDAL
    mc_complain(build->diagnostics, MC_NOT_BUILT, node, "this build has no sources of type \"ogr\"");
#endif
    return mc_vector_from_config(&mc_source_ogr, ogr_layer_from_config, node, build);
}

const mc_source_ops mc_source_ogr = {
    MC_KIND("ogr", ogr_keys, ogr_from_config,
            "Styled maps of vector data in GeoPackage, FlatGeobuf and GeoJSON files, read by OGR."),
    MC_VECTOR_OPS,
};
