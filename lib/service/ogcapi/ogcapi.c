/*
 * OGC API: Common (OGC 19-072, 20-024), Tiles (OGC 20-057), Maps (OGC 20-058): which resource an address is of, its
 * settings, and errors as problem details (RFC 7807).
 */
#include "service/ogcapi/ogcapi.h"

#include <apr_strings.h>
#include <string.h>

#include "service/ogcapi/map.h"
#include "service/page_asset.h"
#include "text/accept.h"
#include "text/text.h"

static const mc_key ogcapi_keys[] = { MC_SERVICE_KEYS(mc_ogcapi), MC_KEY_END };

static mc_service *
ogcapi_from_config(const mc_service_ops *ops, const mc_node *node, mc_build *build)
{
    mc_ogcapi *service = apr_pcalloc(build->pool, sizeof(*service));
    service->webp = apr_hash_get(build->formats, "WEBP", APR_HASH_KEY_STRING);
    return mc_service_read(&service->base, ops, node, build) ? &service->base.service : NULL;
}

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

#define COLLECTION_ROW                                                                                                 \
    MC_PARAM_TEXT("collectionId", offsetof(mc_ogcapi_ask, collection), "The name of a tileset.",                       \
                  .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,                                                \
                  .refusal = "there is no collection \"{value}\"; /ogcapi/collections lists them"),                    \
        MC_PARAM_STEP(find_path_collection)

#define MATRIX_SET_ROW(step_)                                                                                          \
    MC_PARAM_TEXT("tileMatrixSetId", offsetof(mc_ogcapi_ask, set),                                                     \
                  "The identifier of a tile matrix set: that of OGC's register where the grid is registered there, "   \
                  "else the name of the grid.",                                                                        \
                  .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,                                                \
                  .refusal = "the tile matrix set \"{value}\" is not offered here; identifiers are asked for, "        \
                             "not addresses"),                                                                         \
        MC_PARAM_STEP(step_)

static const mc_param_row collection_params[] = { COLLECTION_ROW, MC_PARAM_END };
static const mc_param_row set_params[] = { MATRIX_SET_ROW(find_matrix_set), MC_PARAM_END };
static const mc_param_row tileset_params[] = { COLLECTION_ROW, MATRIX_SET_ROW(find_path_matrix_set), MC_PARAM_END };

static const mc_param_row tile_params[] = {
    COLLECTION_ROW,
    MATRIX_SET_ROW(find_path_matrix_set),
    MC_PARAM_INTEGER("tileMatrix", offsetof(mc_ogcapi_ask, z), "The level, 0 for the coarsest.",
                     .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,
                     .refusal = "the tile matrix \"{value}\" is not a level"),
    MC_PARAM_INTEGER("tileRow", offsetof(mc_ogcapi_ask, row), "The row, 0 at the top.", .flags = MC_PARAM_REQUIRED,
                     .kind = MC_ERR_NOT_FOUND, .refusal = "the tile row \"{value}\" is not a row"),
    MC_PARAM_INTEGER("tileCol", offsetof(mc_ogcapi_ask, column), "The column, 0 on the left.",
                     .flags = MC_PARAM_REQUIRED, .kind = MC_ERR_NOT_FOUND,
                     .refusal = "the tile column \"{value}\" is not a column"),
    MC_PARAM_END,
};

static const mc_param_row file_params[] = {
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

static const mc_param_row form_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, form), "json|html",
                    "The form of the document; what the Accept header says where the parameter is not there.",
                    .flags = MC_PARAM_EMPTY, .locator = "f", .refusal = "f \"{value}\" is neither json nor html"),
    MC_PARAM_STEP(choose_form),
    MC_PARAM_END,
};

static const mc_param_row tileset_form_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, form), "json|html|tilejson",
                    "The form of the document: metadata of the tile set, a page that shows them, or TileJSON 3.0.0.",
                    .flags = MC_PARAM_EMPTY, .locator = "f",
                    .refusal = "f \"{value}\" is neither json nor html nor tilejson"),
    MC_PARAM_STEP(choose_form),
    MC_PARAM_END,
};

static const mc_param_row image_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, image), "png|jpeg|webp",
                    "The format of the image; without it the stored one where Accept allows it, else what Accept "
                    "wants most.",
                    .flags = MC_PARAM_EMPTY, .locator = "f", .refusal = "f \"{value}\" is none of png, jpeg and webp"),
    MC_PARAM_END,
};

static const mc_param_row vector_params[] = {
    MC_PARAM_CHOICE("f", offsetof(mc_ogcapi_ask, image), "mvt", "The format of the tile: there is one.",
                    .flags = MC_PARAM_EMPTY, .locator = "f", .refusal = "f \"{value}\" is not mvt"),
    MC_PARAM_END,
};

static const mc_param_row value_params[] = {
    MC_PARAM_TEXT("datetime", offsetof(mc_ogcapi_ask, datetime),
                  "A time or an interval START/END, open where it says `..`, for the dimension of time.", .max = 200,
                  .flags = MC_PARAM_EMPTY, .locator = "datetime"),
    MC_PARAM_TEXT("subset", offsetof(mc_ogcapi_ask, subset),
                  "Values of dimensions as AXIS(VALUE) or AXIS(LOW:HIGH), with commas between them or in a parameter "
                  "of their own each; texts stand in double quotes, `time` is the dimension of time.",
                  .flags = MC_PARAM_EMPTY, .locator = "subset"),
    MC_PARAM_END,
};

/* --- resources -------------------------------------------------------------------------------------------------- */

#define MAP_TILES "/ogcapi/collections/{collectionId}/map/tiles"
#define VECTOR_TILES "/ogcapi/collections/{collectionId}/tiles"
#define TILE "/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}"

static mc_error *
answer_ogcapi_file(mc_ogcapi_ask *ask)
{
    static const char *const files[] = { "base.css", "ogcapi.css" };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(ask->file, files[i]) == 0) {
            ask->request->kind = MC_REQUEST_DOCUMENT;
            mc_page_asset_answer(&ask->request->u.document, mc_page_asset_find(ask->file), ask->pool);
            return MC_OK;
        }
    return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "the pages have no such file");
}

static const mc_operation ogcapi_operations[] = {
    { "a tile of images",
      MAP_TILES TILE,
      { tile_params, image_params, value_params },
      { { "/ogcapi/collections/world/map/tiles/WebMercatorQuad/2/1/1", 200, "image/png", "Level, row, column.", NULL },
        { "/ogcapi/collections/world/map/tiles/WebMercatorQuad/2/1/1?f=jpeg", 200, "image/jpeg", "In another format.",
          NULL },
        { "/ogcapi/collections/world/map/tiles/WorldCRS84Quad/2/1/1", 200, "image/png", "In degrees.", NULL },
        { "/ogcapi/collections/years/map/tiles/WebMercatorQuad/2/1/1?datetime=2023", 200, "image/png", "Of a time.",
          NULL },
        { "/ogcapi/collections/years/map/tiles/WebMercatorQuad/2/1/1?subset=time(\"2023\")", 200, "image/png",
          "The same.", NULL },
        { "/ogcapi/collections/world/map/tiles/WebMercatorQuad/2/4/1", 404, "application/problem+json",
          "Level 2 has rows 0 to 3.", NULL },
        { "/ogcapi/collections/world/map/tiles/WebMercatorQuad/2/1/1?f=gif", 400, "application/problem+json",
          "There is no such format.", NULL } } },
    { "a vector tile",
      VECTOR_TILES TILE,
      { tile_params, vector_params, value_params },
      { { "/ogcapi/collections/roads-mvt/tiles/WebMercatorQuad/2/1/1", 200, MC_OGCAPI_MVT, "Level, row, column.",
          NULL } } },
    { "a map",
      "/ogcapi/collections/{collectionId}/map",
      { collection_params, mc_ogcapi_map_params, image_params, value_params },
      { { "/ogcapi/collections/world/map?bbox=-20,30,40,75&width=400", 200, "image/png", "West, south, east, north.",
          NULL },
        { "/ogcapi/collections/world/map?crs=[OGC:CRS84]&f=jpeg", 200, "image/jpeg", "All of it, in degrees.", NULL },
        { "/ogcapi/collections/roads/map?bgcolor=0xFF8000&width=300&height=200", 200, "image/png", "Over a colour.",
          NULL },
        { "/ogcapi/collections/years/map?datetime=2023", 200, "image/png", "Of a time.", NULL },
        { "/ogcapi/collections/world/map?scale-denominator=1e8&bbox=0,0,40,40", 200, "image/png", "In a scale.", NULL },
        { "/ogcapi/collections/world/map?crs=[EPSG:2056]", 400, "application/problem+json",
          "No grid of the tileset has that CRS.", NULL } } },
    { "the landing page",
      "/ogcapi",
      { form_params },
      { { "/ogcapi", 200, "application/json", "What there is, as links.", NULL },
        { "/ogcapi?f=html", 200, "text/html", "The same for people; browsers get it without `f`.", NULL } } },
    { "the conformance classes",
      "/ogcapi/conformance",
      { form_params },
      { { "/ogcapi/conformance", 200, "application/json", "Parts of the standards that are kept.", NULL } } },
    { "the definition of the API",
      "/ogcapi/api",
      { form_params },
      { { "/ogcapi/api", 200, "application/vnd.oai.openapi+json", "As OpenAPI 3.0.", NULL },
        { "/ogcapi/api?f=html", 200, "text/html", "As a page.", NULL } } },
    { "the collections",
      "/ogcapi/collections",
      { form_params },
      { { "/ogcapi/collections", 200, "application/json", "Tilesets with their extents.", NULL } } },
    { "a collection",
      "/ogcapi/collections/{collectionId}",
      { collection_params, form_params },
      { { "/ogcapi/collections/world", 200, "application/json", "One tileset.", NULL },
        { "/ogcapi/collections/nothing", 404, "application/problem+json", "There is no such tileset.", NULL } } },
    { "the tile sets of images",
      MAP_TILES,
      { collection_params, form_params },
      { { "/ogcapi/collections/world/map/tiles", 200, "application/json", "One for each grid.", NULL } } },
    { "a tile set of images",
      MAP_TILES "/{tileMatrixSetId}",
      { tileset_params, tileset_form_params },
      { { "/ogcapi/collections/world/map/tiles/WebMercatorQuad", 200, "application/json", "Limits and addresses.",
          NULL },
        { "/ogcapi/collections/world/map/tiles/WebMercatorQuad?f=tilejson", 200, "application/json",
          "As TileJSON 3.0.0.", NULL } } },
    { "the vector tile sets",
      VECTOR_TILES,
      { collection_params, form_params },
      { { "/ogcapi/collections/roads-mvt/tiles", 200, "application/json", "One for each grid.", NULL } } },
    { "a vector tile set",
      VECTOR_TILES "/{tileMatrixSetId}",
      { tileset_params, tileset_form_params },
      { { "/ogcapi/collections/roads-mvt/tiles/WebMercatorQuad", 200, "application/json",
          "Also layers and their attributes.", NULL },
        { "/ogcapi/collections/roads-mvt/tiles/WebMercatorQuad?f=tilejson", 200, "application/json", "For MapLibre.",
          NULL } } },
    { "the tile matrix sets",
      "/ogcapi/tileMatrixSets",
      { form_params },
      { { "/ogcapi/tileMatrixSets", 200, "application/json", "Those of the grids in use.", NULL } } },
    { "a tile matrix set",
      "/ogcapi/tileMatrixSets/{tileMatrixSetId}",
      { set_params, form_params },
      { { "/ogcapi/tileMatrixSets/WebMercatorQuad", 200, "application/json", "Scales, corners and sizes.", NULL } } },
    { "files of the pages",
      "/ogcapi/static/{file}",
      { file_params },
      { { "/ogcapi/static/base.css", 200, "text/css", "Colours and fonts.", NULL } } },
    { 0 },
};

/* In the order of ogcapi_operations. */
static const mc_ogcapi_resource ogcapi_resources[] = {
    { mc_ogcapi_tile, MC_OGCAPI_IMAGE, "mapcache.collection.map.getTile" },
    { mc_ogcapi_tile, MC_OGCAPI_VECTOR, "mapcache.collection.vector.getTile" },
    { mc_ogcapi_answer_map, MC_OGCAPI_IMAGE, "mapcache.collection.getMap" },
    { mc_ogcapi_landing, MC_OGCAPI_DOCUMENT, "mapcache.getLandingPage" },
    { mc_ogcapi_conformance, MC_OGCAPI_DOCUMENT, "mapcache.getConformance" },
    { mc_ogcapi_definition, MC_OGCAPI_DEFINITION, "mapcache.getApi" },
    { mc_ogcapi_collections, MC_OGCAPI_DOCUMENT, "mapcache.getCollections" },
    { mc_ogcapi_collection, MC_OGCAPI_DOCUMENT, "mapcache.getCollection" },
    { mc_ogcapi_tilesets, MC_OGCAPI_DOCUMENT, "mapcache.collection.map.getTileSetsList" },
    { mc_ogcapi_tileset, MC_OGCAPI_DOCUMENT, "mapcache.collection.map.getTileSet" },
    { mc_ogcapi_tilesets, MC_OGCAPI_DOCUMENT, "mapcache.collection.vector.getTileSetsList" },
    { mc_ogcapi_tileset, MC_OGCAPI_DOCUMENT, "mapcache.collection.vector.getTileSet" },
    { mc_ogcapi_sets, MC_OGCAPI_DOCUMENT, "mapcache.getTileMatrixSetsList" },
    { mc_ogcapi_set, MC_OGCAPI_DOCUMENT, "mapcache.getTileMatrixSet" },
    { answer_ogcapi_file, MC_OGCAPI_FILE, NULL },
};
_Static_assert(sizeof(ogcapi_resources) / sizeof(ogcapi_resources[0]) + 1 ==
                   sizeof(ogcapi_operations) / sizeof(ogcapi_operations[0]),
               "each operation has an answer");

/* Whether a path below the prefix is of an address; *values: what stands where the address has variables, in order. */
static bool
match_address(const char *values[MC_OGCAPI_VARIABLES], size_t sizes[MC_OGCAPI_VARIABLES], const char *address,
              const char *path)
{
    int count = 0;
    address += strlen("/ogcapi");
    while (*address == '/') {
        address++;
        size_t size = strcspn(path, "/"), length = strcspn(address, "/");
        if (size == 0)
            return false;
        if (*address == '{') {
            values[count] = path;
            sizes[count++] = size;
        } else if (size != length || strncmp(address, path, size) != 0) {
            return false;
        }
        address += length;
        path += size;
        if (*path == '/' && path[1] != '\0')
            path++;
        else if (*address != '\0')
            return false;
    }
    return *path == '\0' || strcmp(path, "/") == 0;
}

/* The operation of a path, and the values of its variables as `elements`. */
static int
find_ogcapi_operation(apr_array_header_t *elements, const char *path)
{
    const char *values[MC_OGCAPI_VARIABLES] = { NULL };
    size_t sizes[MC_OGCAPI_VARIABLES] = { 0 };
    for (int i = 0; ogcapi_operations[i].name != NULL; i++) {
        const char *address = ogcapi_operations[i].address;
        if (!match_address(values, sizes, address, path))
            continue;
        for (int j = 0; (address = strchr(address, '{')) != NULL; j++, address++)
            APR_ARRAY_PUSH(elements, const char *) = apr_pstrmemdup(elements->pool, values[j], sizes[j]);
        return i;
    }
    return -1;
}

static mc_error *
read_ogcapi_rows(mc_ogcapi_ask *ask, const apr_array_header_t *elements)
{
    const mc_operation *operation = ask->operation;
    int first = 0, next = 0;
    if (elements->nelts > 0)
        MC_TRY(mc_params_read_path(ask, operation->rows[first++], ask->call, elements, &next, ask->pool));
    for (size_t i = (size_t)first; i < sizeof(operation->rows) / sizeof(operation->rows[0]); i++)
        if (operation->rows[i] != NULL)
            MC_TRY(mc_params_read(ask, operation->rows[i], ask->call, ask->pool));
    return MC_OK;
}

static mc_error *
ogcapi_parse(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    apr_array_header_t *elements = apr_array_make(pool, MC_OGCAPI_VARIABLES, sizeof(const char *));
    int found = find_ogcapi_operation(elements, call->path);
    if (found < 0)
        return mc_error_create(pool, MC_ERR_NOT_FOUND,
                               "there is nothing at \"%s\"; /ogcapi has links to all that there is",
                               mc_message_text(call->full_path, 100, pool));
    mc_ogcapi_ask ask = {
        .request = request,
        .call = call,
        .ctx = ctx,
        .pool = pool,
        .operation = &ogcapi_operations[found],
        .operations = ogcapi_operations,
        .resources = ogcapi_resources,
        .json_mime = ogcapi_resources[found].media == MC_OGCAPI_DEFINITION ? MC_OGCAPI_OPENAPI : "application/json",
        .image = -1,
        .map = { .transparent = -1, .void_transparent = -1 },
    };
    MC_TRY(read_ogcapi_rows(&ask, elements));
    return ogcapi_resources[found].answer(&ask);
}

static const char *
ogcapi_methods(const mc_call *call, apr_pool_t *pool)
{
    (void)call;
    (void)pool;
    return "GET, HEAD";
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

static const char *
problem_title(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        { 400, "Bad Request" },        { 403, "Forbidden" },      { 404, "Not Found" },
        { 405, "Method Not Allowed" }, { 406, "Not Acceptable" }, { 413, "Content Too Large" },
        { 501, "Not Implemented" },    { 502, "Bad Gateway" },    { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
    };
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Internal Server Error";
}

/* Values that a dimension does not have are outside of its range: 404 (OGC 20-058, 15.3), as 204 has no words. */
static void
ogcapi_report(mc_document *body, int *status, const mc_error *error, const mc_call *call, apr_pool_t *pool)
{
    (void)call;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    if (error->kind == MC_ERR_INVALID_DIMENSION)
        *status = 404;
    mc_json_open_object(json, NULL);
    mc_json_string(json, "type", "about:blank");
    mc_json_string(json, "title", problem_title(*status));
    mc_json_integer(json, "status", *status);
    mc_json_string(json, "detail", error->message);
    mc_ogcapi_member(json, "code", mc_error_code(error->kind));
    mc_ogcapi_member(json, "parameter", error->locator);
    mc_json_close(json);
    mc_json_space(json, "\n");
    if (mc_json_finish(&body->text, json) == MC_OK)
        body->mime = "application/problem+json";
}

const mc_service_ops mc_service_ogcapi = {
    MC_KIND("ogcapi", ogcapi_keys, ogcapi_from_config, "OGC API: Common, Tiles, Maps."),
    .prefix = "ogcapi",
    .parse = ogcapi_parse,
    .report = ogcapi_report,
    .methods = ogcapi_methods,
    .operations = ogcapi_operations,
};
