/* What the parts of a capabilities document share. */
#include "service/wms/wms_document.h"

bool
mc_wms_is_listed(const mc_wms_document *doc, const mc_tileset *tileset)
{
    return mc_wms_offers(mc_wms_of(doc->call), tileset) && tileset->link_count > 0;
}

void
mc_wms_write_link(const mc_wms_document *doc, const char *name, const char *url)
{
    mc_xml_open(doc->xml, name);
    if (!doc->v130)
        mc_xml_attr(doc->xml, "xmlns:xlink", "http://www.w3.org/1999/xlink");
    mc_xml_attr(doc->xml, "xlink:type", "simple");
    mc_xml_attr(doc->xml, "xlink:href", url);
    mc_xml_close(doc->xml);
}

void
mc_wms_write_keywords(const mc_wms_document *doc, const mc_metadata *metadata)
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

static void
write_box_attributes(mc_xml *xml, const mc_extent *box)
{
    mc_xml_attrf(xml, "minx", "%f", box->minx);
    mc_xml_attrf(xml, "miny", "%f", box->miny);
    mc_xml_attrf(xml, "maxx", "%f", box->maxx);
    mc_xml_attrf(xml, "maxy", "%f", box->maxy);
}

void
mc_wms_write_box(const mc_wms_document *doc, const char *srs, bool swapped, const mc_extent *box)
{
    mc_extent swapped_box = { box->miny, box->minx, box->maxy, box->maxx };
    mc_xml_open(doc->xml, "BoundingBox");
    mc_xml_attr(doc->xml, doc->v130 ? "CRS" : "SRS", srs);
    write_box_attributes(doc->xml, swapped ? &swapped_box : box);
    mc_xml_close(doc->xml);
}
