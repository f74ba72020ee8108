/*
 * Open rasters of a process. A dataset is used by one thread at a time; between maps it waits here, by its text and the
 * stamp of its file, so that a raster that has changed is opened anew.
 */
#include "source/gdal/gdal_pool.h"

#include <cpl_string.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mapcache/error.h"

enum { IDLE_DATASETS = 16, RANGES = 8, BLOCK_CACHE_BYTES = 32 << 20 };

typedef struct band_range {
    int band; /* 0: free */
    double range[2];
} band_range;

typedef struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec mtime, ctime;
} stamp;

struct mc_gdal_dataset {
    char *data;
    stamp stamp; /* all zero: no file */
    GDALDatasetH raster;
    GDALDatasetH overviews[MC_GDAL_OVERVIEWS]; /* opened when first wanted */
    band_range ranges[RANGES];                 /* of bands that were asked for; the last ones */
    int range_count;
    struct mc_gdal_dataset *next;
};

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER; /* of the next two */
static mc_gdal_dataset *idle;                                 /* latest first */
static int idle_count;

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

static stamp
stamp_of(const char *data)
{
    struct stat status;
    stamp s;
    memset(&s, 0, sizeof(s)); /* padding too: stamps are compared as bytes */
    if (stat(data, &status) == 0) {
        s.device = status.st_dev;
        s.inode = status.st_ino;
        s.size = status.st_size;
        s.mtime = status.st_mtim;
        s.ctime = status.st_ctim;
    }
    return s;
}

static void
destroy_gdal_dataset(mc_gdal_dataset *d)
{
    for (int i = 0; i < MC_GDAL_OVERVIEWS; i++)
        if (d->overviews[i] != NULL)
            GDALClose(d->overviews[i]);
    if (d->raster != NULL)
        GDALClose(d->raster);
    free(d->data);
    free(d);
}

static mc_gdal_dataset *
take_idle(const char *data, const stamp *s)
{
    mc_gdal_dataset *taken = NULL;
    mc_gdal_dataset *outdated = NULL;
    pthread_mutex_lock(&idle_lock);
    for (mc_gdal_dataset **at = &idle; *at != NULL && taken == NULL;) {
        mc_gdal_dataset *d = *at;
        if (strcmp(d->data, data) != 0) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        idle_count--;
        if (memcmp(&d->stamp, s, sizeof(*s)) == 0) {
            taken = d;
        } else {
            d->next = outdated;
            outdated = d;
        }
    }
    pthread_mutex_unlock(&idle_lock);
    while (outdated != NULL) {
        mc_gdal_dataset *next = outdated->next;
        destroy_gdal_dataset(outdated);
        outdated = next;
    }
    return taken;
}

void
mc_gdal_close(mc_gdal_dataset *d, bool keep)
{
    mc_gdal_dataset *dropped = keep ? NULL : d;
    if (keep) {
        pthread_mutex_lock(&idle_lock);
        d->next = idle;
        idle = d;
        if (++idle_count > IDLE_DATASETS) {
            mc_gdal_dataset **last = &idle;
            while ((*last)->next != NULL)
                last = &(*last)->next;
            dropped = *last;
            *last = NULL;
            idle_count--;
        }
        pthread_mutex_unlock(&idle_lock);
    }
    if (dropped != NULL)
        destroy_gdal_dataset(dropped);
}

mc_gdal_dataset *
mc_gdal_open(const char *data, bool pooled)
{
    stamp s = stamp_of(data);
    mc_gdal_dataset *d = pooled ? take_idle(data, &s) : NULL;
    if (d != NULL)
        return d;
    GDALDatasetH raster = GDALOpenEx(data, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, NULL, NULL, NULL);
    if (raster == NULL)
        return NULL;
    d = calloc(1, sizeof(*d));
    MC_ASSERT(d != NULL);
    d->data = strdup(data);
    MC_ASSERT(d->data != NULL);
    d->stamp = s;
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
        d->overviews[level] =
            GDALOpenEx(d->data, GDAL_OF_RASTER | GDAL_OF_READONLY, NULL, (const char *const *)options, NULL);
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
