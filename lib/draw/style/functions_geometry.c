/*
 * Functions of the geometry of a feature, in units of the map's CRS. It is known in pixels, thinned: results are right
 * to about a quarter of a pixel.
 */
#include <math.h>

#include "draw/style/functions.h"
#include "vector/geometry/places.h"

static const mc_geometry *
geometry_of(const mc_feature *feature)
{
    return feature == NULL || feature->query == NULL ? NULL : feature->geometry;
}

/* Units of the CRS for 1/256 pixel. */
static double
unit_x(const mc_feature *feature)
{
    return 1 / (feature->query->pixel_grid.per_x * MC_SUBPIXELS);
}

static double
unit_y(const mc_feature *feature)
{
    return 1 / (feature->query->pixel_grid.per_y * MC_SUBPIXELS);
}

static double
measure_scaled_length(const mc_shape_point *points, int count, bool closed, double dx, double dy)
{
    double length = 0;
    for (int i = closed ? 0 : 1; i < count; i++) {
        mc_shape_point before = points[(i + count - 1) % count];
        length += hypot(((double)points[i].x - before.x) * dx, ((double)points[i].y - before.y) * dy);
    }
    return length;
}

static const char *
eval_area(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const mc_geometry *geometry = geometry_of(feature);
    double twice = 0;
    (void)args;
    (void)count;
    if (geometry == NULL)
        return NULL;
    const mc_shape *areas = &geometry->shapes[MC_SHAPE_POLYGONS];
    for (int part = 0, begin = 0; part < areas->part_count; begin = areas->ends[part++])
        twice += mc_shape_twice_area(areas->points + begin, areas->ends[part] - begin);
    return mc_expression_format(fabs(twice) / 2 * unit_x(feature) * unit_y(feature), pool);
}

/* Of lines, and of the rings of areas. */
static const char *
eval_geometry_length(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const mc_geometry *geometry = geometry_of(feature);
    double sum = 0;
    (void)args;
    (void)count;
    for (int kind = MC_SHAPE_LINES; geometry != NULL && kind <= MC_SHAPE_POLYGONS; kind++) {
        const mc_shape *shape = &geometry->shapes[kind];
        for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
            sum += measure_scaled_length(shape->points + begin, shape->ends[part] - begin, kind == MC_SHAPE_POLYGONS,
                                         unit_x(feature), unit_y(feature));
    }
    return geometry == NULL ? NULL : mc_expression_format(sum, pool);
}

/* Where the geometry is: its point, or the one that stands for it. */
static bool
find_geometry_position(double *x, double *y, const mc_feature *feature)
{
    const mc_geometry *geometry = geometry_of(feature);
    mc_shape places = { 0 };
    if (geometry == NULL)
        return false;
    const mc_pixel_grid *pixel_grid = &feature->query->pixel_grid;
    mc_places_find(&places, geometry, MC_PART_CENTROID);
    bool any = places.point_count > 0;
    if (any) {
        *x =
            pixel_grid->x0 + ((double)pixel_grid->left + (double)places.points[0].x / MC_SUBPIXELS) / pixel_grid->per_x;
        *y = pixel_grid->y0 - ((double)pixel_grid->top + (double)places.points[0].y / MC_SUBPIXELS) / pixel_grid->per_y;
    }
    mc_shape_free(&places);
    return any;
}

static const char *
get_x(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double x, y;
    (void)args;
    (void)count;
    return find_geometry_position(&x, &y, feature) ? mc_expression_format(x, pool) : NULL;
}

static const char *
get_y(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    double x, y;
    (void)args;
    (void)count;
    return find_geometry_position(&x, &y, feature) ? mc_expression_format(y, pool) : NULL;
}

static int
highest_kind(const mc_geometry *geometry)
{
    int kind = MC_SHAPE_POLYGONS;
    while (kind >= 0 && geometry->shapes[kind].part_count == 0)
        kind--;
    return kind;
}

static const char *
eval_dimension(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    const mc_geometry *geometry = geometry_of(feature);
    (void)args;
    (void)count;
    (void)pool;
    static const char *const answers[] = { "0", "1", "2" };
    int kind = geometry == NULL ? -1 : highest_kind(geometry);
    return kind < 0 ? NULL : answers[kind];
}

static const char *
geometry_type(mc_arguments args, int count, const mc_feature *feature, apr_pool_t *pool)
{
    static const char *const names[][2] = { { "Point", "MultiPoint" },
                                            { "LineString", "MultiLineString" },
                                            { "Polygon", "MultiPolygon" } };
    const mc_geometry *geometry = geometry_of(feature);
    int kind = geometry == NULL ? -1 : highest_kind(geometry), outer = 0;
    (void)args;
    (void)count;
    (void)pool;
    if (kind < 0)
        return NULL;
    const mc_shape *shape = &geometry->shapes[kind];
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
        outer += kind != MC_SHAPE_POLYGONS || mc_shape_twice_area(shape->points + begin, shape->ends[part] - begin) > 0;
    return names[kind][outer > 1];
}

const mc_function mc_functions_of_geometry[] = {
    { "area", 1, 1, eval_area, true },
    { "area2", 1, 1, eval_area, true },
    { "geomLength", 1, 1, eval_geometry_length, true },
    { "perimeter", 1, 1, eval_geometry_length, true },
    { "getX", 1, 1, get_x, true },
    { "getY", 1, 1, get_y, true },
    { "dimension", 1, 1, eval_dimension, true },
    { "geometryType", 1, 1, geometry_type, true },
    { "$area", 0, 0, eval_area, true },
    { "$length", 0, 0, eval_geometry_length, true },
    { "$perimeter", 0, 0, eval_geometry_length, true },
    { "$x", 0, 0, get_x, true },
    { "$y", 0, 0, get_y, true },
    MC_FUNCTIONS_END,
};
