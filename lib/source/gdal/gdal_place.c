/* See gdal_place.h. */
#include "source/gdal/gdal_place.h"

#include <apr_strings.h>
#include <cpl_conv.h>
#include <cpl_error.h>
#include <math.h>
#include <ogr_srs_api.h>
#include <string.h>

#include "source/gdal/gdal_pool.h"

/* A code is what the file says: it may be any text, and goes into configurations and documents. */
static bool
is_epsg_code(const char *code)
{
    enum { DIGITS_MAX = 10 };
    size_t digits = strspn(code, "0123456789");
    return digits > 0 && digits <= DIGITS_MAX && code[digits] == '\0';
}

const char *
mc_gdal_crs_name(OGRSpatialReferenceH crs, apr_pool_t *pool)
{
    char *wkt = NULL;
    if (crs == NULL)
        return NULL;
    const char *authority = OSRGetAuthorityName(crs, NULL), *code = OSRGetAuthorityCode(crs, NULL);
    if (authority != NULL && code != NULL && strcmp(authority, "EPSG") == 0 && is_epsg_code(code))
        return apr_pstrcat(pool, "EPSG:", code, NULL);
    const char *name = OSRExportToWkt(crs, &wkt) == OGRERR_NONE ? apr_pstrdup(pool, wkt) : NULL;
    CPLFree(wkt);
    return name;
}

bool
mc_gdal_box(mc_extent *box, double *pixel, GDALDatasetH raster)
{
    double t[6];
    if (GDALGetGeoTransform(raster, t) != CE_None)
        return false;
    double width = GDALGetRasterXSize(raster), height = GDALGetRasterYSize(raster);
    *box = (mc_extent){ HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL };
    for (int i = 0; i < 4; i++) {
        double column = i % 2 * width, row = i / 2 * height;
        double x = t[0] + column * t[1] + row * t[2], y = t[3] + column * t[4] + row * t[5];
        *box = (mc_extent){ fmin(box->minx, x), fmin(box->miny, y), fmax(box->maxx, x), fmax(box->maxy, y) };
    }
    *pixel = hypot(t[1], t[4]);
    return mc_extent_valid(box);
}

mc_error *
mc_gdal_find_place(mc_place *place, const mc_gdal_raster *raster, apr_pool_t *pool)
{
    double pixel;
    mc_gdal_start();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    /* none stays open where the process forks afterwards */
    mc_gdal_dataset *d = mc_gdal_open(raster->data, raster->drivers, false);
    CPLPopErrorHandler();
    if (d == NULL)
        return mc_error_create(pool, MC_ERR_CONFIG, "source \"%s\": the raster cannot be opened", raster->source);
    place->srs = mc_gdal_crs_name(GDALGetSpatialRef(mc_gdal_raster_of(d)), pool);
    place->known = mc_gdal_box(&place->box, &pixel, mc_gdal_raster_of(d)) && place->srs != NULL;
    mc_gdal_close(d, false);
    return MC_OK;
}
