/*
 * WMS capabilities: 1.3.0 (valid against capabilities_1_3_0.xsd) and 1.1.1 (valid against WMS_MS_Capabilities.dtd with
 * an internal subset for the TileSet elements that tiling clients look for). docs/reference/services.md 4.7,
 * docs/reference/conformance.md 3.
 */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/wms/wms.h"
#include "vector/crs/projection.h"

#define PROLOGUE_130 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define PROLOGUE_111                                                                                                   \
    "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"                                                   \
    "<!DOCTYPE WMT_MS_Capabilities SYSTEM \"http://schemas.opengis.net/wms/1.1.1/WMS_MS_Capabilities.dtd\" [\n"        \
    "<!ELEMENT VendorSpecificCapabilities (TileSet*)>\n"                                                               \
    "<!ELEMENT TileSet (SRS, BoundingBox, Resolutions, Width, Height, Format, Layers, Styles)>\n"                      \
    "<!ELEMENT Resolutions (#PCDATA)>\n<!ELEMENT Width (#PCDATA)>\n<!ELEMENT Height (#PCDATA)>\n"                      \
    "<!ELEMENT Layers (#PCDATA)>\n<!ELEMENT Styles (#PCDATA)>\n]>\n"

/* A document in the making. */
typedef struct document {
    mc_xml *xml;
    const mc_call *call;
    mc_ctx *ctx;
    apr_pool_t *pool;
    bool v130;
    const char *url;
} document;

static void
write_wms_online_resource(const document *doc, const char *name, const char *url)
{
    mc_xml_open(doc->xml, name);
    if (!doc->v130)
        mc_xml_attr(doc->xml, "xmlns:xlink", "http://www.w3.org/1999/xlink");
    mc_xml_attr(doc->xml, "xlink:type", "simple");
    mc_xml_attr(doc->xml, "xlink:href", url);
    mc_xml_close(doc->xml);
}

static void
write_wms_keywords(const document *doc, const mc_metadata *metadata)
{
    if (metadata == NULL)
        return;
    const apr_array_header_t *words = mc_metadata_all(metadata, "keyword");
    if (words->nelts == 0)
        return;
    mc_xml_open(doc->xml, "KeywordList");
    for (int i = 0; i < words->nelts; i++)
        mc_xml_element(doc->xml, "Keyword", APR_ARRAY_IDX(words, i, const char *));
    mc_xml_close(doc->xml);
}

/* The address has all of its parts or none (the DTD and the schema want all). */
static void
write_address(const document *doc, const mc_metadata *metadata)
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
write_contact(const document *doc, const mc_metadata *metadata)
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

static void
write_wms_service(const document *doc)
{
    const mc_metadata *metadata = doc->call->config->metadata;
    const mc_wms *wms = mc_wms_of(doc->call);
    const char *title = mc_meta(metadata, "title");
    mc_xml_open(doc->xml, "Service");
    mc_xml_element(doc->xml, "Name", doc->v130 ? "WMS" : "OGC:WMS");
    mc_xml_element(doc->xml, "Title", title != NULL ? title : "no title set, add some in metadata");
    mc_xml_element(doc->xml, "Abstract", mc_meta(metadata, "abstract"));
    write_wms_keywords(doc, metadata);
    write_wms_online_resource(doc, "OnlineResource", doc->url);
    write_contact(doc, metadata);
    mc_xml_element(doc->xml, "Fees", mc_meta(metadata, "fees"));
    mc_xml_element(doc->xml, "AccessConstraints", mc_meta(metadata, "accessconstraints"));
    if (doc->v130) {
        mc_xml_elementf(doc->xml, "MaxWidth", "%d", wms->maxsize);
        mc_xml_elementf(doc->xml, "MaxHeight", "%d", wms->maxsize);
    }
    mc_xml_close(doc->xml);
}

static void
write_wms_operation(const document *doc, const char *name, const apr_array_header_t *formats)
{
    mc_xml_open(doc->xml, name);
    for (int i = 0; i < formats->nelts; i++)
        mc_xml_element(doc->xml, "Format", APR_ARRAY_IDX(formats, i, const char *));
    mc_xml_open(doc->xml, "DCPType");
    mc_xml_open(doc->xml, "HTTP");
    mc_xml_open(doc->xml, "Get");
    write_wms_online_resource(doc, "OnlineResource", doc->url);
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

static bool
is_wms_tileset_listed(const document *doc, const mc_tileset *tileset)
{
    return mc_wms_offers(mc_wms_of(doc->call), tileset) && tileset->link_count > 0;
}

/* WMS 1.1.1 wants a type of its own; MapCache sends text/xml, which lists of types to be compressed name. */
static const char *
document_type(bool v130, const mc_call *call)
{
    return v130 || !call->service->strict ? "text/xml" : "application/vnd.ogc.wms_xml";
}

/* All info formats that some layer offers. */
static const apr_array_header_t *
collect_wms_info_formats(const document *doc)
{
    apr_array_header_t *formats = apr_array_make(doc->pool, 4, sizeof(const char *));
    const apr_array_header_t *tilesets = doc->call->config->tilesets;
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, mc_tileset *);
        const apr_array_header_t *offered = mc_tileset_info_formats(tileset);
        for (int j = 0; is_wms_tileset_listed(doc, tileset) && offered != NULL && j < offered->nelts; j++)
            add_once(formats, APR_ARRAY_IDX(offered, j, const char *));
    }
    return formats;
}

static void
write_request(const document *doc)
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
write_exceptions(const document *doc)
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

static void
write_box_attributes(mc_xml *xml, const mc_extent *box)
{
    mc_xml_attrf(xml, "minx", "%f", box->minx);
    mc_xml_attrf(xml, "miny", "%f", box->miny);
    mc_xml_attrf(xml, "maxx", "%f", box->maxx);
    mc_xml_attrf(xml, "maxy", "%f", box->maxy);
}

static void
write_wms_bounding_box(const document *doc, const char *srs, bool swapped, const mc_extent *box)
{
    mc_extent swapped_box = { box->miny, box->minx, box->maxy, box->maxx };
    mc_xml_open(doc->xml, "BoundingBox");
    mc_xml_attr(doc->xml, doc->v130 ? "CRS" : "SRS", srs);
    write_box_attributes(doc->xml, swapped ? &swapped_box : box);
    mc_xml_close(doc->xml);
}

/* What clients of WMS-C read: the pyramid of the first grid. */
static void
write_tile_set(const document *doc, const mc_tileset *tileset)
{
    const mc_grid_link *link = tileset->links[0];
    const mc_grid *grid = link->grid;
    const char *resolutions = "";
    for (int z = link->minzoom; z <= link->maxzoom; z++)
        resolutions = apr_psprintf(doc->pool, "%s%.20f ", resolutions, grid->levels[z].resolution);
    mc_xml_open(doc->xml, "TileSet");
    mc_xml_element(doc->xml, "SRS", grid->srs);
    write_wms_bounding_box(doc, grid->srs, false, &grid->extent);
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
write_tile_sets(const document *doc)
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
write_geographic(const document *doc, const mc_extent *degrees)
{
    if (!doc->v130) {
        mc_xml_open(doc->xml, "LatLonBoundingBox");
        write_box_attributes(doc->xml, degrees);
        mc_xml_close(doc->xml);
        return;
    }
    mc_xml_open(doc->xml, "EX_GeographicBoundingBox");
    mc_xml_elementf(doc->xml, "westBoundLongitude", "%f", degrees->minx);
    mc_xml_elementf(doc->xml, "eastBoundLongitude", "%f", degrees->maxx);
    mc_xml_elementf(doc->xml, "southBoundLatitude", "%f", degrees->miny);
    mc_xml_elementf(doc->xml, "northBoundLatitude", "%f", degrees->maxy);
    mc_xml_close(doc->xml);
}

/* All names of the CRSs of a tileset. 1.3.0 offers CRS:84 beside EPSG:4326, which it takes as latitude first. */
static const apr_array_header_t *
crs_names(const document *doc, const mc_tileset *tileset)
{
    apr_array_header_t *names = apr_array_make(doc->pool, 8, sizeof(const char *));
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid *grid = tileset->links[i]->grid;
        if (doc->v130 && grid->epsg == 4326)
            add_once(names, "CRS:84");
        add_once(names, grid->srs);
        for (int j = 0; grid->aliases != NULL && j < grid->aliases->nelts; j++)
            add_once(names, APR_ARRAY_IDX(grid->aliases, j, const char *));
    }
    const mc_wms *wms = mc_wms_of(doc->call);
    for (int i = 0; mc_wms_draws_any(wms, tileset) && i < wms->drawn->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(wms->drawn, i, const mc_grid_link *)->grid;
        if (doc->v130 || strncasecmp(grid->srs, "CRS:", 4) != 0) /* a name that 1.1.1 does not have */
            add_once(names, grid->srs);
    }
    return names;
}

static void
write_boxes(const document *doc, const mc_tileset *tileset)
{
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid_link *link = tileset->links[i];
        bool xy_order = false;
        int epsg = mc_crs_epsg(link->grid->srs, &xy_order);
        if (doc->v130 && epsg == 4326 && !xy_order)
            write_wms_bounding_box(doc, "CRS:84", false, &link->extent);
        write_wms_bounding_box(doc, link->grid->srs, doc->v130 && !xy_order && link->grid->axes_swapped, &link->extent);
    }
}

/* Boxes in the CRSs of <srs> that are no grid's: around that of the first grid. Where a CRS does not reach so far there
 * is none. */
static void
write_drawn_boxes(const document *doc, const mc_tileset *tileset)
{
    const mc_wms *wms = mc_wms_of(doc->call);
    const mc_grid_link *first = tileset->links[0];
    for (int i = 0; mc_wms_draws_any(wms, tileset) && i < wms->drawn->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(wms->drawn, i, const mc_grid_link *)->grid;
        mc_projection *projection = NULL;
        mc_extent box = first->extent;
        bool xy_order = false, known = false;
        for (int j = 0; j < tileset->link_count; j++)
            known |= mc_grid_has_srs(tileset->links[j]->grid, grid->srs);
        mc_error *error = known ? MC_OK : mc_projection_open(&projection, first->grid->srs, grid->srs, doc->pool);
        if (error != MC_OK)
            mc_log_error(doc->ctx, MC_LOG_WARN, error);
        if (known || error != MC_OK || (projection != NULL && !mc_projection_box(&box, projection, false)))
            continue;
        (void)mc_crs_epsg(grid->srs, &xy_order);
        if (doc->v130 || !xy_order)
            write_wms_bounding_box(doc, grid->srs, doc->v130 && !xy_order && grid->axes_swapped, &box);
    }
}

static void
write_wms_units(const document *doc, const mc_dimension *dimension)
{
    const char *symbol = mc_dimension_unit_symbol(dimension);
    mc_xml_attr(doc->xml, "units", mc_dimension_units(dimension));
    if (symbol != NULL)
        mc_xml_attr(doc->xml, "unitSymbol", symbol);
}

/* 1.3.0 has the values in the Dimension, 1.1.1 in an Extent of the same name behind all Dimensions. */
static void
write_wms_dimensions(const document *doc, const mc_tileset *tileset)
{
    for (int i = 0; !doc->v130 && i < tileset->dimension_count; i++) {
        mc_xml_open(doc->xml, "Dimension");
        mc_xml_attr(doc->xml, "name", tileset->dimensions[i]->name);
        write_wms_units(doc, tileset->dimensions[i]);
        mc_xml_close(doc->xml);
    }
    for (int i = 0; i < tileset->dimension_count; i++) {
        mc_dimension *dimension = tileset->dimensions[i];
        const apr_array_header_t *values = mc_dimension_values_known(dimension, tileset->name, doc->ctx, doc->pool);
        mc_xml_open(doc->xml, doc->v130 ? "Dimension" : "Extent");
        mc_xml_attr(doc->xml, "name", dimension->name);
        if (doc->v130)
            write_wms_units(doc, dimension);
        mc_xml_attr(doc->xml, "default", mc_dimension_default_known(dimension, tileset->name, doc->ctx, doc->pool));
        /* A list of times is several values; of any other list only the dimension's own database knows what it is. The
         * DTD of 1.1.1 that documents name has neither of these attributes. */
        if (doc->v130 && dimension->time && dimension->ops->from_backend && tileset->assembly != MC_ASSEMBLE_NONE)
            mc_xml_attr(doc->xml, "multipleValues", "1");
        mc_xml_attr(doc->xml, "nearestValue", dimension->nearest ? "1" : "0");
        if (doc->v130 && dimension->time)
            mc_xml_attr(doc->xml, "current", "1");
        mc_xml_text(doc->xml, apr_array_pstrcat(doc->pool, values, ','));
        mc_xml_close(doc->xml);
    }
}

/* Layers with a legend name their one style. */
static void
write_style(const document *doc, const mc_tileset *tileset)
{
    mc_legend_url legend;
    if (!mc_wms_legend_url(&legend, doc->call, tileset, doc->ctx, doc->pool))
        return;
    mc_xml_open(doc->xml, "Style");
    mc_xml_element(doc->xml, "Name", "default");
    mc_xml_element(doc->xml, "Title", mc_tileset_title(tileset));
    mc_xml_open(doc->xml, "LegendURL");
    mc_xml_attrf(doc->xml, "width", "%d", legend.width);
    mc_xml_attrf(doc->xml, "height", "%d", legend.height);
    mc_xml_element(doc->xml, "Format", legend.mime);
    write_wms_online_resource(doc, "OnlineResource", legend.href);
    mc_xml_close(doc->xml);
    mc_xml_close(doc->xml);
}

static void
write_wms_layer(const document *doc, const mc_tileset *tileset)
{
    const apr_array_header_t *names = crs_names(doc, tileset);
    mc_extent degrees = mc_tileset_degrees(tileset);
    mc_xml_open(doc->xml, "Layer");
    mc_xml_attr(doc->xml, "cascaded", "1");
    mc_xml_attr(doc->xml, "queryable", mc_tileset_info_formats(tileset) != NULL ? "1" : "0");
    mc_xml_element(doc->xml, "Name", tileset->name);
    mc_xml_element(doc->xml, "Title", mc_tileset_title(tileset));
    mc_xml_element(doc->xml, "Abstract", mc_meta(tileset->metadata, "abstract"));
    if (tileset->metadata != NULL)
        write_wms_keywords(doc, mc_metadata_nested(tileset->metadata, "keywords"));
    for (int i = 0; i < names->nelts; i++)
        mc_xml_element(doc->xml, doc->v130 ? "CRS" : "SRS", APR_ARRAY_IDX(names, i, const char *));
    write_geographic(doc, &degrees);
    write_boxes(doc, tileset);
    write_drawn_boxes(doc, tileset);
    write_wms_dimensions(doc, tileset);
    write_style(doc, tileset);
    mc_xml_close(doc->xml);
}

/* The unnamed layer that holds the others. CRSs stand on the layers, so that no layer inherits one that it lacks. */
static void
write_layers(const document *doc)
{
    const mc_config *config = doc->call->config;
    const char *title = mc_meta(config->metadata, "title");
    mc_extent all = { 180, 90, -180, -90 };
    int count = 0;
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        mc_extent degrees = mc_tileset_degrees(tileset);
        count += is_wms_tileset_listed(doc, tileset);
        if (is_wms_tileset_listed(doc, tileset))
            all = mc_extent_union(&all, &degrees);
    }
    mc_xml_open(doc->xml, "Layer");
    mc_xml_element(doc->xml, "Title", title != NULL ? title : "no title set, add some in metadata");
    mc_xml_element(doc->xml, "Abstract", mc_meta(config->metadata, "abstract"));
    write_wms_keywords(doc, config->metadata);
    if (count > 0)
        write_geographic(doc, &all);
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        if (is_wms_tileset_listed(doc, tileset))
            write_wms_layer(doc, tileset);
    }
    mc_xml_close(doc->xml);
}

static void
open_wms_root(const document *doc)
{
    mc_xml_open(doc->xml, doc->v130 ? "WMS_Capabilities" : "WMT_MS_Capabilities");
    mc_xml_attr(doc->xml, "version", doc->v130 ? "1.3.0" : "1.1.1");
    mc_xml_attr(doc->xml, "updateSequence", mc_update_sequence(doc->call, doc->pool));
    if (!doc->v130)
        return;
    mc_xml_attr(doc->xml, "xmlns", "http://www.opengis.net/wms");
    mc_xml_attr(doc->xml, "xmlns:xlink", "http://www.w3.org/1999/xlink");
    mc_xml_attr(doc->xml, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance");
    mc_xml_attr(doc->xml, "xsi:schemaLocation",
                "http://www.opengis.net/wms http://schemas.opengis.net/wms/1.3.0/capabilities_1_3_0.xsd");
}

const mc_param_row mc_wms_capabilities_params[] = {
    MC_PARAM_TEXT("VERSION", offsetof(mc_capabilities_params, version),
                  "The version that the client would like: below 1.3.0 the answer is 1.1.1, else 1.3.0. Without it the "
                  "answer of a strict service is 1.3.0, else 1.1.1.",
                  .other = "WMTVER", .flags = MC_PARAM_EMPTY),
    MC_PARAM_UPDATE_SEQUENCE,
    MC_PARAM_STEP(mc_update_sequence_check),
    MC_PARAM_END,
};

mc_error *
mc_wms_capabilities(mc_request *request, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_capabilities_params params = { 0 };
    MC_TRY(mc_params_read(&params, mc_wms_capabilities_params, call, pool));
    if (params.is_current)
        return mc_error_located(pool, MC_ERR_CURRENT_UPDATE_SEQUENCE, "updateSequence",
                                "the client's capabilities are the current ones");
    bool v130 = mc_wms_is_130(call);
    const document doc = {
        .xml = mc_xml_create(v130 ? PROLOGUE_130 : PROLOGUE_111, pool),
        .call = call,
        .ctx = ctx,
        .pool = pool,
        .v130 = v130,
        .url = mc_url_wms(call, pool),
    };
    open_wms_root(&doc);
    write_wms_service(&doc);
    mc_xml_open(doc.xml, "Capability");
    write_request(&doc);
    write_exceptions(&doc);
    if (!v130)
        write_tile_sets(&doc);
    write_layers(&doc);
    mc_xml_close(doc.xml);
    mc_xml_close(doc.xml);
    return mc_request_document(request, doc.xml, document_type(v130, call));
}
