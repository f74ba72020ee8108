/*
 * Styles (OGC 20-009, the draft of OGC API Styles): those of a collection, its default one and its palettes, and all
 * of them as styles of the dataset, where a style is called COLLECTION:STYLE.
 */
#include <apr_strings.h>
#include <string.h>

#include "service/ogcapi/style_sheet.h"
#include "text/accept.h"
#include "text/text.h"

enum { STYLE_ID_MAX = 2000 };

/* The styles of a tileset: -1 is the default one. Any name of a palette can stand in a path (<palette>). */
static const mc_color_map *
style_at(const mc_tileset *tileset, int index)
{
    return index < 0 ? NULL : tileset->palettes[index];
}

bool
mc_ogcapi_has_styles(const mc_tileset *tileset)
{
    return tileset->palette_count > 0 || tileset->stored_palette != NULL || mc_style_web_link(tileset) != NULL ||
           (tileset->source != NULL && tileset->source->ops->styles != NULL);
}

/* Names of tilesets and of styles may have colons, too: the longest name of a tileset that fits counts. */
bool
mc_ogcapi_find_global_style(mc_ogcapi_ask *ask, const char *id)
{
    size_t size = strlen(id);
    char *name = size > STYLE_ID_MAX ? NULL : apr_pstrdup(ask->pool, id);
    for (; name != NULL && size > 0; size--) {
        if (id[size] != ':' || id[size + 1] == '\0')
            continue;
        name[size] = '\0';
        mc_tileset *tileset = mc_call_tileset(ask->call, name, ask->pool);
        const mc_color_map *style;
        if (tileset == NULL || !mc_ogcapi_offers(tileset) || tileset->not_built != NULL ||
            !mc_tileset_find_style(&style, tileset, id + size + 1))
            continue;
        ask->tileset = tileset;
        ask->style = style;
        return true;
    }
    return false;
}

/* --- addresses -------------------------------------------------------------------------------------------------- */

/* A style where a list has it. */
typedef struct listed_style {
    const mc_tileset *tileset;
    const mc_color_map *style;
    const char *id, *title;
    const char *path; /* of the style, seen from /ogcapi */
} listed_style;

static listed_style
describe_style(const mc_tileset *tileset, const mc_color_map *style, bool global, apr_pool_t *pool)
{
    const mc_color_map *colours = style != NULL ? style : tileset->stored_palette;
    const char *name = mc_ogcapi_style_name(style), *title = mc_tileset_title(tileset);
    listed_style listed = { .tileset = tileset, .style = style };
    listed.id = global ? apr_pstrcat(pool, tileset->name, ":", name, NULL) : name;
    listed.title = colours != NULL ? apr_pstrcat(pool, title, ", ", colours->title, NULL) : title;
    listed.path = global ? apr_pstrcat(pool, "/styles/", mc_url_segment(listed.id, pool), NULL)
                         : apr_pstrcat(pool, "/collections/", mc_url_segment(tileset->name, pool), "/styles/",
                                       mc_url_segment(name, pool), NULL);
    return listed;
}

static const char *
sheet_address(const listed_style *listed, const mc_style_sheet *sheet, const mc_ogcapi_ask *ask)
{
    const char *layer =
        sheet->layer == NULL
            ? ""
            : apr_pstrcat(ask->pool, "&layer=", mc_url_encode(sheet->layer, "", true, false, ask->pool), NULL);
    return mc_ogcapi_url(ask, "%s?f=%s%s", listed->path, sheet->f, layer);
}

/* The sheets, then the map and the tiles of the style. */
static void
write_style_links(mc_json_writer *json, const listed_style *listed, const apr_array_header_t *sheets,
                  const mc_ogcapi_ask *ask)
{
    for (int i = 0; i < sheets->nelts; i++) {
        const mc_style_sheet *sheet = &APR_ARRAY_IDX(sheets, i, mc_style_sheet);
        const char *title = sheet->layer == NULL
                                ? sheet->title
                                : apr_pstrcat(ask->pool, sheet->title, " of the layer ", sheet->layer, NULL);
        mc_ogcapi_link(json, "stylesheet", sheet->mime, title, sheet_address(listed, sheet, ask));
    }
    if (mc_ogcapi_is_vector(listed->tileset))
        return;
    const char *name = mc_url_segment(listed->tileset->name, ask->pool);
    mc_ogcapi_link(json, MC_OGCAPI_REL "map", "image/png", "A map in the style",
                   mc_ogcapi_url(ask, "%s/map?f=png", listed->path));
    mc_ogcapi_link(json, MC_OGCAPI_REL "tilesets-map", "application/json", "Tile sets in the style",
                   mc_ogcapi_url(ask, "/collections/%s/styles/%s/map/tiles", name,
                                 mc_url_segment(mc_ogcapi_style_name(listed->style), ask->pool)));
}

/* --- the list --------------------------------------------------------------------------------------------------- */

/* Nothing where there is no sheet: a style of the standard has one at least. */
static void
write_listed_style(mc_json_writer *json, const listed_style *listed, const mc_ogcapi_ask *ask)
{
    const apr_array_header_t *sheets = mc_style_sheets(listed->tileset, listed->style, ask->pool);
    if (sheets->nelts == 0)
        return;
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", listed->id);
    mc_json_string(json, "title", listed->title);
    mc_json_open_array(json, "links");
    write_style_links(json, listed, sheets, ask);
    mc_ogcapi_link(json, "describedby", "application/json", "About the style",
                   mc_ogcapi_url(ask, "%s/metadata?f=json", listed->path));
    mc_json_close(json);
    mc_json_close(json);
}

static void
write_tileset_styles(mc_json_writer *json, const mc_tileset *tileset, bool global, mc_ogcapi_ask *ask)
{
    for (int i = -1; i < tileset->palette_count; i++) {
        const mc_color_map *style = style_at(tileset, i);
        const listed_style listed = describe_style(tileset, style, global, ask->pool);
        if (global && (!mc_ogcapi_find_global_style(ask, listed.id) || ask->tileset != tileset))
            continue;
        write_listed_style(json, &listed, ask);
    }
}

mc_error *
mc_ogcapi_styles(mc_ogcapi_ask *ask)
{
    const apr_array_header_t *tilesets = ask->call->config->tilesets;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    bool global = ask->collection == NULL;
    ask->title = global ? "Styles" : apr_pstrcat(ask->pool, mc_tileset_title(ask->tileset), ": styles", NULL);
    mc_json_open_object(json, NULL);
    if (!global && mc_style_sheets(ask->tileset, NULL, ask->pool)->nelts > 0)
        mc_json_string(json, "default", mc_ogcapi_style_name(NULL));
    mc_ogcapi_open_links(json, ask);
    mc_json_close(json);
    mc_json_open_array(json, "styles");
    if (!global)
        write_tileset_styles(json, ask->tileset, false, ask);
    for (int i = 0; global && i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, const mc_tileset *);
        if (mc_ogcapi_offers(tileset) && tileset->not_built == NULL)
            write_tileset_styles(json, tileset, true, ask);
    }
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

/* --- a sheet ---------------------------------------------------------------------------------------------------- */

static mc_error *
refuse_sheet(const mc_ogcapi_ask *ask, const apr_array_header_t *sheets)
{
    const char *list = "";
    for (int i = 0; i < sheets->nelts; i++)
        list = apr_pstrcat(ask->pool, list, i == 0 ? "" : ", ", APR_ARRAY_IDX(sheets, i, mc_style_sheet).mime, NULL);
    if (sheets->nelts == 0)
        return mc_error_create(ask->pool, MC_ERR_NOT_FOUND, "there is no document of the style %s", ask->style_id);
    if (ask->sheet_layer != NULL)
        return mc_error_located(ask->pool, MC_ERR_NOT_FOUND, "layer", "the style has no such document of that layer");
    return mc_error_create(ask->pool, ask->sheet >= 0 ? MC_ERR_INVALID_PARAMETER : MC_ERR_NOT_ACCEPTABLE,
                           "the style is to be had as %s", list);
}

/* Documents in XML and in JSON go by these names, too. */
static int
sheet_weight(const char *accept, const mc_style_sheet *sheet)
{
    bool mapbox = sheet->encoding == MC_STYLE_MAPBOX;
    const char *const names[] = { sheet->mime, mapbox ? "application/json" : "application/xml",
                                  mapbox ? "application/json" : "text/xml" };
    int most = 0;
    for (int i = 0; i < 3; i++) {
        int weight = mc_accept_weight(accept, names[i]);
        most = weight > most ? weight : most;
    }
    return most;
}

/* The sheet that `f` names, else the one that Accept wants most, the first of equal ones. */
static const mc_style_sheet *
choose_sheet(const apr_array_header_t *sheets, const mc_ogcapi_ask *ask)
{
    const char *accept = ask->sheet >= 0 ? NULL : mc_call_header(ask->call, "Accept");
    const mc_style_sheet *found = NULL;
    int most = 0;
    for (int i = 0; i < sheets->nelts; i++) {
        const mc_style_sheet *sheet = &APR_ARRAY_IDX(sheets, i, mc_style_sheet);
        int weight = sheet_weight(accept, sheet);
        if ((ask->sheet >= 0 && (int)sheet->encoding != ask->sheet) || weight <= most ||
            (ask->sheet_layer != NULL && (sheet->layer == NULL || strcmp(sheet->layer, ask->sheet_layer) != 0)))
            continue;
        found = sheet;
        most = weight;
    }
    return found;
}

mc_error *
mc_ogcapi_style(mc_ogcapi_ask *ask)
{
    mc_document *document = &ask->request->u.document;
    const apr_array_header_t *sheets = mc_style_sheets(ask->tileset, ask->style, ask->pool);
    const mc_style_sheet *sheet = choose_sheet(sheets, ask);
    if (sheet == NULL)
        return refuse_sheet(ask, sheets);
    const char *styled = ask->style == NULL ? "" : "/styles/", *name = ask->style == NULL ? "" : ask->style->name;
    const char *tiles = mc_ogcapi_tiles_path(ask->tileset, ask->pool);
    if (ask->style != NULL)
        tiles = apr_pstrcat(ask->pool, "/collections/", mc_url_segment(ask->tileset->name, ask->pool), styled,
                            mc_url_segment(name, ask->pool), "/map/tiles", NULL);
    ask->request->kind = MC_REQUEST_DOCUMENT;
    MC_TRY(
        mc_style_sheet_write(&document->text, sheet, ask, mc_ogcapi_url(ask, "%s/WebMercatorQuad?f=tilejson", tiles)));
    document->mime = sheet->mime;
    document->vary = ask->sheet < 0 ? "Accept" : NULL;
    return MC_OK;
}

/* --- metadata --------------------------------------------------------------------------------------------------- */

static void
write_style_sheets(mc_json_writer *json, const listed_style *listed, const apr_array_header_t *sheets,
                   const mc_ogcapi_ask *ask)
{
    mc_json_open_array(json, "stylesheets");
    for (int i = 0; i < sheets->nelts; i++) {
        const mc_style_sheet *sheet = &APR_ARRAY_IDX(sheets, i, mc_style_sheet);
        mc_json_open_object(json, NULL);
        mc_json_string(json, "title", sheet->title);
        mc_json_string(json, "version", sheet->version);
        mc_json_string(json, "specification", sheet->specification);
        mc_json_boolean(json, "native", sheet->file != NULL);
        mc_json_open_object(json, "link");
        mc_json_string(json, "rel", "stylesheet");
        mc_json_string(json, "type", sheet->mime);
        mc_json_string(json, "href", sheet_address(listed, sheet, ask));
        mc_json_close(json);
        mc_json_close(json);
    }
    mc_json_close(json);
}

/* What the style needs: the layers of vector data with their attributes, else the collection itself. */
static mc_error *
write_style_layers(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    apr_array_header_t *layers = NULL;
    if (mc_ogcapi_is_vector(ask->tileset) && ask->tileset->link_count > 0)
        MC_TRY(mc_tileset_layers(&layers, ask->tileset, ask->tileset->links[0]->grid, ask->ctx, ask->pool));
    mc_json_open_array(json, "layers");
    if (layers == NULL) {
        mc_json_open_object(json, NULL);
        mc_json_string(json, "id", ask->tileset->name);
        mc_json_close(json);
    }
    for (int i = 0; layers != NULL && i < layers->nelts; i++) {
        mc_json_open_object(json, NULL);
        mc_json_string(json, "id", APR_ARRAY_IDX(layers, i, mc_vector_layer_info).name);
        mc_json_close(json);
    }
    mc_json_close(json);
    return MC_OK;
}

mc_error *
mc_ogcapi_style_metadata(mc_ogcapi_ask *ask)
{
    const listed_style listed = describe_style(ask->tileset, ask->style, ask->collection == NULL, ask->pool);
    const apr_array_header_t *sheets = mc_style_sheets(ask->tileset, ask->style, ask->pool);
    if (sheets->nelts == 0)
        return refuse_sheet(ask, sheets);
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    ask->title = listed.title;
    if (!mc_ogcapi_is_vector(ask->tileset))
        ask->picture = apr_pstrcat(ask->pool, listed.path, "/map?width=480", NULL);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "id", listed.id);
    mc_json_string(json, "title", listed.title);
    mc_ogcapi_member(json, "description", mc_meta(ask->tileset->metadata, "abstract"));
    mc_json_string(json, "scope", "style");
    write_style_sheets(json, &listed, sheets, ask);
    MC_TRY(write_style_layers(json, ask));
    mc_ogcapi_open_links(json, ask);
    write_style_links(json, &listed, sheets, ask);
    if (!mc_ogcapi_is_vector(ask->tileset))
        mc_ogcapi_link(json, "preview", "image/png", "A small map",
                       mc_ogcapi_url(ask, "%s/map?f=png&width=256", listed.path));
    mc_ogcapi_link(json, MC_OGCAPI_REL "geodata", "application/json", "The collection",
                   mc_ogcapi_url(ask, "/collections/%s", mc_url_segment(ask->tileset->name, ask->pool)));
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}
