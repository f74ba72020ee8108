/* The landing page, what is conformed to, and collections (OGC 19-072, 7; OGC 20-024, 7). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "service/documents.h"
#include "service/ogcapi/ogcapi.h"
#include "text/time.h"

static bool
has_kind(const mc_ogcapi_ask *ask, bool vector)
{
    const apr_array_header_t *tilesets = ask->call->config->tilesets;
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, const mc_tileset *);
        if (mc_ogcapi_offers(tileset) && mc_ogcapi_is_vector(tileset) == vector)
            return true;
    }
    return false;
}

mc_error *
mc_ogcapi_landing(mc_ogcapi_ask *ask)
{
    const mc_metadata *metadata = ask->call->config->metadata;
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    const char *title = mc_meta(metadata, "title");
    ask->title = title != NULL ? title : "mapcache";
    mc_json_open_object(json, NULL);
    mc_json_string(json, "title", ask->title);
    mc_ogcapi_member(json, "description", mc_meta(metadata, "abstract"));
    mc_ogcapi_member(json, "attribution", mc_meta(metadata, "attribution"));
    mc_ogcapi_open_links(json, ask);
    mc_ogcapi_link(json, "service-desc", MC_OGCAPI_OPENAPI, "The definition of this API",
                   mc_ogcapi_url(ask, "/api?f=json"));
    mc_ogcapi_link(json, "service-doc", "text/html", "The definition of this API as a page",
                   mc_ogcapi_url(ask, "/api?f=html"));
    mc_ogcapi_link(json, "conformance", "application/json", "What this server conforms to",
                   mc_ogcapi_url(ask, "/conformance"));
    mc_ogcapi_link(json, MC_OGCAPI_REL "conformance", "application/json", "What this server conforms to",
                   mc_ogcapi_url(ask, "/conformance"));
    mc_ogcapi_link(json, "data", "application/json", "The collections", mc_ogcapi_url(ask, "/collections"));
    mc_ogcapi_link(json, MC_OGCAPI_REL "data", "application/json", "The collections",
                   mc_ogcapi_url(ask, "/collections"));
    mc_ogcapi_link(json, MC_OGCAPI_REL "tiling-schemes", "application/json", "The tile matrix sets",
                   mc_ogcapi_url(ask, "/tileMatrixSets"));
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

/* Each class has its abstract tests in tests/integration/test_ogcapi_*.py. */
mc_error *
mc_ogcapi_conformance(mc_ogcapi_ask *ask)
{
#define SPEC "http://www.opengis.net/spec/"
    static const char *const always[] = {
        SPEC "ogcapi-common-1/1.0/conf/core",
        SPEC "ogcapi-common-1/1.0/conf/json",
        SPEC "ogcapi-common-1/1.0/conf/html",
        SPEC "ogcapi-common-1/1.0/conf/landing-page",
        SPEC "ogcapi-common-1/1.0/conf/oas30",
        SPEC "ogcapi-common-2/1.0/conf/collections",
        SPEC "ogcapi-common-2/1.0/conf/json",
        SPEC "ogcapi-common-2/1.0/conf/html",
        SPEC "ogcapi-tiles-1/1.0/conf/core",
        SPEC "ogcapi-tiles-1/1.0/conf/tileset",
        SPEC "ogcapi-tiles-1/1.0/conf/tilesets-list",
        SPEC "ogcapi-tiles-1/1.0/conf/geodata-tilesets",
        SPEC "ogcapi-tiles-1/1.0/conf/datetime",
        SPEC "ogcapi-tiles-1/1.0/conf/oas30",
        SPEC "tms/2.0/conf/tilematrixset",
        SPEC "tms/2.0/conf/tilematrixsetlimits",
        SPEC "tms/2.0/conf/json-tilematrixset",
        SPEC "tms/2.0/conf/json-tilematrixsetlimits",
        SPEC "tms/2.0/conf/json-tilesetmetadata",
    };
    static const char *const of_images[] = {
        SPEC "ogcapi-tiles-1/1.0/conf/png",    SPEC "ogcapi-tiles-1/1.0/conf/jpeg",
        SPEC "ogcapi-maps-1/1.0/conf/core",    SPEC "ogcapi-maps-1/1.0/conf/crs",
        SPEC "ogcapi-maps-1/1.0/conf/scaling", SPEC "ogcapi-maps-1/1.0/conf/collection-map",
        SPEC "ogcapi-maps-1/1.0/conf/png",     SPEC "ogcapi-maps-1/1.0/conf/jpeg",
        SPEC "ogcapi-maps-1/1.0/conf/oas30",
    };
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, ask->pool);
    ask->title = "Conformance";
    mc_json_open_object(json, NULL);
    mc_ogcapi_open_links(json, ask);
    mc_json_close(json);
    mc_json_open_array(json, "conformsTo");
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        mc_json_string(json, NULL, always[i]);
    if (has_kind(ask, false)) {
        for (size_t i = 0; i < sizeof(of_images) / sizeof(of_images[0]); i++)
            mc_json_string(json, NULL, of_images[i]);
    }
    if (has_kind(ask, true))
        mc_json_string(json, NULL, SPEC "ogcapi-tiles-1/1.0/conf/mvt");
    mc_json_close(json);
    mc_json_close(json);
    return mc_ogcapi_respond(ask, json);
}

/* --- extents ---------------------------------------------------------------------------------------------------- */

/* As RFC 3339, 5.6 has a time: also midnights with their hour. */
static const char *
full_time(int64_t time_us, apr_pool_t *pool)
{
    const char *text = mc_time_text(time_us, pool);
    return strchr(text, 'T') != NULL ? text : apr_pstrcat(pool, text, "T00:00:00Z", NULL);
}

static void
write_temporal_extent(mc_json_writer *json, mc_dimension *dimension, const mc_ogcapi_ask *ask)
{
    const apr_array_header_t *values = mc_dimension_values_known(dimension, ask->tileset->name, ask->ctx);
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int i = 0; i < values->nelts; i++) {
        const char *value = APR_ARRAY_IDX(values, i, const char *);
        mc_time_span span;
        if (mc_time_parse(&span, value, strlen(value), apr_time_now()) != NULL)
            continue;
        first = span.start_us < first ? span.start_us : first;
        last = span.end_us > last ? span.end_us : last;
    }
    mc_json_open_object(json, "temporal");
    mc_json_open_array(json, "interval");
    mc_json_open_array(json, NULL);
    mc_json_string(json, NULL, first == INT64_MAX ? NULL : full_time(first, ask->pool));
    mc_json_string(json, NULL, last == INT64_MIN ? NULL : full_time(last - 1000000, ask->pool));
    mc_json_close(json);
    mc_json_close(json);
    mc_json_string(json, "trs", "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian");
    mc_json_close(json);
}

/* Another dimension as OGC 20-024 describes it: its values are a grid of coordinates. */
static void
write_other_extent(mc_json_writer *json, mc_dimension *dimension, const mc_ogcapi_ask *ask)
{
    const apr_array_header_t *values = mc_dimension_values_known(dimension, ask->tileset->name, ask->ctx);
    int last = values->nelts - 1;
    mc_json_open_object(json, dimension->name);
    mc_json_open_array(json, "interval");
    mc_json_open_array(json, NULL);
    mc_json_string(json, NULL, last < 0 ? NULL : APR_ARRAY_IDX(values, 0, const char *));
    mc_json_string(json, NULL, last < 0 ? NULL : APR_ARRAY_IDX(values, last, const char *));
    mc_json_close(json);
    mc_json_close(json);
    mc_ogcapi_member(json, "unit", *mc_dimension_units(dimension) == '\0' ? NULL : mc_dimension_units(dimension));
    mc_json_open_object(json, "grid");
    mc_json_integer(json, "cellsCount", values->nelts);
    mc_json_open_array(json, "coordinates");
    for (int i = 0; i < values->nelts; i++)
        mc_json_string(json, NULL, APR_ARRAY_IDX(values, i, const char *));
    mc_json_close(json);
    mc_json_close(json);
    mc_json_close(json);
}

/* The box in the storage CRS, as OGC 20-058, 16.2 wants it beside that of CRS84. */
static void
write_storage_box(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_grid_link *link = mc_ogcapi_storage_link(ask->tileset);
    if (link == NULL || link->grid->epsg == 4326)
        return;
    mc_extent box = link->extent;
    bool yx = mc_grid_is_yx(link->grid);
    (void)mc_tileset_data_extent(&box, ask->tileset, link, ask->pool);
    const double numbers[] = { yx ? box.miny : box.minx, yx ? box.minx : box.miny, yx ? box.maxy : box.maxx,
                               yx ? box.maxx : box.maxy };
    mc_json_open_array(json, "storageCrsBbox");
    mc_json_open_array(json, NULL);
    for (int i = 0; i < 4; i++)
        mc_json_digits(json, NULL, numbers[i], 15);
    mc_json_close(json);
    mc_json_close(json);
}

static void
write_extent(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_tileset *tileset = ask->tileset;
    mc_extent box = mc_tileset_degrees(tileset);
    const double numbers[] = { fmax(box.minx, -180), fmax(box.miny, -90), fmin(box.maxx, 180), fmin(box.maxy, 90) };
    mc_dimension *time = mc_ogcapi_time(tileset);
    mc_json_open_object(json, "extent");
    mc_json_open_object(json, "spatial");
    mc_json_open_array(json, "bbox");
    mc_json_open_array(json, NULL);
    for (int i = 0; i < 4; i++)
        mc_json_digits(json, NULL, numbers[i], 12);
    mc_json_close(json);
    mc_json_close(json);
    mc_json_string(json, "crs", MC_OGCAPI_CRS84);
    write_storage_box(json, ask);
    mc_json_close(json);
    if (time != NULL)
        write_temporal_extent(json, time, ask);
    for (int i = 0; i < tileset->dimension_count; i++)
        if (tileset->dimensions[i] != time)
            write_other_extent(json, tileset->dimensions[i], ask);
    mc_json_close(json);
}

/* The CRSs of its grids, each once. */
static void
write_collection_crs(mc_json_writer *json, const mc_tileset *tileset, apr_pool_t *pool)
{
    mc_json_open_array(json, "crs");
    for (int i = 0; i < tileset->link_count; i++) {
        const char *uri = mc_grid_crs_uri(tileset->links[i]->grid, pool);
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = strcmp(uri, mc_grid_crs_uri(tileset->links[j]->grid, pool)) != 0;
        if (first)
            mc_json_string(json, NULL, uri);
    }
    mc_json_close(json);
    if (mc_ogcapi_storage_link(tileset) != NULL)
        mc_json_string(json, "storageCrs", mc_grid_crs_uri(mc_ogcapi_storage_link(tileset)->grid, pool));
}

static void
write_collection_members(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    const mc_tileset *tileset = ask->tileset;
    mc_json_string(json, "id", tileset->name);
    mc_json_string(json, "title", mc_tileset_title(tileset));
    mc_ogcapi_member(json, "description", mc_meta(tileset->metadata, "abstract"));
    mc_ogcapi_member(json, "attribution", mc_meta(tileset->metadata, "attribution"));
    mc_json_string(json, "dataType", mc_ogcapi_is_vector(tileset) ? "vector" : "map");
    write_extent(json, ask);
    write_collection_crs(json, tileset, ask->pool);
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
