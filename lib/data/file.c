/* A file, by its name and its first bytes; a folder of files. */
#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_strings.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "data/data_private.h"

enum { FOLDERS_DEEP = 8 };

static bool
has_extension(const char *path, const char *extension)
{
    size_t size = strlen(path), its = strlen(extension);
    return size > its && strcasecmp(path + size - its, extension) == 0;
}

/* By the file's first bytes (SQLite's file format, 1.3.1). */
static bool
is_sqlite_file(const char *path, apr_pool_t *pool)
{
    static const char magic[] = "SQLite format 3";
    char bytes[sizeof(magic)];
    apr_file_t *file;
    apr_size_t size = 0;
    if (apr_file_open(&file, path, APR_READ | APR_BINARY, APR_OS_DEFAULT, pool) != APR_SUCCESS)
        return false;
    bool read = apr_file_read_full(file, bytes, sizeof(bytes), &size) == APR_SUCCESS;
    apr_file_close(file);
    return read && memcmp(bytes, magic, sizeof(magic)) == 0;
}

/* What our own readers, and SQLite, open beside a file. A pipe would be waited for. */
static bool
are_plain_sidecars(const char *path, apr_pool_t *pool)
{
    static const char *const of_sqlite[] = { "-journal", "-wal", "-shm" };
    static const char *const of_shapefiles[] = { ".shx", ".dbf", ".prj", ".cpg", ".qix" };
    apr_finfo_t info;
    bool shapefile = has_extension(path, ".shp"), plain = true;
    size_t count = shapefile ? sizeof(of_shapefiles) / sizeof(char *) : sizeof(of_sqlite) / sizeof(char *);
    const char *stem = shapefile ? apr_pstrndup(pool, path, strlen(path) - 4) : path;
    for (size_t i = 0; i < count && plain; i++) {
        const char *beside = apr_pstrcat(pool, stem, shapefile ? of_shapefiles[i] : of_sqlite[i], NULL);
        plain = apr_stat(&info, beside, APR_FINFO_TYPE, pool) != APR_SUCCESS || info.filetype == APR_REG;
    }
    return plain;
}

mc_error *
mc_data_look_file(mc_data_search *search, const char *path, const char *part)
{
    bool known = false;
    if (!are_plain_sidecars(path, search->pool))
        return mc_error_create(search->pool, MC_ERR_CONFIG, "\"%s\": what belongs to it is no regular file", path);
    if (has_extension(path, ".shp"))
        return mc_data_look_shapefile(search, path);
    if (has_extension(path, ".mrf"))
        return mc_data_look_mrf(search, path);
    if (has_extension(path, ".bundle"))
        return mc_data_look_bundle_file(search, path);
    if (has_extension(path, ".json") && mc_data_is_pyramid(path, search->pool))
        return mc_data_look_pyramid(search, path);
    if (is_sqlite_file(path, search->pool))
        MC_TRY(mc_data_look_tiles(&known, search, path, part));
    if (known)
        return MC_OK;
    if (mc_data_is_pmtiles(path, search->pool))
        return mc_data_look_pmtiles(search, path);
    return mc_data_look_gdal(search, path, part);
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

/* Whether a file in a folder is worth a look: others lie there, too. */
static bool
is_served_kind(const char *name)
{
    static const char *const kinds[] = {
        ".tif",     ".tiff",     ".jp2",     ".shp",     ".gpkg",    ".vrt",    ".fgb",
        ".geojson", ".geojsonl", ".mbtiles", ".pmtiles", ".sqlite3", ".sqlite", ".mrf"
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (has_extension(name, kinds[i]))
            return true;
    return false;
}

static int
compare_file_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the entries of one kind, sorted; links to folders are not followed, so that there are no circles. */
static apr_array_header_t *
list_entries(mc_data_search *search, const char *path, apr_filetype_e kind)
{
    apr_dir_t *folder;
    apr_finfo_t info;
    apr_array_header_t *names = apr_array_make(search->pool, 16, sizeof(const char *));
    if (apr_dir_open(&folder, path, search->pool) != APR_SUCCESS)
        return names;
    while (apr_dir_read(&info, APR_FINFO_NAME, folder) == APR_SUCCESS) {
        const char *whole = apr_pstrcat(search->pool, path, "/", info.name, NULL);
        apr_finfo_t own;
        apr_int32_t how = APR_FINFO_TYPE | (kind == APR_DIR ? APR_FINFO_LINK : 0);
        if (*info.name == '.' || (kind == APR_REG && !is_served_kind(info.name)) ||
            apr_stat(&own, whole, how, search->pool) != APR_SUCCESS || own.filetype != kind)
            continue;
        if (names->nelts >= search->limits.files) {
            mc_data_note(search, "%s has more than %d files: the others are left out", path, search->limits.files);
            break;
        }
        APR_ARRAY_PUSH(names, const char *) = apr_pstrdup(search->pool, whole);
    }
    apr_dir_close(folder);
    qsort(names->elts, (size_t)names->nelts, sizeof(const char *), compare_file_names);
    return names;
}

static bool
is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Whether the rasters of a folder, from `first` on, make one picture: of one CRS, and of the same bands. */
static bool
is_mosaic(const mc_data_search *search, const apr_array_header_t *rasters)
{
    for (int i = 1; i < rasters->nelts; i++) {
        const mc_data_layer *a = APR_ARRAY_IDX(rasters, 0, const mc_data_layer *);
        const mc_data_layer *b = APR_ARRAY_IDX(rasters, i, const mc_data_layer *);
        if (!is_same_text(a->srs, b->srs) || a->srs == NULL || a->bands != b->bands || a->measured != b->measured ||
            !is_same_text(a->picture, b->picture) || !a->has_extent || !b->has_extent)
            return false;
    }
    return rasters->nelts > 1 && search->limits.layers > 0;
}

/* One layer in place of the rasters from `first` on. */
static void
join_rasters(mc_data_search *search, const char *path, const apr_array_header_t *rasters)
{
    mc_data_layer *whole = APR_ARRAY_IDX(rasters, 0, mc_data_layer *);
    for (int i = 1; i < rasters->nelts; i++) {
        const mc_data_layer *part = APR_ARRAY_IDX(rasters, i, const mc_data_layer *);
        whole->extent = mc_extent_union(&whole->extent, &part->extent);
        whole->degrees = mc_extent_union(&whole->degrees, &part->degrees);
        whole->has_degrees = whole->has_degrees && part->has_degrees;
        whole->minzoom = part->minzoom < whole->minzoom ? part->minzoom : whole->minzoom;
        whole->maxzoom = part->maxzoom > whole->maxzoom ? part->maxzoom : whole->maxzoom;
    }
    whole->data = apr_pstrdup(search->pool, path);
    whole->name = mc_data_stem(path, search->pool);
    whole->title = whole->name;
    whole->description = NULL;
    whole->transparent = whole->mosaic = true;
}

/* Whether there is time for another file. Where not, what was found is served, and a note says what took the time. */
static bool
has_time_left(mc_data_search *search)
{
    mc_error *error = search->late ? MC_OK : mc_ctx_check(search->ctx, search->pool);
    if (error != MC_OK) {
        search->late = true;
        mc_data_note(search, "the files that had not been looked at in time are left out: %s%s%s",
                     mc_error_chain(error, search->pool), search->slowest == NULL ? "" : "; the slowest file was ",
                     search->slowest == NULL ? "" : search->slowest);
    }
    return !search->late;
}

/* A file of a folder: what is wrong with it is a note. */
static void
look_at_one_file(mc_data_search *search, const char *file)
{
    apr_time_t start = mc_clock_now();
    if (has_extension(file, ".vrt")) {
        mc_data_note(search, "%s is left out: a VRT names other files, and is served where it is named itself", file);
        return;
    }
    mc_error *error = mc_data_look_file(search, file, NULL);
    if (error != MC_OK)
        mc_data_note(search, "%s", mc_error_chain(error, search->pool));
    apr_time_t took = mc_clock_now() - start;
    if (search->slowest == NULL || took > search->slowest_time) {
        search->slowest = file;
        search->slowest_time = took;
    }
}

/* Rasters are looked at in a list of their own: a thousand of them may be one layer. */
static void
look_at_rasters(mc_data_search *search, const char *path, const apr_array_header_t *files)
{
    mc_data_search own = *search;
    own.layers = apr_array_make(search->pool, 16, sizeof(mc_data_layer *));
    own.limits.layers = search->limits.files;
    for (int i = 0; i < files->nelts && has_time_left(&own); i++)
        look_at_one_file(&own, APR_ARRAY_IDX(files, i, const char *));
    search->slowest = own.slowest;
    search->slowest_time = own.slowest_time;
    search->late = own.late;
    bool one = is_mosaic(&own, own.layers);
    if (one)
        join_rasters(&own, path, own.layers);
    for (int i = 0; i < own.layers->nelts && (!one || i == 0); i++) {
        const mc_data_layer *found = APR_ARRAY_IDX(own.layers, i, const mc_data_layer *);
        mc_data_layer *layer = mc_data_add(search, found->kind, found->type);
        if (layer == NULL)
            break;
        *layer = *found;
    }
}

static bool
is_raster_name(const char *name)
{
    return has_extension(name, ".tif") || has_extension(name, ".tiff") || has_extension(name, ".jp2");
}

static void
look_at_folder_files(mc_data_search *search, const char *path)
{
    const apr_array_header_t *files = list_entries(search, path, APR_REG);
    apr_array_header_t *rasters = apr_array_make(search->pool, 16, sizeof(const char *));
    for (int i = 0; i < files->nelts && has_time_left(search); i++) {
        const char *file = APR_ARRAY_IDX(files, i, const char *);
        if (++search->files > search->limits.files) {
            mc_data_note(search, "there are more than %d files: the others are left out", search->limits.files);
            break;
        }
        if (is_raster_name(file)) {
            APR_ARRAY_PUSH(rasters, const char *) = file;
            continue;
        }
        look_at_one_file(search, file);
    }
    look_at_rasters(search, path, rasters);
}

static void
look_below(mc_data_search *search, const char *path, int depth)
{
    if (mc_data_look_bundles(search, path))
        return;
    bool pyramids = mc_data_look_pyramids(search, path); /* what lies below are their slabs */
    look_at_folder_files(search, path);
    if (depth >= FOLDERS_DEEP || pyramids)
        return;
    const apr_array_header_t *folders = list_entries(search, path, APR_DIR);
    for (int i = 0; i < folders->nelts && search->files <= search->limits.files && !search->late; i++)
        look_below(search, APR_ARRAY_IDX(folders, i, const char *), depth + 1);
}

mc_error *
mc_data_look_folder(mc_data_search *search, const char *path)
{
    look_below(search, path, 0);
    return MC_OK;
}
