/* Vector sources: layers of data and style, painted over each other. Shared by all kinds of vector data. */
#ifndef MC_SOURCE_VECTOR_VECTOR_H
#define MC_SOURCE_VECTOR_VECTOR_H

#include "draw/label/legend.h"
#include "draw/paint/painter.h"
#include "source/source_base.h"

/* A layer of any vector source. The struct of each kind of layer begins with this one. */
typedef struct mc_vector_layer {
    const char *name;
    const char *shared_of;               /* as configured: the layer is that of another source; or NULL */
    const char *style_file, *style_name; /* as configured */
    const char *attribute_list;          /* as configured; or NULL */
    apr_array_header_t *shown;           /* of const char *: the attributes that clients may see; NULL: all */
    int minzoom, maxzoom;                /* levels of vector tiles */
    double min_scale, max_scale;         /* denominators of maps that show the layer; 0: no limit */
    int thinning;                        /* index of the choice of <thinning> */
    int colored;                         /* index of the choice of <default_style>: 0 grey, 1 in a colour of its own */
    mc_feature_data *data;
    const mc_style *style;
} mc_vector_layer;

typedef struct mc_vector_source {
    mc_source_base base;
    const apr_array_header_t *nodes; /* <layer>, of const mc_node * */
    mc_vector_layer **layers;        /* bottom first */
    int layer_count;
    const char *background; /* as configured; or NULL: none */
    const char *connection; /* of the layers that have none of their own; or NULL */
    mc_color ground;        /* transparent: none */
    bool wrap;              /* maps go on beyond the antimeridian */
} mc_vector_source;

/* The box in degrees around all layers; not known where that of one layer is not. */
mc_error *mc_vector_place(mc_place *place, mc_source *source, mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;

/* The tables operation of all vector sources. */
void mc_vector_tables(mc_source *source, void (*visit)(void *baton, const mc_source_table *table), void *baton);

/* For a layer without a style file: grey, or in a colour of its own. */
const mc_style *mc_vector_default_style(const mc_vector_layer *layer, mc_build *build);

/* Rows of a source's table beside MC_SOURCE_KEYS. `layer_keys_`: of <layer>. */
#define MC_VECTOR_SOURCE_KEYS(layer_keys_)                                                                             \
    MC_KEY_TEXT(                                                                                                       \
        "background", offsetof(mc_vector_source, background),                                                          \
        "Colour under all layers, as #RRGGBB, whatever TRANSPARENT and BGCOLOR say. Without it, tiles are "            \
        "transparent where nothing is drawn (JPEG: black), and maps, too, unless TRANSPARENT=FALSE, BGCOLOR "          \
        "or JPEG asks for a colour: white, where BGCOLOR names none. Maps that are put together of JPEG tiles are "    \
        "black there as the tiles are.",                                                                               \
        .flags = MC_KEY_OURS),                                                                                         \
        MC_KEY_BOOL("wrap", offsetof(mc_vector_source, wrap),                                                          \
                    "Whether maps in degrees and in Mercator's projection go on beyond the antimeridian with what "    \
                    "lies on its "                                                                                     \
                    "other side.",                                                                                     \
                    .flags = MC_KEY_OURS, .fallback = "true"),                                                         \
        MC_KEY_TREE("layer", offsetof(mc_vector_source, nodes), layer_keys_,                                           \
                    "A layer: its data and its style. The first one is at the bottom.",                                \
                    .flags = MC_KEY_REQUIRED | MC_KEY_REPEATABLE | MC_KEY_OURS)

/* Rows of a layer's table for a struct whose first member is `layer`. */
#define MC_VECTOR_LAYER_KEYS(type_)                                                                                    \
    MC_KEY_TEXT("@name", offsetof(type_, layer.name), "Name of the layer in messages, vector tiles and feature info.", \
                .flags = MC_KEY_OURS, .fallback = "layer"),                                                            \
        MC_KEY_TEXT("style", offsetof(type_, layer.style_file),                                                        \
                    "SLD 1.0 or SE 1.1 file. Without one, `<default_style>` says how features are drawn.",             \
                    .flags = MC_KEY_OURS | MC_KEY_FILE),                                                               \
        MC_KEY_TEXT("style_name", offsetof(type_, layer.style_name),                                                   \
                    "Which user style of the file; by default its first one.", .flags = MC_KEY_OURS),                  \
        MC_KEY_CHOICE("default_style", offsetof(type_, layer.colored), "grey|colored",                                 \
                      "How a layer without `<style>` is drawn. `grey`: grey areas and thin dark lines, no points. "    \
                      "`colored`: pale areas, lines and round markers in a colour of the layer.",                      \
                      .flags = MC_KEY_OURS, .fallback = "grey"),                                                       \
        MC_KEY_CHOICE(                                                                                                 \
            "thinning", offsetof(type_, layer.thinning), "none|quarter|half|pixel",                                    \
            "Vertices that follow each other inside the same part of a pixel are drawn as one: coarser is faster on "  \
            "dense data.",                                                                                             \
            .flags = MC_KEY_OURS, .fallback = "quarter"),                                                              \
        MC_KEY_TEXT("attributes", offsetof(type_, layer.attribute_list),                                               \
                    "Names, with commas between them, of the attributes that feature info and vector tiles show. "     \
                    "All of them without it.",                                                                         \
                    .flags = MC_KEY_OURS),                                                                             \
        MC_KEY_INT("minzoom", offsetof(type_, layer.minzoom),                                                          \
                   "First level of the grid whose vector tiles hold the layer.", .flags = MC_KEY_OURS, .max = 99,      \
                   .fallback = "0"),                                                                                   \
        MC_KEY_INT("maxzoom", offsetof(type_, layer.maxzoom),                                                          \
                   "Last level of the grid whose vector tiles hold the layer.", .flags = MC_KEY_OURS, .max = 99,       \
                   .fallback = "99"),                                                                                  \
        MC_KEY_NUMBER("min_scale", offsetof(type_, layer.min_scale),                                                   \
                      "Denominator from which on maps show the layer, besides what its style says; 0: no limit.",      \
                      .flags = MC_KEY_OURS, .min = 0, .max = 1e12, .fallback = "0"),                                   \
        MC_KEY_NUMBER("max_scale", offsetof(type_, layer.max_scale),                                                   \
                      "Denominator below which maps show the layer; 0: no limit.", .flags = MC_KEY_OURS, .min = 0,     \
                      .max = 1e12, .fallback = "0"),                                                                   \
        MC_KEY_TEXT("@of", offsetof(type_, layer.shared_of),                                                           \
                    "Another source, declared before, whose layer of the same name this is: a layer is defined once, " \
                    "and nothing else stands in this element.",                                                        \
                    .flags = MC_KEY_OURS)

/* Reads the style and the list of attributes of a layer whose keys have been read. False after a complaint. */
bool mc_vector_layer_finish(mc_vector_layer *layer, const mc_node *node, mc_build *build);

/* Whether maps of that scale show the layer: by its limits, and by its style. */
bool mc_vector_layer_shows(const mc_vector_layer *layer, double scale);

/* By how much maps thin the layer (<thinning>), in 1/256 pixel. */
int mc_vector_layer_thinning(const mc_vector_layer *layer);

/* Reads a vector source: the common keys, and each layer with `layer_from_config`. NULL after a complaint. */
mc_source *mc_vector_from_config(const mc_source_ops *ops,
                                 mc_vector_layer *(*layer_from_config)(const mc_node *node, mc_build *build),
                                 const mc_node *node, mc_build *build);

/* The attributes that clients may see (mc_field), and their names: the configured attributes, or all attributes of the
 * data. */
mc_error *mc_vector_fields(apr_array_header_t **fields, const char ***names, const mc_vector_layer *layer, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;

/* The render operations of all vector sources. */
mc_error *mc_vector_render_stack(mc_rendered *map, mc_source *const *sources, const mc_render *wanted, int count,
                                 mc_ctx *ctx, apr_pool_t *pool) MC_CHECKED;
mc_error *mc_vector_render(mc_rendered *map, mc_source *source, const mc_render *wanted, mc_ctx *ctx,
                           apr_pool_t *pool) MC_CHECKED;

/* The legend operation of all vector sources. */
void mc_vector_legend(mc_legend *legend, mc_source *source);

/* The styles operation of all vector sources. */
apr_array_header_t *mc_vector_styles(mc_source *source, apr_pool_t *pool);

/* The info operation of all vector sources, and the media types of its answers (WMS 1.3.0, 7.4). */
mc_error *mc_vector_info(mc_buf **text, mc_source *source, const mc_info_request *wanted, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;
const apr_array_header_t *mc_vector_info_formats(apr_pool_t *pool);

/* A vector tile of all layers, in place of a map; a description of the layers. */
mc_error *mc_vector_tile(mc_rendered *map, const mc_vector_source *source, const mc_render *wanted, mc_ctx *ctx,
                         apr_pool_t *pool) MC_CHECKED;
mc_error *mc_vector_tile_layers(apr_array_header_t **layers, mc_source *source, mc_ctx *ctx,
                                apr_pool_t *pool) MC_CHECKED;

/* The members of mc_source_ops that all vector sources share. */
#define MC_VECTOR_OPS                                                                                                  \
    .render = mc_vector_render, .render_stack = mc_vector_render_stack, .info = mc_vector_info,                        \
    .legend = mc_vector_legend, .vector_layers = mc_vector_tile_layers, .styles = mc_vector_styles,                    \
    .place = mc_vector_place, .tables = mc_vector_tables

/* The query of a map. The query's pixel grid is that of a level of the grid where the map lies on that level; else the
 * map has a pixel grid of its own. */
void mc_vector_query(mc_feature_query *query, const mc_render *wanted, double margin);

#endif
