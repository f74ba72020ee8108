/*
 * WMS capabilities: 1.3.0 (valid against capabilities_1_3_0.xsd) and 1.1.1 (valid against WMS_MS_Capabilities.dtd, with
 * an internal subset where there are the TileSet elements that tiling clients look for). docs/reference/services.md
 * 4.7, docs/reference/conformance.md 3.
 */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/documents.h"
#include "service/wms/wms_document.h"

#define PROLOGUE_130 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define DOCTYPE_111                                                                                                    \
    "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"                                                   \
    "<!DOCTYPE WMT_MS_Capabilities SYSTEM \"http://schemas.opengis.net/wms/1.1.1/WMS_MS_Capabilities.dtd\""
#define PROLOGUE_111 DOCTYPE_111 ">\n"
#define PROLOGUE_TILED                                                                                                 \
    DOCTYPE_111 " [\n"                                                                                                 \
                "<!ELEMENT VendorSpecificCapabilities (TileSet*)>\n"                                                   \
                "<!ELEMENT TileSet (SRS, BoundingBox, Resolutions, Width, Height, Format, Layers, Styles)>\n"          \
                "<!ELEMENT Resolutions (#PCDATA)>\n<!ELEMENT Width (#PCDATA)>\n<!ELEMENT Height (#PCDATA)>\n"          \
                "<!ELEMENT Layers (#PCDATA)>\n<!ELEMENT Styles (#PCDATA)>\n]>\n"

/* The address has all of its parts or none (the DTD and the schema want all). */
static void
write_address(const mc_wms_document *doc, const mc_metadata *metadata)
{
    static const char *const rows[][2] = {
        { "Address", "contactaddress" },
        { "City", "contactcity" },
        { "StateOrProvince", "contactstateorprovince" },
        { "PostCode", "contactpostcode" },
        { "Country", "contactcountry" },
    };
    bool any = false;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        any |= mc_meta(metadata, rows[i][1]) != NULL;
    if (!any)
        return;
    mc_xml_open(doc->xml, "ContactAddress");
    mc_xml_element(doc->xml, "AddressType", "postal");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = mc_meta(metadata, rows[i][1]);
        mc_xml_element(doc->xml, rows[i][0], text != NULL ? text : "");
    }
    mc_xml_close(doc->xml);
}

static void
write_contact(const mc_wms_document *doc, const mc_metadata *metadata)
{
    static const char *const keys[] = { "contactname",  "contactorganization", "contactposition",
                                        "contactphone", "contactfacsimile",    "contactelectronicmailaddress",
                                        "contactcity" };
    bool any = false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        any |= mc_meta(metadata, keys[i]) != NULL;
    if (!any)
        return;
    const char *person = mc_meta(metadata, "contactname");
    const char *organization = mc_meta(metadata, "contactorganization");
    mc_xml_open(doc->xml, "ContactInformation");
    if (person != NULL || organization != NULL) {
        mc_xml_open(doc->xml, "ContactPersonPrimary");
        mc_xml_element(doc->xml, "ContactPerson", person != NULL ? person : "");
        mc_xml_element(doc->xml, "ContactOrganization", organization != NULL ? organization : "");
        mc_xml_close(doc->xml);
    }
    mc_xml_element(doc->xml, "ContactPosition", mc_meta(metadata, "contactposition"));
    write_address(doc, metadata);
    mc_xml_element(doc->xml, "ContactVoiceTelephone", mc_meta(metadata, "contactphone"));
    mc_xml_element(doc->xml, "ContactFacsimileTelephone", mc_meta(metadata, "contactfacsimile"));
    mc_xml_element(doc->xml, "ContactElectronicMailAddress", mc_meta(metadata, "contactelectronicmailaddress"));
    mc_xml_close(doc->xml);
}

/* How many layers the largest map may have: <max_pixels> counts those of each. */
static int
layer_limit(const mc_wms *wms)
{
    apr_int64_t most = wms->max_pixels / ((apr_int64_t)wms->maxsize * wms->maxsize);
    if (most > MC_LAYERS_MAX)
        return MC_LAYERS_MAX;
    return most < 1 ? 1 : (int)most;
}

static void
write_wms_service(const mc_wms_document *doc)
{
    const mc_metadata *metadata = doc->call->config->metadata;
    const mc_wms *wms = mc_wms_of(doc->call);
    const char *title = mc_meta(metadata, "title");
    mc_xml_open(doc->xml, "Service");
    mc_xml_element(doc->xml, "Name", doc->v130 ? "WMS" : "OGC:WMS");
    mc_xml_element(doc->xml, "Title", title != NULL ? title : "no title set, add some in metadata");
    mc_xml_element(doc->xml, "Abstract", mc_meta(metadata, "abstract"));
    mc_wms_write_keywords(doc, metadata);
    mc_wms_write_link(doc, "OnlineResource", doc->url);
    write_contact(doc, metadata);
    mc_xml_element(doc->xml, "Fees", mc_meta(metadata, "fees"));
    mc_xml_element(doc->xml, "AccessConstraints", mc_meta(metadata, "accessconstraints"));
    if (doc->v130) {
        mc_xml_elementf(doc->xml, "LayerLimit", "%d", layer_limit(wms));
        mc_xml_elementf(doc->xml, "MaxWidth", "%d", wms->maxsize);
        mc_xml_elementf(doc->xml, "MaxHeight", "%d", wms->maxsize);
    }
    mc_xml_close(doc->xml);
}

static void
write_wms_operation(const mc_wms_document *doc, const char *name, const apr_array_header_t *formats)
{
    mc_xml_open(doc->xml, name);
    for (int i = 0; i < formats->nelts; i++)
        mc_xml_element(doc->xml, "Format", APR_ARRAY_IDX(formats, i, const char *));
    mc_xml_open(doc->xml, "DCPType");
    mc_xml_open(doc->xml, "HTTP");
    mc_xml_open(doc->xml, "Get");
    mc_wms_write_link(doc, "OnlineResource", doc->url);
    for (int i = 0; i < 4; i++)
        mc_xml_close(doc->xml);
}

static void
add_once(apr_array_header_t *texts, const char *text)
{
    for (int i = 0; i < texts->nelts; i++)
        if (strcasecmp(APR_ARRAY_IDX(texts, i, const char *), text) == 0)
            return;
    APR_ARRAY_PUSH(texts, const char *) = text;
}

/* WMS 1.1.1 wants a type of its own; MapCache sends text/xml, which lists of types to be compressed name. */
static const char *
document_type(bool v130, const mc_call *call)
{
    return v130 || !call->service->strict ? "text/xml" : "application/vnd.ogc.wms_xml";
}

/* All info formats that some layer offers. */
static const apr_array_header_t *
collect_wms_info_formats(const mc_wms_document *doc)
{
    apr_array_header_t *formats = apr_array_make(doc->pool, 4, sizeof(const char *));
    const apr_array_header_t *tilesets = doc->call->config->tilesets;
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, mc_tileset *);
        const apr_array_header_t *offered = mc_tileset_info_formats(tileset);
        for (int j = 0; mc_wms_is_listed(doc, tileset) && offered != NULL && j < offered->nelts; j++)
            add_once(formats, APR_ARRAY_IDX(offered, j, const char *));
    }
    return formats;
}

static void
write_request(const mc_wms_document *doc)
{
    apr_array_header_t *documents = apr_array_make(doc->pool, 1, sizeof(const char *));
    APR_ARRAY_PUSH(documents, const char *) = document_type(doc->v130, doc->call);
    apr_array_header_t *maps = apr_array_make(doc->pool, 4, sizeof(const char *));
    const apr_array_header_t *formats = mc_wms_formats(doc->call, doc->pool);
    for (int i = 0; i < formats->nelts; i++)
        APR_ARRAY_PUSH(maps, const char *) = APR_ARRAY_IDX(formats, i, const mc_format *)->mime;
    const apr_array_header_t *infos = collect_wms_info_formats(doc);
    mc_xml_open(doc->xml, "Request");
    write_wms_operation(doc, "GetCapabilities", documents);
    write_wms_operation(doc, "GetMap", maps);
    if (infos->nelts > 0)
        write_wms_operation(doc, "GetFeatureInfo", infos);
    mc_xml_close(doc->xml);
}

static void
write_exceptions(const mc_wms_document *doc)
{
    static const char *const formats[2][3] = {
        { "application/vnd.ogc.se_xml", "application/vnd.ogc.se_inimage", "application/vnd.ogc.se_blank" },
        { "XML", "INIMAGE", "BLANK" },
    };
    mc_xml_open(doc->xml, "Exception");
    for (int i = 0; i < 3; i++)
        mc_xml_element(doc->xml, "Format", formats[doc->v130][i]);
    mc_xml_close(doc->xml);
}

/* What clients of WMS-C read: the pyramid of the first grid. */
static void
write_tile_set(const mc_wms_document *doc, const mc_tileset *tileset)
{
    const mc_grid_link *link = tileset->links[0];
    const mc_grid *grid = link->grid;
    const char *resolutions = "";
    for (int z = link->minzoom; z <= link->maxzoom; z++)
        resolutions = apr_psprintf(doc->pool, "%s%.20f ", resolutions, grid->levels[z].resolution);
    mc_xml_open(doc->xml, "TileSet");
    mc_xml_element(doc->xml, "SRS", grid->srs);
    mc_wms_write_box(doc, grid->srs, false, &grid->extent);
    mc_xml_element(doc->xml, "Resolutions", resolutions);
    mc_xml_elementf(doc->xml, "Width", "%d", grid->tile_width);
    mc_xml_elementf(doc->xml, "Height", "%d", grid->tile_height);
    mc_xml_element(doc->xml, "Format",
                   tileset->format != NULL && tileset->format->mime != NULL ? tileset->format->mime : "image/unknown");
    mc_xml_element(doc->xml, "Layers", tileset->name);
    mc_xml_element(doc->xml, "Styles", "");
    mc_xml_close(doc->xml);
}

static void
write_tile_sets(const mc_wms_document *doc)
{
    const apr_array_header_t *tilesets = doc->call->config->tilesets;
    mc_xml_open(doc->xml, "VendorSpecificCapabilities");
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, mc_tileset *);
        if (mc_tileset_is_image(tileset) && tileset->link_count > 0)
            write_tile_set(doc, tileset);
    }
    mc_xml_close(doc->xml);
}

static void
open_wms_root(const mc_wms_document *doc)
{
    mc_xml_open(doc->xml, doc->v130 ? "WMS_Capabilities" : "WMT_MS_Capabilities");
    mc_xml_attr(doc->xml, "version", doc->v130 ? "1.3.0" : "1.1.1");
    mc_xml_attr(doc->xml, "updateSequence", doc->sequence);
    if (!doc->v130)
        return;
    mc_xml_attr(doc->xml, "xmlns", "http://www.opengis.net/wms");
    mc_xml_attr(doc->xml, "xmlns:xlink", "http://www.w3.org/1999/xlink");
    mc_xml_attr(doc->xml, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance");
    mc_xml_attr(doc->xml, "xsi:schemaLocation",
                "http://www.opengis.net/wms http://schemas.opengis.net/wms/1.3.0/capabilities_1_3_0.xsd");
}

static bool
is_wms_strict(const mc_param_reader *reader)
{
    return reader->call->service->strict;
}

const mc_param_row mc_wms_capabilities_params[] = {
    MC_PARAM_TEXT("VERSION", offsetof(mc_capabilities_params, version),
                  "The version that the client would like: below 1.3.0 the answer is 1.1.1, else 1.3.0. Without it the "
                  "answer of a strict service is 1.3.0, else 1.1.1.",
                  .other = "WMTVER", .flags = MC_PARAM_EMPTY),
    MC_PARAM_UPDATE_SEQUENCE,
    MC_PARAM_BOOLEAN("TILED", offsetof(mc_capabilities_params, tiled),
                     "TRUE asks a strict service for the TileSet elements of WMS-C in capabilities of 1.1.1; others "
                     "have them always.",
                     .applies = is_wms_strict, .flags = MC_PARAM_EMPTY | MC_PARAM_ANY_CASE | MC_PARAM_LENIENT),
    MC_PARAM_END,
};

mc_error *
mc_wms_capabilities(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_capabilities_params params = { 0 };
    MC_TRY(mc_params_read(&params, mc_wms_capabilities_params, call, pool));
    MC_TRY(mc_update_sequence_check(&params, call, ctx, pool));
    if (params.is_current)
        return mc_error_located(pool, MC_ERR_CURRENT_UPDATE_SEQUENCE, "updateSequence",
                                "the client's capabilities are the current ones");
    bool v130 = mc_wms_is_130(call);
    bool with_tile_sets = !v130 && (!call->service->strict || params.tiled == 1);
    const char *form = v130 ? "1.3.0" : with_tile_sets ? "1.1.1 tiled" : "1.1.1", *mime = document_type(v130, call);
    mc_tilesets_ask_places(call->config->tilesets, ctx);
    const char *key = mc_document_key(call, form, params.sequence, pool);
    if (mc_document_recall(request, key, mime, call, ctx, pool))
        return MC_OK;
    const mc_wms_document doc = {
        .xml = mc_xml_create(v130             ? PROLOGUE_130
                             : with_tile_sets ? PROLOGUE_TILED
                                              : PROLOGUE_111,
                             pool),
        .call = call,
        .ctx = ctx,
        .pool = pool,
        .v130 = v130,
        .url = mc_url_wms(call, pool),
        .sequence = params.sequence,
    };
    open_wms_root(&doc);
    write_wms_service(&doc);
    mc_xml_open(doc.xml, "Capability");
    write_request(&doc);
    write_exceptions(&doc);
    if (with_tile_sets)
        write_tile_sets(&doc);
    mc_wms_write_layers(&doc);
    mc_xml_close(doc.xml);
    mc_xml_close(doc.xml);
    MC_TRY(mc_request_document(request, doc.xml, mime));
    mc_document_keep(request, key, call, ctx);
    return MC_OK;
}
