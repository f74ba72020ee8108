/* Spatial operators of filters, with geometries of GML 2 (OGC 02-069) and GML 3 (03-105r1). */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "draw/sld/sld_private.h"
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

static bool
add_coord(double *numbers, int *count, const mc_node *node, apr_pool_t *pool)
{
    const mc_node *x = mc_sld_child(node, "X"), *y = mc_sld_child(node, "Y");
    return x != NULL && y != NULL && add_numbers(numbers, count, x->text, pool) &&
           add_numbers(numbers, count, y->text, pool);
}

static bool
add_pos(double *numbers, int *count, const mc_node *node, apr_pool_t *pool)
{
    return node->children == NULL && add_numbers(numbers, count, node->text, pool);
}

/* How many numbers a position of <coordinates> has, by its commas. */
static int
coordinates_dimension(const char *text)
{
    int commas = 0;
    for (const char *end = text + strcspn(text, " \t\r\n"); text < end; text++)
        commas += *text == ',';
    return commas == 2 ? 3 : 2;
}

/* All positions below an element, whatever form they have. */
static bool
read_positions(gml *g, double *numbers, int *count, const mc_node *node)
{
    static const struct position_element {
        const char *name;
        bool (*add)(double *numbers, int *count, const mc_node *node, apr_pool_t *pool);
        bool commas; /* between the numbers of a position */
    } elements[] = {
        { "coordinates", add_pos, true },  { "pos", add_pos, false },         { "posList", add_pos, false },
        { "lowerCorner", add_pos, false }, { "upperCorner", add_pos, false }, { "coord", add_coord, false },
    };
    apr_pool_t *pool = g->sld->build->pool;
    g->dimension = g->declared;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        const struct position_element *row = MC_SLD_FIND(elements, mc_sld_name(child), strcmp);
        const char *dimension = mc_node_attr(child, "srsDimension");
        dimension = dimension == NULL ? mc_node_attr(child, "dimension") : dimension;
        if (row == NULL)
            return false;
        if (row->commas)
            g->dimension = coordinates_dimension(mc_sld_text(child, pool));
        else if (dimension != NULL)
            g->dimension = strcmp(dimension, "3") == 0 ? 3 : 2;
        if (!row->add(numbers, count, child, pool))
            return false;
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

/* What an element of GML is. */
typedef struct gml_element {
    const char *name;
    bool (*read)(gml *g, const mc_node *node, const struct gml_element *row, bool hole, int depth);
    mc_shape_kind kind; /* of a leaf */
    bool hole;          /* what is inside is cut out */
} gml_element;

static bool read_gml_geometry(gml *g, const mc_node *node, bool hole, int depth);

static bool
read_gml_members(gml *g, const mc_node *node, const gml_element *row, bool hole, int depth)
{
    for (const mc_node *child = node->children; child != NULL; child = child->next)
        if (!read_gml_geometry(g, child, hole || row->hole, depth + 1))
            return false;
    return node->children != NULL;
}

static bool
read_gml_leaf(gml *g, const mc_node *node, const gml_element *row, bool hole, int depth)
{
    int count = 0;
    (void)depth;
    return read_positions(g, g->numbers, &count, node) && add_gml_part(g, row->kind, hole, g->numbers, count);
}

static bool
read_gml_envelope(gml *g, const mc_node *node, const gml_element *row, bool hole, int depth)
{
    int count = 0;
    (void)row;
    (void)hole;
    (void)depth;
    return read_positions(g, g->numbers, &count, node) && read_gml_box(g, g->numbers, count);
}

#define GML_HOLDER(name)                                                                                               \
    {                                                                                                                  \
        name, read_gml_members, MC_SHAPE_POLYGONS, false,                                                              \
    }
#define GML_HOLE(name)                                                                                                 \
    {                                                                                                                  \
        name, read_gml_members, MC_SHAPE_POLYGONS, true,                                                               \
    }

static const gml_element gml_elements[] = {
    { "Point", read_gml_leaf, MC_SHAPE_POINTS, false },
    { "LineString", read_gml_leaf, MC_SHAPE_LINES, false },
    { "LineStringSegment", read_gml_leaf, MC_SHAPE_LINES, false },
    { "LinearRing", read_gml_leaf, MC_SHAPE_POLYGONS, false },
    { "Envelope", read_gml_envelope, MC_SHAPE_POLYGONS, false },
    { "Box", read_gml_envelope, MC_SHAPE_POLYGONS, false },
    GML_HOLDER("Polygon"),
    GML_HOLDER("MultiPoint"),
    GML_HOLDER("MultiLineString"),
    GML_HOLDER("MultiPolygon"),
    GML_HOLDER("MultiGeometry"),
    GML_HOLDER("MultiSurface"),
    GML_HOLDER("MultiCurve"),
    GML_HOLDER("Curve"),
    GML_HOLDER("Surface"),
    GML_HOLDER("segments"),
    GML_HOLDER("patches"),
    GML_HOLDER("PolygonPatch"),
    GML_HOLDER("pointMember"),
    GML_HOLDER("pointMembers"),
    GML_HOLDER("lineStringMember"),
    GML_HOLDER("polygonMember"),
    GML_HOLDER("geometryMember"),
    GML_HOLDER("geometryMembers"),
    GML_HOLDER("surfaceMember"),
    GML_HOLDER("surfaceMembers"),
    GML_HOLDER("curveMember"),
    GML_HOLDER("curveMembers"),
    GML_HOLDER("exterior"),
    GML_HOLDER("outerBoundaryIs"),
    GML_HOLE("interior"),
    GML_HOLE("innerBoundaryIs"),
};

static bool
read_gml_geometry(gml *g, const mc_node *node, bool hole, int depth)
{
    const gml_element *row = MC_SLD_FIND(gml_elements, mc_sld_name(node), strcmp);
    const char *dimension = mc_node_attr(node, "srsDimension");
    if (row == NULL || depth > GML_DEPTH)
        return false;
    if (dimension != NULL)
        g->declared = strcmp(dimension, "3") == 0 ? 3 : 2;
    return row->read(g, node, row, hole, depth);
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
    static const struct unit_name {
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
    const struct unit_name *found = MC_SLD_FIND(units, last, strcasecmp);
    if (found == NULL)
        return false;
    made->distance *= found->metres;
    made->in_metres = true;
    return true;
}

/* Whether PROJ knows it; only asked where there is time. */
static bool
is_crs_known(const char *srs, apr_pool_t *pool)
{
    mc_projection *projection;
    return mc_projection_open(&projection, srs, "CRS:84", pool) == MC_OK;
}

/* What an operator compares with, and how far. False for what cannot be told. */
static bool
read_spatial_operands(gml *g, mc_spatial *made, bool *has_distance, const mc_node *node)
{
    bool has_geometry = false;
    for (const mc_node *child = node->children; child != NULL; child = child->next) {
        if (mc_sld_is_property(child) && child->children == NULL)
            continue;
        if (mc_sld_is(child, "Distance")) {
            *has_distance = read_distance(made, g->sld, child);
            if (!*has_distance)
                return false;
            continue;
        }
        const mc_node *geometry = mc_sld_is(child, "Literal") && child->children != NULL ? child->children : child;
        read_srs(g, geometry);
        if (has_geometry || !read_gml_geometry(g, geometry, false, 0))
            return false;
        has_geometry = true;
    }
    return has_geometry;
}

bool
mc_sld_spatial(mc_spatial *made, mc_sld *sld, const mc_node *node)
{
    static const struct spatial_element {
        const char *name;
        mc_spatial_kind kind;
    } operators[] = { { "BBOX", MC_SPATIAL_INTERSECTS },      { "Intersects", MC_SPATIAL_INTERSECTS },
                      { "Intersect", MC_SPATIAL_INTERSECTS }, { "Disjoint", MC_SPATIAL_DISJOINT },
                      { "Within", MC_SPATIAL_WITHIN },        { "Contains", MC_SPATIAL_CONTAINS },
                      { "DWithin", MC_SPATIAL_NEARER },       { "Beyond", MC_SPATIAL_FARTHER } };
    const struct spatial_element *found = MC_SLD_FIND(operators, mc_sld_name(node), strcmp);
    if (found == NULL)
        return false;
    gml g = { .sld = sld, .parts = apr_array_make(sld->build->pool, 4, sizeof(mc_spatial_part)), .declared = 2 };
    g.numbers = apr_palloc(sld->build->pool, sizeof(double) * COORDINATES_MAX);
    bool has_distance = false;
    made->kind = found->kind;
    if (!read_spatial_operands(&g, made, &has_distance, node))
        return false;
    if (g.srs != NULL && sld->build->diagnostics->thorough && !is_crs_known(g.srs, sld->build->pool))
        mc_sld_lacking(sld, node,
                       apr_psprintf(sld->build->pool, "the CRS %s", mc_config_quote(g.srs, sld->build->pool)));
    made->srs = g.srs;
    made->parts = (const mc_spatial_part *)g.parts->elts;
    made->part_count = g.parts->nelts;
    bool of_distance = made->kind == MC_SPATIAL_NEARER || made->kind == MC_SPATIAL_FARTHER;
    return of_distance == has_distance && (made->kind != MC_SPATIAL_WITHIN || made->parts[0].kind == MC_SHAPE_POLYGONS);
}
