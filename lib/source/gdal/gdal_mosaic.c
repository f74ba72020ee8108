/* See gdal_mosaic.h: a VRT in memory, which opens the rasters when they are read. */
#include "source/gdal/gdal_mosaic.h"

#include <cpl_string.h>
#include <cpl_vsi.h>
#include <errno.h>
#include <fcntl.h>
#include <gdal_utils.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "mapcache/error.h"
#include "source/gdal/gdal_open.h"

enum {
    RASTERS_MAX = 10000,
    FOLDERS_MAX = 64,
    WRITING_S = 10, /* a raster that is no whole one is still being written where it changed less than this ago */
};

/* A folder whose mosaic is there. */
typedef struct made_mosaic {
    char *path; /* NULL: free */
    mc_stamp stamp;
    mc_gdal_misfits misfits;
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

/* With the state of one more file, which may be gone. */
static uint64_t
add_state(uint64_t states, const char *path)
{
    mc_stamp stamp = { 0 };
    mc_stamp_take_plain(&stamp, path);
    return mc_hash64(&stamp, sizeof(stamp), states);
}

bool
mc_gdal_misfits_are_the_same(const mc_gdal_misfits *misfits)
{
    uint64_t states = 0;
    for (int i = 0; misfits->paths != NULL && misfits->paths[i] != NULL; i++)
        states = add_state(states, misfits->paths[i]);
    return states == misfits->states;
}

/* --- rasters that are no whole ones --------------------------------------------------------------------------------
 */

/* Whether a file begins as a raster does, or has no beginning yet: what is copied into a folder looks like that. */
static bool
begins_as_raster(int file)
{
    static const char beginnings[][4] = { "II*",
                                          "MM\0*",
                                          "II+",
                                          "MM\0+",
                                          { 0, 0, 0, 0x0c }, /* the box of a JP2 */
                                          { '\xff', 0x4f, '\xff', 0x51 } };
    char bytes[4];
    if (pread(file, bytes, sizeof(bytes), 0) < (ssize_t)sizeof(bytes))
        return true;
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
        if (memcmp(bytes, beginnings[i], sizeof(bytes)) == 0)
            return true;
    return false;
}

static bool
is_being_written(int file)
{
    struct stat info;
    return fstat(file, &info) == 0 && llabs((long long)(time(NULL) - info.st_mtim.tv_sec)) < WRITING_S &&
           begins_as_raster(file);
}

/* Whether a file that GDAL did not open may be a raster soon or at the next try: a mosaic without the file would be a
 * map with a hole that nobody notices. False: it is something else, or nobody may read it. */
static bool
may_become_raster(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 && (errno == ENOENT || errno == EACCES || errno == ELOOP || errno == ENXIO))
        return false;
    const char *trouble = file < 0 ? strerror(errno) : is_being_written(file) ? "it is being written" : NULL;
    if (trouble != NULL)
        CPLError(CE_Failure, CPLE_OpenFailed, "%s: %s", path, trouble);
    if (file >= 0)
        close(file);
    return trouble != NULL;
}

/* --- the list ------------------------------------------------------------------------------------------------------
 */

/* Adds one file to the rasters or to those that are left out. False: there is no mosaic now. */
static bool
sort_raster(char ***rasters, mc_gdal_misfits *misfits, const char *path)
{
    uint64_t states = add_state(misfits->states, path); /* before the file is tried */
    if (is_fit_for_mosaic(path)) {
        *rasters = CSLAddString(*rasters, path);
        return true;
    }
    misfits->paths = CSLAddString(misfits->paths, path);
    misfits->states = states;
    return !may_become_raster(path);
}

/* Full names, sorted, and those that are left out. NULL: there are none, or there is no mosaic now. To be freed by
 * CSLDestroy. */
static char **
list_rasters(int *count, mc_gdal_misfits *misfits, const char *path)
{
    char **names = VSIReadDirEx(path, RASTERS_MAX * 4), **rasters = NULL;
    bool all = true;
    int listed = 0;
    for (int i = 0; names != NULL && names[i] != NULL && listed < RASTERS_MAX && all; i++) {
        char whole[4096];
        if (!is_raster_file(names[i]) || snprintf(whole, sizeof(whole), "%s/%s", path, names[i]) >= (int)sizeof(whole))
            continue;
        listed++;
        all = sort_raster(&rasters, misfits, whole);
    }
    CSLDestroy(names);
    if (!all) {
        CSLDestroy(rasters);
        rasters = NULL;
    }
    *count = CSLCount((CSLConstList)rasters);
    if (*count > 0)
        qsort(rasters, (size_t)*count, sizeof(*rasters), compare_paths);
    return rasters;
}

static bool
make_mosaic(mc_gdal_misfits *misfits, const char *name, const char *path)
{
    int count, wrong = 0;
    char **rasters = list_rasters(&count, misfits, path);
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

static void
forget_mosaic(made_mosaic *mosaic)
{
    free(mosaic->path);
    CSLDestroy(mosaic->misfits.paths);
    *mosaic = (made_mosaic){ 0 };
}

static bool
remake_mosaic(made_mosaic *mosaic, const char *name, const char *path, const mc_stamp *stamp)
{
    mc_gdal_misfits misfits = { 0 };
    forget_mosaic(mosaic);
    bool done = make_mosaic(&misfits, name, path);
    mosaic->path = strdup(path); /* also where there is none now: the next try is in the same place */
    MC_ASSERT(mosaic->path != NULL);
    if (!done) {
        CSLDestroy(misfits.paths);
        return false;
    }
    mosaic->stamp = *stamp;
    mosaic->misfits = misfits;
    return true;
}

bool
mc_gdal_mosaic(char name[MC_GDAL_MOSAIC_NAME], mc_gdal_misfits *misfits, const char *path, const mc_stamp *stamp)
{
    struct stat info;
    int at = -1;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return false;
    pthread_mutex_lock(&making);
    for (int i = 0; i < FOLDERS_MAX && at < 0; i++)
        if (made[i].path != NULL && strcmp(made[i].path, path) == 0)
            at = i;
    bool there = at >= 0 && mc_stamp_equal(&made[at].stamp, stamp) && mc_gdal_misfits_are_the_same(&made[at].misfits);
    if (at < 0)
        at = next_made++ % FOLDERS_MAX;
    snprintf(name, MC_GDAL_MOSAIC_NAME, "/vsimem/mapcache-mosaic-%d.vrt", at);
    if (!there)
        there = remake_mosaic(&made[at], name, path, stamp);
    if (there)
        *misfits = (mc_gdal_misfits){ CSLDuplicate(made[at].misfits.paths), made[at].misfits.states };
    pthread_mutex_unlock(&making);
    return there;
}
