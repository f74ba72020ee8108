/* Geometry of features as GeoJSON. It comes from the map's lattice: exact to 1/256 of its pixels. */
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>

#include "source/vector_info.h"

enum { MOST_POINTS = 20000, POINT_BYTES = 48 };

/* Points of a shape in degrees, x and y in turn. */
static double *
in_degrees(const mc_info_layer *layer, const mc_feature_query *map, const mc_shape *shape, apr_pool_t *pool)
{
    const mc_lattice *lattice = &map->lattice;
    double *xy = apr_palloc(pool, sizeof(*xy) * 2 * (size_t)(shape->point_count + 1));
    for (int i = 0; i < shape->point_count; i++) {
        double px = (double)lattice->left + shape->points[i].x / (double)MC_SUBPIXELS;
        double py = (double)lattice->top + shape->points[i].y / (double)MC_SUBPIXELS;
        xy[2 * i] = lattice->x0 + px / lattice->per_x;
        xy[2 * i + 1] = lattice->y0 - py / lattice->per_y;
    }
    if (layer->to_degrees != NULL)
        mc_projection_points(layer->to_degrees, xy, (size_t)shape->point_count);
    return xy;
}

static const char *
point_text(const double *xy, apr_pool_t *pool)
{
    char text[POINT_BYTES];
    snprintf(text, sizeof(text), "[%.7f,%.7f]", xy[0], xy[1]);
    return apr_pstrdup(pool, text);
}

/* Points begin..end, the other way round: y grows upwards here, so that outer rings run against the clock again. */
static const char *
path_text(const double *xy, int begin, int end, bool closed, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, end - begin + 1, sizeof(const char *));
    for (int i = end - 1; i >= begin; i--)
        APR_ARRAY_PUSH(parts, const char *) = point_text(xy + 2 * (closed ? i : begin + end - 1 - i), pool);
    if (closed)
        APR_ARRAY_PUSH(parts, const char *) = point_text(xy + 2 * (end - 1), pool);
    return apr_pstrcat(pool, "[", apr_array_pstrcat(pool, parts, ','), "]", NULL);
}

static bool
is_hole(const mc_shape *shape, int begin, int end)
{
    double twice = 0;
    const mc_shape_point *p = shape->points;
    for (int i = begin + 1; i + 1 < end; i++)
        twice += (double)(p[i].x - p[begin].x) * (p[i + 1].y - p[begin].y) -
                 (double)(p[i + 1].x - p[begin].x) * (p[i].y - p[begin].y);
    return twice < 0;
}

/* An outer ring and the holes that follow it are a polygon. */
static const char *
polygons_text(const mc_shape *shape, const double *xy, apr_pool_t *pool)
{
    const char *text = "";
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        bool hole = part > 0 && is_hole(shape, begin, shape->ends[part]);
        text = apr_pstrcat(pool, text,
                           part == 0 ? "["
                           : hole    ? ","
                                     : "],[",
                           path_text(xy, begin, shape->ends[part], true, pool), NULL);
    }
    return apr_pstrcat(pool, "{\"type\":\"MultiPolygon\",\"coordinates\":[", text, "]]}", NULL);
}

static const char *
parts_text(const mc_shape *shape, const double *xy, apr_pool_t *pool)
{
    bool points = shape->kind == MC_SHAPE_POINTS, one = shape->part_count == 1;
    apr_array_header_t *parts = apr_array_make(pool, shape->part_count, sizeof(const char *));
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
        APR_ARRAY_PUSH(parts, const char *) =
            points ? point_text(xy + 2 * begin, pool) : path_text(xy, begin, shape->ends[part], false, pool);
    return apr_pstrcat(pool, "{\"type\":\"", one ? "" : "Multi", points ? "Point" : "LineString",
                       "\",\"coordinates\":", one ? "" : "[", apr_array_pstrcat(pool, parts, ','), one ? "}" : "]}",
                       NULL);
}

const char *
mc_info_geojson(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 3, sizeof(const char *));
    for (int kind = 0; kind < 3; kind++) {
        const mc_shape *shape = &feature->geometry->shapes[kind];
        if (shape->point_count > MOST_POINTS || layer->no_geometry)
            return "null";
        if (shape->part_count == 0)
            continue;
        const double *xy = in_degrees(layer, feature->map, shape, pool);
        APR_ARRAY_PUSH(parts, const char *) =
            kind == MC_SHAPE_POLYGONS ? polygons_text(shape, xy, pool) : parts_text(shape, xy, pool);
    }
    const char *text = apr_array_pstrcat(pool, parts, ',');
    return parts->nelts == 1 ? text
                             : apr_pstrcat(pool, "{\"type\":\"GeometryCollection\",\"geometries\":[", text, "]}", NULL);
}
