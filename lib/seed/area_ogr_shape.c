/* Part of the module mapcache-gdal.so: the geometry of an area, kept to be cut by boxes. */
#include "seed/area_ogr_shape.h"

#include <apr_strings.h>
#include <cpl_conv.h>
#include <cpl_error.h>

enum { POLYGONS, LINES, POINTS, SORTS };
static const OGRwkbGeometryType sorts[] = { wkbMultiPolygon, wkbMultiLineString, wkbMultiPoint };

/* One collection of each sort: GEOS cuts no mixed ones. */
struct mc_seed_shape {
    OGRGeometryH of[SORTS];
};

static apr_status_t
free_shape(void *data)
{
    mc_seed_shape *shape = data;
    for (int i = 0; i < SORTS; i++)
        OGR_G_DestroyGeometry(shape->of[i]);
    return APR_SUCCESS;
}

mc_seed_shape *
mc_seed_shape_begin(apr_pool_t *pool)
{
    mc_seed_shape *shape = apr_pcalloc(pool, sizeof(*shape));
    for (int i = 0; i < SORTS; i++)
        shape->of[i] = OGR_G_CreateGeometry(sorts[i]);
    apr_pool_cleanup_register(pool, shape, free_shape, apr_pool_cleanup_null);
    return shape;
}

void
mc_seed_shape_add(mc_seed_shape *shape, OGRGeometryH geometry, OGRwkbGeometryType type)
{
    bool area = type == wkbPolygon || type == wkbTriangle;
    if (!area && type != wkbLineString && type != wkbPoint)
        return;
    OGRGeometryH copy = OGR_G_Clone(geometry);
    OGR_G_FlattenTo2D(copy);
    OGR_G_AssignSpatialReference(copy, NULL); /* x stays first */
    if (type == wkbTriangle)
        copy = OGR_G_ForceToPolygon(copy);
    OGR_G_AddGeometryDirectly(shape->of[area ? POLYGONS : type == wkbLineString ? LINES : POINTS], copy);
}

static mc_error *
shape_corrupt_error(const char *what, apr_pool_t *pool)
{
    return mc_error_create(pool, MC_ERR_CORRUPT, "the area cannot be %s: %s", what, CPLGetLastErrorMsg());
}

mc_error *
mc_seed_shape_finish(mc_seed_shape *shape, apr_pool_t *pool)
{
    if (OGR_G_GetGeometryCount(shape->of[POLYGONS]) < 2)
        return MC_OK;
    OGRGeometryH whole = OGR_G_UnionCascaded(shape->of[POLYGONS]);
    if (whole == NULL)
        return shape_corrupt_error("united", pool);
    OGR_G_DestroyGeometry(shape->of[POLYGONS]);
    shape->of[POLYGONS] = whole;
    return MC_OK;
}

static OGRGeometryH
make_box_polygon(const mc_extent *box)
{
    OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon), ring = OGR_G_CreateGeometry(wkbLinearRing);
    OGR_G_AddPoint_2D(ring, box->minx, box->miny);
    OGR_G_AddPoint_2D(ring, box->maxx, box->miny);
    OGR_G_AddPoint_2D(ring, box->maxx, box->maxy);
    OGR_G_AddPoint_2D(ring, box->minx, box->maxy);
    OGR_G_AddPoint_2D(ring, box->minx, box->miny);
    OGR_G_AddGeometryDirectly(polygon, ring);
    return polygon;
}

/* A collection of one is what it holds. */
static OGRGeometryH
unwrap_single_geometry(OGRGeometryH geometry)
{
    bool several = OGR_GT_IsSubClassOf(OGR_G_GetGeometryType(geometry), wkbGeometryCollection);
    return several && OGR_G_GetGeometryCount(geometry) == 1 ? unwrap_single_geometry(OGR_G_GetGeometryRef(geometry, 0))
                                                            : geometry;
}

/* Adds what lies in `box` (NULL: everywhere) of each sort. */
static mc_error *
collect_shape_sorts(OGRGeometryH parts, const mc_seed_shape *shape, OGRGeometryH box, apr_pool_t *pool)
{
    for (int i = 0; i < SORTS; i++) {
        if (OGR_G_IsEmpty(shape->of[i]))
            continue;
        OGRGeometryH part = box == NULL ? OGR_G_Clone(shape->of[i]) : OGR_G_Intersection(shape->of[i], box);
        if (part == NULL)
            return shape_corrupt_error("cut", pool);
        if (!OGR_G_IsEmpty(part))
            OGR_G_AddGeometry(parts, unwrap_single_geometry(part));
        OGR_G_DestroyGeometry(part);
    }
    return MC_OK;
}

static void
write_shape_geojson(const char **json, mc_extent *bounds, OGRGeometryH geometry, apr_pool_t *pool)
{
    OGREnvelope envelope;
    OGR_G_GetEnvelope(geometry, &envelope);
    *bounds = (mc_extent){ envelope.MinX, envelope.MinY, envelope.MaxX, envelope.MaxY };
    char *text = OGR_G_ExportToJson(geometry);
    *json = apr_pstrdup(pool, text);
    CPLFree(text);
}

mc_error *
mc_seed_shape_part(const char **json, mc_extent *bounds, const mc_seed_shape *shape, const mc_extent *box,
                   apr_pool_t *pool)
{
    OGRGeometryH parts = OGR_G_CreateGeometry(wkbGeometryCollection), clip = box == NULL ? NULL : make_box_polygon(box);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    mc_error *error = collect_shape_sorts(parts, shape, clip, pool);
    CPLPopErrorHandler();
    *json = NULL;
    if (error == MC_OK && !OGR_G_IsEmpty(parts))
        write_shape_geojson(json, bounds, unwrap_single_geometry(parts), pool);
    OGR_G_DestroyGeometry(clip);
    OGR_G_DestroyGeometry(parts);
    return error;
}
