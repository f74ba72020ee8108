/* What a look at a raster finds before maps are drawn of it. */
#include <apr_strings.h>
#include <cpl_error.h>
#include <stdio.h>

#include "source/gdal/gdal_bands.h"
#include "source/gdal/gdal_inspect.h"
#include "text/secret.h"

enum { SAID_MAX = 2048 };

static void CPL_STDCALL
keep_last_failure(CPLErr level, CPLErrorNum number, const char *text)
{
    (void)number;
    char *kept = CPLGetErrorHandlerUserData();
    if (level >= CE_Failure)
        snprintf(kept, SAID_MAX, "%s", text);
}

/* NULL: a picture can be made of it. */
static const char *
look_at_gdal_raster(mc_findings *findings, mc_gdal_dataset *dataset, const mc_gdal_raster *raster, apr_pool_t *pool)
{
    mc_gdal_picture picture;
    const char *error = mc_gdal_place_missing(mc_gdal_raster_of(dataset));
    if (error == NULL)
        error = mc_gdal_picture_find(&picture, mc_gdal_raster_of(dataset), raster, pool);
    if (error != NULL || !picture.estimated)
        return error;
    error = mc_gdal_picture_scale(&picture, dataset, pool);
    if (error == NULL && !mc_gdal_has_statistics(mc_gdal_raster_of(dataset), picture.numbers[0]))
        mc_findings_warn(
            findings,
            apr_psprintf(pool,
                         "the raster has no statistics: black and white are estimated (%.6g and %.6g) each time that "
                         "it is opened; <scale> says them, or gdalinfo -stats writes them beside the raster",
                         picture.scale[0][0], picture.scale[0][1]));
    return error;
}

void
mc_gdal_inspect(mc_findings *findings, const void *data, apr_pool_t *pool)
{
    const mc_gdal_raster *raster = data;
    char *reason = apr_pcalloc(pool, SAID_MAX);
    CPLPushErrorHandlerEx(keep_last_failure, reason);
    mc_gdal_dataset *dataset = mc_gdal_open(raster->data, raster->drivers, false);
    const char *error =
        dataset == NULL ? apr_psprintf(pool, "the raster cannot be opened: %s",
                                       mc_hide_passwords(*reason == '\0' ? raster->data : reason, raster->data, pool))
                        : look_at_gdal_raster(findings, dataset, raster, pool);
    if (error != NULL)
        mc_findings_refuse(findings, error);
    if (dataset != NULL)
        mc_gdal_close(dataset, false);
    CPLPopErrorHandler();
}
