/* Parameters of the resources: elements of paths, and what queries say. */
#include "service/ogcapi/operations.h"
#include "text/accept.h"
#include "text/text.h"

/* --- parameters of paths ---------------------------------------------------------------------------------------- */

static mc_error *
find_path_collection(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    ask->tileset = mc_call_tileset(reader->call, ask->collection, reader->pool);
    if (ask->tileset == NULL || !mc_ogcapi_offers(ask->tileset))
        return mc_param_refuse(reader);
    return mc_tileset_check_built(ask->tileset, reader->pool);
}

static mc_error *
find_path_matrix_set(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    ask->link = mc_tile_matrix_set_link(ask->tileset, ask->set);
    return ask->link == NULL ? mc_param_refuse(reader) : MC_OK;
}

static mc_error *
find_matrix_set(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    const mc_config *config = reader->call->config;
    for (int i = 0; i < config->grids->nelts && ask->grid == NULL; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(config->grids, i, const mc_grid *);
        if (mc_tile_matrix_set_is(grid, ask->set))
            ask->grid = grid;
    }
    return ask->grid == NULL ? mc_param_refuse(reader) : MC_OK;
}

/* The links of all collections of a dataset's tiles: one each, whose rows and columns count as those of the lowest. */
static mc_error *
find_dataset_matrix_set(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    for (int i = 0; i < ask->layer_count; i++) {
        mc_map_layer *layer = &ask->layers[i];
        layer->link = mc_ogcapi_shared_link(ask, layer->tileset, ask->set);
        if (layer->link == NULL)
            return mc_error_create(reader->pool, MC_ERR_NOT_FOUND,
                                   "collection %s has no tiles in the tile matrix set \"%s\"", layer->tileset->name,
                                   mc_message_text(ask->set, 100, reader->pool));
    }
    ask->link = ask->layers[0].link;
    return MC_OK;
}

#define COLLECTION_ROW                                                                                                 \
    MC_PARAM_TEXT("collectionId", offsetof(mc_ogcapi_ask, collection), "The name of a tileset.",                       \
                  .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,                                                \
                  .refusal = "there is no collection \"{value}\"; /ogcapi/collections lists them"),                    \
        MC_PARAM_STEP(find_path_collection)

#define MATRIX_SET_TEXT                                                                                                \
    MC_PARAM_TEXT("tileMatrixSetId", offsetof(mc_ogcapi_ask, set),                                                     \
                  "The identifier of a tile matrix set: that of OGC's register where the grid is registered there, "   \
                  "else the name of the grid.",                                                                        \
                  .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,                                                \
                  .refusal = "the tile matrix set \"{value}\" is not offered here; identifiers are asked for, "        \
                             "not addresses")

#define MATRIX_SET_ROW(step_) MATRIX_SET_TEXT, MC_PARAM_STEP(step_)

const mc_param_row mc_ogcapi_collection_path[] = { COLLECTION_ROW, MC_PARAM_END };
const mc_param_row mc_ogcapi_set_path[] = { MATRIX_SET_ROW(find_matrix_set), MC_PARAM_END };
const mc_param_row mc_ogcapi_tileset_path[] = { COLLECTION_ROW, MATRIX_SET_ROW(find_path_matrix_set), MC_PARAM_END };

#define TILE_ROWS                                                                                                      \
    MC_PARAM_INTEGER("tileMatrix", offsetof(mc_ogcapi_ask, z), "The level, 0 for the coarsest.",                       \
                     .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,                                             \
                     .refusal = "the tile matrix \"{value}\" is not a level"),                                         \
        MC_PARAM_INTEGER("tileRow", offsetof(mc_ogcapi_ask, row), "The row, 0 at the top.",                            \
                         .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,                                         \
                         .refusal = "the tile row \"{value}\" is not a row"),                                          \
        MC_PARAM_INTEGER("tileCol", offsetof(mc_ogcapi_ask, column), "The column, 0 on the left.",                     \
                         .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,                                         \
                         .refusal = "the tile column \"{value}\" is not a column")

const mc_param_row mc_ogcapi_tile_path[] = { COLLECTION_ROW, MATRIX_SET_ROW(find_path_matrix_set), TILE_ROWS,
                                             MC_PARAM_END };

/* Of a dataset: the query says which collections these are, and is read behind the path. */
const mc_param_row mc_ogcapi_dataset_tileset_path[] = { MATRIX_SET_TEXT, MC_PARAM_END };
const mc_param_row mc_ogcapi_dataset_tile_path[] = { MATRIX_SET_TEXT, TILE_ROWS, MC_PARAM_END };

static mc_error *
find_collection_style(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    return mc_tileset_find_style(&ask->style, ask->tileset, ask->style_id) ? MC_OK : mc_param_refuse(reader);
}

static mc_error *
find_dataset_style(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    return mc_ogcapi_find_global_style(ask, ask->style_id) ? MC_OK : mc_param_refuse(reader);
}

#define STYLE_ROW(step_, help_)                                                                                        \
    MC_PARAM_TEXT("styleId", offsetof(mc_ogcapi_ask, style_id), help_, .flags = MC_PARAM_REQUIRED,                     \
                  .kind = MC_ERR_NOT_FOUND, .refusal = "there is no style \"{value}\""),                               \
        MC_PARAM_STEP(step_)
#define COLLECTION_STYLE_ROW STYLE_ROW(find_collection_style, "`default`, or the name of a palette of the tileset.")

const mc_param_row mc_ogcapi_style_path[] = { COLLECTION_ROW, COLLECTION_STYLE_ROW, MC_PARAM_END };
const mc_param_row mc_ogcapi_styled_tileset_path[] = { COLLECTION_ROW, COLLECTION_STYLE_ROW,
                                                       MATRIX_SET_ROW(find_path_matrix_set), MC_PARAM_END };
const mc_param_row mc_ogcapi_styled_tile_path[] = { COLLECTION_ROW, COLLECTION_STYLE_ROW,
                                                    MATRIX_SET_ROW(find_path_matrix_set), TILE_ROWS, MC_PARAM_END };
const mc_param_row mc_ogcapi_global_style_path[] = { STYLE_ROW(find_dataset_style,
                                                               "The name of a tileset, a colon and the name of its "
                                                               "style."),
                                                     MC_PARAM_END };

const mc_param_row mc_ogcapi_file_path[] = {
    MC_PARAM_TEXT("file", offsetof(mc_ogcapi_ask, file), "A file that the pages load.", .flags = MC_PARAM_REQUIRED),
    MC_PARAM_END,
};

/* --- parameters of queries -------------------------------------------------------------------------------------- */

/* The form of a document: what `f` says, else what Accept wants most. */
static mc_error *
choose_form(mc_param_reader *reader)
{
    mc_ogcapi_ask *ask = reader->target;
    const char *const mimes[] = { ask->json_mime, "text/html", "application/json" };
    if (ask->form >= 0)
        return MC_OK;
    ask->negotiated = true;
    ask->form = mc_accept_choose(mc_call_header(reader->call, "Accept"), mimes, 3);
    if (ask->form < 0)
        return mc_error_create(reader->pool, MC_ERR_NOT_ACCEPTABLE, "this is to be had as %s and as text/html",
                               ask->json_mime);
    if (ask->form == 2)
        ask->form = MC_OGCAPI_JSON;
    return MC_OK;
}

const mc_param_row mc_ogcapi_form_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, form), "json|html",
                    "The form of the document; what the Accept header says where the parameter is not there.",
                    .flags = MC_PARAM_EMPTY, .locator = "f", .refusal = "f \"{value}\" is neither json nor html"),
    MC_PARAM_STEP(choose_form),
    MC_PARAM_END,
};

const mc_param_row mc_ogcapi_tileset_form_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, form), "json|html|tilejson",
                    "The form of the document: metadata of the tile set, a page that shows them, or TileJSON 3.0.0.",
                    .flags = MC_PARAM_EMPTY, .locator = "f",
                    .refusal = "f \"{value}\" is neither json nor html nor tilejson"),
    MC_PARAM_STEP(choose_form),
    MC_PARAM_END,
};

const mc_param_row mc_ogcapi_style_form_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, sheet), "mapbox|sld10|sld11",
                    "The encoding of the style; what the Accept header says where the parameter is not there, the "
                    "encoding that the style is kept in where it says nothing.",
                    .flags = MC_PARAM_EMPTY, .locator = "f",
                    .refusal = "f \"{value}\" is none of mapbox, sld10 and sld11"),
    MC_PARAM_TEXT("layer", offsetof(mc_ogcapi_ask, sheet_layer),
                  "Of a source whose layers have a file each: the layer whose file is wanted.", .max = 1000,
                  .flags = MC_PARAM_EMPTY, .locator = "layer"),
    MC_PARAM_END,
};

const mc_param_row mc_ogcapi_image_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, image), "png|jpeg|webp",
                    "The format of the image; without it the stored one where Accept allows it, else what Accept "
                    "wants most.",
                    .flags = MC_PARAM_EMPTY, .locator = "f", .refusal = "f \"{value}\" is none of png, jpeg and webp"),
    MC_PARAM_END,
};

const mc_param_row mc_ogcapi_vector_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, image), "mvt", "The format of the tile: there is one.",
                    .flags = MC_PARAM_EMPTY, .locator = "f", .refusal = "f \"{value}\" is not mvt"),
    MC_PARAM_END,
};

const mc_param_row mc_ogcapi_value_params[] = {
    MC_PARAM_TEXT("datetime", offsetof(mc_ogcapi_ask, datetime),
                  "A time or an interval START/END, open where it says `..`, for the dimension of time.", .max = 200,
                  .flags = MC_PARAM_EMPTY, .locator = "datetime"),
    MC_PARAM_TEXT(
        "subset", offsetof(mc_ogcapi_ask, subset),
        "Values of dimensions as AXIS(VALUE) or AXIS(LOW:HIGH), with commas between them or in a parameter "
        "of their own each; texts stand in double quotes; `time` and `datetime` are the dimension of time; `Lon` and "
        "`Lat`, or `E` and `N`, cut a map.",
        .flags = MC_PARAM_EMPTY, .locator = "subset"),
    MC_PARAM_END,
};

#define COLLECTIONS_ROW                                                                                                \
    MC_PARAM_LIST("collections", offsetof(mc_ogcapi_ask, collections),                                                 \
                  "Names of collections, or their addresses here, with commas between them, the lowest first; "        \
                  "without it the first one of that kind in the configuration.",                                       \
                  .flags = MC_PARAM_EMPTY, .locator = "collections"),                                                  \
        MC_PARAM_STEP(mc_ogcapi_find_collections)

const mc_param_row mc_ogcapi_dataset_params[] = { COLLECTIONS_ROW, MC_PARAM_END };
const mc_param_row mc_ogcapi_dataset_set_params[] = { COLLECTIONS_ROW, MC_PARAM_STEP(find_dataset_matrix_set),
                                                      MC_PARAM_END };
