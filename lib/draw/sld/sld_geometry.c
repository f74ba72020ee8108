/* Spatial operators of filters, with geometries of GML 2 (OGC 02-069) and GML 3 (03-105r1). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/sld/sld.h"
#include "draw/style/spatial.h"
#include "mapcache/grid.h"
#include "text/text.h"
#include "vector/crs/projection.h"

enum { COORDINATES_MAX = 10000, PARTS_MAX = 1000, GML_DEPTH = 12 };

typedef struct gml {
    mc_sld *sld;
    apr_array_header_t *parts; /* of mc_spatial_part */
    const char *srs;
    bool swapped;    /* the CRS has its second axis to the right */
    int declared;    /* numbers of a position, unless coordinates say otherwise */
    int dimension;   /* of those that are being read */
    double *numbers; /* COORDINATES_MAX, for one part */
} gml;

static bool
add_gml_part(gml *g, mc_shape_kind kind, bool hole, const double *numbers, int count)
{
    int points = count / g->dimension;
    double *xy = apr_palloc(g->sld->build->pool, sizeof(double) * 2 * (size_t)(points + 1));
    if (points < 1 || g->parts->nelts == PARTS_MAX)
        return false;
    for (int i = 0; i < points; i++) {
        xy[2 * i] = numbers[i * g->dimension + g->swapped];
        xy[2 * i + 1] = numbers[i * g->dimension + !g->swapped];
    }
    APR_ARRAY_PUSH(g->parts, mc_spatial_part) = (mc_spatial_part){ kind, hole, xy, points };
    return true;
}

/* Appends the numbers of a text, separated by blanks and commas. */
static bool
add_numbers(double *numbers, int *count, const char *text, apr_pool_t *pool)
{
    char *rest = apr_pstrdup(pool, text), *state, *word;
    for (; (word = apr_strtok(rest, " \t\r\n,", &state)) != NULL; rest = NULL)
        if (*count == COORDINATES_MAX || !mc_parse_double(&numbers[(*count)++], word))
            return false;
    return true;
}

/* All positions below an element, whatever form they have. */
static bool
read_positions(gml *g, double *numbers, int *count, const mc_node *node)
{
    apr_pool_t *pool = g->sld->build->pool;
    g->dimension = g->declared;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_name(child);
        const char *dimension = mc_node_attr(child, "srsDimension");
        dimension = dimension == NULL ? mc_node_attr(child, "dimension") : dimension;
        if (strcmp(name, "coordinates") == 0) {
            const char *text = mc_sld_text(child, pool), *tuple_end = text + strcspn(text, " \t\r\n");
            int commas = 0;
            for (const char *c = text; c < tuple_end; c++)
                commas += *c == ',';
            g->dimension = commas == 2 ? 3 : 2;
        } else if (dimension != NULL) {
            g->dimension = strcmp(dimension, "3") == 0 ? 3 : 2;
        }
        if (child->children != NULL && strcmp(name, "coord") != 0)
            return false;
        if (strcmp(name, "coord") == 0) {
            const mc_node *x = mc_sld_child(child, "X"), *y = mc_sld_child(child, "Y");
            if (x == NULL || y == NULL || !add_numbers(numbers, count, x->text, pool) ||
                !add_numbers(numbers, count, y->text, pool))
                return false;
        } else if (strcmp(name, "coordinates") == 0 || strcmp(name, "pos") == 0 || strcmp(name, "posList") == 0 ||
                   strcmp(name, "lowerCorner") == 0 || strcmp(name, "upperCorner") == 0) {
            if (!add_numbers(numbers, count, child->text, pool))
                return false;
        } else {
            return false;
        }
    }
    return *count >= g->dimension;
}

static bool
read_gml_box(gml *g, const double *numbers, int count)
{
    if (count != 2 * g->dimension)
        return false;
    double x0 = numbers[0], y0 = numbers[1], x1 = numbers[g->dimension], y1 = numbers[g->dimension + 1];
    const double ring[] = { x0, y0, x1, y0, x1, y1, x0, y1 };
    g->dimension = 2;
    return add_gml_part(g, MC_SHAPE_POLYGONS, false, ring, 8);
}

static bool read_gml_geometry(gml *g, const mc_node *node, bool hole, int depth);

/* What holds others. */
static bool
read_gml_members(gml *g, const mc_node *node, bool hole, int depth)
{
    static const char *const holders[] = { "Polygon",         "MultiPoint",      "MultiLineString",
                                           "MultiPolygon",    "MultiGeometry",   "MultiSurface",
                                           "MultiCurve",      "Curve",           "Surface",
                                           "segments",        "patches",         "PolygonPatch",
                                           "pointMember",     "pointMembers",    "lineStringMember",
                                           "polygonMember",   "geometryMember",  "surfaceMember",
                                           "surfaceMembers",  "curveMember",     "curveMembers",
                                           "exterior",        "interior",        "outerBoundaryIs",
                                           "innerBoundaryIs", "geometryMembers", NULL };
    const char *name = mc_sld_name(node);
    bool any = false;
    if (!mc_sld_is_one_of(node, holders))
        return false;
    hole |= strcmp(name, "interior") == 0 || strcmp(name, "innerBoundaryIs") == 0;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (!read_gml_geometry(g, child, hole, depth + 1))
            return false;
        any = true;
    }
    return any;
}

static bool
read_gml_geometry(gml *g, const mc_node *node, bool hole, int depth)
{
    static const struct {
        const char *name;
        mc_shape_kind kind;
    } leaves[] = { { "Point", MC_SHAPE_POINTS },
                   { "LineString", MC_SHAPE_LINES },
                   { "LineStringSegment", MC_SHAPE_LINES },
                   { "LinearRing", MC_SHAPE_POLYGONS } };
    const char *name = mc_sld_name(node);
    bool box = strcmp(name, "Envelope") == 0 || strcmp(name, "Box") == 0;
    const char *dimension = mc_node_attr(node, "srsDimension");
    double *numbers = g->numbers;
    int count = 0;
    if (depth > GML_DEPTH)
        return false;
    if (dimension != NULL)
        g->declared = strcmp(dimension, "3") == 0 ? 3 : 2;
    if (box)
        return read_positions(g, numbers, &count, node) && read_gml_box(g, numbers, count);
    for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
        if (strcmp(name, leaves[i].name) == 0)
            return read_positions(g, numbers, &count, node) && add_gml_part(g, leaves[i].kind, hole, numbers, count);
    return read_gml_members(g, node, hole, depth);
}

/* A CRS in the form that projections are asked for; its axes. */
static void
read_srs(gml *g, const mc_node *node)
{
    const char *name = mc_node_attr(node, "srsName");
    bool xy_order = false;
    if (name == NULL || *name == '\0')
        return;
    int epsg = mc_crs_epsg(name, &xy_order);
    /* As GeoServer and QGIS mean them, and GML 2 (OGC 02-069): x first. */
    bool old = strncasecmp(name, "EPSG:", 5) == 0 || strstr(name, "/gml/srs/epsg.xml#") != NULL;
    g->srs = epsg > 0 ? apr_psprintf(g->sld->build->pool, "EPSG:%d", epsg) : name;
    g->swapped = !old && !xy_order && mc_crs_axes_swapped(epsg);
}

/* Without a unit it is that of the map. Names as GeoServer has them, and codes of EPSG. */
static bool
read_distance(mc_spatial *made, mc_sld *sld, const mc_node *node)
{
    static const struct {
        const char *name;
        double metres;
    } units[] = { { "m", 1 },
                  { "metre", 1 },
                  { "meter", 1 },
                  { "metres", 1 },
                  { "meters", 1 },
                  { "9001", 1 },
                  { "km", 1000 },
                  { "kilometre", 1000 },
                  { "kilometer", 1000 },
                  { "kilometres", 1000 },
                  { "kilometers", 1000 },
                  { "9036", 1000 },
                  { "ft", 0.3048 },
                  { "foot", 0.3048 },
                  { "feet", 0.3048 },
                  { "9002", 0.3048 },
                  { "mi", 1609.344 },
                  { "mile", 1609.344 },
                  { "miles", 1609.344 },
                  { "statute miles", 1609.344 },
                  { "9093", 1609.344 },
                  { "nautical miles", 1852 },
                  { "9030", 1852 } };
    const char *unit = mc_node_attr(node, "units");
    unit = unit == NULL ? mc_node_attr(node, "uom") : unit;
    if (node->children != NULL || !mc_parse_double(&made->distance, mc_sld_text(node, sld->build->pool)) ||
        made->distance < 0)
        return false;
    if (unit == NULL || *unit == '\0')
        return true;
    const char *last = unit;
    for (const char *at = unit; *at != '\0'; at++)
        if (strchr("#/:", *at) != NULL)
            last = at + 1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcasecmp(last, units[i].name) == 0) {
            made->distance *= units[i].metres;
            made->in_metres = true;
            return true;
        }
    return false;
}

/* Whether PROJ knows it; only asked where there is time. */
static bool
is_crs_known(const char *srs, apr_pool_t *pool)
{
    mc_projection *projection;
    return mc_projection_open(&projection, srs, "CRS:84", pool) == MC_OK;
}

bool
mc_sld_spatial(mc_spatial *made, mc_sld *sld, const mc_node *node)
{
    static const struct {
        const char *name;
        mc_spatial_kind kind;
    } operators[] = { { "BBOX", MC_SPATIAL_INTERSECTS },      { "Intersects", MC_SPATIAL_INTERSECTS },
                      { "Intersect", MC_SPATIAL_INTERSECTS }, { "Disjoint", MC_SPATIAL_DISJOINT },
                      { "Within", MC_SPATIAL_WITHIN },        { "Contains", MC_SPATIAL_CONTAINS },
                      { "DWithin", MC_SPATIAL_NEARER },       { "Beyond", MC_SPATIAL_FARTHER } };
    gml g = { .sld = sld, .parts = apr_array_make(sld->build->pool, 4, sizeof(mc_spatial_part)), .declared = 2 };
    g.numbers = apr_palloc(sld->build->pool, sizeof(double) * COORDINATES_MAX);
    size_t at = 0;
    bool has_geometry = false, has_distance = false;
    while (strcmp(mc_sld_name(node), operators[at].name) != 0)
        if (++at == sizeof(operators) / sizeof(operators[0]))
            return false;
    made->kind = operators[at].kind;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const char *name = mc_sld_name(child);
        if ((strcmp(name, "PropertyName") == 0 || strcmp(name, "ValueReference") == 0) && child->children == NULL)
            continue;
        if (strcmp(name, "Distance") == 0) {
            has_distance = read_distance(made, sld, child);
            if (!has_distance)
                return false;
            continue;
        }
        const mc_node *geometry = strcmp(name, "Literal") == 0 && child->children != NULL ? child->children : child;
        read_srs(&g, geometry);
        if (has_geometry || !read_gml_geometry(&g, geometry, false, 0))
            return false;
        has_geometry = true;
    }
    if (g.srs != NULL && sld->build->diagnostics->thorough && !is_crs_known(g.srs, sld->build->pool))
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "the CRS %s", mc_config_quote(g.srs, sld->build->pool)));
    made->srs = g.srs;
    made->parts = (const mc_spatial_part *)g.parts->elts;
    made->part_count = g.parts->nelts;
    bool of_distance = made->kind == MC_SPATIAL_NEARER || made->kind == MC_SPATIAL_FARTHER;
    return has_geometry && of_distance == has_distance &&
           (made->kind != MC_SPATIAL_WITHIN || made->parts[0].kind == MC_SHAPE_POLYGONS);
}
