/* Part of the module mapcache-gdal.so: areas from whatever OGR reads. */
#include <cpl_error.h>
#include <gdal.h>
#include <ogr_api.h>
#include <stdlib.h>
#include <string.h>

#include "seed/area_ogr_shape.h"

typedef struct area_ogr_reader {
    mc_region_builder *builder;
    mc_seed_shape *shape; /* NULL: nobody wants it */
    double *xy;
    int room;
    apr_pool_t *pool;
} area_ogr_reader;

static mc_error *
ogr_source_error(const mc_seed_ogr *wanted, const char *what, apr_pool_t *pool)
{
    mc_error *reason = mc_error_create(pool, MC_ERR_CONFIG, "%s", CPLGetLastErrorMsg());
    return mc_error_wrap(pool, reason, MC_ERR_CONFIG, "%s of \"%s\" cannot be used", what, wanted->source);
}

static mc_error *
add_ogr_line(area_ogr_reader *in, OGRGeometryH line, mc_region_kind kind)
{
    int count = OGR_G_GetPointCount(line);
    if (count <= 0)
        return MC_OK;
    if (count > in->room) {
        in->room = count;
        in->xy = realloc(in->xy, (size_t)count * 2 * sizeof(double));
        MC_ASSERT(in->xy != NULL);
    }
    OGR_G_GetPoints(line, in->xy, 2 * (int)sizeof(double), in->xy + 1, 2 * (int)sizeof(double), NULL, 0);
    return mc_region_add(in->builder, kind, in->xy, (size_t)count, in->pool);
}

/* Depth is bounded by what OGR itself reads. */
static mc_error *
add_ogr_geometry(area_ogr_reader *in, OGRGeometryH geometry)
{
    OGRwkbGeometryType type = wkbFlatten(OGR_G_GetGeometryType(geometry));
    if (in->shape != NULL)
        mc_seed_shape_add(in->shape, geometry, type);
    if (type == wkbPoint || type == wkbLineString)
        return add_ogr_line(in, geometry, type == wkbPoint ? MC_REGION_POINT : MC_REGION_LINE);
    for (int i = 0; i < OGR_G_GetGeometryCount(geometry); i++) {
        OGRGeometryH part = OGR_G_GetGeometryRef(geometry, i);
        if (type == wkbPolygon || type == wkbTriangle)
            MC_TRY(add_ogr_line(in, part, i == 0 ? MC_REGION_RING : MC_REGION_HOLE));
        else
            MC_TRY(add_ogr_geometry(in, part));
    }
    return MC_OK;
}

static mc_error *
add_feature(area_ogr_reader *in, OGRFeatureH feature, int64_t *invalid)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    if (geometry == NULL)
        return MC_OK;
    if (!OGR_G_IsValid(geometry)) {
        ++*invalid;
        return MC_OK;
    }
    OGRGeometryH straight = OGR_G_HasCurveGeometry(geometry, FALSE) ? OGR_G_GetLinearGeometry(geometry, 0, NULL) : NULL;
    mc_error *error = add_ogr_geometry(in, straight != NULL ? straight : geometry);
    OGR_G_DestroyGeometry(straight);
    return error;
}

/* The next feature; NULL at the end. A source that fails half way ends as well: a part of an area is none. */
static mc_error *
next_feature(OGRFeatureH *feature, OGRLayerH layer, const mc_seed_ogr *wanted, apr_pool_t *pool)
{
    CPLErrorReset();
    *feature = OGR_L_GetNextFeature(layer);
    return *feature == NULL && CPLGetLastErrorType() >= CE_Failure ? ogr_source_error(wanted, "a feature", pool)
                                                                   : MC_OK;
}

static mc_error *
add_ogr_layer(area_ogr_reader *in, OGRLayerH layer, int64_t *features, int64_t *invalid, const mc_seed_ogr *wanted)
{
    OGRFeatureH feature;
    OGR_L_ResetReading(layer);
    for (;;) {
        MC_TRY(next_feature(&feature, layer, wanted, in->pool));
        if (feature == NULL)
            return MC_OK;
        ++*features;
        mc_error *error = add_feature(in, feature, invalid);
        OGR_F_Destroy(feature);
        MC_TRY(error);
    }
}

static mc_error *
choose_layer(OGRLayerH *layer, GDALDatasetH data, const mc_seed_ogr *wanted, apr_pool_t *pool)
{
    int count = GDALDatasetGetLayerCount(data);
    if (wanted->layer == NULL && count != 1)
        return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\" has %d layers: name one by --ogr-layer", wanted->source,
                               count);
    *layer = wanted->layer == NULL ? GDALDatasetGetLayer(data, 0) : GDALDatasetGetLayerByName(data, wanted->layer);
    if (*layer == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\" has no layer \"%s\"", wanted->source, wanted->layer);
    if (wanted->where != NULL && OGR_L_SetAttributeFilter(*layer, wanted->where) != OGRERR_NONE)
        return ogr_source_error(wanted, "the filter", pool);
    return MC_OK;
}

static mc_error *
read_ogr_dataset(area_ogr_reader *in, GDALDatasetH data, int64_t *features, int64_t *invalid, const mc_seed_ogr *wanted)
{
    OGRLayerH layer = NULL;
    if (wanted->sql == NULL) {
        MC_TRY(choose_layer(&layer, data, wanted, in->pool));
        return add_ogr_layer(in, layer, features, invalid, wanted);
    }
    layer = GDALDatasetExecuteSQL(data, wanted->sql, NULL, NULL);
    if (layer == NULL)
        return ogr_source_error(wanted, "the query", in->pool);
    mc_error *error = add_ogr_layer(in, layer, features, invalid, wanted);
    GDALDatasetReleaseResultSet(data, layer);
    return error;
}

static mc_error *
read_source(mc_region_builder *builder, int64_t *features, int64_t *invalid, const mc_seed_ogr *wanted,
            apr_pool_t *pool)
{
    area_ogr_reader in = { .builder = builder, .pool = pool };
    *features = *invalid = 0;
    if (wanted->shape != NULL)
        *wanted->shape = in.shape = mc_seed_shape_begin(pool);
    GDALAllRegister();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    GDALDatasetH data = GDALOpenEx(wanted->source, GDAL_OF_VECTOR | GDAL_OF_READONLY, NULL, NULL, NULL);
    mc_error *error = data == NULL ? ogr_source_error(wanted, "the vector data", pool)
                                   : read_ogr_dataset(&in, data, features, invalid, wanted);
    if (data != NULL)
        GDALClose(data);
    if (error == MC_OK && in.shape != NULL && wanted->united)
        error = mc_seed_shape_finish(in.shape, pool);
    CPLPopErrorHandler();
    free(in.xy);
    return error;
}

const mc_areas_ogr_ops mc_areas_ogr_ops_gdal = { .read = read_source, .cut = mc_seed_shape_part };
