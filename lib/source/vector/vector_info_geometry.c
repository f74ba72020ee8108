/* Geometry of features as GeoJSON. It comes from the map's pixel grid: exact to 1/256 of its pixels. */
#include <apr_strings.h>
#include <math.h>

#include "source/vector/vector_info.h"
#include "text/json_writer.h"
#include "vector/geometry/hit.h"

#define FARTHEST 1e6 /* degrees: more is no place, but what a transformation made of one that it does not know */

/* Points of a shape in degrees, x and y in turn; NULL where one of them has no place in degrees. */
static double *
in_degrees(const mc_info_layer *layer, const mc_feature_query *map, const mc_shape *shape, apr_pool_t *pool)
{
    const mc_pixel_grid *pixel_grid = &map->pixel_grid;
    double *xy = apr_palloc(pool, sizeof(*xy) * 2 * (size_t)(shape->point_count + 1));
    for (int i = 0; i < shape->point_count; i++) {
        double px = (double)pixel_grid->left + shape->points[i].x / (double)MC_SUBPIXELS;
        double py = (double)pixel_grid->top + shape->points[i].y / (double)MC_SUBPIXELS;
        xy[2 * i] = pixel_grid->x0 + px / pixel_grid->per_x;
        xy[2 * i + 1] = pixel_grid->y0 - py / pixel_grid->per_y;
    }
    if (layer->to_degrees != NULL)
        mc_projection_points(layer->to_degrees, xy, (size_t)shape->point_count);
    for (int i = 0; i < 2 * shape->point_count; i++)
        if (!(fabs(xy[i]) <= FARTHEST)) /* JSON has no infinity */
            return NULL;
    return xy;
}

static void
write_point(mc_json_writer *json, const char *key, const double *xy)
{
    mc_json_open_array(json, key);
    mc_json_decimals(json, NULL, xy[0], 7);
    mc_json_decimals(json, NULL, xy[1], 7);
    mc_json_close(json);
}

/* Points begin..end; a ring ends where it began. */
static void
write_path(mc_json_writer *json, const char *key, const double *xy, int begin, int end, bool ring, bool reversed)
{
    mc_json_open_array(json, key);
    for (int i = begin; i < end; i++)
        write_point(json, NULL, xy + 2 * (reversed ? begin + end - 1 - i : i));
    if (ring)
        write_point(json, NULL, xy + 2 * (reversed ? end - 1 : begin));
    mc_json_close(json);
}

/* A ring of areas, and which other one it is a hole of. */
typedef struct ring {
    mc_shape only;     /* it alone: a part of the shape's points */
    int begin, end;    /* of its points */
    double twice_area; /* above 0: runs as outer rings do here */
    int outer;         /* the ring that it is a hole of; -1: it is an outer one itself */
    int hole, next;    /* first hole of it; next hole of the same ring; -1: none */
    int32_t minx, miny, maxx, maxy;
} ring;

/* All rings. Files whose rings run the wrong way are not rare: the largest one is never a hole. */
static ring *
rings_of(const mc_shape *shape, apr_pool_t *pool)
{
    ring *rings = apr_pcalloc(pool, sizeof(*rings) * (size_t)shape->part_count);
    double largest = 0;
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++]) {
        ring *r = &rings[part];
        int *end = apr_pmemdup(pool, &(int){ shape->ends[part] - begin }, sizeof(int));
        *r = (ring){ .begin = begin, .end = shape->ends[part], .outer = -1, .hole = -1, .next = -1 };
        r->only = (mc_shape){ .kind = MC_SHAPE_POLYGONS,
                              .points = shape->points + begin,
                              .point_count = *end,
                              .ends = end,
                              .part_count = 1 };
        r->twice_area = mc_shape_twice_area(r->only.points, *end);
        mc_shape_bounds(&r->only, &r->minx, &r->miny, &r->maxx, &r->maxy);
        largest = fabs(r->twice_area) > fabs(largest) ? r->twice_area : largest;
    }
    for (int i = 0; largest < 0 && i < shape->part_count; i++)
        rings[i].twice_area = -rings[i].twice_area;
    return rings;
}

/* Whether most corners of a hole lie in a ring: one or two may touch its edge. */
static bool
hole_lies_in_ring(const ring *hole, const ring *outer)
{
    int inside = 0, count = hole->end - hole->begin < 5 ? hole->end - hole->begin : 5;
    if (hole->minx < outer->minx || hole->maxx > outer->maxx || hole->miny < outer->miny || hole->maxy > outer->maxy)
        return false;
    for (int i = 0; i < count; i++)
        inside += mc_shape_covers(&outer->only, hole->only.points[i]);
    return 2 * inside > count;
}

/* The order of rings says nothing (ESRI's shapefiles): a hole belongs to the smallest ring around it. One around which
 * there is none is no hole. */
static void
find_holes(ring *rings, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        ring *hole = &rings[i];
        for (int k = 0; hole->twice_area < 0 && k < count; k++) {
            bool smaller = hole->outer < 0 || rings[k].twice_area < rings[hole->outer].twice_area;
            if (rings[k].twice_area > 0 && smaller && hole_lies_in_ring(hole, &rings[k]))
                hole->outer = k;
        }
        if (hole->outer < 0)
            continue;
        hole->next = rings[hole->outer].hole;
        rings[hole->outer].hole = i;
    }
}

/* RFC 7946, 3.1.6: outer rings run against the clock, with y upwards, and holes with it. */
static void
write_ring(mc_json_writer *json, const ring *of, const double *xy, const mc_shape *shape)
{
    bool with_the_clock = mc_shape_twice_area(shape->points + of->begin, of->end - of->begin) > 0;
    write_path(json, NULL, xy, of->begin, of->end, true, with_the_clock == (of->outer < 0));
}

static void
write_polygons(mc_json_writer *json, const mc_shape *shape, const double *xy, apr_pool_t *pool)
{
    ring *rings = rings_of(shape, pool);
    find_holes(rings, shape->part_count);
    mc_json_open_object(json, NULL);
    mc_json_string(json, "type", "MultiPolygon");
    mc_json_open_array(json, "coordinates");
    for (int i = 0; i < shape->part_count; i++) {
        if (rings[i].outer >= 0)
            continue;
        mc_json_open_array(json, NULL);
        write_ring(json, &rings[i], xy, shape);
        for (int hole = rings[i].hole; hole >= 0; hole = rings[hole].next)
            write_ring(json, &rings[hole], xy, shape);
        mc_json_close(json);
    }
    mc_json_close(json);
    mc_json_close(json);
}

/* Points and lines: the type of a single part is that of the part. */
static void
write_parts(mc_json_writer *json, const mc_shape *shape, const double *xy)
{
    static const char *const types[2][2] = { { "MultiLineString", "LineString" }, { "MultiPoint", "Point" } };
    bool points = shape->kind == MC_SHAPE_POINTS, one = shape->part_count == 1;
    const char *part_key = one ? "coordinates" : NULL;
    mc_json_open_object(json, NULL);
    mc_json_string(json, "type", types[points][one]);
    if (!one)
        mc_json_open_array(json, "coordinates");
    for (int part = 0, begin = 0; part < shape->part_count; begin = shape->ends[part++])
        if (points)
            write_point(json, part_key, xy + 2 * begin);
        else
            write_path(json, part_key, xy, begin, shape->ends[part], false, false);
    if (!one)
        mc_json_close(json);
    mc_json_close(json);
}

static void
write_shape(mc_json_writer *json, const mc_shape *shape, const double *xy, apr_pool_t *pool)
{
    if (shape->kind == MC_SHAPE_POLYGONS)
        write_polygons(json, shape, xy, pool);
    else
        write_parts(json, shape, xy);
}

const char *
mc_info_geojson(const mc_info_layer *layer, const mc_feature *feature, apr_pool_t *pool)
{
    enum { KINDS = 3 };
    const mc_shape *shapes[KINDS];
    const double *xy[KINDS];
    int count = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        const mc_shape *shape = &feature->geometry->shapes[kind];
        bool usable = shape->point_count <= MC_INFO_POINTS_MAX && !layer->no_geometry;
        if (usable && shape->part_count == 0)
            continue;
        shapes[count] = shape;
        xy[count] = usable ? in_degrees(layer, feature->query, shape, pool) : NULL;
        if (xy[count++] == NULL)
            return "null";
    }
    mc_json_writer *json = mc_json_create(MC_JSON_DENSE, pool);
    if (count == 1) {
        write_shape(json, shapes[0], xy[0], pool);
        return mc_json_finish_text(json);
    }
    mc_json_open_object(json, NULL);
    mc_json_string(json, "type", "GeometryCollection");
    mc_json_open_array(json, "geometries");
    for (int i = 0; i < count; i++)
        write_shape(json, shapes[i], xy[i], pool);
    mc_json_close(json);
    mc_json_close(json);
    return mc_json_finish_text(json);
}
