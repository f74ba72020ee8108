/* Symbolizers of SLD and SE documents (OGC 05-077r4, 11). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/sld/sld_elements.h"
#include "text/text.h"

mc_uom
mc_sld_uom(mc_sld *sld, const mc_node *node)
{
    const char *uom = mc_node_attr(node, "uom");
    if (uom == NULL || strstr(uom, "pixel") != NULL)
        return MC_UOM_PIXEL;
    if (strstr(uom, "metre") != NULL || strstr(uom, "meter") != NULL)
        return MC_UOM_METRE;
    if (strstr(uom, "foot") != NULL)
        return MC_UOM_FOOT;
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "the unit %s", mc_config_quote(uom, sld->build->pool)));
    return MC_UOM_PIXEL;
}

static mc_geometry_part
geometry_part(mc_sld *sld, const mc_node *node)
{
    static const struct part_name {
        const char *name;
        mc_geometry_part part;
    } parts[] = { { "centroid", MC_PART_CENTROID },    { "interiorPoint", MC_PART_INSIDE },
                  { "startPoint", MC_PART_START },     { "endPoint", MC_PART_END },
                  { "midPoint", MC_PART_MIDDLE },      { "vertices", MC_PART_VERTICES },
                  { "boundary", MC_PART_BOUNDARY },    { "exteriorRing", MC_PART_BOUNDARY },
                  { "pointOnSurface", MC_PART_INSIDE } };
    const mc_node *inner = node->children;
    if (inner != NULL && inner->next == NULL && mc_sld_is_geometry(inner))
        return MC_PART_WHOLE;
    const char *function = inner == NULL ? NULL : mc_node_attr(inner, "name");
    const mc_node *argument = inner == NULL ? NULL : inner->children;
    bool of_property = argument != NULL && argument->next == NULL && mc_sld_is_geometry(argument);
    const struct part_name *found = function != NULL && of_property ? MC_SLD_FIND(parts, function, strcasecmp) : NULL;
    if (found != NULL)
        return found->part;
    mc_sld_lacking(sld, inner != NULL ? inner : node, "this geometry");
    return MC_PART_WHOLE;
}

void
mc_sld_read_part(void *member, mc_sld *sld, const mc_node *node)
{
    mc_geometry_part *part = member;
    *part = geometry_part(sld, node);
}

bool
mc_sld_margin(double margin[4], const char *text)
{
    double numbers[4];
    int count = 0;
    if (!mc_parse_doubles(numbers, 4, &count, text, " ,") || count == 0)
        return false;
    for (int i = 0; i < 4; i++)
        margin[i] = fmax(0, numbers[i < count ? i : i == 3 && count > 1 ? 1 : 0]);
    return true;
}

/* The offset of a member, for the rows of the tables. */
#define MEMBER(name) offsetof(mc_symbolizer, name)

/* ---- Options of GeoServer and QGIS ---- */

static void
read_pattern_margin(void *member, mc_sld *sld, const mc_node *node)
{
    (void)member;
    if (!mc_sld_margin(sld->margin, mc_sld_plain(sld, node)))
        mc_sld_report_option(sld, node, "");
}

static void
read_pattern_distance(void *member, mc_sld *sld, const mc_node *node)
{
    double numbers[2];
    int count = 0;
    (void)member;
    if (!mc_parse_doubles(numbers, 2, &count, mc_sld_plain(sld, node), " ,") || count != 2) {
        mc_sld_report_option(sld, node, "");
        return;
    }
    sld->cell_x = fmax(0, numbers[0]);
    sld->cell_y = fmax(0, numbers[1]);
}

static void
read_upright(void *member, mc_sld *sld, const mc_node *node)
{
    bool *upright = member;
    const char *text = mc_sld_plain(sld, node);
    *upright = strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
}

static void
read_along(void *member, mc_sld *sld, const mc_node *node)
{
    static const char *const places[] = { "points", "firstPoint", "lastPoint", "centralPoint", NULL };
    mc_along *along = member;
    int place = mc_sld_read_choice(sld, node, places);
    if (place >= 0)
        *along = (mc_along)(MC_ALONG_VERTICES + place);
}

const mc_sld_element mc_sld_symbolizer_options[] = {
    MC_SLD_OPTION("graphic-margin", read_pattern_margin, 0, INSIDE, SHOWS),
    MC_SLD_OPTION("distance", read_pattern_distance, 0, INSIDE, SHOWS),
    MC_SLD_OPTION("rotateMarker", read_upright, MEMBER(stroke.upright), INSIDE, SHOWS),
    MC_SLD_OPTION("placement", read_along, MEMBER(stroke.along), INSIDE, SHOWS),
    MC_SLD_OPTION("labelObstacle", mc_sld_read_flag, MEMBER(obstacle), INSIDE, HIDES),
    MC_SLD_END
};

static void
read_symbolizer_option(void *symbolizer, mc_sld *sld, const mc_node *node)
{
    mc_sld_read_option(symbolizer, sld, node, mc_sld_symbolizer_options);
}

/* The options come before all else, because patterns need them. */
static void
read_symbolizer_options(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node)
{
    static const mc_sld_element only[] = { MC_SLD_ELEMENT("VendorOption", read_symbolizer_option, 0), MC_SLD_END };
    memset(sld->margin, 0, sizeof(sld->margin));
    sld->cell_x = sld->cell_y = 0;
    mc_sld_read_known(symbolizer, sld, node, only);
}

/* ---- Elements ---- */

static void
read_symbol_fill(void *fill, mc_sld *sld, const mc_node *node)
{
    mc_sld_fill(fill, sld, node);
}

/* The options, which have been read before, stay. */
static void
read_symbol_stroke(void *member, mc_sld *sld, const mc_node *node)
{
    mc_stroke *stroke = member;
    mc_along along = stroke->along;
    bool upright = stroke->upright;
    mc_sld_stroke(stroke, sld, node);
    stroke->along = along;
    stroke->upright = upright;
}

static void
read_symbol_graphic(void *graphic, mc_sld *sld, const mc_node *node)
{
    sld->undrawn |= !mc_sld_graphic(graphic, sld, node);
}

static void
read_symbol_displacement(void *displacement, mc_sld *sld, const mc_node *node)
{
    mc_sld_displacement(displacement, sld, node);
}

#define ROWS_OF_EACH_KIND                                                                                              \
    MC_SLD_OPTION("Geometry", mc_sld_read_part, MEMBER(part), INSIDE, HIDES), MC_SLD_SILENT("VendorOption"),           \
        MC_SLD_SILENT("Name"), MC_SLD_SILENT("Description"), MC_SLD_END

const mc_sld_element mc_sld_polygon_elements[] = {
    MC_SLD_ELEMENT("Fill", read_symbol_fill, MEMBER(fill)),
    MC_SLD_ELEMENT("Stroke", read_symbol_stroke, MEMBER(stroke)),
    MC_SLD_OPTION("PerpendicularOffset", mc_sld_read_length, MEMBER(offset), BEYOND, HIDES),
    MC_SLD_OPTION("Displacement", read_symbol_displacement, MEMBER(displacement), BEYOND, SHOWS), ROWS_OF_EACH_KIND
};

const mc_sld_element mc_sld_line_elements[] = {
    MC_SLD_ELEMENT("Stroke", read_symbol_stroke, MEMBER(stroke)),
    MC_SLD_OPTION("PerpendicularOffset", mc_sld_read_length, MEMBER(offset), BEYOND, SHOWS),
    MC_SLD_OPTION("Displacement", read_symbol_displacement, MEMBER(displacement), BEYOND, SHOWS), ROWS_OF_EACH_KIND
};

const mc_sld_element mc_sld_point_elements[] = { MC_SLD_ELEMENT("Graphic", read_symbol_graphic, MEMBER(graphic)),
                                                 ROWS_OF_EACH_KIND };

/* What no element says, and what cannot be drawn together. */
static bool
finish_symbolizer(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node)
{
    const mc_node none = { .name = "Graphic", .text = "", .file = node->file, .line = node->line };
    bool of_points = symbolizer->part != MC_PART_WHOLE && symbolizer->part != MC_PART_BOUNDARY;
    if (symbolizer->kind == MC_SYMBOL_POINT && mc_sld_child(node, "Graphic") == NULL)
        return mc_sld_graphic(&symbolizer->graphic, sld, &none);
    if (symbolizer->kind == MC_SYMBOL_POINT || !of_points)
        return true;
    mc_sld_lacking(sld, node, "lines and areas of points");
    return false;
}

bool
mc_sld_symbolizer(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node, mc_symbolizer_kind kind)
{
    static const mc_sld_element *const elements[] = { [MC_SYMBOL_POLYGON] = mc_sld_polygon_elements,
                                                      [MC_SYMBOL_LINE] = mc_sld_line_elements,
                                                      [MC_SYMBOL_POINT] = mc_sld_point_elements };
    *symbolizer = (mc_symbolizer){ .kind = kind, .uom = mc_sld_uom(sld, node), .obstacle = kind == MC_SYMBOL_POINT };
    sld->undrawn = false;
    read_symbolizer_options(symbolizer, sld, node);
    mc_sld_read_elements(symbolizer, sld, node, elements[kind], "a symbolizer");
    return !sld->undrawn && finish_symbolizer(symbolizer, sld, node);
}
