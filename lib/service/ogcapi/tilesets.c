/* Lists of tile sets, metadata of a tile set and tile matrix sets (OGC 20-057, 8 and 9; OGC 17-083r4, 7). */
#include <apr_strings.h>
#include <string.h>

#include "mapcache/source.h"
#include "service/ogcapi/ogcapi.h"

/* Whether a link is the first of its tileset with that tile matrix set, as others cannot be addressed, and all other
 * collections of the request have the set, too. */
static bool
is_addressed(const mc_ogcapi_ask *ask, const mc_grid_link *link, const char *id)
{
    bool shared = mc_tile_matrix_set_link(ask->tileset, id) == link;
    for (int i = 1; shared && i < ask->layer_count; i++)
        shared = mc_ogcapi_shared_link(ask, ask->layers[i].tileset, id) != NULL;
    return shared;
}

/* What lists and metadata have in common: dataType, crs, tileMatrixSetURI. */
static void
write_tileset_head(mc_json_writer *json, const mc_ogcapi_ask *ask, const mc_grid_link *link, const char *id)
{
    const mc_tile_matrix_set *set = mc_tile_matrix_set_of(link->grid);
    mc_json_string(json, "title", apr_pstrcat(ask->pool, mc_ogcapi_titles(ask), ", ", id, NULL));
    mc_json_string(json, "dataType", mc_ogcapi_is_vector(ask->tileset) ? "vector" : "map");
    mc_json_string(json, "crs", mc_grid_crs_uri(link->grid, ask->pool));
    if (set != NULL)
        mc_json_string(json, "tileMatrixSetURI", mc_tile_matrix_set_uri(set, ask->pool));
    mc_json_string(json, "tileMatrixSetId", id);
}

static void
write_scheme_link(mc_json_writer *json, const mc_ogcapi_ask *ask, const char *id)
{
    mc_ogcapi_link(json, MC_OGCAPI_REL "tiling-scheme", "application/json", "The tile matrix set",
                   mc_ogcapi_url(ask, "/tileMatrixSets/%s", mc_url_segment(id, ask->pool)));
}

/* Where the tile sets of the request are: those of a collection, of its style, or of the dataset. */
static const char *
tilesets_path(const mc_ogcapi_ask *ask)
{
    if (ask->style_id != NULL)
        return apr_pstrcat(ask->pool, "/collections/", mc_url_segment(ask->tileset->name, ask->pool), "/styles/",
                           mc_url_segment(ask->style_id, ask->pool), "/map/tiles", NULL);
    if (ask->collection != NULL)
        return mc_ogcapi_tiles_path(ask->tileset, ask->pool);
    return mc_ogcapi_is_vector(ask->tileset) ? "/tiles" : "/map/tiles";
}

/* The address of a tile set, or of what is below: `rest` is behind it in the path, `query` in the query. */
static const char *
tileset_address(const mc_ogcapi_ask *ask, const char *id, const char *rest, const char *query)
{
    const char *whole = apr_pstrcat(ask->pool, mc_ogcapi_selection(ask), query, NULL);
    size_t size = strlen(whole);
    if (size > 0 && whole[size - 1] == '&')
        size--;
    return mc_ogcapi_url(ask, "%s/%s%s%s%.*s", tilesets_path(ask), mc_url_segment(id, ask->pool), rest,
                         size == 0 ? "" : "?", (int)size, whole);
}

static void
write_listed_tileset(mc_json_writer *json, const mc_ogcapi_ask *ask, const mc_grid_link *link, const char *id)
{
    mc_json_open_object(json, NULL);
    write_tileset_head(json, ask, link, id);
    mc_json_open_array(json, "links");
    mc_ogcapi_link(json, "self", "application/json", "This tile set", tileset_address(ask, id, "", ""));
    write_scheme_link(json, ask, id);
    mc_json_close(json);
    mc_json_close(json);
}

mc_error *
mc_ogcapi_tilesets(mc_ogcapi_ask *ask)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    MC_TRY(mc_ogcapi_check_kind(ask));
    ask->title = apr_pstrcat(ask->pool, mc_ogcapi_titles(ask), ": tile sets", NULL);
    mc_json_open_object(json, NULL);
    mc_ogcapi_open_links(json, ask);
    mc_json_close(json);
    mc_json_open_array(json, "tilesets");
    for (int i = 0; i < ask->tileset->link_count; i++) {
        const mc_grid_link *link = ask->tileset->links[i];
        const char *id = mc_tile_matrix_set_id(link->grid, ask->pool);
        if (is_addressed(ask, link, id))
            write_listed_tileset(json, ask, link, id);
    }
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

/* --- metadata of one -------------------------------------------------------------------------------------------- */

/* The tiles of a level: rows from the top, columns from the left. False where there is none. */
static bool
find_level_limits(mc_tile_range *found, const mc_grid_link *link, int z)
{
    const mc_grid *grid = link->grid;
    const mc_tile_range *range = &link->limits[z];
    if (z < link->minzoom || z > link->maxzoom || range->maxx <= range->minx || range->maxy <= range->miny)
        return false;
    int row = mc_grid_flip_y(grid, z, range->miny), last_row = mc_grid_flip_y(grid, z, range->maxy - 1);
    int column = mc_grid_from_west(grid, z, range->minx), last = mc_grid_from_west(grid, z, range->maxx - 1);
    *found = (mc_tile_range){ .minx = column < last ? column : last,
                              .miny = row < last_row ? row : last_row,
                              .maxx = column < last ? last : column,
                              .maxy = row < last_row ? last_row : row };
    return true;
}

static void
write_level_limits(mc_json_writer *json, int z, const mc_tile_range *range, apr_pool_t *pool)
{
    mc_json_open_object(json, NULL);
    mc_json_string(json, "tileMatrix", apr_itoa(pool, z));
    mc_json_integer(json, "minTileRow", range->miny);
    mc_json_integer(json, "maxTileRow", range->maxy);
    mc_json_integer(json, "minTileCol", range->minx);
    mc_json_integer(json, "maxTileCol", range->maxx);
    mc_json_close(json);
}

/* Levels without tiles are left out; of several collections the limits are around all. */
static void
write_tileset_limits(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    int count = ask->layer_count > 0 ? ask->layer_count : 1;
    mc_json_open_array(json, "tileMatrixSetLimits");
    for (int z = 0; z < ask->link->grid->level_count; z++) {
        mc_tile_range all, each;
        bool some = false;
        for (int i = 0; i < count; i++) {
            if (!find_level_limits(&each, ask->layer_count > 0 ? ask->layers[i].link : ask->link, z))
                continue;
            all = some ? (mc_tile_range){ .minx = each.minx < all.minx ? each.minx : all.minx,
                                          .miny = each.miny < all.miny ? each.miny : all.miny,
                                          .maxx = each.maxx > all.maxx ? each.maxx : all.maxx,
                                          .maxy = each.maxy > all.maxy ? each.maxy : all.maxy }
                       : each;
            some = true;
        }
        if (some)
            write_level_limits(json, z, &all, ask->pool);
    }
    mc_json_close(json);
}

static void
write_corner_point(mc_json_writer *json, const char *key, bool yx, double x, double y)
{
    mc_json_open_array(json, key);
    mc_json_digits(json, NULL, yx ? y : x, 15);
    mc_json_digits(json, NULL, yx ? x : y, 15);
    mc_json_close(json);
}

static void
write_tileset_box(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_grid *grid = ask->link->grid;
    mc_extent box = ask->link->extent;
    bool yx = mc_grid_is_yx(grid);
    (void)mc_tileset_data_extent(&box, ask->tileset, ask->link, ask->pool);
    for (int i = 1; i < ask->layer_count; i++) {
        mc_extent each = ask->layers[i].link->extent;
        (void)mc_tileset_data_extent(&each, ask->layers[i].tileset, ask->layers[i].link, ask->pool);
        box = mc_extent_union(&box, &each);
    }
    mc_json_open_object(json, "boundingBox");
    write_corner_point(json, "lowerLeft", yx, box.minx, box.miny);
    write_corner_point(json, "upperRight", yx, box.maxx, box.maxy);
    mc_json_string(json, "crs", mc_grid_crs_uri(grid, ask->pool));
    mc_json_close(json);
}

static const char *
schema_type(const mc_vector_attribute *attribute)
{
    static const char *const types[] = {
        [MC_ATTRIBUTE_TEXT] = "string", [MC_ATTRIBUTE_NUMBER] = "number", [MC_ATTRIBUTE_BOOLEAN] = "boolean"
    };
    return types[attribute->kind];
}

/* The attributes of a layer of vector tiles as a schema of their properties. */
static void
write_layer_schema(mc_json_writer *json, const mc_vector_layer_info *layer)
{
    mc_json_open_object(json, "propertiesSchema");
    mc_json_string(json, "type", "object");
    mc_json_open_object(json, "properties");
    for (int i = 0; layer->attributes != NULL && i < layer->attributes->nelts; i++) {
        const mc_vector_attribute *attribute = &APR_ARRAY_IDX(layer->attributes, i, mc_vector_attribute);
        mc_json_open_object(json, attribute->name);
        mc_json_string(json, "type", schema_type(attribute));
        mc_json_close(json);
    }
    mc_json_close(json);
    mc_json_close(json);
}

static void
write_vector_layer(mc_json_writer *json, const mc_vector_layer_info *layer, apr_pool_t *pool)
{
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", layer->name);
    mc_json_string(json, "dataType", "vector");
    mc_json_string(json, "minTileMatrix", apr_itoa(pool, layer->minzoom));
    mc_json_string(json, "maxTileMatrix", apr_itoa(pool, layer->maxzoom));
    write_layer_schema(json, layer);
    mc_json_close(json);
}

/* Of images, the collections that the tiles show, the lowest first (OGC 20-057, 11). */
static void
write_collections_as_layers(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    mc_json_open_array(json, "layers");
    for (int i = 0; i < ask->layer_count || i == 0; i++) {
        const mc_tileset *tileset = ask->layer_count > 0 ? ask->layers[i].tileset : ask->tileset;
        mc_json_open_object(json, NULL);
        mc_json_string(json, "id", tileset->name);
        mc_json_string(json, "title", mc_tileset_title(tileset));
        mc_json_string(json, "dataType", "map");
        mc_json_close(json);
    }
    mc_json_close(json);
}

static mc_error *
write_tileset_layers(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    apr_array_header_t *layers = NULL;
    if (!mc_ogcapi_is_vector(ask->tileset)) {
        write_collections_as_layers(json, ask);
        return MC_OK;
    }
    MC_TRY(mc_tileset_layers(&layers, ask->tileset, ask->link->grid, ask->ctx, ask->pool));
    if (layers == NULL || layers->nelts == 0)
        return MC_OK;
    mc_json_open_array(json, "layers");
    for (int i = 0; i < layers->nelts; i++)
        write_vector_layer(json, &APR_ARRAY_IDX(layers, i, mc_vector_layer_info), ask->pool);
    mc_json_close(json);
    return MC_OK;
}

/* The documents of a tile set, then a template for each media type of its tiles. */
static void
write_tileset_links(mc_json_writer *json, const mc_ogcapi_ask *ask, const char *id)
{
    mc_ogcapi_media media[MC_OGCAPI_IMAGES + 1];
    int count = mc_ogcapi_tile_media(media, ask->tileset, ask->call, ask->pool);
    mc_ogcapi_open_links(json, ask);
    if (ask->layer_count < 2)
        mc_ogcapi_link(json, "describedby", "application/json", "TileJSON", tileset_address(ask, id, "", "f=tilejson"));
    write_scheme_link(json, ask, id);
    for (int i = 0; i < ask->layer_count || i == 0; i++) {
        const mc_tileset *tileset = ask->layer_count > 0 ? ask->layers[i].tileset : ask->tileset;
        mc_ogcapi_link(json, MC_OGCAPI_REL "geodata", "application/json", "The collection",
                       mc_ogcapi_url(ask, "/collections/%s", mc_url_segment(tileset->name, ask->pool)));
    }
    for (int i = 0; i < count; i++)
        mc_ogcapi_link_template(json, "item", media[i].mime, apr_pstrcat(ask->pool, "Tiles as ", media[i].mime, NULL),
                                tileset_address(ask, id, "/{tileMatrix}/{tileRow}/{tileCol}",
                                                apr_pstrcat(ask->pool, "f=", media[i].name, NULL)));
    mc_json_close(json);
    mc_json_open_array(json, "mediaTypes");
    for (int i = 0; i < count; i++)
        mc_json_string(json, NULL, media[i].mime);
    mc_json_close(json);
}

static mc_error *
answer_tilejson(mc_ogcapi_ask *ask, const char *id)
{
    mc_ogcapi_media media[MC_OGCAPI_IMAGES + 1];
    const mc_tile_request tile = { .tileset = ask->tileset, .link = ask->link };
    mc_ogcapi_tile_media(media, ask->tileset, ask->call, ask->pool);
    if (ask->layer_count > 1)
        return mc_error_located(ask->pool, MC_ERR_INVALID_PARAMETER, "f",
                                "TileJSON is of one collection, and %d are named", ask->layer_count);
    const char *url = tileset_address(ask, id, "/{z}/{y}/{x}", apr_pstrcat(ask->pool, "f=", media[0].name, NULL));
    return mc_tilejson_at(ask->request, &tile, url, true, ask->ctx, ask->pool);
}

mc_error *
mc_ogcapi_tileset(mc_ogcapi_ask *ask)
{
    const char *id = mc_tile_matrix_set_id(ask->link->grid, ask->pool);
    MC_TRY(mc_ogcapi_check_kind(ask));
    if (ask->form == MC_OGCAPI_TILEJSON)
        return answer_tilejson(ask, id);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    mc_tileset_ask_place(ask->tileset, ask->ctx);
    for (int i = 1; i < ask->layer_count; i++)
        mc_tileset_ask_place(ask->layers[i].tileset, ask->ctx);
    ask->title = apr_pstrcat(ask->pool, mc_ogcapi_titles(ask), ", ", id, NULL);
    mc_json_open_object(json, NULL);
    write_tileset_head(json, ask, ask->link, id);
    if (ask->layer_count < 2) {
        mc_ogcapi_member(json, "description", mc_meta(ask->tileset->metadata, "abstract"));
        mc_ogcapi_member(json, "attribution", mc_meta(ask->tileset->metadata, "attribution"));
    }
    write_tileset_box(json, ask);
    write_tileset_limits(json, ask);
    MC_TRY(write_tileset_layers(json, ask));
    write_tileset_links(json, ask, id);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

/* --- tile matrix sets ------------------------------------------------------------------------------------------- */

/* Whether a collection has tiles in a grid. */
static bool
is_grid_used(const mc_config *config, const mc_grid *grid)
{
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, const mc_tileset *);
        for (int j = 0; mc_ogcapi_offers(tileset) && j < tileset->link_count; j++)
            if (tileset->links[j]->grid == grid)
                return true;
    }
    return false;
}

static void
write_listed_set(mc_json_writer *json, const mc_ogcapi_ask *ask, const mc_grid *grid, const char *id)
{
    const mc_tile_matrix_set *set = mc_tile_matrix_set_of(grid);
    const char *title = mc_meta(grid->metadata, "title");
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", id);
    mc_json_string(json, "title", set != NULL ? set->title : title != NULL ? title : grid->name);
    if (set != NULL)
        mc_json_string(json, "uri", mc_tile_matrix_set_uri(set, ask->pool));
    mc_json_string(json, "crs", mc_grid_crs_uri(grid, ask->pool));
    mc_json_open_array(json, "links");
    mc_ogcapi_link(json, "self", "application/json", "The definition",
                   mc_ogcapi_url(ask, "/tileMatrixSets/%s", mc_url_segment(id, ask->pool)));
    mc_json_close(json);
    mc_json_close(json);
}

mc_error *
mc_ogcapi_sets(mc_ogcapi_ask *ask)
{
    const mc_config *config = ask->call->config;
    apr_hash_t *listed = apr_hash_make(ask->pool);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    ask->title = "Tile matrix sets";
    mc_json_open_object(json, NULL);
    mc_ogcapi_open_links(json, ask);
    mc_json_close(json);
    mc_json_open_array(json, "tileMatrixSets");
    for (int i = 0; i < config->grids->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(config->grids, i, const mc_grid *);
        const char *id = mc_tile_matrix_set_id(grid, ask->pool);
        if (apr_hash_get(listed, id, APR_HASH_KEY_STRING) != NULL || !is_grid_used(config, grid))
            continue;
        apr_hash_set(listed, id, APR_HASH_KEY_STRING, id);
        write_listed_set(json, ask, grid, id);
    }
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

mc_error *
mc_ogcapi_set(mc_ogcapi_ask *ask)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    ask->title = mc_tile_matrix_set_id(ask->grid, ask->pool);
    mc_json_open_object(json, NULL);
    mc_tile_matrix_set_write(json, ask->grid, ask->pool);
    mc_ogcapi_open_links(json, ask);
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}
