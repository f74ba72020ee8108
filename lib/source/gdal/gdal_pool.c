/* Open rasters of a process: see gdal_pool.h. A dataset is used by one thread at a time; between maps it waits. */
#include "source/gdal/gdal_pool.h"

#include <cpl_string.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/idle.h"
#include "mapcache/error.h"
#include "source/gdal/gdal_mosaic.h"
#include "source/gdal/gdal_open.h"
#include "source/gdal/gdal_stretch.h"

enum { IDLE_DATASETS = 16, RANGES = 8, BLOCK_CACHE_BYTES = 32 << 20 };

typedef struct band_range {
    int band; /* 0: free */
    double range[2];
} band_range;

struct mc_gdal_dataset {
    mc_idle_thing idle;
    char *text;              /* data and drivers as configured */
    char *data;              /* what GDAL opens */
    char **drivers;          /* that may open it; NULL: any */
    mc_gdal_misfits misfits; /* of a mosaic */
    GDALDatasetH raster;
    GDALDatasetH overviews[MC_GDAL_OVERVIEWS]; /* opened when first wanted */
    band_range ranges[RANGES];                 /* of bands that were asked for; the last ones */
    int range_count;
};

static pthread_once_t gdal_once = PTHREAD_ONCE_INIT;

static void
init_gdal(void)
{
    GDALAllRegister();
    GDALSetCacheMax64(BLOCK_CACHE_BYTES);
}

void
mc_gdal_start(void)
{
    pthread_once(&gdal_once, init_gdal);
}

static void
destroy_gdal_dataset(mc_idle_thing *thing)
{
    mc_gdal_dataset *d = (mc_gdal_dataset *)thing;
    for (int i = 0; i < MC_GDAL_OVERVIEWS; i++)
        if (d->overviews[i] != NULL)
            GDALClose(d->overviews[i]);
    if (d->raster != NULL)
        GDALClose(d->raster);
    CSLDestroy(d->drivers);
    CSLDestroy(d->misfits.paths);
    free(d->data);
    free(d->text);
    free(d);
}

static mc_idle idle_rasters = MC_IDLE(IDLE_DATASETS, SIZE_MAX, destroy_gdal_dataset);

void
mc_gdal_close(mc_gdal_dataset *d, bool keep)
{
    mc_idle_give(&idle_rasters, &d->idle, keep);
}

static GDALDatasetH
open_raster(const char *name, const char *const *drivers)
{
    if (drivers != NULL)
        return mc_gdal_open_as(name, drivers);
    return GDALOpenEx(name, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, NULL, NULL, NULL);
}

/* What is opened of a configured raster is kept under this name: to be freed. */
static char *
name_idle_raster(const char *data, const char *drivers)
{
    char *text;
    int length = asprintf(&text, "%s\n%s", data, drivers == NULL ? "" : drivers);
    MC_ASSERT(length >= 0);
    return text;
}

/* One that is still what the folder and its files are, or NULL. */
static mc_gdal_dataset *
take_idle_raster(const mc_idle_key *key)
{
    mc_gdal_dataset *d = (mc_gdal_dataset *)mc_idle_take(&idle_rasters, key);
    while (d != NULL && !mc_gdal_misfits_are_the_same(&d->misfits)) {
        mc_gdal_close(d, false);
        d = (mc_gdal_dataset *)mc_idle_take(&idle_rasters, key);
    }
    return d;
}

mc_gdal_dataset *
mc_gdal_open(const char *data, const char *drivers, bool pooled)
{
    mc_stamp stamp = { 0 };
    mc_stamp_take_any(&stamp, data); /* no file: an address, a connection */
    char *text = name_idle_raster(data, drivers), mosaic[MC_GDAL_MOSAIC_NAME];
    mc_idle_key key = mc_idle_key_of(text, &stamp);
    mc_gdal_dataset *d = pooled ? take_idle_raster(&key) : NULL;
    if (d != NULL) {
        free(text);
        return d;
    }
    mc_gdal_misfits misfits = { 0 };
    bool whole = mc_gdal_mosaic(mosaic, &misfits, data, &stamp);
    char **allowed = whole || drivers == NULL ? NULL : CSLTokenizeString2(drivers, " ", 0);
    const char *name = whole ? mosaic : data;
    GDALDatasetH raster = open_raster(name, (const char *const *)allowed);
    if (raster == NULL) {
        CSLDestroy(misfits.paths);
        CSLDestroy(allowed);
        free(text);
        return NULL;
    }
    d = calloc(1, sizeof(*d));
    MC_ASSERT(d != NULL);
    d->data = strdup(name);
    d->text = text;
    d->drivers = allowed;
    d->misfits = misfits;
    MC_ASSERT(d->data != NULL);
    d->idle.key = key;
    d->raster = raster;
    return d;
}

GDALDatasetH
mc_gdal_raster_of(const mc_gdal_dataset *d)
{
    return d->raster;
}

GDALDatasetH
mc_gdal_overview(mc_gdal_dataset *d, int level)
{
    if (level < 0)
        return d->raster;
    if (d->overviews[level] == NULL) {
        char text[16];
        snprintf(text, sizeof(text), "%d", level);
        char **options = CSLSetNameValue(NULL, "OVERVIEW_LEVEL", text);
        d->overviews[level] = GDALOpenEx(d->data, GDAL_OF_RASTER | GDAL_OF_READONLY, (const char *const *)d->drivers,
                                         (const char *const *)options, NULL);
        CSLDestroy(options);
    }
    return d->overviews[level] == NULL ? d->raster : d->overviews[level];
}

bool
mc_gdal_has_statistics(GDALDatasetH raster, int band)
{
    double least, greatest;
    return GDALGetRasterStatistics(GDALGetRasterBand(raster, band), TRUE, FALSE, &least, &greatest, NULL, NULL) ==
           CE_None;
}

/* GDALGetRasterStatistics would write what it computes beside the raster; GDALComputeRasterMinMax writes nothing. */
static bool
measure_range(double range[2], GDALRasterBandH band)
{
    if (GDALGetRasterStatistics(band, TRUE, FALSE, &range[0], &range[1], NULL, NULL) == CE_None)
        return isfinite(range[0]) && isfinite(range[1]);
    if (mc_gdal_stretch(range, band))
        return true;
    GDALComputeRasterMinMax(band, TRUE, range);
    return isfinite(range[0]) && isfinite(range[1]) && range[0] <= range[1];
}

bool
mc_gdal_range(double range[2], mc_gdal_dataset *d, int band)
{
    for (int i = 0; i < RANGES; i++)
        if (d->ranges[i].band == band) {
            memcpy(range, d->ranges[i].range, sizeof(d->ranges[i].range));
            return true;
        }
    range[0] = range[1] = NAN;
    if (!measure_range(range, GDALGetRasterBand(d->raster, band)))
        return false;
    band_range *kept = &d->ranges[d->range_count++ % RANGES];
    kept->band = band;
    memcpy(kept->range, range, sizeof(kept->range));
    return true;
}
