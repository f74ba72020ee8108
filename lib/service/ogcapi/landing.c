/* The landing page, and what is conformed to (OGC 19-072, 7; OGC 20-058, 20). */
#include "service/ogcapi/ogcapi.h"

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

/* The map and the tiles of the dataset. */
static void
write_dataset_links(mc_json_writer *json, const mc_ogcapi_ask *ask)
{
    if (has_kind(ask, false)) {
        mc_ogcapi_link(json, MC_OGCAPI_REL "map", "image/png", "A map: collections=A,B says of what",
                       mc_ogcapi_url(ask, "/map?f=png"));
        mc_ogcapi_link(json, MC_OGCAPI_REL "tilesets-map", "application/json", "Tile sets of images of the dataset",
                       mc_ogcapi_url(ask, "/map/tiles"));
    }
    if (has_kind(ask, true))
        mc_ogcapi_link(json, MC_OGCAPI_REL "tilesets-vector", "application/json", "Vector tile sets of the dataset",
                       mc_ogcapi_url(ask, "/tiles"));
}

/* Where all collections lie together, and the CRSs of the map that the dataset has without more words (OGC 20-058, 20):
 * those of the first collection of images. */
static void
write_dataset_extent(mc_json_writer *json, mc_ogcapi_ask *ask)
{
    const apr_array_header_t *tilesets = ask->call->config->tilesets;
    mc_extent all = { 180, 90, -180, -90 };
    for (int i = 0; i < tilesets->nelts; i++) {
        mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, mc_tileset *);
        if (!mc_ogcapi_offers(tileset) || tileset->not_built != NULL)
            continue;
        mc_extent each = mc_tileset_degrees(tileset);
        all = mc_extent_union(&all, &each);
        if (ask->tileset == NULL && !mc_ogcapi_is_vector(tileset))
            ask->tileset = tileset;
    }
    if (ask->tileset == NULL)
        return;
    mc_json_open_object(json, "extent");
    mc_ogcapi_spatial_extent(json, &all, ask);
    mc_json_close(json);
    mc_ogcapi_collection_crs(json, ask->tileset, ask->pool);
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
    mc_ogcapi_link(json, MC_OGCAPI_REL "styles", "application/json", "The styles of all collections",
                   mc_ogcapi_url(ask, "/styles"));
    write_dataset_links(json, ask);
    mc_json_close(json);
    write_dataset_extent(json, ask);
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
        SPEC "ogcapi-tiles-1/1.0/conf/dataset-tilesets",
        SPEC "ogcapi-tiles-1/1.0/conf/collections-selection",
        SPEC "ogcapi-tiles-1/1.0/conf/datetime",
        SPEC "ogcapi-tiles-1/1.0/conf/oas30",
        SPEC "ogcapi-styles-1/1.0/conf/core",
        SPEC "ogcapi-styles-1/1.0/conf/mapbox-styles",
        SPEC "ogcapi-styles-1/1.0/conf/sld-10",
        SPEC "ogcapi-styles-1/1.0/conf/sld-11",
        SPEC "tms/2.0/conf/tilematrixset",
        SPEC "tms/2.0/conf/tilematrixsetlimits",
        SPEC "tms/2.0/conf/tilesetmetadata",
        SPEC "tms/2.0/conf/json-tilematrixset",
        SPEC "tms/2.0/conf/json-tilematrixsetlimits",
        SPEC "tms/2.0/conf/json-tilesetmetadata",
    };
    static const char *const of_images[] = {
        SPEC "ogcapi-tiles-1/1.0/conf/png",
        SPEC "ogcapi-tiles-1/1.0/conf/jpeg",
        SPEC "ogcapi-maps-1/1.0/conf/core",
        SPEC "ogcapi-maps-1/1.0/conf/crs",
        SPEC "ogcapi-maps-1/1.0/conf/scaling",
        SPEC "ogcapi-maps-1/1.0/conf/display-resolution",
        SPEC "ogcapi-maps-1/1.0/conf/spatial-subsetting",
        SPEC "ogcapi-maps-1/1.0/conf/datetime",
        SPEC "ogcapi-maps-1/1.0/conf/general-subsetting",
        SPEC "ogcapi-maps-1/1.0/conf/collection-map",
        SPEC "ogcapi-maps-1/1.0/conf/background",
        SPEC "ogcapi-maps-1/1.0/conf/dataset-map",
        SPEC "ogcapi-maps-1/1.0/conf/collections-selection",
        SPEC "ogcapi-maps-1/1.0/conf/styled-map",
        SPEC "ogcapi-maps-1/1.0/conf/png",
        SPEC "ogcapi-maps-1/1.0/conf/jpeg",
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
