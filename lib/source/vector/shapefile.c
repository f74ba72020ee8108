/* The source "shapefile": styled maps of vector data in shapefiles. */
#include <apr_strings.h>
#include <string.h>

#include "source/vector/vector.h"
#include "vector/shapefile/shapefile.h"
#include "vector/shapefile/shp.h"

typedef struct shapefile_layer {
    mc_vector_layer layer;
    mc_shapefile_config config;
} shapefile_layer;

#define FIELD(member) offsetof(shapefile_layer, config.member)

static const mc_key layer_keys[] = {
    MC_VECTOR_LAYER_KEYS(shapefile_layer),
    MC_KEY_TEXT("data", FIELD(path),
                "Path of the .shp file; its table (.dbf, .cpg), CRS (.prj) and indexes (.shx, .qix) lie beside it.",
                .flags = MC_KEY_REQUIRED | MC_KEY_OURS | MC_KEY_FILE),
    MC_KEY_TEXT("srs", FIELD(srs), "CRS of the data, where there is no .prj or it is wrong: EPSG:2056, or WKT.",
                .flags = MC_KEY_OURS),
    MC_KEY_TEXT("encoding", FIELD(encoding),
                "Code page of the table, where there is no .cpg or it is wrong: UTF-8, 1252, 850, Shift_JIS, ...",
                .flags = MC_KEY_OURS),
    MC_KEY_END,
};

static const mc_key shapefile_keys[] = {
    MC_SOURCE_KEYS(mc_vector_source, "0"),
    MC_VECTOR_SOURCE_KEYS(layer_keys),
    MC_KEY_END,
};

static void
check_name(const char *name, const char *who, const mc_shp *shp, const mc_node *at, mc_build *build)
{
    if (shp->attributes == NULL || mc_dbf_find(shp->attributes, name) < 0)
        mc_complain(build->diagnostics, MC_WARNING, at, "%s to the attribute %s, which the shapefile does not have",
                    who, mc_config_quote(name, build->pool));
}

static void
check_names(const shapefile_layer *layer, const mc_shp *shp, const mc_node *node, mc_build *build)
{
    const mc_node *style = mc_node_child(node, "style"), *shown = mc_node_child(node, "attributes");
    for (int i = 0; i < layer->layer.style->attribute_count; i++)
        check_name(layer->layer.style->attributes[i], "the style refers", shp, style, build);
    for (int i = 0; layer->layer.shown != NULL && i < layer->layer.shown->nelts; i++)
        check_name(APR_ARRAY_IDX(layer->layer.shown, i, const char *), "<attributes> refers", shp, shown, build);
}

/* What only reading all of it shows. */
static void
check_shapes(mc_shp *shp, const mc_node *at, mc_build *build, apr_pool_t *scratch)
{
    mc_shp_prepare(shp, scratch);
    if (shp->broken > 0)
        mc_complain(build->diagnostics, MC_WARNING, at,
                    "%u shapes cannot be read: the .shp is cut short, or the .shx is of another one", shp->broken);
    if (shp->unlisted)
        mc_complain(build->diagnostics, MC_WARNING, at,
                    "the .shx ends before the .shp does: what it does not list is not drawn");
}

/* What a map would find out. None of it refuses the configuration: files may come, or be made better, at any time. */
static void
check_files(const shapefile_layer *layer, const mc_node *node, mc_build *build)
{
    const mc_node *at = mc_node_child(node, "data");
    apr_pool_t *scratch;
    mc_shp *shp;
    apr_pool_create(&scratch, build->pool);
    mc_error *error = mc_shp_open(&shp, layer->config.path, layer->config.encoding, scratch);
    if (error != MC_OK) {
        mc_complain(build->diagnostics, MC_WARNING, at, "the shapefile cannot be read: %s",
                    mc_error_chain(error, scratch));
        apr_pool_destroy(scratch);
        return;
    }
    if (shp->table_error != NULL)
        mc_complain(build->diagnostics, MC_WARNING, at, "the shapefile has no attributes: %s",
                    shp->table_error->message);
    if (shp->attributes != NULL && shp->attributes->memo_count > 0)
        mc_complain(build->diagnostics, MC_WARNING, at, "%d attributes are memos and are left out",
                    shp->attributes->memo_count);
    if (shp->projection == NULL && layer->config.srs == NULL)
        mc_complain(build->diagnostics, MC_WARNING, at,
                    "there is neither a .prj file nor <srs>: the data is taken to be in the CRS of each map");
    if (shp->stale_tree)
        mc_complain(build->diagnostics, MC_WARNING, at,
                    "the .qix file is older than the .shp or of other shapes, and is not used: run `mapcache index`");
    check_names(layer, shp, node, build);
    if (build->diagnostics->thorough)
        check_shapes(shp, at, build, scratch);
    apr_pool_destroy(scratch);
}

/* EPSG:2056, CRS:84, WKT, or a string of PROJ. */
static bool
is_shapefile_crs(const char *text)
{
    return mc_crs_epsg(text, NULL) != 0 || strchr(text, '[') != NULL || strstr(text, "+proj=") != NULL;
}

static bool
check_options(const mc_shapefile_config *config, const mc_node *node, mc_build *build)
{
    if (config->srs != NULL && !is_shapefile_crs(config->srs))
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "srs"),
                    "%s is no CRS: EPSG:<number>, CRS:84 or WKT is expected",
                    mc_config_quote(config->srs, build->pool));
    else if (config->encoding != NULL && mc_codepage_name(config->encoding, build->pool) == NULL)
        mc_complain(build->diagnostics, MC_REFUSED, mc_node_child(node, "encoding"),
                    "%s is no code page that is known here", mc_config_quote(config->encoding, build->pool));
    else
        return true;
    return false;
}

static mc_vector_layer *
shapefile_layer_from_config(const mc_node *node, mc_build *build)
{
    shapefile_layer *made = apr_pcalloc(build->pool, sizeof(*made));
    if (!mc_config_read(made, node, layer_keys, build->diagnostics) || !check_options(&made->config, node, build) ||
        !mc_vector_layer_finish(&made->layer, node, build))
        return NULL;
    check_files(made, node, build);
    made->layer.data = mc_shapefile_create(&made->config, made->layer.name, build->pool);
    return &made->layer;
}

static mc_source *
shapefile_from_config(const mc_node *node, mc_build *build)
{
    return mc_vector_from_config(&mc_source_shapefile, shapefile_layer_from_config, node, build);
}

const mc_source_ops mc_source_shapefile = {
    MC_KIND("shapefile", shapefile_keys, shapefile_from_config, "Styled maps of vector data in shapefiles."),
    MC_VECTOR_OPS,
};
