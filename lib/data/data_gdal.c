/*
 * Part of the module mapcache-gdal.so: what GDAL and OGR say of a file. Headers are read, features and pixels are not.
 */
#include "data/data_gdal.h"

#include <apr_strings.h>
#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <math.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>
#include <stdlib.h>
#include <string.h>

#include "source/gdal/gdal_bands.h"
#include "source/gdal/gdal_open.h"
#include "source/gdal/gdal_place.h"
#include "vector/feature/feature.h"
#include "vector/ogr/ogr_memory.h"

enum { SAID_SIZE = 512 };

static void CPL_STDCALL
keep_gdal_failure(CPLErr level, CPLErrorNum number, const char *text)
{
    (void)number;
    char *kept = CPLGetErrorHandlerUserData();
    if (level >= CE_Failure && *kept == '\0')
        apr_cpystrn(kept, text, SAID_SIZE);
}

static const char *
copy_item(GDALMajorObjectH object, const char *key, apr_pool_t *pool)
{
    const char *value = GDALGetMetadataItem(object, key, NULL);
    return value == NULL || *value == '\0' ? NULL : apr_pstrdup(pool, value);
}

/* --- rasters ------------------------------------------------------------------------------------------------------ */

static void
place_raster(mc_data_layer *layer, double *pixel, GDALDatasetH raster)
{
    double t[6];
    layer->has_extent = mc_gdal_box(&layer->extent, pixel, raster);
    if (GDALGetGeoTransform(raster, t) == CE_None)
        layer->transparent = layer->transparent || t[2] != 0 || t[4] != 0;
}

/* Three bands that say that they are red, green and blue; else the first three, or the first one. */
static const char *
choose_picture(GDALDatasetH raster, int count, apr_pool_t *pool)
{
    int colors[3] = { 0 };
    for (int i = 1; i <= count; i++) {
        GDALColorInterp meaning = GDALGetRasterColorInterpretation(GDALGetRasterBand(raster, i));
        if (meaning >= GCI_RedBand && meaning <= GCI_BlueBand && colors[meaning - GCI_RedBand] == 0)
            colors[meaning - GCI_RedBand] = i;
    }
    if (colors[0] > 0 && colors[1] > 0 && colors[2] > 0)
        return apr_psprintf(pool, "%d %d %d", colors[0], colors[1], colors[2]);
    return count >= 3 ? "1 2 3" : "1";
}

/* The numbers of a text as choose_picture writes it. */
static int
list_picture_bands(int bands[3], const char *picture)
{
    int count = 0;
    for (char *end; count < 3 && *picture != '\0'; picture = end)
        bands[count++] = (int)strtol(picture, &end, 10);
    return count;
}

static bool
has_holes(GDALDatasetH raster)
{
    int has = 0;
    GDALRasterBandH band = GDALGetRasterBand(raster, 1);
    (void)GDALGetRasterNoDataValue(band, &has);
    return has != 0 || (GDALGetMaskFlags(band) & GMF_ALL_VALID) == 0;
}

/* NULL, or why no picture can be made. */
static const char *
describe_bands(mc_data_layer *layer, GDALDatasetH raster, apr_pool_t *pool)
{
    mc_gdal_picture picture;
    mc_gdal_raster wanted = { 0 };
    layer->bands = GDALGetRasterCount(raster);
    const char *trouble = mc_gdal_picture_find(&picture, raster, &wanted, pool);
    if (trouble != NULL && layer->bands > 0) {
        layer->picture = choose_picture(raster, layer->bands, pool);
        wanted.band_count = list_picture_bands(wanted.bands, layer->picture);
        trouble = mc_gdal_picture_find(&picture, raster, &wanted, pool);
    }
    if (trouble != NULL)
        return trouble;
    layer->measured = picture.measured;
    layer->transparent = picture.alpha > 0 || has_holes(raster);
    return NULL;
}

static mc_error *
describe_raster(mc_data_search *search, double *pixel, GDALDatasetH raster, const char *path)
{
    apr_pool_t *pool = search->pool;
    mc_data_layer about = { 0 };
    const char *trouble = mc_gdal_place_missing(raster);
    if (trouble == NULL)
        trouble = describe_bands(&about, raster, pool);
    if (trouble != NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "\"%s\": %s", path, trouble);
    mc_data_layer *layer = mc_data_add(search, MC_DATA_RASTER, "gdal");
    if (layer == NULL)
        return MC_OK;
    about.kind = layer->kind;
    about.type = layer->type;
    about.minzoom = about.maxzoom = -1;
    *layer = about;
    layer->data = apr_pstrdup(pool, path);
    layer->name = mc_data_stem(path, pool);
    layer->srs = mc_gdal_crs_name(GDALGetSpatialRef(raster), pool);
    layer->title = copy_item(raster, "TITLE", pool);
    layer->description = copy_item(raster, "TIFFTAG_IMAGEDESCRIPTION", pool);
    layer->attribution = copy_item(raster, "TIFFTAG_COPYRIGHT", pool);
    place_raster(layer, pixel, raster);
    return MC_OK;
}

/* --- vector files ------------------------------------------------------------------------------------------------- */

static mc_data_shape
shape_of_ogr(OGRwkbGeometryType type)
{
    switch (OGR_GT_Flatten(type)) {
    case wkbPoint:
    case wkbMultiPoint:
        return MC_DATA_POINTS;
    case wkbLineString:
    case wkbMultiLineString:
    case wkbCircularString:
    case wkbCompoundCurve:
    case wkbMultiCurve:
    case wkbCurve:
        return MC_DATA_LINES;
    case wkbPolygon:
    case wkbMultiPolygon:
    case wkbCurvePolygon:
    case wkbMultiSurface:
    case wkbSurface:
    case wkbTIN:
    case wkbPolyhedralSurface:
        return MC_DATA_AREAS;
    default:
        return MC_DATA_ANY_SHAPE;
    }
}

static mc_field_type
type_of_field(OGRFieldDefnH field)
{
    OGRFieldType type = OGR_Fld_GetType(field);
    if (type == OFTInteger || type == OFTInteger64)
        return OGR_Fld_GetSubType(field) == OFSTBoolean ? MC_FIELD_BOOLEAN : MC_FIELD_INTEGER;
    return type == OFTReal ? MC_FIELD_NUMBER : MC_FIELD_TEXT;
}

static const apr_array_header_t *
list_fields(OGRLayerH from, apr_pool_t *pool)
{
    OGRFeatureDefnH definition = OGR_L_GetLayerDefn(from);
    int count = OGR_FD_GetFieldCount(definition);
    apr_array_header_t *fields = apr_array_make(pool, count + 1, sizeof(mc_field));
    for (int i = 0; i < count; i++) {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(definition, i);
        APR_ARRAY_PUSH(fields, mc_field) =
            (mc_field){ apr_pstrdup(pool, OGR_Fld_GetNameRef(field)), type_of_field(field) };
    }
    return fields;
}

/* OGR has read a GeoJSON already; one that is large would be read again. */
static bool
is_cheap_to_read(const char *driver, const char *path)
{
    VSIStatBufL info;
    return strncmp(driver, "GeoJSON", 7) == 0 && VSIStatL(path, &info) == 0 && info.st_size <= MC_OGR_MEMORY_FILE;
}

/* A box that the file says, without a look at all features, unless those may be `read`. */
static void
place_vectors(mc_data_layer *layer, OGRLayerH from, bool read)
{
    OGREnvelope box;
    if (OGR_L_GetExtent(from, &box, read) != OGRERR_NONE || !isfinite(box.MinX) || !isfinite(box.MaxX) ||
        !isfinite(box.MinY) || !isfinite(box.MaxY))
        return;
    layer->has_extent = box.MinX <= box.MaxX && box.MinY <= box.MaxY;
    layer->extent = (mc_extent){ box.MinX, box.MinY, box.MaxX, box.MaxY };
}

static void
describe_vectors(mc_data_search *search, GDALDatasetH file, OGRLayerH from, const char *path)
{
    const char *driver = GDALGetDriverShortName(GDALGetDatasetDriver(file));
    bool several = GDALDatasetGetLayerCount(file) > 1;
    mc_data_layer *layer = mc_data_add(search, MC_DATA_VECTOR, "ogr");
    if (layer == NULL)
        return;
    layer->data = apr_pstrdup(search->pool, path);
    layer->name = several ? apr_pstrdup(search->pool, OGR_L_GetName(from)) : mc_data_stem(path, search->pool);
    layer->title = strcmp(driver, "GPKG") == 0 ? copy_item(from, "IDENTIFIER", search->pool) : NULL;
    layer->description = copy_item(from, "DESCRIPTION", search->pool);
    layer->table = several ? apr_pstrdup(search->pool, OGR_L_GetName(from)) : NULL;
    layer->srs = mc_gdal_crs_name(OGR_L_GetSpatialRef(from), search->pool);
    layer->shape = shape_of_ogr(OGR_L_GetGeomType(from));
    layer->attributes = list_fields(from, search->pool);
    place_vectors(layer, from, is_cheap_to_read(driver, path));
}

static mc_error *
describe_layers(mc_data_search *search, GDALDatasetH file, const char *path, const char *part)
{
    int count = GDALDatasetGetLayerCount(file), taken = 0;
    for (int i = 0; i < count; i++) {
        OGRLayerH from = GDALDatasetGetLayer(file, i);
        if (part != NULL && strcmp(OGR_L_GetName(from), part) != 0)
            continue;
        if (OGR_L_GetGeomType(from) == wkbNone) {
            mc_data_note(search, "%s: the table \"%s\" has no geometry", path, OGR_L_GetName(from));
            continue;
        }
        describe_vectors(search, file, from, path);
        taken++;
    }
    if (part != NULL && taken == 0)
        return mc_error_create(search->pool, MC_ERR_CONFIG, "\"%s\" has no layer \"%s\"", path, part);
    return MC_OK;
}

/* --- a file ------------------------------------------------------------------------------------------------------- */

static const char *
join_words(char **words, apr_pool_t *pool)
{
    const char *text = "";
    for (int i = 0; words[i] != NULL; i++)
        text = apr_pstrcat(pool, text, i == 0 ? "" : " ", words[i], NULL);
    return text;
}

/* A raster, or vector layers: opened as nothing that names other files or addresses. */
static mc_error *
open_and_describe(mc_data_search *search, double *pixel, const char *path, const char *part, const char *said)
{
    static const char *const vectors[] = { "GPKG", "FlatGeobuf", "GeoJSON", "GeoJSONSeq", NULL };
    mc_error *error = MC_OK;
    int first = search->layers->nelts;
    if (!mc_gdal_is_plain(path))
        return mc_error_create(search->pool, MC_ERR_CONFIG, "\"%s\" is not read: %s", path, said);
    GDALDatasetH file = GDALOpenEx(path, GDAL_OF_VECTOR | GDAL_OF_READONLY, vectors, NULL, NULL);
    if (file != NULL && GDALDatasetGetLayerCount(file) > 0) {
        error = describe_layers(search, file, path, part);
        GDALClose(file);
        return error;
    }
    if (file != NULL)
        GDALClose(file);
    char **drivers = mc_gdal_drivers(path);
    const char *names = join_words(drivers, search->pool);
    file = mc_gdal_open_as(path, (const char *const *)drivers);
    CSLDestroy(drivers);
    if (file == NULL)
        return mc_error_create(search->pool, MC_ERR_CONFIG, "\"%s\" is nothing that can be served%s%s", path,
                               *said == '\0' ? "" : ": ", said);
    error = describe_raster(search, pixel, file, path);
    for (int i = first; i < search->layers->nelts; i++)
        APR_ARRAY_IDX(search->layers, i, mc_data_layer *)->drivers = names;
    GDALClose(file);
    return error;
}

static mc_error *
look_with_gdal(mc_data_search *search, double *pixel, const char *path, const char *part)
{
    char said[SAID_SIZE] = "", seconds[32];
    mc_gdal_start();
    apr_snprintf(seconds, sizeof(seconds), "%d",
                 (int)(mc_ctx_remaining(search->ctx, 10 * APR_USEC_PER_SEC) / APR_USEC_PER_SEC) + 1);
    CPLSetThreadLocalConfigOption("GDAL_HTTP_TIMEOUT", seconds);
    CPLSetThreadLocalConfigOption("GDAL_HTTP_CONNECTTIMEOUT", seconds);
    if (strncmp(path, "/vsicurl/", 9) == 0) /* what lies beside a file is not asked for one by one */
        CPLSetThreadLocalConfigOption("GDAL_DISABLE_READDIR_ON_OPEN", "EMPTY_DIR");
    CPLPushErrorHandlerEx(keep_gdal_failure, said);
    mc_error *error = open_and_describe(search, pixel, path, part, said);
    CPLPopErrorHandler();
    CPLSetThreadLocalConfigOption("GDAL_HTTP_TIMEOUT", NULL);
    CPLSetThreadLocalConfigOption("GDAL_HTTP_CONNECTTIMEOUT", NULL);
    CPLSetThreadLocalConfigOption("GDAL_DISABLE_READDIR_ON_OPEN", NULL);
    return error;
}

const mc_data_gdal_ops mc_data_gdal_look_ops = { look_with_gdal };
