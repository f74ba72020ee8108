/* Spatial conditions: see spatial.h. Whole numbers of 1/256 pixel, computed with doubles that hold them exactly. */
#include "draw/style/spatial.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <math.h>
#include <string.h>

#include "grid/earth.h"
#include "vector/crs/projection.h"
#include "vector/geometry/hit.h"
#include "vector/geometry/places.h"

typedef struct spatial_segment {
    mc_shape_point a, b;
} spatial_segment;

/* Goes through the segments of lines and areas; points are segments of no length. */
typedef struct spatial_walk {
    const mc_geometry *geometry;
    int kind, part, at;
} spatial_walk;

static bool
next_geometry_segment(spatial_segment *next, spatial_walk *w)
{
    for (; w->kind <= MC_SHAPE_POLYGONS; w->kind++, w->part = w->at = 0) {
        const mc_shape *shape = &w->geometry->shapes[w->kind];
        for (; w->part < shape->part_count; w->part++, w->at = 0) {
            int begin = w->part == 0 ? 0 : shape->ends[w->part - 1], count = shape->ends[w->part] - begin;
            int segments = shape->kind == MC_SHAPE_LINES ? count - 1 : count;
            if (w->at >= segments)
                continue;
            next->a = shape->points[begin + w->at];
            next->b = shape->kind == MC_SHAPE_POINTS ? next->a : shape->points[begin + (w->at + 1) % count];
            w->at++;
            return true;
        }
    }
    return false;
}

static double
side_of_segment(spatial_segment s, mc_shape_point p)
{
    return ((double)s.b.x - s.a.x) * ((double)p.y - s.a.y) - ((double)s.b.y - s.a.y) * ((double)p.x - s.a.x);
}

/* Whether they cross inside of both: touching is not enough. */
static bool
segments_cross(spatial_segment s, spatial_segment t)
{
    double s1 = side_of_segment(s, t.a), s2 = side_of_segment(s, t.b), t1 = side_of_segment(t, s.a),
           t2 = side_of_segment(t, s.b);
    return ((s1 < 0 && s2 > 0) || (s1 > 0 && s2 < 0)) && ((t1 < 0 && t2 > 0) || (t1 > 0 && t2 < 0));
}

static double
squared_between(spatial_segment s, spatial_segment t)
{
    if (segments_cross(s, t))
        return 0;
    return fmin(fmin(mc_shape_squared_from(s.a, t.a, t.b), mc_shape_squared_from(s.b, t.a, t.b)),
                fmin(mc_shape_squared_from(t.a, s.a, s.b), mc_shape_squared_from(t.b, s.a, s.b)));
}

/* Whether the first point of any part of one lies in an area of the other. */
static bool
any_inside(const mc_geometry *geometry, const mc_shape *areas)
{
    for (int kind = 0; kind < 3 && areas->part_count > 0; kind++) {
        const mc_shape *shape = &geometry->shapes[kind];
        for (int part = 0; part < shape->part_count; part++)
            if (mc_shape_covers(areas, shape->points[part == 0 ? 0 : shape->ends[part - 1]]))
                return true;
    }
    return false;
}

/* The box of a geometry, larger by `reach`. */
typedef struct box {
    double minx, miny, maxx, maxy;
} box;

static bool
reach_box_of(box *around, const mc_geometry *geometry, double reach)
{
    int32_t minx, miny, maxx, maxy;
    if (!mc_geometry_bounds(geometry, &minx, &miny, &maxx, &maxy))
        return false;
    *around = (box){ minx - reach, miny - reach, maxx + reach, maxy + reach };
    return true;
}

static bool
is_off(spatial_segment s, const box *around)
{
    return fmax(s.a.x, s.b.x) < around->minx || fmin(s.a.x, s.b.x) > around->maxx ||
           fmax(s.a.y, s.b.y) < around->miny || fmin(s.a.y, s.b.y) > around->maxy;
}

/* Whether they come as near as `distance`. */
static bool
are_geometries_near(const mc_geometry *a, const mc_geometry *b, double distance)
{
    box around, own;
    spatial_segment s, t;
    if (!reach_box_of(&around, b, distance) || !reach_box_of(&own, a, 0))
        return false;
    if (own.minx > around.maxx || own.maxx < around.minx || own.miny > around.maxy || own.maxy < around.miny)
        return false;
    if (any_inside(a, &b->shapes[MC_SHAPE_POLYGONS]) || any_inside(b, &a->shapes[MC_SHAPE_POLYGONS]))
        return true;
    spatial_walk of_a = { .geometry = a };
    while (next_geometry_segment(&s, &of_a)) {
        spatial_walk of_b = { .geometry = b };
        if (is_off(s, &around))
            continue;
        while (next_geometry_segment(&t, &of_b))
            if (squared_between(s, t) <= distance * distance)
                return true;
    }
    return false;
}

/* At the edge of the areas, as near as a subpixel. */
static bool
at_edge(const mc_geometry *areas, mc_shape_point p)
{
    spatial_segment t;
    spatial_walk of_areas = { .geometry = areas, .kind = MC_SHAPE_POLYGONS };
    while (next_geometry_segment(&t, &of_areas))
        if (mc_shape_squared_from(p, t.a, t.b) <= 1)
            return true;
    return false;
}

static bool
areas_cover_point(const mc_geometry *areas, mc_shape_point p)
{
    return mc_shape_covers(&areas->shapes[MC_SHAPE_POLYGONS], p) || at_edge(areas, p);
}

static mc_shape_point
segment_midpoint(spatial_segment s)
{
    return (mc_shape_point){ (int32_t)(((int64_t)s.a.x + s.b.x) / 2), (int32_t)(((int64_t)s.a.y + s.b.y) / 2) };
}

/* Whether areas whose edges do not cross leave the areas of `outer`: it has an edge inside of them (a hole, a gap), or
 * they fill a hole of it. */
static bool
areas_leave(const mc_geometry *inner, const mc_geometry *outer)
{
    const mc_shape *areas = &outer->shapes[MC_SHAPE_POLYGONS], *own = &inner->shapes[MC_SHAPE_POLYGONS];
    if (own->part_count == 0)
        return false;
    for (int i = 0; i < areas->point_count; i++)
        if (mc_shape_covers(own, areas->points[i]) && !at_edge(inner, areas->points[i]))
            return true;
    mc_shape middle = { 0 };
    const mc_geometry only_areas = { .shapes = { [MC_SHAPE_POLYGONS] = *own } };
    mc_places_find(&middle, &only_areas, MC_PART_INSIDE);
    bool leaves = middle.point_count > 0 && !mc_shape_covers(areas, middle.points[0]);
    mc_shape_free(&middle);
    return leaves;
}

/* Whether all of `inner` lies in the areas of `outer`: its ends and middles do, and nothing crosses. */
static bool
geometry_lies_in(const mc_geometry *inner, const mc_geometry *outer)
{
    box around;
    spatial_segment s, t;
    spatial_walk of_inner = { .geometry = inner };
    if (!reach_box_of(&around, outer, 1) || outer->shapes[MC_SHAPE_POLYGONS].part_count == 0 ||
        mc_geometry_is_empty(inner))
        return false;
    while (next_geometry_segment(&s, &of_inner)) {
        spatial_walk of_outer = { .geometry = outer, .kind = MC_SHAPE_POLYGONS };
        if (is_off(s, &around) || !areas_cover_point(outer, s.a) || !areas_cover_point(outer, s.b) ||
            !areas_cover_point(outer, segment_midpoint(s)))
            return false;
        while (next_geometry_segment(&t, &of_outer))
            if (segments_cross(s, t) && mc_shape_squared_from(t.a, s.a, s.b) > 1 &&
                mc_shape_squared_from(t.b, s.a, s.b) > 1)
                return false;
    }
    return !areas_leave(inner, outer);
}

bool
mc_spatial_compare(mc_spatial_kind kind, const mc_geometry *feature, const mc_geometry *other, double distance)
{
    switch (kind) {
    case MC_SPATIAL_INTERSECTS:
        return are_geometries_near(feature, other, 0);
    case MC_SPATIAL_DISJOINT:
        return !are_geometries_near(feature, other, 0);
    case MC_SPATIAL_WITHIN:
        return geometry_lies_in(feature, other);
    case MC_SPATIAL_CONTAINS:
        return geometry_lies_in(other, feature);
    case MC_SPATIAL_NEARER:
        return are_geometries_near(feature, other, distance);
    default:
        return !are_geometries_near(feature, other, distance);
    }
}

/* The style's geometry in pixels of the map; NULL where it cannot be had. */
static mc_geometry *
place_style_geometry(const mc_spatial *spatial, const mc_feature_query *query, apr_pool_t *pool)
{
    mc_projection *projection = NULL;
    mc_geometry *placed = apr_pcalloc(pool, sizeof(*placed));
    mc_pixel_grid pixel_grid = query->pixel_grid;
    pixel_grid.thinning = 0;
    mc_geometry_clear(placed);
    if (spatial->srs != NULL && query->srs != NULL &&
        mc_projection_open(&projection, spatial->srs, query->srs, pool) != MC_OK)
        return NULL;
    for (int i = 0; i < spatial->part_count; i++) {
        const mc_spatial_part *part = &spatial->parts[i];
        mc_shape *shape = &placed->shapes[part->kind];
        double *xy = apr_palloc(pool, sizeof(double) * 2 * (size_t)part->count);
        memcpy(xy, part->xy, sizeof(double) * 2 * (size_t)part->count);
        if (projection != NULL)
            mc_projection_points(projection, xy, (size_t)part->count);
        for (int v = 0; v < part->count; v++)
            mc_shape_add_vertex(shape, &pixel_grid, xy[2 * v], xy[2 * v + 1]);
        if (part->kind == MC_SHAPE_POLYGONS)
            mc_shape_end_ring(shape, part->hole);
        else
            mc_shape_end_part(shape);
    }
    return placed;
}

static apr_status_t
free_placed(void *geometry)
{
    mc_geometry_free(geometry);
    return APR_SUCCESS;
}

/* Placed once for a map. */
static const mc_geometry *
placed_for(const mc_spatial *spatial, const mc_feature *feature)
{
    mc_geometry *placed = apr_hash_get(feature->placed, &spatial, sizeof(spatial));
    if (placed != NULL)
        return placed;
    apr_pool_t *pool = apr_hash_pool_get(feature->placed);
    placed = place_style_geometry(spatial, feature->query, pool);
    if (placed == NULL) { /* nothing: no feature fits, and it is not tried again */
        placed = apr_pcalloc(pool, sizeof(*placed));
        mc_geometry_clear(placed);
    }
    apr_pool_cleanup_register(pool, placed, free_placed, apr_pool_cleanup_null);
    const mc_spatial **key = apr_palloc(pool, sizeof(*key));
    *key = spatial;
    apr_hash_set(feature->placed, key, sizeof(*key), placed);
    return placed;
}

bool
mc_spatial_matches(const mc_spatial *spatial, const mc_feature *feature, apr_pool_t *scratch)
{
    (void)scratch;
    if (feature->query == NULL || feature->placed == NULL || feature->geometry == NULL)
        return false;
    const mc_feature_query *query = feature->query;
    const mc_geometry *placed = placed_for(spatial, feature);
    double unit = spatial->in_metres ? query->scale * MC_PIXEL_METRES / (query->resolution * mc_query_density(query))
                                     : 1; /* metres for a unit of the map */
    double distance = fmin(spatial->distance / fmax(unit, 1e-9) * query->pixel_grid.per_x, 1e6) * MC_SUBPIXELS;
    return !mc_geometry_is_empty(placed) && mc_spatial_compare(spatial->kind, feature->geometry, placed, distance);
}
