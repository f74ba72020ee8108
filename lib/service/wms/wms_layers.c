/* The layers of WMS capabilities: where they have data, in which CRSs, with which dimensions and styles
 * (docs/reference/services.md 4.7). */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>

#include "service/wms/wms_document.h"
#include "vector/crs/projection.h"

/* A BoundingBox: of one CRS a layer has one. */
typedef struct crs_box {
    const char *srs;
    bool swapped;
    mc_extent box; /* x, y order */
} crs_box;

static void
write_geographic(const mc_wms_document *doc, const mc_extent *degrees)
{
    if (!doc->v130) {
        mc_xml_open(doc->xml, "LatLonBoundingBox");
        mc_xml_attrf(doc->xml, "minx", "%f", degrees->minx);
        mc_xml_attrf(doc->xml, "miny", "%f", degrees->miny);
        mc_xml_attrf(doc->xml, "maxx", "%f", degrees->maxx);
        mc_xml_attrf(doc->xml, "maxy", "%f", degrees->maxy);
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

static int
find_crs_name(const apr_array_header_t *names, const char *name)
{
    for (int i = 0; i < names->nelts; i++)
        if (strcasecmp(APR_ARRAY_IDX(names, i, const char *), name) == 0)
            return i;
    return -1;
}

static void
add_crs_name(apr_array_header_t *names, const char *name)
{
    if (find_crs_name(names, name) < 0)
        APR_ARRAY_PUSH(names, const char *) = name;
}

/* All names of the CRSs of a tileset. 1.3.0 offers CRS:84 beside EPSG:4326, which it takes as latitude first. */
static const apr_array_header_t *
crs_names(const mc_wms_document *doc, const mc_tileset *tileset)
{
    apr_array_header_t *names = apr_array_make(doc->pool, 8, sizeof(const char *));
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid *grid = tileset->links[i]->grid;
        if (doc->v130 && grid->epsg == 4326)
            add_crs_name(names, "CRS:84");
        add_crs_name(names, grid->srs);
        for (int j = 0; grid->aliases != NULL && j < grid->aliases->nelts; j++)
            add_crs_name(names, APR_ARRAY_IDX(grid->aliases, j, const char *));
    }
    const mc_wms *wms = mc_wms_of(doc->call);
    for (int i = 0; mc_wms_draws_any(wms, tileset) && i < wms->drawn->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(wms->drawn, i, const mc_grid_link *)->grid;
        if (doc->v130 || strncasecmp(grid->srs, "CRS:", 4) != 0) /* a name that 1.1.1 does not have */
            add_crs_name(names, grid->srs);
    }
    return names;
}

/* Whether two names are of one CRS, as the protocol orders its axes. */
static bool
is_same_crs(const char *a, const char *b)
{
    bool a_xy, b_xy;
    int epsg = mc_crs_epsg(a, &a_xy);
    if (epsg != 0 && epsg == mc_crs_epsg(b, &b_xy))
        return a_xy == b_xy;
    return strcasecmp(a, b) == 0;
}

static crs_box *
find_crs_box(const apr_array_header_t *boxes, const char *srs)
{
    for (int i = 0; i < boxes->nelts; i++)
        if (is_same_crs(APR_ARRAY_IDX(boxes, i, crs_box).srs, srs))
            return &APR_ARRAY_IDX(boxes, i, crs_box);
    return NULL;
}

/* Of several grids of one CRS the box is around all. */
static void
add_crs_box(apr_array_header_t *boxes, const char *srs, bool swapped, const mc_extent *box)
{
    crs_box *known = find_crs_box(boxes, srs);
    if (known != NULL)
        known->box = mc_extent_union(&known->box, box);
    else
        APR_ARRAY_PUSH(boxes, crs_box) = (crs_box){ srs, swapped, *box };
}

static void
add_grid_boxes(apr_array_header_t *boxes, const mc_wms_document *doc, const mc_tileset *tileset)
{
    for (int i = 0; i < tileset->link_count; i++) {
        const mc_grid_link *link = tileset->links[i];
        bool xy_order = false;
        int epsg = mc_crs_epsg(link->grid->srs, &xy_order);
        mc_extent box = link->extent;
        (void)mc_tileset_data_extent(&box, tileset, link, doc->pool);
        if (doc->v130 && epsg == 4326)
            add_crs_box(boxes, "CRS:84", false, &box);
        if (!doc->v130 || epsg != 4326 || !xy_order)
            add_crs_box(boxes, link->grid->srs, doc->v130 && !xy_order && link->grid->axes_swapped, &box);
    }
}

/* Boxes in the CRSs of <srs> that are no grid's: around that of the first grid. Where a CRS does not reach so far there
 * is none. */
static void
add_drawn_boxes(apr_array_header_t *boxes, const mc_wms_document *doc, const mc_tileset *tileset)
{
    const mc_wms *wms = mc_wms_of(doc->call);
    const mc_grid_link *first = tileset->links[0];
    for (int i = 0; mc_wms_draws_any(wms, tileset) && i < wms->drawn->nelts; i++) {
        const mc_grid *grid = APR_ARRAY_IDX(wms->drawn, i, const mc_grid_link *)->grid;
        mc_projection *projection = NULL;
        mc_extent box = first->extent;
        (void)mc_tileset_data_extent(&box, tileset, first, doc->pool);
        bool xy_order = false, known = find_crs_box(boxes, grid->srs) != NULL;
        for (int j = 0; j < tileset->link_count; j++)
            known |= mc_grid_has_srs(tileset->links[j]->grid, grid->srs);
        mc_error *error = known ? MC_OK : mc_projection_open(&projection, first->grid->srs, grid->srs, doc->pool);
        if (error != MC_OK)
            mc_log_error(doc->ctx, MC_LOG_WARN, error);
        if (known || error != MC_OK || (projection != NULL && !mc_projection_box(&box, projection, false)))
            continue;
        (void)mc_crs_epsg(grid->srs, &xy_order);
        if (doc->v130 || !xy_order)
            add_crs_box(boxes, grid->srs, doc->v130 && !xy_order && grid->axes_swapped, &box);
    }
}

static void
write_crs_boxes(const mc_wms_document *doc, const mc_tileset *tileset)
{
    apr_array_header_t *boxes = apr_array_make(doc->pool, 8, sizeof(crs_box));
    add_grid_boxes(boxes, doc, tileset);
    add_drawn_boxes(boxes, doc, tileset);
    for (int i = 0; i < boxes->nelts; i++) {
        const crs_box *one = &APR_ARRAY_IDX(boxes, i, crs_box);
        mc_wms_write_box(doc, one->srs, one->swapped, &one->box);
    }
}

static void
write_wms_units(const mc_wms_document *doc, const mc_dimension *dimension)
{
    const char *symbol = mc_dimension_unit_symbol(dimension);
    mc_xml_attr(doc->xml, "units", mc_dimension_units(dimension));
    if (symbol != NULL)
        mc_xml_attr(doc->xml, "unitSymbol", symbol);
}

/* 1.3.0 has the values in the Dimension, 1.1.1 in an Extent of the same name behind all Dimensions. */
static void
write_wms_dimensions(const mc_wms_document *doc, const mc_tileset *tileset)
{
    for (int i = 0; !doc->v130 && i < tileset->dimension_count; i++) {
        mc_xml_open(doc->xml, "Dimension");
        mc_xml_attr(doc->xml, "name", tileset->dimensions[i]->name);
        write_wms_units(doc, tileset->dimensions[i]);
        mc_xml_close(doc->xml);
    }
    for (int i = 0; i < tileset->dimension_count; i++) {
        mc_dimension *dimension = tileset->dimensions[i];
        const apr_array_header_t *values = mc_dimension_values_published(dimension, tileset->name, doc->ctx);
        mc_xml_open(doc->xml, doc->v130 ? "Dimension" : "Extent");
        mc_xml_attr(doc->xml, "name", dimension->name);
        if (doc->v130)
            write_wms_units(doc, dimension);
        mc_xml_attr(doc->xml, "default", mc_dimension_default_known(dimension, tileset->name, doc->ctx));
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

/* The versions name the same standards differently. */
static void
write_metadata_url(const mc_wms_document *doc, const mc_metadata *metadata)
{
    static const char *const types[2][2] = { { "TC211", "FGDC" }, { "ISO19115:2003", "FGDC:1998" } };
    mc_metadata_link link;
    if (!mc_metadata_find_link(&link, metadata))
        return;
    mc_xml_open(doc->xml, "MetadataURL");
    mc_xml_attr(doc->xml, "type", types[doc->v130][link.is_fgdc]);
    mc_xml_element(doc->xml, "Format", link.format);
    mc_wms_write_link(doc, "OnlineResource", mc_url_clean(link.url, doc->pool));
    mc_xml_close(doc->xml);
}

static void
write_wms_style(const mc_wms_document *doc, const char *name, const char *title, const mc_legend_url *legend)
{
    mc_xml_open(doc->xml, "Style");
    mc_xml_element(doc->xml, "Name", name);
    mc_xml_element(doc->xml, "Title", title);
    if (legend != NULL) {
        mc_xml_open(doc->xml, "LegendURL");
        mc_xml_attrf(doc->xml, "width", "%d", legend->width);
        mc_xml_attrf(doc->xml, "height", "%d", legend->height);
        mc_xml_element(doc->xml, "Format", legend->mime);
        mc_wms_write_link(doc, "OnlineResource", legend->href);
        mc_xml_close(doc->xml);
    }
    mc_xml_close(doc->xml);
}

/* Layers with a legend name their one style, layers with palettes name all styles, the default one first. */
static void
write_wms_styles(const mc_wms_document *doc, const mc_tileset *tileset)
{
    mc_legend_url legend;
    const mc_color_map *stored = tileset->stored_palette;
    bool found = mc_wms_legend_url(&legend, doc->call, tileset, NULL, doc->ctx, doc->pool);
    if (found || tileset->palette_count > 0)
        write_wms_style(doc, "default", stored != NULL ? stored->title : mc_tileset_title(tileset),
                        found ? &legend : NULL);
    for (int i = 0; i < tileset->palette_count; i++) {
        const mc_color_map *style = tileset->palettes[i];
        found = mc_wms_legend_url(&legend, doc->call, tileset, style, doc->ctx, doc->pool);
        write_wms_style(doc, style->name, style->title, found ? &legend : NULL);
    }
}

static void
write_wms_layer(const mc_wms_document *doc, const mc_tileset *tileset)
{
    const apr_array_header_t *names = crs_names(doc, tileset);
    mc_extent degrees = mc_tileset_degrees(tileset);
    mc_xml_open(doc->xml, "Layer");
    if (tileset->source != NULL && tileset->source->cascades)
        mc_xml_attr(doc->xml, "cascaded", "1");
    mc_xml_attr(doc->xml, "queryable", mc_tileset_info_formats(tileset) != NULL ? "1" : "0");
    mc_xml_element(doc->xml, "Name", tileset->name);
    mc_xml_element(doc->xml, "Title", mc_tileset_title(tileset));
    mc_xml_element(doc->xml, "Abstract", mc_meta(tileset->metadata, "abstract"));
    if (tileset->metadata != NULL)
        mc_wms_write_keywords(doc, mc_metadata_nested(tileset->metadata, "keywords"));
    for (int i = 0; i < names->nelts; i++)
        mc_xml_element(doc->xml, doc->v130 ? "CRS" : "SRS", APR_ARRAY_IDX(names, i, const char *));
    write_geographic(doc, &degrees);
    write_crs_boxes(doc, tileset);
    write_wms_dimensions(doc, tileset);
    write_metadata_url(doc, tileset->metadata);
    write_wms_styles(doc, tileset);
    mc_xml_close(doc->xml);
}

/* WMS 1.1.1, 7.1.4.5.5: the root names what all layers have in common, by an empty element where that is nothing. */
static void
write_common_srs(const mc_wms_document *doc, const apr_array_header_t *tilesets)
{
    const apr_array_header_t *common = NULL;
    for (int i = 0; i < tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(tilesets, i, const mc_tileset *);
        if (!mc_wms_is_listed(doc, tileset))
            continue;
        const apr_array_header_t *names = crs_names(doc, tileset), *before = common;
        apr_array_header_t *kept = apr_array_make(doc->pool, 8, sizeof(const char *));
        for (int j = 0; j < names->nelts; j++) {
            const char *name = APR_ARRAY_IDX(names, j, const char *);
            if (before == NULL || find_crs_name(before, name) >= 0)
                APR_ARRAY_PUSH(kept, const char *) = name;
        }
        common = kept;
    }
    for (int i = 0; common != NULL && i < common->nelts; i++)
        mc_xml_element(doc->xml, "SRS", APR_ARRAY_IDX(common, i, const char *));
    if (common == NULL || common->nelts == 0)
        mc_xml_element(doc->xml, "SRS", "");
}

/* The CRSs of 1.3.0 stand on the layers alone, so that no layer inherits one that it lacks. */
void
mc_wms_write_layers(const mc_wms_document *doc)
{
    const mc_config *config = doc->call->config;
    const char *title = mc_meta(config->metadata, "title");
    mc_extent all = { 180, 90, -180, -90 };
    int count = 0;
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        mc_extent degrees = mc_tileset_degrees(tileset);
        count += mc_wms_is_listed(doc, tileset);
        if (mc_wms_is_listed(doc, tileset))
            all = mc_extent_union(&all, &degrees);
    }
    mc_xml_open(doc->xml, "Layer");
    mc_xml_element(doc->xml, "Title", title != NULL ? title : "no title set, add some in metadata");
    mc_xml_element(doc->xml, "Abstract", mc_meta(config->metadata, "abstract"));
    mc_wms_write_keywords(doc, config->metadata);
    if (!doc->v130)
        write_common_srs(doc, config->tilesets);
    if (count > 0)
        write_geographic(doc, &all);
    write_metadata_url(doc, config->metadata);
    for (int i = 0; i < config->tilesets->nelts; i++) {
        const mc_tileset *tileset = APR_ARRAY_IDX(config->tilesets, i, mc_tileset *);
        if (mc_wms_is_listed(doc, tileset))
            write_wms_layer(doc, tileset);
    }
    mc_xml_close(doc->xml);
}
