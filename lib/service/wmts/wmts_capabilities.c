/* The WMTS capabilities document, valid against wmtsGetCapabilities_response.xsd (docs/reference/services.md 5.2,
 * docs/reference/conformance.md 2). */
#include <apr_strings.h>
#include <string.h>

#include "service/documents.h"
#include "service/wmts/wmts.h"

#define PROLOGUE "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

static void
write_wmts_keywords(mc_xml *xml, const mc_metadata *metadata)
{
    if (metadata == NULL)
        return;
    const apr_array_header_t *words = mc_metadata_all(metadata, "keyword");
    if (words->nelts == 0)
        return;
    mc_xml_open(xml, "ows:Keywords");
    for (int i = 0; i < words->nelts; i++)
        mc_xml_element(xml, "ows:Keyword", APR_ARRAY_IDX(words, i, const char *));
    mc_xml_close(xml);
}

static void
write_identification(mc_xml *xml, const mc_metadata *metadata)
{
    const char *title = mc_meta(metadata, "title");
    mc_xml_open(xml, "ows:ServiceIdentification");
    mc_xml_element(xml, "ows:Title", title != NULL ? title : "no title set, add some in metadata");
    mc_xml_element(xml, "ows:Abstract", mc_meta(metadata, "abstract"));
    write_wmts_keywords(xml, metadata);
    mc_xml_element(xml, "ows:ServiceType", "OGC WMTS");
    mc_xml_element(xml, "ows:ServiceTypeVersion", MC_WMTS_VERSION);
    mc_xml_element(xml, "ows:Fees", mc_meta(metadata, "fees"));
    mc_xml_element(xml, "ows:AccessConstraints", mc_meta(metadata, "accessconstraints"));
    mc_xml_close(xml);
}

/* Elements with the metadata keys that fill them; opens the group only if one of them is there. */
typedef struct contact_row {
    const char *element;
    const char *key;
} contact_row;

static void
write_group(mc_xml *xml, const char *name, const contact_row *rows, const mc_metadata *metadata)
{
    bool any = false;
    for (const contact_row *row = rows; row->element != NULL; row++)
        any |= mc_meta(metadata, row->key) != NULL;
    if (!any)
        return;
    mc_xml_open(xml, name);
    for (const contact_row *row = rows; row->element != NULL; row++)
        mc_xml_element(xml, row->element, mc_meta(metadata, row->key));
    mc_xml_close(xml);
}

static void
write_provider(mc_xml *xml, const mc_metadata *metadata, apr_pool_t *pool)
{
    static const contact_row phone[] = { { "ows:Voice", "contactphone" },
                                         { "ows:Facsimile", "contactfacsimile" },
                                         { NULL, NULL } };
    bool short_mail = mc_meta(metadata, "contactelectronicmailaddress") == NULL;
    const contact_row address[] = {
        { "ows:DeliveryPoint", "contactorganization" },
        { "ows:City", "contactcity" },
        { "ows:AdministrativeArea", "contactstateorprovince" },
        { "ows:PostalCode", "contactpostcode" },
        { "ows:Country", "contactcountry" },
        { "ows:ElectronicMailAddress", short_mail ? "contactelectronicmailaddres" : "contactelectronicmailaddress" },
        { NULL, NULL },
    };
    const char *name = mc_meta(metadata, "providername");
    mc_xml_open(xml, "ows:ServiceProvider");
    mc_xml_element(xml, "ows:ProviderName", name != NULL ? name : "");
    if (mc_meta(metadata, "providerurl") != NULL) {
        mc_xml_open(xml, "ows:ProviderSite");
        mc_xml_attr(xml, "xlink:href", mc_url_clean(mc_meta(metadata, "providerurl"), pool));
        mc_xml_close(xml);
    }
    mc_xml_open(xml, "ows:ServiceContact");
    mc_xml_element(xml, "ows:IndividualName", mc_meta(metadata, "contactname"));
    mc_xml_element(xml, "ows:PositionName", mc_meta(metadata, "contactposition"));
    mc_xml_open(xml, "ows:ContactInfo");
    write_group(xml, "ows:Phone", phone, metadata);
    write_group(xml, "ows:Address", address, metadata);
    mc_xml_close(xml);
    mc_xml_close(xml);
    mc_xml_close(xml);
}

static void
write_wmts_operation(mc_xml *xml, const char *name, const mc_call *call)
{
    mc_xml_open(xml, "ows:Operation");
    mc_xml_attr(xml, "name", name);
    mc_xml_open(xml, "ows:DCP");
    mc_xml_open(xml, "ows:HTTP");
    mc_xml_open(xml, "ows:Get");
    mc_xml_attrf(xml, "xlink:href", "%swmts?", call->base);
    mc_xml_open(xml, "ows:Constraint");
    mc_xml_attr(xml, "name", "GetEncoding");
    mc_xml_open(xml, "ows:AllowedValues");
    mc_xml_element(xml, "ows:Value", "KVP");
    for (int i = 0; i < 5; i++)
        mc_xml_close(xml);
    mc_xml_close(xml);
}

static void
write_inspire(mc_xml *xml, const mc_metadata *metadata)
{
    const char *language = mc_meta(metadata, "defaultlanguage");
    const apr_array_header_t *languages = mc_metadata_all(metadata, "language");
    mc_xml_open(xml, "inspire_vs:ExtendedCapabilities");
    mc_xml_open(xml, "inspire_common:MetadataUrl");
    mc_xml_element(xml, "inspire_common:URL", mc_meta(metadata, "inspire_metadataurl"));
    mc_xml_element(xml, "inspire_common:MediaType", "application/vnd.iso.19139+xml");
    mc_xml_close(xml);
    mc_xml_open(xml, "inspire_common:SupportedLanguages");
    mc_xml_open(xml, "inspire_common:DefaultLanguage");
    mc_xml_element(xml, "inspire_common:Language", language != NULL ? language : "eng");
    mc_xml_close(xml);
    for (int i = 0; i < languages->nelts; i++) {
        mc_xml_open(xml, "inspire_common:SupportedLanguage");
        mc_xml_element(xml, "inspire_common:Language", APR_ARRAY_IDX(languages, i, const char *));
        mc_xml_close(xml);
    }
    mc_xml_close(xml);
    mc_xml_open(xml, "inspire_common:ResponseLanguage");
    mc_xml_element(xml, "inspire_common:Language", language != NULL ? language : "eng");
    mc_xml_close(xml);
    mc_xml_close(xml);
}

static void
write_operations(mc_xml *xml, const mc_call *call)
{
    mc_xml_open(xml, "ows:OperationsMetadata");
    write_wmts_operation(xml, "GetCapabilities", call);
    write_wmts_operation(xml, "GetTile", call);
    write_wmts_operation(xml, "GetFeatureInfo", call);
    if (mc_meta(call->config->metadata, "inspire_profile") != NULL)
        write_inspire(xml, call->config->metadata);
    mc_xml_close(xml);
}

bool
mc_wmts_is_limited(const mc_grid_link *link)
{
    return link->restricted || link->minzoom != 0 || link->maxzoom != link->grid->level_count - 1;
}

bool
mc_wmts_limits_are_valid(const mc_grid_link *link)
{
    for (int z = link->minzoom; z <= link->maxzoom; z++) {
        const mc_tile_range *range = &link->limits[z];
        int first = mc_grid_flip_y(link->grid, z, range->miny);
        int last = mc_grid_flip_y(link->grid, z, range->maxy - 1);
        if (range->minx < 1 || first < 1 || last < 1)
            return false;
    }
    return true;
}

/* Where the layer has fewer tiles than the matrix set; a strict service says so only in a valid document. */
static void
write_limits(mc_xml *xml, const mc_grid_link *link, bool strict)
{
    const mc_grid *grid = link->grid;
    if (!mc_wmts_is_limited(link) || (strict && !mc_wmts_limits_are_valid(link)))
        return;
    mc_xml_open(xml, "TileMatrixSetLimits");
    for (int z = link->minzoom; z <= link->maxzoom; z++) {
        const mc_tile_range *range = &link->limits[z];
        if (range->maxx <= range->minx || range->maxy <= range->miny)
            continue;
        int first = mc_grid_flip_y(grid, z, range->miny);
        int last = mc_grid_flip_y(grid, z, range->maxy - 1);
        mc_xml_open(xml, "TileMatrixLimits");
        mc_xml_element_int(xml, "TileMatrix", z);
        mc_xml_element_int(xml, "MinTileRow", first < last ? first : last);
        mc_xml_element_int(xml, "MaxTileRow", first < last ? last : first);
        mc_xml_element_int(xml, "MinTileCol", range->minx);
        mc_xml_element_int(xml, "MaxTileCol", range->maxx - 1);
        mc_xml_close(xml);
    }
    mc_xml_close(xml);
}

static void
write_resource(mc_xml *xml, const char *type, const char *format, const char *template)
{
    mc_xml_open(xml, "ResourceURL");
    mc_xml_attr(xml, "resourceType", type);
    mc_xml_attr(xml, "format", format);
    mc_xml_attr(xml, "template", template);
    mc_xml_close(xml);
}

static void
write_resources(mc_xml *xml, const mc_call *call, const mc_tileset *tileset, apr_pool_t *pool)
{
    const char *layer =
        apr_psprintf(pool, "%swmts/" MC_WMTS_VERSION "/%s/%s/", call->base, mc_url_segment(tileset->name, pool),
                     tileset->palette_count > 0 ? "{Style}" : "default");
    for (int i = 0; i < tileset->dimension_count; i++)
        layer = apr_pstrcat(pool, layer, "{", tileset->dimensions[i]->name, "}/", NULL);
    layer = apr_pstrcat(pool, layer, "{TileMatrixSet}/{TileMatrix}/{TileRow}/{TileCol}", NULL);
    const apr_array_header_t *infos = mc_tileset_info_formats(tileset);
    for (int i = 0; infos != NULL && i < infos->nelts; i++)
        write_resource(xml, "FeatureInfo", APR_ARRAY_IDX(infos, i, const char *),
                       apr_psprintf(pool, "%s/{J}/{I}.%d", layer, i));
    const apr_array_header_t *formats = mc_wmts_formats(tileset, pool);
    for (int i = 0; i < formats->nelts; i++) {
        const char *mime = APR_ARRAY_IDX(formats, i, const char *);
        write_resource(xml, "tile", mime, apr_pstrcat(pool, layer, ".", mc_wmts_extension(tileset, mime), NULL));
    }
}

static void
write_dimension(mc_xml *xml, mc_dimension *dimension, const char *tileset, mc_ctx *ctx)
{
    const apr_array_header_t *values = mc_dimension_values_published(dimension, tileset, ctx);
    mc_xml_open(xml, "Dimension");
    mc_xml_element(xml, "ows:Identifier", dimension->name);
    mc_xml_element(xml, "ows:UOM", *mc_dimension_units(dimension) == '\0' ? NULL : mc_dimension_units(dimension));
    mc_xml_element(xml, "UnitSymbol", mc_dimension_unit_symbol(dimension));
    mc_xml_element(xml, "Default", dimension->default_value);
    if (dimension->time)
        mc_xml_element(xml, "Current", "true");
    for (int i = 0; i < values->nelts; i++)
        mc_xml_element(xml, "Value", APR_ARRAY_IDX(values, i, const char *));
    mc_xml_close(xml);
}

/* Whether documents give both grids one CRS. */
static bool
is_same_crs_urn(const mc_grid *a, const mc_grid *b)
{
    bool a_xy, b_xy;
    int epsg = mc_crs_epsg(a->srs, &a_xy);
    if (epsg != 0 && epsg == mc_crs_epsg(b->srs, &b_xy))
        return a_xy == b_xy;
    return strcmp(a->srs, b->srs) == 0;
}

/* Of a link: where the data lie, as far as they have said; else all of it. */
static mc_extent
link_box(const mc_tileset *tileset, const mc_grid_link *link, apr_pool_t *pool)
{
    mc_extent box = link->extent;
    (void)mc_tileset_data_extent(&box, tileset, link, pool);
    return box;
}

/* One for each CRS, around the extents of all grids that have it. Clients would otherwise project the box in degrees,
 * whose poles are at infinity in Mercator. */
static void
write_wmts_layer_boxes(mc_xml *xml, const mc_tileset *tileset, apr_pool_t *pool)
{
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid *grid = tileset->links[i]->grid;
        mc_extent box = link_box(tileset, tileset->links[i], pool);
        bool written = false;
        for (int j = 0; j < tileset->link_count; j++) {
            if (!is_same_crs_urn(grid, tileset->links[j]->grid))
                continue;
            const mc_extent other = link_box(tileset, tileset->links[j], pool);
            written |= j < i;
            box = mc_extent_union(&box, &other);
        }
        if (!written)
            mc_wmts_write_bounding_box(xml, grid, &box, pool);
    }
}

/* A document about the data. */
static void
write_wmts_metadata_link(mc_xml *xml, const mc_tileset *tileset, apr_pool_t *pool)
{
    mc_metadata_link link;
    if (!mc_metadata_find_link(&link, tileset->metadata))
        return;
    mc_xml_open(xml, "ows:Metadata");
    mc_xml_attr(xml, "xlink:type", "simple");
    mc_xml_attr(xml, "xlink:href", mc_url_clean(link.url, pool));
    mc_xml_close(xml);
}

/* The legend at the wms service, where there is one. */
static void
write_legend(mc_xml *xml, const mc_tileset *tileset, const mc_color_map *style, const mc_call *call, mc_ctx *ctx,
             apr_pool_t *pool)
{
    mc_legend_url legend;
    if (!mc_wms_legend_url(&legend, call, tileset, style, ctx, pool))
        return;
    mc_xml_open(xml, "LegendURL");
    mc_xml_attr(xml, "format", legend.mime);
    mc_xml_attr(xml, "xlink:href", legend.href);
    mc_xml_attrf(xml, "width", "%d", legend.width);
    mc_xml_attrf(xml, "height", "%d", legend.height);
    mc_xml_close(xml);
}

static void
write_wmts_styles(mc_xml *xml, const mc_tileset *tileset, const mc_call *call, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_xml_open(xml, "Style");
    mc_xml_attr(xml, "isDefault", "true");
    if (tileset->stored_palette != NULL)
        mc_xml_element(xml, "ows:Title", tileset->stored_palette->title);
    mc_xml_element(xml, "ows:Identifier", "default");
    write_legend(xml, tileset, NULL, call, ctx, pool);
    mc_xml_close(xml);
    for (int i = 0; i < tileset->palette_count; i++) {
        const mc_color_map *style = tileset->palettes[i];
        mc_xml_open(xml, "Style");
        mc_xml_element(xml, "ows:Title", style->title);
        mc_xml_element(xml, "ows:Identifier", style->name);
        write_legend(xml, tileset, style, call, ctx, pool);
        mc_xml_close(xml);
    }
}

static void
write_matrix_set_link(mc_xml *xml, const mc_grid_link *link, const mc_call *call)
{
    mc_xml_open(xml, "TileMatrixSetLink");
    mc_xml_element(xml, "TileMatrixSet", link->grid->name);
    write_limits(xml, link, call->service->strict);
    mc_xml_close(xml);
}

static void
write_wmts_layer(mc_xml *xml, const mc_call *call, const mc_tileset *tileset, mc_ctx *ctx, apr_pool_t *pool)
{
    mc_extent degrees = mc_tileset_degrees(tileset);
    const apr_array_header_t *formats = mc_wmts_formats(tileset, pool);
    const apr_array_header_t *infos = mc_tileset_info_formats(tileset);
    mc_xml_open(xml, "Layer");
    mc_xml_element(xml, "ows:Title", mc_tileset_title(tileset));
    mc_xml_element(xml, "ows:Abstract", mc_meta(tileset->metadata, "abstract"));
    if (tileset->metadata != NULL)
        write_wmts_keywords(xml, mc_metadata_nested(tileset->metadata, "keywords"));
    mc_xml_open(xml, "ows:WGS84BoundingBox");
    mc_xml_elementf(xml, "ows:LowerCorner", "%f %f", degrees.minx, degrees.miny);
    mc_xml_elementf(xml, "ows:UpperCorner", "%f %f", degrees.maxx, degrees.maxy);
    mc_xml_close(xml);
    mc_xml_element(xml, "ows:Identifier", tileset->name);
    write_wmts_layer_boxes(xml, tileset, pool);
    write_wmts_metadata_link(xml, tileset, pool);
    write_wmts_styles(xml, tileset, call, ctx, pool);
    for (int i = 0; i < formats->nelts; i++)
        mc_xml_element(xml, "Format", APR_ARRAY_IDX(formats, i, const char *));
    for (int i = 0; infos != NULL && i < infos->nelts; i++)
        mc_xml_element(xml, "InfoFormat", APR_ARRAY_IDX(infos, i, const char *));
    for (int i = 0; i < tileset->dimension_count; i++)
        write_dimension(xml, tileset->dimensions[i], tileset->name, ctx);
    for (int i = 0; i < tileset->link_count; i++)
        write_matrix_set_link(xml, tileset->links[i], call);
    for (int i = 0; i < tileset->dense_link_count; i++)
        write_matrix_set_link(xml, tileset->dense_links[i], call);
    write_resources(xml, call, tileset, pool);
    mc_xml_close(xml);
}

static void
open_wmts_root(mc_xml *xml, const mc_call *call, const char *sequence)
{
    bool inspire = mc_meta(call->config->metadata, "inspire_profile") != NULL;
    mc_xml_open(xml, "Capabilities");
    mc_xml_attr(xml, "xmlns", "http://www.opengis.net/wmts/1.0");
    mc_xml_attr(xml, "xmlns:ows", "http://www.opengis.net/ows/1.1");
    mc_xml_attr(xml, "xmlns:xlink", "http://www.w3.org/1999/xlink");
    mc_xml_attr(xml, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance");
    mc_xml_attr(xml, "xmlns:gml", "http://www.opengis.net/gml");
    if (inspire) {
        mc_xml_attr(xml, "xmlns:inspire_common", "http://inspire.ec.europa.eu/schemas/common/1.0");
        mc_xml_attr(xml, "xmlns:inspire_vs", "http://inspire.ec.europa.eu/schemas/inspire_vs_ows11/1.0");
    }
    mc_xml_attr(xml, "xsi:schemaLocation",
                inspire ? "http://www.opengis.net/wmts/1.0 "
                          "http://schemas.opengis.net/wmts/1.0/wmtsGetCapabilities_response.xsd "
                          "http://inspire.ec.europa.eu/schemas/inspire_vs_ows11/1.0 "
                          "http://inspire.ec.europa.eu/schemas/inspire_vs_ows11/1.0/inspire_vs_ows_11.xsd"
                        : "http://www.opengis.net/wmts/1.0 "
                          "http://schemas.opengis.net/wmts/1.0/wmtsGetCapabilities_response.xsd");
    mc_xml_attr(xml, "version", MC_WMTS_VERSION);
    mc_xml_attr(xml, "updateSequence", sequence);
}

static mc_error *
write_wmts_document(mc_request *request, const char *sequence, const char *mime, const mc_call *call, mc_ctx *ctx,
                    apr_pool_t *pool)
{
    const mc_config *config = call->config;
    mc_xml *xml = mc_xml_create(PROLOGUE, pool);
    open_wmts_root(xml, call, sequence);
    write_identification(xml, config->metadata);
    write_provider(xml, config->metadata, pool);
    write_operations(xml, call);
    mc_xml_open(xml, "Contents");
    for (int i = 0; i < config->tilesets->nelts; i++)
        write_wmts_layer(xml, call, APR_ARRAY_IDX(config->tilesets, i, mc_tileset *), ctx, pool);
    mc_wmts_write_matrix_sets(xml, config, pool);
    mc_xml_close(xml);
    mc_xml_open(xml, "ServiceMetadataURL");
    mc_xml_attrf(xml, "xlink:href", "%swmts/" MC_WMTS_VERSION "/WMTSCapabilities.xml", call->base);
    mc_xml_close(xml);
    mc_xml_close(xml);
    return mc_request_document(request, xml, mime);
}

mc_error *
mc_wmts_capabilities(mc_request *request, mc_capabilities_params *params, const char *mime, const mc_call *call,
                     mc_ctx *ctx, apr_pool_t *pool)
{
    MC_TRY(mc_update_sequence_check(params, call, ctx, pool));
    if (params->is_current) {
        mc_xml *xml = mc_xml_create(PROLOGUE, pool);
        open_wmts_root(xml, call, params->sequence);
        mc_xml_close(xml);
        return mc_request_document(request, xml, mime);
    }
    mc_tilesets_ask_places(call->config->tilesets, ctx);
    const char *key = mc_document_key(call, MC_WMTS_VERSION, params->sequence, pool);
    if (mc_document_recall(request, key, mime, call, ctx, pool))
        return MC_OK;
    MC_TRY(write_wmts_document(request, params->sequence, mime, call, ctx, pool));
    mc_document_keep(request, key, call, ctx);
    return MC_OK;
}
