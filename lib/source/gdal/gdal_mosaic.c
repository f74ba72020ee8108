/* See gdal_mosaic.h: a VRT in memory, which opens the rasters when they are read. */
#include "source/gdal/gdal_mosaic.h"

#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal_utils.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "mapcache/error.h"
#include "source/gdal/gdal_open.h"

enum { RASTERS_MAX = 10000, FOLDERS_MAX = 64 };

/* A folder whose mosaic is there. */
typedef struct made_mosaic {
    char *path; /* NULL: free */
    mc_stamp stamp;
} made_mosaic;

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* guards `made` and `next_made`; held while one is made */
static made_mosaic made[FOLDERS_MAX];
static int next_made;

static bool
is_raster_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return *name != '.' && dot != NULL &&
           (strcasecmp(dot, ".tif") == 0 || strcasecmp(dot, ".tiff") == 0 || strcasecmp(dot, ".jp2") == 0);
}

static int
compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether a file is what its ending says. The mosaic itself opens its rasters as whatever they hold. */
static bool
is_fit_for_mosaic(const char *path)
{
    char **drivers = mc_gdal_drivers(path);
    GDALDatasetH raster = mc_gdal_open_as(path, (const char *const *)drivers);
    CSLDestroy(drivers);
    if (raster != NULL)
        GDALClose(raster);
    return raster != NULL;
}

/* Full names, sorted. To be freed by CSLDestroy. */
static char **
list_rasters(int *count, const char *path)
{
    char **names = VSIReadDirEx(path, RASTERS_MAX * 4), **rasters = NULL;
    *count = 0;
    for (int i = 0; names != NULL && names[i] != NULL && *count < RASTERS_MAX; i++)
        if (is_raster_file(names[i])) {
            char whole[4096];
            if (snprintf(whole, sizeof(whole), "%s/%s", path, names[i]) >= (int)sizeof(whole))
                continue;
            if (!is_fit_for_mosaic(whole))
                continue;
            rasters = CSLAddString(rasters, whole);
            (*count)++;
        }
    CSLDestroy(names);
    if (*count > 0)
        qsort(rasters, (size_t)*count, sizeof(*rasters), compare_paths);
    return rasters;
}

static bool
make_mosaic(const char *name, const char *path)
{
    int count, wrong = 0;
    char **rasters = list_rasters(&count, path);
    char *words[] = { (char[]){ "-resolution" }, (char[]){ "highest" }, NULL };
    GDALBuildVRTOptions *options = GDALBuildVRTOptionsNew(words, NULL);
    GDALDatasetH vrt =
        count == 0 ? NULL : GDALBuildVRT(name, count, NULL, (const char *const *)rasters, options, &wrong);
    GDALBuildVRTOptionsFree(options);
    CSLDestroy(rasters);
    if (vrt != NULL)
        GDALClose(vrt); /* which writes it */
    return vrt != NULL;
}

bool
mc_gdal_mosaic(char name[MC_GDAL_MOSAIC_NAME], const char *path, const mc_stamp *stamp)
{
    struct stat info;
    int at = -1;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return false;
    pthread_mutex_lock(&making);
    for (int i = 0; i < FOLDERS_MAX && at < 0; i++)
        if (made[i].path != NULL && strcmp(made[i].path, path) == 0)
            at = i;
    bool there = at >= 0 && mc_stamp_equal(&made[at].stamp, stamp);
    if (at < 0)
        at = next_made++ % FOLDERS_MAX;
    snprintf(name, MC_GDAL_MOSAIC_NAME, "/vsimem/mapcache-mosaic-%d.vrt", at);
    if (!there) {
        free(made[at].path);
        made[at].path = NULL;
        there = make_mosaic(name, path);
        if (there) {
            made[at] = (made_mosaic){ strdup(path), *stamp };
            MC_ASSERT(made[at].path != NULL);
        }
    }
    pthread_mutex_unlock(&making);
    return there;
}
