/* Symbolizers of SLD and SE documents (OGC 05-077r4, 11). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/sld/sld.h"
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

bool
mc_sld_is_geometry(const mc_node *node)
{
    static const char *const names[] = { "PropertyName", "ValueReference", NULL };
    const char *function = mc_node_attr(node, "name");
    return node->children == NULL &&
           (mc_sld_is_one_of(node, names) ||
            (strcmp(mc_sld_name(node), "Function") == 0 && function != NULL && strcmp(function, "geometry") == 0));
}

mc_geometry_part
mc_sld_part(mc_sld *sld, const mc_node *node)
{
    static const struct {
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
    for (size_t i = 0; function != NULL && of_property && i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcasecmp(function, parts[i].name) == 0)
            return parts[i].part;
    mc_sld_lacking(sld, inner != NULL ? inner : node, "this geometry");
    return MC_PART_WHOLE;
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

/* Options of GeoServer and QGIS that are heeded; they come before all else, because patterns need them. */
static void
read_symbolizer_option(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node)
{
    static const char *const places[] = { "row", "points", "firstPoint", "lastPoint", "centralPoint" };
    apr_pool_t *pool = sld->build->pool;
    const char *name = mc_node_attr(node, "name"), *text = mc_sld_plain(sld, node);
    double numbers[2];
    int count = 0;
    name = name == NULL ? "" : name;
    if (strcmp(name, "graphic-margin") == 0 && mc_sld_margin(sld->margin, text))
        return;
    if (strcmp(name, "distance") == 0 && mc_parse_doubles(numbers, 2, &count, text, " ,") && count == 2) {
        sld->cell_x = fmax(0, numbers[0]);
        sld->cell_y = fmax(0, numbers[1]);
        return;
    }
    if (strcmp(name, "rotateMarker") == 0) {
        symbolizer->stroke.upright = strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
        return;
    }
    for (int i = 1; strcmp(name, "placement") == 0 && i < 5; i++)
        if (strcmp(text, places[i]) == 0) {
            symbolizer->stroke.along = (mc_along)i;
            return;
        }
    mc_sld_lacking(sld, node, apr_psprintf(pool, "the option %s", mc_config_quote(name, pool)));
}

static void
read_symbolizer_options(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node)
{
    memset(sld->margin, 0, sizeof(sld->margin));
    sld->cell_x = sld->cell_y = 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        if (strcmp(mc_sld_name(child), "VendorOption") == 0)
            read_symbolizer_option(symbolizer, sld, child);
}

static void
read_stroke(mc_stroke *stroke, mc_sld *sld, const mc_node *node)
{
    mc_along along = stroke->along;
    bool upright = stroke->upright;
    mc_sld_stroke(stroke, sld, node);
    stroke->along = along;
    stroke->upright = upright;
}

/* False where nothing of the symbolizer can be drawn. */
static bool
read_symbolizer_part(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *child)
{
    static const char *const silent[] = { "Name", "Description", "VendorOption", NULL };
    const char *name = mc_sld_name(child);
    bool point = symbolizer->kind == MC_SYMBOL_POINT;
    if (strcmp(name, "Fill") == 0 && symbolizer->kind == MC_SYMBOL_POLYGON)
        mc_sld_fill(&symbolizer->fill, sld, child);
    else if (strcmp(name, "Stroke") == 0 && !point)
        read_stroke(&symbolizer->stroke, sld, child);
    else if (strcmp(name, "Graphic") == 0 && point)
        return mc_sld_graphic(&symbolizer->graphic, sld, child);
    else if (strcmp(name, "PerpendicularOffset") == 0 && !point)
        mc_sld_constant(&symbolizer->offset, sld, child);
    else if (strcmp(name, "Displacement") == 0 && !point)
        mc_sld_displacement(&symbolizer->displacement, sld, child);
    else if (strcmp(name, "Geometry") == 0)
        symbolizer->part = mc_sld_part(sld, child);
    else if (!mc_sld_is_one_of(child, silent))
        mc_sld_lacking(sld, child, apr_psprintf(sld->build->pool, "<%s> of a symbolizer", name));
    return true;
}

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
mc_sld_symbolizer(mc_symbolizer *symbolizer, mc_sld *sld, const mc_node *node)
{
    static const struct {
        const char *name;
        mc_symbolizer_kind kind;
    } kinds[] = { { "PolygonSymbolizer", MC_SYMBOL_POLYGON },
                  { "LineSymbolizer", MC_SYMBOL_LINE },
                  { "PointSymbolizer", MC_SYMBOL_POINT } };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(mc_sld_name(node), kinds[i].name) != 0)
            continue;
        bool drawn = true;
        *symbolizer = (mc_symbolizer){ .kind = kinds[i].kind, .uom = mc_sld_uom(sld, node) };
        read_symbolizer_options(symbolizer, sld, node);
        for (const mc_node *child = node->children; child != NULL; child = child->next)
            drawn &= read_symbolizer_part(symbolizer, sld, child);
        return drawn && finish_symbolizer(symbolizer, sld, node);
    }
    mc_sld_lacking(sld, node, apr_psprintf(sld->build->pool, "<%s>", mc_sld_name(node)));
    return false;
}
