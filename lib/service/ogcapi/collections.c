/* Collections (OGC 20-024, 7). */
#include <apr_strings.h>

#include "service/documents.h"
#include "service/ogcapi/ogcapi.h"

static void
write_collection_members(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_tileset *tileset = ask->tileset;
    mc_json_string(json, "id", tileset->name);
    mc_json_string(json, "title", mc_tileset_title(tileset));
    mc_ogcapi_member(json, "description", mc_meta(tileset->metadata, "abstract"));
    mc_ogcapi_member(json, "attribution", mc_meta(tileset->metadata, "attribution"));
    mc_json_string(json, "dataType", mc_ogcapi_is_vector(tileset) ? "vector" : "map");
    mc_ogcapi_extent(json, ask);
    mc_ogcapi_collection_crs(json, tileset, ask->pool);
}

/* The map of a collection in each of its media types. */
static void
write_map_links(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    mc_ogcapi_media media[MC_OGCAPI_IMAGES + 1];
    int count = mc_ogcapi_tile_media(media, ask->tileset, ask->call, ask->pool);
    const char *name = mc_url_segment(ask->tileset->name, ask->pool);
    for (int i = 0; i < count; i++)
        mc_ogcapi_link(json, MC_OGCAPI_REL "map", media[i].mime, "A map",
                       mc_ogcapi_url(ask, "/collections/%s/map?f=%s", name, media[i].name));
}

static void
write_collection_links(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_tileset *tileset = ask->tileset;
    bool vector = mc_ogcapi_is_vector(tileset);
    mc_metadata_link about;
    if (mc_metadata_find_link(&about, tileset->metadata))
        mc_ogcapi_link(json, "describedby", about.format, "About the data", mc_url_clean(about.url, ask->pool));
    mc_ogcapi_link(json, vector ? MC_OGCAPI_REL "tilesets-vector" : MC_OGCAPI_REL "tilesets-map", "application/json",
                   vector ? "Vector tile sets" : "Tile sets of images",
                   mc_ogcapi_url(ask, "%s", mc_ogcapi_tiles_path(tileset, ask->pool)));
    if (!vector)
        write_map_links(json, ask);
    if (mc_ogcapi_has_styles(tileset))
        mc_ogcapi_link(json, MC_OGCAPI_REL "styles", "application/json", "Styles",
                       mc_ogcapi_url(ask, "/collections/%s/styles", mc_url_segment(tileset->name, ask->pool)));
}

mc_error *
mc_ogcapi_collection(mc_ogcapi_ask *ask)
{
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    mc_tileset_ask_place(ask->tileset, ask->ctx);
    ask->title = mc_tileset_title(ask->tileset);
    if (!mc_ogcapi_is_vector(ask->tileset))
        ask->picture = apr_pstrcat(ask->pool, "/collections/", mc_url_segment(ask->tileset->name, ask->pool),
                                   "/map?width=480", NULL);
    mc_json_open_object(json, NULL);
    write_collection_members(json, ask);
    mc_ogcapi_open_links(json, ask);
    write_collection_links(json, ask);
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

static void
write_listed_collection(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const char *name = mc_url_segment(ask->tileset->name, ask->pool);
    mc_json_open_object(json, NULL);
    write_collection_members(json, ask);
    mc_json_open_array(json, "links");
    mc_ogcapi_link(json, "self", "application/json", "This collection", mc_ogcapi_url(ask, "/collections/%s", name));
    write_collection_links(json, ask);
    mc_json_close(json);
    mc_json_close(json);
}

static mc_error *
write_collections(mc_ogcapi_ask *ask)
{
    const apr_array_header_t *tilesets = ask->call->config->tilesets;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    mc_json_open_object(json, NULL);
    mc_ogcapi_open_links(json, ask);
    mc_json_close(json);
    mc_json_open_array(json, "collections");
    for (int i = 0; i < tilesets->nelts; i++) {
        ask->tileset = APR_ARRAY_IDX(tilesets, i, mc_tileset *);
        if (mc_ogcapi_offers(ask->tileset) && ask->tileset->not_built == NULL)
            write_listed_collection(json, ask);
    }
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

/* The one document that grows with the tilesets is kept once it is written. */
mc_error *
mc_ogcapi_collections(mc_ogcapi_ask *ask)
{
    bool html = ask->form == MC_OGCAPI_HTML;
    const mc_call *call = ask->call;
    mc_tilesets_ask_places(call->config->tilesets, ask->ctx);
    const char *sequence = mc_update_sequence(call, ask->ctx, ask->pool);
    const char *key =
        mc_document_key(call, html ? apr_pstrcat(ask->pool, "collections html ", call->full_path, NULL) : "collections",
                        sequence, ask->pool);
    ask->title = "Collections";
    if (!mc_document_recall(ask->request, key, html ? "text/html; charset=utf-8" : ask->json_mime, call, ask->ctx,
                            ask->pool)) {
        MC_TRY(write_collections(ask));
        mc_document_keep(ask->request, key, call, ask->ctx);
    }
    mc_ogcapi_finish(ask);
    return MC_OK;
}
