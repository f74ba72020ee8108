/* See gdal_open.h. */
#include "source/gdal/gdal_open.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, OVERVIEWS_DEEP = 3 /* overviews of overviews */ };

/* --- endings ------------------------------------------------------------------------------------------------------ */

typedef struct ending_drivers {
    const char *ending, *drivers;
} ending_drivers;

/* Kinds that name nothing outside of themselves, but for VRT. Endings that are not here are looked up in GDAL's table
 * of drivers. The last one: where that has nothing, too. */
static const ending_drivers known_endings[] = {
    { ".tif", "GTiff COG" },
    { ".tiff", "GTiff COG" },
    { ".jp2", "JP2OpenJPEG JP2KAK JP2ECW JP2MrSID" },
    { ".png", "PNG" },
    { ".jpg", "JPEG" },
    { ".jpeg", "JPEG" },
    { ".webp", "WEBP" },
    { ".gpkg", "GPKG" },
    { ".mbtiles", "MBTiles" },
    { ".vrt", "VRT" },
    { "", "GTiff COG JP2OpenJPEG PNG JPEG WEBP GPKG" },
};

/* Rasterlite opens what its rows hold as any kind. */
static const char *const refused_drivers[] = { "Rasterlite", NULL };

static bool
lists_word(const char *list, const char *word)
{
    char **words = list == NULL ? NULL : CSLTokenizeString2(list, " ", 0);
    bool found = CSLFindString((CSLConstList)words, word) >= 0;
    CSLDestroy(words);
    return found;
}

/* Of GDAL's drivers those that say that the ending is theirs. */
static char **
list_drivers_of_ending(const char *ending)
{
    char **drivers = NULL;
    for (int i = 0; i < GDALGetDriverCount(); i++) {
        GDALDriverH driver = GDALGetDriver(i);
        const char *name = GDALGetDriverShortName(driver);
        if (GDALGetMetadataItem(driver, GDAL_DCAP_RASTER, NULL) == NULL ||
            CSLFindString((CSLConstList)refused_drivers, name) >= 0)
            continue;
        if (lists_word(GDALGetMetadataItem(driver, GDAL_DMD_EXTENSIONS, NULL), ending + 1) ||
            lists_word(GDALGetMetadataItem(driver, GDAL_DMD_EXTENSION, NULL), ending + 1))
            drivers = CSLAddString(drivers, name);
    }
    return drivers;
}

/* With its dot; "": the name has none. */
static void
copy_ending(char ending[16], const char *name)
{
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    bool has = dot != NULL && (slash == NULL || dot > slash) && dot[1] != '\0';
    snprintf(ending, 16, "%s", has ? dot : "");
    ending[strcspn(ending, "?#")] = '\0';
}

char **
mc_gdal_drivers(const char *name)
{
    char ending[16], **drivers;
    size_t last = sizeof(known_endings) / sizeof(known_endings[0]) - 1;
    copy_ending(ending, name);
    for (size_t i = 0; i < last; i++)
        if (strcasecmp(ending, known_endings[i].ending) == 0)
            return CSLTokenizeString2(known_endings[i].drivers, " ", 0);
    drivers = ending[0] == '\0' || ending[1] == '\0' ? NULL : list_drivers_of_ending(ending);
    return drivers != NULL ? drivers : CSLTokenizeString2(known_endings[last].drivers, " ", 0);
}

/* --- what lies beside a raster ------------------------------------------------------------------------------------ */

/* What GDAL reads when it opens "x.tif": "x.tif" and these, and "x" and those; in small and in large letters. */
static const char *const behind_name[] = { "",     ".aux.xml", ".ovr",     ".msk",     ".aux", ".wld",
                                           ".xml", "-wal",     "-journal", ".msk.ovr", NULL };
static const char *const behind_stem[] = {
    ".aux",          ".tfw", ".tifw", ".tiffw",    ".jpw",      ".jgw",       ".pgw",     ".pngw",    ".j2w",
    ".jp2w",         ".wld", ".tab",  ".imd",      ".rpb",      ".rpc",       ".pvl",     ".xml",     ".txt",
    ".prj",          ".hdr", ".rrd",  ".ige",      ".eng",      ".rsc",       "_rpc.txt", "_mtl.txt", "_rpc.xml",
    "_metadata.xml", "_pan", ".pass", "_metadata", "_mtl.json", "_meta.json", NULL
};

/* Reading a pipe or a device would wait for whoever writes. */
static bool
is_plain_or_missing(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
        return true;
    CPLError(CE_Failure, CPLE_OpenFailed, "%s is no regular file", path);
    return false;
}

static bool
are_plain(const char *name, size_t size, const char *const *endings)
{
    char path[PATH_BYTES];
    for (size_t i = 0; endings[i] != NULL; i++)
        for (int large = 0; large < 2; large++) {
            int length = snprintf(path, sizeof(path), "%.*s%s", (int)size, name, endings[i]);
            if (length < 0 || length >= (int)sizeof(path))
                return false;
            for (char *c = path + size; large == 1 && *c != '\0'; c++)
                *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
            if (!is_plain_or_missing(path))
                return false;
        }
    return true;
}

bool
mc_gdal_is_plain(const char *name)
{
    char ending[16];
    copy_ending(ending, name);
    return are_plain(name, strlen(name), behind_name) && are_plain(name, strlen(name) - strlen(ending), behind_stem);
}

static GDALDatasetH open_checked(const char *name, const char *const *drivers, int depth);

/* Whether overviews or a mask beside a raster are a GeoTIFF, as GDAL itself writes them; GDAL opens them as any kind.
 */
static bool
is_geotiff_or_missing(const char *name, const char *ending, int depth)
{
    static const char *const geotiff[] = { "GTiff", NULL };
    char path[PATH_BYTES];
    struct stat info;
    if (snprintf(path, sizeof(path), "%s%s", name, ending) >= (int)sizeof(path))
        return false;
    if (stat(path, &info) != 0)
        return true;
    GDALDatasetH beside = depth >= OVERVIEWS_DEEP ? NULL : open_checked(path, geotiff, depth + 1);
    if (beside == NULL) {
        CPLError(CE_Failure, CPLE_OpenFailed, "%s is no GeoTIFF of overviews or of a mask", path);
        return false;
    }
    GDALClose(beside);
    return true;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* GDAL opens what this names as any kind, and has not done so yet. */
static bool
names_no_overviews(GDALDatasetH raster, const char *name)
{
    if (GDALGetMetadataItem(raster, "OVERVIEW_FILE", "OVERVIEWS") == NULL)
        return true;
    CPLError(CE_Failure, CPLE_OpenFailed, "%s says that its overviews are in another file", name);
    return false;
}

static GDALDatasetH
open_checked(const char *name, const char *const *drivers, int depth)
{
    const char *own[] = { CPLGetFilename(name), NULL };
    bool local = strncmp(name, "/vsi", 4) != 0; /* elsewhere nothing that lies beside the raster is asked for */
    if (local && (!mc_gdal_is_plain(name) || !is_geotiff_or_missing(name, ".ovr", depth) ||
                  !is_geotiff_or_missing(name, ".msk", depth)))
        return NULL;
    GDALDatasetH raster = GDALOpenEx(name, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, drivers, NULL,
                                     local || *own[0] == '\0' ? NULL : own);
    if (raster == NULL || names_no_overviews(raster, name))
        return raster;
    GDALClose(raster);
    return NULL;
}

GDALDatasetH
mc_gdal_open_as(const char *name, const char *const *drivers)
{
    return open_checked(name, drivers, 0);
}
